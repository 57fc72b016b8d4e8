package approvals

import (
	"errors"
	"slices"
	"time"

	"github.com/holdpoint/holdpoint/approvals/canon"
	"github.com/holdpoint/holdpoint/approvals/rules"
	"github.com/holdpoint/holdpoint/approvals/runstate"
	"github.com/holdpoint/holdpoint/approvals/seal"
)

// verdict is what revalidation found: execute, end without effect, or hold. Exactly one is set.
type verdict struct {
	run     bool
	end     Status // revoked, migration_required, expired
	reason  Reason // for end and hold
	hold    time.Time
	refresh *staleDirectory // held only because the mirror is too old: worth one refresh before holding
}

func end(to Status, why Reason) verdict { return verdict{end: to, reason: why} }

func hold(why Reason, until time.Time) verdict { return verdict{reason: why, hold: until} }

// holdFor is how long a hold waits before it is looked at again, when nothing says better.
const holdFor = 10 * time.Second

// executionCheck is everything about one claim that is not in the facts.
type executionCheck struct {
	checkState bool   // the worker holds the arguments against the state too
	appVersion string // the agent's own: what runs now; empty for the worker
	takeover   bool   // an attempt may have been sent: deadlines and reasons are the caller's to turn into `uncertain`
}

// revalidate is I3: an approval is not a standing grant. Everything is held against the current configuration, the mirrored people
// and the sealed bytes, in the transaction that will commit `executing`. What can never become right again ends the approval; what
// may pass by itself holds it.
func (s *Service) revalidate(f *facts, x executionCheck) (verdict, *rules.Rule, canon.Arguments, error) {
	r := f.req
	var none canon.Arguments
	if !f.now.Before(r.expiresAt) {
		return end(Expired, ReasonExecuteExpired), nil, none, nil
	}
	tool, v := f.registered(x)
	if v != nil {
		return *v, nil, none, nil
	}
	args, ok, err := s.verified(f)
	if err != nil && !errors.Is(err, ErrCorrupt) {
		return verdict{}, nil, none, err
	}
	if err != nil || !ok || !f.votesAgree() {
		return end(Revoked, ReasonDigestMismatch), nil, none, nil //nolint:nilerr // bytes that do not open are a verdict, not a failure
	}
	if !args.Readable() {
		return end(Revoked, ReasonPolicyChanged), nil, none, nil // unreadable arguments are never approved; defence in depth
	}
	if tool.Validate(args.Value) != nil {
		return end(MigrationRequired, ReasonToolChanged), nil, none, nil //nolint:nilerr // the tool's schema has its say
	}
	if x.checkState && !s.stateAgrees(f) {
		return end(Revoked, ReasonDigestMismatch), nil, none, nil
	}
	rule, v := f.authorised(args, claimAge)
	if v != nil {
		return *v, nil, none, nil
	}
	if f.stops["tenant:"] || f.stops["agent:"+r.agent] || f.stops["tool:"+r.tool] {
		return hold(ReasonPaused, f.now.Add(holdFor)), rule, args, nil
	}
	if rule.Window != nil && !rule.Window.Open(f.now) {
		return hold(ReasonWindowClosed, rule.Window.NextOpening(f.now)), rule, args, nil
	}
	return verdict{run: true}, rule, args, nil
}

// registered holds agent, key, versions and tool against the configuration.
func (f *facts) registered(x executionCheck) (*rules.Tool, *verdict) {
	r := f.req
	no := func(v verdict) (*rules.Tool, *verdict) { return nil, &v }
	agent, ok := f.tenant.Agents[r.agent]
	if !ok || !agent.Allows(r.tool) || !f.keyLive {
		return no(end(Revoked, ReasonAgentNotAllowed))
	}
	version, ok := agent.Version(r.appStateVersion)
	if !ok || version.AcceptsState(r.sdkFormat, r.sdkVersion, r.sdkSchema) != nil {
		return no(end(MigrationRequired, ReasonVersionUnregistered))
	}
	tool, ok := f.tenant.Tools[r.tool]
	if !ok || tool.Revision() != r.toolRevision {
		return no(end(MigrationRequired, ReasonToolChanged))
	}
	return tool, nil
}

// votesAgree: every counted vote is for the row's digest (I1, I6).
func (f *facts) votesAgree() bool {
	return !slices.ContainsFunc(f.votes, func(v Vote) bool { return v.Decision == string(Approve) && v.Digest != f.req.digest })
}

