package approvals

import (
	"context"
	"strings"
	"testing"
	"time"
)

// Watching: at once when newer, else when it changes or the wait is over; an edit is followed to its child.
func TestWatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	v := w.propose("deploy_release", production)
	got, err := w.s.Watch(w.ctx, w.key, v.ApprovalID, 0, time.Minute, false)
	w.must(err)
	if got.Version != 1 {
		t.Fatalf("v%d", got.Version)
	}
	seen := make(chan View, 2)
	watch := func(since int64, follow bool) {
		got, err := w.s.Watch(context.WithoutCancel(w.ctx), w.key, v.ApprovalID, since, 30*time.Second, follow)
		if err != nil {
			t.Error(err)
		}
		seen <- got
	}
	go watch(1, false)
	child := w.decide(v.ApprovalID, alice, Edit, with(editedProduction)).Child
	if got := <-seen; got.Status != Edited || *got.ChildID != child.ApprovalID {
		t.Fatalf("watched %s", got)
	}
	watch(2, true)
	if got := <-seen; got.ApprovalID != child.ApprovalID || got.Status != Pending {
		t.Fatalf("followed to %s", got)
	}
	if got, err := w.s.Watch(w.ctx, w.key, child.ApprovalID, 1, time.Millisecond, false); err != nil || got.Version != 1 {
		t.Fatalf("after the wait: %s %v", got, err)
	}
	ctx, cancel := context.WithCancel(w.ctx)
	cancel()
	if _, err := w.s.Watch(ctx, w.key, child.ApprovalID, 1, time.Minute, false); err == nil {
		t.Fatal("a caller that has gone is waited for")
	}
}

func TestListAndEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	var made []ID
	for range 7 {
		made = append(made, w.propose("ask_user", question).ApprovalID)
	}
	w.decide(made[3], alice, Reject)
	var got []ID
	cursor := ""
	for {
		page, next, err := w.s.List(w.ctx, w.key, ListFilter{Limit: 3, Cursor: cursor})
		w.must(err)
		for _, v := range page {
			got = append(got, v.ApprovalID)
		}
		if cursor = next; next == "" {
			break
		}
	}
	if len(got) != 7 || got[0] != made[6] || got[6] != made[0] {
		t.Fatalf("listed %d of %d, newest first: %v", len(got), len(made), got[0] == made[6])
	}
	page, _, err := w.s.List(w.ctx, w.key, ListFilter{Status: Rejected})
	w.must(err)
	if len(page) != 1 || page[0].ApprovalID != made[3] {
		t.Fatalf("rejected: %v", page)
	}
	page, _, err = w.s.List(w.ctx, w.key, ListFilter{RunID: page[0].RunID})
	w.must(err)
	if len(page) != 1 {
		t.Fatalf("of the run: %v", page)
	}
	for _, bad := range []string{"x", "!!", strings.Repeat("A", 100)} {
		_, _, err := w.s.List(w.ctx, w.key, ListFilter{Cursor: bad})
		w.refusal(err, CodeInvalidRequest)
	}
	events, err := w.s.Events(w.ctx, w.key, made[3])
	w.must(err)
	if len(events) != 2 || events[0].Kind != "approval.requested" || events[1].Kind != "decision.rejected" || events[1].From != Pending || events[1].To != Rejected || events[1].Actor != "slack:"+alice {
		t.Fatalf("trail %+v", events)
	}
	open, err := w.s.Open(w.ctx, "acme", 100)
	w.must(err)
	if len(open) != 6 || open[0].ApprovalID != made[6] {
		t.Fatalf("%d open", len(open))
	}
}

// What Details and the card are made of.
func TestExplain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	v := w.propose("issue_refund", bigRefund)
	w.decide(v.ApprovalID, dave, Approve)
	e, err := w.s.Explain(w.ctx, "acme", v.ApprovalID)
	w.must(err)
	if e.RuleText != `tool == "issue_refund" && args.amount > 50` || e.RuleNow != "refunds" || strings.Join(e.Groups, "") != "S0FINANCE" || len(e.View.Votes) != 1 || len(e.Events) != 2 {
		t.Fatalf("%q now %q, %v, %d votes, %d events", e.RuleText, e.RuleNow, e.Groups, len(e.View.Votes), len(e.Events))
	}
	w.change("name: refunds, ", "name: refunds-of-another-name, ")
	if e, err = w.s.Explain(w.ctx, "acme", v.ApprovalID); err != nil || e.RuleNow != "" || e.RuleText == "" {
		t.Fatalf("after the rule was renamed: %q now %q, %v", e.RuleText, e.RuleNow, err)
	}
	f, err := w.s.CardFacts(w.ctx, v.ApprovalID)
	w.must(err)
	if f.Card.Channel != "C0APPROVALS" || f.MaxAttempts != maxAttempts || f.Handles["S0FINANCE"] != "finance" || strings.Join(f.Admins, " ") != "S0ADMINS U0ROOT" || len(f.Card.MACKey) != 32 {
		t.Fatalf("card %s, admins %v", f.Card, f.Admins)
	}
	w.must(w.s.SavePost(w.ctx, v.ApprovalID, "C0OTHER", "2.2", 0, true, "invalid_blocks"))
	if f, err = w.s.CardFacts(w.ctx, v.ApprovalID); err != nil || f.Card.Channel != "C0OTHER" || !f.Card.Plain || f.Card.Failure != "invalid_blocks" || f.Card.ShownVersion != 0 {
		t.Fatalf("card %s, %v", f.Card, err)
	}
	if _, err := w.s.CardFacts(w.ctx, NewID()); !isErr(err, ErrNotFound) {
		t.Fatal(err)
	}
}

