package approvals

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdpoint/holdpoint/approvals/canon"
	"github.com/holdpoint/holdpoint/approvals/crashpoint"
	"github.com/holdpoint/holdpoint/approvals/rules"
	"github.com/holdpoint/holdpoint/approvals/seal"
)

// Decide takes one reviewer's decision: two round trips, one commit, Postgres alone.
//
// The first round trip locks the request and everything that authorises (FOR SHARE) and reads the clock; a pure judgement
// follows; the second swaps, with the vote, the audit row and the outbox, and commits. A kill before that commit leaves the
// request pending; a kill after it leaves the decision, and Slack's retry is answered with it. When the commit's answer is lost,
// the decision is looked up by its id on a new connection and never run again (I17).
//
// A refusal is a Ruling with a Denial: nothing changed, the refusal is audited, and the row tells who was faster (I8).
func (s *Service) Decide(ctx context.Context, rq DecideRequest) (Ruling, error) {
	started := time.Now()
	rq.Reason = said(rq.Reason)
	r, err := s.decide(ctx, rq)
	if errors.Is(err, errAmbiguous) {
		if r, err = s.decidedBy(ctx, rq); err == nil {
			s.metrics.Decided(string(rq.Verb))
			if r.View.Status != Pending {
				s.metrics.PendingAge(r.View.Now.Sub(r.View.CreatedAt))
			}
		}
	}
	if err == nil {
		s.metrics.ClickLatency(time.Since(started))
		if r.Denial != nil {
			s.metrics.Refused(string(r.Denial.Kind))
			s.log.LogAttrs(context.WithoutCancel(ctx), slog.LevelInfo, "decision refused", r.View.LogIDs(), slog.String("tenant", r.View.Tenant),
				slog.String("by", string(SlackActor(rq.By.UserID))), slog.String("verb", string(rq.Verb)), slog.String("why", string(r.Denial.Kind)))
		}
	}
	return r, err
}

func (s *Service) decide(ctx context.Context, rq DecideRequest) (Ruling, error) {
	c, err := s.clicks.Acquire(ctx)
	if err != nil {
		return Ruling{}, unavailable(err)
	}
	defer c.Release()
	f, err := s.begin(ctx, c.Conn(), rq.Button.ID, want{people: []string{rq.By.UserID}, payload: true, pool: rq.Verb == Edit})
	if err != nil {
		return Ruling{}, err
	}
	j, err := s.judge(f, rq)
	if err != nil {
		return Ruling{}, err
	}
	if j.denial != nil {
		j.denial.At = f.now
		return Ruling{Denial: j.denial, View: f.view()}, s.auditDenial(ctx, c, f, rq, j.denial)
	}
	b := &pgx.Batch{}
	var done swapped
	if err := j.swap.queue(b, &done); err != nil {
		return Ruling{}, err
	}
	if j.child != nil {
		j.child.queueChild(b, f.req.id)
	}
	crashpoint.At("decide.begun")
	if err := finish(ctx, c.Conn(), b); err != nil {
		return Ruling{}, err
	}
	crashpoint.At("decide.committed")
	if !done.hit { // the deadline passed between the two statements, under our own lock (I7)
		d := &Denial{Kind: DenyExpired, At: f.now}
		return Ruling{Denial: d, View: f.view()}, nil
	}
	s.wake(j.swap, done)
	if j.child != nil {
		s.woke(j.child.items)
		s.requested(ctx, j.child)
	}
	s.account(ctx, j.swap, f.now)
	return j.ruling(f, rq, done), nil
}

// judgement is what the pure part of a decision found: a denial, or the transition to make.
type judgement struct {
	denial *Denial
	swap   *swap
	child  *insertion
}

func deny(kind DenialKind, detail string) judgement {
	return judgement{denial: &Denial{Kind: kind, Detail: detail}}
}

