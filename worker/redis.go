package worker

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// ErrRedisURL is an address that is no Redis URL. The text does not repeat it: it may hold
// a password.
var ErrRedisURL = errors.New("the Redis address is not a redis://, rediss:// or unix:// URL")

// OpenRedis gives a client as this package needs it: contexts bound every call, nothing is
// retried inside (a doorbell that takes seconds to fail would hold up what rang it), and a
// Redis that is away costs its callers a short pause and no busy loop. It does not
// connect. The error is [ErrRedisURL].
func OpenRedis(url string) (redis.UniversalClient, error) {
	o, err := redis.ParseURL(url)
	if err != nil {
		return nil, ErrRedisURL
	}
	quiet()
	o.ContextTimeoutEnabled = true
	o.MaxRetries = -1
	o.DialTimeout = time.Second
	o.DialerRetries = 1
	o.ReadTimeout, o.WriteTimeout = 2*time.Second, 2*time.Second
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	client := redis.NewClient(o)
	client.AddHook(calm{})
	return client, nil
}

// quiet turns off go-redis' own lines on standard error: every error reaches a caller, who
// logs it once, structured.
var quiet = sync.OnceFunc(func() { redis.SetLogger(silent{}) })

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// pauseWhenAway is how long a call waits that found no Redis.
const pauseWhenAway = 100 * time.Millisecond

// calm slows down callers that find no Redis: Asynq's dequeue loop tries again at once,
// which would cost a core for as long as Redis is away.
type calm struct{}

func (calm) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (calm) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		pauseIfAway(ctx, err)
		return err
	}
}

func (calm) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		pauseIfAway(ctx, err)
		return err
	}
}

func pauseIfAway(ctx context.Context, err error) {
	var reply redis.Error // Redis answered: also redis.Nil
	if err == nil || errors.As(err, &reply) && !redis.HasErrorPrefix(err, "LOADING") {
		return
	}
	wait(ctx, pauseWhenAway)
}

// wait returns after d, or false when the context ended first.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
