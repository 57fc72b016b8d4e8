package approvals

import (
	"context"
	"errors"
	"slices"

	"github.com/holdpoint/holdpoint/approvals/canon"
	"github.com/holdpoint/holdpoint/approvals/rules"
)

// Impact is what a configuration would do to the approvals that wait.
type Impact struct {
	Blocked   map[Reason][]View // could not go on, by why
	Held      []View            // approved, and outside of the window for now
	Unchecked []View            // nobody can tell: their people or groups are not mirrored, or too long ago, or their arguments cannot be opened
}

// ReasonNoQuorum is why a waiting approval can never be decided: too few people are left who could vote. It is an impact's reason, and of
// no approval that ended.
const ReasonNoQuorum = Reason(CodeNoQuorumPossible)

// Impact tells which waiting approvals a configuration would block if it were applied, and writes nothing. Somebody whom the mirror does
// not know well enough is never taken for one who may, nor for one who may not: the approval is Unchecked.
func (s *Service) Impact(ctx context.Context, t *rules.Tenant) (Impact, error) {
	out := Impact{Blocked: map[Reason][]View{}}
	ids, err := s.openOf(ctx, t.Name)
	if err != nil {
		return out, err
	}
	people, _ := reviewersOf(t)
	for _, r := range t.Rules {
		if r.Requesters != nil {
			people = append(people, r.Requesters.Users...)
		}
	}
	for _, id := range ids {
		_, _, err := s.transition(ctx, s.clicks, id, want{payload: true, pool: true, people: people}, func(f *facts) (*swap, error) {
			if f.req.status != Pending && f.req.status != Approved {
				return nil, nil
			}
			f.tenant = t
			for id, g := range f.groups { // nothing is written: reading is enough
				g.locked = true
				f.groups[id] = g
			}
			switch why, known := s.blockedUnder(f); {
			case !known:
				out.Unchecked = append(out.Unchecked, f.view())
			case why == ReasonWindowClosed:
				out.Held = append(out.Held, f.view())
			case why != "":
				out.Blocked[why] = append(out.Blocked[why], f.view())
			}
			return nil, nil
		})
		if err != nil && !errors.Is(err, ErrNotFound) {
			return out, err
		}
	}
	return out, nil
}

// blockedUnder says why an approval could not go on under f.tenant; known is false when that cannot be told.
func (s *Service) blockedUnder(f *facts) (why Reason, known bool) {
	r := f.req
	if _, no := f.registered(executionCheck{}); no != nil {
		return no.reason, true
	}
	if r.unreadable != "" {
		return "", true // an admin rejects it, whatever the rules say
	}
	if s.sealer == nil {
		return "", false
	}
	args, ok, err := s.verified(f)
	switch {
	case err != nil && !errors.Is(err, ErrCorrupt):
		return "", false
	case err != nil || !ok || !f.votesAgree():
		return ReasonDigestMismatch, true
	case f.tenant.Tools[r.tool].Validate(args.Value) != nil:
		return ReasonToolChanged, true
	}
	if r.status == Approved {
		rule, v := f.authorised(args, decideAge)
		switch {
		case v != nil && v.end != "":
			return v.reason, true
		case v != nil:
			return "", false
		case rule.Window != nil && !rule.Window.Open(f.now):
			return ReasonWindowClosed, true
		}
		return "", true
	}
	return f.undecidable(args)
}

// undecidable is blockedUnder for what still waits for people: the requester, the rule, and whether enough people are left.
func (f *facts) undecidable(args canon.Arguments) (why Reason, known bool) {
	requester := slackUser(f.req.requester)
	if requester != "" {
		switch f.eligible(requester, decideAge) {
		case "":
		case DenyUncheckable:
			return "", false
		default:
			return ReasonRequesterInactive, true
		}
	}
	if len(f.unread(f.req.requester, decideAge)) > 0 {
		return "", false
	}
	m, err := f.tenant.Match(f.input(args.Value))
	if err != nil || m.Rule.Do == rules.Deny {
		return ReasonPolicyChanged, true
	}
	if list := m.Rule.Requesters; list != nil {
		switch g, known := f.granted(requester, *list, decideAge); {
		case requester == "", g == nil && known:
			return ReasonRequesterLostRole, true
		case g == nil:
			return "", false
		}
	}
	sure, maybe := f.couldApprove(m.Rule)
	switch need := f.quorum(m.Rule); {
	case sure >= need:
		return "", true
	case sure+maybe >= need:
		return "", false
	}
	return ReasonNoQuorum, true
}

// couldApprove counts who carries the approval or still could: the votes that stand, and everybody among the rule's people who has not
// voted and is not kept from it. maybe are those of whom the mirror cannot tell; a group that cannot be read may hold any number.
func (f *facts) couldApprove(rule *rules.Rule) (sure, maybe int) {
	who := f.reviewers(rule)
	sure, maybe = f.votesNow(rule, who, decideAge)
	could := map[string]bool{} // to whether the mirror is sure
	for _, u := range who.Users {
		switch f.eligible(u, decideAge) {
		case "":
			could[u] = true
		case DenyUncheckable:
			could[u] = false
		}
	}
	for _, id := range who.Groups {
		if g, ok := f.groups[id]; !ok || f.now.Sub(g.syncedAt) > decideAge {
			maybe += f.quorum(rule)
		}
	}
	for m, p := range f.pool {
		g := f.groups[m.group]
		if !slices.Contains(who.Groups, m.group) || !g.enabled || p.team != "" && p.team != f.tenant.Slack.Team || f.blocked[m.user] {
			continue
		}
		could[m.user] = could[m.user] || p.team != "" && f.now.Sub(g.syncedAt) <= decideAge && f.now.Sub(p.syncedAt) <= decideAge
	}
	for u, known := range could {
		voted := slices.ContainsFunc(f.votes, func(v Vote) bool { return v.By == "slack:"+u })
		switch {
		case voted || f.excluded(u, rule) != "":
		case known:
			sure++
		default:
			maybe++
		}
	}
	return sure, maybe
}
