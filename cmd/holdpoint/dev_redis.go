package main

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// redis starts one in this process and drives its clock, so that keys lapse as in a real one.
func (d *dev) redis(ctx context.Context) (string, error) {
	r := miniredis.NewMiniRedis()
	if err := r.Start(); err != nil {
		return "", fmt.Errorf("in-process Redis: %w", err)
	}
	tick := time.NewTicker(time.Second)
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				r.FastForward(time.Second)
			}
		}
	}()
	d.undo = append(d.undo, func() { cancel(); tick.Stop(); r.Close() })
	d.empty = emptyQueues{r.Exists}
	return "redis://" + r.Addr(), nil
}

// emptyQueues answers Asynq's look into a queue without asking, while there is nothing in it. The look is a script, several hundred
// times a second, and a script costs an in-process Redis a Lua machine each time: most of what an idle `dev` burned.
type emptyQueues struct{ exists func(key string) bool }

// DialHook changes nothing.
func (emptyQueues) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

// ProcessHook answers what needs no Redis.
func (q emptyQueues) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if pending, ok := dequeues(cmd); ok && !q.exists(pending) {
			cmd.SetErr(redis.Nil)
			return redis.Nil
		}
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook changes nothing.
func (emptyQueues) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// dequeues knows Asynq's dequeue by its keys (internal/rdb: pending, paused, active, lease) and returns the list that it takes from.
func dequeues(cmd redis.Cmder) (pending string, ok bool) {
	args := cmd.Args()
	if len(args) < 7 || (cmd.Name() != "evalsha" && cmd.Name() != "eval") || fmt.Sprint(args[2]) != "4" {
		return "", false
	}
	pending, _ = args[3].(string)
	for i, suffix := range []string{":pending", ":paused", ":active", ":lease"} {
		key, isText := args[3+i].(string)
		if !isText || !strings.HasSuffix(key, suffix) {
			return "", false
		}
	}
	return pending, true
}
