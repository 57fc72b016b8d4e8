package approvals

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdpoint/holdpoint/approvals/rules"
)

// OutcomeClass is what an attempt proved.
type OutcomeClass string

// The classes. Only what is proven is said; everything else is unknown.
const (
	OutcomeSucceeded     OutcomeClass = "succeeded"      // it happened
	OutcomeRefused       OutcomeClass = "refused"        // the tool definitely refused: no effect of this attempt
	OutcomeUnsent        OutcomeClass = "unsent"         // provably not sent
	OutcomeNoEffect      OutcomeClass = "no_effect"      // a documented answer that means: nothing was done, try again
	OutcomeUnknown       OutcomeClass = "unknown"        // sent, or maybe sent, without a definite answer
	OutcomeAbsent        OutcomeClass = "absent"         // a lookup proves that no attempt had an effect
	OutcomeTargetChanged OutcomeClass = "target_changed" // 412 on a first attempt with If-Match
)

// OutcomeClasses lists all of them.
var OutcomeClasses = []OutcomeClass{OutcomeSucceeded, OutcomeRefused, OutcomeUnsent, OutcomeNoEffect, OutcomeUnknown, OutcomeAbsent, OutcomeTargetChanged}

// Outcome is what came of an attempt or a lookup. Error and Receipt are redacted and fit for Slack and the audit.
type Outcome struct {
	Class   OutcomeClass
	Output  json.RawMessage // succeeded: the result, sealed and handed to the agent
	Error   string
	Receipt string
}

// Record writes an attempt's outcome under its fence, with the audit row and the outbox, in one transaction: the result is
// committed before anything is told and before the task is acknowledged (I20). A definite success needs one round trip.
//
// A kill before the commit leaves `executing` until the lease is over: the retry class decides. A kill after it leaves the result,
// which every later attempt reuses. When the commit's answer is lost, the same outcome is recorded again: the fence and the
// ledger's state make that harmless. ErrStale: another holder has the operation; nothing was written (I16).
func (s *Service) Record(ctx context.Context, l Lease, o Outcome) (View, error) {
	if o.Class == OutcomeSucceeded {
		v, hit, err := s.recordSuccess(ctx, l, o)
		if err == nil && hit {
			return v, nil
		}
		if err != nil && !errors.Is(err, errAmbiguous) {
			return View{}, unavailableUnlessAmbiguous(err)
		}
	}
	for try := 0; ; try++ {
		v, err := s.record(ctx, l, o, recorder{actor: System, surface: SurfaceSystem})
		if !errors.Is(err, errAmbiguous) || try == 2 {
			return v, err
		}
	}
}

// recordSuccess is the common end in one batch: lock, swap under the fence, commit.
func (s *Service) recordSuccess(ctx context.Context, l Lease, o Outcome) (View, bool, error) {
	result, err := s.sealResult(l.Tenant, l.ID, o.Output)
	if err != nil {
		return View{}, false, err
	}
	w := &swap{
		id: l.ID, from: []Status{Executing}, to: Completed, audited: Executing, kind: "execution.succeeded", actor: System, surface: SurfaceSystem,
		ledger: &ledgerSet{token: l.Token, epoch: l.Epoch, from: []LedgerState{Running}, to: Succeeded}, receipt: o.Receipt, result: result,
		settle: true, outbox: []string{OutboxCard}, detail: map[string]any{"epoch": l.Epoch, "receipt": o.Receipt},
	}
	c, err := s.work.Acquire(ctx)
	if err != nil {
		return View{}, false, unavailable(err)
	}
	defer c.Release()
	b := &pgx.Batch{}
	b.Queue(sqlBegin)
	var row *requestRow
	b.Queue(sqlLockRequest, l.ID).QueryRow(func(r pgx.Row) (err error) { row, err = scanRequest(r); return err })
	var done swapped
	if err := w.queue(b, &done); err != nil {
		return View{}, false, err
	}
	if err := finish(ctx, c.Conn(), b); err != nil || !done.hit {
		return View{}, false, err
	}
	s.wake(w, done)
	w.row = row
	s.account(ctx, w, row.createdAt)
	v := row.view()
	v.Status, v.Version, v.Receipt = Completed, done.version, o.Receipt
	return v, true, nil
}

// recorder is who reports an outcome.
type recorder struct {
	actor   Actor
	surface Surface
	agent   *Key // an agent's own report: only for its own operation
}

