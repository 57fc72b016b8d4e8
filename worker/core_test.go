package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/approvals/canon"
	"github.com/holdpoint/holdpoint/approvals/rules"
	"github.com/holdpoint/holdpoint/worker/tools"
)

// core is a ledger and an outbox in memory, with the rules that this package relies on:
// tokens and epochs that fence, leases that run out, rows that wait until they are
// dispatched.
type core struct {
	mu       sync.Mutex
	changed  chan struct{} // closed and replaced at every change
	outbox   []approvals.OutboxItem
	locked   map[uuid.UUID]bool
	ops      map[approvals.ID]*op
	delivery map[uuid.UUID]approvals.Delivery
	results  []approvals.DeliveryResult
	sweeps   int
	// Failures to inject; nil: none.
	claimErr  func(n int) error
	recordErr func(n int) error
	renewErr  func(n int) error
	relayErr  error

	claims, records, renewals int
}

// op is one approved operation.
type op struct {
	done     bool
	lookup   bool // a claim is for a lookup
	token    uuid.UUID
	epoch    int64
	leaseEnd time.Time
	outcome  approvals.Outcome
}

func newCore() *core {
	return &core{changed: make(chan struct{}), locked: map[uuid.UUID]bool{}, ops: map[approvals.ID]*op{}, delivery: map[uuid.UUID]approvals.Delivery{}}
}

// touch tells those who wait that something changed. Callers hold mu.
func (c *core) touch() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// eventually waits until a condition on the locked core holds.
func (c *core) eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	late := time.NewTimer(20 * time.Second)
	defer late.Stop()
	for {
		c.mu.Lock()
		ok, changed := holds(), c.changed
		c.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-late.C:
			t.Fatalf("never: %s", what)
		}
	}
}

// approve makes an operation that is due and writes its outbox row, as a decision's commit does.
func (c *core) approve() (approvals.ID, approvals.OutboxItem) {
	id := approvals.NewID()
	c.mu.Lock()
	c.ops[id] = &op{}
	c.mu.Unlock()
	return id, c.promise(approvals.OutboxExecute, uuid.UUID(id))
}

func (c *core) promise(kind string, subject uuid.UUID) approvals.OutboxItem {
	item := approvals.OutboxItem{ID: uuid.Must(uuid.NewV7()), Kind: kind, Subject: subject}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.outbox = append(c.outbox, item)
	c.touch()
	return item
}

