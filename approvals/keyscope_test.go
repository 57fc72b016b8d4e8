package approvals

import (
	"encoding/json"
	"errors"
	"testing"
	"time"
)

// narrowKey is a key for some of an agent's tools.
func (w *world) narrowKey(agent string, tools ...string) (Key, string) {
	w.t.Helper()
	bearer, id, err := w.s.CreateKey(w.ctx, "acme", agent, tools, OperatorActor("test"))
	w.must(err)
	k, err := w.s.Authenticate(w.ctx, bearer)
	w.must(err)
	return k, id
}

// asked is every way in which a key asks about one approval and its run, with the answers' errors.
func (w *world) asked(k Key, v View, lease AgentClaimAnswer) map[string]error {
	w.t.Helper()
	out := map[string]error{}
	_, out["get"] = w.s.Get(w.ctx, k, v.ApprovalID)
	_, out["watch"] = w.s.Watch(w.ctx, k, v.ApprovalID, 0, 0, true)
	_, out["events"] = w.s.Events(w.ctx, k, v.ApprovalID)
	out["resume"] = w.s.Redeliver(w.ctx, k, v.ApprovalID)
	_, out["claim"] = w.s.ClaimForAgent(w.ctx, k, v.ApprovalID, AgentClaim{AttemptID: "other"})
	_, out["renew"] = w.s.Renew(w.ctx, k, v.ApprovalID, lease.LeaseToken, lease.Epoch)
	_, out["fail"] = w.s.Fail(w.ctx, k, v.ApprovalID, lease.LeaseToken, lease.Epoch, AgentFailure{Error: "no"})
	_, out["complete"] = w.s.Complete(w.ctx, k, v.ApprovalID, lease.LeaseToken, lease.Epoch, json.RawMessage(`{"forged":true}`))
	_, out["revoke"] = w.s.Withdraw(w.ctx, k, v.ApprovalID, "gone")
	_, _, _, out["pull"] = w.s.PullResume(w.ctx, k, v.RunID, 0)
	out["ack"] = w.s.AckResume(w.ctx, k, v.RunID, 1, "")
	return out
}

// paused2 is a pause of the pull agent with two tools, told and one of its calls claimed.
func (w *world) paused2() (refund, script View, lease AgentClaimAnswer) {
	w.t.Helper()
	in := w.intake(call("a", "issue_refund", refund5), call("b", "run_script", `{}`))
	in.AppStateVersion = "pull/v1"
	p, err := w.s.Submit(w.ctx, w.pull, in)
	w.must(err)
	refund, script = p.Approvals[0], p.Approvals[1]
	w.approve(script.ApprovalID)
	w.deliver()
	lease, err = w.s.ClaimForAgent(w.ctx, w.pull, script.ApprovalID, AgentClaim{AttemptID: "1"})
	w.must(err)
	return refund, script, lease
}

// deliver builds the messages of all pauses that are settled.
func (w *world) deliver() {
	w.t.Helper()
	for _, item := range w.drain() {
		if item.Kind == OutboxResume {
			_, err := w.s.ResumeFor(w.ctx, item.Subject)
			w.must(err)
		}
	}
}

// I22: for a key, an approval of a tool that it does not cover is not there, on every endpoint, and neither is a run one of whose calls
// it does not cover.
func TestKeyOfSomeTools(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	refund, script, lease := w.paused2()
	narrow, _ := w.narrowKey("pull-agent", "issue_refund")
	before := w.row(script.ApprovalID)
	for what, err := range w.asked(narrow, script, lease) {
		if !isErr(err, ErrNotFound) {
			t.Errorf("%s of another tool: %v", what, err)
		}
	}
	if after := w.row(script.ApprovalID); after.Version != before.Version || after.Status != Executing {
		t.Fatalf("changed: %s", after)
	}
	if views, _, err := w.s.List(w.ctx, narrow, ListFilter{}); err != nil || len(views) != 1 || views[0].ApprovalID != refund.ApprovalID {
		t.Errorf("lists %d, %v", len(views), err)
	}
	if _, err := w.s.Get(w.ctx, narrow, refund.ApprovalID); err != nil {
		t.Errorf("its own tool: %v", err)
	}
	// The message holds both calls: asking for it by the covered one is no way around.
	if err := w.s.Redeliver(w.ctx, narrow, refund.ApprovalID); !isErr(err, ErrNotFound) {
		t.Errorf("redelivered a message with another tool's call: %v", err)
	}
	if _, _, ok, err := w.s.PullResume(w.ctx, w.pull, script.RunID, 0); err != nil || !ok {
		t.Errorf("the agent's own: %v %v", ok, err)
	}
	both, _ := w.narrowKey("pull-agent", "run_script", "issue_refund")
	if _, _, ok, err := w.s.PullResume(w.ctx, both, script.RunID, 0); err != nil || !ok {
		t.Errorf("a key of both tools: %v %v", ok, err)
	}
	w.must(w.s.AckResume(w.ctx, both, script.RunID, 1, ""))
}

