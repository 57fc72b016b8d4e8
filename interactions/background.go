package interactions

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// background runs what comes after an answer: a bounded number at once, each bounded in time, none of it needed for
// anything to be right.
type background struct {
	slots chan struct{}
	wg    sync.WaitGroup
	log   *slog.Logger
}

// backgroundTime covers Slack's longest wait on the way to a person's eye.
const backgroundTime = 20 * time.Second

func newBackground(n int, log *slog.Logger) *background {
	return &background{slots: make(chan struct{}, n), log: log}
}

func (b *background) start(f func(context.Context)) {
	select {
	case b.slots <- struct{}{}:
	default:
		b.log.Warn("too much is being done after answers; something was left to the outbox")
		return
	}
	b.wg.Go(func() {
		defer func() {
			<-b.slots
			if p := recover(); p != nil {
				b.log.Error("what comes after an answer panicked") // the value may hold what somebody typed
			}
		}()
		ctx, cancel := context.WithTimeout(context.Background(), backgroundTime)
		defer cancel()
		f(ctx)
	})
}

func (b *background) done(ctx context.Context) error {
	end := make(chan struct{})
	go func() { b.wg.Wait(); close(end) }()
	select {
	case <-end:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
