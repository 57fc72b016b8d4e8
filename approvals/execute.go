package approvals

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdpoint/holdpoint/approvals/canon"
	"github.com/holdpoint/holdpoint/approvals/rules"
)

// Lease is the right to run one operation: whoever holds the current token and epoch may dispatch and record (I16).
type Lease struct {
	ID     ID
	Tenant string
	Token  uuid.UUID
	Epoch  int64
	// Retention is how long after the first attempt its receiver knows the operation key; no renewal goes beyond it (I19). 0: no key.
	Retention time.Duration
}

// Claim is a worker's answer from the ledger.
type Claim struct {
	Go          bool   // claimed: run the tool now
	LookupFirst bool   // claimed for a lookup only: ask whether it happened, then report that
	Why         string // neither: what the row says (a status, a ledger state, `held`)

	Lease          Lease
	LeaseExpiresAt time.Time
	Taken          time.Time // on this process's clock: no later than the lease's beginning on the database's
	Tenant         *rules.Tenant
	Tool           *rules.Tool
	OperationKey   string
	RunID          string
	ToolCallID     string
	Arguments      canon.Arguments
	TargetVersion  string
	Attempt        int
	FirstAttempt   bool      // nothing was ever sent under the operation key
	Deadline       time.Time // execute_by
	Waited         time.Duration
}

// ClaimOptions are the worker's.
type ClaimOptions struct {
	Holder string        // names the process in the ledger, for operators
	Lease  time.Duration // must exceed the tool's timeout; 0: the tool's timeout and a margin
}

// claimant is who claims: a worker, or the agent through its key.
type claimant struct {
	executor rules.Executor
	holder   string
	lease    time.Duration
	attempt  string // the agent's attempt_id
	check    executionCheck
	refresh  bool // a mirror that is too old is refreshed before a hold is written
	actor    Actor
	surface  Surface
}

const (
	leaseMargin = 15 * time.Second // beyond a tool's timeout
	agentLease  = 60 * time.Second
	maxAttempts = 5
)

// Claim revalidates an approval and takes its operation for a worker, in one transaction (I3): the intent (attempt, token, epoch)
// is durable before the first byte leaves (I15).
//
// A kill before the commit leaves the approval as it was: another worker takes it. A kill after it leaves `executing` with a lease:
// when that is over, the tool's retry class decides (keyed resend, lookup, or uncertain). A lost answer to the commit leaves a
// lease that nobody uses: the same path, one lease later; nothing was sent.
func (s *Service) Claim(ctx context.Context, id ID, o ClaimOptions) (Claim, error) {
	c := claimant{
		executor: rules.WorkerExecutor, holder: o.Holder, lease: o.Lease, check: executionCheck{checkState: true},
		actor: System, surface: SurfaceSystem,
	}
	for c.refresh = s.directory != nil; ; c.refresh = false {
		out, old, err := s.claim(ctx, id, c)
		if err != nil || old == nil || !c.refresh {
			return out, err
		}
		s.renew(ctx, id, old)
	}
}

// renew refreshes what a claim found too old (60 s), once. When that fails, the claim's second look holds the approval (I4).
func (s *Service) renew(ctx context.Context, id ID, old *stale) {
	if err := s.directory.Fresh(ctx, old.tenant, old.groups, old.users, claimAge/2); err != nil {
		s.log.WarnContext(ctx, "the directory could not be refreshed; the approval is held", LogIDs(id, "", "", ""), "error", err)
	}
}

// stale is a hold that a refresh of the directory may lift.
type stale struct {
	tenant        string
	groups, users []string
}

func (s *Service) claim(ctx context.Context, id ID, who claimant) (Claim, *stale, error) {
	var old *stale
	c, _, err := s.claimStep(ctx, id, want{payload: true, blob: who.check.checkState}, func(f *facts) (step, error) {
		st, err := s.step(f, who)
		old = st.stale
		return st, err
	})
	return c, old, err
}

