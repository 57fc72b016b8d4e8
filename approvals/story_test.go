package approvals

import (
	"testing"
	"time"

	"github.com/google/uuid"
)

// The whole way of a call that the worker runs, as the design tells it.
func TestStoryOfADeployment(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()

	v := w.propose("deploy_release", production)
	if v.Status != Pending || v.Rule != "deploys" || v.Version != 1 || v.Quorum != 1 || v.Pause != 1 || v.Executor != "worker" {
		t.Fatalf("fresh approval: %+v status %s rule %s", v, v.Status, v.Rule)
	}
	if n := w.outbox(OutboxCard, uuid.UUID(v.ApprovalID)); n != 1 {
		t.Fatalf("I25: %d card rows for a fresh approval", n)
	}
	r := w.decide(v.ApprovalID, bob, Approve)
	if r.View.Status != Approved || r.View.DecidedBy != "slack:"+bob || len(r.View.Votes) != 1 {
		t.Fatalf("ruling: %s by %s", r.View, r.View.DecidedBy)
	}
	stored := w.row(v.ApprovalID)
	if got := stored.ExpiresAt.Sub(*stored.DecidedAt); got < 15*time.Minute-5*time.Second || got > 15*time.Minute {
		t.Fatalf("execute_by is %s after the decision, want execute_within", got)
	}
	if !r.View.ExpiresAt.Equal(stored.ExpiresAt) || r.View.Version != stored.Version {
		t.Fatal("the ruling tells another row than the stored one")
	}
	if n := w.outbox(OutboxExecute, uuid.UUID(v.ApprovalID)); n != 1 {
		t.Fatalf("%d execute rows after the decision", n)
	}
	c := w.claim(v.ApprovalID)
	if string(c.Arguments.Raw) != production || c.OperationKey != v.OperationKey || c.Attempt != 1 || !c.FirstAttempt || c.Lease.Epoch != 1 {
		t.Fatalf("I1: the claim is for other bytes or another key: %s", c)
	}
	pause := w.pauseOf(v.ApprovalID)
	if _, ok := w.told(pause); ok {
		t.Fatal("I20: the run is told before the result is stored")
	}
	w.record(c, OutcomeSucceeded)
	done := w.want(v.ApprovalID, Completed, "")
	if done.Ledger.State != Succeeded || done.Receipt != "ok" || done.EndedAt == nil {
		t.Fatalf("ledger %s, receipt %q", done.Ledger.State, done.Receipt)
	}
	if n := w.outbox(OutboxResume, pause); n != 1 {
		t.Fatalf("the pause closed with %d resume rows, want 1", n)
	}
	m, ok := w.told(pause)
	if !ok || m.Type != RunResume || len(m.Data.Decisions) != 1 {
		t.Fatalf("message: %v %s", ok, m.Type)
	}
	d := m.Data.Decisions[0]
	if d.Decision != "approve" || d.Outcome != "succeeded" || string(d.Result) != `{"ok":true}` || d.Arguments != production || *d.ExecutedBy != "worker" || len(d.Votes) != 1 || d.Votes[0].By != "slack:"+bob {
		t.Fatalf("decision as told: %+v", d)
	}
	if _, again := w.told(pause); again {
		t.Fatal("two workers have the same delivery at once")
	}
	w.must(w.s.RecordDelivery(w.ctx, pause, DeliveryResult{Delivered: true, AgentRevision: "git:2"}))
	if told := w.row(v.ApprovalID); told.ToldAt == nil {
		t.Fatal("told_at is not set")
	}
	if _, again := w.told(pause); again {
		t.Fatal("a told run is told again")
	}
	w.refused(v.ApprovalID, string(Succeeded))
	late := w.denied(v.ApprovalID, carol, Approve, DenyDecided)
	if late.View.DecidedBy != "slack:"+bob || late.View.Status != Completed || late.View.DecidedAt == nil {
		t.Fatal("I8: the late clicker is not told who decided")
	}
	if a := w.agentClaim(v.ApprovalID, "guard"); a.State != "succeeded" || string(a.Result) != `{"ok":true}` || string(a.Arguments) != production {
		t.Fatalf("I20: the agent's guard got %s", a)
	}
	if n := w.row(v.ApprovalID).Ledger.Reused; n != 1 {
		t.Fatalf("reused %d times, want 1", n)
	}
}

// The seed's story (I3): approved on Friday at 16:58, the requester leaves the role at 17:03, a worker takes it up at 17:11.
func TestSeedAuthorityIsReadAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	v := w.propose("deploy_release", production)
	w.decide(v.ApprovalID, alice, Approve) // 16:58
	w.pass(5 * time.Minute)
	w.group("S0ENG", without("S0ENG", req)...) // 17:03
	w.pass(8 * time.Minute)                    // 17:11
	w.refused(v.ApprovalID, string(Revoked))
	w.want(v.ApprovalID, Revoked, ReasonRequesterLostRole)
	if n := one[int](w, `SELECT count(*) FROM idempotency_ledger`); n != 0 {
		t.Fatalf("I2: %d ledger rows", n)
	}
	m, ok := w.told(w.pauseOf(v.ApprovalID))
	if !ok || m.Type != RunBlocked || m.Data.Decisions[0].Outcome != "not_run" || m.Data.Decisions[0].Decision != "reject" || *m.Data.Decisions[0].ReasonCode != string(ReasonRequesterLostRole) {
		t.Fatalf("told %v: %s", ok, m.raw)
	}
}

