package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/templates"
)

// What agents rely on: repeats, claims, pulling, rules that decide by themselves, states of real SDKs.

// The same intake again is the same pause, whatever has become of it; other arguments for a call that waits are a conflict (I21).
func TestRepeatedIntake(t *testing.T) {
	p := one(t)
	deploy := object{"release": "2026.07.24", "environment": "production", "token": canary}
	body := called("run_again", calling("call_1", "deploy_release", deploy))
	first := p.propose(body)[0]
	if strings.Contains(string(first.Snapshot), canary) {
		t.Error("the snapshot shows a redacted argument")
	}
	again := func(what string) {
		t.Helper()
		var same approvals.Pause
		if status, wrong := p.ask(http.MethodPost, "/v1/approvals", body, &same); status != http.StatusOK || same.Approvals[0].ApprovalID != first.ApprovalID || same.Pause != 1 {
			t.Errorf("%s: %d %+v %+v", what, status, same, wrong)
		}
	}
	again("while it waits")
	deploy["release"] = "2026.07.25"
	if status, wrong := p.ask(http.MethodPost, "/v1/approvals", body, nil); status != http.StatusConflict || wrong.Code != "different_arguments" {
		t.Errorf("other arguments: %d %+v", status, wrong)
	}
	deploy["release"] = "2026.07.24"
	p.approve("U0ALICE", first.ApprovalID)
	p.becomes(first.ApprovalID, approvals.Completed)
	p.resumed("run_again")
	again("when it is done")
	p.settled()
	p.effects(1, 1)
	p.toldOnce("run_again")
	for _, m := range p.sim.Messages(room) {
		if strings.Contains(m.PlainText()+string(m.Blocks), canary) {
			t.Error("the card shows a redacted argument")
		}
	}
}

type claimed struct {
	State, Arguments string
	LeaseToken       string `json:"lease_token"`
	OperationKey     string `json:"operation_key"`
	Epoch            int64
	Result           json.RawMessage
}

// The agent runs the tool itself: claimed under the ledger, once; whoever comes later gets the stored result (I13, I16, I20).
func TestAgentRunsItsTool(t *testing.T) {
	p := one(t)
	a := p.propose(called("run_own", calling("call_c", "issue_credit", `{"account":"A-7","amount":5.00}`)))[0]
	path := "/v1/operations/" + a.ApprovalID.String()
	if status, wrong := p.ask(http.MethodPost, path+"/claim", object{}, nil); status != http.StatusConflict || wrong.Code != "not_executable" || wrong.State != "pending" {
		t.Errorf("before the approval: %d %+v", status, wrong)
	}
	p.approve("U0CAROL", a.ApprovalID)
	d := p.resumed("run_own").Data.Decisions[0]
	if d.Outcome != "pending_agent" || d.Arguments != `{"account":"A-7","amount":5.00}` {
		t.Errorf("told %+v", d)
	}
	var c, same claimed
	if status, wrong := p.ask(http.MethodPost, path+"/claim", object{"attempt_id": "try-1"}, &c); status != http.StatusOK || c.State != "executing" || c.Arguments != d.Arguments || c.OperationKey != a.OperationKey {
		t.Fatalf("claim: %d %+v %+v", status, c, wrong)
	}
	if status, _ := p.ask(http.MethodPost, path+"/claim", object{"attempt_id": "try-1"}, &same); status != http.StatusOK || same.LeaseToken != c.LeaseToken {
		t.Error("the same attempt did not get its lease back")
	}
	if status, wrong := p.ask(http.MethodPost, path+"/claim", object{"attempt_id": "try-2"}, nil); status != http.StatusConflict || wrong.State != "executing" {
		t.Errorf("a second attempt: %d %+v", status, wrong)
	}
	if status, _ := p.ask(http.MethodPost, path+"/renew", object{"lease_token": c.LeaseToken, "epoch": c.Epoch}, nil); status != http.StatusOK {
		t.Errorf("renew: %d", status)
	}
	if status, wrong := p.ask(http.MethodPost, path+"/complete", object{"lease_token": c.LeaseToken, "epoch": c.Epoch + 1, "result": 1}, nil); status != http.StatusConflict || wrong.Code != "conflict" {
		t.Errorf("another epoch completed: %d %+v", status, wrong)
	}
	if status, wrong := p.ask(http.MethodPost, path+"/complete", object{"lease_token": c.LeaseToken, "epoch": c.Epoch, "result": object{"credited": true}}, nil); status != http.StatusOK {
		t.Fatalf("complete: %d %+v", status, wrong)
	}
	p.card(a.ApprovalID, "Done")
	var after claimed
	if status, _ := p.ask(http.MethodPost, path+"/claim", object{}, &after); status != http.StatusOK || after.State != "succeeded" || string(after.Result) != `{"credited":true}` {
		t.Errorf("afterwards: %+v", after)
	}
	p.settled()
	p.effects(0, 0)
	p.toldOnce("run_own")
}

