package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptrace"
	"runtime/debug"
	"time"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/approvals/crashpoint"
	"github.com/holdpoint/holdpoint/worker/tools"
)

// Ledger is the part of the core that an execution needs.
type Ledger interface {
	// Claim revalidates everything and takes the operation's lease, in one transaction.
	Claim(ctx context.Context, id approvals.ID, o approvals.ClaimOptions) (approvals.Claim, error)
	RenewLease(ctx context.Context, lease approvals.Lease, d time.Duration) (time.Time, error)
	// Record writes an outcome under the lease's fence; approvals.ErrStale when it is another's.
	Record(ctx context.Context, lease approvals.Lease, out approvals.Outcome) (approvals.View, error)
}

// executor runs one approved operation.
type executor struct {
	core    Ledger
	tool    tools.Tool
	holder  string
	lease   time.Duration
	log     *slog.Logger
	metrics *Metrics
}

const (
	claimTimeout  = 15 * time.Second // a claim may open blobs and refresh a group
	recordTimeout = 5 * time.Second  // one try
)

// errAgain is all that Redis learns of a failure: the task is tried again.
var errAgain = errors.New("not done yet; tried again later")

// run claims the operation, runs its tool and records the outcome. base ends at a hard stop
// only: losing Redis, and with it the task, must not tear a request in two.
//
// The windows, each with what a kill in it leads to (nothing here is undone by hand):
//
//	                        persisted              effect   recovered by
//	before the claim        approved               no       the sweeper rings again
//	claimed → first byte    executing, lease       no     ┐ when the lease is over, by retry class: idempotent is
//	sent → answered         executing, lease       maybe  ├ sent again under the key, queryable is looked up, opaque
//	answered → recorded     executing, lease       yes    ┘ becomes uncertain
//	recorded → task ack     the outcome            yes      the task comes again, and there is nothing to claim
func (x *executor) run(base context.Context, id approvals.ID) error {
	crashpoint.At("execute.dequeued")
	began := time.Now() // before the statement: our end of the lease is earlier than the database's
	ctx, cancel := context.WithTimeout(base, claimTimeout)
	claim, err := x.core.Claim(ctx, id, approvals.ClaimOptions{Holder: x.holder, Lease: x.lease})
	cancel()
	switch {
	case errors.Is(err, approvals.ErrNotFound):
		return nil
	case err != nil:
		// Its commit may have happened all the same: then the lease runs out, and the sweeper rings.
		x.log.Warn("claim failed", approvals.LogIDs(id, "", "", ""), "error", sentence(err))
		return errAgain
	case !claim.Go && !claim.LookupFirst:
		x.log.Debug("nothing to execute", approvals.LogIDs(id, "", "", ""), "why", claim.Why)
		return nil
	}
	// Durable from here: the intent, under a token and an epoch (I15).
	crashpoint.At("execute.claimed")
	if claim.Go && claim.FirstAttempt {
		x.metrics.started(claim.Waited)
	}
	outcome, until, done := x.call(base, began, claim)
	defer done()
	// The effect may have happened, and only this process knows how it ended.
	crashpoint.At("execute.answered")
	err = x.record(base, until, claim.Lease, outcome)
	// Durable from here: the outcome, its audit row, and the outbox rows that tell the card and the agent (I20, I25).
	crashpoint.At("execute.recorded")
	log := x.log.With(claim.LogIDs(), "tenant", claim.Lease.Tenant, "tool", claim.Tool.Name, "attempt", claim.Attempt, "epoch", claim.Lease.Epoch)
	switch {
	case err == nil:
		log.Info("executed", "outcome", outcome.Class, "lookup", claim.LookupFirst)
		return nil
	case errors.Is(err, approvals.ErrStale), errors.Is(err, approvals.ErrNotFound):
		// Somebody took over when our lease was over: what they find counts (I16).
		log.Warn("the outcome came too late; another holder has the operation", "outcome", outcome.Class)
		return nil
	}
	// The lease runs out, and the operation is taken over like after a kill.
	log.Error("the outcome could not be stored", "outcome", outcome.Class, "error", sentence(err))
	return errAgain
}

