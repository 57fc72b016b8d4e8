package main

import (
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/bot/slacksim"
	"github.com/holdpoint/holdpoint/migrations/pgtest"
	"github.com/holdpoint/holdpoint/templates"
)

// Real processes, as an operator runs them, and as they die.

// From an empty database to a resumed run, by nothing but commands; then SIGTERM.
func TestFirstDay(t *testing.T) {
	t.Parallel()
	built(t, plainBinary)
	w := newWorld(t)
	w.dsn = pgtest.Empty(t)
	w.must(os.Remove(w.keyset))
	g := w.program(plainBinary)
	if r := g.run("serve"); r.code != 1 || !strings.Contains(r.err, "migrate up") {
		t.Errorf("serve without a schema: %+v", r)
	}
	g.ok("migrate", "up")
	if out := g.ok("migrate", "status"); !strings.Contains(out, "applied") || strings.Contains(out, "missing") {
		t.Errorf("migrate status: %s", out)
	}
	g.ok("keys", "keyset", "--out", w.keyset)
	g.ok("config", "check", w.config)
	if out := g.ok("config", "apply", w.config); !strings.Contains(out, "acme: active, revision 1") {
		t.Errorf("config apply: %s", out)
	}
	w.key = keyIn(g.ok("keys", "create", "--tenant", "acme", "--agent", "release-agent"))
	if w.key == "" {
		t.Fatal("keys create printed no key")
	}
	w.reconnect()
	serve, address := g.serve()
	worker := g.worker()
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/openapi.json", "/docs"} {
		if status := fetch(w, address+path); status != http.StatusOK {
			t.Errorf("%s: %d", path, status)
		}
	}
	w.mirrored()
	if r := g.run("check"); r.code != 0 || !strings.Contains(r.out, "ok    slack") || strings.Contains(r.out, "fail") {
		t.Errorf("check: %+v", r)
	}
	a := w.deploy("run_day")
	if out := g.ok("approvals", "list", "--tenant", "acme"); !strings.Contains(out, a.ApprovalID.String()) {
		t.Errorf("approvals list: %s", out)
	}
	w.approve("U0ALICE", a.ApprovalID)
	w.becomes(a.ApprovalID, approvals.Completed)
	w.card(a.ApprovalID, "Done")
	w.resumed("run_day")
	w.effects(1, 1)
	if out := g.ok("approvals", "show", "--tenant", "acme", a.ApprovalID.String()); !strings.Contains(out, "execution.succeeded") {
		t.Errorf("approvals show: %s", out)
	}
	if out := g.ok("audit", "verify", "--tenant", "acme"); !strings.HasPrefix(out, "whole: ") {
		t.Errorf("audit verify: %s", out)
	}

	// SIGTERM: a long poll is answered with what is known, and both end well and soon.
	waits := w.deploy("run_waits")
	polled := make(chan int, 1)
	go func() {
		status, _ := w.ask(http.MethodGet, "/v1/approvals/"+waits.ApprovalID.String()+"?wait=60s&since=99", nil, nil)
		polled <- status
	}()
	w.eventually("the poll is under way", func() (string, bool) {
		return "", w.number(`SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'holdpoint%' AND query LIKE '%approval_request%'`) > 0
	})
	w.within(15*time.Second, "the drain", func() {
		serve.signal(syscall.SIGTERM)
		worker.signal(syscall.SIGTERM)
		if status := <-polled; status != http.StatusOK {
			t.Errorf("the long poll ended with %d", status)
		}
		if a, b := serve.end(), worker.end(); a != 0 || b != 0 {
			t.Errorf("exit codes %d and %d", a, b)
		}
	})
}

// keyIn finds the key in what `keys create` printed.
func keyIn(out string) string {
	for word := range strings.FieldsSeq(out) {
		if strings.HasPrefix(word, "hp_") {
			return word
		}
	}
	return ""
}

