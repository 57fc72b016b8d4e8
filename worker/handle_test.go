package worker

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/hibiken/asynq"

	"github.com/holdpoint/holdpoint/approvals"
)

func newHandler(t *testing.T, s Cards, hands int) *handler {
	t.Helper()
	return &handler{
		cards: s, cardSem: make(chan struct{}, hands), base: t.Context(), running: newInflight(),
		log: slog.New(slog.DiscardHandler), metrics: NewMetrics(nil),
	}
}

func cardTask() *asynq.Task {
	return asynq.NewTask(approvals.OutboxCard, []byte(uuid.NewString()))
}

type slow time.Duration

func (slow) Error() string               { return "rate limited" }
func (s slow) RetryAfter() time.Duration { return time.Duration(s) }

// What a card's sync says decides when its task comes back.
func TestCardErrors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err     error
		result  string
		delay   time.Duration
		failure bool
	}{
		"done":              {nil, "done", 0, false},
		"gone":              {approvals.ErrNotFound, "done", 0, false},
		"failed":            {errDatabase, "again", 4 * time.Second, true},
		"rate limited":      {slow(30 * time.Second), "later", 30 * time.Second, false},
		"rate limited, 0":   {slow(0), "later", time.Second, false},
		"rate limited, 1 h": {slow(time.Hour), "later", 10 * time.Minute, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHandler(t, cards(func(context.Context, approvals.ID) error { return c.err }), 1)
			err := h.ProcessTask(t.Context(), cardTask())
			if got := resultOf(err); got != c.result {
				t.Errorf("%v is %q, want %q", err, got, c.result)
			}
			if err != nil {
				noCanary(t, err.Error())
				if d := retryDelay(2, err, nil); d != c.delay {
					t.Errorf("comes back after %s, want %s", d, c.delay)
				}
			}
			if isFailure(err) != c.failure {
				t.Errorf("failure: %v", !c.failure)
			}
		})
	}
}

// Cards never take all the hands.
func TestCardsLeaveHandsFree(t *testing.T) {
	t.Parallel()
	begun, release := make(chan struct{}), make(chan struct{})
	h := newHandler(t, cards(func(context.Context, approvals.ID) error {
		begun <- struct{}{}
		<-release
		return nil
	}), 1)
	first := make(chan error, 1)
	go func() { first <- h.ProcessTask(t.Context(), cardTask()) }()
	<-begun
	var wait later
	if err := h.ProcessTask(t.Context(), cardTask()); !errors.As(err, &wait) {
		t.Errorf("a second card: %v", err)
	}
	close(release)
	if err := <-first; err != nil {
		t.Error(err)
	}
}

// What is not ours is dropped; a process that ends begins nothing.
func TestDroppedTasks(t *testing.T) {
	t.Parallel()
	h := newHandler(t, cards(func(context.Context, approvals.ID) error { return errDatabase }), 1)
	for _, task := range []*asynq.Task{
		asynq.NewTask(approvals.OutboxCard, nil), asynq.NewTask(approvals.OutboxExecute, []byte("x")), asynq.NewTask("other", []byte(uuid.NewString())),
	} {
		if err := h.ProcessTask(t.Context(), task); err != nil {
			t.Errorf("%s: %v", task.Type(), err)
		}
	}
	<-h.running.close()
	var wait later
	if err := h.ProcessTask(t.Context(), cardTask()); !errors.As(err, &wait) {
		t.Errorf("after the end: %v", err)
	}
}

func TestRetryDelay(t *testing.T) {
	t.Parallel()
	var last time.Duration
	for n := range 100 {
		d := retryDelay(n, errAgain, nil)
		if d < last || d < time.Second || d > time.Minute {
			t.Errorf("try %d: %s after %s", n, d, last)
		}
		last = d
	}
}
