package worker

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdpoint/holdpoint/approvals"
)

// Doorbell enqueues outbox rows right after the commit that wrote them, so that nothing
// waits for the relay's next poll. It is best effort in every way: what it drops, the
// relay finds. Safe for concurrent use.
type Doorbell struct {
	queue *queue
	log   *slog.Logger
	slots chan struct{}

	closing context.Context
	stop    context.CancelFunc
	mu      sync.Mutex // orders Ring's Add before Close's Wait
	closed  bool
	ringing sync.WaitGroup
	awayTil atomic.Int64 // unix nanoseconds; rings before it are dropped
}

const (
	ringsAtOnce = 32
	ringTimeout = 500 * time.Millisecond
	awayFor     = time.Second // after a failure, how long not to try
)

// NewDoorbell makes a doorbell on a Redis from [OpenRedis]. metrics and log may be nil.
func NewDoorbell(r redis.UniversalClient, metrics *Metrics, log *slog.Logger) *Doorbell {
	if metrics == nil {
		metrics = NewMetrics(nil)
	}
	d := &Doorbell{queue: newQueue(r, metrics), log: logOr(log), slots: make(chan struct{}, ringsAtOnce)}
	d.closing, d.stop = context.WithCancel(context.Background())
	return d
}

// Ring enqueues the rows in a goroutine of its own and returns at once; it has the form of
// approvals.Options.Woke. The caller's transaction is committed.
func (d *Doorbell) Ring(items []approvals.OutboxItem) {
	if len(items) == 0 || time.Now().UnixNano() < d.awayTil.Load() {
		return
	}
	select {
	case d.slots <- struct{}{}:
	default:
		return // enough are under way; the relay takes the rest
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		<-d.slots
		return
	}
	d.ringing.Add(1)
	go func() {
		defer d.ringing.Done()
		defer func() { <-d.slots }()
		ctx, cancel := context.WithTimeout(d.closing, ringTimeout)
		defer cancel()
		// A crash here, or a failure: the rows are in the outbox, the relay dispatches them.
		if _, err := d.queue.enqueueAll(ctx, items); err != nil && d.closing.Err() == nil {
			d.awayTil.Store(time.Now().Add(awayFor).UnixNano())
			d.log.Debug("the doorbell did not ring; the relay will", "rows", len(items))
		}
	}()
}

// Close stops ringing and waits for what is under way, half a second at most.
func (d *Doorbell) Close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.stop()
	d.ringing.Wait()
}

func logOr(log *slog.Logger) *slog.Logger {
	if log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return log
}
