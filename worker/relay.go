package worker

import (
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/approvals/crashpoint"
)

// Outbox is the part of the core that a relay needs.
type Outbox interface {
	// Relay locks up to limit due rows, skipping those that another relay holds, hands them
	// to dispatch, and deletes the ones it gives back, in one transaction. more says that
	// there were as many as limit.
	Relay(ctx context.Context, limit int, dispatch func(context.Context, []approvals.OutboxItem) []uuid.UUID) (n int, more bool, err error)
}

// relay moves outbox rows into Redis: the backstop behind the doorbell, and the only way
// for rows whose process died after its commit. Any number of relays may run.
type relay struct {
	outbox  Outbox
	queue   *queue
	poll    time.Duration
	log     *slog.Logger
	metrics *Metrics
}

const (
	relayBatch   = 100
	relayTimeout = 5 * time.Second
	relayRest    = 2 * time.Second // longest pause while Redis or Postgres is away
)

// run polls until the context ends.
func (r *relay) run(ctx context.Context) {
	rest := backoff{first: r.poll, longest: relayRest}
	redisAway := false
	for {
		more, err := r.once(ctx, redisAway)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			if rest.fresh() {
				r.log.Warn("the outbox is not moving; rows stay until it does", "cause", err.cause)
			}
			redisAway = err.redis
			if !wait(ctx, rest.next()) {
				return
			}
			continue
		case !rest.fresh():
			r.log.Info("the outbox moves again")
		}
		redisAway = false
		rest.reset()
		if !more && !wait(ctx, r.poll) {
			return
		}
	}
}

// stuck is why a relay made no progress. cause is fit for a log: no address, no password.
type stuck struct {
	redis bool
	cause string
}

// once dispatches one batch. While Redis is known to be away it is asked first, so that no
// row is locked, and no transaction held open, for a certain failure.
func (r *relay) once(ctx context.Context, askFirst bool) (more bool, why *stuck) {
	if askFirst {
		if err := r.queue.up(ctx); err != nil {
			return false, &stuck{redis: true, cause: "redis does not answer"}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, relayTimeout)
	defer cancel()
	var redisErr error
	_, more, err := r.outbox.Relay(ctx, relayBatch, func(ctx context.Context, items []approvals.OutboxItem) []uuid.UUID {
		done, err := r.queue.enqueueAll(ctx, items)
		redisErr = err
		r.metrics.dispatched(done, time.Now())
		// A crash between here and the deletion's commit: the rows are dispatched again, and
		// conflict with tasks of the same id, or run once more and find nothing to do.
		crashpoint.At("relay.enqueued")
		return done
	})
	switch {
	case redisErr != nil:
		return false, &stuck{redis: true, cause: "redis took no task"}
	case err != nil:
		return false, &stuck{cause: "postgres gave no rows"}
	}
	return more, nil
}

// backoff doubles a pause up to a longest one.
type backoff struct {
	first, longest time.Duration
	last           time.Duration
}

func (b *backoff) next() time.Duration {
	b.last = min(max(b.first, 2*b.last), b.longest)
	return b.last
}

func (b *backoff) reset()      { b.last = 0 }
func (b *backoff) fresh() bool { return b.last == 0 }
