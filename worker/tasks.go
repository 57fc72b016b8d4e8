package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/holdpoint/holdpoint/approvals"
)

// kind is how the tasks of one kind of outbox row are queued. A task's type is the row's
// kind, its id the row's id, its payload the subject's id as text.
type kind struct {
	queue    string
	maxRetry int           // then Asynq archives it; the sweeper rings again under a new id
	timeout  time.Duration // of one handling, as Asynq counts it
}

// The names carry a prefix, since a Redis may be shared.
var kinds = map[string]kind{
	approvals.OutboxExecute: {queue: "holdpoint-execute", maxRetry: 10, timeout: 30 * time.Minute},
	approvals.OutboxCard:    {queue: "holdpoint-card", maxRetry: 25, timeout: 2 * time.Minute},
	approvals.OutboxResume:  {queue: "holdpoint-resume", maxRetry: 10, timeout: 2 * time.Minute},
}

// remembered is how long a finished task's id stays known. A row that was rung right after
// its commit is still in the outbox when its task is done: the relay's enqueue then
// conflicts, which counts as delivered, instead of running everything twice.
const remembered = 15 * time.Second

// queue puts outbox rows into Redis.
type queue struct {
	client  *asynq.Client
	redis   redis.UniversalClient
	metrics *Metrics
}

func newQueue(r redis.UniversalClient, m *Metrics) *queue {
	return &queue{client: asynq.NewClientFromRedisClient(r), redis: r, metrics: m}
}

// enqueue is done when the task is in Redis, now or from before: an id that is known there,
// be it of an archived task, counts as delivered. Only the sweeper gives up on an archived
// one, by ringing under a new id.
func (q *queue) enqueue(ctx context.Context, item approvals.OutboxItem) error {
	k, known := kinds[item.Kind]
	if !known {
		return fmt.Errorf("%w %q", errUnknownKind, item.Kind)
	}
	_, err := q.client.EnqueueContext(ctx, asynq.NewTask(item.Kind, []byte(item.Subject.String())),
		asynq.TaskID(item.ID.String()), asynq.Queue(k.queue), asynq.MaxRetry(k.maxRetry), asynq.Timeout(k.timeout), asynq.Retention(remembered))
	if errors.Is(err, asynq.ErrTaskIDConflict) {
		return nil
	}
	if err != nil {
		q.metrics.enqueueFailures.Inc()
		return fmt.Errorf("enqueue: %w", err)
	}
	return nil
}

var errUnknownKind = errors.New("outbox row of an unknown kind")

// Enqueueing a batch: a few at a time, and not for long, because the relay's transaction
// is open meanwhile (an idle one is ended after 2 s).
const (
	enqueueAtOnce  = 8
	enqueueTimeout = 800 * time.Millisecond
)

// enqueueAll enqueues what it can and gives the ids of what is delivered. It stops at the
// first failure: Redis is down, and each try would cost a time-out.
func (q *queue) enqueueAll(ctx context.Context, items []approvals.OutboxItem) (done []uuid.UUID, err error) {
	ctx, cancel := context.WithTimeout(ctx, enqueueTimeout)
	defer cancel()
	delivered := make([]bool, len(items))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(enqueueAtOnce)
	for i, item := range items {
		group.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			err := q.enqueue(ctx, item)
			delivered[i] = err == nil
			if errors.Is(err, errUnknownKind) {
				return nil // another release's row: it stays for a worker that knows it
			}
			return err
		})
	}
	err = group.Wait()
	for i, item := range items {
		if delivered[i] {
			done = append(done, item.ID)
		}
	}
	return done, err
}

// up asks Redis for a sign of life.
func (q *queue) up(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, enqueueTimeout)
	defer cancel()
	return q.redis.Ping(ctx).Err()
}