// call runs the tool, or its lookup when an earlier attempt may have arrived. A lookup never
// goes on to execute: what it proves is recorded first, and the core decides (a new claim).
// until tells when the lease ends; done, to be called after the outcome is recorded, ends its
// renewal.
func (x *executor) call(base context.Context, began time.Time, claim approvals.Claim) (out approvals.Outcome, until func() time.Time, done func()) {
	call := tools.Call{
		Tool: claim.Tool, Tenant: claim.Tenant, OperationKey: claim.OperationKey, Arguments: claim.Arguments,
		TargetVersion: claim.TargetVersion, FirstAttempt: claim.FirstAttempt, Settled: true,
	}
	start := time.Now()
	if claim.LookupFirst {
		// No effect, so nothing to fence; and the lease may be an old one, kept for late evidence,
		// which can't be renewed. The claim came after timeout + settle.
		out = x.guarded(base, call, x.tool.Lookup)
		x.metrics.toolCalled("lookup", out.Class, time.Since(start))
		end := start.Add(recordTimeout)
		return out, func() time.Time { return end }, func() {}
	}
	ctx, keeper := keepLease(base, began, x.lease, func(ctx context.Context) error {
		_, err := x.core.RenewLease(ctx, claim.Lease, x.lease)
		return err
	})
	// Sent, and surely arrived: WroteRequest comes before the transport flushes, when nothing has left yet.
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotFirstResponseByte: func() { crashpoint.At("execute.sent") }})
	call.Live = keeper.live
	if claim.Tool.HTTP != nil {
		// A lookup is believed, and a key is sent again, by the time of the claim: nothing may leave
		// later than that allows, also when this process was stopped for a while under a living lease.
		taken := claim.Taken
		if taken.IsZero() {
			taken = began
		}
		call.SendBy = taken.Add(approvals.SendWithin)
	}
	out = x.guarded(ctx, call, x.tool.Execute)
	x.metrics.toolCalled("execute", out.Class, time.Since(start))
	return out, keeper.end, keeper.stopped
}

// guarded turns a panic of a tool into what it is: nobody knows. Recorded at once, it is
// taken over at once, and the lease is not renewed for a call that is over.
func (x *executor) guarded(ctx context.Context, call tools.Call, run func(context.Context, tools.Call) approvals.Outcome) (out approvals.Outcome) {
	defer func() {
		if p := recover(); p != nil {
			x.log.Error("a tool panicked", approvals.LogIDs(approvals.ID{}, "", "", call.OperationKey), "tool", call.Tool.Name, "panic", fmt.Sprintf("%T", p), "stack", string(debug.Stack()))
			out = approvals.Outcome{Class: approvals.OutcomeUnknown, Error: "the call failed inside Holdpoint"}
		}
	}()
	return run(ctx, call)
}

// record stores the outcome; it must not get lost because Postgres is away for a moment. It
// tries until the lease ends, and once more after that: the fence decides what still counts.
// A hard stop of the process ends the tool, not this.
func (x *executor) record(base context.Context, until func() time.Time, lease approvals.Lease, out approvals.Outcome) error {
	ctx := context.WithoutCancel(base)
	rest := backoff{first: 50 * time.Millisecond, longest: 2 * time.Second}
	for last := false; ; {
		once, cancel := context.WithTimeout(ctx, recordTimeout)
		_, err := x.core.Record(once, lease, out)
		cancel()
		if err == nil || errors.Is(err, approvals.ErrStale) || errors.Is(err, approvals.ErrNotFound) || last {
			return err
		}
		left := time.Until(until())
		last = left <= 0 || base.Err() != nil
		wait(ctx, min(rest.next(), max(left, rest.first)))
	}
}

// sentence is what a log may say of an error: the core's sentinels by their text, anything
// else not at all. A driver's error can quote a statement's arguments (I24).
func sentence(err error) string {
	for _, known := range []error{approvals.ErrUnavailable, approvals.ErrCorrupt, approvals.ErrStale, approvals.ErrNotFound} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return "no answer in time"
	}
	return "internal"
}
