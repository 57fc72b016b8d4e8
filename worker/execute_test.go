package worker

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/worker/tools"
)

const testLease = 30 * time.Second

// execution runs one operation of a fresh core in a bubble of fake time.
func execution(c *core, f *tool) (*executor, *bytes.Buffer) {
	var log bytes.Buffer
	return &executor{core: c, tool: f, holder: "test", lease: testLease, log: slog.New(slog.NewJSONHandler(&log, nil)), metrics: NewMetrics(nil)}, &log
}

func TestExecute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, f := newCore(), newTool(nil)
		id, _ := c.approve()
		x, log := execution(c, f)
		for range 3 { // a task may come any number of times
			if err := x.run(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
		if f.total() != 1 || !c.ops[id].done || c.ops[id].outcome.Class != approvals.OutcomeSucceeded {
			t.Errorf("%d effects, %+v", f.total(), c.ops[id])
		}
		if err := x.run(t.Context(), approvals.NewID()); err != nil {
			t.Errorf("an id that is nobody's: %v", err)
		}
		noCanary(t, log.String())
	})
}

func noCanary(t *testing.T, text string) {
	t.Helper()
	if strings.Contains(text, canary) {
		t.Errorf("leaked: %s", text)
	}
}

// The claim fails: nothing is executed, and Redis learns a fixed text.
func TestClaimFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, f := newCore(), newTool(nil)
		id, _ := c.approve()
		c.claimErr = func(int) error { return errDatabase }
		x, log := execution(c, f)
		if err := x.run(t.Context(), id); err != errAgain { //nolint:errorlint // the very value: Redis stores its text
			t.Errorf("error %v", err)
		}
		if f.total() != 0 {
			t.Error("executed without a claim")
		}
		noCanary(t, log.String())
	})
}

// A lookup comes first and alone: what it proves is recorded, and nothing is executed under
// its claim. It needs no renewal: its lease may be an old one.
func TestLookupFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, f := newCore(), newTool(nil)
		id, _ := c.approve()
		c.ops[id].lookup = true
		c.renewErr = func(int) error { return approvals.ErrStale }
		x, _ := execution(c, f)
		if err := x.run(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if f.lookups != 1 || f.total() != 0 || c.ops[id].outcome.Class != approvals.OutcomeAbsent || c.renewals != 0 {
			t.Errorf("%d lookups, %d effects, %v, %d renewals", f.lookups, f.total(), c.ops[id].outcome.Class, c.renewals)
		}
	})
}

// The result must not get lost: Postgres may be away for as long as the lease holds, which
// goes on being renewed meanwhile.
func TestRecordOutlastsPostgres(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]error{"away": approvals.ErrUnavailable, "an error": errDatabase} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c, f := newCore(), newTool(nil)
				id, _ := c.approve()
				began := time.Now()
				c.recordErr = func(int) error {
					if time.Since(began) < 3*testLease {
						return away
					}
					return nil
				}
				x, log := execution(c, f)
				if err := x.run(t.Context(), id); err != nil {
					t.Fatal(err)
				}
				if f.total() != 1 || !c.ops[id].done || c.renewals == 0 || c.claims != 1 {
					t.Errorf("%d effects, done %v, %d renewals, %d claims", f.total(), c.ops[id].done, c.renewals, c.claims)
				}
				noCanary(t, log.String())
			})
		})
	}
}

// When nothing can be written at all, not even renewals, the task ends soon after the lease:
// the operation is taken over like after a kill.
func TestRecordGivesUpAfterTheLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, f := newCore(), newTool(nil)
		id, _ := c.approve()
		c.recordErr = func(int) error { return errDatabase }
		c.renewErr = func(int) error { return errDatabase }
		x, log := execution(c, f)
		began := time.Now()
		if err := x.run(t.Context(), id); !errors.Is(err, errAgain) {
			t.Errorf("error %v", err)
		}
		if took := time.Since(began); took < testLease*3/4 || took > testLease+recordTimeout {
			t.Errorf("took %s", took)
		}
		noCanary(t, log.String())
	})
}

// I16: another holder has the operation. The late outcome is dropped, once.
func TestStaleOutcome(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, f := newCore(), newTool(nil)
		id, _ := c.approve()
		c.recordErr = func(int) error { return approvals.ErrStale }
		x, _ := execution(c, f)
		if err := x.run(t.Context(), id); err != nil {
			t.Errorf("error %v: trying again would change nothing", err)
		}
		if c.records != 1 {
			t.Errorf("%d tries", c.records)
		}
	})
}

