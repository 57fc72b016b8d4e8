package main

import (
	"fmt"

	"github.com/hibiken/asynq"
)

// inspector looks into the queues.
func (w *world) inspector() *asynq.Inspector {
	w.t.Helper()
	return asynq.NewInspectorFromRedisClient(w.redisClient())
}

// queues are the names under which tasks wait in Redis.
var queues = []string{"holdpoint-execute", "holdpoint-card", "holdpoint-resume"}

// settled waits until nothing is promised or under way any more: the outbox is empty, and so are the queues. What is counted after
// it stays as it is.
func (p *product) settled() {
	p.t.Helper()
	look := p.inspector()
	p.eventually("the outbox and the queues are empty", func() (string, bool) {
		rows := p.number(`SELECT count(*) FROM outbox`)
		tasks := 0
		for _, q := range queues {
			if info, err := look.GetQueueInfo(q); err == nil { // a queue that was never used is unknown
				tasks += info.Pending + info.Scheduled + info.Retry + info.Archived
			}
			for _, id := range active(look, q) {
				if !p.orphans[id] {
					tasks++
				}
			}
		}
		return fmt.Sprintf("%d rows, %d tasks", rows, tasks), rows == 0 && tasks == 0
	})
}

// idle waits until nobody works on a queue's tasks, and none waits.
func (p *product) idle(queue string) {
	p.t.Helper()
	look := p.inspector()
	p.eventually(queue+" is idle", func() (string, bool) {
		info, err := look.GetQueueInfo(queue)
		return "busy", err == nil && info.Pending+info.Active+info.Retry+info.Scheduled == 0 && p.number(`SELECT count(*) FROM outbox`) == 0
	})
}

// active are the ids of a queue's tasks that a worker holds, or held when it died.
func active(look *asynq.Inspector, queue string) (ids []string) {
	tasks, err := look.ListActiveTasks(queue)
	if err != nil {
		return nil // a queue that was never used
	}
	for _, t := range tasks {
		ids = append(ids, t.ID)
	}
	return ids
}

// bury notes what killed workers held; no other one runs yet.
func (p *product) bury() {
	p.t.Helper()
	look := p.inspector()
	p.orphans = map[string]bool{}
	for _, q := range queues {
		for _, id := range active(look, q) {
			p.orphans[id] = true
		}
	}
}