// judge decides from locked facts. It reads nothing from the database.
func (s *Service) judge(f *facts, rq DecideRequest) (judgement, error) {
	r, user := f.req, rq.By.UserID
	if d := f.bound(rq.Button, rq.Channel, rq.MessageTS); d != "" {
		return deny(d, ""), nil
	}
	if rq.By.TeamID != f.tenant.Slack.Team {
		return deny(DenyIneligible, ""), nil
	}
	if f.blocked[user] {
		return deny(DenyBlocked, ""), nil
	}
	if (f.revision != r.configRevision || rq.Verb == Edit) && len(f.unread(r.requester, decideAge)) > 0 {
		return deny(DenyUncheckable, ""), nil // the rules are to be asked again, and their conditions can't be decided
	}
	rule, args, err := s.ruleNow(f)
	if err != nil {
		return judgement{}, err
	}
	who := f.reviewers(rule)
	g, known := f.granted(user, who, decideAge)
	switch {
	case g == nil && !known:
		return deny(DenyUncheckable, ""), nil
	case g == nil:
		j := deny(DenyNotReviewer, "")
		j.denial.Needs = append(slices.Clone(who.Groups), who.Users...)
		j.denial.NeedHandles, j.denial.Have = f.handles(who.Groups), f.handles(f.groupsOf(user))
		return j, nil
	}
	// Whoever the list names must also be one who counts; who is in no list needs no look-up to be told so.
	if d := f.eligible(user, decideAge); d != "" {
		return deny(d, ""), nil
	}
	switch {
	case r.status != Pending:
		return deny(DenyDecided, ""), nil
	case rq.Button.DigestPrefix != shortDigest(r.digest):
		return deny(DenyChanged, ""), nil
	case !f.now.Before(r.expiresAt):
		return deny(DenyExpired, ""), nil
	case rule == nil && rq.Verb != Reject:
		return deny(DenyPolicy, "no rule of the current configuration takes this call any more"), nil
	case !slices.Contains(r.scope.Decisions, string(rq.Verb)), rq.Verb != Reject && !f.offers(rule, rq.Verb):
		return deny(DenyVerb, ""), nil
	}
	if d := f.excluded(user, rule); d == DenyRequester || d == DenyEditor && rq.Verb == Approve {
		return deny(d, ""), nil
	}
	if i := slices.IndexFunc(f.votes, func(v Vote) bool { return v.By == "slack:"+user }); i >= 0 {
		if f.votes[i].Void {
			return deny(DenyVoteVoid, ""), nil
		}
		return deny(DenyAlreadyVoted, ""), nil
	}
	vote := &voteRow{id: rq.DecisionID, by: SlackActor(user), verb: rq.Verb, authorised: g, reason: rq.Reason}
	switch rq.Verb {
	case Approve:
		return judgement{swap: f.approve(rq, rule, vote)}, nil
	case Reject:
		return f.reject(rq, vote), nil
	case Respond:
		return s.respond(f, rq, vote)
	case Edit:
		return s.edit(f, rq, vote, args)
	}
	return deny(DenyVerb, ""), nil
}

// bound holds the click to the stored card. A forwarded card decides nothing.
func (f *facts) bound(b Button, channel, message string) DenialKind {
	if f.card == nil {
		return DenyTampered
	}
	return b.bound(f.card.macKey, f.card.channel, f.card.messageTS, channel, message)
}

// reviewers are the people of the current rule; where it names none any more (allow), those the request was made with.
func (f *facts) reviewers(rule *rules.Rule) rules.Reviewers {
	if rule != nil && rule.Do == rules.Ask {
		return rule.Reviewers
	}
	return rules.Reviewers{Users: f.req.scope.Users, Groups: f.req.scope.Groups}
}

// ruleNow is the rule that covers the approval under the active configuration; nil when none does any more, or it denies. The
// arguments are opened only where a condition must see them again.
func (s *Service) ruleNow(f *facts) (*rules.Rule, canon.Arguments, error) {
	return s.ruleOver(f, func() (canon.Arguments, bool, error) { return s.verified(f) })
}

// ruleOver is ruleNow with a way to open the arguments.
func (s *Service) ruleOver(f *facts, open func() (canon.Arguments, bool, error)) (*rules.Rule, canon.Arguments, error) {
	if f.req.unreadable != "" {
		return f.tenant.Unreadable(), canon.Arguments{}, nil
	}
	if f.revision == f.req.configRevision {
		if rule, ok := f.tenant.Rule(f.req.rule); ok {
			return rule, canon.Arguments{}, nil
		}
		return nil, canon.Arguments{}, fmt.Errorf("%w: rule of %s", ErrCorrupt, f.req.id)
	}
	args, ok, err := open()
	if err != nil || !ok {
		return nil, args, errors.Join(err, digestFault(ok, f.req.id))
	}
	m, err := f.tenant.Match(f.input(args.Value))
	if err != nil || m.Rule.Do == rules.Deny {
		return nil, args, nil //nolint:nilerr // a policy that does not take the call is an answer, not a failure
	}
	return m.Rule, args, nil
}

func digestFault(ok bool, id ID) error {
	if ok {
		return nil
	}
	return fmt.Errorf("%w: digest of %s", ErrCorrupt, id)
}