// An agent that nobody can call asks for its message, and acknowledges it.
func TestPull(t *testing.T) {
	p := one(t)
	body := called("run_pull", calling("call_1", "deploy_release", object{"release": "1", "environment": "production"}))
	with(body, "app_state_version", "release-agent/pull")
	a := p.propose(body)[0]
	const path = "/v1/runs/run_pull/resume"
	if status, _ := p.ask(http.MethodGet, path, nil, nil); status != http.StatusNoContent {
		t.Errorf("before: %d", status)
	}
	p.approve("U0ALICE", a.ApprovalID)
	var m, same told
	if status, wrong := p.ask(http.MethodGet, path+"?wait=20s", nil, &m); status != http.StatusOK || m.Data.Decisions[0].Outcome != "succeeded" {
		t.Fatalf("pulled %d %+v %+v", status, m, wrong)
	}
	if status, _ := p.ask(http.MethodGet, path, nil, &same); status != http.StatusOK || same.Data.Run.ID != "run_pull" {
		t.Errorf("unacknowledged, it is there again: %d", status)
	}
	if status, wrong := p.ask(http.MethodPost, path+"/ack", object{"pause": 1, "agent_revision": "git:2"}, nil); status != http.StatusNoContent {
		t.Errorf("ack: %d %+v", status, wrong)
	}
	if status, _ := p.ask(http.MethodGet, path, nil, nil); status != http.StatusNoContent {
		t.Errorf("afterwards: %d", status)
	}
	p.settled()
	p.effects(1, 1)
	if v := p.get(a.ApprovalID); v.ToldAt == nil || len(p.agent.messages) != 0 {
		t.Errorf("told at %v, webhooks %d", v.ToldAt, len(p.agent.messages))
	}
}

// A rule allows small refunds: no card, nobody is asked, but the same ledger and the same trail.
func TestAllowedByRule(t *testing.T) {
	p := one(t)
	a := p.propose(called("run_small", calling("call_1", "issue_refund", object{"order": "ORD-1", "amount": 20, "currency": "EUR"})))[0]
	done := p.becomes(a.ApprovalID, approvals.Completed)
	d := p.resumed("run_small").Data.Decisions[0]
	p.settled()
	p.effects(1, 1)
	if n := len(p.sim.Messages(room)); n != 0 {
		t.Errorf("%d messages about a call that a rule allows", n)
	}
	if done.DecidedBy != "rule:small-refunds" || done.Ledger == nil || d.Outcome != "succeeded" {
		t.Errorf("decided by %q, told %+v", done.DecidedBy, d)
	}
	var trail struct{ Events []approvals.Event }
	p.ask(http.MethodGet, "/v1/approvals/"+a.ApprovalID.String()+"/events", nil, &trail)
	kinds := map[string]bool{}
	for _, e := range trail.Events {
		kinds[e.Kind] = true
	}
	if !kinds["execution.succeeded"] || len(trail.Events) < 3 {
		t.Errorf("the trail: %+v", trail.Events)
	}
}

// Arguments that can be read in two ways are kept byte for byte and shown to the admins, who can only reject them.
func TestUnreadableArguments(t *testing.T) {
	for name, c := range map[string]struct{ file, call, args string }{
		"duplicate keys": {"duplicate-keys-paused", "call_dup_1", `{"order":"ORD-1","amount":5,"currency":"USD","amount":5000}`},
		"cut off":        {"malformed-args-conditional-paused", "call_bad_3", `{"order": "ORD-1", "amount": 5`},
	} {
		t.Run(name, func(t *testing.T) {
			p := one(t)
			a := p.propose(stated("run_dup", "openai-agents-js", "0.20.0", p.state("testdata/"+c.file+".json")))[0]
			if a.Rule != "unreadable" || !strings.HasPrefix(a.ArgumentsDigest, "sha256-raw-v1:") || a.Unreadable == "" {
				t.Fatalf("taken as %+v", a)
			}
			card := p.pending(a.ApprovalID)
			p.card(a.ApprovalID, "Unreadable call of issue_refund", "Waiting for an admin", c.args)
			if _, offered := card.Action(templates.ActionApprove); offered {
				t.Error("what nobody can read can be approved")
			}
			p.click("U0ROOT", card, templates.ActionReject)
			p.form("U0ROOT", templates.ViewReject, "send it again, once")
			p.becomes(a.ApprovalID, approvals.Rejected)
			d := p.resumed("run_dup").Data.Decisions[0]
			if d.Decision != "reject" || d.Arguments != c.args || d.ToolCallID != c.call {
				t.Errorf("told %+v", d)
			}
			p.settled()
			p.effects(0, 0)
		})
	}
}