// A rule that allows or denies decides in the intake's own transaction; nobody is asked and no card is posted.
func TestRulesThatDecide(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	v := w.propose("deploy_release", staging)
	if v.Status != Approved || v.DecidedBy != "rule:staging" {
		t.Fatalf("%s by %s", v, v.DecidedBy)
	}
	if n := w.outbox(OutboxCard, uuid.UUID(v.ApprovalID)); n != 0 {
		t.Fatal("a rule's own approval posts a card")
	}
	w.done(v.ApprovalID)

	no := w.propose("drop_table", `{}`)
	w.want(no.ApprovalID, Rejected, "")
	if n := w.outbox(OutboxResume, w.pauseOf(no.ApprovalID)); n != 1 {
		t.Fatalf("%d resume rows", n)
	}
	m, ok := w.told(w.pauseOf(no.ApprovalID))
	if !ok || m.Type != RunResume || m.Data.Decisions[0].Decision != "reject" || *m.Data.Decisions[0].Message != "Tables are never dropped by an agent." {
		t.Fatalf("told %v: %s", ok, m.raw)
	}
	w.refused(no.ApprovalID, string(Rejected))
}

// A rule-approved call of the agent waits for its siblings: execute_by counts from the last of their deadlines.
func TestExecuteByWaitsForSiblings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	p := w.submit(w.intake(call("call_1", "issue_refund", refund5), call("call_2", "deploy_release", production), call("call_3", "issue_refund", bigRefund)))
	small, big := w.row(p.Approvals[0].ApprovalID), w.row(p.Approvals[2].ApprovalID)
	if small.Status != Approved || small.ExpiresAt.Before(big.DecideBy.Add(time.Hour)) {
		t.Fatalf("execute_by %s is before the sibling's decide_by %s and execute_within", small.ExpiresAt, big.DecideBy)
	}
	deploy := w.row(p.Approvals[1].ApprovalID)
	w.decide(deploy.ApprovalID, alice, Approve)
	if after := w.row(deploy.ApprovalID); after.ExpiresAt.After(time.Now().Add(16 * time.Minute)) {
		t.Fatal("what the worker runs does not wait for its siblings")
	}
	w.decide(big.ApprovalID, dave, Approve)
	w.decide(big.ApprovalID, erin, Approve)
	w.done(deploy.ApprovalID)
	if n := w.outbox(OutboxResume, uuid.MustParse(small.PauseID)); n != 1 {
		t.Fatalf("%d resume rows, want 1", n)
	}
}

// A question is answered, and its answer is the tool's output; nothing runs.
func TestQuestionIsAnswered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	v := w.propose("ask_user", question)
	w.denied(v.ApprovalID, alice, Approve, DenyVerb)
	w.denied(v.ApprovalID, alice, Respond, DenyReason)
	w.denied(v.ApprovalID, bob, Respond, DenyNotReviewer)
	w.decide(v.ApprovalID, alice, Respond, func(rq *DecideRequest) { rq.Answer = `eu-central-1 <&> "quoted"` })
	w.want(v.ApprovalID, Responded, "")
	if a := w.agentClaim(v.ApprovalID, "a"); a.State != "responded" || string(a.Result) != `"eu-central-1 <&> \"quoted\""` {
		t.Fatalf("answer %s %s", a.State, a.Result)
	}
	m, _ := w.told(w.pauseOf(v.ApprovalID))
	if d := m.Data.Decisions[0]; d.Decision != "respond" || d.Outcome != "succeeded" || d.ExecutedBy != nil || string(d.Result) != `"eu-central-1 <&> \"quoted\""` {
		t.Fatalf("told %s", m.raw)
	}
	if n := one[int](w, `SELECT count(*) FROM idempotency_ledger`); n != 0 {
		t.Fatalf("I2: %d ledger rows for a question", n)
	}
	// A question is never approved into an effect, and an effect never answered.
	effect := w.propose("send_mail", mail)
	w.denied(effect.ApprovalID, alice, Respond, DenyVerb, func(rq *DecideRequest) { rq.Answer = "sent, believe me" })
}

func TestRejectionNeedsAReason(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	v := w.propose("deploy_release", production)
	w.denied(v.ApprovalID, alice, Reject, DenyReason, func(rq *DecideRequest) { rq.Reason = "  " })
	w.decide(v.ApprovalID, alice, Reject, func(rq *DecideRequest) { rq.Reason = "not before the freeze is over" })
	v = w.want(v.ApprovalID, Rejected, "")
	m, ok := w.told(w.pauseOf(v.ApprovalID))
	if d := m.Data.Decisions[0]; !ok || m.Type != RunResume || d.Decision != "reject" || *d.Message != "not before the freeze is over" || d.Outcome != "not_run" {
		t.Fatalf("told %s", m.raw)
	}
	w.refused(v.ApprovalID, string(Rejected))
	w.agentRefused(v.ApprovalID, CodeNotExecutable)
}
