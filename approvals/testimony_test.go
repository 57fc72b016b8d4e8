package approvals

import (
	"errors"
	"testing"
)

// A first statement counts only while its person could still make it, and not from before a block, lifted or not.
func TestAFirstStatementIsHeldToItsPerson(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	uncertain := func() ID {
		w.change("decide_within: 4h, execute_within: 15m, risk: high", "decide_within: 4h, execute_within: 15m, reconcile: {second_person: true}")
		return w.reach(Uncertain).id
	}
	say := func(id ID, user string, happened bool) error {
		_, err := w.s.Reconcile(w.ctx, ReconcileRequest{Tenant: "acme", By: SlackActor(user), Surface: SurfaceCommand, ID: id, Happened: happened, Evidence: "seen"})
		return err
	}
	alone := func(err error, opposite string, repeated bool) {
		t.Helper()
		var e *SecondPersonError
		if !errors.As(err, &e) || !errors.Is(err, ErrSecondPerson) || e.Opposite != opposite || e.Repeated != repeated {
			t.Fatalf("%v (%+v), want opposite %q, repeated %v", err, e, opposite, repeated)
		}
	}
	set := func(user string, on bool) {
		t.Helper()
		_, err := w.s.Block(w.ctx, BlockRequest{Tenant: "acme", By: OperatorActor("ops"), Surface: SurfaceCLI, UserID: user, Reason: "why", Blocked: on})
		w.must(err)
	}

	id := uncertain()
	alone(say(id, root, true), "", false)
	set(root, true)
	alone(say(id, second, true), "", false) // of somebody who is blocked
	set(root, false)
	alone(say(id, second, true), "", true) // from before the block
	w.want(id, Uncertain, "")
	w.must(say(id, root, true))
	w.want(id, Completed, "")

	id = uncertain()
	alone(say(id, root, true), "", false)
	w.change("admins: {users: [U0ROOT], groups: [S0ADMINS]}", "admins: {groups: [S0ADMINS]}",
		"decide_within: 4h, execute_within: 15m, risk: high", "decide_within: 4h, execute_within: 15m, reconcile: {second_person: true}")
	alone(say(id, second, true), "", false) // of somebody who is no admin any more
	w.want(id, Uncertain, "")

	// A contradiction wipes nobody's statement: each of two changes their mind, and whoever agrees with the other's settles it.
	id = uncertain()
	alone(say(id, root, true), "", false)
	alone(say(id, root, true), "", true)
	alone(say(id, second, false), root, false)
	alone(say(id, second, false), root, true)
	w.must(say(id, second, true))
	w.want(id, Completed, "")
}

// The person behind a statement is held to the mirror in the transaction itself, also where one person is enough: an authority taken
// away since they were found to be an admin is gone.
func TestWhoReconcilesIsAnAdminInTheTransaction(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	id := w.reach(Uncertain).id
	w.must(w.block(second))
	for _, user := range []string{second, alice, guest} {
		_, err := w.s.Reconcile(w.ctx, ReconcileRequest{Tenant: "acme", By: SlackActor(user), Surface: SurfaceCommand, ID: id, Happened: true, Evidence: "seen"})
		if !isErr(err, ErrNotAdmin) {
			t.Errorf("%s: %v", user, err)
		}
	}
	w.want(id, Uncertain, "")
}

// Who was blocked after they were found to be an admin lifts no switch and no block.
func TestTheBlockedLiftNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	suspend := func(by string, on bool) error {
		_, err := w.s.Suspend(w.ctx, SuspendRequest{Tenant: "acme", By: SlackActor(by), Surface: SurfaceCommand, Scope: "tenant", Reason: "why", Active: on})
		return err
	}
	w.must(suspend(root, true))
	w.must(w.block(second))
	before := w.dump()
	if err := suspend(second, false); !isErr(err, ErrNotAdmin) {
		t.Errorf("unpaused: %v", err)
	}
	_, err := w.s.Block(w.ctx, BlockRequest{Tenant: "acme", By: SlackActor(second), Surface: SurfaceCommand, UserID: second, Reason: "why"})
	if !isErr(err, ErrNotAdmin) {
		t.Errorf("unblocked: %v", err)
	}
	if w.dump() != before {
		t.Error("something changed")
	}
	w.must(suspend(root, false))
}

// Nobody takes their own authority away from Slack, which might be the last; a shell can.
func TestNobodyBlocksThemselvesFromSlack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	before := w.dump()
	w.refusal(w.block(root), CodeInvalidRequest)
	if w.dump() != before {
		t.Error("something changed")
	}
	_, err := w.s.Block(w.ctx, BlockRequest{Tenant: "acme", By: OperatorActor("ops"), Surface: SurfaceCLI, UserID: root, Reason: "why", Blocked: true})
	w.must(err)
}

// The trail tells of each vote that a block voids, once, and why; so do a revocation by it and a rejection.
func TestTheTrailTellsWhy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	events := func(id ID, kind, user string) int {
		return one[int](w, `SELECT count(*) FROM audit_event WHERE approval_id = $1 AND kind = $2 AND ($3 = '' OR detail->>'user' = $3) AND concat(detail->>'reason', detail->>'words') LIKE '%left%'`, id, kind, user)
	}
	waits, approved, ended := w.propose("issue_refund", bigRefund).ApprovalID, w.propose("send_mail", mail).ApprovalID, w.propose("send_mail", mail).ApprovalID
	w.decide(waits, dave, Approve)
	w.decide(approved, bob, Approve)
	w.decide(ended, bob, Reject, func(rq *DecideRequest) { rq.Reason = "left as it is" })
	w.must(w.block(dave))
	w.must(w.block(bob))
	w.unblock(dave)
	w.must(w.block(dave)) // voids nothing more
	for what, got := range map[string]int{
		"a waiting one's vote": events(waits, "vote.voided", dave), "an approved one's vote": events(approved, "vote.voided", bob),
		"the revocation": events(approved, "approval.revoked", ""), "the rejection": events(ended, "decision.rejected", ""),
	} {
		if got != 1 {
			t.Errorf("%s: %d events", what, got)
		}
	}
	if n := one[int](w, `SELECT count(*) FROM audit_event WHERE kind = 'vote.voided'`); n != 2 {
		t.Errorf("%d votes voided", n)
	}
	if got := w.want(approved, Revoked, ReasonReviewerLost); got.Message != "" {
		t.Errorf("the model is told %q", got.Message)
	}
}
