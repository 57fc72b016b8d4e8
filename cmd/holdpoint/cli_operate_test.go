package main

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/holdpoint/holdpoint/approvals"
)

// The doctor says in a line each what works, and the fix of what does not.
func TestCheck(t *testing.T) {
	t.Parallel()
	r := typed("check")
	for _, line := range []string{"fail  keyset .*keys keyset", "fail  redis .*HOLDPOINT_REDIS_URL", "fail  slack .*SLACK_BOT_TOKEN", "fail  database .*--database-url"} {
		if !regexp.MustCompile(line).MatchString(r.out) {
			t.Errorf("no %q in\n%s", line, r.out)
		}
	}
	if r.code != 1 || r.err != "" {
		t.Errorf("exit %d, %s", r.code, r.err)
	}

	p := start(t, 0, 0)
	args := []string{
		"check", "--database-url=" + p.dsn, "--redis-url=" + p.redis.URL(), "--keyset=" + p.keyset, "--slack-bot-token=" + testToken,
		"--slack-signing-secret=" + testSigning, "--slack-app-id=A0HOLDPOINT", "--slack-api-url=" + p.sim.URL() + "/api/",
	}
	r = typed(args...)
	for _, line := range []string{"ok    keyset", "ok    redis", `ok    slack .*T0ACME`, "ok    database", "ok    clock", "ok    acme .*revision 1", "ok    acme .*channel C0APPROVALS can be read", "ok    acme .*listens"} {
		if !regexp.MustCompile(line).MatchString(r.out) {
			t.Errorf("no %q in\n%s", line, r.out)
		}
	}
	if r.code != 0 || strings.Contains(r.out, "fail") {
		t.Errorf("exit %d\n%s", r.code, r.out)
	}

	// A group without people, a webhook key that is gone, a dead Redis: each is found.
	p.must(os.Remove(filepath.Join(p.dir, "webhook-secret")))
	p.must(os.WriteFile(p.config, []byte(strings.ReplaceAll(string(p.state(p.config)), "S0FINANCE", "S0NOBODY")), 0o600))
	p.apply(p.config)
	p.redis.Stop()
	r = typed(args...)
	for _, line := range []string{"fail  redis .*does not answer", "fail  acme .*S0NOBODY does not exist", "fail  acme .*agent release-agent"} {
		if !regexp.MustCompile(line).MatchString(r.out) {
			t.Errorf("no %q in\n%s", line, r.out)
		}
	}
	if r.code != 1 {
		t.Errorf("exit %d", r.code)
	}
	p.silent("the doctor's answer", r.out+r.err)
}

