package approvals

import (
	"context"
	"strings"
	"testing"
)

func (w *world) revoke(sel Selector) []View {
	w.t.Helper()
	out, err := w.s.Revoke(w.ctx, RevokeRequest{Tenant: "acme", By: SlackActor(root), Surface: SurfaceCommand, Select: sel, Reason: "incident 7"})
	w.must(err)
	return out
}

// The claim is the linearisation point: revoked before it, nothing runs; after it, the outcome is recorded and nothing is retried.
func TestRevokeAgainstTheClaim(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	id := w.approved("deploy_release")
	out := w.revoke(Selector{ID: id})
	if len(out) != 1 || out[0].Status != Revoked || out[0].RevokedBy != "slack:"+root || out[0].RevokedAt == nil || out[0].Message != "incident 7" {
		t.Fatalf("revoked: %v by %s", out, out[0].RevokedBy)
	}
	w.refused(id, string(Revoked))
	m, ok := w.told(w.pauseOf(id))
	if !ok || m.Type != RunBlocked || *m.Data.Decisions[0].Message != "incident 7" || *m.Data.Decisions[0].ReasonCode != string(ReasonRevokedByAdmin) {
		t.Fatalf("told %s", m.raw)
	}

	id = w.approved("deploy_release")
	c := w.claim(id)
	out = w.revoke(Selector{ID: id})
	if len(out) != 1 || out[0].Status != Executing || out[0].RevokedAt == nil {
		t.Fatalf("revoked too late: %s, revoked_at %v", out[0], out[0].RevokedAt)
	}
	flagged := w.row(id)
	if again := w.revoke(Selector{ID: id}); again[0].Version != flagged.Version {
		t.Fatal("a second revocation writes")
	}
	w.record(c, OutcomeSucceeded)
	if v := w.want(id, Completed, ""); v.RevokedAt == nil {
		t.Fatal("the flag is gone")
	}
	if done := w.revoke(Selector{ID: id}); done[0].Status != Completed {
		t.Fatalf("revoking what is over: %s", done[0])
	}

	// The agent withdraws its own, before and after.
	v := w.propose("deploy_release", production)
	got, err := w.s.Withdraw(w.ctx, w.key, v.ApprovalID, "changed my mind")
	w.must(err)
	if got.Status != Revoked || got.ReasonCode != ReasonWithdrawn || got.RevokedBy != "agent:release-agent" {
		t.Fatalf("withdrawn: %s", got)
	}
	id = w.approved("send_mail")
	c = w.claim(id)
	got, err = w.s.Withdraw(w.ctx, w.key, id, "too late")
	w.must(err)
	if got.Status != Executing || got.RevokedAt == nil {
		t.Fatalf("withdrawn too late: %s", got)
	}
	w.record(c, OutcomeUnsent)
	w.want(id, Failed, ReasonWithdrawn)
}

// Revoke and claim at once: whichever commits first, never both an effect and a revocation without its flag.
func TestRevokeRacesTheClaim(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	revoked, ran := 0, 0
	for range 20 {
		id := w.approved("send_mail")
		claimed := make(chan Claim, 1)
		go func() {
			c, err := w.s.Claim(context.WithoutCancel(w.ctx), id, ClaimOptions{})
			if err != nil {
				t.Error(err)
			}
			claimed <- c
		}()
		v := w.revoke(Selector{ID: id})[0]
		if c := <-claimed; c.Go {
			ran++
			if v.Status != Executing || v.RevokedAt == nil {
				t.Fatalf("ran, and the revocation says %s", v)
			}
			w.record(c, OutcomeUnsent)
			w.want(id, Failed, ReasonRevokedByAdmin)
		} else {
			revoked++
			if v.Status != Revoked {
				t.Fatalf("did not run (%s), and the revocation says %s", c, v)
			}
		}
	}
	t.Logf("%d revoked first, %d ran first", revoked, ran)
}

