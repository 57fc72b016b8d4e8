package worker

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/holdpoint/holdpoint/approvals"
)

// Sweeps is the part of the core that the sweeper needs.
type Sweeps interface {
	// Sweep handles up to limit rows that are due: expires, and rings again what should be
	// running. Safe to run from any number of processes.
	Sweep(ctx context.Context, limit int) (approvals.SweepReport, error)
	// Undelivered counts the runs that could not be told.
	Undelivered(ctx context.Context) (approvals.Undelivered, error)
}

// sweeper is what makes a lost task harmless: Redis may forget everything, and within one
// interval Postgres has rung for all that should run (L3).
type sweeper struct {
	core    Sweeps
	every   time.Duration
	log     *slog.Logger
	metrics *Metrics
}

const (
	sweepBatch   = 200
	sweepTimeout = 10 * time.Second
	sweepsInRow  = 50 // then the others get a turn
	countEvery   = time.Minute
)

// run sweeps at once, and then at intervals that differ from process to process.
func (s *sweeper) run(ctx context.Context) {
	failing := false
	var counted time.Time
	for {
		err := s.drain(ctx)
		if counted.IsZero() || time.Since(counted) >= countEvery {
			counted = time.Now()
			s.count(ctx)
		}
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			s.metrics.sweepFailures.Inc()
			if !failing {
				s.log.Warn("the sweep failed; what is due waits", "every", s.every)
			}
		case failing:
			s.log.Info("the sweep works again")
		}
		failing = err != nil
		spread := rand.N(s.every/4 + 1) //nolint:gosec // keeps processes apart; nothing to guess
		if !wait(ctx, s.every-s.every/8+spread) {
			return
		}
	}
}

// count says how many runs could not be told. A count that fails leaves the last one: Postgres is what there is to mend then.
func (s *sweeper) count(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, sweepTimeout)
	defer cancel()
	if n, err := s.core.Undelivered(ctx); err == nil {
		s.metrics.undelivered(n)
	}
}

// drain sweeps until less than a batch was due.
func (s *sweeper) drain(ctx context.Context) error {
	for range sweepsInRow {
		once, cancel := context.WithTimeout(ctx, sweepTimeout)
		report, err := s.core.Sweep(once, sweepBatch)
		cancel()
		if err != nil {
			return err
		}
		s.metrics.swept(report)
		if max(report.Looked, report.Resumes, report.Cards) < sweepBatch {
			return nil
		}
	}
	return nil
}
