package worker

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdpoint/holdpoint/approvals"
)

// leaseKeeper holds one lease while a tool runs. It renews in time, ends the tool's context
// when the lease is lost, and answers whether it is certainly still held.
//
// The end is counted on this process's monotonic clock from before the statement that took
// the lease was sent, so that it comes earlier than the database's, whatever the clocks say.
// A margin of an eighth is kept on top: what is sent last must also arrive.
type leaseKeeper struct {
	renew func(context.Context) error
	held  time.Duration

	mu   sync.Mutex
	ends time.Time // on our clock, margin taken off
	lost bool      // for good

	cancel context.CancelCauseFunc // the tool
	stop   context.CancelFunc      // the renewing
	ended  chan struct{}
}

// errLeaseLost is the cause of a tool's context that ended with its lease.
var errLeaseLost = errors.New("the lease was lost")

// keepLease starts keeping a lease that was taken no earlier than began. The returned
// context is the tool's. stopped must be called.
func keepLease(ctx context.Context, began time.Time, held time.Duration, renew func(context.Context) error) (tool context.Context, k *leaseKeeper) {
	tool, cancel := context.WithCancelCause(ctx)
	// Renewing goes on after a hard stop, until the outcome is recorded.
	renewing, stop := context.WithCancel(context.WithoutCancel(ctx))
	k = &leaseKeeper{renew: renew, held: held, ends: began.Add(held - held/8), cancel: cancel, stop: stop, ended: make(chan struct{})}
	go k.run(renewing)
	return tool, k
}

// live says that the lease is certainly held now. Once false it stays false.
func (k *leaseKeeper) live() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.lost && !time.Now().Before(k.ends) {
		k.loseLocked()
	}
	return !k.lost
}

// end is when the lease ends unless it is renewed once more.
func (k *leaseKeeper) end() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.ends
}

func (k *leaseKeeper) lose() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.loseLocked()
}

func (k *leaseKeeper) loseLocked() {
	k.lost = true
	k.cancel(errLeaseLost)
}

// stopped ends the keeping, not the lease.
func (k *leaseKeeper) stopped() {
	k.stop()
	<-k.ended
	k.cancel(nil)
}

// run renews at each third of the lease, more often after a failure, and gives up when
// somebody else has it or its end has come.
func (k *leaseKeeper) run(ctx context.Context) {
	defer close(k.ended)
	pause := k.held / 3
	for {
		timer := time.NewTimer(min(pause, max(time.Until(k.end()), 0)))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		if !k.live() {
			return
		}
		began := time.Now()
		once, cancel := context.WithDeadline(ctx, k.end())
		err := k.renew(once)
		cancel()
		switch {
		case err == nil:
			k.extend(began)
			pause = k.held / 3
		case errors.Is(err, approvals.ErrStale), errors.Is(err, approvals.ErrNotFound):
			k.lose()
			return
		default:
			pause = k.held / 12
		}
	}
}

func (k *leaseKeeper) extend(began time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.lost {
		k.ends = began.Add(k.held - k.held/8)
	}
}
