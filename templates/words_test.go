package templates

import (
	"strings"
	"testing"
	"time"
)

// Each reason code of the contract has a sentence of its own.
func TestSentences(t *testing.T) {
	t.Parallel()
	codes := reasonCodes
	seen := map[string]string{Sentence("anything else"): "anything else"}
	for _, code := range codes {
		s := Sentence(code)
		if other, twice := seen[s]; twice {
			t.Errorf("%s says the same as %s", code, other)
		}
		seen[s] = code
		if !strings.HasSuffix(s, ".") || strings.Contains(s, "_") {
			t.Errorf("%s: %q is no sentence", code, s)
		}
	}
	if len(codes) != len(sentences) {
		t.Errorf("%d codes in the contract, %d sentences", len(codes), len(sentences))
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		code          RefusalCode
		facts         Facts
		mrkdwn, plain string
	}{
		{
			RefuseNotReviewer,
			Facts{Decision: "approve", Needs: []string{"release-managers"}, Has: []string{"support"}},
			"You can't approve this: it needs `release-managers`; you are in `support`.", "You can't approve this: it needs release-managers; you are in support.",
		},
		{
			RefuseNotReviewer,
			Facts{Decision: "reject", Needs: []string{"a", "b", "c"}, InNone: true},
			"You can't reject this: it needs `a`, `b` or `c`; you are in no user group.", "You can't reject this: it needs a, b or c; you are in no user group.",
		},
		{
			RefuseNotReviewer,
			Facts{Decision: "approve", Needs: []string{"a"}, NeedsPeople: []Person{{"U0ANA", "Ana"}, {ID: "U0BO"}}},
			"You can't approve this: it needs `a`, <@U0ANA> or <@U0BO>.", "You can't approve this: it needs a, Ana or @U0BO.",
		},
		{
			RefuseNotReviewer,
			Facts{Decision: "approve", NeedsPeople: []Person{{ID: "U0BO"}}, InNone: true},
			"You can't approve this: it needs <@U0BO>.", "You can't approve this: it needs @U0BO.",
		},
		{
			RefuseUnknownCommand,
			Facts{Detail: "frob<nicate"},
			"There is no such command as `frob&lt;nicate`. Try list, show ID, whoami or `/approvals help`.", "There is no such command as frob<nicate. Try list, show ID, whoami or /approvals help.",
		},
		{RefuseNotReviewer, Facts{}, "You can't do this: you aren't one of its reviewers.", "You can't do this: you aren't one of its reviewers."},
		{
			RefuseDecided,
			Facts{Status: StatusApproved, By: Person{"slack:U0ANA", "Ana"}, Ago: 12 * time.Second},
			"Already approved by <@U0ANA> 12 s ago.", "Already approved by Ana 12 s ago.",
		},
		{RefuseDecided, Facts{Status: StatusRejected, By: Person{ID: "rule:no-refunds"}}, "Already rejected by the rule `no-refunds`.", "Already rejected by the rule no-refunds."},
		{RefuseExpired, Facts{Ago: time.Minute}, "Too late: it expired 1 min ago. Nothing was executed.", "Too late: it expired 1 min ago. Nothing was executed."},
		{
			RefuseEditInvalid,
			Facts{Detail: "/amount: got `x` <b>"},
			"These arguments don't fit the tool: `/amount: got \\u{60}x\\u{60} &lt;b&gt;`. Nothing changed.", "These arguments don't fit the tool: “/amount: got `x` <b>”. Nothing changed.",
		},
		{RefuseNotFound, Facts{ApprovalID: "apr_1"}, "There is no approval `apr_1` here.", "There is no approval apr_1 here."},
		{
			RefuseInternal,
			Facts{Detail: "ref-1"},
			"Something went wrong on our side, and nothing was decided. Please try again. Reference: `ref-1`", "Something went wrong on our side, and nothing was decided. Please try again. Reference: ref-1",
		},
	} {
		l := Refusal(tc.code, tc.facts)
		if got := l.Mrkdwn(); got != tc.mrkdwn {
			t.Errorf("%s\n got %q\nwant %q", tc.code, got, tc.mrkdwn)
		}
		if got := l.Plain(); got != tc.plain {
			t.Errorf("%s\n got %q\nwant %q", tc.code, got, tc.plain)
		}
	}
}

