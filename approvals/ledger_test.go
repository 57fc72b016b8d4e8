package approvals

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// approved brings a call of each retry class to approved.
func (w *world) approved(tool string) ID {
	w.t.Helper()
	arguments := map[string]string{"deploy_release": production, "send_mail": mail, "book_flight": flight, "issue_refund": bigRefund, "run_script": script}[tool]
	v := w.propose(tool, arguments)
	w.approve(v.ApprovalID)
	return v.ApprovalID
}

// What one attempt proves, by retry class: the whole table of "executing → …".
func TestOutcomes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	for _, c := range []struct {
		tool   string
		class  OutcomeClass
		status Status
		ledger LedgerState
		reason Reason
	}{
		{"deploy_release", OutcomeSucceeded, Completed, Succeeded, ""},
		{"deploy_release", OutcomeRefused, Failed, FailedTerminal, ReasonNoEffect},
		{"deploy_release", OutcomeTargetChanged, Failed, FailedTerminal, ReasonTargetChanged},
		{"deploy_release", OutcomeUnsent, Approved, FailedRetryable, ""},
		{"deploy_release", OutcomeNoEffect, Approved, FailedRetryable, ""},
		{"deploy_release", OutcomeUnknown, Executing, Running, ""},
		{"send_mail", OutcomeSucceeded, Completed, Succeeded, ""},
		{"send_mail", OutcomeRefused, Failed, FailedTerminal, ReasonNoEffect},
		{"send_mail", OutcomeUnsent, Approved, FailedRetryable, ""},
		{"send_mail", OutcomeUnknown, Uncertain, Unknown, ""},
		{"book_flight", OutcomeUnsent, Approved, FailedRetryable, ""},
		{"book_flight", OutcomeUnknown, Executing, Running, ""},
		{"book_flight", OutcomeAbsent, Approved, FailedRetryable, ""},
	} {
		id := w.approved(c.tool)
		v := w.record(w.claim(id), c.class)
		if got := w.want(id, c.status, c.reason); got.Ledger.State != c.ledger || v.Status != c.status || v.Ledger != nil && v.Ledger.State != c.ledger {
			t.Errorf("%s %s: %s, ledger %s; told %s", c.tool, c.class, got, got.Ledger.State, v)
		}
		switch c.status {
		case Approved:
			if c.class != OutcomeAbsent { // a lookup's proof may be acted on at once
				w.refused(id, string(FailedRetryable))
			}
			w.pass(time.Minute)
			w.due(id)
			w.drain()
			if rep := w.sweep(); rep.Rung != 1 {
				t.Errorf("%s %s: the retry is not rung for: %+v", c.tool, c.class, rep)
			}
			again := w.claim(id)
			if again.Lease.Epoch != 2 || again.Attempt != 2 || again.OperationKey != v.OperationKey {
				t.Errorf("%s %s: %s", c.tool, c.class, again)
			}
			w.record(again, OutcomeSucceeded)
		case Executing:
			w.refused(id, string(Running))
			w.pass(10 * time.Minute)
			if again := w.claimAny(id); again.Go != (c.tool == "deploy_release") || again.LookupFirst != (c.tool == "book_flight") || again.Lease.Epoch != 2 || again.FirstAttempt {
				t.Errorf("%s after an unknown outcome: %s", c.tool, again)
			}
		case Uncertain:
			w.refused(id, string(Uncertain))
		}
		w.people()
		if _, err := w.db.Exec(w.ctx, `DELETE FROM outbox`); err != nil {
			t.Fatal(err)
		}
		w.exec(`UPDATE approval_open SET due_at = clock_timestamp() + interval '1 day'`)
	}
}