// The configuration's one way in.
func TestApply(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	if again := w.change(); again[0].Changed || again[0].Revision != 1 {
		t.Fatalf("the same configuration is revision %d", again[0].Revision)
	}
	if next := w.change("open_per_run: 64", "open_per_run: 32"); !next[0].Changed || next[0].Revision != 2 {
		t.Fatalf("revision %d", next[0].Revision)
	}
	waits, decided := w.propose("deploy_release", production), w.propose("deploy_release", production)
	w.decide(decided.ApprovalID, bob, Approve)
	mailed := w.propose("send_mail", mail)
	// What a change would block is told before it is made, and nothing is written.
	before := w.dump()
	impact, err := w.s.Impact(w.ctx, w.parse(configuration, `"Mail {{.to}}"`, `"Write to {{.to}}"`, "users: [U0ALICE], groups: [S0RELEASE]", "users: [U0ALICE]").Tenants["acme"])
	w.must(err)
	if len(impact) != 2 || len(impact[ReasonToolChanged]) != 1 || impact[ReasonToolChanged][0].ApprovalID != mailed.ApprovalID || len(impact[ReasonReviewerLost]) != 1 || impact[ReasonReviewerLost][0].ApprovalID != decided.ApprovalID {
		t.Fatalf("impact: %v", impact)
	}
	impact, err = w.s.Impact(w.ctx, w.parse(configuration, "- {name: deploys,", "- {name: freeze, when: 'tool == \"deploy_release\"', do: deny, message: \"Freeze.\"}\n      - {name: deploys,").Tenants["acme"])
	w.must(err)
	if len(impact) != 1 || len(impact[ReasonPolicyChanged]) != 2 {
		t.Fatalf("impact of a freeze: %v", impact)
	}
	if after := w.dump(); after != before {
		t.Fatal("looking at a configuration's impact writes")
	}
	w.want(waits.ApprovalID, Pending, "")
	names, err := w.s.Tenants(w.ctx)
	w.must(err)
	if strings.Join(names, " ") != "acme" {
		t.Fatalf("tenants %v", names)
	}
	rows, err := w.s.Keys(w.ctx)
	w.must(err)
	if len(rows) != 2 || rows[0].CreatedBy != "operator:test" || rows[0].RevokedAt != nil {
		t.Fatalf("keys %+v", rows)
	}
	if _, _, err := w.s.CreateKey(w.ctx, "acme", "nobody", nil, OperatorActor("test")); err == nil {
		t.Fatal("a key for an agent that is not configured")
	}
	if _, _, err := w.s.CreateKey(w.ctx, "acme", "release-agent", []string{"rocket"}, OperatorActor("test")); err == nil {
		t.Fatal("a key for a tool that the agent is not allowed")
	}
	if _, err := w.s.Submit(w.ctx, Key{ID: "k", Tenant: "nobody", Agent: "x"}, w.intake(call("a", "ask_user", question))); !isErr(err, ErrNoConfig) {
		t.Fatalf("an intake for no tenant: %v", err)
	}
}

// Two processes, one cache each: a decision under a configuration that another process has just applied reads that one (the design's
// "no two processes disagree").
func TestProcessesAgreeOnTheConfiguration(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	pool := w.open("another", 4, nil)
	another := New(Options{Clicks: pool, Intake: pool, Work: pool, Sealer: w.s.sealer, Directory: w.dir})
	v := w.propose("deploy_release", production)
	_, err := another.Apply(w.ctx, w.parse(configuration, "users: [U0ALICE], groups: [S0RELEASE]", "users: [U0BOB]"), OperatorActor("elsewhere"))
	w.must(err)
	w.denied(v.ApprovalID, alice, Approve, DenyNotReviewer)
	w.decide(v.ApprovalID, bob, Approve)
	// An intake that was prepared under the configuration before starts over.
	_, err = another.Apply(w.ctx, w.parse(configuration, "name: deploys, ", "name: deployments, "), OperatorActor("elsewhere"))
	w.must(err)
	if v = w.propose("deploy_release", production); v.Rule != "deployments" {
		t.Fatalf("an intake under a stale configuration: rule %q", v.Rule)
	}
}
