package proof

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/approvals/seal"
)

// The guards that stand behind other guards, each made to stand alone: between the two batches of a transition, when everything is
// locked and judged and nothing is written.

// between runs something once after the first batch of a connection, in its transaction.
type between struct {
	once sync.Once
	do   func(context.Context, *pgx.Conn)
}

func (b *between) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}
func (b *between) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
func (b *between) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}
func (b *between) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

func (b *between) TraceBatchEnd(ctx context.Context, c *pgx.Conn, _ pgx.TraceBatchEndData) {
	b.once.Do(func() { b.do(context.WithoutCancel(ctx), c) })
}

// interrupted is a core whose first transition is interrupted between its batches.
func (w *world) interrupted(do func(context.Context, *pgx.Conn)) *approvals.Service {
	w.t.Helper()
	pool, err := approvals.OpenPool(w.ctx, w.dsn, approvals.PoolOptions{Name: "interrupted", Max: 1, Tracer: &between{do: do}})
	w.must(err)
	w.t.Cleanup(pool.Close)
	sealer, err := seal.Open(w.keyset)
	w.must(err)
	return approvals.New(approvals.Options{Clicks: pool, Intake: pool, Work: pool, Sealer: sealer})
}

// decision is Bob's approval of a call, as the handler gives it to the core.
func (w *world) decision(c *call) approvals.DecideRequest {
	w.t.Helper()
	o := &operation{torture: &torture{world: w}}
	button, err := o.button(c.id)
	w.must(err)
	return approvals.DecideRequest{
		DecisionID: approvals.NewDecisionID(), Button: button, Channel: room, MessageTS: w.place(c.id), Verb: approvals.Approve,
		By: approvals.Reviewer{UserID: "U0BOB", TeamID: "T0ACME"}, Surface: approvals.SurfaceCard,
	}
}

// waiting is a call that waits for its decision.
func (w *world) waiting(op, tool string) *call {
	w.t.Helper()
	c := &call{op: op, tool: tool, plan: "ok"}
	w.propose(c)
	w.posted(c.id)
	return c
}

// held says whether somebody else holds a lock that keeps a writer out.
func (w *world) held(sql string, args ...any) bool {
	w.t.Helper()
	tx, err := w.db.Begin(w.ctx)
	w.must(err)
	defer func() { _ = tx.Rollback(w.ctx) }()
	var one int
	err = tx.QueryRow(w.ctx, sql+" FOR UPDATE NOWAIT", args...).Scan(&one)
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "55P03" {
		return true
	}
	w.must(err)
	return false
}

// What a transition judged from cannot change before it is written: the row, the operation, the configuration, the people and their
// groups are locked (I3, I6). Each lock is looked for, not its effect, so that none can hide behind another.
func TestGuardsLocks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.front()
	c := w.waiting("locked", "pay")
	look := func(what, sql string, args ...any) {
		if !w.held(sql, args...) {
			t.Errorf("%s is not locked", what)
		}
	}
	common := func() {
		look("the request", `SELECT 1 FROM approval_request WHERE approval_id = $1`, c.id)
		look("the active configuration", `SELECT 1 FROM config_active WHERE tenant_id = 'acme'`)
		look("the requester", `SELECT 1 FROM slack_user WHERE user_id = 'U0REQ'`)
		look("the requester's group", `SELECT 1 FROM slack_group WHERE group_id = 'S0ENG'`)
		look("the reviewer", `SELECT 1 FROM slack_user WHERE user_id = 'U0BOB'`)
		look("the reviewer's group", `SELECT 1 FROM slack_group WHERE group_id = 'S0RELEASE'`)
	}
	ran := 0
	core := w.interrupted(func(context.Context, *pgx.Conn) { common(); ran++ })
	if r, err := core.Decide(w.ctx, w.decision(c)); err != nil || !r.Applied {
		t.Fatalf("decide: %+v %v", r.Denial, err)
	}
	core = w.interrupted(func(context.Context, *pgx.Conn) { common(); ran++ })
	if claim, err := core.Claim(w.ctx, c.id, approvals.ClaimOptions{Holder: "a", Lease: time.Minute}); err != nil || !claim.Go {
		t.Fatalf("claim: %+v %v", claim.Why, err)
	}
	w.behind(`UPDATE idempotency_ledger SET lease_expires_at = clock_timestamp() - interval '1 second'`)
	core = w.interrupted(func(context.Context, *pgx.Conn) {
		common()
		look("the operation", `SELECT 1 FROM idempotency_ledger WHERE approval_id = $1`, c.id)
		ran++
	})
	if claim, err := core.Claim(w.ctx, c.id, approvals.ClaimOptions{Holder: "b", Lease: time.Minute}); err != nil || !claim.Go || claim.Lease.Epoch != 2 {
		t.Fatalf("takeover: %+v %v", claim.Why, err)
	}
	if ran != 3 {
		t.Fatalf("looked %d times", ran)
	}
}

