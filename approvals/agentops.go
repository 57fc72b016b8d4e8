package approvals

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdpoint/holdpoint/approvals/rules"
	"github.com/holdpoint/holdpoint/approvals/seal"
	"github.com/holdpoint/holdpoint/approvals/secret"
)

// AgentClaim is what an agent sends with a claim. What runs now is audited and, for the application version, checked.
type AgentClaim struct {
	AttemptID, AgentRevision, AppStateVersion string
}

// AgentClaimAnswer covers every effect, by whomever it is run (contract, operations).
type AgentClaimAnswer struct {
	State          string // executing, succeeded, responded
	LeaseToken     string
	Epoch          int64
	OperationKey   string
	Arguments      []byte // exactly the approved bytes
	LeaseExpiresAt time.Time
	Result         json.RawMessage
}

// ClaimForAgent revalidates and claims an operation that the agent runs, or gives the stored result of one that is done, by
// whomever: an SDK that runs a tool's body after an approval repeats nothing. A kill on either side leaves a lease; the same
// attempt_id gets the same lease back.
func (s *Service) ClaimForAgent(ctx context.Context, key Key, id ID, in AgentClaim) (AgentClaimAnswer, error) {
	for refresh := s.directory != nil; ; refresh = false {
		out, old, err := s.claimForAgent(ctx, key, id, in, refresh)
		if old == nil || !refresh {
			return out, err
		}
		s.renew(ctx, id, old)
	}
}

func notExecutable(state, detail string) *Refusal {
	r := refuse(CodeNotExecutable, "%s", detail)
	r.State = state
	return r
}

func forbidden(why Reason) *Refusal {
	r := refuse(CodeForbidden, "the approval no longer holds (%s); propose the call again if it is still wanted", why)
	r.Reason = why
	return r
}

// claimForAgent is one try. The second answer is what a refresh of the directory could lift of a hold.
func (s *Service) claimForAgent(ctx context.Context, key Key, id ID, in AgentClaim, refresh bool) (AgentClaimAnswer, *stale, error) {
	var out AgentClaimAnswer
	var refusal error
	var held *stale
	who := claimant{
		executor: rules.AgentExecutor, holder: AgentActor(key.Agent).holder(in.AgentRevision), lease: agentLease, attempt: in.AttemptID, refresh: refresh,
		check: executionCheck{appVersion: in.AppStateVersion}, actor: AgentActor(key.Agent), surface: SurfaceAPI,
	}
	claimed, done, err := s.claimStep(ctx, id, want{payload: true, key: key.ID}, func(f *facts) (step, error) {
		r := f.req
		switch {
		case r.tenant != key.Tenant || r.agent != key.Agent:
			return step{}, ErrNotFound
		case !f.callerLive:
			return step{}, revokedKey()
		case !f.callerCovers:
			return step{}, ErrNotFound
		}
		if in.AppStateVersion != "" && in.AppStateVersion != r.appStateVersion {
			return step{}, forbidden(ReasonVersionUnregistered)
		}
		st, err := s.agentStep(f, who, &out)
		if err == nil && out.State == "" && !st.claim.Go {
			refusal = st.refusal(r)
		}
		held = st.stale
		return st, err
	})
	switch {
	case err != nil:
		return AgentClaimAnswer{}, nil, err
	case refusal != nil:
		return AgentClaimAnswer{}, held, refusal
	case out.State != "":
		if out.State == string(Succeeded) {
			s.reused(ctx, id)
		}
		return out, nil, nil
	case !done:
		return AgentClaimAnswer{}, nil, notExecutable(string(Running), "another attempt was quicker; claim again to see its result")
	}
	return AgentClaimAnswer{
		State: string(Running), LeaseToken: claimed.Lease.Token.String(), Epoch: claimed.Lease.Epoch, OperationKey: claimed.OperationKey,
		Arguments: claimed.Arguments.Raw, LeaseExpiresAt: claimed.LeaseExpiresAt,
	}, nil, nil
}

