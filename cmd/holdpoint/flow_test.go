package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/templates"
)

// The README's story, executable: what a run goes through, seen from outside. Real Postgres, real Redis, a simulated Slack that
// refuses what Slack refuses, a tool that counts, an agent that verifies.

// A run pauses, a person approves, the tool runs once, the card says so, and the run goes on with the result (I1, I13, I20).
func TestApprove(t *testing.T) {
	p := one(t)
	state := p.state("demo/deploy.json")
	a := p.propose(stated("run_42", "openai-agents-js", "0.20.0", state))[0]
	if a.Status != approvals.Pending || a.Rule != "deploys" || a.ToolCallID != "call_deploy_1" {
		t.Fatalf("taken as %+v", a)
	}
	card := p.card(a.ApprovalID, "Deploy 2026.07.24 to production", "Waiting for approval", "tenant-a:release:2026.07.24")
	p.approve("U0ALICE", a.ApprovalID)

	done := p.becomes(a.ApprovalID, approvals.Completed)
	p.card(a.ApprovalID, "Done", "R-0001", "Approved by @U0ALICE")
	m := p.resumed("run_42")
	p.settled()
	p.effects(1, 1)
	p.toldOnce("run_42")
	const args = `{"release":"2026.07.24","environment":"production","idempotency_key":"tenant-a:release:2026.07.24"}`
	if r := p.tool.requests[0]; r.path != "/releases" || r.body != args || r.key != a.OperationKey {
		t.Errorf("the tool got %+v", r)
	}
	d := m.Data.Decisions[0]
	if m.Type != approvals.RunResume || d.Decision != "approve" || d.Outcome != "succeeded" || d.Arguments != args || string(d.Result) != `{"receipt":"R-0001"}` {
		t.Errorf("told %+v", m)
	}
	if len(d.Votes) != 1 || d.Votes[0].By != "slack:U0ALICE" {
		t.Errorf("votes %+v", d.Votes)
	}
	if m.Data.State == nil || !sameJSON(m.Data.State.Value, state) {
		t.Error("the state came back changed")
	}
	if string(done.Result) != `{"receipt":"R-0001"}` || len(done.Votes) != 1 {
		t.Errorf("the approval reads %s, %+v", done.Result, done.Votes)
	}
	if now, _ := p.sim.Message(card.Channel, card.TS); len(now.Actions()) != 1 || now.Actions()[0] != templates.ActionDetails {
		t.Errorf("the card still offers %v", now.Actions())
	}
	if n := len(p.sim.Messages(room)); n != 1 {
		t.Errorf("%d messages for one call", n)
	}
}

func sameJSON(a, b []byte) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

// A rejection carries its reason to the model; nothing runs (I2).
func TestReject(t *testing.T) {
	p := one(t)
	a := p.deploy("run_no")
	p.click("U0ALICE", p.pending(a.ApprovalID), templates.ActionReject)
	p.form("U0ALICE", templates.ViewReject, "not on a Friday")
	v := p.becomes(a.ApprovalID, approvals.Rejected)
	p.card(a.ApprovalID, "Rejected", "@U0ALICE", "not on a Friday")
	m := p.resumed("run_no")
	p.settled()
	p.effects(0, 0)
	d := m.Data.Decisions[0]
	if d.Decision != "reject" || d.Outcome != "not_run" || d.Message == nil || *d.Message != "not on a Friday" || v.Ledger != nil {
		t.Errorf("told %+v, ledger %+v", d, v.Ledger)
	}
}

