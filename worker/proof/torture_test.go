package proof

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/worker"
)

// Torture: 8 workers, tasks delivered several times, several people deciding differently at the same moment, revocations, deadlines,
// edits, tools that break in every way, and connections to Postgres, Redis and the tools that are reset all the time. Then the checker.

const (
	tortureWorkers = 8
	tortureBounded = 150 // operations of an ordinary test run
	tortureAtOnce  = 64
)

// tortured says how many operations, and how long they may take.
func tortured(t *testing.T) (n int, within time.Duration) {
	t.Helper()
	n = tortureBounded
	if said := os.Getenv("HOLDPOINT_TORTURE"); said != "" {
		var err error
		if n, err = strconv.Atoi(said); err != nil || n < 1 {
			t.Fatalf("HOLDPOINT_TORTURE is %q, not a number of operations", said)
		}
	}
	return n, 2*time.Minute + time.Duration(n)*300*time.Millisecond
}

// Not parallel: what is left over of it is looked for, and the machine is its own.
func TestTorture(t *testing.T) {
	n, within := tortured(t)
	seed := uint64(time.Now().UnixNano())
	x := &proxies{}
	w := newWorldFor(t, within, x.before)
	w.repeats = true // a delivery whose record was lost is rightly sent again
	w.lease = shortLease
	leaks := goleak.IgnoreCurrent()
	front := w.front()
	parts := []*part{front}
	for range tortureWorkers {
		parts = append(parts, w.hands(worker.Options{
			Lease: shortLease, SweepEvery: 2 * time.Second, ExecuteCheck: 20 * time.Millisecond, SlowCheck: 50 * time.Millisecond, Concurrency: 8, SlowConcurrency: 8,
		}))
	}
	r, err := worker.OpenRedis(w.redis.URL())
	w.must(err)
	tr := &torture{world: w, deciding: front.core, bell: worker.NewDoorbell(r, nil, nil)}
	analyzed := tr.analyze()
	began := time.Now()
	x.begin(seed)
	tr.run(n, seed)
	ran := time.Since(began)
	x.mend()
	tr.leave()
	tr.drain()
	analyzed()
	t.Logf("seed %d: %d operations in %s, %s until all was quiet; %d connections cut, %d tasks delivered again, %d clicks, %d of them unanswered, %d calls left undecided; %v",
		seed, n, ran.Round(time.Second), time.Since(began).Round(time.Second), x.cuts.Load(), tr.rung.Load(), tr.clicks.Load(), tr.lost.Load(), tr.undecided, tr.counts())
	w.check()
	tr.bell.Close()
	_ = r.Close()
	for _, p := range parts {
		p.end()
	}
	x.close()
	w.eventually("no goroutine is left", func() (string, bool) {
		err := goleak.Find(leaks)
		return fmt.Sprint(err), err == nil
	})
}

type torture struct {
	*world
	deciding           *approvals.Service // a serve's
	bell               *worker.Doorbell
	rung, clicks, lost atomic.Int64
	undecided          int
}

// run starts operation after operation, some at a time.
func (x *torture) run(n int, seed uint64) {
	var all sync.WaitGroup
	slots := make(chan struct{}, tortureAtOnce)
	for i := range n {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			o := &operation{torture: x, r: rand.New(rand.NewPCG(seed, uint64(i)))}
			o.live(i)
		})
	}
	all.Wait()
}

// analyze counts the rows now and then, as autovacuum does for a database that grows from nothing; the tests' cluster has none.
func (x *torture) analyze() (end func()) {
	ctx, stop := context.WithCancel(x.ctx)
	var ends sync.WaitGroup
	ends.Go(func() {
		tick := time.NewTicker(5 * time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				_, _ = x.db.Exec(ctx, `ANALYZE`) // the next one does
			}
		}
	})
	return func() { stop(); ends.Wait() }
}

// leave revokes what nobody has decided: clicks were lost, or a quorum was not complete.
func (x *torture) leave() {
	x.t.Helper()
	rows, err := x.db.Query(x.ctx, `SELECT approval_id FROM approval_request WHERE status = 'pending'`)
	x.must(err)
	left, err := pgx.CollectRows(rows, pgx.RowTo[approvals.ID])
	x.must(err)
	for _, id := range left {
		_, err := x.core.Revoke(x.ctx, approvals.RevokeRequest{
			Tenant: "acme", By: approvals.SlackActor("U0ROOT"), Surface: approvals.SurfaceCLI, Select: approvals.Selector{ID: id}, Reason: "nobody decided",
		})
		x.must(err)
	}
	x.undecided = len(left)
}

// drain waits until every operation has ended. What is uncertain is reconciled as a person does it: once the admins were called, by
// what the tool's own journal says.
func (x *torture) drain() {
	x.t.Helper()
	x.eventually("every operation has ended", func() (string, bool) {
		x.evidence()
		open := value[int](x.world, `SELECT count(*) FROM approval_open`)
		return fmt.Sprintf("%d operations are open: %v", open, x.counts()), open == 0
	})
	x.settled()
}

// evidence reconciles what has been uncertain for a while. A tool has 2 s for its answer: after that, its journal is final.
func (x *torture) evidence() {
	x.t.Helper()
	rows, err := x.db.Query(x.ctx, `SELECT r.approval_id, r.run_id FROM approval_request r JOIN card c ON c.card_id = r.card_id JOIN idempotency_ledger l ON l.approval_id = r.approval_id
		WHERE r.status = 'uncertain' AND c.shown_version = r.version AND l.claimed_at < clock_timestamp() - interval '8 seconds'`)
	x.must(err)
	var waiting []row
	for rows.Next() {
		var r row
		x.must(rows.Scan(&r.ID, &r.Run))
		waiting = append(waiting, r)
	}
	x.must(rows.Err())
	if len(waiting) == 0 {
		return
	}
	happened := map[string]bool{}
	for _, l := range x.sunk() {
		if l.Kind == "effect" {
			happened[l.Op] = true
		}
	}
	for _, r := range waiting {
		_, err := x.core.Reconcile(x.ctx, approvals.ReconcileRequest{
			Tenant: "acme", By: approvals.SlackActor("U0ROOT"), Surface: approvals.SurfaceCLI, ID: r.ID, Happened: happened[r.op()], Evidence: "the tool's own journal",
		})
		if err != nil && x.status(r.ID) == approvals.Uncertain {
			x.t.Errorf("reconcile %s: %v", r.op(), err)
		}
	}
}

// counts are the approvals by status.
func (x *torture) counts() map[string]int {
	x.t.Helper()
	out := map[string]int{}
	rows, err := x.db.Query(x.ctx, `SELECT status, count(*) FROM approval_request GROUP BY 1`)
	x.must(err)
	for rows.Next() {
		var status string
		var n int
		x.must(rows.Scan(&status, &n))
		out[status] = n
	}
	x.must(rows.Err())
	return out
}

// again delivers tasks for an approval that no commit promised.
func (x *torture) again(id approvals.ID, n int) {
	items := make([]approvals.OutboxItem, n)
	for i := range items {
		items[i] = approvals.OutboxItem{ID: uuid.New(), Kind: approvals.OutboxExecute, Subject: uuid.UUID(id)}
	}
	x.rung.Add(int64(n))
	x.bell.Ring(items)
}