// behind changes rows without the triggers: time that passes, locks that failed.
func (w *world) behind(sql string, args ...any) {
	w.t.Helper()
	w.must(pgx.BeginFunc(w.ctx, w.db, func(tx pgx.Tx) error { return unguarded(w.ctx, tx.Conn(), sql, args...) }))
}

func unguarded(ctx context.Context, c *pgx.Conn, sql string, args ...any) error {
	if _, err := c.Exec(ctx, `SET LOCAL session_replication_role = replica`); err != nil {
		return err
	}
	_, err := c.Exec(ctx, sql, args...)
	return errors.Join(err, second(c.Exec(ctx, `SET LOCAL session_replication_role = origin`)))
}

func second[T any](_ T, err error) error { return err }

// The swap's own predicates (I7, I9): the row is changed between judgement and swap, as if its lock had failed. Nothing is written.
func TestGuardsSwap(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.front()
	for name, change := range map[string]string{
		// To a status from which the move would be allowed, too: the trigger does not help.
		"status":  `UPDATE approval_request SET status = 'approved' WHERE approval_id = $1`,
		"version": `UPDATE approval_request SET version = version + 1 WHERE approval_id = $1`,
		"expiry":  `UPDATE approval_request SET expires_at = clock_timestamp() - interval '1 second' WHERE approval_id = $1`,
	} {
		c := w.waiting("swap-"+name, "pay")
		core := w.interrupted(func(ctx context.Context, conn *pgx.Conn) { w.must(unguarded(ctx, conn, change, c.id)) })
		r, err := core.Decide(w.ctx, w.decision(c))
		if err == nil && r.Applied {
			t.Errorf("%s: the decision was applied", name)
		}
		if n := value[int](w, `SELECT count(*) FROM approval_decision WHERE approval_id = $1`, c.id); n != 0 {
			t.Errorf("%s: a vote was written", name)
		}
		if n := value[int](w, `SELECT count(*) FROM audit_event WHERE approval_id = $1 AND to_status = 'approved'`, c.id); n != 0 {
			t.Errorf("%s: an approval was written", name)
		}
	}
}

// The judgement's own look at the deadline (I7): the row had expired when it was locked, and only afterwards has time again.
func TestGuardsJudgement(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.front()
	c := w.waiting("judged", "pay")
	rq := w.decision(c)
	w.behind(`UPDATE approval_request SET expires_at = clock_timestamp() - interval '1 second' WHERE approval_id = $1`, c.id)
	core := w.interrupted(func(ctx context.Context, conn *pgx.Conn) {
		w.must(unguarded(ctx, conn, `UPDATE approval_request SET expires_at = clock_timestamp() + interval '1 hour' WHERE approval_id = $1`, c.id))
	})
	r, err := core.Decide(w.ctx, rq)
	if err != nil || r.Applied || r.Denial == nil || r.Denial.Kind != approvals.DenyExpired {
		t.Errorf("decided: %+v %v", r.Denial, err)
	}
	if n := value[int](w, `SELECT count(*) FROM approval_decision`); n != 0 {
		t.Error("a vote was written")
	}
}

// The ledger's fence in the swap (I16): token and epoch, each changed by itself under a holder that is about to record.
func TestGuardsFence(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.front()
	for name, change := range map[string]string{
		"token": `UPDATE idempotency_ledger SET token = gen_random_uuid() WHERE approval_id = $1`,
		"epoch": `UPDATE idempotency_ledger SET epoch = epoch + 1 WHERE approval_id = $1`,
		"state": `UPDATE idempotency_ledger SET state = 'uncertain' WHERE approval_id = $1`,
	} {
		c := w.waiting("fence-"+name, "pay")
		if r, err := w.core.Decide(w.ctx, w.decision(c)); err != nil || !r.Applied {
			t.Fatalf("decide: %+v %v", r.Denial, err)
		}
		claim, err := w.core.Claim(w.ctx, c.id, approvals.ClaimOptions{Holder: "a", Lease: time.Minute})
		if err != nil || !claim.Go {
			t.Fatalf("claim: %+v %v", claim.Why, err)
		}
		core := w.interrupted(func(ctx context.Context, conn *pgx.Conn) { w.must(unguarded(ctx, conn, change, c.id)) })
		_, err = core.Record(w.ctx, claim.Lease, approvals.Outcome{Class: approvals.OutcomeRefused, Error: "no"})
		if !errors.Is(err, approvals.ErrStale) {
			t.Errorf("%s: recorded with %v", name, err)
		}
		if got := w.status(c.id); got != approvals.Executing {
			t.Errorf("%s: it is %s", name, got)
		}
	}
}