func (s *Service) record(ctx context.Context, l Lease, o Outcome, by recorder) (View, error) {
	recorded := false
	w := want{}
	if by.agent != nil {
		w.key = by.agent.ID
	}
	v, done, err := s.transition(ctx, s.work, l.ID, w, func(f *facts) (*swap, error) {
		w, err := s.outcome(f, l, o, by)
		recorded = err == nil && w == nil
		return w, err
	})
	if err == nil && !done && !recorded {
		return v, ErrStale
	}
	return v, err
}

// outcome turns what was proven into a transition. nil without an error: it is recorded already.
func (s *Service) outcome(f *facts, l Lease, o Outcome, by recorder) (*swap, error) {
	r, led := f.req, f.ledger
	if led == nil || led.token != l.Token || led.epoch != l.Epoch {
		return nil, ErrStale
	}
	if by.agent != nil {
		switch err := f.caller(*by.agent); {
		case errors.Is(err, ErrNotFound) || r.executor != string(rules.AgentExecutor):
			return nil, ErrNotFound
		case err != nil:
			return nil, errKeyRevoked
		}
	}
	switch {
	case reported(r, led, o.Class):
		return nil, nil // a lost answer, reported again
	case r.status != Executing && r.status != Uncertain:
		return nil, ErrStale
	}
	if tool := f.tenant.Tools[r.tool]; by.agent != nil && o.Error != "" && (tool == nil || len(tool.Redact) > 0) {
		o.Error = "the agent's words are not shown: the tool hides arguments" // they may repeat one (I24)
	}
	a := attempt{f: f, o: o, by: by}
	switch o.Class {
	case OutcomeSucceeded:
		result, err := s.sealResult(r.tenant, r.id, o.Output)
		if err != nil {
			return nil, err
		}
		w := a.move(Completed, "execution.succeeded", Succeeded, false)
		w.result, w.receipt, w.settle, w.outbox = result, o.Receipt, true, []string{OutboxCard}
		return w, nil
	case OutcomeAbsent:
		return a.absent(), nil
	case OutcomeRefused, OutcomeTargetChanged:
		if led.maybeEffect || r.status == Uncertain {
			return a.uncertain("refused now, but an earlier attempt may have had its effect"), nil
		}
		why := ReasonNoEffect
		if o.Class == OutcomeTargetChanged {
			why = ReasonTargetChanged
		}
		return a.failed(why), nil
	case OutcomeUnsent, OutcomeNoEffect:
		if led.maybeEffect || r.status == Uncertain {
			return a.again(), nil
		}
		return a.retry(), nil
	case OutcomeUnknown:
		return a.again(), nil
	}
	return nil, fmt.Errorf("no such outcome %q", o.Class)
}

// reported says that the row already tells what this outcome would write.
func reported(r *requestRow, led *ledgerRow, class OutcomeClass) bool {
	switch class {
	case OutcomeSucceeded:
		return r.status == Completed
	case OutcomeRefused, OutcomeTargetChanged:
		return r.status == Failed
	case OutcomeUnsent, OutcomeNoEffect, OutcomeAbsent:
		return r.status == Failed || r.status == Approved && led.state == FailedRetryable
	}
	return class == OutcomeUnknown && r.status == Uncertain // nothing new is known
}

// attempt is one outcome being written.
type attempt struct {
	f  *facts
	o  Outcome
	by recorder
}

func (a attempt) move(to Status, kind string, state LedgerState, maybe bool) *swap {
	led := a.f.ledger
	w := a.f.req.moves(to, kind, a.by.actor, a.by.surface)
	w.ledger = &ledgerSet{token: led.token, epoch: led.epoch, from: []LedgerState{led.state}, to: state, maybeEffect: maybe}
	if a.o.Error != "" {
		w.ledger.errorText = &a.o.Error
	}
	w.detail = map[string]any{"attempt": led.attempts, "epoch": led.epoch, "class": a.o.Class, "error": a.o.Error, "receipt": a.o.Receipt}
	return w
}

// failed: proven no effect, and over.
func (a attempt) failed(why Reason) *swap {
	w := a.move(Failed, "execution.failed", FailedTerminal, false)
	w.reason, w.settle, w.outbox = why, true, []string{OutboxCard}
	return w
}

// exhausted says why a proven failure may not be tried again; empty when it may.
func (a attempt) exhausted() Reason {
	r := a.f.req
	switch {
	case r.revokedAt != nil:
		return r.revokedFor()
	case !a.f.now.Before(r.expiresAt):
		return ReasonExecuteExpired
	case a.f.ledger.attempts >= maxAttempts:
		return ReasonRetriesSpent
	}
	return ""
}