// A worker dies after its claim: the retry class decides what the next one may do, and nothing says "no effect" (I13, I17, I18).
func TestTakeover(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	// Within its lease nobody else gets it.
	id := w.approved("deploy_release")
	w.claim(id)
	w.refused(id, string(Running))

	// Idempotent: the same key again, epoch + 1.
	id = w.approved("deploy_release")
	first := w.dies(id)
	second := w.claim(id)
	if second.Lease.Epoch != 2 || second.Attempt != 2 || second.OperationKey != first.OperationKey || second.FirstAttempt || second.Lease.Token == first.Lease.Token {
		t.Fatalf("takeover: %s after %s", second, first)
	}
	if !w.row(id).Ledger.MaybeEffect {
		t.Fatal("a takeover forgets that the first attempt may have landed")
	}
	// The stale holder writes nothing, whatever it says (I16).
	before := w.dump()
	for _, class := range []OutcomeClass{OutcomeSucceeded, OutcomeRefused, OutcomeUnsent, OutcomeUnknown, OutcomeAbsent} {
		if _, err := w.s.Record(w.ctx, first.Lease, Outcome{Class: class, Output: json.RawMessage(`1`)}); !isErr(err, ErrStale) {
			t.Fatalf("a stale %s: %v", class, err)
		}
	}
	if _, err := w.s.RenewLease(w.ctx, first.Lease, time.Minute); !isErr(err, ErrStale) {
		t.Fatalf("a stale renewal: %v", err)
	}
	if after := w.dump(); after != before {
		t.Fatalf("I16: a stale holder changed\n%s\nto\n%s", before, after)
	}
	// A refusal of the second is evidence for itself alone.
	w.record(second, OutcomeRefused)
	w.want(id, Uncertain, "")
	// Queryable: asked first, once the first attempt can't arrive any more.
	id = w.approved("book_flight")
	w.dies(id)
	w.refused(id, string(Running))
	w.pass(76 * time.Second) // SendWithin + timeout + settle
	look := w.claimAny(id)
	if !look.LookupFirst || look.Go || look.Lease.Epoch != 2 || look.Attempt != 1 {
		t.Fatalf("takeover of a queryable tool: %s", look)
	}
	w.record(look, OutcomeAbsent)
	w.people()
	again := w.claim(id)
	if again.Attempt != 2 {
		t.Fatalf("after the lookup: %s", again)
	}
	w.record(again, OutcomeSucceeded)

	// Opaque: uncertain, and never sent again by itself.
	id = w.approved("send_mail")
	dead := w.dies(id)
	w.refused(id, string(Uncertain))
	w.want(id, Uncertain, "")
	w.due(id)
	w.refused(id, string(Uncertain))
	// A late answer of the same attempt is evidence (I18).
	w.record(dead, OutcomeSucceeded)
	w.want(id, Completed, "")
}

// dump is the state that an outcome could change.
func (w *world) dump() string {
	w.t.Helper()
	return one[string](w, `SELECT coalesce((SELECT string_agg(x::text, E'\n' ORDER BY x::text) FROM (SELECT * FROM idempotency_ledger) x), '') || coalesce((SELECT string_agg(approval_id::text || status || version, ' ' ORDER BY approval_id) FROM approval_request), '')
		|| (SELECT count(*) FROM audit_event) || (SELECT count(*) FROM outbox) || (SELECT coalesce(string_agg(due_at::text, ' ' ORDER BY approval_id), '') FROM approval_open)`)
}

// maybe_effect (schema page): while an earlier attempt may have landed there is no "no effect", no approved, no expired; a success or
// a lookup is evidence for all attempts, a refusal for its own only.
func TestMaybeEffect(t *testing.T) {
	t.Parallel()
	for class, want := range map[OutcomeClass]Status{
		OutcomeSucceeded: Completed, OutcomeRefused: Uncertain, OutcomeTargetChanged: Uncertain, OutcomeUnsent: Executing, OutcomeNoEffect: Executing, OutcomeUnknown: Executing,
	} {
		t.Run(string(class), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			defer w.check()
			id := w.approved("deploy_release")
			w.dies(id)
			w.record(w.claim(id), class)
			got := w.want(id, want, "")
			if got.Ledger.MaybeEffect != (want != Completed) {
				t.Fatalf("maybe_effect is %v", got.Ledger.MaybeEffect)
			}
			if want != Executing {
				return
			}
			// The deadline passes: uncertain, never expired.
			w.expireLease(id)
			w.exec(`UPDATE approval_request SET expires_at = clock_timestamp() - interval '1 second' WHERE approval_id = $1`, id)
			w.sweep()
			w.refused(id, string(Uncertain))
			w.want(id, Uncertain, "")
		})
	}
}

// When a resend under the key is not allowed any more: uncertain (I19, and "retries never pass execute_by").
func TestTakeoverIsRefused(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(*world, ID){
		"the key's retention ends within the attempt": func(w *world, id ID) {
			w.exec(`UPDATE idempotency_ledger SET first_sent_at = clock_timestamp() - interval '24 hours' + interval '29 seconds' WHERE approval_id = $1`, id)
		},
		"execute_by has passed": func(w *world, id ID) {
			w.exec(`UPDATE approval_request SET expires_at = clock_timestamp() WHERE approval_id = $1`, id)
		},
		"it was revoked meanwhile":    func(w *world, id ID) { w.s.mustRevoke(w, id) },
		"the attempts are spent":      func(w *world, id ID) { w.exec(`UPDATE idempotency_ledger SET attempts = 5 WHERE approval_id = $1`, id) },
		"the requester lost the role": func(w *world, _ ID) { w.group("S0ENG") },
		"the reviewer is blocked":     func(w *world, _ ID) { w.must(w.block(alice)) },
		"the tool changed": func(w *world, _ ID) {
			w.change(`"Deploy {{.release}} to {{.environment}}"`, `"Ship {{.release}} to {{.environment}}"`)
		},
		"the arguments were tampered": func(w *world, id ID) {
			w.exec(`UPDATE approval_request SET target_version = 'x' WHERE approval_id = $1`, id)
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			id := w.approved("deploy_release")
			dead := w.dies(id)
			change(w, id)
			w.refused(id, string(Uncertain))
			v := w.want(id, Uncertain, "")
			if v.Ledger.State != Unknown || !v.Ledger.MaybeEffect || v.Ledger.Error == "" {
				t.Fatalf("ledger %+v", v.Ledger)
			}
			// Its late success still counts.
			w.record(dead, OutcomeSucceeded)
			w.want(id, Completed, "")
		})
	}
}