// An operator's shell does what an admin's Slack does: keys, configuration, the kill switch, a revocation, the trail.
func TestOperatorsShell(t *testing.T) {
	t.Parallel()
	p := start(t, 1, 1)
	dsn := "--database-url=" + p.dsn
	must := func(args ...string) string {
		t.Helper()
		r := typed(append(args, dsn)...)
		if r.code != 0 {
			t.Fatalf("%q: exit %d\n%s%s", args, r.code, r.out, r.err)
		}
		return r.out
	}
	no := func(words string, args ...string) {
		t.Helper()
		if r := typed(append(args, dsn)...); r.code == 0 || !strings.Contains(r.err, words) {
			t.Errorf("%q: %+v", args, r)
		}
	}

	no("not in the configuration", "keys", "create", "--tenant=acme", "--agent=nobody")
	no("is not allowed", "keys", "create", "--tenant=acme", "--agent=release-agent", "--tools=rollback")
	second := strings.TrimSpace(must("keys", "create", "--tenant=acme", "--agent=release-agent", "--tools=issue_credit"))
	list := must("keys", "list")
	if strings.Contains(list, second) || !strings.Contains(list, "issue_credit") {
		t.Errorf("keys list: %s", list)
	}
	if own := must("keys", "list", "--tenant=acme"); own != list {
		t.Errorf("keys list of the only tenant: %s", own)
	}
	no(`the tenant "other"`, "keys", "list", "--tenant=other")
	first := p.key
	p.key = second
	if status, wrong := p.ask(http.MethodPost, "/v1/approvals", deploying(), nil); status != 422 || wrong.Code != "tool_not_allowed" {
		t.Errorf("a key for one tool: %d %+v", status, wrong)
	}
	id := regexp.MustCompile(`(key_\S+)\s+acme\s+release-agent\s+issue_credit`).FindStringSubmatch(list)
	if id == nil {
		t.Fatalf("no id in %s", list)
	}
	must("keys", "revoke", id[1])
	no("revoked already", "keys", "revoke", id[1])
	if status, wrong := p.ask(http.MethodPost, "/v1/approvals", called("run_gone", calling("c", "issue_credit", object{"account": "A-7", "amount": 1})), nil); status != 401 || wrong.Code != "unauthorized" {
		t.Errorf("a revoked key: %d %+v", status, wrong) // at once: every transaction reads the key again
	}
	p.key = first

	show := must("config", "show")
	if !strings.HasPrefix(show, "# acme, revision 1\n") || strings.Contains(show, hookSecret) {
		t.Errorf("config show: %s", show)
	}
	if out := must("config", "apply", p.config); !strings.Contains(out, "unchanged, revision 1") {
		t.Errorf("the same again: %s", out)
	}
	a := p.deploy("run_shell")
	p.pending(a.ApprovalID) // what ends before it was shown gets no card
	stricter := filepath.Join(p.dir, "stricter.yaml")
	p.must(os.WriteFile(stricter, []byte(strings.Replace(string(p.state(p.config)), "\n        title: \"Deploy ", "\n        title: \"Really deploy ", 1)), 0o600))
	diff := must("config", "diff", stricter, "--keyset="+p.keyset)
	if !strings.Contains(diff, "would block 1 waiting approvals (tool_changed)") || !strings.Contains(diff, a.ApprovalID.String()) {
		t.Errorf("config diff: %s", diff)
	}
	if v := p.get(a.ApprovalID); v.Status != approvals.Pending {
		t.Errorf("a diff made it %s", v.Status)
	}
	if out := must("config", "apply", stricter); !strings.Contains(out, "active, revision 2") || !strings.Contains(out, a.ApprovalID.String()+" migration_required: tool_changed") {
		t.Errorf("config apply: %s", out)
	}
	p.card(a.ApprovalID, "Out of date")

	b := p.deploy("run_shell_2")
	if out := must("pause", "tenant", "--tenant=acme", "--reason=incident"); !strings.Contains(out, "paused") {
		t.Errorf("pause: %s", out)
	}
	p.approve("U0ALICE", b.ApprovalID)
	p.card(b.ApprovalID, "held", "incident")
	if out := must("approvals", "list", "--tenant=acme"); !strings.Contains(out, "held: paused") {
		t.Errorf("approvals list: %s", out)
	}
	if out := must("approvals", "revoke", "--tenant=acme", "tool:deploy_release", "wrong branch"); !strings.Contains(out, "revoked") {
		t.Errorf("approvals revoke: %s", out)
	}
	p.card(b.ApprovalID, "Revoked", "wrong branch")
	must("pause", "tenant", "--tenant=acme", "--reason=over", "--lift", "--yes")
	no("", "approvals", "show", "--tenant=other", b.ApprovalID.String()) // another tenant's does not exist (I22)
	no("revoke apr_", "approvals", "revoke", "--tenant=acme", "everything:x", "because")
	no("not an approval id", "approvals", "show", "--tenant=acme", "apr_1")
	if out := must("audit", "verify", "--tenant=acme"); !strings.HasPrefix(out, "whole") {
		t.Errorf("audit verify: %s", out)
	}
	p.settled()
	p.effects(0, 0)
}

// A row of the trail that somebody changed behind Holdpoint's back is found (I26).
func TestAuditVerifyFindsAChange(t *testing.T) {
	t.Parallel()
	p := start(t, 1, 1)
	a := p.deploy("run_audit")
	p.approve("U0ALICE", a.ApprovalID)
	p.becomes(a.ApprovalID, approvals.Completed)
	p.settled()
	args := []string{"audit", "verify", "--tenant=acme", "--database-url=" + p.dsn}
	p.eventually("the trail is sealed", func() (string, bool) {
		r := typed(args...)
		return r.out, r.code == 0 && strings.Contains(r.out, " 0 not yet")
	})
	tx, err := p.db.Begin(p.ctx)
	p.must(err)
	for _, sql := range []string{`SET LOCAL session_replication_role = replica`, `UPDATE audit_event SET actor = 'slack:U0MALLORY' WHERE approval_id IS NOT NULL AND actor = 'slack:U0ALICE'`} {
		_, err := tx.Exec(p.ctx, sql)
		p.must(err)
	}
	p.must(tx.Commit(p.ctx))
	if r := typed(args...); r.code != 1 || !strings.HasPrefix(r.out, "broken: ") {
		t.Errorf("%+v", r)
	}
}
