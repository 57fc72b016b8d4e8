package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/hibiken/asynq"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/worker/redistest"
	"github.com/holdpoint/holdpoint/worker/tools"
)

// start runs a worker for the test; stop drains it and gives Run's error.
func start(t *testing.T, c *core, f *tool, s Cards, r redis.UniversalClient, o Options) (stop func() error) {
	t.Helper()
	o.Tool = f
	o.SlowCheck, o.SweepEvery = 5*time.Millisecond, 50*time.Millisecond
	ctx, cancel := context.WithCancel(context.Background())
	result := make(chan error, 1)
	go func() { result <- New(c, s, r, o).Run(ctx) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-result
	})
	t.Cleanup(func() { _ = stop() })
	return stop
}

// The whole way: a decision's row → relay → task → claim → one effect → its outcome.
func TestWorker(t *testing.T) {
	t.Parallel()
	c, f, r := newCore(), newTool(nil), open(t, redistest.Start(t).URL())
	reg := prometheus.NewRegistry()
	synced := make(chan approvals.ID, 1)
	stop := start(t, c, f, cards(func(_ context.Context, id approvals.ID) error { synced <- id; return nil }), r, Options{Metrics: NewMetrics(reg)})
	id, _ := c.approve()
	c.promise(approvals.OutboxCard, uuid.UUID(id))
	c.eventually(t, "the outcome", c.isDone(id))
	if got := <-synced; got != id {
		t.Errorf("synced %s", got)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if f.total() != 1 || c.ops[id].outcome.Class != approvals.OutcomeSucceeded {
		t.Errorf("%d effects, %v", f.total(), c.ops[id].outcome)
	}
	if problems, err := testutil.GatherAndLint(reg); err != nil || len(problems) > 0 {
		t.Errorf("metrics: %v %v", problems, err)
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if text := family.String(); strings.Contains(text, id.String()) || strings.Contains(text, uuid.UUID(id).String()) {
			t.Errorf("an id is a label of %s", family.GetName())
		}
	}
}

// Rung and relayed, and rung again by a sweep: one effect; and a row that was rung and
// relayed is one task.
func TestRungTwice(t *testing.T) {
	t.Parallel()
	c, f, r := newCore(), newTool(nil), open(t, redistest.Start(t).URL())
	bell := NewDoorbell(r, nil, nil)
	defer bell.Close()
	stop := start(t, c, f, cards(nil), r, Options{NoRelay: true, NoSweep: true})
	id, row := c.approve()
	bell.Ring([]approvals.OutboxItem{row})
	c.eventually(t, "the outcome", c.isDone(id))
	look := asynq.NewInspectorFromRedisClient(r)
	eventuallyState(t, look, row, asynq.TaskStateCompleted)
	// Its row comes by the relay when the task is long done.
	if _, why := newRelay(c, r).once(t.Context(), false); why != nil || len(c.outbox) != 0 {
		t.Fatalf("%+v, %d rows", why, len(c.outbox))
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if c.claims != 1 || f.total() != 1 {
		t.Errorf("%d claims, %d effects", c.claims, f.total())
	}
}

func eventuallyState(t *testing.T, look *asynq.Inspector, row approvals.OutboxItem, want asynq.TaskState) {
	t.Helper()
	late := time.Now().Add(20 * time.Second)
	for {
		info, err := look.GetTaskInfo(kinds[row.Kind].queue, row.ID.String())
		if err == nil && info.State == want {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("never %s: %+v %v", want, info, err)
		}
	}
}

// L3: Redis forgot everything between dispatch and execution; the sweeper rings from Postgres.
func TestFlushedRedis(t *testing.T) {
	t.Parallel()
	c, f, r := newCore(), newTool(nil), open(t, redistest.Start(t).URL())
	var ids []approvals.ID
	for range 20 {
		id, _ := c.approve()
		ids = append(ids, id)
	}
	if _, why := newRelay(c, r).once(t.Context(), false); why != nil {
		t.Fatal(why)
	}
	if err := r.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if len(c.outbox) != 0 {
		t.Fatal("rows left: nothing would be proven")
	}
	start(t, c, f, cards(nil), r, Options{})
	for _, id := range ids {
		c.eventually(t, "the outcome", c.isDone(id))
	}
	if f.total() != len(ids) {
		t.Errorf("%d effects for %d approvals", f.total(), len(ids))
	}
}

// L3, too: a task that Asynq archived holds its id for good; the next ring has another.
func TestArchivedTask(t *testing.T) {
	t.Parallel()
	c, f, r := newCore(), newTool(nil), open(t, redistest.Start(t).URL())
	id, row := c.approve()
	if _, why := newRelay(c, r).once(t.Context(), false); why != nil {
		t.Fatal(why)
	}
	if err := asynq.NewInspectorFromRedisClient(r).ArchiveTask(kinds[row.Kind].queue, row.ID.String()); err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	c.outbox = append(c.outbox, row) // the deletion was lost: the same id again, a conflict
	c.mu.Unlock()
	start(t, c, f, cards(nil), r, Options{})
	c.eventually(t, "the outcome", c.isDone(id))
	if f.total() != 1 {
		t.Errorf("%d effects", f.total())
	}
}

// Redis may be away when the worker starts, and go away while it runs.
func TestRedisComesAndGoes(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	server.Stop()
	c, f := newCore(), newTool(nil)
	stop := start(t, c, f, cards(nil), open(t, server.URL()), Options{ShutdownTimeout: time.Second})
	first, _ := c.approve()
	server.Restart()
	c.eventually(t, "the first outcome", c.isDone(first))
	server.Stop()
	second, _ := c.approve()
	server.Restart()
	c.eventually(t, "the second outcome", c.isDone(second))
	server.Stop() // and it ends without Redis as well
	if err := stop(); err != nil {
		t.Error(err)
	}
	if f.total() != 2 {
		t.Errorf("%d effects for 2 approvals", f.total())
	}
}

// SIGTERM: what is under way finishes and is recorded; nothing new begins.
func TestDrain(t *testing.T) {
	t.Parallel()
	c, r := newCore(), open(t, redistest.Start(t).URL())
	begun, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	f := newTool(func(context.Context, tools.Call) approvals.Outcome {
		once.Do(func() { close(begun) })
		<-release
		return succeeded
	})
	stop := start(t, c, f, cards(nil), r, Options{})
	id, _ := c.approve()
	<-begun
	ended := make(chan error, 1)
	go func() { ended <- stop() }()
	later, _ := c.approve() // nobody is there for it any more, or it is done before the end
	close(release)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if !c.ops[id].done || c.ops[id].outcome.Class != approvals.OutcomeSucceeded {
		t.Errorf("ended over a tool at work: %+v", c.ops[id])
	}
	if x := c.ops[later]; x.epoch > 0 && !x.done {
		t.Error("something was begun and left behind")
	}
}

// A tool that outlasts the drain is cut off, and what is known then is recorded.
func TestDrainCutsOff(t *testing.T) {
	t.Parallel()
	c, r := newCore(), open(t, redistest.Start(t).URL())
	begun := make(chan struct{})
	f := newTool(func(ctx context.Context, _ tools.Call) approvals.Outcome {
		close(begun)
		<-ctx.Done()
		return approvals.Outcome{Class: approvals.OutcomeUnknown, Error: "stopped waiting"}
	})
	stop := start(t, c, f, cards(nil), r, Options{ShutdownTimeout: 50 * time.Millisecond})
	id, _ := c.approve()
	<-begun
	if err := stop(); err != nil {
		t.Error(err)
	}
	if c.ops[id].outcome.Class != approvals.OutcomeUnknown {
		t.Errorf("%+v", c.ops[id])
	}
}

// I24, I28: nothing but ids and fixed texts is in Redis, also when handlers fail and panic
// with secrets in their hands; and a task that is not ours causes nothing.
func TestRedisHoldsOnlyIDs(t *testing.T) {
	t.Parallel()
	c, f, r := newCore(), newTool(nil), open(t, redistest.Start(t).URL())
	var mu sync.Mutex
	calls := map[approvals.ID]int{}
	failing, panicking := approvals.NewID(), approvals.NewID()
	s := cards(func(_ context.Context, id approvals.ID) error {
		mu.Lock()
		defer mu.Unlock()
		calls[id]++
		if id == panicking {
			panic(canary)
		}
		return fmt.Errorf("%w: %s", errDatabase, canary)
	})
	c.claimErr = func(int) error { return errDatabase }
	rows := []approvals.OutboxItem{c.promise(approvals.OutboxCard, uuid.UUID(failing)), c.promise(approvals.OutboxCard, uuid.UUID(panicking))}
	_, execution := c.approve()
	rows = append(rows, execution)
	forged := asynq.NewTask(approvals.OutboxExecute, []byte(`{"tool":"deploy","arguments":{}}`))
	if _, err := asynq.NewClientFromRedisClient(r).EnqueueContext(t.Context(), forged, asynq.Queue(kinds[approvals.OutboxExecute].queue), asynq.TaskID("forged"), asynq.Retention(time.Minute)); err != nil {
		t.Fatal(err)
	}
	start(t, c, f, s, r, Options{NoSweep: true})
	look := asynq.NewInspectorFromRedisClient(r)
	for _, row := range rows {
		eventuallyState(t, look, row, asynq.TaskStateRetry)
	}
	late := time.Now().Add(20 * time.Second)
	for info, err := look.GetTaskInfo(kinds[approvals.OutboxExecute].queue, "forged"); err != nil || info.State != asynq.TaskStateCompleted; info, err = look.GetTaskInfo(kinds[approvals.OutboxExecute].queue, "forged") {
		if time.Now().After(late) {
			t.Fatal("the forged task is not dropped")
		}
	}
	if f.total() != 0 {
		t.Error("a task alone caused an effect")
	}
	known := map[string]bool{errAgain.Error(): true, errPanicked.Error(): true}
	for _, row := range rows {
		info, err := look.GetTaskInfo(kinds[row.Kind].queue, row.ID.String())
		if err != nil || !known[info.LastErr] {
			t.Errorf("last error %q, %v", info.LastErr, err)
		}
	}
	noCanary(t, dump(t, r))
}

// dump is everything that is in Redis.
func dump(t *testing.T, r redis.UniversalClient) string {
	t.Helper()
	var b strings.Builder
	keys, err := r.Keys(t.Context(), "*").Result()
	if err != nil || len(keys) == 0 {
		t.Fatalf("%d keys, %v", len(keys), err)
	}
	for _, key := range keys {
		b.WriteString(key)
		kind, err := r.Type(t.Context(), key).Result()
		if err != nil {
			t.Fatal(err)
		}
		var v any
		switch kind {
		case "hash":
			v, err = r.HGetAll(t.Context(), key).Result()
		case "list":
			v, err = r.LRange(t.Context(), key, 0, -1).Result()
		case "set":
			v, err = r.SMembers(t.Context(), key).Result()
		case "zset":
			v, err = r.ZRange(t.Context(), key, 0, -1).Result()
		case "string":
			v, err = r.Get(t.Context(), key).Result()
		}
		if err != nil && !errors.Is(err, redis.Nil) {
			t.Fatal(err)
		}
		fmt.Fprintln(&b, v)
	}
	return b.String()
}