// I22: an intake neither repeats nor supersedes nor carries over calls that its key does not cover.
func TestIntakeOfAKeyOfSomeTools(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	in := w.intake(call("a", "ask_user", question), call("b", "send_mail", `{"to":"a@b.example"}`))
	p := w.submit(in)
	narrow, _ := w.narrowKey("release-agent", "ask_user")
	_, err := w.s.Submit(w.ctx, narrow, in)
	if r := w.refusal(err, CodeToolNotAllowed); r.Pointer != "/calls/1/tool" {
		t.Errorf("repeat: pointer %q", r.Pointer)
	}
	next := in
	next.Calls = in.Calls[:1]
	_, err = w.s.Submit(w.ctx, narrow, next)
	w.refusal(err, CodeToolNotAllowed)
	for _, v := range p.Approvals {
		w.want(v.ApprovalID, Pending, "")
	}
	_, err = w.s.Submit(w.ctx, narrow, w.intake(call("a", "no_such_tool", `{}`)))
	if r := w.refusal(err, CodeUnknownTool); r.Suggest == "" {
		t.Error("an unknown tool suggests nothing")
	}
}

// A revoked key writes nothing, is given nothing, and what it reports is not believed (I17, I18), from the revocation's commit on:
// although the process has just authenticated it.
func TestRevokedKeyAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	_, script, lease := w.paused2()
	k, id := w.narrowKey("pull-agent", "issue_refund", "run_script")
	waiting := make(chan error, 1)
	idle, err := w.s.Submit(w.ctx, w.pull, Intake{RunID: "idle", AppStateVersion: "pull/v1", AgentRevision: "r", CallsGiven: true, Calls: []CallInput{call("a", "run_script", `{}`)}})
	w.must(err)
	go func() {
		_, _, _, err := w.s.PullResume(w.ctx, k, "idle", time.Minute)
		waiting <- err
	}()
	w.must(w.s.RevokeKey(w.ctx, id, OperatorActor("test")))
	before := w.row(script.ApprovalID)
	for what, err := range w.asked(k, script, lease) {
		if r := (*Refusal)(nil); !errors.As(err, &r) || r.Code != CodeUnauthorized {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, _, err := w.s.List(w.ctx, k, ListFilter{}); w.refusal(err, CodeUnauthorized).Detail == "" {
		t.Error("lists")
	}
	if after := w.row(script.ApprovalID); after.Version != before.Version || after.Status != Executing {
		t.Fatalf("believed: %s", after)
	}
	if n := one[int](w, `SELECT count(*) FROM audit_event WHERE kind = 'execution.report_refused' AND approval_id = $1`, script.ApprovalID); n != 2 {
		t.Errorf("%d of 2 refused reports are kept for whoever settles the call", n)
	}
	// A wait that outlasts the key ends in the same refusal.
	w.approve(idle.Approvals[0].ApprovalID)
	w.deliver()
	w.refusal(<-waiting, CodeUnauthorized)
	// Another key of the agent may end what its holder began, under the same lease.
	_, err = w.s.Complete(w.ctx, w.pull, script.ApprovalID, lease.LeaseToken, lease.Epoch, json.RawMessage(`{}`))
	w.must(err)
	w.want(script.ApprovalID, Completed, "")
}