// claimStep runs one step of a claimant in one transaction. done says that the step's swap was committed.
func (s *Service) claimStep(ctx context.Context, id ID, w want, decide func(*facts) (step, error)) (claim Claim, done bool, err error) {
	c, err := s.work.Acquire(ctx)
	if err != nil {
		return Claim{}, false, unavailable(err)
	}
	defer c.Release()
	f, err := s.begin(ctx, c.Conn(), id, w)
	if err != nil {
		return Claim{}, false, err
	}
	st, err := decide(f)
	if err != nil || st.swap == nil && st.due.IsZero() {
		_, _ = c.Exec(context.WithoutCancel(ctx), "ROLLBACK") // a failure closes the connection, which rolls back too
		return st.claim, false, err
	}
	b := &pgx.Batch{}
	if st.swap == nil {
		b.Queue(sqlDefer, id, st.due)
		if err := finish(ctx, c.Conn(), b); err != nil {
			return Claim{}, false, unavailableUnlessAmbiguous(err)
		}
		return st.claim, false, nil
	}
	if st.reserve != nil {
		st.reserve.queue(b)
	}
	var out swapped
	if err := st.swap.queue(b, &out); err != nil {
		return Claim{}, false, err
	}
	if st.reserve != nil {
		b.Queue(sqlMustClaim, id, f.req.version+1)
	}
	st.claim.Taken = time.Now()
	err = finish(ctx, c.Conn(), b)
	if pg := (*pgconn.PgError)(nil); errors.As(err, &pg) && pg.Code == "22012" {
		return Claim{Why: "moved"}, false, nil // rolled back, the reservation with it
	}
	if err != nil {
		// Ambiguous or not, nothing was sent: what may have committed is a lease without a holder, which runs out.
		return Claim{}, false, unsettled(err)
	}
	if !out.hit {
		return Claim{Why: "moved"}, false, nil
	}
	s.wake(st.swap, out)
	s.account(ctx, st.swap, f.now)
	return st.claim, true, nil
}

// Fails the transaction when the swap did not claim (its deadline passed under our own lock), so that no reservation stays behind.
var sqlMustClaim = statement(`SELECT 1 / count(*)::integer FROM approval_request WHERE approval_id = $1 AND status = 'executing' AND version = $2`)

// step is one move of a claim: what to write, and what to tell the claimant.
type step struct {
	claim   Claim
	reserve *reservation
	swap    *swap
	due     time.Time // without a swap: nothing changes but when somebody looks again
	stale   *stale
}

// Moves the time of the next look, for a row whose transaction holds the request's lock or that is due.
var sqlDefer = statement(`UPDATE approval_open SET due_at = $2 WHERE approval_id = $1`)

// step decides what a claimant may do with a locked approval. It is level-triggered: a repeated task finds what there is to do now.
func (s *Service) step(f *facts, who claimant) (step, error) {
	r := f.req
	switch r.status {
	case Approved:
		if r.executor != string(who.executor) {
			return step{claim: Claim{Why: string(r.status)}}, nil
		}
		if f.ledger != nil && f.ledger.state == FailedRetryable && f.ledger.nextTryAt != nil && f.now.Before(*f.ledger.nextTryAt) {
			return step{claim: Claim{Why: string(FailedRetryable)}}, nil
		}
		return s.start(f, who)
	case Executing:
		if r.executor != string(who.executor) || !f.ledger.leaseOver(f.now) {
			return step{claim: Claim{Why: string(Running)}}, nil
		}
		return s.takeover(f, who)
	case Uncertain:
		if who.executor == rules.AgentExecutor {
			return step{claim: Claim{Why: string(Unknown)}}, nil
		}
		return s.lookAgain(f, who)
	case Completed:
		return step{claim: Claim{Why: string(Succeeded)}}, nil
	}
	return step{claim: Claim{Why: string(r.status)}}, nil
}

// start is the first attempt, or one after a proven failure without effect.
func (s *Service) start(f *facts, who claimant) (step, error) {
	v, rule, args, err := s.revalidate(f, who.check)
	if err != nil {
		return step{}, err
	}
	r := f.req
	if v.run {
		return f.run(who, rule, args, false), nil
	}
	if v.end != "" {
		w := r.moves(v.end, "approval."+string(v.end), System, SurfaceSystem)
		w.reason, w.outbox, w.settle = v.reason, []string{OutboxCard}, true
		w.ledger = f.giveUp(v.reason)
		if v.end == Revoked {
			w.revoked = System
		}
		return step{swap: w, claim: Claim{Why: string(v.end)}}, nil
	}
	return f.holding(v, who), nil
}

// giveUp ends an operation that was proven without effect when its approval ends; nil before the first claim.
func (f *facts) giveUp(why Reason) *ledgerSet {
	if f.ledger == nil || f.ledger.state != FailedRetryable {
		return nil
	}
	e := string(why)
	return &ledgerSet{token: f.ledger.token, epoch: f.ledger.epoch, from: []LedgerState{FailedRetryable}, to: FailedTerminal, errorText: &e}
}

// holding keeps the approval approved, shown as held, until execute_by. A hold that is already shown only moves the next look: a
// version and an audit row every few seconds would repaint the card for nothing.
func (f *facts) holding(v verdict, who claimant) step {
	r := f.req
	out := step{claim: Claim{Why: "held"}, stale: f.stale(v)}
	due, what := earlier(v.hold, r.expiresAt), waitHeld
	if r.executor == string(rules.AgentExecutor) {
		due, what = r.expiresAt, waitAgent
	}
	switch {
	case out.stale != nil && who.refresh:
	case Reason(r.held) == v.reason:
		out.due = due
	default:
		w := r.moves(Approved, "execution.held", who.actor, who.surface)
		w.held, w.detail = v.reason, map[string]any{"reason": v.reason}
		w.wait, w.due, w.outbox = what, due, []string{OutboxCard}
		out.swap = w
	}
	return out
}

