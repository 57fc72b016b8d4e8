package approvals

import (
	"context"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

// The three races of a decision, each as a schedule that is forced and not hoped for. The compare-and-set that one writes first loses
// every one of them on this very Postgres; the product, under the same schedule, none (I3, I6, I7).

// A decider approves as a person. between is called when it has judged and written nothing final.
type decider func(w *world, id ID, user string, between func()) (applied bool, err error)

// naive is the seed's one-statement compare-and-set, with the grant and the votes read before it, and nothing locked.
func naive(w *world, id ID, user string, between func()) (applied bool, err error) {
	err = pgx.BeginFunc(w.ctx, w.db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(w.ctx, `SET LOCAL session_replication_role = replica`); err != nil { // it keeps no book, as the triggers ask
			return err
		}
		var may bool
		if err := tx.QueryRow(w.ctx, `SELECT EXISTS (SELECT 1 FROM slack_group_member WHERE tenant_id = 'acme' AND user_id = $1)`, user).Scan(&may); err != nil || !may {
			return err
		}
		if _, err := tx.Exec(w.ctx, `INSERT INTO approval_decision (approval_id, reviewer, decision_id, decision, digest, authorised, rule, config_revision, surface)
			SELECT approval_id, $2, gen_random_uuid(), 'approve', digest, '{}', rule, config_revision, 'card' FROM approval_request WHERE approval_id = $1`, id, "slack:"+user); err != nil {
			return err
		}
		var votes, need int
		if err := tx.QueryRow(w.ctx, `SELECT (SELECT count(*) FROM approval_decision WHERE approval_id = $1), CASE tool_name WHEN 'issue_refund' THEN 2 ELSE 1 END
			FROM approval_request WHERE approval_id = $1`, id).Scan(&votes, &need); err != nil {
			return err
		}
		between()
		if votes < need {
			return nil
		}
		tag, err := tx.Exec(w.ctx, `UPDATE approval_request SET status = 'approved', version = version + 1 WHERE approval_id = $1 AND status = 'pending' AND expires_at > clock_timestamp()`, id)
		applied = tag.RowsAffected() == 1
		return err
	})
	return applied, err
}

// interrupted calls between after the first batch of its connection: all is locked and read.
type interrupted struct {
	once    sync.Once
	between func()
}

func (i *interrupted) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}
func (*interrupted) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
func (*interrupted) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}
func (*interrupted) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (i *interrupted) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {
	i.once.Do(i.between)
}

// product is Decide itself.
func product(w *world, id ID, user string, between func()) (bool, error) {
	pool, err := OpenPool(w.ctx, w.dsn, PoolOptions{Name: user, Max: 1, Tracer: &interrupted{between: between}})
	if err != nil {
		return false, err
	}
	defer pool.Close()
	sealer, err := testSealer()
	if err != nil {
		return false, err
	}
	rq := w.click(id, user, Approve)
	r, err := New(Options{Clicks: pool, Intake: pool, Work: pool, Sealer: sealer, Directory: w.dir}).Decide(w.ctx, rq)
	return r.Applied, err
}

// traps run a decider through a schedule and say what was broken, or nothing.
var traps = map[string]func(*world, decider) string{
	"expiry while waiting for the lock": func(w *world, decide decider) string {
		id := w.propose("deploy_release", production).ApprovalID
		for {
			done := make(chan bool, 1)
			inTime := false
			w.must(pgx.BeginFunc(w.ctx, w.db, func(tx pgx.Tx) error {
				w.exec(`UPDATE approval_request SET decide_by = clock_timestamp() + interval '1 second', expires_at = clock_timestamp() + interval '1 second' WHERE approval_id = $1`, id)
				// Somebody holds the row and does not change it: what waits for it judged before the wait, and is not judged again.
				if _, err := tx.Exec(w.ctx, sqlLockRequest, id); err != nil {
					return err
				}
				go func() {
					applied, err := decide(w, id, carol, func() {})
					done <- applied && err == nil
				}()
				over := func() bool {
					return one[bool](w, `SELECT clock_timestamp() >= expires_at FROM approval_request WHERE approval_id = $1`, id)
				}
				w.until("the click waits for the row", func() bool {
					inTime = w.waiting() == 1 && !over()
					return inTime || over()
				})
				w.until("the deadline is over", over)
				return nil
			}))
			switch applied := <-done; {
			case applied && !inTime:
				return "approved without a wait for the row"
			case applied:
				return "approved after the deadline"
			case inTime:
				return ""
			} // it came too late to wait: nothing was tried
		}
	},
	"a revocation under a decision": func(w *world, decide decider) string {
		id := w.propose("deploy_release", production).ApprovalID
		removed := make(chan error, 1)
		first := false
		applied, err := decide(w, id, bob, func() {
			go func() {
				removed <- w.s.SaveGroup(context.WithoutCancel(w.ctx), "acme", DirectoryGroup{GroupID: "S0RELEASE", Handle: "release", Enabled: true, Members: without("S0RELEASE", bob)})
			}()
			w.until("the removal is done, or waits for the decision", func() bool {
				if len(removed) > 0 {
					first = true
				}
				return first || w.waiting() > 0
			})
		})
		w.must(err)
		w.must(<-removed)
		w.group("S0RELEASE", groups["S0RELEASE"]...)
		if applied && first {
			return "approved by somebody who had been removed"
		}
		if first {
			return "the removal did not wait for the decision"
		}
		return ""
	},
	"two last votes at once": func(w *world, decide decider) string {
		id := w.propose("issue_refund", bigRefund).ApprovalID
		var judged sync.WaitGroup
		judged.Add(1)
		var mu sync.Mutex
		n := 0
		between := func() {
			mu.Lock()
			n++
			first := n == 1
			mu.Unlock()
			if first {
				w.until("the other has judged, or waits", func() bool {
					mu.Lock()
					defer mu.Unlock()
					return n == 2 || w.waiting() > 0
				})
				judged.Done()
			}
			judged.Wait()
		}
		var voters sync.WaitGroup
		errs := make([]error, 2)
		for i, user := range []string{dave, erin} {
			voters.Go(func() { _, errs[i] = decide(w, id, user, between) })
		}
		voters.Wait()
		for _, err := range errs {
			w.must(err)
		}
		if got := one[string](w, `SELECT status FROM approval_request WHERE approval_id = $1`, id); got != string(Approved) {
			return got + " for ever, with both votes"
		}
		return ""
	},
}

func TestTraps(t *testing.T) {
	t.Parallel()
	for name, trap := range traps {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if broken := trap(newWorld(t), naive); broken == "" {
				t.Error("the naive statement got through: the schedule proves nothing")
			} else {
				t.Log("the naive statement:", broken)
			}
			w := newWorld(t)
			if broken := trap(w, product); broken != "" {
				t.Error(broken)
			}
			w.check()
		})
	}
}

// An intake holds its run alone while it judges: two at once must not both find that nothing waits (I21). Looked for, not its effect:
// unique keys stand behind it.
func TestIntakeHoldsItsRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	held := 0
	pool := w.open("intake", 1, &interrupted{between: func() {
		held = one[int](w, `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ExclusiveLock' AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`)
	}})
	sealer, err := testSealer()
	w.must(err)
	_, err = New(Options{Clicks: pool, Intake: pool, Work: pool, Sealer: sealer, Directory: w.dir}).Submit(w.ctx, w.key, w.intake(call("a", "send_mail", mail)))
	w.must(err)
	if held != 1 {
		t.Errorf("%d runs are held", held)
	}
}
