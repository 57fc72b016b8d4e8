package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/approvals/rules"
	"github.com/holdpoint/holdpoint/approvals/seal"
)

// A second start of `dev` never puts the demo's rules in the place of what somebody applied; its own it brings up to date.
func TestDevKeepsWhatSomebodyApplied(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	core := approvals.New(approvals.Options{Clicks: w.db, Intake: w.db, Work: w.db})
	again := func(base string) (said string, agent *demoAgent) {
		t.Helper()
		state, err := openDemoState("", slog.New(slog.DiscardHandler))
		w.must(err)
		var out bytes.Buffer
		d := &dev{io: streams{&out, &out}, base: base}
		d.agent.Store(newDemoAgent(base, filepath.Join(w.dir, "demo-secret"), state, func() {}))
		w.must(d.configure(w.ctx, core))
		return out.String(), d.agent.Load()
	}
	active := func() *rules.Tenant {
		t.Helper()
		cfg, _, err := core.ActiveTenant(w.ctx, demoTenant)
		w.must(err)
		return cfg
	}
	is := func(revision int64, rule string) {
		t.Helper()
		cfg, now, err := core.ActiveTenant(w.ctx, demoTenant)
		w.must(err)
		if now != revision || !strings.Contains(string(cfg.Body()), rule) {
			t.Errorf("revision %d, want %d with %q", now, revision, rule)
		}
	}
	if said, agent := again("http://127.0.0.1:1"); said != "" || agent == nil || agent.key == "" {
		t.Fatalf("the first start: %q %v", said, agent)
	}
	is(1, "production-deploys")
	again("http://127.0.0.1:1")
	is(1, "production-deploys")
	again("http://127.0.0.1:2") // it listens elsewhere now
	is(2, "http://127.0.0.1:2")

	demo := filepath.Join(w.dir, "mine.yaml")
	shown := typed("config", "show", "--tenant=acme", "--database-url="+w.dsn) // what is shown can be applied
	w.must(os.WriteFile(demo, []byte(strings.ReplaceAll(shown.out, "production-deploys", "my-deploys")), 0o600))
	if r := typed("config", "check", demo); r.code != 0 {
		t.Fatalf("config check of what config show says: %s%s\n%s", r.out, r.err, shown.out)
	}
	for n, path := range []string{demo, w.config} { // one with the demo's agent, one with others
		cfg, err := readConfig(path)
		w.must(err)
		_, err = core.Apply(w.ctx, cfg, operator())
		w.must(err)
		mine := active()
		revision := int64(3 + n)
		said, agent := again("http://127.0.0.1:3")
		if want := regexp.MustCompile(`keeps revision [34] of acme; --config FILE replaces it`); !want.MatchString(said) {
			t.Errorf("said %q", said)
		}
		if known := mine.Agents[demoAgentName] != nil; (agent != nil) != known {
			t.Errorf("the demo's agent runs: %t, is in the configuration: %t", agent != nil, known)
		}
		is(revision, "")
		if string(active().Body()) != string(mine.Body()) {
			t.Error("what was applied is gone")
		}
	}
}

// A keyset that works, and is not the one that the database was sealed with, is found by the doctor.
func TestCheckFindsAnotherKeyset(t *testing.T) {
	t.Parallel()
	p := start(t, 1, 0)
	other := filepath.Join(p.dir, "other-keyset.json")
	p.must(seal.Generate(other))
	check := func(keyset string) result { return typed("check", "--database-url="+p.dsn, "--keyset="+keyset) }
	const fails, opened = "fail  keyset         doesn't open what this database holds", "ok    keyset         opens what this database holds"
	if r := check(other); strings.Contains(r.out, fails) || strings.Contains(r.out, opened) {
		t.Errorf("nothing is sealed yet:\n%s", r.out)
	}
	p.deploy("run_sealed")
	if r := check(p.keyset); !strings.Contains(r.out, opened) {
		t.Errorf("the right one:\n%s", r.out)
	}
	if r := check(other); r.code != 1 || !strings.Contains(r.out, fails) || strings.Contains(r.out, opened) {
		t.Errorf("another one: exit %d\n%s", r.code, r.out)
	}
}