// Every code has a sentence of its own, and an unknown one is not an excuse to say something wrong.
func TestRefusalCodesAreComplete(t *testing.T) {
	t.Parallel()
	seen := map[string]RefusalCode{}
	for _, code := range RefusalCodes() {
		l := Refusal(code, Facts{Decision: DecisionApprove, Status: StatusCompleted})
		if other, twice := seen[l.Plain()]; twice && code != other {
			t.Errorf("%s says the same as %s: %s", code, other, l.Plain())
		}
		seen[l.Plain()] = code
		if err := Check(l.Message().Blocks); err != nil {
			t.Errorf("%s: %v", code, err)
		}
	}
	if got, want := Refusal("of the future", Facts{}).Plain(), Refusal(RefuseInternal, Facts{}).Plain(); got != want {
		t.Errorf("an unknown code says %q", got)
	}
}

func TestRecorded(t *testing.T) {
	t.Parallel()
	if got, want := Recorded(DecisionApprove, 1, 2).Plain(), "Your approval counts: 1 of 2."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	seen := map[string]bool{}
	for _, d := range []string{DecisionApprove, DecisionReject, DecisionEdit, DecisionRespond} {
		seen[Recorded(d, 1, 1).Plain()] = true
	}
	if len(seen) != 4 {
		t.Errorf("four decisions, %d answers", len(seen))
	}
}

// The help names every command of the contract.
func TestHelpIsComplete(t *testing.T) {
	t.Parallel()
	help := HelpText()
	for _, want := range []string{
		"help", "list", "show ID", "revoke ID reason", "revoke run:R|agent:A|tool:T|by:@user reason", "pause tenant|agent A|tool T reason",
		"unpause tenant|agent A|tool T reason", "block @user reason", "unblock @user reason", "reconcile ID succeeded|failed evidence", "audit ID", "whoami",
	} {
		if !strings.Contains(help, "/approvals "+want+"\n") {
			t.Errorf("no %q in the help", want)
		}
	}
}

func TestWhoami(t *testing.T) {
	t.Parallel()
	if got, want := WhoamiLine(Whoami{Person: Person{"U0ANA", "Ana"}, Groups: []string{"finance"}, Admin: true, Active: true}).Mrkdwn(), "You are <@U0ANA>, an admin, in `finance`. You may decide the requests that name you or one of your groups."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	got := WhoamiLine(Whoami{Person: Person{"U0ANA", "Ana"}, Why: RefuseBlocked}).Plain()
	if want := "You are Ana, not an admin, in groups that we can't read right now. An admin has blocked you from deciding."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A home tab with a reason has the reason alone.
func TestRefusedHome(t *testing.T) {
	t.Parallel()
	g := gallery()
	for _, code := range RefusalCodes() {
		home := HomeView(Home{Waiting: []Card{g["pending"]}, Recent: []Card{g["completed"]}, More: true, Why: code})
		if err := CheckHome(home); err != nil {
			t.Errorf("%s: %v", code, err)
		}
		if n := len(home.Blocks.BlockSet); n != 2 {
			t.Errorf("%s: %d blocks", code, n)
		}
	}
}

func TestLinesFromOutside(t *testing.T) {
	t.Parallel()
	l := Join(Words("Paused by "), Named(Person{"U0ROOT", "Root"}), Words(" since "), Moment(noon), Moment(time.Time{}), Words(": "), Value("<!here>`\u202e"))
	if got, want := l.Mrkdwn(), "Paused by <@U0ROOT> since <!date^1784894400^{date_short_pretty} at {time}|2026-07-24 12:00 UTC>: `&lt;!here&gt;\\u{60}\\u{202E}`"; got != want {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if got, want := l.Plain(), "Paused by Root since 2026-07-24 12:00 UTC: <!here>`\\u{202E}"; got != want {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if err := Check(l.Message().Blocks); err != nil {
		t.Error(err)
	}
}