// A reservation follows the epoch that its claim saw (I16): another one in between makes it miss, and nothing is sent.
func TestGuardsReservation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.front()
	c := w.waiting("reserved", "pay")
	if r, err := w.core.Decide(w.ctx, w.decision(c)); err != nil || !r.Applied {
		t.Fatalf("decide: %+v %v", r.Denial, err)
	}
	if claim, err := w.core.Claim(w.ctx, c.id, approvals.ClaimOptions{Holder: "a", Lease: time.Minute}); err != nil || !claim.Go {
		t.Fatalf("claim: %+v %v", claim.Why, err)
	}
	w.behind(`UPDATE idempotency_ledger SET lease_expires_at = clock_timestamp() - interval '1 second'`)
	core := w.interrupted(func(ctx context.Context, conn *pgx.Conn) {
		w.must(unguarded(ctx, conn, `UPDATE idempotency_ledger SET epoch = epoch - 1 WHERE approval_id = $1`, c.id))
	})
	claim, err := core.Claim(w.ctx, c.id, approvals.ClaimOptions{Holder: "b", Lease: time.Minute})
	if err == nil && claim.Go {
		t.Errorf("claimed over another's epoch: %+v", claim.Lease)
	}
	if holder := value[string](w, `SELECT holder FROM idempotency_ledger`); holder != "a" {
		t.Errorf("the operation is %s's", holder)
	}
}

// A holder whose operation was taken over cannot renew its lease (I16), nor can one with another epoch.
func TestGuardsRenewal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.front()
	c := w.waiting("renewed", "pay")
	if r, err := w.core.Decide(w.ctx, w.decision(c)); err != nil || !r.Applied {
		t.Fatalf("decide: %+v %v", r.Denial, err)
	}
	old, err := w.core.Claim(w.ctx, c.id, approvals.ClaimOptions{Holder: "a", Lease: time.Minute})
	w.must(err)
	if _, err := w.core.RenewLease(w.ctx, old.Lease, time.Minute); err != nil {
		t.Fatalf("the holder can't renew: %v", err)
	}
	w.behind(`UPDATE idempotency_ledger SET lease_expires_at = clock_timestamp() - interval '1 second'`)
	now, err := w.core.Claim(w.ctx, c.id, approvals.ClaimOptions{Holder: "b", Lease: time.Minute})
	if err != nil || !now.Go {
		t.Fatalf("takeover: %+v %v", now.Why, err)
	}
	other := now.Lease
	other.Epoch++
	until := value[time.Time](w, `SELECT lease_expires_at FROM idempotency_ledger`)
	for what, lease := range map[string]approvals.Lease{"the one before": old.Lease, "another epoch": other} {
		if _, err := w.core.RenewLease(w.ctx, lease, time.Hour); !errors.Is(err, approvals.ErrStale) {
			t.Errorf("%s renewed: %v", what, err)
		}
	}
	if !until.Equal(value[time.Time](w, `SELECT lease_expires_at FROM idempotency_ledger`)) {
		t.Error("the lease moved")
	}
}

// The clock is read after the locks (I7): whoever waited for the row judges by the time at which it got it.
func TestGuardsClock(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.front()
	c := w.waiting("clock", "pay")
	rq := w.decision(c)
	rq.By.UserID = "U0MALLORY" // is refused, with the time of the refusal
	tx, err := w.db.Begin(w.ctx)
	w.must(err)
	_, err = tx.Exec(w.ctx, `SELECT 1 FROM approval_request WHERE approval_id = $1 FOR UPDATE`, c.id)
	w.must(err)
	type answer struct {
		approvals.Ruling
		err error
	}
	answered := make(chan answer, 1)
	go func() {
		r, err := w.core.Decide(w.ctx, rq)
		answered <- answer{r, err}
	}()
	w.eventually("the decision waits for the row", func() (string, bool) {
		n := value[int](w, `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`)
		return "", n > 0
	})
	free := value[time.Time](w, `SELECT clock_timestamp()`)
	w.must(tx.Rollback(w.ctx))
	a := <-answered
	if a.err != nil || a.Denial == nil || a.Denial.At.Before(free) {
		t.Errorf("refused %+v at a time before it had the row (%s), %v", a.Denial, free, a.err)
	}
}
