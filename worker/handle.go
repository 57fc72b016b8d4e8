package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/google/uuid"
	"github.com/hibiken/asynq"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/approvals/crashpoint"
)

// Cards makes an approval's card match its row; bot satisfies it. An error with a
// `RetryAfter() time.Duration` is no failure: the task comes back after that time.
type Cards interface {
	Sync(ctx context.Context, id approvals.ID) error
}

// later is a task that is fine, only not now.
type later struct{ after time.Duration }

func (later) Error() string { return "not now; comes back later" }

var errPanicked = errors.New("the handler panicked")

// handler dispatches tasks to their handlers. Only fixed errors go back to Asynq, which
// stores them in Redis.
type handler struct {
	execute *executor
	courier *courier
	cards   Cards
	cardSem chan struct{}
	base    context.Context // ends at a hard stop
	running *inflight
	log     *slog.Logger
	metrics *Metrics
}

// ProcessTask implements asynq.Handler.
func (h *handler) ProcessTask(ctx context.Context, task *asynq.Task) (err error) {
	name := task.Type()
	defer func() {
		if p := recover(); p != nil {
			// The value may hold anything; its type and the stack say enough.
			h.log.Error("a task panicked", subjectOf(task), "kind", name, "panic", fmt.Sprintf("%T", p), "stack", string(debug.Stack()))
			err = errPanicked
		}
		h.metrics.tasks.WithLabelValues(label(name), resultOf(err)).Inc()
	}()
	if !h.running.enter() {
		return later{time.Second} // the process is ending: it stays in Redis for another
	}
	defer h.running.leave()
	subject, err := uuid.ParseBytes(task.Payload())
	if err != nil {
		h.log.Warn("a task without a readable id was dropped", "kind", label(name))
		return nil // not one of ours: Redis alone causes nothing (I28)
	}
	switch name {
	case approvals.OutboxExecute:
		// Not the task's context: it ends when Redis loses sight of the task.
		return h.execute.run(h.base, approvals.ID(subject))
	case approvals.OutboxResume:
		return h.courier.run(h.base, subject)
	case approvals.OutboxCard:
		return h.card(ctx, approvals.ID(subject))
	}
	h.log.Warn("a task of an unknown kind was dropped")
	return nil
}

// card syncs one card. Cards wait for Slack's rates; they never take all the hands, so that
// a burst of them can't keep runs from being told.
func (h *handler) card(ctx context.Context, id approvals.ID) error {
	select {
	case h.cardSem <- struct{}{}:
		defer func() { <-h.cardSem }()
	default:
		return later{time.Second}
	}
	// A crash here: the card is behind its row. The task comes back, or the sweeper rings.
	crashpoint.At("card.begun")
	err := h.cards.Sync(ctx, id)
	// A crash here: the card is right, and the next run finds nothing to do.
	crashpoint.At("card.synced")
	var slow interface{ RetryAfter() time.Duration }
	switch {
	case err == nil, errors.Is(err, approvals.ErrNotFound):
		return nil
	case errors.As(err, &slow):
		return later{min(max(slow.RetryAfter(), time.Second), 10*time.Minute)}
	}
	h.log.Warn("a card could not be synced", approvals.LogIDs(id, "", "", ""), "error", sentence(err))
	return errAgain
}

// subjectOf names in a log line what a task is about.
func subjectOf(task *asynq.Task) slog.Attr {
	id, err := uuid.ParseBytes(task.Payload())
	switch {
	case err != nil:
		return slog.Attr{} // not one of ours; handlers of slog leave it out
	case task.Type() == approvals.OutboxResume:
		return slog.String("pause", id.String())
	}
	return approvals.LogIDs(approvals.ID(id), "", "", "")
}

// label keeps a task's type from becoming a label of its own.
func label(kind string) string {
	if _, known := kinds[kind]; known {
		return kind
	}
	return "unknown"
}

func resultOf(err error) string {
	var wait later
	switch {
	case err == nil:
		return "done"
	case errors.As(err, &wait):
		return "later"
	case errors.Is(err, errPanicked):
		return "panic"
	}
	return "again"
}

// retryDelay is 1, 2, 4 … 60 s, or what the task asked for.
func retryDelay(n int, err error, _ *asynq.Task) time.Duration {
	var wait later
	if errors.As(err, &wait) {
		return wait.after
	}
	return min(time.Second<<min(n, 6), time.Minute)
}

// isFailure keeps a task that only waits from using up its tries.
func isFailure(err error) bool {
	var wait later
	return err != nil && !errors.As(err, &wait)
}

// asynqLog passes Asynq's lines on. They name tasks and Redis' errors; ours among them are
// fixed texts.
type asynqLog struct{ log *slog.Logger }

func (l asynqLog) Debug(args ...any) { l.log.Debug(fmt.Sprint(args...)) }
func (l asynqLog) Info(args ...any)  { l.log.Debug(fmt.Sprint(args...)) }
func (l asynqLog) Warn(args ...any)  { l.log.Warn(fmt.Sprint(args...)) }
func (l asynqLog) Error(args ...any) { l.log.Error(fmt.Sprint(args...)) }
func (l asynqLog) Fatal(args ...any) { l.log.Error(fmt.Sprint(args...)) }
