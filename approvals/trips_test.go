package approvals

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

// tripCounter counts what goes over the wire: a batch or a single query is one round trip.
type tripCounter struct {
	mu             sync.Mutex
	trips, commits int
	alone          []string // queries outside batches
}

func (c *tripCounter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trips++
	c.alone = append(c.alone, q.SQL)
	return ctx
}
func (*tripCounter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (c *tripCounter) TraceBatchStart(ctx context.Context, _ *pgx.Conn, b pgx.TraceBatchStartData) context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trips++
	for _, q := range b.Batch.QueuedQueries {
		if strings.EqualFold(strings.TrimSpace(q.SQL), "commit") {
			c.commits++
		}
	}
	return ctx
}
func (*tripCounter) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (*tripCounter) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}

// Performance target 1: at most two round trips and one commit for intake, decision and claim, one round trip for a success; seven
// and four for the whole life of a call.
func TestRoundTrips(t *testing.T) {
	t.Parallel()
	count := &tripCounter{}
	w := newWorldWith(t, Options{}, count)
	warm := w.approved("deploy_release") // connections are open, statements prepared, the configuration compiled
	w.done(warm)

	totalTrips, totalCommits := 0, 0
	step := func(name string, trips int, do func()) {
		t.Helper()
		count.mu.Lock()
		count.trips, count.commits, count.alone = 0, 0, nil
		count.mu.Unlock()
		do()
		if count.trips > trips || count.commits != 1 {
			t.Errorf("%s: %d round trips and %d commits, want at most %d and 1; outside of batches: %.80q", name, count.trips, count.commits, trips, count.alone)
		}
		totalTrips, totalCommits = totalTrips+count.trips, totalCommits+count.commits
	}
	in := w.intake(call("call_1", "deploy_release", production))
	in.Format, in.State = "opaque", []byte(`{"history":["`+strings.Repeat("x", 6<<10)+`"]}`)
	var p Pause
	step("intake", 2, func() { p = w.submit(in) })
	id := p.Approvals[0].ApprovalID
	rq := w.click(id, bob, Approve)
	step("decision", 2, func() {
		if r, err := w.s.Decide(w.ctx, rq); err != nil || !r.Applied {
			t.Errorf("%v %v", r.Denial, err)
		}
	})
	var c Claim
	step("claim", 2, func() { c = w.claim(id) })
	step("outcome", 1, func() {
		if _, err := w.s.Record(w.ctx, c.Lease, Outcome{Class: OutcomeSucceeded, Output: json.RawMessage(`{"ok":true}`)}); err != nil {
			t.Error(err)
		}
	})
	if totalTrips > 7 || totalCommits != 4 {
		t.Errorf("the whole life: %d round trips, %d commits", totalTrips, totalCommits)
	}
	// The losers and the others stay at two as well.
	again := w.propose("deploy_release", production)
	rq = w.click(again.ApprovalID, carol, Edit, with(editedProduction))
	step("edit", 2, func() {
		if r, err := w.s.Decide(w.ctx, rq); err != nil || !r.Applied {
			t.Errorf("%v %v", r.Denial, err)
		}
	})
	rq = w.click(id, carol, Approve)
	step("a late click", 2, func() {
		if r, err := w.s.Decide(w.ctx, rq); err != nil || r.Applied {
			t.Errorf("%v", err)
		}
	})
	third := w.propose("deploy_release", production)
	step("a withdrawal", 3, func() {
		if _, err := w.s.Withdraw(w.ctx, w.key, third.ApprovalID, "no"); err != nil {
			t.Error(err)
		}
	})
}