// Stopping many: by run, agent, tool or decider; and never everything by accident.
func TestRevokeSelections(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	for _, sel := range []Selector{{}, {Run: "run_1", Tool: "send_mail"}} {
		if _, err := w.s.Revoke(w.ctx, RevokeRequest{Tenant: "acme", By: SlackActor(root), Select: sel, Reason: "x"}); err == nil {
			t.Fatal("a selection of everything or of two things is taken")
		}
	}
	if _, err := w.s.Revoke(w.ctx, RevokeRequest{Tenant: "acme", By: SlackActor(root), Select: Selector{Run: "run_1"}, Reason: " "}); err == nil || !strings.Contains(err.Error(), "why") {
		t.Fatalf("without a reason: %v", err)
	}
	a, b := w.propose("send_mail", mail), w.propose("deploy_release", production)
	w.decide(b.ApprovalID, carol, Approve)
	theirs := w.proposeAs(w.pull, "pull/v1", "run_script", script)
	if out := w.revoke(Selector{Tool: "issue_refund"}); len(out) != 0 {
		t.Fatalf("%d", len(out))
	}
	if out := w.revoke(Selector{Run: a.RunID}); len(out) != 1 || out[0].ApprovalID != a.ApprovalID {
		t.Fatalf("by run: %v", out)
	}
	if out := w.revoke(Selector{DecidedBy: carol}); len(out) != 1 || out[0].ApprovalID != b.ApprovalID {
		t.Fatalf("by decider: %v", out)
	}
	if out := w.revoke(Selector{Agent: "pull-agent"}); len(out) != 1 || out[0].ApprovalID != theirs.ApprovalID {
		t.Fatalf("by agent: %v", out)
	}
	c := w.propose("send_mail", mail)
	if out := w.revoke(Selector{Tool: "send_mail"}); len(out) != 1 || out[0].ApprovalID != c.ApprovalID {
		t.Fatalf("by tool: %v", out)
	}
}

// Who may stop and reconcile: the admins of the configuration, by name or group; nobody else.
func TestAdmin(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	for user, want := range map[string]bool{root: true, second: true, alice: false, bob: false, guest: false, nobody: false} {
		by, err := w.s.Admin(w.ctx, "acme", Reviewer{user, team})
		if (err == nil) != want || want && by != SlackActor(user) || !want && !isErr(err, ErrNotAdmin) {
			t.Errorf("%s: %q, %v", user, by, err)
		}
	}
	if _, err := w.s.Admin(w.ctx, "acme", Reviewer{root, "T0ELSE"}); !isErr(err, ErrNotAdmin) {
		t.Error("of another workspace")
	}
	if err := w.block(root); err == nil {
		t.Error("an admin locked themselves out from Slack")
	}
	for _, on := range []bool{true, false} {
		_, err := w.s.Block(w.ctx, BlockRequest{Tenant: "acme", By: SlackActor(second), Surface: SurfaceCommand, UserID: root, Reason: "away", Blocked: on})
		w.must(err)
		if _, err := w.s.Admin(w.ctx, "acme", Reviewer{root, team}); isErr(err, ErrNotAdmin) != on {
			t.Errorf("blocked %v: %v", on, err)
		}
	}
	w.age(decideAge + 1)
	// I4: what the mirror can't tell has no effect, and is not told as "you are none"; whoever is named nowhere needs no look-up.
	for user, want := range map[string]error{root: ErrUncheckable, second: ErrUncheckable} {
		if by, err := w.s.Admin(w.ctx, "acme", Reviewer{user, team}); !isErr(err, want) || by != "" {
			t.Errorf("stale: %s is %q, %v", user, by, err)
		}
	}
	w.group("S0ADMINS", second) // the group is read again, the people are not
	for user, want := range map[string]error{second: ErrUncheckable, alice: ErrNotAdmin, nobody: ErrNotAdmin} {
		if _, err := w.s.Admin(w.ctx, "acme", Reviewer{user, team}); !isErr(err, want) {
			t.Errorf("stale people: %s: %v", user, err)
		}
	}
	w.people()
	w.exec(`UPDATE slack_group SET synced_at = synced_at - interval '1 hour' WHERE group_id = 'S0ADMINS'`)
	for user, want := range map[string]error{second: ErrUncheckable, alice: ErrUncheckable, root: nil} {
		if _, err := w.s.Admin(w.ctx, "acme", Reviewer{user, team}); !isErr(err, want) {
			t.Errorf("stale group: %s: %v", user, err)
		}
	}
	if _, err := w.s.Admin(w.ctx, "nobody", Reviewer{root, team}); !isErr(err, ErrNoConfig) {
		t.Errorf("no tenant: %v", err)
	}
}