// A held takeover waits, shown once, and goes on when it may.
func TestTakeoverIsHeld(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	id := w.approved("deploy_release")
	w.dies(id)
	_, err := w.s.Suspend(w.ctx, SuspendRequest{Tenant: "acme", By: SlackActor(root), Surface: SurfaceCommand, Scope: "tenant", Reason: "incident", Active: true})
	w.must(err)
	w.refused(id, "held")
	held := w.row(id)
	if held.Status != Executing || held.Held != ReasonPaused {
		t.Fatalf("%s held %q", held, held.Held)
	}
	w.refused(id, "held")
	if again := w.row(id); again.Version != held.Version {
		t.Fatal("a shown hold is written again")
	}
	_, err = w.s.Suspend(w.ctx, SuspendRequest{Tenant: "acme", By: SlackActor(root), Surface: SurfaceCommand, Scope: "tenant", Reason: "over", Active: false})
	w.must(err)
	w.record(w.claim(id), OutcomeSucceeded)
}

// Proven failures are tried again until attempts or authority are spent, and then end without effect.
func TestRetriesEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	id := w.approved("send_mail")
	for range maxAttempts - 1 {
		w.record(w.claim(id), OutcomeNoEffect)
		w.exec(`UPDATE idempotency_ledger SET next_try_at = clock_timestamp()`)
	}
	w.record(w.claim(id), OutcomeNoEffect)
	v := w.want(id, Failed, ReasonRetriesSpent)
	if v.Ledger.Attempts != maxAttempts {
		t.Fatalf("%d attempts", v.Ledger.Attempts)
	}
	// Revoked while it ran: no retry.
	id = w.approved("send_mail")
	c := w.claim(id)
	w.s.mustRevoke(w, id)
	w.record(c, OutcomeUnsent)
	w.want(id, Failed, ReasonRevokedByAdmin)
	// Revoked, expired or out of authority while it waits for its retry.
	id = w.approved("send_mail")
	w.record(w.claim(id), OutcomeUnsent)
	w.s.mustRevoke(w, id)
	if v := w.want(id, Revoked, ReasonRevokedByAdmin); v.Ledger.State != FailedTerminal {
		t.Fatalf("ledger %s", v.Ledger.State)
	}
	id = w.approved("send_mail")
	w.record(w.claim(id), OutcomeUnsent)
	w.overdue(id)
	w.sweep()
	if v := w.want(id, Expired, ReasonExecuteExpired); v.Ledger.State != FailedTerminal {
		t.Fatalf("ledger %s", v.Ledger.State)
	}
	id = w.approved("deploy_release")
	w.record(w.claim(id), OutcomeUnsent)
	w.exec(`UPDATE idempotency_ledger SET next_try_at = clock_timestamp()`)
	w.group("S0ENG")
	w.refused(id, string(Revoked))
	if v := w.want(id, Revoked, ReasonRequesterLostRole); v.Ledger.State != FailedTerminal {
		t.Fatalf("ledger %s", v.Ledger.State)
	}
	// Too late for another try.
	w.people()
	id = w.approved("send_mail")
	c = w.claim(id)
	w.exec(`UPDATE approval_request SET expires_at = clock_timestamp() WHERE approval_id = $1`, id)
	w.record(c, OutcomeUnsent)
	w.want(id, Failed, ReasonExecuteExpired)
}

// The events of a request are in the order of its transitions, also when one of them waited for the row (I9, I26): an outcome goes out
// in one batch, before it is known whom it waits for.
func TestEventsAreInTheOrderOfTransitions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	id := w.approved("deploy_release")
	c := w.claim(id)
	done := make(chan error, 1)
	w.must(pgx.BeginFunc(w.ctx, w.db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(w.ctx, sqlLockRequest, id); err != nil {
			return err
		}
		go func() {
			_, err := w.s.Record(context.WithoutCancel(w.ctx), c.Lease, Outcome{Class: OutcomeSucceeded, Output: json.RawMessage(`{}`)})
			done <- err
		}()
		w.until("the outcome waits for the row", func() bool { return w.waiting() == 1 })
		return audit(w.ctx, tx, "acme", id, w.pauseOf(id), "execution.held", System, SurfaceSystem, nil)
	}))
	w.must(<-done)
	if last := one[string](w, `SELECT kind FROM audit_event WHERE approval_id = $1 ORDER BY event_id DESC LIMIT 1`, id); last != "execution.succeeded" {
		t.Fatalf("the last event is %s", last)
	}
}
