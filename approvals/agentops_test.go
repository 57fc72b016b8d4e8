package approvals

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// The agent runs its own tool under the ledger: claim, renew, complete; the stored result ever after.
func TestAgentRunsItsTool(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	v := w.propose("issue_refund", bigRefund)
	if r := w.agentRefused(v.ApprovalID, CodeNotExecutable); r.State != "pending" {
		t.Fatalf("state %q", r.State)
	}
	w.approve(v.ApprovalID)
	pause := w.pauseOf(v.ApprovalID)
	m, ok := w.told(pause) // told at once: the agent is to run it
	if d := m.Data.Decisions[0]; !ok || m.Type != RunResume || d.Outcome != "pending_agent" || d.Decision != "approve" || *d.ExecutedBy != "agent" || d.Arguments != bigRefund || len(d.Votes) != 2 {
		t.Fatalf("told %s", m.raw)
	}
	w.refused(v.ApprovalID, string(Approved)) // the worker leaves it alone
	if _, err := w.s.ClaimForAgent(w.ctx, w.key, v.ApprovalID, AgentClaim{AppStateVersion: "release-agent/v2"}); w.refusal(err, CodeForbidden).Reason != ReasonVersionUnregistered {
		t.Fatal("another application version claims")
	}
	w.want(v.ApprovalID, Approved, "")
	a := w.agentClaim(v.ApprovalID, "attempt-1")
	if a.State != "executing" || string(a.Arguments) != bigRefund || a.OperationKey != v.OperationKey || a.Epoch != 1 || time.Until(a.LeaseExpiresAt) > agentLease {
		t.Fatalf("claimed %s", a)
	}
	if again := w.agentClaim(v.ApprovalID, "attempt-1"); again.LeaseToken != a.LeaseToken || again.Epoch != a.Epoch || string(again.Arguments) != bigRefund {
		t.Fatal("the same attempt_id got another lease")
	}
	if r := w.agentRefused(v.ApprovalID, CodeNotExecutable); r.State != "executing" {
		t.Fatalf("another attempt: state %q", r.State)
	}
	until, err := w.s.Renew(w.ctx, w.key, v.ApprovalID, a.LeaseToken, a.Epoch)
	w.must(err)
	if until.Before(a.LeaseExpiresAt) {
		t.Fatal("renewing shortened the lease")
	}
	for _, bad := range []struct {
		token string
		epoch int64
	}{{"", 1}, {"no uuid", 1}, {NewDecisionID().String(), 1}, {a.LeaseToken, 2}} {
		if _, err := w.s.Complete(w.ctx, w.key, v.ApprovalID, bad.token, bad.epoch, json.RawMessage(`1`)); !isErr(err, ErrStale) {
			t.Fatalf("completed with %q, %d: %v", bad.token, bad.epoch, err)
		}
	}
	if _, err := w.s.Complete(w.ctx, w.pull, v.ApprovalID, a.LeaseToken, a.Epoch, nil); !isErr(err, ErrNotFound) {
		t.Fatalf("I22: another agent completes: %v", err)
	}
	got, err := w.s.Complete(w.ctx, w.key, v.ApprovalID, a.LeaseToken, a.Epoch, json.RawMessage(`{"refund":"re_1"}`))
	w.must(err)
	if got.Status != Completed || w.want(v.ApprovalID, Completed, "").Receipt != "reported by the agent" {
		t.Fatalf("completed %s", got)
	}
	if again := w.agentClaim(v.ApprovalID, "attempt-2"); again.State != "succeeded" || string(again.Result) != `{"refund":"re_1"}` || string(again.Arguments) != bigRefund || again.LeaseToken != "" {
		t.Fatalf("after its end: %s", again)
	}
	if n := w.outbox(OutboxResume, pause); n != 1 {
		t.Fatalf("told already, and %d resume rows", n)
	}
}

func TestAgentFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	fail := func(id ID, a AgentClaimAnswer, f AgentFailure) {
		t.Helper()
		_, err := w.s.Fail(w.ctx, w.key, id, a.LeaseToken, a.Epoch, f)
		w.must(err)
	}
	id := w.approved("issue_refund")
	fail(id, w.agentClaim(id, "1"), AgentFailure{Retryable: true, Error: "no credit; token ghp_0123456789abcdefghijABCDEFGHIJ012345"})
	if v := w.want(id, Approved, ""); v.Ledger.State != FailedRetryable {
		t.Fatalf("ledger %s", v.Ledger.State)
	}
	if e := one[string](w, `SELECT error FROM idempotency_ledger`); e == "" || len(e) > 600 || strings.Contains(e, "ghp_0123456789abcdefghij") {
		t.Fatalf("error %q", e)
	}
	// The agent may claim again at once: it knows its own back-off.
	a := w.agentClaim(id, "2")
	if a.Epoch != 2 {
		t.Fatalf("epoch %d", a.Epoch)
	}
	fail(id, a, AgentFailure{Error: "refused"})
	w.want(id, Failed, ReasonNoEffect)

	id = w.approved("issue_refund")
	a = w.agentClaim(id, "1")
	fail(id, a, AgentFailure{Uncertain: true, Error: "timeout"})
	if v := w.want(id, Executing, ""); !v.Ledger.MaybeEffect {
		t.Fatal("a keyed resend is still possible, under maybe_effect")
	}
	w.expireLease(id)
	b := w.agentClaim(id, "2")
	if b.Epoch != 2 || b.OperationKey != a.OperationKey {
		t.Fatalf("resend %s", b)
	}
	fail(id, b, AgentFailure{Error: "refused"}) // evidence for its own attempt alone
	w.want(id, Uncertain, "")
	if r := w.agentRefused(id, CodeNotExecutable); r.State != "uncertain" {
		t.Fatalf("state %q", r.State)
	}
	version := w.row(id).Version
	w.agentRefused(id, CodeNotExecutable)
	if w.row(id).Version != version {
		t.Fatal("a refused claim writes")
	}

	id = w.approved("run_script")
	fail(id, w.agentClaim(id, "1"), AgentFailure{Uncertain: true})
	w.want(id, Uncertain, "")
	// What the worker runs is not the agent's to report.
	id = w.approved("deploy_release")
	c := w.claim(id)
	if _, err := w.s.Complete(w.ctx, w.key, id, c.Lease.Token.String(), c.Lease.Epoch, nil); w.refusal(err, CodeNotExecutable).State != "executing" {
		t.Fatal("the agent completes what the worker runs")
	}
	w.agentRefused(id, CodeNotExecutable)
	if _, err := w.s.Record(w.ctx, Lease{ID: id, Tenant: "acme", Token: c.Lease.Token, Epoch: 9}, Outcome{Class: OutcomeSucceeded}); !isErr(err, ErrStale) {
		t.Fatal(err)
	}
}

// An agent that died: opaque ends uncertain when its lease does; idempotent may be claimed again until execute_by.
func TestAgentDies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	id := w.approved("run_script")
	a := w.agentClaim(id, "1")
	w.expireLease(id)
	if rep := w.sweep(); rep.Uncertain != 1 {
		t.Fatalf("swept %+v", rep)
	}
	w.want(id, Uncertain, "")
	// Its late report counts (I18).
	_, err := w.s.Complete(w.ctx, w.key, id, a.LeaseToken, a.Epoch, json.RawMessage(`"late"`))
	w.must(err)
	w.want(id, Completed, "")

	id = w.approved("issue_refund")
	w.agentClaim(id, "1")
	w.expireLease(id)
	if rep := w.sweep(); rep.Uncertain != 0 || rep.Rung != 0 {
		t.Fatalf("swept %+v", rep)
	}
	v := w.want(id, Executing, "")
	if due := one[time.Time](w, `SELECT due_at FROM approval_open WHERE approval_id = $1`, id); !due.Equal(v.ExpiresAt) {
		t.Fatalf("looked at again at %s, want execute_by %s", due, v.ExpiresAt)
	}
	w.overdue(id)
	if rep := w.sweep(); rep.Uncertain != 1 {
		t.Fatalf("swept %+v", rep)
	}
	w.want(id, Uncertain, "")

	// Never claimed: expires at execute_by, and nothing more is told.
	id = w.approved("issue_refund")
	pause := w.pauseOf(id)
	if _, ok := w.told(pause); !ok {
		t.Fatal("not told")
	}
	w.must(w.s.RecordDelivery(w.ctx, pause, DeliveryResult{Delivered: true}))
	w.overdue(id)
	w.sweep()
	w.want(id, Expired, ReasonExecuteExpired)
	if _, ok := w.told(pause); ok {
		t.Fatal("told twice")
	}
	if r := w.agentRefused(id, CodeForbidden); r.Reason != ReasonExecuteExpired {
		t.Fatalf("reason %q", r.Reason)
	}
}