// Counts that a stored result was given out again. Nothing depends on the count, so nothing waits for it or fails with it.
var sqlReused = statement(`UPDATE idempotency_ledger SET reused = reused + 1 WHERE lineage_id = (SELECT lineage_id FROM approval_request WHERE approval_id = $1) AND state = 'succeeded'`)

func (s *Service) reused(ctx context.Context, id ID) {
	s.metrics.Reused()
	if _, err := s.work.Exec(ctx, sqlReused, id); err != nil {
		s.log.DebugContext(ctx, "a reuse was not counted", LogIDs(id, "", "", ""))
	}
}

// holder names an agent's process in the ledger.
func (a Actor) holder(revision string) string {
	if revision == "" {
		return string(a)
	}
	return string(a) + "@" + revision
}

// agentStep is step for an agent's claim: what is done answers with its stored result, the same attempt gets its lease back.
func (s *Service) agentStep(f *facts, who claimant, out *AgentClaimAnswer) (step, error) {
	r, l := f.req, f.ledger
	switch {
	case r.status == Completed || r.status == Responded:
		_, args, err := s.openArguments(r.tenant, r.id, f.payload)
		if err != nil {
			return step{}, err
		}
		result, err := s.opened(f.result, seal.ResultAAD(r.tenant, r.id.String()))
		if err != nil {
			return step{}, fmt.Errorf("%w: result of %s", ErrCorrupt, r.id)
		}
		*out = AgentClaimAnswer{State: string(Succeeded), Arguments: args.Raw, Result: result, OperationKey: r.operationKey}
		if r.status == Responded {
			*out = AgentClaimAnswer{State: string(Responded), Result: result}
		}
		return step{}, nil
	case r.executor != string(rules.AgentExecutor):
		return step{claim: Claim{Why: f.stands()}}, nil
	case r.status == Executing && who.attempt != "" && l.attemptID == who.attempt && !l.leaseOver(f.now):
		args, ok, err := s.verified(f)
		if err != nil || !ok {
			return step{}, errors.Join(err, digestFault(ok, r.id))
		}
		*out = AgentClaimAnswer{
			State: string(Running), LeaseToken: l.token.String(), Epoch: l.epoch, OperationKey: r.operationKey, Arguments: args.Raw, LeaseExpiresAt: *l.leaseExpiresAt,
		}
		return step{}, nil
	}
	return s.step(f, who)
}

// stands is the state as a claim's refusal names it: the ledger's, `held`, or the status.
func (f *facts) stands() string {
	if f.req.held != "" {
		return "held"
	}
	if f.ledger != nil && f.ledger.approvalID == f.req.id {
		return string(f.ledger.state)
	}
	return string(f.req.status)
}

// refusal tells an agent why it may not run the call.
func (st step) refusal(r *requestRow) error {
	if st.swap != nil {
		switch st.swap.to {
		case Revoked, MigrationRequired, Expired:
			return forbidden(st.swap.reason)
		}
	}
	if slices.Contains([]Status{Revoked, MigrationRequired, Expired}, r.status) {
		return forbidden(Reason(r.reason))
	}
	return notExecutable(st.claim.Why, "the call cannot be run now: it is "+strings.ReplaceAll(st.claim.Why, "_", " "))
}

// Renew extends an agent's lease by a minute, for up to an hour. ErrStale: another holder has the operation; stop.
func (s *Service) Renew(ctx context.Context, key Key, id ID, token string, epoch int64) (time.Time, error) {
	v, _, err := s.own(ctx, key, id)
	if err != nil {
		return time.Time{}, err
	}
	l, err := agentLeaseOf(v, token, epoch)
	if err != nil {
		return time.Time{}, err
	}
	// The revision that proposed it has the very tool that was claimed: another one would be `tool_changed`.
	made, err := s.tenantAt(ctx, s.work, v.Tenant, v.ConfigRevision)
	if err != nil {
		return time.Time{}, err
	}
	if tool, ok := made.Tools[v.Tool]; ok {
		l.Retention = tool.KeyRetention()
	}
	return s.RenewLease(ctx, l, agentLease)
}