func (c *core) Relay(ctx context.Context, limit int, dispatch func(context.Context, []approvals.OutboxItem) []uuid.UUID) (int, bool, error) {
	c.mu.Lock()
	if c.relayErr != nil {
		defer c.mu.Unlock()
		return 0, false, c.relayErr
	}
	var batch []approvals.OutboxItem
	for _, item := range c.outbox {
		if !c.locked[item.ID] && len(batch) < limit {
			batch = append(batch, item)
			c.locked[item.ID] = true
		}
	}
	c.mu.Unlock()
	var done []uuid.UUID
	if len(batch) > 0 {
		done = dispatch(ctx, batch)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	gone := map[uuid.UUID]bool{}
	for _, id := range done {
		gone[id] = true
	}
	var kept []approvals.OutboxItem
	for _, item := range c.outbox {
		if !gone[item.ID] {
			kept = append(kept, item)
		}
	}
	c.outbox = kept
	for _, item := range batch {
		delete(c.locked, item.ID)
	}
	c.touch()
	return len(done), len(batch) == limit, nil
}

func (c *core) Claim(_ context.Context, id approvals.ID, o approvals.ClaimOptions) (approvals.Claim, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.touch()
	c.claims++
	if c.claimErr != nil {
		if err := c.claimErr(c.claims); err != nil {
			return approvals.Claim{}, err
		}
	}
	x, ok := c.ops[id]
	switch {
	case !ok:
		return approvals.Claim{}, approvals.ErrNotFound
	case x.done:
		return approvals.Claim{Why: "succeeded"}, nil
	case time.Now().Before(x.leaseEnd):
		return approvals.Claim{Why: "executing"}, nil
	}
	x.token, x.epoch, x.leaseEnd = uuid.New(), x.epoch+1, time.Now().Add(o.Lease)
	return approvals.Claim{
		Go: !x.lookup, LookupFirst: x.lookup, Lease: approvals.Lease{ID: id, Tenant: "acme", Token: x.token, Epoch: x.epoch},
		Tenant: &rules.Tenant{Name: "acme"}, Tool: &rules.Tool{Name: "deploy", HTTP: &rules.HTTP{Timeout: time.Hour}}, OperationKey: "key-" + id.String(), RunID: "run_42", ToolCallID: "call_1", Taken: time.Now(),
		Arguments: canon.Read([]byte(`{"secret":"` + canary + `"}`)), Attempt: int(x.epoch), FirstAttempt: x.epoch == 1,
	}, nil
}

// canary stands for everything that must not leave Postgres but through the tool.
const canary = "canary-7f3a9c"

func (c *core) RenewLease(_ context.Context, l approvals.Lease, d time.Duration) (time.Time, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.touch()
	c.renewals++
	if c.renewErr != nil {
		if err := c.renewErr(c.renewals); err != nil {
			return time.Time{}, err
		}
	}
	x := c.ops[l.ID]
	if x.token != l.Token || x.done {
		return time.Time{}, approvals.ErrStale
	}
	x.leaseEnd = time.Now().Add(d)
	return x.leaseEnd, nil
}

func (c *core) Record(_ context.Context, l approvals.Lease, out approvals.Outcome) (approvals.View, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.touch()
	c.records++
	if c.recordErr != nil {
		if err := c.recordErr(c.records); err != nil {
			return approvals.View{}, err
		}
	}
	x := c.ops[l.ID]
	if x.token != l.Token || x.epoch != l.Epoch || x.done {
		return approvals.View{}, approvals.ErrStale
	}
	x.outcome, x.done = out, true
	return approvals.View{}, nil
}

// Sweep rings for what should run and has no lease, under a new row.
func (c *core) Undelivered(context.Context) (approvals.Undelivered, error) {
	return approvals.Undelivered{}, nil
}

func (c *core) Sweep(context.Context, int) (approvals.SweepReport, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.touch()
	c.sweeps++
	for id, x := range c.ops {
		if !x.done && time.Now().After(x.leaseEnd) {
			c.outbox = append(c.outbox, approvals.OutboxItem{ID: uuid.Must(uuid.NewV7()), Kind: approvals.OutboxExecute, Subject: uuid.UUID(id)})
		}
	}
	return approvals.SweepReport{}, nil
}

func (c *core) ResumeFor(_ context.Context, pause uuid.UUID) (approvals.Delivery, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d, ok := c.delivery[pause]
	if !ok {
		return d, fmt.Errorf("pause: %w", approvals.ErrNotFound)
	}
	return d, nil
}

func (c *core) RecordDelivery(_ context.Context, _ uuid.UUID, r approvals.DeliveryResult) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.touch()
	c.records++
	if c.recordErr != nil {
		if err := c.recordErr(c.records); err != nil {
			return err
		}
	}
	c.results = append(c.results, r)
	return nil
}

func (c *core) isDone(id approvals.ID) func() bool { return func() bool { return c.ops[id].done } }

var _ Core = (*core)(nil)

// tool counts its effects; each call is what run does, or a success.
type tool struct {
	mu      sync.Mutex
	effects map[string]int // by operation key
	lookups int
	run     func(ctx context.Context, call tools.Call) approvals.Outcome
}

func newTool(run func(context.Context, tools.Call) approvals.Outcome) *tool {
	return &tool{effects: map[string]int{}, run: run}
}

var succeeded = approvals.Outcome{Class: approvals.OutcomeSucceeded, Output: []byte(`{}`)}

func (f *tool) Execute(ctx context.Context, call tools.Call) approvals.Outcome {
	f.mu.Lock()
	f.effects[call.OperationKey]++
	f.mu.Unlock()
	if f.run != nil {
		return f.run(ctx, call)
	}
	return succeeded
}

func (f *tool) Lookup(context.Context, tools.Call) approvals.Outcome {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lookups++
	return approvals.Outcome{Class: approvals.OutcomeAbsent}
}

func (f *tool) total() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, x := range f.effects {
		n += x
	}
	return n
}

// cards records which cards were synced.
type cards func(ctx context.Context, id approvals.ID) error

func (f cards) Sync(ctx context.Context, id approvals.ID) error {
	if f == nil {
		return nil
	}
	return f(ctx, id)
}

var errDatabase = errors.New("pq: value " + canary + " violates a constraint")
