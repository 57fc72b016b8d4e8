package bot

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/templates"
)

// I27: the same row gives the same card, in every status, and it is one that Slack takes.
func TestCardIsAFunctionOfTheRow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := *w.store.rows[w.request()]
	for _, s := range approvals.Statuses {
		f.Status = s
		a, b := templates.Render(CardOf(f)), templates.Render(CardOf(f))
		x, err := json.Marshal(a)
		must(t, err)
		y, err := json.Marshal(b)
		must(t, err)
		if string(x) != string(y) {
			t.Errorf("%s: two cards of one row", s)
		}
		if err := templates.Check(a.Blocks); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
}

func TestEveryFieldReachesTheCard(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := *w.store.rows[w.request()]
	at := func(m int) *time.Time {
		t := time.Unix(1_800_000_000, 0).Add(time.Duration(m) * time.Minute)
		return &t
	}
	parent, child := approvals.NewID(), approvals.NewID()
	f.Status, f.Held, f.HeldSince, f.ParentID, f.ChildID = approvals.Approved, approvals.ReasonPaused, at(1), &parent, &child
	f.StartedAt, f.EndedAt, f.ExpiresAt, f.EditDiff = at(2), at(3), *at(9), "-a\n+b\n"
	f.Ledger = &approvals.LedgerView{State: approvals.FailedRetryable, Attempts: 2, NextTryAt: at(4), Error: "503", Reused: 1}
	f.Votes = []approvals.Vote{{By: "slack:U0ALICE", Decision: "approve"}, {By: "slack:U0BOB", Decision: "reject"}}
	f.Snapshot = json.RawMessage(`{"title":"T","arguments":{"n":5.00},"redacted":["/token"],"reason":"why","links":[{"text":"Diff","url":"https://x.example/"}]}`)
	c := CardOf(f)
	want := templates.Card{
		ApprovalID: f.ApprovalID.String(), ShortDigest: "77ab77ab77ab", ParentID: parent.String(), ChildID: child.String(), EditDiff: "-a\n+b\n",
		Agent: "release-agent", Tool: "deploy_release", ToolKind: "effect", Executor: "http", Title: "T", Target: "service/checkout@production",
		Requester: "slack:U0BOB", AppVersion: "release-agent/v1", Reason: "why", Arguments: []byte(`{"n":5.00}`), Redacted: []string{"/token"},
		Links: []templates.Link{{Text: "Diff", URL: "https://x.example/"}}, Rule: "production-deploys", RuleRevision: 3,
		Status: "approved", Held: "paused", HeldSince: *at(1), Quorum: 1, Votes: 1, VotesBy: []string{"slack:U0ALICE"},
		DecideBy: f.DecideBy, ExecuteBy: *at(9), Ledger: "failed_retryable", Attempt: 2, NextTry: *at(4), Duration: time.Minute,
		Error: "503", Decisions: f.Scope.Decisions, Mention: f.Admins, Values: c.Values,
	}
	if d := cmp.Diff(want, c); d != "" {
		t.Error(d)
	}
}

func TestUnreadableAndErasedArguments(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := *w.store.rows[w.request()]
	f.Unreadable, f.Snapshot = "not JSON", json.RawMessage(`{"title":"deploy_release","raw":"{broken"}`)
	if c := CardOf(f); string(c.Arguments) != "{broken" {
		t.Errorf("%s", c.Arguments)
	}
	f.Unreadable, f.Snapshot = "", nil
	c := CardOf(f)
	b, err := json.Marshal(templates.Render(c).Blocks)
	must(t, err)
	if c.Arguments != nil || strings.Contains(string(b), templates.ActionApprove) {
		t.Error("what can't be seen can be approved")
	}
}

// A value is one that the core takes back, and an option's fits Slack's 75 characters.
func TestValuesComeBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := *w.store.rows[w.request()]
	f.Version = 999
	for action, raw := range CardOf(f).Values {
		verb, value := SplitValue(raw)
		b, err := approvals.ParseButton(value)
		if err != nil || b.ID != f.ApprovalID || b.Version != 999 {
			t.Errorf("%s: %+v %v", action, b, err)
		}
		switch action {
		case templates.ActionEdit:
			if verb != approvals.Edit || len(raw) > templates.MaxOptionValue {
				t.Errorf("%s: %q, %d characters", action, verb, len(raw))
			}
		case templates.ActionRespond:
			if verb != approvals.Respond || len(raw) > templates.MaxOptionValue {
				t.Errorf("%s: %q, %d characters", action, verb, len(raw))
			}
		default:
			if verb != "" {
				t.Errorf("%s: %q", action, verb)
			}
		}
	}
	for _, raw := range []string{"", "e", "r", "reject", "edit", "hp1.x"} {
		if verb, value := SplitValue(raw); verb != "" || value != raw {
			t.Errorf("%q: %q %q", raw, verb, value)
		}
	}
	f.Card.MACKey = nil
	if CardOf(f).Values != nil {
		t.Error("values that nobody signed")
	}
}

func TestTimelineIsInWords(t *testing.T) {
	t.Parallel()
	e := Timeline([]approvals.Event{
		{Kind: "decision.approved", From: approvals.Pending, To: approvals.Approved, Actor: "slack:U0ALICE", Detail: json.RawMessage(`{"secret":"canary"}`)},
		{Kind: "decision_refused", Actor: "slack:U0BOB"},
	})
	if e[0].Plain() != "@U0ALICE approved: it may run" || e[1].Plain() != "decision_refused · @U0BOB" {
		t.Errorf("%q, %q", e[0].Plain(), e[1].Plain())
	}
}

// I10: an edited call's card has what was changed, and says so when only hidden values were.
func TestCardOfAnEdit(t *testing.T) {
	t.Parallel()
	parent := approvals.NewID()
	v := approvals.View{ApprovalID: approvals.NewID(), ParentID: &parent, Editors: []string{"slack:U0CY"}, EditDiff: "-a\n+b\n", Status: approvals.Pending}
	if c := CardOfView(v); c.EditDiff != v.EditDiff || c.EditHidden || c.ParentID != parent.String() {
		t.Errorf("%+v", c)
	}
	v.EditDiff = ""
	if c := CardOfView(v); !c.EditHidden {
		t.Error("an edit of hidden values alone is not told")
	}
}