// Without a directory to ask, a stale mirror refuses the claim; it never answers nothing.
func TestAgentClaimWithoutADirectory(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	id := w.approved("issue_refund")
	w.age(claimAge + time.Second)
	w.s.directory = nil
	if r := w.agentRefused(id, CodeNotExecutable); r.State != "held" {
		t.Fatalf("state %q", r.State)
	}
	w.s.directory = w.dir
	w.dir.fails = true
	if r := w.agentRefused(id, CodeNotExecutable); r.State != "held" {
		t.Fatalf("state %q", r.State)
	}
	w.dir.fails = false
	if a := w.agentClaim(id, "1"); a.State != "executing" {
		t.Fatalf("claimed %s", a)
	}
}

// Another agent's and another tenant's approvals are not found: not refused, not found (I22).
func TestNothingCrossesAgentsAndTenants(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	w.apply(configuration, "acme:", "globex:", "T0ACME", "T0GLOBEX")
	theirs := w.newKey("globex", "release-agent")
	v := w.propose("deploy_release", production)
	mine := w.approved("issue_refund")
	a := w.agentClaim(mine, "1")
	for name, key := range map[string]Key{"another tenant": theirs, "another agent": w.pull} {
		check := func(what string, err error) {
			t.Helper()
			if !isErr(err, ErrNotFound) {
				t.Errorf("%s %s: %v", name, what, err)
			}
		}
		_, err := w.s.Get(w.ctx, key, v.ApprovalID)
		check("reads", err)
		_, err = w.s.Watch(w.ctx, key, v.ApprovalID, 0, 0, false)
		check("watches", err)
		_, err = w.s.Events(w.ctx, key, v.ApprovalID)
		check("reads the trail", err)
		_, err = w.s.Withdraw(w.ctx, key, v.ApprovalID, "mine now")
		check("withdraws", err)
		check("redelivers", w.s.Redeliver(w.ctx, key, v.ApprovalID))
		_, err = w.s.ClaimForAgent(w.ctx, key, mine, AgentClaim{AttemptID: "1"})
		check("claims", err)
		_, err = w.s.Renew(w.ctx, key, mine, a.LeaseToken, a.Epoch)
		check("renews", err)
		_, err = w.s.Complete(w.ctx, key, mine, a.LeaseToken, a.Epoch, nil)
		check("completes", err)
		_, err = w.s.Fail(w.ctx, key, mine, a.LeaseToken, a.Epoch, AgentFailure{})
		check("fails", err)
		_, _, _, err = w.s.PullResume(w.ctx, key, v.RunID, 0)
		check("pulls", err)
		check("acknowledges", w.s.AckResume(w.ctx, key, v.RunID, 1, ""))
		if views, _, err := w.s.List(w.ctx, key, ListFilter{}); err != nil || len(views) != 0 {
			t.Errorf("%s lists %d, %v", name, len(views), err)
		}
		// The same run id is another run.
		in := w.intake(call("call_1", "issue_refund", refund5))
		in.RunID, in.Requester = v.RunID, ""
		if key.Agent == "pull-agent" {
			in.AppStateVersion = "pull/v1"
		}
		p, err := w.s.Submit(w.ctx, key, in)
		w.must(err)
		if p.Pause != 1 || p.Repeat {
			t.Errorf("%s joins a run of ours: pause %d", name, p.Pause)
		}
	}
	if _, err := w.s.Lookup(w.ctx, "globex", v.ApprovalID); !isErr(err, ErrNotFound) {
		t.Errorf("lookup across tenants: %v", err)
	}
	if _, err := w.s.Explain(w.ctx, "globex", v.ApprovalID); !isErr(err, ErrNotFound) {
		t.Errorf("explain across tenants: %v", err)
	}
	if _, err := w.s.Revoke(w.ctx, RevokeRequest{Tenant: "globex", By: OperatorActor("x"), Select: Selector{ID: v.ApprovalID}, Reason: "x"}); !isErr(err, ErrNotFound) {
		t.Errorf("revoke across tenants: %v", err)
	}
	if _, err := w.s.Reconcile(w.ctx, ReconcileRequest{Tenant: "globex", By: OperatorActor("x"), ID: mine, Evidence: "x"}); !isErr(err, ErrNotFound) {
		t.Errorf("reconcile across tenants: %v", err)
	}
	if list, err := w.s.Open(w.ctx, "globex", 10); err != nil || len(list) != 1 || list[0].ApprovalID == v.ApprovalID {
		t.Errorf("open of another tenant: %d, %v", len(list), err)
	}
	// A reviewer of theirs, with a button of ours.
	w.denied(v.ApprovalID, alice, Approve, DenyIneligible, func(rq *DecideRequest) { rq.By.TeamID = "T0GLOBEX" })
	if got, err := w.s.TenantOfTeam(w.ctx, "T0GLOBEX"); err != nil || got != "globex" {
		t.Errorf("tenant of T0GLOBEX: %q, %v", got, err)
	}
	if _, err := w.s.TenantOfTeam(w.ctx, "T0NOBODY"); !isErr(err, ErrNoTenant) {
		t.Errorf("tenant of nobody: %v", err)
	}
	w.want(v.ApprovalID, Pending, "")
}