// SIGTERM while a slow tool runs: its result is recorded before the worker ends, and no other worker is needed.
func TestTermDrainsASlowTool(t *testing.T) {
	t.Parallel()
	built(t, plainBinary)
	p := start(t, 1, 0)
	worker := p.program(plainBinary).worker()
	a := p.deploy("run_slow")
	p.tool.hold(1)
	p.approve("U0ALICE", a.ApprovalID)
	p.must(p.tool.wait(p.ctx, func() bool { return len(p.tool.requests) == 1 }))
	worker.signal(syscall.SIGTERM)
	worker.says("worker drains")
	p.tool.release()
	if code := worker.end(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if v := p.get(a.ApprovalID); v.Status != approvals.Completed || string(v.Result) != `{"receipt":"R-0001"}` {
		t.Errorf("%s with %s", v.Status, v.Result)
	}
	p.effects(1, 1)
}

// A worker is stopped for longer than its lease, while the tool works. Another takes over under the next epoch and the same key. When
// the first goes on, what it knows comes too late, and changes nothing (I16).
func TestZombie(t *testing.T) {
	t.Parallel()
	built(t, plainBinary)
	p := start(t, 1, 0)
	g := p.program(plainBinary)
	zombie := g.worker()
	a := p.deploy("run_zombie")
	p.pending(a.ApprovalID)
	p.settled()
	p.tool.hold(1)
	p.approve("U0ALICE", a.ApprovalID)
	p.must(p.tool.wait(p.ctx, func() bool { return len(p.tool.requests) == 1 }))
	p.idle("holdpoint-card") // or the card would be the zombie's until its lock is taken away
	zombie.signal(syscall.SIGSTOP)
	g.worker()
	v := p.becomes(a.ApprovalID, approvals.Completed)
	if v.Ledger.Epoch != 2 || v.Ledger.Attempts != 2 {
		t.Errorf("the ledger: %+v", v.Ledger)
	}
	p.card(a.ApprovalID, "Done")
	p.resumed("run_zombie")
	trail := p.number(`SELECT count(*) FROM audit_event WHERE approval_id = $1`, a.ApprovalID)
	p.tool.release()
	zombie.signal(syscall.SIGCONT)
	zombie.says("the outcome came too late")
	if now := p.get(a.ApprovalID); now.Version != v.Version || now.Ledger.Epoch != 2 || string(now.Result) != string(v.Result) {
		t.Errorf("the zombie changed %+v into %+v", v, now)
	}
	if n := p.number(`SELECT count(*) FROM audit_event WHERE approval_id = $1`, a.ApprovalID); n != trail {
		t.Errorf("the zombie wrote %d events", n-trail)
	}
	p.effects(1, 2)
	p.toldOnce("run_zombie")
}

// Two serve and two worker processes; one card; a double click that reaches both at once, and somebody else's.
func TestFourProcesses(t *testing.T) {
	t.Parallel()
	built(t, plainBinary)
	p := start(t, 0, 0)
	g := p.program(plainBinary)
	for range 2 {
		_, address := g.serve()
		p.fronts = append(p.fronts, address)
	}
	p.balance()
	g.worker()
	g.worker()
	p.mirrored()
	a := p.deploy("run_four")
	card := p.pending(a.ApprovalID)
	freeze(p.sim)
	if _, err := p.sim.ClickTwice(p.ctx, "U0ALICE", card.Channel, card.TS, templates.ActionApprove, slacksim.ClickOptions{}); err != nil {
		t.Error(err)
	}
	p.click("U0BOB", card, templates.ActionApprove)
	p.hears("U0BOB", "Already approved")
	p.sim.ClearFaults()
	p.becomes(a.ApprovalID, approvals.Completed)
	p.card(a.ApprovalID, "Done")
	p.resumed("run_four")
	p.settled()
	p.effects(1, 1)
	p.toldOnce("run_four")
}

// reconnect points the test's own connections at the world's database.
func (w *world) reconnect() {
	w.t.Helper()
	pool, err := approvals.OpenPool(w.ctx, w.dsn, approvals.PoolOptions{Name: "test", Max: 4})
	w.must(err)
	w.ends(pool)
	w.db = pool
}

// mirrored waits until a worker has read the people and groups that the configuration names.
func (w *world) mirrored() {
	w.t.Helper()
	w.eventually("the directory is read", func() (string, bool) {
		return "", w.number(`SELECT count(*) FROM slack_group`) == 2 && w.number(`SELECT count(*) FROM slack_user`) >= 5
	})
}

func fetch(w *world, url string) int {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.ctx, http.MethodGet, url, nil)
	w.must(err)
	resp, err := http.DefaultClient.Do(req)
	w.must(err)
	w.must(resp.Body.Close())
	return resp.StatusCode
}
