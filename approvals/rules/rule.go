package rules

import (
	"fmt"
	"time"
)

// Do is what a rule does with a call that it matches.
type Do string

// What a rule can do.
const (
	Ask   Do = "ask"   // people decide
	Allow Do = "allow" // approved by the rule
	Deny  Do = "deny"  // rejected with the rule's message
)

// Decision is what a reviewer can answer.
type Decision string

// The reviewers' answers.
const (
	Approve Decision = "approve"
	Reject  Decision = "reject"
	Edit    Decision = "edit"
	Respond Decision = "respond" // questions only: the answer is the tool's output
)

// Risk is how a rule grades its calls; empty when it doesn't.
type Risk string

// The grades of risk. High asks for a confirmation that repeats the magnitude.
const (
	Low    Risk = "low"
	Medium Risk = "medium"
	High   Risk = "high"
)

// Rule is one entry of a tenant's rules.
type Rule struct {
	Name  string
	Index int    // place in the list, from 0; -1 for the built-in rule
	Text  string // the condition as written; empty for the built-in rule
	Do    Do

	Reviewers        Reviewers  // ask: who may decide
	Requesters       *Reviewers // who may be behind the call; nil: anyone
	Quorum           int        // ask: approvals needed, at least 1
	ExcludeRequester bool
	ExcludeEditor    bool
	Decisions        []Decision // ask: as listed; nil: the default of the tool's kind
	DecideWithin     time.Duration
	ExecuteWithin    time.Duration // ask and allow: how long an approval may wait to run
	Window           *Window       // nil: always open
	Channel          string        // where its cards go; empty: the tenant's channel
	Risk             Risk
	Message          string // deny: what the model is told
	SecondPerson     bool   // an uncertain outcome is settled by someone who didn't decide

	condition *condition
}

// ConditionGroups are the user groups that the rule's condition asks for, by id. A decision that depends on them needs them fresh.
func (r *Rule) ConditionGroups() []string {
	if r.condition == nil {
		return nil
	}
	return r.condition.groups
}

// DecisionsFor gives what a reviewer is offered for a tool of this kind: the rule's
// list, or the kind's default, cut to what the kind can take.
func (r *Rule) DecisionsFor(kind Kind) []Decision {
	fit := []Decision{Approve, Reject, Edit}
	if kind == Question {
		fit = []Decision{Respond, Reject}
	}
	if r.Decisions == nil {
		return fit
	}
	var out []Decision
	for _, d := range r.Decisions {
		for _, f := range fit {
			if d == f {
				out = append(out, d)
			}
		}
	}
	return out
}

// NeedsRequester reports whether a call can't be taken under this rule without
// knowing who is behind it.
func (r *Rule) NeedsRequester() bool {
	return r.Requesters != nil || r.Do == Ask && r.ExcludeRequester
}

var ruleKeys = []string{"name", "when", "do", "reviewers", "requesters", "quorum", "exclude", "decisions", "decide_within", "execute_within", "window", "channel", "risk", "message", "reconcile"}

func (r *reader) rules(o *object, known names) []*Rule {
	var out []*Rule
	seen := map[string]bool{}
	for i, n := range o.list("rules") {
		rule := r.rule(i, fmt.Sprintf("%s[%d]", o.at("rules"), i), n, known)
		if rule.Name != "" && seen[rule.Name] {
			r.fault(n, fmt.Sprintf("%s[%d].name", o.at("rules"), i), "rule %q is defined twice", rule.Name)
		}
		seen[rule.Name] = true
		out = append(out, rule)
	}
	return out
}

func (r *reader) rule(index int, path string, n *node, known names) *Rule {
	o := r.object(n, path, ruleKeys...)
	rule := &Rule{Index: index, Name: o.needText("name"), Text: o.needText("when")}
	r.place(rule, n, path)
	if rule.Name != "" && !ruleName.MatchString(rule.Name) {
		o.fault("name", "a rule's name is letters, digits, dots, - and _, at most 63")
	}
	if rule.Name == UnreadableRule {
		o.fault("name", "%q is the built-in rule's name", UnreadableRule)
	}
	if rule.Text != "" {
		rule.condition = r.condition(o.n.get("when"), o.at("when"), rule.Text, known)
	}
	rule.Do = Do(o.choice("do", string(Ask), string(Ask), string(Allow), string(Deny)))
	switch rule.Do {
	case Ask:
		o.ask(rule)
		o.unfit("only a rule with `do: deny` has a message", "message")
	case Allow:
		o.unfit("doesn't apply to `do: allow`: the rule approves, nobody is asked", "reviewers", "quorum", "exclude", "decisions", "decide_within")
		o.unfit("only a rule with `do: deny` has a message", "message")
		rule.ExecuteWithin = o.needDuration("execute_within")
	case Deny:
		o.unfit("doesn't apply to `do: deny`: the call is rejected at once", "reviewers", "requesters", "quorum", "exclude", "decisions", "decide_within", "execute_within", "window", "channel", "risk", "reconcile")
		rule.Message = o.needText("message")
		return rule
	}
	if o.has("requesters") {
		p := o.people("requesters", false)
		rule.Requesters = &p
	}
	if w := o.n.get("window"); w != nil {
		rule.Window = r.window(w, o.at("window"))
	}
	rule.Channel = o.slackID("channel", slackChannel, "C0RELEASES", false)
	rule.Risk = Risk(o.choice("risk", "", string(Low), string(Medium), string(High)))
	if c := o.n.get("reconcile"); c != nil {
		rule.SecondPerson = r.object(c, o.at("reconcile"), "second_person").boolean("second_person")
	}
	return rule
}

// ask reads what only a rule that asks people has.
func (o *object) ask(rule *Rule) {
	rule.Reviewers = o.people("reviewers", true)
	rule.Quorum = int(o.integer("quorum", 1, 1, 50))
	// A group's members are not known here; users alone can be counted.
	if n := len(rule.Reviewers.Users); len(rule.Reviewers.Groups) == 0 && n > 0 && n < rule.Quorum {
		o.fault("quorum", "can't be reached: %d approvals of %d reviewers", rule.Quorum, n)
	}
	rule.ExcludeRequester, rule.ExcludeEditor = true, true
	if o.has("exclude") {
		words := o.texts("exclude", oneOf("requester", "editor"))
		rule.ExcludeRequester, rule.ExcludeEditor = contains(words, "requester"), contains(words, "editor")
	}
	if o.has("decisions") {
		words := o.texts("decisions", oneOf(string(Approve), string(Reject), string(Edit), string(Respond)))
		if !contains(words, string(Approve)) && !contains(words, string(Respond)) {
			o.fault("decisions", "must offer approve (effects) or respond (questions); to refuse every call use `do: deny`")
		}
		for _, w := range words {
			rule.Decisions = append(rule.Decisions, Decision(w))
		}
	}
	rule.DecideWithin = o.needDuration("decide_within")
	rule.ExecuteWithin = o.needDuration("execute_within")
}

func (o *object) needDuration(key string) time.Duration {
	if o.need(key) == nil {
		return 0
	}
	return o.duration(key, longest)
}

func oneOf(words ...string) func(string) string {
	return func(s string) string {
		if contains(words, s) {
			return ""
		}
		msg := "must be one of " + words[0]
		for _, w := range words[1:] {
			msg += ", " + w
		}
		return msg + meant(s, words)
	}
}