// A tool that takes longer than its lease keeps it by renewals.
func TestLongToolKeepsItsLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCore()
		f := newTool(func(ctx context.Context, call tools.Call) approvals.Outcome {
			if !wait(ctx, 10*testLease) || !call.Live() {
				return approvals.Outcome{Class: approvals.OutcomeUnknown}
			}
			return succeeded
		})
		id, _ := c.approve()
		c.renewErr = func(n int) error { // one failure in between is no loss
			if n == 5 {
				return approvals.ErrUnavailable
			}
			return nil
		}
		x, _ := execution(c, f)
		if err := x.run(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if c.ops[id].outcome.Class != approvals.OutcomeSucceeded || c.renewals < 30 {
			t.Errorf("%v after %d renewals", c.ops[id].outcome.Class, c.renewals)
		}
	})
}

// A lease that is lost ends the tool's context before the database would give it away.
func TestLostLeaseStopsTheTool(t *testing.T) {
	t.Parallel()
	for name, c0 := range map[string]struct {
		renew  func(int) error
		within time.Duration
	}{
		"taken by another":  {func(int) error { return approvals.ErrStale }, testLease/3 + time.Second},
		"cannot be renewed": {func(int) error { return approvals.ErrUnavailable }, testLease - 3*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := newCore()
				began := time.Now()
				var stopped time.Duration
				var cause error
				f := newTool(func(ctx context.Context, call tools.Call) approvals.Outcome {
					<-ctx.Done()
					stopped, cause = time.Since(began), context.Cause(ctx)
					if call.Live() {
						t.Error("still live")
					}
					return approvals.Outcome{Class: approvals.OutcomeUnknown}
				})
				id, _ := c.approve()
				c.renewErr = c0.renew
				x, _ := execution(c, f)
				if err := x.run(t.Context(), id); err != nil {
					t.Fatal(err)
				}
				if stopped == 0 || stopped > c0.within || !errors.Is(cause, errLeaseLost) {
					t.Errorf("stopped after %s (%v), want within %s", stopped, cause, c0.within)
				}
			})
		})
	}
}

// A process that was stopped and continued: its clock went on, so nothing more may leave,
// although no renewal has told it so yet. And a late renewal does not bring it back.
func TestNotLiveAfterAStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		ctx, k := keepLease(t.Context(), time.Now(), testLease, func(context.Context) error {
			<-release // the renewal's answer is what was stopped
			return nil
		})
		defer k.stopped()
		wait(t.Context(), 2*testLease)
		if k.live() || ctx.Err() == nil {
			t.Error("live after its end")
		}
		close(release)
		synctest.Wait()
		if k.live() {
			t.Error("live again")
		}
	})
}

// A hard stop ends the tool and not the recording: what is known then is kept.
func TestHardStopRecords(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCore()
		base, stop := context.WithCancel(t.Context())
		f := newTool(func(ctx context.Context, _ tools.Call) approvals.Outcome {
			stop()
			<-ctx.Done()
			return approvals.Outcome{Class: approvals.OutcomeUnknown}
		})
		id, _ := c.approve()
		x, _ := execution(c, f)
		if err := x.run(base, id); err != nil {
			t.Fatal(err)
		}
		if c.ops[id].outcome.Class != approvals.OutcomeUnknown {
			t.Errorf("recorded %v", c.ops[id].outcome)
		}
	})
}

// A tool that panics may have sent something: unknown, recorded at once, nothing told.
func TestPanickingTool(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, f := newCore(), newTool(func(context.Context, tools.Call) approvals.Outcome { panic(canary) })
		id, _ := c.approve()
		x, log := execution(c, f)
		if err := x.run(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if c.ops[id].outcome.Class != approvals.OutcomeUnknown {
			t.Errorf("recorded %v", c.ops[id].outcome)
		}
		noCanary(t, log.String()+c.ops[id].outcome.Error)
	})
}

// stalling is a core whose claim's answer comes late: the process was stopped, or the network.
type stalling struct {
	*core
	stall time.Duration
}

func (c stalling) Claim(ctx context.Context, id approvals.ID, o approvals.ClaimOptions) (approvals.Claim, error) {
	claim, err := c.core.Claim(ctx, id, o)
	wait(ctx, c.stall)
	return claim, err
}

// I13, I19: a request leaves within a bound from its claim, whatever happened between the claim's commit and the tool.
func TestSendByIsCountedFromTheClaim(t *testing.T) {
	t.Parallel()
	for _, stall := range []time.Duration{0, 10 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			c := newCore()
			var sendBy time.Time
			f := newTool(func(_ context.Context, call tools.Call) approvals.Outcome {
				sendBy = call.SendBy
				return succeeded
			})
			id, _ := c.approve()
			x, _ := execution(c, f)
			x.core = stalling{c, stall}
			claimed := time.Now()
			if err := x.run(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			if got := sendBy.Sub(claimed); got != approvals.SendWithin {
				t.Errorf("after a stall of %s it may leave until %s after the claim", stall, got)
			}
		})
	}
}