// offers says whether the rule as it is now still offers a decision. A rule that decides by itself now leaves it to the request's.
func (f *facts) offers(rule *rules.Rule, verb Verb) bool {
	return rule.Do != rules.Ask || slices.Contains(rule.DecisionsFor(rules.Kind(f.req.toolKind)), rules.Decision(verb))
}

// quorum is the stricter of what the request was made with and what the rule says now.
func (f *facts) quorum(rule *rules.Rule) int {
	q := f.req.scope.Quorum
	if rule != nil {
		q = max(q, rule.Quorum)
	}
	return max(q, 1)
}

func (f *facts) approve(rq DecideRequest, rule *rules.Rule, vote *voteRow) *swap {
	r := f.req
	w := r.moves(Pending, "decision.vote", vote.by, rq.Surface)
	w.before, w.vote, w.count, w.config = true, vote, 1, f.revision
	w.outbox = []string{OutboxCard}
	need := f.quorum(rule)
	w.detail = map[string]any{"votes": len(f.counted()) + 1, "quorum": need, "digest": shortDigest(r.digest), "via": vote.authorised}
	w.wait, w.due = waitDecision, r.expiresAt
	if len(f.counted())+1 >= need {
		f.approved(w, rule)
		w.kind, w.decided = "decision.approved", vote.by
	}
	return w
}

// approved makes w the last vote: the execution's deadline, and who runs it next.
func (f *facts) approved(w *swap, rule *rules.Rule) {
	r := f.req
	w.to = Approved
	by := f.executeBy(rule)
	w.expires = &by
	if r.executor == string(rules.AgentExecutor) {
		w.wait, w.due, w.settle = waitAgent, by, true
		return
	}
	// The outbox row starts it; due is when the sweeper rings again if that was lost.
	w.wait, w.due = waitExecution, f.now.Add(ringAgain)
	w.outbox = append(w.outbox, OutboxExecute)
}

// executeBy = execute_within + the latest of: now, the next opening of the window, and, for the agent's own tools, the pending
// siblings' decide_by (the agent is told once, after them).
func (f *facts) executeBy(rule *rules.Rule) time.Time {
	from := f.now
	if rule != nil && rule.Window != nil && !rule.Window.Open(f.now) {
		from = rule.Window.NextOpening(f.now)
	}
	if f.req.executor == string(rules.AgentExecutor) && f.siblings != nil && f.siblings.After(from) {
		from = *f.siblings
	}
	return from.Add(f.req.executeWithin)
}

func (f *facts) reject(rq DecideRequest, vote *voteRow) judgement {
	if rq.Reason == "" {
		return deny(DenyReason, "")
	}
	w := f.req.moves(Rejected, "decision.rejected", vote.by, rq.Surface)
	w.before, w.vote, w.config, w.decided, w.message, w.settle = true, vote, f.revision, vote.by, rq.Reason, true
	w.outbox = []string{OutboxCard}
	w.detail = map[string]any{"digest": shortDigest(f.req.digest), "via": vote.authorised, "reason": rq.Reason}
	return judgement{swap: w}
}

func (s *Service) respond(f *facts, rq DecideRequest, vote *voteRow) (judgement, error) {
	r := f.req
	if r.toolKind != string(rules.Question) {
		return deny(DenyVerb, "only a question is answered"), nil
	}
	if strings.TrimSpace(rq.Answer) == "" {
		return deny(DenyReason, ""), nil
	}
	answer, err := marshal(rq.Answer)
	if err != nil {
		return judgement{}, err
	}
	w := r.moves(Responded, "decision.responded", vote.by, rq.Surface)
	if w.result, err = s.sealed(answer, seal.ResultAAD(r.tenant, r.id.String())); err != nil {
		return judgement{}, err
	}
	w.before, w.vote, w.config, w.decided, w.settle = true, vote, f.revision, vote.by, true
	w.outbox = []string{OutboxCard}
	w.detail = map[string]any{"digest": shortDigest(r.digest), "via": vote.authorised}
	return judgement{swap: w}, nil
}

// ruling tells the decision from what was just committed, without another round trip.
func (j judgement) ruling(f *facts, rq DecideRequest, done swapped) Ruling {
	v := f.view()
	j.swap.show(&v, done.version)
	v.Votes = append(v.Votes, Vote{By: string(j.swap.vote.by), At: f.now, Decision: string(rq.Verb), Reason: rq.Reason})
	out := Ruling{Applied: true, View: v}
	if j.child != nil {
		child := j.child.row.view()
		child.Now = f.now
		out.Child = &child
	}
	return out
}