// revokedFor is why what was revoked too late to be stopped may not be tried again.
func (r *requestRow) revokedFor() Reason {
	if strings.HasPrefix(r.revokedBy, "agent:") {
		return ReasonWithdrawn
	}
	return ReasonRevokedByAdmin
}

// retry: proven no effect; the approval is approved again until the back-off is over.
func (a attempt) retry() *swap {
	if why := a.exhausted(); why != "" {
		return a.failed(why)
	}
	w := a.move(Approved, "execution.retry", FailedRetryable, false)
	at := a.f.now.Add(backoff(a.f.ledger.attempts))
	w.ledger.nextTry, w.wait, w.due = &at, waitRetry, earlier(at, a.f.req.expiresAt)
	if a.f.req.executor == string(rules.AgentExecutor) {
		w.wait, w.due, w.ledger.nextTry = waitAgent, a.f.req.expiresAt, &a.f.now
	}
	w.outbox = []string{OutboxCard}
	return w
}

// absent: a lookup is evidence for all attempts. What is still wanted may start afresh; an uncertain one ends.
func (a attempt) absent() *swap {
	if a.f.req.status == Uncertain {
		return a.failed(ReasonNoEffect)
	}
	if why := a.exhausted(); why != "" {
		return a.failed(why)
	}
	w := a.move(Approved, "execution.absent", FailedRetryable, false)
	w.ledger.nextTry, w.wait, w.due = &a.f.now, waitRetry, a.f.now
	w.outbox = []string{OutboxCard, OutboxExecute}
	return w
}

// again: the attempt may have had its effect. An idempotent tool is sent the same key later, a queryable one is asked; the holder
// gives its lease up so that either can begin. Everything else stops here (I18).
func (a attempt) again() *swap {
	f, r, led := a.f, a.f.req, a.f.ledger
	tool, ok := f.tenant.Tools[r.tool]
	if r.status == Uncertain || !ok || tool.Revision() != r.toolRevision || tool.Retry == rules.Opaque {
		return a.uncertain(a.o.Error)
	}
	if tool.Retry == rules.Idempotent && f.spent(tool) != "" {
		return a.uncertain(a.o.Error)
	}
	at := f.now.Add(backoff(led.attempts))
	if tool.Retry == rules.Queryable && tool.HTTP != nil {
		// Past that, this was the lookup, and it found nothing out.
		if at = f.believed(tool); !f.now.Before(at) {
			return a.uncertain(a.o.Error)
		}
	}
	w := a.move(Executing, "execution.unknown", Running, true)
	w.ledger.lease, w.wait, w.due = &at, waitLease, at
	w.outbox = []string{OutboxCard}
	return w
}

func (a attempt) uncertain(why string) *swap {
	w := a.move(Uncertain, "execution.uncertain", Unknown, true)
	w.wait, w.due = waitEvidence, a.f.nextLook()
	if a.f.req.status != Uncertain {
		w.outbox = []string{OutboxCard}
	}
	if why != "" {
		w.ledger.errorText = &why
	}
	return w
}

// Extends a lease under its fence, $6: never past the retention of the operation's key. Returns the new end; no row when another
// holder has the operation or it is over.
var sqlRenew = statement(`WITH l AS (
	UPDATE idempotency_ledger SET lease_expires_at = least(clock_timestamp() + $4::interval, first_sent_at + $6::interval)
	WHERE lineage_id = (SELECT lineage_id FROM approval_request WHERE approval_id = $1) AND token = $2 AND epoch = $3 AND state = 'executing'
		AND clock_timestamp() < claimed_at + $5::interval
		AND ($6::interval IS NULL OR clock_timestamp() < first_sent_at + $6::interval)
	RETURNING approval_id, lease_expires_at)
UPDATE approval_open o SET due_at = l.lease_expires_at FROM l WHERE o.approval_id = l.approval_id RETURNING o.due_at`)

// maxLease bounds renewals from the claim on.
const maxLease = time.Hour

// RenewLease extends a lease to d from now, for at most an hour from its claim and never past its key's retention. ErrStale: it is
// over, stop.
func (s *Service) RenewLease(ctx context.Context, l Lease, d time.Duration) (time.Time, error) {
	var until time.Time
	var known *time.Duration
	if l.Retention > 0 {
		known = &l.Retention
	}
	err := s.work.QueryRow(ctx, sqlRenew, l.ID, l.Token, l.Epoch, d, maxLease, known).Scan(&until)
	if errors.Is(err, pgx.ErrNoRows) {
		return until, ErrStale
	}
	return until, unavailable(err)
}
