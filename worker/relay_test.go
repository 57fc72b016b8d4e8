package worker

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/hibiken/asynq"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/worker/redistest"
)

// open gives a client of a test's Redis.
func open(t testing.TB, url string) redis.UniversalClient {
	t.Helper()
	r, err := OpenRedis(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func newRelay(c *core, r redis.UniversalClient) *relay {
	m := NewMetrics(nil)
	return &relay{outbox: c, queue: newQueue(r, m), poll: time.Millisecond, log: slog.New(slog.DiscardHandler), metrics: m}
}

// One batch goes to its queues; the rows are gone, the tasks carry an id and nothing else (I28, I24).
func TestRelayDispatches(t *testing.T) {
	t.Parallel()
	c, r := newCore(), open(t, redistest.Start(t).URL())
	id, row := c.approve()
	card := c.promise(approvals.OutboxCard, uuid.UUID(id))
	resume := c.promise(approvals.OutboxResume, uuid.New())
	if more, why := newRelay(c, r).once(t.Context(), true); more || why != nil {
		t.Fatalf("more %v, %+v", more, why)
	}
	if len(c.outbox) != 0 {
		t.Errorf("%d rows left", len(c.outbox))
	}
	look := asynq.NewInspectorFromRedisClient(r)
	for _, item := range []approvals.OutboxItem{row, card, resume} {
		info, err := look.GetTaskInfo(kinds[item.Kind].queue, item.ID.String())
		if err != nil {
			t.Fatalf("%s: %v", item.Kind, err)
		}
		if info.Type != item.Kind || string(info.Payload) != item.Subject.String() || info.MaxRetry < 1 {
			t.Errorf("%s: %s %s, %d retries (0 and a crash would archive it unrun)", item.Kind, info.Type, info.Payload, info.MaxRetry)
		}
	}
}

// A batch as large as the limit says that there is more; a relay takes all of it in the end.
func TestRelayTakesABacklog(t *testing.T) {
	t.Parallel()
	c, r := newCore(), open(t, redistest.Start(t).URL())
	for range 2*relayBatch + 1 {
		c.approve()
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		newRelay(c, r).run(ctx)
	}()
	c.eventually(t, "an empty outbox", func() bool { return len(c.outbox) == 0 })
	stop()
	<-done
	info, err := asynq.NewInspectorFromRedisClient(r).GetQueueInfo(kinds[approvals.OutboxExecute].queue)
	if err != nil || info.Pending != 2*relayBatch+1 {
		t.Errorf("%+v, %v", info, err)
	}
}

// A task id that Redis knows counts as delivered, whatever became of the task.
func TestConflictIsDelivered(t *testing.T) {
	t.Parallel()
	c, r := newCore(), open(t, redistest.Start(t).URL())
	_, row := c.approve()
	q, look := newQueue(r, NewMetrics(nil)), asynq.NewInspectorFromRedisClient(r)
	if err := q.enqueue(t.Context(), row); err != nil {
		t.Fatal(err)
	}
	for _, state := range []string{"pending", "archived"} {
		if state == "archived" {
			if err := look.ArchiveTask(kinds[row.Kind].queue, row.ID.String()); err != nil {
				t.Fatal(err)
			}
			c.outbox = []approvals.OutboxItem{row}
		}
		if _, why := newRelay(c, r).once(t.Context(), false); why != nil || len(c.outbox) != 0 {
			t.Errorf("%s: %+v, %d rows left", state, why, len(c.outbox))
		}
	}
}

// Redis is down: the rows stay, the relay says so once, asks before it locks rows again, and
// goes on when Redis is back.
func TestRelayWithoutRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	c, r := newCore(), open(t, server.URL())
	_, row := c.approve()
	server.Stop()
	y := newRelay(c, r)
	began := time.Now()
	if _, why := y.once(t.Context(), false); why == nil || !why.redis || len(c.outbox) != 1 {
		t.Fatalf("%+v, %d rows", why, len(c.outbox))
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("the transaction was open for %s; an idle one is ended after 2 s", took)
	}
	c.relayErr = errors.New("rows were locked for nothing")
	if _, why := y.once(t.Context(), true); why == nil || !why.redis {
		t.Fatalf("%+v", why)
	}
	c.relayErr = nil
	var log strings.Builder
	y.log = slog.New(slog.NewTextHandler(&log, nil))
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		y.run(ctx)
	}()
	server.Restart()
	c.eventually(t, "an empty outbox", func() bool { return len(c.outbox) == 0 })
	stop()
	<-done
	if _, err := asynq.NewInspectorFromRedisClient(r).GetTaskInfo(kinds[row.Kind].queue, row.ID.String()); err != nil {
		t.Error(err)
	}
	if n := strings.Count(log.String(), "not moving"); n > 1 {
		t.Errorf("said %d times", n)
	}
	if strings.Contains(log.String(), server.Addr()) {
		t.Error("the log names the address")
	}
}

// A kind that this release does not know stays for one that does, and holds up nobody.
func TestRelayKeepsUnknownKinds(t *testing.T) {
	t.Parallel()
	c, r := newCore(), open(t, redistest.Start(t).URL())
	strange := c.promise("tomorrow", uuid.New())
	c.approve()
	if _, why := newRelay(c, r).once(t.Context(), false); why != nil {
		t.Fatal(why)
	}
	if len(c.outbox) != 1 || c.outbox[0].ID != strange.ID {
		t.Errorf("%v", c.outbox)
	}
}