func agentLeaseOf(v View, token string, epoch int64) (Lease, error) {
	if v.Executor != string(rules.AgentExecutor) {
		return Lease{}, notExecutable(string(v.Status), "the worker runs this call, not the agent")
	}
	t, err := uuid.Parse(token)
	if err != nil {
		return Lease{}, ErrStale
	}
	return Lease{ID: v.ApprovalID, Tenant: v.Tenant, Token: t, Epoch: epoch}, nil
}

// Complete stores the result of a call that the agent ran, under its fence. A late one under the current token counts; one of a key that
// was revoked meanwhile does not.
func (s *Service) Complete(ctx context.Context, key Key, id ID, token string, epoch int64, result json.RawMessage) (View, error) {
	return s.report(ctx, key, id, token, epoch, Outcome{Class: OutcomeSucceeded, Output: result, Receipt: "reported by the agent"})
}

// AgentFailure is how an agent says that its attempt failed.
type AgentFailure struct {
	Retryable bool // nothing happened; may be claimed again
	Uncertain bool // nobody knows whether it happened
	Error     string
}

// Fail records a failure. Without Uncertain the agent vouches that nothing happened.
func (s *Service) Fail(ctx context.Context, key Key, id ID, token string, epoch int64, f AgentFailure) (View, error) {
	o := Outcome{Class: OutcomeRefused, Error: line(f.Error)}
	switch {
	case f.Uncertain:
		o.Class = OutcomeUnknown
	case f.Retryable:
		o.Class = OutcomeNoEffect
	}
	return s.report(ctx, key, id, token, epoch, o)
}

func (s *Service) report(ctx context.Context, key Key, id ID, token string, epoch int64, o Outcome) (View, error) {
	v, f, err := s.lookAs(ctx, s.intake, id, key.ID)
	if err != nil {
		return View{}, err
	}
	no := f.caller(key)
	l, err := agentLeaseOf(v, token, epoch)
	switch {
	case errors.Is(no, ErrNotFound):
		return View{}, no
	case err != nil:
		return View{}, errors.Join(no, err)
	}
	for try := 0; ; try++ {
		v, err := s.record(ctx, l, o, recorder{actor: AgentActor(key.Agent), surface: SurfaceAPI, agent: &key})
		switch {
		case errors.Is(err, errKeyRevoked):
			return View{}, errors.Join(revokedKey(), s.disbelieved(ctx, key, l, o))
		case errors.Is(err, ErrStale):
			return View{}, errors.Join(no, err)
		case !errors.Is(err, errAmbiguous) || try == 2:
			return v, err
		}
	}
}

// errKeyRevoked is a report under the current lease by a key that was revoked meanwhile.
var errKeyRevoked = errors.New("the key that reports was revoked")

// disbelieved keeps what a revoked key said for whoever settles the call. It is not believed in either direction: a forged success
// would end the call with any result, a forged failure would run it again. The lease runs out, and the retry class decides.
func (s *Service) disbelieved(ctx context.Context, key Key, l Lease, o Outcome) error {
	err := pgx.BeginFunc(ctx, s.work, func(tx pgx.Tx) error {
		return audit(ctx, tx, l.Tenant, l.ID, uuid.UUID{}, "execution.report_refused", AgentActor(key.Agent), SurfaceAPI,
			map[string]any{"key": key.ID, "class": o.Class, "epoch": l.Epoch, "why": "the key was revoked"})
	})
	return unavailable(err)
}

// line makes foreign words one short line without control characters or detected credentials.
func line(words string) string {
	clean := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(words, "\uFFFD"))
	return cut(secret.Mask(strings.Join(strings.Fields(clean), " ")), 500)
}

// cut shortens at a rune boundary.
func cut(s string, runes int) string {
	r := []rune(s)
	if len(r) <= runes {
		return s
	}
	return string(r[:runes]) + "…"
}
