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
	// since counts for the approval that is asked for. One that has a child answers with the newest at once, whatever since is; the
	// answer's own id is the one to ask for next, and there since is its version.
	for since, id := range map[int64]ID{0: v.ApprovalID, 99: v.ApprovalID} {
		if got, err := w.s.Watch(w.ctx, w.key, id, since, time.Minute, true); err != nil || got.ApprovalID != child.ApprovalID {
			t.Fatalf("since %d: %s %v", since, got, err)
		}
	}
	go func() {
		got, err := w.s.Watch(context.WithoutCancel(w.ctx), w.key, child.ApprovalID, child.Version, 30*time.Second, true)
		if err != nil {
			t.Error(err)
		}
		seen <- got
	}()
	w.decide(child.ApprovalID, bob, Approve)
	if got := <-seen; got.ApprovalID != child.ApprovalID || got.Status != Approved {
		t.Fatalf("the child's own next version: %s", got)
	}
	if got, err := w.s.Watch(w.ctx, w.key, child.ApprovalID, 2, time.Millisecond, false); err != nil || got.Version != 2 {
		t.Fatalf("after the wait: %s %v", got, err)
	}
	ctx, cancel := context.WithCancel(w.ctx)
	cancel()
	if _, err := w.s.Watch(ctx, w.key, child.ApprovalID, 2, time.Minute, false); err == nil {
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
	if e.RuleText != `tool == "issue_refund" && args.amount > 50` || !e.Known || e.Rule != "refunds" || e.Quorum != 2 || strings.Join(e.Groups, "") != "S0FINANCE" || len(e.View.Votes) != 1 || len(e.Events) != 2 {
		t.Fatalf("%q now %q, %v, %d votes, %d events", e.RuleText, e.Rule, e.Groups, len(e.View.Votes), len(e.Events))
	}
	now := func(what, rule string, quorum int, groups string, pairs ...string) {
		t.Helper()
		w.change(pairs...)
		e, err := w.s.Explain(w.ctx, "acme", v.ApprovalID)
		w.must(err)
		f, err := w.s.CardFacts(w.ctx, v.ApprovalID)
		w.must(err)
		open, err := w.s.Open(w.ctx, "acme", 10)
		w.must(err)
		got, err := w.s.Get(w.ctx, w.key, v.ApprovalID)
		w.must(err)
		if got.Present == nil || !got.Present.Known || got.Present.Rule != rule || got.Present.Quorum != quorum || strings.Join(got.Present.Groups, "") != groups {
			t.Fatalf("%s: the agent reads %+v", what, got.Present)
		}
		if !e.Known || e.Rule != rule || e.Quorum != quorum || strings.Join(e.Groups, "") != groups || f.Needs() != quorum || open[0].Needs() != quorum || e.RuleText == "" {
			t.Fatalf("%s: now %q (%v) of %v, quorum %d; card %d, list %d", what, e.Rule, e.Known, e.Groups, e.Quorum, f.Needs(), open[0].Needs())
		}
		r, err := w.s.Decide(w.ctx, w.click(v.ApprovalID, erin, Approve, func(rq *DecideRequest) { rq.MessageTS = "0.0" })) // tampered: asks nothing else
		w.must(err)
		if r.Denial.Kind != DenyTampered {
			t.Fatal(r.Denial)
		}
		for user, in := range map[string]bool{erin: groups == "S0FINANCE", bob: groups == "S0RELEASE"} {
			p, err := w.s.Standing(w.ctx, "acme", Reviewer{user, team})
			w.must(err)
			if p.MayDecide(open[0]) != in {
				t.Errorf("%s: the list says of %s %v", what, user, !in)
			}
		}
	}
	now("renamed", "refunds-of-another-name", 2, "S0FINANCE", "name: refunds, ", "name: refunds-of-another-name, ")
	now("another rule under the old name", "big", 3, "S0RELEASE", "name: refunds, when: 'tool == \"issue_refund\" && args.amount > 50', reviewers: {groups: [S0FINANCE]}, quorum: 2",
		"name: big, when: 'tool == \"issue_refund\" && args.amount > 500', reviewers: {groups: [S0RELEASE]}, quorum: 3, decide_within: 24h, execute_within: 1h}\n      - {name: refunds, when: 'tool == \"issue_refund\" && args.amount > 50', reviewers: {groups: [S0FINANCE]}, quorum: 2")
	now("a laxer rule", "refunds", 2, "S0FINANCE", "quorum: 2", "quorum: 1")
	now("no rule takes it", "", 2, "S0FINANCE", "name: refunds, when: '", "name: refunds, do: deny, message: No., when: '", ", reviewers: {groups: [S0FINANCE]}, quorum: 2, decide_within: 24h, execute_within: 1h", "")
	w.change("quorum: 2", "quorum: 1")
	shell := New(Options{Clicks: w.db, Intake: w.db, Work: w.db}) // no keyset: the arguments stay sealed
	if e, err = shell.Explain(w.ctx, "acme", v.ApprovalID); err != nil || e.Known || e.Quorum != 2 || strings.Join(e.Groups, "") != "S0FINANCE" {
		t.Fatalf("without the keyset: %+v, %v", e.Present, err)
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
	if len(impact.Blocked) != 2 || len(impact.Blocked[ReasonToolChanged]) != 1 || impact.Blocked[ReasonToolChanged][0].ApprovalID != mailed.ApprovalID || len(impact.Blocked[ReasonReviewerLost]) != 1 || impact.Blocked[ReasonReviewerLost][0].ApprovalID != decided.ApprovalID {
		t.Fatalf("impact: %v", impact)
	}
	impact, err = w.s.Impact(w.ctx, w.parse(configuration, "- {name: deploys,", "- {name: freeze, when: 'tool == \"deploy_release\"', do: deny, message: \"Freeze.\"}\n      - {name: deploys,").Tenants["acme"])
	w.must(err)
	if len(impact.Blocked) != 1 || len(impact.Blocked[ReasonPolicyChanged]) != 2 {
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
