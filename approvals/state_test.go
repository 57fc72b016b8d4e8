package approvals

import (
	"fmt"
	"strings"
	"testing"
)

// withStates is a configuration under which the recorded states of @openai/agents are taken.
func (w *world) withStates() {
	w.t.Helper()
	w.change("token: {type: string}}, additionalProperties: false}\n        target: \"'service/checkout@' + args.environment\"", "idempotency_key: {type: string}, token: {type: string}}, additionalProperties: false}\n        target: \"'service/checkout@' + args.environment\"")
}

func (w *world) paused(name string) Intake {
	w.t.Helper()
	in := w.intake()
	in.Format, in.State, in.Calls, in.CallsGiven = "openai-agents-js", state(w.t, name), nil, false
	return in
}

// A run that @openai/agents paused: its calls are read from its state, the worker holds the arguments against it, and the state goes
// back byte for byte.
func TestStateOfOpenAIAgents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	w.withStates()
	in := w.paused("multi-paused")
	p := w.submit(in)
	if len(p.Approvals) != 2 || p.Approvals[0].ToolCallID != "call_deploy_1" || p.Approvals[1].Tool != "issue_refund" || strings.Join(p.Approvals[0].AgentPath, ">") != "ops-agent" {
		t.Fatalf("read: %v", p.Approvals)
	}
	if again := w.submit(in); !again.Repeat {
		t.Fatal("the same state is another intake")
	}
	deploy, refund := p.Approvals[0].ApprovalID, p.Approvals[1].ApprovalID
	w.approve(deploy)
	w.done(deploy)
	w.approve(refund)
	m, ok := w.told(w.pauseOf(deploy))
	if !ok || m.Type != RunResume || !sameJSON(m.Data.State.Value, in.State) || m.Data.Decisions[1].Outcome != "pending_agent" {
		t.Fatalf("told %v %s", ok, m.Type)
	}
}

// I23: a state opens only for its own tenant, run, pause and format; I1: what runs is what the state proposes.
func TestStateIsBoundToItsPause(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		change string
		told   bool // the message can still be built
	}{
		"another run's state":       {`UPDATE run_state_blob b SET sealed = (SELECT o.sealed FROM run_state_blob o WHERE o.pause_id <> b.pause_id LIMIT 1) WHERE pause_id = '%s'`, false},
		"another run's blob":        {`UPDATE run_pause p SET blob_id = (SELECT o.blob_id FROM run_pause o WHERE o.pause_id <> p.pause_id LIMIT 1) WHERE pause_id = '%s'`, false},
		"another format":            {`UPDATE run_state_blob SET format = 'opaque' WHERE pause_id = '%s'`, false},
		"damaged":                   {`UPDATE run_state_blob SET sealed = substr(sealed, 1, length(sealed) - 1) WHERE pause_id = '%s'`, false},
		"no state any more":         {`UPDATE run_pause SET blob_id = NULL WHERE pause_id = '%s'`, true},
		"arguments of another call": {`UPDATE approval_request SET arguments_digest = 'sha256-jcs-v1:00' WHERE pause_id = '%s'`, true},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.withStates()
			w.submit(w.paused("single-paused"))
			v := w.submit(w.paused("single-paused")).Approvals[0]
			w.approve(v.ApprovalID)
			w.exec(fmt.Sprintf(c.change, v.PauseID))
			w.refused(v.ApprovalID, string(Revoked))
			w.want(v.ApprovalID, Revoked, ReasonDigestMismatch)
			if n := one[int](w, `SELECT count(*) FROM idempotency_ledger`); n != 0 {
				t.Fatal("I2: the ledger has a row")
			}
			d, err := w.s.ResumeFor(w.ctx, w.pauseOf(v.ApprovalID))
			if c.told != (err == nil) || err != nil && !isErr(err, ErrCorrupt) || strings.Contains(string(d.Body), `"run.resume"`) {
				t.Fatalf("told: %v", err)
			}
		})
	}
}

// What the agent is told to run itself is held against the state when the pause closes; an edited child against its root.
func TestStateAgainstTheAgentsCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	w.withStates()
	p := w.submit(w.paused("multi-paused"))
	deploy, refund := p.Approvals[0].ApprovalID, p.Approvals[1].ApprovalID
	child := w.decide(deploy, alice, Edit, with(`{"release":"2026.07.25","environment":"production","idempotency_key":"tenant-a:release:2026.07.24"}`)).Child.ApprovalID
	w.decide(child, bob, Approve)
	w.done(child) // the edit's root is what the state proposes
	edited := w.decide(refund, dave, Edit, with(`{"order":"ORD-18472","amount":700,"currency":"USD"}`)).Child.ApprovalID
	w.decide(edited, erin, Approve)
	w.decide(edited, frank, Approve)
	m, ok := w.told(w.pauseOf(child))
	if !ok || m.Type != RunResume || m.Data.Decisions[1].Outcome != "pending_agent" || !m.Data.Decisions[1].Edited {
		t.Fatalf("told %v %s", ok, m.Type)
	}

	// Another state than the calls were read from.
	p = w.submit(w.paused("multi-paused"))
	w.decide(p.Approvals[0].ApprovalID, alice, Reject)
	w.approve(p.Approvals[1].ApprovalID)
	other := w.paused("single-paused")
	swapped, err := w.s.sealed(other.State, sealedFor(w, p))
	w.must(err)
	w.exec(`UPDATE run_state_blob SET sealed = $1 WHERE pause_id = $2`, swapped, p.Approvals[0].PauseID)
	m, ok = w.told(w.pauseOf(p.Approvals[0].ApprovalID))
	if !ok || m.Type != RunBlocked || *m.Data.Decisions[1].ReasonCode != string(ReasonDigestMismatch) {
		t.Fatalf("told %v %s", ok, m.raw)
	}
	w.want(p.Approvals[1].ApprovalID, Revoked, ReasonDigestMismatch)
}

