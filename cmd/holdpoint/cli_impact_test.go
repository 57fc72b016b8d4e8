package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdpoint/holdpoint/approvals"
)

// What `config diff` says beforehand of each kind of change, to a call that waits for a decision and to one that is approved; `config apply`
// lists the same. What cannot be told is said so, not passed over.
func TestConfigDiffOfEachKind(t *testing.T) {
	t.Parallel()
	p := start(t, 1, 1)
	dsn, keyset := "--database-url="+p.dsn, "--keyset="+p.keyset
	run := func(args ...string) result {
		return typed(append(args, dsn)...)
	}
	if r := run("pause", "tenant", "--tenant=acme", "--reason=look"); r.code != 0 { // what is approved stays so
		t.Fatalf("%+v", r)
	}
	waits, decided := p.deploy("run_waits"), p.deploy("run_decided")
	p.pending(waits.ApprovalID)
	p.approve("U0BOB", decided.ApprovalID)
	p.becomes(decided.ApprovalID, approvals.Approved)
	text := string(p.state(p.config))
	file := func(pairs ...string) string {
		t.Helper()
		changed := text
		for i := 0; i < len(pairs); i += 2 {
			if !strings.Contains(changed, pairs[i]) {
				t.Fatalf("the configuration has no %q", pairs[i])
			}
			changed = strings.Replace(changed, pairs[i], pairs[i+1], 1)
		}
		path := filepath.Join(t.TempDir(), "changed.yaml")
		p.must(os.WriteFile(path, []byte(changed), 0o600))
		return path
	}
	const people = "reviewers: {groups: [S0RELEASE]}"
	from := time.Now().UTC().Add(6 * time.Hour)
	closed := fmt.Sprintf(`execute_within: 15m%s        window: {from: "%s", to: "%s", zone: UTC}`, "\n", from.Format("15:04"), from.Add(time.Hour).Format("15:04"))
	const blocked, held, unsure = "would block %d waiting approvals (%s)", "1 approved ones are outside of the window", "could not check %d"
	block := func(n int, why string) string { return fmt.Sprintf(blocked, n, why) }
	for what, c := range map[string]struct {
		pairs []string
		want  []string
	}{
		"nothing of it":       {[]string{"name: small-refunds", "name: little-refunds"}, nil},
		"a rule that denies":  {[]string{"      - name: deploys", "      - {name: freeze, when: tool == \"deploy_release\", do: deny, message: Freeze.}\n      - name: deploys"}, []string{block(2, "policy_changed")}},
		"requesters":          {[]string{people, people + "\n        requesters: {groups: [S0FINANCE]}"}, []string{block(2, "requester_lost_role")}},
		"requesters unread":   {[]string{people, people + "\n        requesters: {groups: [S0UNREAD]}"}, []string{fmt.Sprintf(unsure, 2)}},
		"nobody left":         {[]string{people, "reviewers: {users: [U0REQ]}"}, []string{block(1, "no_quorum_possible"), block(1, "reviewer_lost_authority")}},
		"other reviewers":     {[]string{people, "reviewers: {groups: [S0FINANCE]}"}, []string{block(1, "reviewer_lost_authority")}},
		"reviewers unread":    {[]string{people, "reviewers: {groups: [S0UNREAD]}"}, []string{fmt.Sprintf(unsure, 2)}},
		"a quorum in reach":   {[]string{people, people + "\n        quorum: 2"}, []string{block(1, "policy_changed")}},
		"a quorum beyond":     {[]string{people, people + "\n        quorum: 3"}, []string{block(1, "no_quorum_possible"), block(1, "policy_changed")}},
		"a window":            {[]string{"execute_within: 15m", closed}, []string{held}},
		"the tool":            {[]string{"title: \"Deploy ", "title: \"Really deploy "}, []string{block(2, "tool_changed")}},
		"the agent's version": {[]string{"release-agent/v1:", "release-agent/v9:"}, []string{block(2, "version_unregistered")}},
	} {
		r := run("config", "diff", file(c.pairs...), keyset)
		if r.code != 0 {
			t.Errorf("%s: %+v", what, r)
			continue
		}
		for _, line := range c.want {
			if !strings.Contains(r.out, line) {
				t.Errorf("%s: no %q in\n%s", what, line, r.out)
			}
		}
		if n := strings.Count(r.out, "would block") + strings.Count(r.out, "outside of") + strings.Count(r.out, "could not check"); n != len(c.want) {
			t.Errorf("%s: %d lists, want %d\n%s", what, n, len(c.want), r.out)
		}
	}
	if r := run("config", "diff", file(people, "reviewers: {users: [U0REQ]}")); !strings.Contains(r.out, "set HOLDPOINT_KEYSET") {
		t.Errorf("without a keyset: %+v", r)
	}
	for _, id := range []approvals.ID{waits.ApprovalID, decided.ApprovalID} {
		if v := p.get(id); v.Status.Terminal() {
			t.Errorf("a diff made it %s", v.Status)
		}
	}
	r := run("config", "apply", file(people, "reviewers: {users: [U0REQ]}"), keyset)
	for _, line := range []string{"active, revision 2", "blocks 1 waiting approvals (no_quorum_possible)", waits.ApprovalID.String(), "blocks 1 waiting approvals (reviewer_lost_authority)", decided.ApprovalID.String()} {
		if !strings.Contains(r.out, line) {
			t.Errorf("apply: no %q in\n%s%s", line, r.out, r.err)
		}
	}
	show := run("approvals", "show", "--tenant=acme", waits.ApprovalID.String(), keyset)
	if !strings.Contains(show.out, "reviewers U0REQ, quorum 1, votes that count 0") {
		t.Errorf("show: %+v", show)
	}
	if show = run("approvals", "show", "--tenant=acme", waits.ApprovalID.String()); !strings.Contains(show.out, "the rule may have changed") || !strings.Contains(show.out, "reviewers S0RELEASE") {
		t.Errorf("show without a keyset: %+v", show)
	}
	run("approvals", "revoke", "--tenant=acme", "agent:release-agent", "over")
	p.settled()
}

// A kill switch that meets nobody must not look thrown: whoever is named by a name is refused.
func TestPeopleAreNamedByTheirID(t *testing.T) {
	t.Parallel()
	p := start(t, 0, 0)
	dsn, keyset := "--database-url="+p.dsn, "--keyset="+p.keyset
	for _, args := range [][]string{
		{"block", "--tenant=acme", "--reason=phished", "@alice"},
		{"block", "--tenant=acme", "--reason=phished", "alice", "--lift"},
		{"approvals", "revoke", "--tenant=acme", "by:alice", "phished"},
		{"approvals", "revoke", "--tenant=acme", "by:@alice", "phished"},
		{"reconcile", "--tenant=acme", keyset, "--slack-user=@alice", approvals.NewID().String(), "failed", "seen"},
	} {
		if r := typed(append(args, dsn)...); r.code == 0 || !strings.Contains(r.err, "member ID") || !strings.Contains(r.err, "nothing was changed") {
			t.Errorf("%q: %+v", args, r)
		}
	}
	if r := typed("block", "--tenant=acme", "--reason=phished", "U0STRANGE", dsn); r.code != 0 || !strings.Contains(r.err, "U0STRANGE is not mirrored") {
		t.Errorf("%+v", r)
	}
	if r := typed("block", "--tenant=acme", "--reason=phished", "U0ALICE", dsn); r.code != 0 || !strings.Contains(r.out, "revoked with it: 0") {
		t.Errorf("%+v", r)
	}
}