// A reviewer changes the arguments: that is a new approval with a new digest, which somebody else approves (I10).
func TestEdit(t *testing.T) {
	p := one(t)
	a := p.deploy("run_edit")
	card := p.pending(a.ApprovalID)
	overflow(p.world, "U0ALICE", card, "Edit")
	r := p.form("U0ALICE", templates.ViewEdit, `{"release":"2026.07.23","environment":"production","idempotency_key":"tenant-a:release:2026.07.23"}`)
	if len(r.Errors) > 0 {
		t.Fatal(r.Errors)
	}
	old := p.becomes(a.ApprovalID, approvals.Edited)
	p.card(a.ApprovalID, "Replaced")
	child := p.get(*old.ChildID)
	if child.Digest == a.Digest || child.OperationKey != a.OperationKey || child.DecideBy.After(a.DecideBy) || len(child.Votes) != 0 {
		t.Errorf("the child %+v", child)
	}
	p.approve("U0ALICE", child.ApprovalID)
	p.hears("U0ALICE", "you edited it")
	p.approve("U0BOB", child.ApprovalID)
	p.becomes(child.ApprovalID, approvals.Completed)
	m := p.resumed("run_edit")
	p.settled()
	p.effects(1, 1)
	if n := len(p.sim.Messages(room)); n != 2 { // serve and worker both hear of the child, and one of them posts its card
		t.Errorf("%d cards for two approvals", n)
	}
	if !strings.Contains(p.tool.requests[0].body, "2026.07.23") {
		t.Error("the tool did not get the edited arguments")
	}
	d := m.Data.Decisions[0]
	if len(m.Data.Decisions) != 1 || !d.Edited || d.ApprovalID != child.ApprovalID.String() || d.Message == nil || !strings.Contains(*d.Message, "release") {
		t.Errorf("told %+v", m.Data.Decisions)
	}
}

// overflow chooses from a card's menu by the words on it.
func overflow(w *world, user string, card slackMessage, words string) {
	w.t.Helper()
	e, ok := card.Action(templates.ActionOverflow)
	if !ok {
		w.t.Fatal("the card has no menu")
	}
	options, _ := e.Raw["options"].([]any)
	for _, o := range options {
		option, _ := o.(map[string]any)
		text, _ := option["text"].(map[string]any)
		if label, _ := text["text"].(string); strings.Contains(label, words) {
			value, _ := option["value"].(string)
			_, err := w.sim.ClickOverflow(w.ctx, user, card.Channel, card.TS, templates.ActionOverflow, value)
			w.must(err)
			return
		}
	}
	w.t.Fatalf("the menu does not offer %q", words)
}

// A person answers the agent's question; the answer is the tool's output, and nothing is executed.
func TestAnswer(t *testing.T) {
	p := one(t)
	a := p.propose(called("run_q", calling("call_q", "ask_user", object{"question": "Store credit instead?"})))[0]
	p.click("U0BOB", p.pending(a.ApprovalID), templates.ActionRespond)
	p.form("U0BOB", templates.ViewRespond, "Yes, this once.")
	p.becomes(a.ApprovalID, approvals.Responded)
	p.card(a.ApprovalID, "Answered", "@U0BOB", "nothing was executed")
	d := p.resumed("run_q").Data.Decisions[0]
	if d.Decision != "respond" || string(d.Result) != `"Yes, this once."` {
		t.Errorf("told %+v", d)
	}
	var c struct {
		State  string
		Result json.RawMessage
	}
	if status, wrong := p.ask("POST", "/v1/operations/"+a.ApprovalID.String()+"/claim", object{}, &c); status != 200 || c.State != "responded" || string(c.Result) != `"Yes, this once."` {
		t.Errorf("claim: %d %+v %+v", status, c, wrong)
	}
	p.settled()
	p.effects(0, 0)
}

// Two calls wait in one pause, for different people; the first runs when it is approved, and the run is told once, when both are
// settled (I11).
func TestTwoCallsAreToldOnce(t *testing.T) {
	p := one(t)
	all := p.propose(stated("run_two", "openai-agents-js", "0.20.0", p.state("demo/deploy-and-refund.json")))
	deploy, refund := all[0], all[1]
	if refund.Quorum != 2 {
		t.Fatalf("the refund needs %d votes", refund.Quorum)
	}
	p.approve("U0ALICE", deploy.ApprovalID)
	p.becomes(deploy.ApprovalID, approvals.Completed)
	p.approve("U0CAROL", refund.ApprovalID)
	p.card(refund.ApprovalID, "1 of 2", "@U0CAROL")
	p.approve("U0CAROL", refund.ApprovalID)
	p.hears("U0CAROL", "You already voted")
	p.settled()
	p.effects(1, 1)
	if len(p.agent.messages) != 0 {
		t.Fatal("the run was told before its second call was decided")
	}
	p.approve("U0DAVE", refund.ApprovalID)
	p.becomes(refund.ApprovalID, approvals.Completed)
	m := p.resumed("run_two")
	p.settled()
	p.toldOnce("run_two")
	p.effects(2, 2)
	if len(m.Data.Decisions) != 2 || m.Data.Decisions[0].Outcome != "succeeded" || m.Data.Decisions[1].Outcome != "succeeded" {
		t.Errorf("told %+v", m.Data.Decisions)
	}
}