// authorised holds the requester, the rule and every counted vote against the current configuration and people, of whom the mirror may be
// as old as age.
func (f *facts) authorised(args canon.Arguments, age time.Duration) (*rules.Rule, *verdict) {
	r := f.req
	no := func(v verdict) (*rules.Rule, *verdict) { return nil, &v }
	unreadable := func(who rules.Reviewers) (*rules.Rule, *verdict) {
		v := hold(ReasonAuthorityUnreadable, f.now.Add(holdFor))
		v.refresh = f.relied(who)
		return nil, &v
	}
	requester := slackUser(r.requester)
	if requester != "" {
		switch f.eligible(requester, age) {
		case "":
		case DenyUncheckable:
			return unreadable(rules.Reviewers{})
		default:
			return no(end(Revoked, ReasonRequesterInactive))
		}
	}
	if groups := f.unread(r.requester, age); len(groups) > 0 {
		return unreadable(rules.Reviewers{Groups: groups})
	}
	m, err := f.tenant.Match(f.input(args.Value))
	if err != nil || m.Rule.Do == rules.Deny || r.scope.Auto && m.Rule.Do != rules.Allow {
		return no(end(Revoked, ReasonPolicyChanged))
	}
	rule := m.Rule
	if rule.Requesters != nil {
		if requester == "" {
			return no(end(Revoked, ReasonRequesterLostRole))
		}
		switch g, known := f.granted(requester, *rule.Requesters, age); {
		case g == nil && !known:
			return unreadable(*rule.Requesters)
		case g == nil:
			return no(end(Revoked, ReasonRequesterLostRole))
		}
	}
	if r.scope.Auto {
		return rule, nil
	}
	who := f.reviewers(rule)
	valid, unknown := f.votesNow(rule, who, age)
	lost := len(f.counted()) - valid - unknown
	switch need := f.quorum(rule); {
	case valid >= need:
		return rule, nil
	case valid+unknown >= need:
		return unreadable(who)
	case lost > 0 || len(f.counted()) == 0:
		return no(end(Revoked, ReasonReviewerLost))
	}
	return no(end(Revoked, ReasonPolicyChanged)) // they all stand, and the rule asks for more of them now
}

// relied names all that the approval relies on, so that one refresh is enough: the people behind it, and the groups of its rule,
// of conditions and of who.
func (f *facts) relied(who rules.Reviewers) *staleDirectory {
	r := f.req
	out := &staleDirectory{groups: slices.Concat(who.Groups, r.scope.Groups, conditionGroups(f.tenant)), refusal: refuse(CodeForbidden, "authority cannot be read")}
	if rule, ok := f.tenant.Rule(r.rule); ok {
		out.groups = append(out.groups, rule.Reviewers.Groups...)
		if rule.Requesters != nil {
			out.groups = append(out.groups, rule.Requesters.Groups...)
		}
	}
	for _, by := range append([]string{r.requester}, voters(f.votes)...) {
		if user := slackUser(by); user != "" {
			out.users = append(out.users, user)
		}
	}
	slices.Sort(out.groups)
	out.groups = slices.Compact(out.groups)
	return out
}

func voters(votes []Vote) []string {
	out := make([]string, len(votes))
	for i, v := range votes {
		out[i] = v.By
	}
	return out
}

// votesNow holds the counted votes against the people as they are: how many still carry, and of how many that cannot be read.
func (f *facts) votesNow(rule *rules.Rule, who rules.Reviewers, age time.Duration) (valid, unknown int) {
	for _, v := range f.counted() {
		user := slackUser(v.By)
		no := f.eligible(user, age)
		g, known := f.granted(user, who, age)
		switch {
		case no == DenyUncheckable || no == "" && g == nil && !known:
			unknown++
		case no == "" && g != nil && f.excluded(user, rule) == "":
			valid++
		}
	}
	return valid, unknown
}

// stateAgrees holds the arguments that were proposed (an edited child's root) against the run's own state, where the format is
// known: the state is what resumes, so it must still propose the same bytes.
func (s *Service) stateAgrees(f *facts) bool {
	r := f.req
	if !runstate.Known(r.sdkFormat) {
		return true
	}
	if f.blob == nil || f.blob.format != r.sdkFormat {
		return false
	}
	state, err := s.opened(f.blob.sealed, seal.StateAAD(r.tenant, r.runID, f.blob.pauseID, f.blob.format))
	if err != nil {
		return false
	}
	reading, err := runstate.Read(r.sdkFormat, state)
	if err != nil {
		if deserializeFailure(err) {
			s.metrics.StateFailure()
		}
		return false
	}
	return slices.ContainsFunc(reading.Calls, func(c runstate.Call) bool {
		return c.ToolCallID == r.toolCallID && c.Tool == r.tool && slices.Equal(list(c.CallPath), r.callPath) &&
			canon.Read([]byte(c.Arguments)).Digest == f.blob.rootDigest
	})
}
