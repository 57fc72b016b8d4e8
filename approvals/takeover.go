package approvals

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/holdpoint/holdpoint/approvals/rules"
)

// takeover goes on with an operation whose holder's lease is over: it died, or it reported an unknown outcome and gave the lease
// up. The attempt may have reached the tool, so the retry class decides, and nothing here may say "no effect" (I17):
//
//	idempotent  resend under the same key, within its retention, if everything still revalidates
//	queryable   look it up first, once SendWithin + timeout + settle have passed since the last attempt's claim
//	opaque      uncertain
//
// A kill after this commit is the same situation one epoch later.
func (s *Service) takeover(f *facts, who claimant) (step, error) {
	r := f.req
	tool, refused := f.registered(who.check)
	if refused != nil {
		if tool = f.lookable(); tool == nil {
			return f.doubt(string(refused.reason), who), nil
		}
	}
	switch tool.Retry {
	case rules.Queryable:
		if believed := f.believed(tool); f.now.Before(believed) {
			return step{claim: Claim{Why: string(Running)}, due: believed}, nil
		}
		args, ok, err := s.verified(f)
		if errors.Is(err, ErrUnavailable) {
			return step{}, err
		}
		if err != nil || !ok {
			return f.doubt(string(ReasonDigestMismatch), who), nil //nolint:nilerr // nothing may be sent or asked with unproven bytes
		}
		return f.run(who, nil, args, true), nil
	case rules.Idempotent:
		if why := f.spent(tool); why != "" {
			return f.doubt(why, who), nil
		}
	default:
		return f.doubt("the tool cannot be asked and must not be sent again", who), nil
	}
	who.check.takeover = true
	v, rule, args, err := s.revalidate(f, who.check)
	switch {
	case err != nil:
		return step{}, err
	case v.run:
		return f.run(who, rule, args, false), nil
	case v.end != "":
		return f.doubt(string(v.reason), who), nil
	}
	out := step{claim: Claim{Why: "held"}, stale: f.stale(v)}
	switch due := earlier(v.hold, r.expiresAt); {
	case out.stale != nil && who.refresh:
	case Reason(r.held) == v.reason:
		out.due = due
	default:
		out.swap = r.moves(Executing, "execution.held", who.actor, who.surface)
		out.swap.held, out.swap.wait, out.swap.due, out.swap.outbox = v.reason, waitLease, due, []string{OutboxCard}
		out.swap.detail = map[string]any{"reason": v.reason}
	}
	return out, nil
}

// SendWithin is how long after its claim a worker's request may begin to leave; what is later is never sent. It bounds when an attempt
// that stalled (a slow name, a stopped process) can still have its effect: all of it leaves within SendWithin + timeout, or not at all.
const SendWithin = 5 * time.Second

// spent says why an idempotent operation may not be sent again; empty when it may (I19).
func (f *facts) spent(tool *rules.Tool) string {
	r, l := f.req, f.ledger
	timeout := agentLease
	if tool.HTTP != nil {
		timeout = SendWithin + tool.HTTP.Timeout
	}
	switch {
	case r.revokedAt != nil:
		return string(r.revokedFor())
	case !f.now.Before(r.expiresAt):
		return string(ReasonExecuteExpired)
	case l.attempts >= maxAttempts:
		return string(ReasonRetriesSpent)
	case l.firstSentAt != nil && !f.now.Add(timeout).Before(l.firstSentAt.Add(tool.KeyRetention())):
		return "the tool may have forgotten the operation key"
	}
	return ""
}

// doubt ends automatic retries: nobody knows whether it happened (I18).
func (f *facts) doubt(why string, who claimant) step {
	r, l := f.req, f.ledger
	w := r.moves(Uncertain, "execution.uncertain", who.actor, who.surface)
	w.ledger = &ledgerSet{token: l.token, epoch: l.epoch, from: []LedgerState{Running}, to: Unknown, maybeEffect: true, errorText: &why}
	w.wait, w.due, w.outbox = waitEvidence, f.nextLook(), []string{OutboxCard}
	w.detail = map[string]any{"why": why, "attempt": l.attempts, "epoch": l.epoch}
	return step{swap: w, claim: Claim{Why: string(Uncertain)}}
}

const (
	firstLookup = time.Minute
	maxLookup   = time.Hour
	noLookup    = 24 * time.Hour // what only a person ends is looked at once a day
)

// nextLook is when an uncertain operation is asked about: later the older it is, and hardly ever where nobody can be asked.
func (f *facts) nextLook() time.Time {
	tool := f.lookable()
	if tool == nil {
		return f.now.Add(noLookup)
	}
	at := f.now.Add(min(max(firstLookup, f.now.Sub(f.ledger.claimedAt)/2), maxLookup))
	if believed := f.believed(tool); at.Before(believed) {
		return believed
	}
	return at
}

// lookable is the tool if it can be asked whether this happened. To ask takes no authority, as nothing is sent again: it goes on when
// the key was revoked or the agent lost the tool, and only another revision of the tool ends it. Else nil.
func (f *facts) lookable() *rules.Tool {
	tool, ok := f.tenant.Tools[f.req.tool]
	if !ok || tool.Revision() != f.req.toolRevision || tool.Retry != rules.Queryable || tool.HTTP == nil {
		return nil
	}
	return tool
}

// believed is when a lookup's "not found" means that it did not happen: SendWithin + timeout + settle after the last attempt's claim.
func (f *facts) believed(tool *rules.Tool) time.Time {
	return f.ledger.claimedAt.Add(SendWithin + tool.HTTP.Timeout + tool.HTTP.Settle)
}

// lookAgain asks a queryable tool about an uncertain operation. A lookup has no effect and needs no lease: it reports under the
// last attempt's token, which stays valid for a late answer of that attempt.
func (s *Service) lookAgain(f *facts, who claimant) (step, error) {
	r, l := f.req, f.ledger
	out := step{claim: Claim{Why: string(Uncertain)}, due: f.now.Add(noLookup)}
	tool := f.lookable()
	if tool == nil {
		return out, nil
	}
	if believed := f.believed(tool); f.now.Before(believed) {
		out.due = believed
		return out, nil
	}
	args, ok, err := s.verified(f)
	if err != nil || !ok {
		return out, nil //nolint:nilerr // a person must look: the row can't be proven
	}
	out.due = f.nextLook()
	out.claim = Claim{
		LookupFirst: true, Lease: Lease{ID: r.id, Tenant: r.tenant, Token: l.token, Epoch: l.epoch}, LeaseExpiresAt: out.due, Tenant: f.tenant, Tool: tool,
		OperationKey: r.operationKey, RunID: r.runID, ToolCallID: r.toolCallID, Arguments: args, TargetVersion: r.targetVersion, Attempt: l.attempts, Deadline: r.expiresAt,
	}
	return out, nil
}

// backoff before the next attempt: 5 s, doubled each time up to 5 min, ± 20 %.
func backoff(attempts int) time.Duration {
	d := 5 * time.Second << min(max(attempts-1, 0), 6)
	d = min(d, 5*time.Minute)
	return d + time.Duration((rand.Float64()-0.5)*0.4*float64(d)) //nolint:gosec // jitter
}
