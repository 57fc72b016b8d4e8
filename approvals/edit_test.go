package approvals

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

const editedProduction = `{"release":"2026.07.25","environment":"production","token":"[redacted]"}`

// An edit is a new proposal (I10): new digest, no votes, the deadline kept, hidden values kept, the editor excluded.
func TestEdit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	v := w.propose("deploy_release", production)
	w.exec(`UPDATE approval_request SET decide_by = decide_by - interval '1 hour', expires_at = expires_at - interval '1 hour' WHERE approval_id = $1`, v.ApprovalID)
	v = w.row(v.ApprovalID)
	r := w.decide(v.ApprovalID, bob, Edit, with(editedProduction))
	parent := w.want(v.ApprovalID, Edited, "")
	if parent.ChildID == nil || r.Child == nil || r.Child.ApprovalID != *parent.ChildID || r.View.ChildID == nil || parent.DecidedBy != "slack:"+bob {
		t.Fatalf("the parent ends as %s", parent)
	}
	c := w.row(*parent.ChildID)
	if c.Status != Pending || c.Digest == v.Digest || c.ArgumentsDigest == v.ArgumentsDigest || len(c.Votes) != 0 || *c.ParentID != v.ApprovalID || c.Pause != v.Pause || c.ToolCallID != v.ToolCallID {
		t.Fatalf("the child is %s", c)
	}
	if !c.DecideBy.Equal(v.DecideBy) || !c.ExpiresAt.Equal(v.ExpiresAt) {
		t.Fatalf("the child may be decided until %s, the parent until %s", c.DecideBy, v.DecideBy)
	}
	if !strings.Contains(c.EditDiff, `-  "release": "2026.07.24"`) || !strings.Contains(c.EditDiff, `+  "release": "2026.07.25"`) || strings.Contains(c.EditDiff, "s3cr3t") {
		t.Fatalf("diff:\n%s", c.EditDiff)
	}
	w.denied(c.ApprovalID, bob, Approve, DenyEditor)
	w.denied(v.ApprovalID, alice, Approve, DenyDecided)
	// The button of the parent's card says nothing about the child.
	w.decide(c.ApprovalID, alice, Approve)
	cl := w.claim(c.ApprovalID)
	if want := `{"environment":"production","release":"2026.07.25","token":"s3cr3t-value"}`; string(cl.Arguments.Canonical) != want {
		t.Fatal("the executed bytes are not the edited ones with the hidden value kept")
	}
	if cl.OperationKey != v.OperationKey {
		t.Fatal("I14: the same target has another operation key after an edit")
	}
	w.record(cl, OutcomeSucceeded)
	m, _ := w.told(w.pauseOf(c.ApprovalID))
	if len(m.Data.Decisions) != 1 || m.Data.Decisions[0].ApprovalID != c.ApprovalID.String() || !m.Data.Decisions[0].Edited || !strings.Contains(*m.Data.Decisions[0].Message, "2026.07.25") {
		t.Fatalf("told %s", m.raw)
	}
	if got := w.row(v.ApprovalID); got.Status != Edited {
		t.Fatalf("the parent became %s", got)
	}
}

