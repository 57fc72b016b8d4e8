package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"syscall"
	"testing"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/bot/slacksim"
	"github.com/holdpoint/holdpoint/templates"
)

// effected is the boundary that only the tool can see: it had its effect, and has not answered.
const effected = "effect → response"

// doomed starts a worker that will die at a boundary; await returns when it has.
func (p *product) doomed(g *program, at string) (await func()) {
	p.t.Helper()
	if at != effected {
		return g.with("HOLDPOINT_CRASH_AT=" + at).worker().killed
	}
	p.tool.hold(1)
	worker := g.worker()
	return func() {
		p.must(p.tool.wait(p.ctx, func() bool { return len(p.tool.requests) == 1 }))
		worker.signal(syscall.SIGKILL)
		worker.killed()
		p.tool.release()
	}
}

// The crash matrix: a worker is killed, as by kill -9, at each of its boundaries, and another one is started. Whatever was under way
// ends well, the tool has one effect, and the run is told.
func TestKilledWorker(t *testing.T) {
	t.Parallel()
	built(t, crashBinary)
	for at, c := range map[string]struct {
		requests int  // that the tool gets: another one is under the same key
		told     int  // messages: another one has the same id
		early    bool // dies before anybody can approve
	}{
		"relay.enqueued":   {requests: 1, told: 1, early: true},
		"execute.dequeued": {requests: 1, told: 1},
		"execute.claimed":  {requests: 1, told: 1},
		effected:           {requests: 2, told: 1},
		"execute.sent":     {requests: 2, told: 1},
		"execute.answered": {requests: 2, told: 1},
		"execute.recorded": {requests: 1, told: 1},
		"resume.built":     {requests: 1, told: 1},
		"resume.answered":  {requests: 1, told: 2},
		"resume.recorded":  {requests: 1, told: 1},
		"card.synced":      {requests: 1, told: 1, early: true},
	} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			p := start(t, 1, 0)
			g := p.program(crashBinary)
			await := p.doomed(g, at)
			a := p.deploy("run_1")
			if !c.early {
				p.approve("U0ALICE", a.ApprovalID)
			}
			await()
			if p.number(`SELECT count(*) FROM idempotency_ledger WHERE state = 'succeeded'`) == 0 {
				if n := p.number(`SELECT count(*) FROM resume_message`); n != 0 {
					t.Error("the run was told before the result was stored (I20)")
				}
			}
			g.worker()
			p.passes()
			if c.early {
				p.approve("U0ALICE", a.ApprovalID)
			}
			v := p.becomes(a.ApprovalID, approvals.Completed)
			p.resumed("run_1")
			p.must(p.agent.wait(p.ctx, func() bool { return len(p.agent.messages) >= c.told }))
			p.must(p.tool.wait(p.ctx, func() bool { return len(p.tool.requests) >= c.requests }))
			p.eventually("the run counts as told", func() (string, bool) {
				return "", p.number(`SELECT count(*) FROM run_pause WHERE told_at IS NOT NULL`) == 1
			})
			p.card(a.ApprovalID, "Done")
			p.effects(1, c.requests)
			for _, r := range p.tool.requests {
				if r.key != a.OperationKey {
					t.Errorf("a request under %q", r.key)
				}
			}
			for _, m := range p.agent.messages {
				if m.webhookID != p.agent.messages[0].webhookID {
					t.Error("the message came again under another id")
				}
			}
			if len(p.agent.messages) != c.told || len(p.sim.Messages(room)) != 1 || string(v.Result) != `{"receipt":"R-0001"}` {
				t.Errorf("%d messages, %d cards, result %s", len(p.agent.messages), len(p.sim.Messages(room)), v.Result)
			}
		})
	}
}

// passes lets the time pass after which everything that was dispatched, and not done, is looked at again: a minute at most. It turns
// the database's own times back; the trigger that forbids it is not asked.
func (w *world) passes() {
	w.t.Helper()
	tx, err := w.db.Begin(w.ctx)
	w.must(err)
	defer func() { _ = tx.Rollback(w.ctx) }()
	for _, sql := range []string{
		`SET LOCAL session_replication_role = replica`,
		`UPDATE approval_request SET created_at = created_at - interval '1 minute'`,
		`UPDATE card SET post_started = post_started - interval '1 minute'`,
		`UPDATE approval_open SET due_at = clock_timestamp() WHERE wait = 'execution'`,
		`UPDATE run_pause SET next_try_at = next_try_at - interval '1 minute'`,
		`UPDATE audit_event SET at = at - interval '1 minute'`,
	} {
		_, err := tx.Exec(w.ctx, sql)
		w.must(err)
	}
	w.must(tx.Commit(w.ctx))
}