// A block takes effect at once: what the person asked for and what was approved with their vote is revoked.
func TestBlock(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	voted, waits := w.propose("issue_refund", bigRefund), w.propose("issue_refund", bigRefund)
	w.approve(voted.ApprovalID)
	w.decide(waits.ApprovalID, dave, Approve)
	asked := w.propose("deploy_release", production)
	running := w.approved("deploy_release")
	c := w.claim(running)
	out, err := w.s.Block(w.ctx, BlockRequest{Tenant: "acme", By: SlackActor(root), Surface: SurfaceCommand, UserID: dave, Reason: "phished", Blocked: true})
	w.must(err)
	if len(out) != 1 || out[0].ApprovalID != voted.ApprovalID {
		t.Fatalf("revoked %v", out)
	}
	w.want(voted.ApprovalID, Revoked, ReasonReviewerLost)
	w.decide(waits.ApprovalID, erin, Approve)
	w.want(waits.ApprovalID, Pending, "") // dave's vote does not count
	w.decide(waits.ApprovalID, frank, Approve)
	w.must(w.block(req))
	w.want(asked.ApprovalID, Revoked, ReasonRequesterInactive)
	w.want(waits.ApprovalID, Revoked, ReasonRequesterInactive)
	w.record(c, OutcomeSucceeded)
	w.want(running, Completed, "")
	_, err = w.s.Submit(w.ctx, w.key, w.intake(call("a", "deploy_release", production)))
	w.refusal(err, CodeUnknownRequester)
	w.unblock(req)
	w.propose("deploy_release", production)
}

// A person ends an uncertain operation with evidence; two people where the rule says so. An agent never does.
func TestReconcile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	reconcile := func(id ID, by Actor, happened bool) (View, error) {
		return w.s.Reconcile(w.ctx, ReconcileRequest{Tenant: "acme", By: by, Surface: SurfaceCommand, ID: id, Happened: happened, Evidence: "ticket 7, key ghp_0123456789abcdefghijABCDEFGHIJ012345"})
	}
	uncertain := func(tool string) ID {
		id := w.approved(tool)
		w.dies(id)
		if tool == "book_flight" {
			w.pass(76 * 1e9)
			w.record(w.claimAny(id), OutcomeUnknown)
			w.people()
		} else {
			w.refused(id, string(Uncertain))
		}
		w.want(id, Uncertain, "")
		return id
	}
	id := uncertain("send_mail")
	if _, ok := w.told(w.pauseOf(id)); ok {
		t.Fatal("an uncertain call is told")
	}
	if _, err := reconcile(id, "agent:release-agent", true); !isErr(err, ErrNotAdmin) {
		t.Fatalf("an agent reconciles: %v", err)
	}
	if _, err := w.s.Reconcile(w.ctx, ReconcileRequest{Tenant: "acme", By: SlackActor(root), ID: id, Happened: true, Evidence: " "}); err == nil {
		t.Fatal("reconciled without evidence")
	}
	v, err := reconcile(id, SlackActor(root), true)
	w.must(err)
	if v.Status != Completed || w.want(id, Completed, "").Ledger.State != Succeeded {
		t.Fatalf("reconciled: %s", v)
	}
	m, ok := w.told(w.pauseOf(id))
	if !ok || m.Data.Decisions[0].Outcome != "succeeded" || strings.Contains(string(m.raw), "ghp_0123456789") {
		t.Fatalf("told %s", m.raw)
	}
	if _, err := reconcile(id, SlackActor(root), true); !isErr(err, ErrNotUncertain) {
		t.Fatalf("twice: %v", err)
	}
	id = uncertain("send_mail")
	_, err = reconcile(id, OperatorActor("ops"), false)
	w.must(err)
	w.want(id, Failed, ReasonNoEffect)

	// Two people who say the same.
	id = uncertain("book_flight")
	for _, say := range []struct {
		by       Actor
		happened bool
	}{{SlackActor(root), true}, {SlackActor(root), true}, {SlackActor(second), false}, {SlackActor(root), true}} {
		if _, err := reconcile(id, say.by, say.happened); !isErr(err, ErrSecondPerson) {
			t.Fatalf("%s says %v: %v", say.by, say.happened, err)
		}
		w.want(id, Uncertain, "")
	}
	// The rule that asks for two may be gone from the configuration: the request remembers it.
	w.change("reconcile: {second_person: true}", "risk: low")
	if _, err := reconcile(id, SlackActor(root), true); !isErr(err, ErrSecondPerson) {
		t.Fatalf("one person under a laxer rule: %v", err)
	}
	_, err = reconcile(id, SlackActor(second), true)
	w.must(err)
	w.want(id, Completed, "")
}
