package approvals

import (
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/holdpoint/holdpoint/approvals/rules"
)

// ruled is a call with the rule that covers it.
type ruled struct {
	match  rules.Match
	decide time.Time
}

// cover finds the rule of one call and checks what only the rule can ask: a requester, a reachable quorum.
func (s *Service) cover(f *intakeFacts, d *draft, i int, p prepared) (ruled, error) {
	c := &d.calls[i]
	no := func(r *Refusal) (ruled, error) {
		r.Pointer = fmt.Sprintf("/calls/%d", i)
		return ruled{}, r
	}
	var out ruled
	if !c.args.Readable() {
		out.match = rules.Match{Rule: f.tenant.Unreadable(), Index: -1, Why: "the arguments cannot be read: " + c.args.Unreadable}
	} else {
		in := rules.Input{
			Tool: p.tool.Name, Args: c.args.Value, Target: p.target,
			Agent: rules.AgentInput{Name: d.key.Agent, Path: c.in.AgentPath, Version: d.in.AppStateVersion},
		}
		if d.in.Requester != "" {
			if stale := f.unread(d.in.Requester, decideAge); len(stale) > 0 {
				return ruled{}, &staleDirectory{groups: stale, users: []string{slackUser(d.in.Requester)}, refusal: refuse(CodeUnknownRequester, "the groups that the rules look at cannot be read right now; send the intake again")}
			}
			in.Requester = rules.RequesterInput{ID: d.in.Requester, Groups: f.groupsOf(slackUser(d.in.Requester))}
		}
		m, err := f.tenant.Match(in)
		switch {
		case errors.Is(err, rules.ErrNoRule):
			r := refuse(CodeNoRule, "no rule covers this call of %q, so nobody could approve it", p.tool.Name)
			r.Suggest = f.tenant.SuggestRule(p.tool.Name)
			return no(r)
		case err != nil:
			return no(refuse(CodeRuleError, "%s", err))
		}
		out.match = m
	}
	rule := out.match.Rule
	if rule.NeedsRequester() && d.in.Requester == "" {
		return no(refuse(CodeRequesterRequired, "the rule %q needs to know who is behind the call: send run.requester", rule.Name))
	}
	if err := f.requester(d, rule); err != nil {
		return ruled{}, err
	}
	if rule.Do == rules.Ask {
		if err := f.reachable(d, i, rule); err != nil {
			return ruled{}, err
		}
		within := rule.DecideWithin
		if c.in.ExpiresIn > 0 {
			within = min(within, c.in.ExpiresIn)
		}
		out.decide = f.now.Add(within)
	} else {
		out.decide = f.now.Add(max(rule.ExecuteWithin, time.Minute))
	}
	return out, nil
}

// requester holds the person behind the call against the mirror and the rule.
func (f *intakeFacts) requester(d *draft, rule *rules.Rule) error {
	if d.in.Requester == "" {
		return nil
	}
	user := slackUser(d.in.Requester)
	unknown := refuse(CodeUnknownRequester, "run.requester must be slack:U… of a full, active member of the tenant's own workspace: guests, outsiders and bots don't count")
	unknown.Pointer = "/run/requester"
	if user == "" {
		return unknown
	}
	switch f.eligible(user, decideAge) {
	case "":
	case DenyUncheckable:
		return &staleDirectory{users: []string{user}, refusal: unknown}
	default:
		return unknown
	}
	if rule.Requesters == nil {
		return nil
	}
	g, known := f.granted(user, *rule.Requesters, decideAge)
	switch {
	case g == nil && !known:
		r := refuse(CodeUnknownRequester, "the groups of the rule %q cannot be read right now; send the intake again", rule.Name)
		return &staleDirectory{groups: rule.Requesters.Groups, users: []string{user}, refusal: r}
	case g == nil:
		r := refuse(CodeToolNotAllowed, "the rule %q does not let this requester be behind the call", rule.Name)
		r.Pointer = "/run/requester"
		return r
	}
	return nil
}

// reachable says whether enough people could ever vote. An empty list denies (I4).
func (f *intakeFacts) reachable(d *draft, i int, rule *rules.Rule) error {
	could := map[string]bool{}
	for _, u := range rule.Reviewers.Users {
		could[u] = true
	}
	for m := range f.members {
		for _, g := range rule.Reviewers.Groups {
			if m.group == g && f.groups[g].enabled {
				could[m.user] = true
			}
		}
	}
	for u := range could {
		if f.blocked[u] || f.unfit[u] {
			delete(could, u)
		}
	}
	if rule.ExcludeRequester {
		delete(could, slackUser(d.in.Requester))
	}
	if len(could) >= rule.Quorum {
		return nil
	}
	r := refuse(CodeNoQuorumPossible, "the rule %q needs %d votes; the people who could cast one: %d", rule.Name, rule.Quorum, len(could))
	r.Pointer = fmt.Sprintf("/calls/%d", i)
	for _, g := range rule.Reviewers.Groups {
		if row, ok := f.groups[g]; !ok || f.now.Sub(row.syncedAt) > decideAge {
			return &staleDirectory{groups: rule.Reviewers.Groups, refusal: r}
		}
	}
	if len(rule.Reviewers.Groups) > 0 { // a member who is not mirrored yet counted as nobody
		return &staleDirectory{members: rule.Reviewers.Groups, refusal: r}
	}
	return r
}

func newMACKey() []byte {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails (crypto/rand)
	return b
}