// What an edit may not be.
func TestEditRefusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	v := w.propose("deploy_release", production)
	for what, c := range map[string]struct {
		kind DenialKind
		form string
	}{
		"nothing changed":            {DenyEditUnchanged, `{"release":"2026.07.24","environment":"production","token":"[redacted]"}`},
		"nothing but the order":      {DenyEditUnchanged, `{ "token":"[redacted]", "environment":"production","release":"2026.07.24"}`},
		"not JSON":                   {DenyEditInvalid, `{"release":`},
		"not an object":              {DenyEditInvalid, `[1]`},
		"a key twice":                {DenyEditInvalid, `{"release":"a","release":"b","environment":"production"}`},
		"a value of another type":    {DenyEditInvalid, `{"release":5,"environment":"production"}`},
		"a field that is not there":  {DenyEditInvalid, `{"release":"a","environment":"production","force":true}`},
		"a value that is not listed": {DenyEditInvalid, `{"release":"a","environment":"moon"}`},
		"a call that a rule allows":  {DenyPolicy, `{"release":"2026.07.24","environment":"staging","token":"[redacted]"}`},
	} {
		t.Run(what, func(*testing.T) {
			r := w.denied(v.ApprovalID, alice, Edit, c.kind, with(c.form))
			if strings.Contains(quoted(r.Denial), "s3cr3t") || strings.Contains(quoted(r.Denial), "moon") {
				t.Errorf("I24: the denial tells a value: %+v", r.Denial)
			}
		})
	}
	// No rule covers what would be proposed: it is said so, and not that nobody may approve it.
	w.change("name: staging, when: 'tool == \"deploy_release\"'", "name: staging, when: 'false && tool == \"deploy_release\"'")
	w.denied(v.ApprovalID, alice, Edit, DenyEditNoRule, with(`{"release":"2026.07.24","environment":"staging","token":"[redacted]"}`))
	w.change()
	// Nobody would be left: alice is the only one for scripts, and an editor does not approve.
	w.change("when: 'tool == \"run_script\"', reviewers: {users: [U0ALICE]}, exclude: []", "when: 'tool == \"run_script\"', reviewers: {users: [U0ALICE]}, exclude: [editor]")
	s := w.propose("run_script", script)
	w.denied(s.ApprovalID, alice, Edit, DenyPolicy, with(`{"name":"weekly"}`))
	// The tool changed in the configuration a moment ago: what the editor sees is not what would run.
	s = w.propose("send_mail", mail)
	_, err := w.s.applyTenant(w.ctx, w.parse(configuration, "Mail {{.to}}", "Write to {{.to}}").Tenants["acme"], OperatorActor("test"))
	w.must(err)
	w.denied(s.ApprovalID, bob, Edit, DenyPolicy, with(`{"to":"b@example.com"}`))
	// A tampered row is not edited, and not decided under another configuration than its own: fail closed.
	w.exec(`UPDATE approval_request SET target = 'elsewhere' WHERE approval_id = $1`, s.ApprovalID)
	if _, err := w.s.Decide(w.ctx, w.click(s.ApprovalID, bob, Edit, with(`{"to":"b@example.com"}`))); !isErr(err, ErrCorrupt) {
		t.Fatalf("an edit of a tampered row: %v", err)
	}
	w.exec(`UPDATE approval_request SET target = $2 WHERE approval_id = $1`, s.ApprovalID, s.Target)
	// A rule that does not offer edits.
	w.change("requesters: {groups: [S0ENG]}, decide_within: 4h", "requesters: {groups: [S0ENG]}, decisions: [approve, reject], decide_within: 4h")
	w.denied(v.ApprovalID, alice, Edit, DenyVerb, with(editedProduction))
	if v = w.propose("deploy_release", production); strings.Join(v.Scope.Decisions, " ") != "approve reject" {
		t.Fatalf("offered: %v", v.Scope.Decisions)
	}
	w.change()
	w.denied(v.ApprovalID, alice, Edit, DenyVerb, with(editedProduction))
}

// An edited hidden value replaces the sealed one; an edit of an edit excludes both editors, keeps the lineage and never lengthens the deadline.
func TestEditOfAnEdit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	v := w.propose("deploy_release", production)
	one := w.decide(v.ApprovalID, bob, Edit, with(`{"release":"2026.07.24","environment":"production","token":"n3w-value"}`)).Child
	two := w.decide(one.ApprovalID, carol, Edit, with(editedProduction)).Child
	w.denied(two.ApprovalID, bob, Approve, DenyEditor)
	w.denied(two.ApprovalID, carol, Approve, DenyEditor)
	if got := w.row(two.ApprovalID); got.DecideBy.After(v.DecideBy) || len(got.Editors) != 2 {
		t.Fatalf("editors %v, decide by %s", got.Editors, got.DecideBy)
	}
	w.decide(two.ApprovalID, alice, Approve)
	c := w.claim(two.ApprovalID)
	if want := `{"environment":"production","release":"2026.07.25","token":"n3w-value"}`; string(c.Arguments.Canonical) != want {
		t.Fatal("the second edit lost what the first one set")
	}
	var parent ID
	w.must(w.db.QueryRow(w.ctx, `SELECT lineage_id FROM approval_request WHERE approval_id = $1`, two.ApprovalID).Scan(&parent))
	if parent != v.ApprovalID {
		t.Fatal("the lineage is lost")
	}
}