// Postgres is away: no busy loop.
func TestRelayWithoutPostgres(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCore()
		c.relayErr = errDatabase
		var log strings.Builder
		m := NewMetrics(nil)
		polls := 0
		y := &relay{outbox: countingOutbox{c, &polls}, queue: &queue{metrics: m}, poll: 50 * time.Millisecond, log: slog.New(slog.NewTextHandler(&log, nil)), metrics: m}
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		y.run(ctx)
		if polls < 25 || polls > 45 {
			t.Errorf("%d polls in a minute", polls)
		}
		noCanary(t, log.String())
	})
}

type countingOutbox struct {
	*core
	n *int
}

func (o countingOutbox) Relay(ctx context.Context, limit int, d func(context.Context, []approvals.OutboxItem) []uuid.UUID) (int, bool, error) {
	*o.n++
	return o.core.Relay(ctx, limit, d)
}

// The doorbell enqueues without the relay, never waits, and is quiet while Redis is away.
func TestDoorbell(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	c, r := newCore(), open(t, server.URL())
	bell := NewDoorbell(r, nil, nil)
	_, row := c.approve()
	bell.Ring([]approvals.OutboxItem{row})
	bell.ringing.Wait()
	look := asynq.NewInspectorFromRedisClient(r)
	if _, err := look.GetTaskInfo(kinds[row.Kind].queue, row.ID.String()); err != nil {
		t.Fatal(err)
	}
	// The row is still in the outbox: its dispatch conflicts, which is delivery.
	if _, why := newRelay(c, r).once(t.Context(), false); why != nil || len(c.outbox) != 0 {
		t.Errorf("%+v, %d rows", why, len(c.outbox))
	}

	server.Stop()
	_, row = c.approve()
	began := time.Now()
	for range 10_000 { // many more than there are slots
		bell.Ring([]approvals.OutboxItem{row})
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("rings took %s", took)
	}
	bell.ringing.Wait()
	if bell.awayTil.Load() <= began.UnixNano() {
		t.Error("it goes on trying")
	}
	bell.Close()
	bell.Ring([]approvals.OutboxItem{row}) // after Close: dropped
	bell.ringing.Wait()
	if len(c.outbox) != 1 {
		t.Error("the row is gone")
	}
}

func TestOpenRedisHidesTheURL(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"http://user:" + canary + "@host", "redis://:" + canary + "@host:port:x", "\x00" + canary} {
		if _, err := OpenRedis(url); !errors.Is(err, ErrRedisURL) || strings.Contains(err.Error(), canary) {
			t.Errorf("%v", err)
		}
	}
}

// The sweeper drains what is due, keeps its pace when it fails, and sweeps at once.
func TestSweeper(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		due, calls := 3*sweepBatch, 0
		var firstCall time.Duration = -1
		began := time.Now()
		s := &sweeper{every: 5 * time.Second, log: slog.New(slog.DiscardHandler), metrics: NewMetrics(nil)}
		s.core = sweeps(func(limit int) (approvals.SweepReport, error) {
			if calls++; calls == 1 {
				firstCall = time.Since(began)
			}
			if calls == 2 {
				return approvals.SweepReport{}, errDatabase
			}
			n := min(limit, due)
			due -= n
			return approvals.SweepReport{Looked: n, Rung: n}, nil
		})
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		s.run(ctx)
		if due != 0 || firstCall != 0 {
			t.Errorf("%d left; first sweep after %s", due, firstCall)
		}
		if calls < 12 || calls > 20 {
			t.Errorf("%d sweeps in a minute", calls)
		}
	})
}

type sweeps func(limit int) (approvals.SweepReport, error)

func (f sweeps) Sweep(_ context.Context, limit int) (approvals.SweepReport, error) { return f(limit) }

func (sweeps) Undelivered(context.Context) (approvals.Undelivered, error) {
	return approvals.Undelivered{}, errDatabase
}

// counting is a core whose dead letters grow by one at each count.
type counting struct {
	sweeps
	counts *int
}

func (c counting) Undelivered(context.Context) (approvals.Undelivered, error) {
	if *c.counts++; *c.counts == 3 {
		return approvals.Undelivered{}, errDatabase
	}
	return approvals.Undelivered{Unheard: *c.counts, Stopped: 7}, nil
}

// Dead letters are counted as they are now, at once and then each minute; a count that fails keeps the last.
func TestDeadLettersAreCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, counts := NewMetrics(nil), 0
		s := &sweeper{every: 5 * time.Second, log: slog.New(slog.DiscardHandler), metrics: m}
		s.core = counting{func(int) (approvals.SweepReport, error) { return approvals.SweepReport{}, nil }, &counts}
		ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute+30*time.Second)
		defer stop()
		s.run(ctx)
		if counts != 3 || testutil.ToFloat64(m.deadLetters.WithLabelValues("unheard")) != 2 || testutil.ToFloat64(m.deadLetters.WithLabelValues("stopped")) != 7 {
			t.Errorf("counted %d times, %v unheard", counts, testutil.ToFloat64(m.deadLetters.WithLabelValues("unheard")))
		}
	})
}
