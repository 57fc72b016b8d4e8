package proof

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/worker"
)

// Redis is a doorbell (I28, L3): whatever becomes of it, each approved call runs once. Real workers, real Redis.

// approved are calls of every class, proposed, shown and approved, with nobody at work yet.
func (w *world) approved(n int) (all []*call) {
	w.t.Helper()
	w.front()
	for i := range n {
		for class, tool := range classes {
			c := &call{op: fmt.Sprintf("%s-%d", class, i), tool: tool, plan: "ok"}
			w.propose(c)
			_, err := w.approve("U0ALICE", w.posted(c.id))
			w.must(err)
			all = append(all, c)
		}
	}
	return all
}

// everyOnce waits for all of them and holds each to one request.
func (w *world) everyOnce(all []*call) {
	w.t.Helper()
	for _, c := range all {
		w.becomes(c.id, approvals.Completed)
	}
	w.settled()
	log := w.sunk()
	for _, c := range all {
		if n := count(log, "request", c.op); n != 1 {
			w.t.Errorf("%s: %d requests", c.op, n)
		}
	}
	w.check()
}

func (w *world) redisClient() redis.UniversalClient {
	w.t.Helper()
	r, err := worker.OpenRedis(w.redis.URL())
	w.must(err)
	w.t.Cleanup(func() { _ = r.Close() })
	return r
}

// dispatched gives every outbox row to Redis, as a relay does, and deletes it there.
func (w *world) dispatched(r redis.UniversalClient) (ids []uuid.UUID) {
	w.t.Helper()
	client := asynq.NewClientFromRedisClient(r)
	for {
		n, more, err := w.core.Relay(w.ctx, 100, func(ctx context.Context, items []approvals.OutboxItem) (done []uuid.UUID) {
			for _, i := range items {
				task := asynq.NewTask(i.Kind, []byte(i.Subject.String()))
				if _, err := client.EnqueueContext(ctx, task, asynq.TaskID(i.ID.String()), asynq.Queue("holdpoint-"+i.Kind)); err != nil && !errors.Is(err, asynq.ErrTaskIDConflict) {
					w.t.Errorf("enqueue: %v", err)
				}
				done = append(done, i.ID)
			}
			ids = append(ids, done...)
			return done
		})
		w.must(err)
		if !more {
			if n == 0 && len(ids) == 0 {
				w.t.Fatal("nothing was in the outbox: nothing would be proven")
			}
			return ids
		}
	}
}

// All tasks were dispatched, their outbox rows are gone, and then Redis forgets: by FLUSHALL, or by a restart without its data.
func TestRedisForgets(t *testing.T) {
	t.Parallel()
	for name, forget := range map[string]func(*world, redis.UniversalClient){
		"flushall": func(w *world, r redis.UniversalClient) { w.must(r.FlushAll(w.ctx).Err()) },
		"restart":  func(w *world, _ redis.UniversalClient) { w.redis.Restart() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			all := w.quietly(4)
			w.dispatched(w.redisClient())
			forget(w, w.redisClient())
			if n := value[int](w, `SELECT count(*) FROM outbox`); n != 0 {
				t.Fatalf("%d outbox rows are left: nothing would be proven", n)
			}
			w.work()
			w.work()
			w.everyOnce(all)
		})
	}
}

// quietly is approved without a doorbell: what a commit promised is in the outbox only.
func (w *world) quietly(n int) []*call {
	w.t.Helper()
	w.redis.Stop() // the front's doorbell finds nobody
	all := w.approved(n)
	w.redis.Restart()
	return all
}

// Redis forgets again and again while workers are at work, and is restarted under them.
func TestRedisForgetsUnderWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range 3 {
		w.work()
	}
	r := w.redisClient()
	all := w.approved(3)
	for range 3 {
		w.must(r.FlushAll(w.ctx).Err())
		more := &call{op: "late-" + uuid.NewString()[:8], tool: "send", plan: "slow"}
		w.propose(more)
		_, err := w.approve("U0BOB", w.posted(more.id))
		w.must(err)
		w.redis.Restart()
		all = append(all, more)
	}
	w.everyOnce(all)
}

// A Redis that evicts whatever it likes: its keys go while tasks wait in it.
func TestRedisEvicts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.redisClient()
	used := func() int64 {
		w.t.Helper()
		n, err := r.InfoMap(w.ctx, "memory").Result()
		w.must(err)
		var bytes int64
		_, err = fmt.Sscan(n["Memory"]["used_memory"], &bytes)
		w.must(err)
		return bytes
	}
	w.must(r.ConfigSet(w.ctx, "maxmemory-policy", "allkeys-lru").Err())
	all := w.approved(8)
	w.dispatched(r)
	// Less than it holds: Redis must throw out tasks, their lists or both. Then there is room to work, but not for everything, and
	// the pressure goes on while the workers work.
	w.must(r.ConfigSet(w.ctx, "maxmemory", fmt.Sprint(used()-8<<10)).Err())
	w.eventually("the tasks are evicted", func() (string, bool) {
		left, err := r.Keys(w.ctx, "asynq:{holdpoint-execute}:t:*").Result()
		_ = r.Set(w.ctx, "filler-"+uuid.NewString(), make([]byte, 4<<10), 0).Err() // may be refused: that is the point
		return fmt.Sprintf("%d tasks are left, %v", len(left), err), err == nil && len(left) == 0
	})
	w.must(r.ConfigSet(w.ctx, "maxmemory", fmt.Sprint(used()+4<<20)).Err())
	press, release := context.WithCancel(w.ctx)
	defer release()
	var pressing sync.WaitGroup
	pressing.Go(func() {
		// All that it holds is thrown out about three times a second. (As fast as it goes, hardly any task lived until its poll: such a
		// Redis is not up, and L3 is not promised.)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for press.Err() == nil {
			<-tick.C
			_ = r.Set(press, "filler-"+uuid.NewString(), make([]byte, 64<<10), 0).Err()
		}
	})
	w.work()
	w.work()
	for _, c := range all {
		w.becomes(c.id, approvals.Completed)
	}
	release()
	pressing.Wait()
	w.everyOnce(all)
}

// Asynq has archived tasks under the ids of rows that are still in the outbox: to enqueue them again conflicts, which counts as
// delivered, and only the sweeper's ring, under another id, runs them.
func TestArchivedTasks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	all := w.quietly(3)
	r := w.redisClient()
	look := asynq.NewInspectorFromRedisClient(r)
	client := asynq.NewClientFromRedisClient(r)
	archived := 0
	_, _, err := w.core.Relay(w.ctx, 100, func(ctx context.Context, items []approvals.OutboxItem) []uuid.UUID {
		for _, i := range items {
			if i.Kind != approvals.OutboxExecute {
				continue
			}
			_, err := client.EnqueueContext(ctx, asynq.NewTask(i.Kind, []byte(i.Subject.String())), asynq.TaskID(i.ID.String()), asynq.Queue("holdpoint-execute"))
			if err == nil {
				err = look.ArchiveTask("holdpoint-execute", i.ID.String())
			}
			if err != nil {
				t.Errorf("archive: %v", err)
			}
			archived++
		}
		return nil // the rows stay
	})
	w.must(err)
	if archived != len(all) {
		t.Fatalf("%d tasks archived of %d", archived, len(all))
	}
	w.work()
	w.everyOnce(all)
}