// A tool that can't be asked and must not be sent again: a worker dies around the request, and nobody knows. Nothing is tried again by
// itself; a person looks, and says so (I18, L7).
func TestKilledWorkerOfAnOpaqueTool(t *testing.T) {
	t.Parallel()
	built(t, crashBinary)
	for at, c := range map[string]struct {
		requests        int
		verdict, status string
		outcome         string
	}{
		"execute.claimed":  {requests: 0, verdict: "failed", status: "failed", outcome: "failed"},
		"execute.answered": {requests: 1, verdict: "succeeded", status: "completed", outcome: "succeeded"},
		effected:           {requests: 1, verdict: "succeeded", status: "completed", outcome: "succeeded"},
	} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			p := start(t, 1, 0)
			g := p.program(crashBinary)
			await := p.doomed(g, at)
			run := "run_opaque_" + c.verdict
			a := p.propose(called(run, calling("call_1", "restart_service", object{"service": "checkout"})))[0]
			p.approve("U0ALICE", a.ApprovalID)
			await()
			p.bury()
			g.worker()
			p.becomes(a.ApprovalID, approvals.Uncertain)
			card := p.card(a.ApprovalID, "We don't know whether this happened")
			p.card(a.ApprovalID, "Nothing will be tried again by itself", "@U0ROOT") // the admins are called, in the thread
			if _, asks := card.Action(templates.ActionReconcileYes); !asks {
				t.Error("the card does not ask what happened")
			}
			p.settled()
			p.effects(c.requests, c.requests)
			if len(p.agent.messages) != 0 {
				t.Error("the run was told of an outcome that nobody knows")
			}
			p.command("U0ALICE", "reconcile "+a.ApprovalID.String()+" "+c.verdict+" I looked")
			p.hears("U0ALICE", "Only Holdpoint's admins")
			p.command("U0ROOT", "reconcile "+a.ApprovalID.String()+" "+c.verdict+" the service's own log says so")
			p.becomes(a.ApprovalID, approvals.Status(c.status))
			d := p.resumed(run).Data.Decisions[0]
			if d.Decision != "approve" || d.Outcome != c.outcome {
				t.Errorf("told %+v", d)
			}
			p.settled()
			p.effects(c.requests, c.requests)
		})
	}
}

// A serve process is killed around a commit. Before it, nothing happened, and after it, everything did: the agent and the person do the
// same again, at another process, and it counts once.
func TestKilledServe(t *testing.T) {
	t.Parallel()
	built(t, crashBinary)
	for _, at := range []string{"intake.begun", "intake.committed", "decide.begun", "decide.committed"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			p := start(t, 1, 1)
			alive := p.base
			doomed, address := p.program(crashBinary).with("HOLDPOINT_CRASH_AT=" + at).serve()
			intake := stated("run_1", "openai-agents-js", "0.20.0", p.state("demo/deploy.json"))
			if at == "intake.begun" || at == "intake.committed" {
				text, err := json.Marshal(intake)
				p.must(err)
				req, err := http.NewRequestWithContext(p.ctx, http.MethodPost, address+"/v1/approvals", bytes.NewReader(text))
				p.must(err)
				req.Header = http.Header{"Authorization": {"Bearer " + p.key}, "Content-Type": {"application/json"}}
				if resp, err := http.DefaultClient.Do(req); err == nil {
					t.Errorf("answered with %d", resp.StatusCode)
					_ = resp.Body.Close()
				}
				doomed.killed()
			}
			var pause approvals.Pause
			status, wrong := p.ask(http.MethodPost, "/v1/approvals", intake, &pause)
			if want := map[bool]int{true: http.StatusOK, false: http.StatusCreated}[at == "intake.committed"]; status != want {
				t.Fatalf("the intake again: %d %+v, want %d", status, wrong, want)
			}
			a := pause.Approvals[0]
			card := p.pending(a.ApprovalID)
			if at == "decide.begun" || at == "decide.committed" {
				p.sim.SetCallbackURL(address)
				if r, err := p.sim.Click(p.ctx, "U0ALICE", card.Channel, card.TS, templates.ActionApprove, slacksim.ClickOptions{}); err == nil {
					t.Errorf("acknowledged with %d", r.Status)
				}
				doomed.killed()
				p.sim.SetCallbackURL(alive)
			}
			if at == "decide.begun" && p.get(a.ApprovalID).Status != approvals.Pending {
				t.Error("a decision counts that was not committed")
			}
			if at != "decide.committed" {
				p.approve("U0ALICE", a.ApprovalID)
			}
			v := p.becomes(a.ApprovalID, approvals.Completed)
			p.card(a.ApprovalID, "Done")
			p.resumed("run_1")
			p.settled()
			p.effects(1, 1)
			p.toldOnce("run_1")
			if n := p.number(`SELECT count(*) FROM approval_request`); n != 1 || len(v.Votes) != 1 || len(p.sim.Messages(room)) != 1 {
				t.Errorf("%d approvals, %d votes, %d cards", n, len(v.Votes), len(p.sim.Messages(room)))
			}
		})
	}
}