// The rules are run again on the edited call: another rule asks other people, for more votes, in its own time.
func TestEditRunsTheRulesAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	w.change("name: small-refunds, when: 'tool == \"issue_refund\"', do: allow, execute_within: 1h", "name: small-refunds, when: 'tool == \"issue_refund\"', reviewers: {users: [U0ALICE]}, exclude: [], decide_within: 30m, execute_within: 5m")
	v := w.propose("issue_refund", refund5)
	if v.Rule != "small-refunds" || v.Quorum != 1 {
		t.Fatalf("rule %s", v.Rule)
	}
	big := w.decide(v.ApprovalID, alice, Edit, with(bigRefund)).Child
	if big.Rule != "refunds" || big.Quorum != 2 || big.DecideBy.After(v.DecideBy) {
		t.Fatalf("the edited call goes to %s, quorum %d", big.Rule, big.Quorum)
	}
	w.denied(big.ApprovalID, alice, Approve, DenyNotReviewer)
	small := w.decide(big.ApprovalID, dave, Edit, with(`{"order":"ORD-18472","amount":7.5,"currency":"USD"}`)).Child
	if small.Rule != "small-refunds" || small.DecideBy.After(small.CreatedAt.Add(30*time.Minute)) {
		t.Fatalf("the smaller one goes to %s", small.Rule)
	}
	// alice edited the lineage; the rule lifts the exclusion.
	w.decide(small.ApprovalID, alice, Approve)
	w.approveIsFor(small.ApprovalID, 5*time.Minute)
	if a := w.agentClaim(small.ApprovalID, "a"); !json.Valid(a.Arguments) || !strings.Contains(string(a.Arguments), "7.5") {
		t.Fatal("other bytes")
	}
}

func (w *world) approveIsFor(id ID, within time.Duration) {
	w.t.Helper()
	v := w.row(id)
	if got := v.ExpiresAt.Sub(*v.DecidedAt); got > within || got < within-5*time.Second {
		w.t.Fatalf("execute_by is %s after the decision, want %s", got, within)
	}
}

// Arguments that nobody can read go to the admins, unseen by any condition, and can only be rejected.
func TestUnreadableArguments(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	for _, raw := range []string{`{"release":"a","release":"b"}`, `not json at all`, `{"amount":9007199254740993}`, `[1,2]`, "{\"a\":\"\xff\"}"} {
		v := w.propose("send_mail", raw)
		if v.Rule != "unreadable" || v.Unreadable == "" || !strings.HasPrefix(v.ArgumentsDigest, "sha256-raw-v1:") || strings.Join(v.Scope.Decisions, " ") != "reject" {
			t.Fatalf("%q: rule %s, %q, %s", raw, v.Rule, v.Unreadable, v.ArgumentsDigest)
		}
		w.denied(v.ApprovalID, alice, Approve, DenyNotReviewer)
		w.denied(v.ApprovalID, root, Approve, DenyVerb)
		w.denied(v.ApprovalID, root, Edit, DenyVerb, with(mail))
		w.decide(v.ApprovalID, root, Reject)
		m, ok := w.told(w.pauseOf(v.ApprovalID))
		if !ok || m.Data.Decisions[0].Decision != "reject" {
			t.Fatalf("told %s", m.raw)
		}
	}
	// Where the tool hides fields, nothing of it is shown but its length.
	v := w.propose("deploy_release", `{"token":"s3cr3t-value",`)
	if strings.Contains(string(v.Snapshot), "s3cr3t") {
		t.Fatal("I24: unreadable arguments of a tool that redacts are shown")
	}
}