// I20 I24: an agent's words never keep a result from being stored, and never show what the tool hides.
func TestAgentsWordsStayOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	v := w.propose("issue_refund", bigRefund)
	w.approve(v.ApprovalID)
	a := w.agentClaim(v.ApprovalID, "attempt-1")
	_, err := w.s.Complete(w.ctx, w.key, v.ApprovalID, a.LeaseToken, a.Epoch, json.RawMessage(`"done\u0000 ghp_0123456789abcdefghijABCDEFGHIJ012345"`))
	w.must(err)
	if got := w.want(v.ApprovalID, Completed, ""); got.Receipt != "reported by the agent" {
		t.Fatalf("the card shows %q", got.Receipt)
	}
}

// I19: no renewal carries an idempotent operation past the time for which its key is known, whatever the configuration says by now.
func TestRenewalEndsWithTheKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	w.change("agent: {key_retention: 24h}", "agent: {key_retention: 20m}")
	id := w.approved("issue_refund")
	a := w.agentClaim(id, "1")
	w.change() // a longer retention now is another tool; what was claimed keeps its own
	first := one[time.Time](w, `SELECT first_sent_at FROM idempotency_ledger`)
	renew := func() (time.Time, error) { return w.s.Renew(w.ctx, w.key, id, a.LeaseToken, a.Epoch) }
	until, err := renew()
	w.must(err)
	if d := until.Sub(first); d < 30*time.Second || d > 2*time.Minute {
		t.Fatalf("a first renewal ends %s after the attempt", d)
	}
	w.pass(19*time.Minute + 30*time.Second)
	until, err = renew()
	w.must(err)
	if known := first.Add(30 * time.Second); !until.Equal(known) { // 20 min after the attempt, which moved into the past
		t.Fatalf("renewed until %s, the key is known until %s", until, known)
	}
	w.pass(30 * time.Second)
	if _, err := renew(); !isErr(err, ErrStale) {
		t.Fatalf("renewed past the key: %v", err)
	}
	// The first lease itself ends with the key, too.
	w.people()
	w.change("agent: {key_retention: 24h}", "agent: {key_retention: 10s}")
	id = w.approved("issue_refund")
	a = w.agentClaim(id, "1")
	if left := a.LeaseExpiresAt.Sub(one[time.Time](w, `SELECT first_sent_at FROM idempotency_ledger WHERE approval_id = $1`, id)); left > 10*time.Second {
		t.Fatalf("a lease of %s under a key that is known for 10 s", left)
	}
}