// A revision that takes authority away waits for no listing of what it blocks: one that can't be made is said, and it is applied.
func TestConfigApplyWaitsForNoListing(t *testing.T) {
	t.Parallel()
	p := start(t, 1, 0)
	v := p.deploy("run_locked")
	p.must(os.WriteFile(p.config, []byte(strings.Replace(string(p.state(p.config)), "execute_within: 15m", "execute_within: 14m", 1)), 0o600))
	tx, err := p.db.Begin(p.ctx)
	p.must(err)
	_, err = tx.Exec(p.ctx, `SET LOCAL idle_in_transaction_session_timeout = 0`)
	p.must(err)
	_, err = tx.Exec(p.ctx, `SELECT FROM approval_request WHERE approval_id = $1 FOR UPDATE`, v.ApprovalID)
	p.must(err)
	done := make(chan result, 1)
	go func() {
		done <- typed("config", "apply", p.config, "--database-url="+p.dsn, "--keyset="+p.keyset)
	}()
	p.eventually("the revision is active", func() (string, bool) {
		return "revision 1", p.number(`SELECT revision FROM config_active`) == 2
	})
	p.must(tx.Rollback(p.ctx))
	r := <-done
	if r.code != 0 || !strings.Contains(r.out, "acme: active, revision 2\n") || !strings.Contains(r.out, "could not be listed: ") {
		t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
	}
}

// What can hardly be meant is a warning of `config check`, with its place; it refuses nothing.
func TestConfigCheckWarns(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "demo.yaml")
	text := strings.NewReplacer("{{BASE}}", "http://127.0.0.1:1", "{{SECRET}}", path).Replace(demoConfig)
	check := func(text string) result {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return typed("config", "check", path)
	}
	if r := check(text); r.code != 0 || strings.Contains(r.out+r.err, "warn") {
		t.Errorf("the demo's own: exit %d\n%s%s", r.code, r.out, r.err)
	}
	want := regexp.MustCompile(`(?m)^warn  \S+demo\.yaml:8:9: tenants\.acme\.rules\[0\]\.when: args\.environ is no argument in the schema of deploy_release$`)
	if r := check(strings.Replace(text, "args.environment ==", "args.environ ==", 1)); r.code != 0 || !want.MatchString(r.out) {
		t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
	}
	if r := typed("keys", "create", "--help"); !strings.Contains(r.out, "$HOLDPOINT_TENANT") {
		t.Errorf("keys create has no twin of --tenant:\n%s", r.out)
	}
}

// A vote that a block voided is shown as such, in the shell as in Details, and why it was.
func TestShellShowsAVoidVote(t *testing.T) {
	p := one(t)
	v := p.propose(called("run_void", calling("call_1", "issue_refund", object{"order": "ORD-1", "amount": 900, "currency": "EUR"})))[0]
	p.pending(v.ApprovalID)
	p.approve("U0CAROL", v.ApprovalID)
	p.eventually("the vote counts", func() (string, bool) {
		return "no vote", p.number(`SELECT votes FROM approval_request WHERE approval_id = $1`, v.ApprovalID) == 1
	})
	flags := []string{"--tenant=acme", "--database-url=" + p.dsn}
	if r := typed(append([]string{"block", "U0CAROL", "--reason=left the team"}, flags...)...); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	r := typed(append([]string{"approvals", "show", v.ApprovalID.String()}, flags...)...)
	for _, want := range []string{"vote      @U0CAROL · approved, void since the block", "@U0CAROL's vote no longer counts: blocked by operator:", "“left the team”"} {
		if r.code != 0 || !strings.Contains(r.out, want) {
			t.Errorf("no %q: exit %d\n%s%s", want, r.code, r.out, r.err)
		}
	}
}