// Sub-agents called in parallel use the same inner call id: two calls all the same, each decided and run by itself.
func TestNestedCallsWithOneID(t *testing.T) {
	p := one(t)
	all := p.propose(stated("run_nested", "openai-agents-js", "0.20.0", p.state("testdata/nested-parallel-same-callid-paused.json")))
	if len(all) != 2 || all[0].ToolCallID != all[1].ToolCallID || all[0].OperationKey == all[1].OperationKey {
		t.Fatalf("taken as %+v", all)
	}
	p.approve("U0ALICE", all[0].ApprovalID)
	p.becomes(all[0].ApprovalID, approvals.Completed)
	p.click("U0BOB", p.pending(all[1].ApprovalID), templates.ActionReject)
	p.form("U0BOB", templates.ViewReject, "one is enough")
	p.becomes(all[1].ApprovalID, approvals.Rejected)
	m := p.resumed("run_nested")
	p.settled()
	p.effects(1, 1)
	if len(m.Data.Decisions) != 2 || m.Data.Decisions[0].Decision == m.Data.Decisions[1].Decision {
		t.Errorf("told %+v", m.Data.Decisions)
	}
}

// fixtures is the folder of real states that are other projects' files; without it the test that needs one is skipped.
func fixtures(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("HOLDPOINT_FIXTURES")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "fixtures")
	}
	if _, err := os.Stat(dir); err != nil {
		t.Skip("no fixtures folder: set HOLDPOINT_FIXTURES")
	}
	return dir
}

// A run that Python's SDK paused: approved, run, resumed with the very state.
func TestPythonState(t *testing.T) {
	dir := fixtures(t)
	p := one(t)
	state := p.state(filepath.Join(dir, "openai-agents-python", "resume", "v1_13_pending_tool_approval.json"))
	a := p.propose(stated("run_py", "openai-agents-python", "0.19.3", state))[0]
	if a.Tool != "historical_approval" || a.Target != "account/account-1" {
		t.Fatalf("taken as %+v", a)
	}
	p.approve("U0ALICE", a.ApprovalID)
	p.becomes(a.ApprovalID, approvals.Completed)
	m := p.resumed("run_py")
	if m.Data.State == nil || m.Data.State.Format != "openai-agents-python" || !sameJSON(m.Data.State.Value, state) {
		t.Error("the state came back changed")
	}
	p.settled()
	p.effects(1, 1)
}

// A webhook that does not answer well is tried again under the same id, and the agent may ask for it, too (L5).
func TestRedelivery(t *testing.T) {
	p := one(t)
	a := p.deploy("run_deaf")
	p.agent.mu.Lock()
	p.agent.secret = "whsec_bm90LXRoZS1rZXktdGhhdC1zaWducy10aGUtbWVzc2FnZXM="
	p.agent.mu.Unlock()
	p.approve("U0ALICE", a.ApprovalID)
	p.must(p.agent.wait(p.ctx, func() bool { return len(p.agent.refused) == 1 }))
	p.must(p.logs.says(p.ctx, "the run was not told"))
	p.agent.mu.Lock()
	p.agent.secret = hookSecret
	p.agent.mu.Unlock()
	if status, wrong := p.ask(http.MethodPost, "/v1/approvals/"+a.ApprovalID.String()+"/resume", nil, nil); status != http.StatusAccepted {
		t.Fatalf("%d %+v", status, wrong)
	}
	m := p.resumed("run_deaf")
	p.settled()
	if v := p.get(a.ApprovalID); v.ToldAt == nil || m.webhookID == "" || m.webhookID != p.agent.refused[0] {
		t.Errorf("told at %v under %q, before under %q", v.ToldAt, m.webhookID, p.agent.refused)
	}
	p.effects(1, 1)
}