// stale is what a refresh of the directory could lift of a hold; nil when nothing.
func (f *facts) stale(v verdict) *stale {
	if v.refresh == nil {
		return nil
	}
	return &stale{tenant: f.req.tenant, groups: v.refresh.groups, users: v.refresh.users}
}

// run is the claim itself: reserved under a new token and epoch, then executing, in one transaction.
func (f *facts) run(who claimant, rule *rules.Rule, args canon.Arguments, lookup bool) step {
	r, tool := f.req, f.tenant.Tools[f.req.tool]
	lease := who.lease
	if lease == 0 {
		lease = leaseMargin
		if tool.HTTP != nil {
			lease += tool.HTTP.Timeout
		}
	}
	until := f.known(tool, f.now.Add(lease))
	res := &reservation{lineage: r.lineageID, approval: r.id, key: r.operationKey, token: uuid.New(), epoch: 1, holder: who.holder, attempt: who.attempt, lease: until, attempts: 1, lookup: lookup}
	w := r.moves(Executing, "execution.claimed", who.actor, who.surface)
	w.before = !lookup // not at or after execute_by, however long the statement took; a lookup has no effect
	set := &ledgerSet{token: res.token, from: []LedgerState{Reserved}, to: Running, lease: &until}
	if l := f.ledger; l != nil {
		res.epoch, res.attempts, set.maybeEffect = l.epoch+1, l.attempts+1, l.maybeEffect || l.state == Running
		if lookup {
			res.attempts = l.attempts
		}
	}
	set.epoch = res.epoch
	w.ledger, w.wait, w.due = set, waitLease, until
	w.outbox = []string{OutboxCard}
	w.detail = map[string]any{"attempt": res.attempts, "epoch": res.epoch, "holder": who.holder, "lookup": lookup, "operation_key": r.operationKey}
	return step{reserve: res, swap: w, claim: Claim{
		Go: !lookup, LookupFirst: lookup, Lease: Lease{ID: r.id, Tenant: r.tenant, Token: res.token, Epoch: res.epoch, Retention: tool.KeyRetention()}, LeaseExpiresAt: until, Tenant: f.tenant, Tool: tool,
		OperationKey: r.operationKey, RunID: r.runID, ToolCallID: r.toolCallID, Arguments: args, TargetVersion: r.targetVersion, Attempt: res.attempts, FirstAttempt: f.ledger == nil,
		Deadline: r.expiresAt, Waited: f.waited(),
	}}
}

// known cuts a lease to the time for which the receiver knows the operation's key (I19).
func (f *facts) known(tool *rules.Tool, until time.Time) time.Time {
	if tool.KeyRetention() == 0 {
		return until
	}
	first := f.now
	if f.ledger != nil && f.ledger.firstSentAt != nil {
		first = *f.ledger.firstSentAt
	}
	return earlier(until, first.Add(tool.KeyRetention()))
}

// waited is how long the decision has been taken.
func (f *facts) waited() time.Duration {
	if f.req.decidedAt == nil {
		return 0
	}
	return f.now.Sub(*f.req.decidedAt)
}

// reservation is the ledger's ∅ → reserved, or a takeover's reserved with epoch + 1. The swap behind it makes it `executing` under
// the same token, so a durable `reserved` never outlives the transaction.
type reservation struct {
	lineage, approval ID
	key               string
	token             uuid.UUID
	epoch             int64
	holder, attempt   string
	lease             time.Time
	attempts          int
	lookup            bool // nothing is sent: claimed_at keeps the time of the last attempt that may have been
}

// Locks: the ledger row (held already when it exists). Writes: token, epoch, lease. The WHERE keeps the epoch growing by one.
var sqlReserve = statement(`INSERT INTO idempotency_ledger AS l (lineage_id, approval_id, operation_key, state, epoch, token, holder, attempt_id, attempts, lease_expires_at, claimed_at)
	VALUES ($1, $2, $3, 'reserved', $4, $5, $6, $7, $8, $9, clock_timestamp())
	ON CONFLICT (lineage_id) DO UPDATE SET approval_id = excluded.approval_id, operation_key = excluded.operation_key, state = 'reserved', epoch = excluded.epoch,
		token = excluded.token, holder = excluded.holder, attempt_id = excluded.attempt_id, attempts = excluded.attempts, lease_expires_at = excluded.lease_expires_at,
		claimed_at = CASE WHEN $10 THEN l.claimed_at ELSE excluded.claimed_at END, next_try_at = NULL
	WHERE l.epoch = excluded.epoch - 1 AND l.state IN ('reserved', 'executing', 'failed_retryable')`)

func (v *reservation) queue(b *pgx.Batch) {
	b.Queue(sqlReserve, v.lineage, v.approval, v.key, v.epoch, v.token, v.holder, v.attempt, v.attempts, v.lease, v.lookup)
}
