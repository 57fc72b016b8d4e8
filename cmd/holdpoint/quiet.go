package main

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// quietly wraps a log: of what Asynq warns of, the same line comes once a minute at most, and while Redis can't be reached there is
// one line for all of its loops, which say so several times a second. Every other component's lines pass.
func quietly(h slog.Handler, now func() time.Time) slog.Handler {
	return quiet{Handler: h, now: now, said: &saidLines{lines: map[string]*saidLine{}}}
}

type quiet struct {
	slog.Handler
	now   func() time.Time
	asynq bool
	said  *saidLines
}

// saidLines are shared by all loggers made from one.
type saidLines struct {
	mu    sync.Mutex
	lines map[string]*saidLine
}

type saidLine struct {
	at   time.Time
	left int // since then
}

const sayEvery = time.Minute

// Handle passes a record on, unless its like was just said.
func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	if !q.asynq || r.Level < slog.LevelWarn {
		return q.Handler.Handle(ctx, r)
	}
	key := r.Message
	if unreachable(r.Message) {
		key = "unreachable"
		// One loop's error stands for all of them.
		again := slog.NewRecord(r.Time, slog.LevelError, "Redis can't be reached; what is approved waits in the outbox and starts when it is back", r.PC)
		again.AddAttrs(slog.String("error", r.Message))
		r = again
	}
	left, ok := q.said.may(key, q.now())
	if !ok {
		return nil
	}
	if left > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("left_out", left))
	}
	return q.Handler.Handle(ctx, r)
}

// may says whether a line is due, and how many of its like were left out since the last one.
func (s *saidLines) may(key string, now time.Time) (left int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lines[key]
	if l == nil {
		if len(s.lines) >= 1_000 { // messages may name tasks
			clear(s.lines)
		}
		s.lines[key] = &saidLine{at: now}
		return 0, true
	}
	if now.Sub(l.at) < sayEvery {
		l.left++
		return 0, false
	}
	left = l.left
	l.at, l.left = now, 0
	return left, true
}

// WithAttrs knows Asynq's own logger.
func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler {
	for _, a := range attrs {
		if a.Key == "component" {
			q.asynq = a.Value.String() == "asynq"
		}
	}
	q.Handler = q.Handler.WithAttrs(attrs)
	return q
}

// WithGroup keeps what is known.
func (q quiet) WithGroup(name string) slog.Handler {
	q.Handler = q.Handler.WithGroup(name)
	return q
}

// unreachable knows an error of the way to Redis by its words: Asynq hands on nothing else.
func unreachable(message string) bool {
	for _, words := range []string{"dial tcp", "connection refused", "connection reset", "broken pipe", "i/o timeout", "no such host", "EOF", "LOADING", "context deadline exceeded"} {
		if strings.Contains(message, words) {
			return true
		}
	}
	return false
}
