package main

import (
	"context"
	"testing"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/templates"
	"github.com/holdpoint/holdpoint/worker"
)

// Redis is a doorbell: what it forgets, repeats or makes up changes nothing (I28, L3).

// redisClient is a client of the test's Redis.
func (w *world) redisClient() redis.UniversalClient {
	w.t.Helper()
	r, err := worker.OpenRedis(w.redis.URL())
	w.must(err)
	w.t.Cleanup(func() { _ = r.Close() })
	return r
}

// ring puts tasks for an approval into Redis that no commit promised, n of them.
func (w *world) ring(id approvals.ID, n int) {
	w.t.Helper()
	items := make([]approvals.OutboxItem, n)
	for i := range items {
		items[i] = approvals.OutboxItem{ID: uuid.New(), Kind: approvals.OutboxExecute, Subject: uuid.UUID(id)}
	}
	bell := worker.NewDoorbell(w.redisClient(), nil, nil)
	bell.Ring(items)
	w.eventually("the tasks are in Redis", func() (string, bool) {
		keys, err := w.redisClient().Keys(w.ctx, "asynq:{holdpoint-execute}:t:*").Result()
		return "", err == nil && len(keys) >= n
	})
	bell.Close()
}

// Redis delivers a task many times, to two workers, before and after the call is done: one effect.
func TestDuplicatedTask(t *testing.T) {
	t.Parallel()
	p := start(t, 1, 0)
	a := p.deploy("run_dup_task")
	p.ring(a.ApprovalID, 3) // nobody approved it: the tasks find nothing to do
	p.work()
	p.work()
	p.pending(a.ApprovalID)
	p.settled()
	p.effects(0, 0)
	p.tool.hold(1)
	p.approve("U0ALICE", a.ApprovalID)
	p.must(p.tool.wait(p.ctx, func() bool { return len(p.tool.requests) == 1 }))
	p.ring(a.ApprovalID, 8) // while it runs
	p.tool.release()
	p.becomes(a.ApprovalID, approvals.Completed)
	p.ring(a.ApprovalID, 8) // and when it is done
	p.resumed("run_dup_task")
	p.settled()
	p.effects(1, 1)
	p.toldOnce("run_dup_task")
}

// The task was in Redis, its outbox row is gone, and Redis forgets everything: the sweeper rings again (L3).
func TestFlushAll(t *testing.T) {
	t.Parallel()
	p := start(t, 1, 0)
	a := p.deploy("run_flushed")
	p.must(p.redisClient().FlushAll(p.ctx).Err()) // the card's task, too
	_, _, err := p.core.Relay(p.ctx, 100, func(_ context.Context, items []approvals.OutboxItem) (ids []uuid.UUID) {
		for _, i := range items {
			if i.Kind != approvals.OutboxCard {
				t.Errorf("%s is promised before anybody approved", i.Kind)
			}
		}
		return nil
	})
	p.must(err)
	p.work()
	p.pending(a.ApprovalID)
	p.settled()
	p.stopWork()

	p.approve("U0ALICE", a.ApprovalID)
	forgotten := 0
	_, _, err = p.core.Relay(p.ctx, 100, func(_ context.Context, items []approvals.OutboxItem) (ids []uuid.UUID) {
		for _, i := range items { // as a relay: they are in Redis, which conflicts or not
			ids = append(ids, i.ID)
			forgotten++
		}
		return ids
	})
	p.must(err)
	p.must(p.redisClient().FlushAll(p.ctx).Err())
	if n := p.number(`SELECT count(*) FROM outbox`); n != 0 || forgotten == 0 {
		t.Fatalf("%d rows left, %d forgotten", n, forgotten)
	}
	p.work()
	if p.get(a.ApprovalID).Status != approvals.Approved {
		t.Fatal("it ran without anybody having rung")
	}
	p.later(a.ApprovalID)
	p.becomes(a.ApprovalID, approvals.Completed)
	p.resumed("run_flushed")
	p.settled()
	p.effects(1, 1)
	p.toldOnce("run_flushed")
}

// later lets the time pass after which the sweeper looks at an approval again.
func (w *world) later(id approvals.ID) {
	w.t.Helper()
	_, err := w.db.Exec(w.ctx, `UPDATE approval_open SET due_at = clock_timestamp() WHERE approval_id = $1`, id)
	w.must(err)
}

// Redis is down when somebody clicks: the decision counts at once, and the tool runs when Redis is back.
func TestRedisDownAtTheClick(t *testing.T) {
	p := one(t)
	a := p.deploy("run_no_redis")
	p.pending(a.ApprovalID)
	p.settled()
	p.redis.Stop()
	p.click("U0ALICE", p.pending(a.ApprovalID), templates.ActionApprove)
	if v := p.get(a.ApprovalID); v.Status != approvals.Approved {
		t.Errorf("%s", v.Status)
	}
	p.card(a.ApprovalID, "Approved by @U0ALICE") // by the click itself: no queue in between
	p.effects(0, 0)
	p.redis.Restart()
	p.becomes(a.ApprovalID, approvals.Completed)
	p.card(a.ApprovalID, "Done")
	p.resumed("run_no_redis")
	p.settled()
	p.effects(1, 1)
	p.toldOnce("run_no_redis")
}

// Nothing that is in Redis says more than ids (I24): all its keys and values, after a whole life with a redacted argument.
func TestRedisHoldsIDsOnly(t *testing.T) {
	p := one(t)
	a := p.propose(called("run_ids", calling("call_1", "deploy_release", object{"release": "2026.07.24", "environment": "production", "token": canary})))[0]
	p.approve("U0ALICE", a.ApprovalID)
	p.becomes(a.ApprovalID, approvals.Completed)
	p.settled()
	r := p.redisClient()
	keys, err := r.Keys(p.ctx, "*").Result()
	p.must(err)
	if len(keys) == 0 {
		t.Fatal("Redis is empty: nothing was looked at")
	}
	for _, key := range keys {
		dump, err := r.Dump(p.ctx, key).Result()
		p.must(err)
		p.silent("Redis", key+dump)
	}
}
