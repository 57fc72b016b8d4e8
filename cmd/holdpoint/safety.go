package main

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/holdpoint/holdpoint/approvals"
)

// safetyWatch looks for rows that must not exist and counts each once (holdpoint_safety_violation_total). It repairs nothing.
//
// Each minute it looks at what changed since the last look that succeeded, of whatever age, and at all that is not over. Once a day it
// looks at everything: what somebody did in the database leaves no event.
type safetyWatch struct {
	core    violations
	metrics *coreMetrics
	log     *slog.Logger
	now     func() time.Time
	after   func(time.Duration) <-chan time.Time

	seen  time.Time // when the last look that succeeded began
	whole time.Time // when all is looked at next
	known map[approvals.Violation]bool
}

// violations is the core's search: within 0 is everything.
type violations interface {
	Violations(ctx context.Context, within time.Duration) ([]approvals.Violation, error)
}

const (
	safetyEvery  = time.Minute
	safetyMargin = 10 * time.Minute // more than a transaction, or a difference of clocks, may hide an event from the look before
	safetyWhole  = 24 * time.Hour
)

func newSafetyWatch(core violations, m *coreMetrics, log *slog.Logger) *safetyWatch {
	w := &safetyWatch{core: core, metrics: m, log: log, now: time.Now, after: time.After, known: map[approvals.Violation]bool{}}
	w.seen = w.now()
	// A process that lives for less than a day looks at everything, too; workers that start together do so one after the other.
	w.whole = w.seen.Add(safetyMargin + rand.N(time.Hour)) //nolint:gosec // spreads load
	return w
}

func (w *safetyWatch) run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.after(safetyEvery):
		}
		w.look(ctx)
	}
}

// look looks once. A look that failed is made up for: the next one reaches back to the last that did not.
func (w *safetyWatch) look(ctx context.Context) {
	began := w.now()
	within := began.Sub(w.seen) + safetyMargin
	if !began.Before(w.whole) {
		within = 0
	}
	found, err := w.core.Violations(ctx, within)
	for _, v := range found {
		if !w.known[v] {
			w.known[v] = true
			w.metrics.violations.WithLabelValues(v.Kind).Inc()
			w.log.Error("SAFETY VIOLATION: a row that must not exist", "kind", v.Kind, "id", v.ID)
		}
	}
	switch {
	case ctx.Err() != nil:
	case err != nil:
		w.log.Warn("the safety check could not run", "error", err)
	default:
		w.seen = began
		if within == 0 {
			w.whole = began.Add(safetyWhole)
		}
	}
}
