package rules

import (
	"net/netip"
	"regexp"
	"sort"
	"time"
)

// Tenant is one tenant's configuration, compiled. It is read-only and safe for
// concurrent use.
type Tenant struct {
	Name   string
	Slack  Slack
	Admins Reviewers // they stop and reconcile; they don't approve as admins
	Limits Limits
	Egress []netip.Prefix // private networks that tools and agents may live on
	Rules  []*Rule        // in order; the first match wins
	Tools  map[string]*Tool
	Agents map[string]*Agent

	body       []byte
	unreadable *Rule
	local      []string
}

// Slack names the workspace and the channel for cards whose rule names none.
type Slack struct{ Team, Channel string }

// Reviewers is a set of Slack users (U…) and user groups (S…), by id, sorted.
type Reviewers struct{ Users, Groups []string }

// Empty reports whether nobody is named.
func (r Reviewers) Empty() bool { return len(r.Users) == 0 && len(r.Groups) == 0 }

// Permits reports whether the set holds the user, who is in these groups, and by what:
// the user's own id, or the id of the first group that does.
func (r Reviewers) Permits(user string, groups []string) (by string, ok bool) {
	if user == "" {
		return "", false
	}
	if contains(r.Users, user) {
		return user, true
	}
	for _, g := range r.Groups {
		if contains(groups, g) {
			return g, true
		}
	}
	return "", false
}

// Limits bound one tenant's intake.
type Limits struct {
	OpenPerRun int   // waiting calls of one run; default 64
	PerMinute  int   // intakes; default 60
	StateBytes int64 // one run's state; default 16 MiB
}

// Body is the tenant's configuration as canonical JSON, egress included and secret
// references as references: what a revision stores and [Compile] reads. Formatting,
// comments and the order of keys don't change it. The caller must not modify it.
func (t *Tenant) Body() []byte { return t.body }

// LocalReferences lists the `env:` and `file:` references, sorted. They are allowed
// while exactly one tenant exists, in the files or in the database.
func (t *Tenant) LocalReferences() []string { return t.local }

// Rule gives a rule by its name; "unreadable" gives the built-in one.
func (t *Tenant) Rule(name string) (*Rule, bool) {
	if name == UnreadableRule {
		return t.unreadable, true
	}
	for _, r := range t.Rules {
		if r.Name == name {
			return r, true
		}
	}
	return nil, false
}

// UnreadableRule names the built-in rule for arguments that can't be read.
const UnreadableRule = "unreadable"

// Unreadable is the built-in rule for arguments that can't be read: one admin, who
// can only reject. It excludes nobody: an exclusion would refuse an intake without a
// requester, and rejecting one's own call takes no authority.
func (t *Tenant) Unreadable() *Rule { return t.unreadable }

func (r *reader) tenant(name, path string, n, egress *node, prefixes []netip.Prefix, sole bool) *Tenant {
	o := r.object(n, path, "slack", "admins", "limits", "rules", "tools", "agents")
	t := &Tenant{Name: name, Egress: prefixes, Tools: map[string]*Tool{}, Agents: map[string]*Agent{}}
	if n := o.need("slack"); n != nil {
		s := r.object(n, o.at("slack"), "team", "channel")
		t.Slack = Slack{Team: s.slackID("team", slackTeam, "T0ACME", true), Channel: s.slackID("channel", slackChannel, "C0APPROVALS", true)}
	}
	t.Admins = o.people("admins", true)
	t.Limits = Limits{OpenPerRun: 64, PerMinute: 60, StateBytes: 16 << 20}
	if n := o.n.get("limits"); n != nil {
		l := r.object(n, o.at("limits"), "open_per_run", "per_minute", "state_bytes")
		t.Limits.OpenPerRun = int(l.integer("open_per_run", 64, 1, 10_000))
		t.Limits.PerMinute = int(l.integer("per_minute", 60, 1, 1_000_000))
		t.Limits.StateBytes = l.integer("state_bytes", 16<<20, 1, 1<<30)
	}
	refs := &references{sole: sole}
	// Tools first: conditions and agents name them.
	for _, f := range o.entries("tools", toolName, "letters, digits and _ . : / -, at most 128") {
		t.Tools[f.key] = r.tool(f.key, o.at("tools")+"."+f.key, f.value, prefixes, refs)
	}
	agents := o.entries("agents", agentName, "letters, digits, dots, - and _, at most 128")
	known := names{tools: sortedKeys(t.Tools)}
	for _, f := range agents {
		known.agents = append(known.agents, f.key)
	}
	for _, f := range agents {
		t.Agents[f.key] = r.agent(f.key, o.at("agents")+"."+f.key, f.value, known, prefixes, refs)
	}
	t.Rules = r.rules(o, known)
	t.local = refs.local
	sort.Strings(t.local)
	t.unreadable = &Rule{
		Name: UnreadableRule, Do: Ask, Index: -1, Reviewers: t.Admins, Quorum: 1,
		Decisions: []Decision{Reject}, DecideWithin: 24 * time.Hour,
	}
	body := &node{kind: objectNode, fields: []field{{key: "tenant", value: n}}}
	if egress != nil {
		body.fields = append(body.fields, field{key: "egress", value: egress})
	}
	t.body = body.appendJSON(nil)
	return t
}

// names are what a condition or an agent may refer to.
type names struct{ tools, agents []string }

// entries lists a mapping of named things, faulting names of the wrong form.
func (o *object) entries(key string, form *regexp.Regexp, of string) []field {
	n := o.n.get(key)
	if n == nil || !o.r.mapping(n, o.at(key)) {
		return nil
	}
	for _, f := range n.fields {
		if !form.MatchString(f.key) {
			o.r.problems = append(o.r.problems, &Problem{File: o.r.file, Line: f.line, Col: f.col, Path: o.at(key) + "." + f.key, Msg: "a name here is " + of})
		}
	}
	return n.fields
}

func (o *object) slackID(key string, form *regexp.Regexp, like string, required bool) string {
	n := o.n.get(key)
	if n == nil {
		if required {
			o.need(key)
		}
		return ""
	}
	s := o.text(key)
	if s != "" && !form.MatchString(s) {
		o.fault(key, "must be a Slack id such as %s", like)
	}
	return s
}

// people reads users and groups; somebody must be named.
func (o *object) people(key string, required bool) Reviewers {
	n := o.n.get(key)
	if n == nil {
		if required {
			o.need(key)
		}
		return Reviewers{}
	}
	p := o.r.object(n, o.at(key), "users", "groups")
	form := func(re *regexp.Regexp, like string) func(string) string {
		return func(s string) string {
			if re.MatchString(s) {
				return ""
			}
			return "must be a Slack id such as " + like
		}
	}
	out := Reviewers{Users: p.texts("users", form(slackUser, "U0ALICE")), Groups: p.texts("groups", form(slackGroup, "S0RELEASE"))}
	sort.Strings(out.Users)
	sort.Strings(out.Groups)
	if len(p.list("users")) == 0 && len(p.list("groups")) == 0 {
		o.fault(key, "names nobody")
	}
	return out
}