// The same call with other arguments in the state than in the approval: neither the worker nor the agent runs it.
func TestStateProposesOtherArguments(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	w.withStates()
	in := w.paused("multi-paused")
	p := w.submit(in)
	deploy, refund := p.Approvals[0].ApprovalID, p.Approvals[1].ApprovalID
	w.approve(deploy)
	w.approve(refund)
	for from, to := range map[string]string{`2026.07.24`: `2026.07.25`, `742.18`: `842.18`} {
		changed := strings.ReplaceAll(string(in.State), from, to)
		if changed == string(in.State) {
			t.Fatalf("the state has no %s", from)
		}
		in.State = []byte(changed)
	}
	other, err := w.s.sealed(in.State, sealedFor(w, p))
	w.must(err)
	w.exec(`UPDATE run_state_blob SET sealed = $1 WHERE pause_id = $2`, other, p.Approvals[0].PauseID)
	w.refused(deploy, string(Revoked))
	w.want(deploy, Revoked, ReasonDigestMismatch)
	m, ok := w.told(w.pauseOf(refund))
	if !ok || m.Type != RunBlocked || m.Data.State != nil {
		t.Fatalf("told %v %s", ok, m.Type)
	}
	w.want(refund, Revoked, ReasonDigestMismatch)
}

// Nested calls: a sub-agent called twice has the same names and inner ids; the call path tells its calls apart.
func TestNestedCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	w.withStates()
	w.change("token: {type: string}}, additionalProperties: false}\n        target: \"'service/checkout@' + args.environment\"", "idempotency_key: {type: string}, token: {type: string}}, additionalProperties: false}\n        target: \"'service/checkout@' + args.environment\"",
		"environment: {enum: [staging, production]}", "environment: {type: string}")
	p := w.submit(w.paused("nested-parallel-same-callid-paused"))
	if len(p.Approvals) != 2 || p.Approvals[0].ToolCallID != p.Approvals[1].ToolCallID || strings.Join(p.Approvals[0].CallPath, ">") == strings.Join(p.Approvals[1].CallPath, ">") {
		t.Fatalf("read %d calls: %v %v", len(p.Approvals), p.Approvals[0].CallPath, p.Approvals[1].CallPath)
	}
	for _, v := range p.Approvals {
		if got := w.row(v.ApprovalID); got.Status == Approved { // by the staging rule
			w.done(v.ApprovalID)
			continue
		}
		w.approve(v.ApprovalID)
		w.done(v.ApprovalID)
	}
	if p.Approvals[0].OperationKey == p.Approvals[1].OperationKey {
		t.Fatal("two calls have one operation key")
	}
	if m, ok := w.told(w.pauseOf(p.Approvals[0].ApprovalID)); !ok || len(m.Data.Decisions) != 2 {
		t.Fatalf("told %v", ok)
	}
}

// The sealed columns open only for their own row (I23).
func TestSealedColumnsAreBound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.propose("send_mail", mail), w.propose("send_mail", mail)
	w.approve(a.ApprovalID)
	w.approve(b.ApprovalID)
	w.done(a.ApprovalID)
	w.done(b.ApprovalID)
	w.told(w.pauseOf(a.ApprovalID))
	w.told(w.pauseOf(b.ApprovalID))
	w.exec(`UPDATE approval_payload p SET result = (SELECT q.result FROM approval_payload q WHERE q.approval_id = $2) WHERE approval_id = $1`, a.ApprovalID, b.ApprovalID)
	if _, err := w.s.Get(w.ctx, w.key, a.ApprovalID); !isErr(err, ErrCorrupt) {
		t.Fatalf("another row's result opens: %v", err)
	}
	if _, err := w.s.ClaimForAgent(w.ctx, w.key, a.ApprovalID, AgentClaim{}); !isErr(err, ErrCorrupt) {
		t.Fatalf("another row's result is claimed: %v", err)
	}
	w.exec(`UPDATE resume_message p SET sealed = (SELECT q.sealed FROM resume_message q WHERE q.pause_id = $2) WHERE pause_id = $1`, w.pauseOf(a.ApprovalID), w.pauseOf(b.ApprovalID))
	w.exec(`UPDATE run_pause SET next_try_at = clock_timestamp()`)
	if _, err := w.s.ResumeFor(w.ctx, w.pauseOf(a.ApprovalID)); !isErr(err, ErrCorrupt) {
		t.Fatalf("another pause's message opens: %v", err)
	}
}
