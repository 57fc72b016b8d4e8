package interactions

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/bot"
	"github.com/holdpoint/holdpoint/bot/slacksim"
	"github.com/holdpoint/holdpoint/templates"
)

var (
	_ Core               = (*approvals.Service)(nil)
	_ bot.CardStore      = (*approvals.Service)(nil)
	_ bot.DirectoryStore = (*approvals.Service)(nil)
	_ Slack              = (*bot.Client)(nil)
	_ Cards              = (*bot.Syncer)(nil)
	_ Directory          = (*bot.Directory)(nil)
)

// sentence is a refusal that is always worded the same.
func sentence(code templates.RefusalCode) string {
	return templates.Refusal(code, templates.Facts{}).Plain()
}

func shows(m slacksim.Message, action string) bool { return slices.Contains(m.Actions(), action) }

// The click: 200 at once, the card repainted by its response_url without a rate-limited call, nothing said to anybody.
func TestApprove(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id, ts := w.post(t, nil)
	r, err := w.Click(w.ctx, "U0ALICE", home, ts, templates.ActionApprove, slacksim.ClickOptions{})
	if err != nil || len(r.Body) != 0 {
		t.Fatalf("%v %s", err, r.Body)
	}
	m, err := w.WaitMessage(w.ctx, home, func(m slacksim.Message) bool { return !shows(m, templates.ActionApprove) })
	if err != nil || !strings.Contains(m.PlainText(), "Approved") {
		t.Fatalf("%v %s", err, m.PlainText())
	}
	w.settled(t)
	if w.Calls("chat.update") != 0 || w.Calls("response_url") != 1 {
		t.Errorf("%d updates, %d response_urls", w.Calls("chat.update"), w.Calls("response_url"))
	}
	rq := w.core.requests()
	if len(rq) != 1 || rq[0].By != (approvals.Reviewer{UserID: "U0ALICE", TeamID: "T0ACME"}) || rq[0].Verb != approvals.Approve ||
		rq[0].Surface != approvals.SurfaceCard || rq[0].Channel != home || rq[0].MessageTS != ts || rq[0].DecisionID.Version() != 7 {
		t.Errorf("%+v", rq)
	}
	if len(w.Ephemerals("U0ALICE")) != 0 || w.core.row(id).Card.ShownVersion != 2 {
		t.Error("the clicker was told what the card shows")
	}
	if len(w.core.seen) != 1 {
		t.Error("the signature was not noted for the other processes")
	}
}

// The response_url is best effort: without it the card is updated like any other.
func TestApproveWithoutResponseURL(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, ts := w.post(t, nil)
	w.Fault("response_url", slacksim.ServerError{Status: 500}, 0)
	_, err := w.Click(w.ctx, "U0ALICE", home, ts, templates.ActionApprove, slacksim.ClickOptions{})
	must(t, err)
	_, err = w.WaitMessage(w.ctx, home, func(m slacksim.Message) bool { return !shows(m, templates.ActionApprove) })
	must(t, err)
	if w.settled(t); w.Calls("chat.update") != 1 {
		t.Errorf("%d updates", w.Calls("chat.update"))
	}
}

// Slack's Web API may be down altogether: the decision counts and the click is answered.
func TestClickNeedsNoSlack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id, ts := w.post(t, nil)
	w.Fault("*", slacksim.Drop{}, 0)
	w.Fault("response_url", slacksim.Drop{}, 0)
	r, err := w.Click(w.ctx, "U0ALICE", home, ts, templates.ActionApprove, slacksim.ClickOptions{})
	if err != nil || r.Status != 200 || w.core.row(id).Status != approvals.Approved {
		t.Fatalf("%v", err)
	}
	w.ClearFaults()
}

// Each refusal tells the clicker alone why, and what it says of others is what the row says.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		user, want string
		kind       approvals.DenialKind
		change     func(*approvals.CardFacts)
	}{
		"not a reviewer":    {user: "U0BOB", want: "it needs release-managers; you are in support"},
		"another workspace": {user: "U0EXTERN", want: sentence(templates.RefuseOutsider)},
		"blocked":           {user: "U0ALICE", kind: approvals.DenyBlocked, want: sentence(templates.RefuseBlocked)},
		"requester":         {user: "U0ALICE", kind: approvals.DenyRequester, want: "you asked for it"},
		"expired":           {user: "U0ALICE", kind: approvals.DenyExpired, want: "expired"},
		"changed":           {user: "U0ALICE", kind: approvals.DenyChanged, want: "older version"},
		"policy":            {user: "U0ALICE", kind: approvals.DenyPolicy, want: "isn't offered"},
		"no rule":           {user: "U0ALICE", kind: approvals.DenyEditNoRule, want: "No rule covers these arguments"},
		"a new kind":        {user: "U0ALICE", kind: "from_the_future", want: "nothing was decided"},
		"ineligible":        {user: "U0ALICE", kind: approvals.DenyIneligible, want: sentence(templates.RefuseOutsider)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			id, ts := w.post(t, c.change)
			if c.kind != "" {
				w.core.people[c.user] = c.kind
			}
			_, err := w.Click(w.ctx, c.user, home, ts, templates.ActionApprove, slacksim.ClickOptions{})
			must(t, err)
			w.whisper(t, c.user, c.want)
			for _, other := range []string{"U0ROOT", "U0ANA"} {
				if len(w.Ephemerals(other)) != 0 {
					t.Error("somebody else sees it")
				}
			}
			if w.core.row(id).Status != approvals.Pending {
				t.Error("it was decided")
			}
		})
	}
}

// I8: the loser of a race is told who was faster, and when.
func TestLoserIsToldTheOutcome(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id, ts := w.post(t, nil)
	then := time.Now().Add(-12 * time.Second)
	w.core.change(id, func(f *approvals.CardFacts) {
		f.Status, f.DecidedBy, f.DecidedAt = approvals.Approved, "slack:U0ANA", &then
	})
	must(t, w.core.SaveShown(w.ctx, id, w.core.row(id).Card.ShownVersion, 2)) // the row believes that it is shown: a late update brought the buttons back
	_, err := w.Click(w.ctx, "U0ALICE", home, ts, templates.ActionApprove, slacksim.ClickOptions{})
	must(t, err)
	m := w.whisper(t, "U0ALICE", "Already approved by @U0ANA 12 s ago")
	if m.Channel != home {
		t.Error("told elsewhere")
	}
	if got, _ := w.Message(home, ts); shows(got, templates.ActionApprove) {
		t.Error("the stale card was not repainted")
	}
}

// A refusal still reaches the clicker when the response_url does not work.
func TestRefusalFallsBackToEphemeral(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, ts := w.post(t, nil)
	w.Fault("response_url", slacksim.ServerError{Status: 404}, 0)
	_, err := w.Click(w.ctx, "U0BOB", home, ts, templates.ActionApprove, slacksim.ClickOptions{})
	must(t, err)
	w.whisper(t, "U0BOB", "it needs release-managers")
	if w.Calls("chat.postEphemeral") != 1 {
		t.Error("not by chat.postEphemeral")
	}
}

// Whoever can't be checked yet is read, so that the next click gets an answer.
func TestUncheckableIsRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.core.people["U0BOB"] = approvals.DenyUncheckable
	_, ts := w.post(t, nil)
	_, err := w.Click(w.ctx, "U0BOB", home, ts, templates.ActionApprove, slacksim.ClickOptions{})
	must(t, err)
	if got := <-w.dir.fresh; !slices.Equal(got, []string{"S0RELEASE", "U0BOB"}) {
		t.Errorf("%v", got)
	}
	w.whisper(t, "U0BOB", sentence(templates.RefuseCantCheck))
}

// I17: an unknown outcome is never told as "nothing happened", and an internal error tells nothing of itself.
func TestFailures(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"unknown":  {approvals.ErrUnavailable, sentence(templates.RefuseUnclear)},
		"too slow": {context.DeadlineExceeded, sentence(templates.RefuseUnclear)},
		"gone":     {approvals.ErrNotFound, "no approval"},
		"internal": {errors.New("canary: password authentication failed"), "Something went wrong"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			_, ts := w.post(t, nil)
			w.core.err = c.err
			_, err := w.Click(w.ctx, "U0ALICE", home, ts, templates.ActionApprove, slacksim.ClickOptions{})
			must(t, err)
			if m := w.whisper(t, "U0ALICE", c.want); strings.Contains(m.PlainText(), "canary") {
				t.Error(m.PlainText())
			}
		})
	}
}

// A card that is still being posted says so, and is looked for.
func TestClickBeforeThePostWasSaved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id, ts := w.post(t, nil)
	must(t, w.core.SavePost(w.ctx, id, home, "", 0, false, ""))
	w.core.mu.Lock()
	started := time.Now()
	w.core.rows[id].Card.PostStarted = &started
	w.core.mu.Unlock()
	_, err := w.Click(w.ctx, "U0ALICE", home, ts, templates.ActionApprove, slacksim.ClickOptions{})
	must(t, err)
	w.whisper(t, "U0ALICE", sentence(templates.RefuseOneMoment))
	if w.core.row(id).Card.MessageTS != ts {
		t.Error("the card was not found again")
	}
}

func TestUnknownActionIsAcknowledged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, ts := w.post(t, nil)
	_, err := w.Click(w.ctx, "U0ALICE", home, ts, templates.ActionApprove, slacksim.ClickOptions{
		Tamper: slacksim.Tamper{Payload: func(p map[string]any) { pressed(p)["action_id"] = "of_last_year" }},
	})
	if err != nil || len(w.core.requests()) != 0 {
		t.Error(err)
	}
}

func TestEveryDenialHasASentence(t *testing.T) {
	t.Parallel()
	known := templates.RefusalCodes()
	for kind, code := range denials {
		if !slices.Contains(known, code) {
			t.Errorf("%s: %s", kind, code)
		}
	}
	if len(denials) != len(approvals.DenialKinds) {
		t.Errorf("%d kinds have a sentence", len(denials))
	}
	r := approvals.Ruling{Denial: &approvals.Denial{Kind: approvals.DenyPolicy}}
	if code, _ := denial(r, approvals.Edit, approvals.Reviewer{}); code != templates.RefuseEditNobody {
		t.Errorf("an edit that nobody could approve: %s", code)
	}
}

func TestMetadataFitsAndReturns(t *testing.T) {
	t.Parallel()
	m := metadata{Value: strings.Repeat("v", 256), Channel: home, Message: "1700000000.000100", User: "U0ALICE"}
	got, ok := readMetadata(m.String())
	if !ok || got != m || len(m.String()) > 3000 {
		t.Errorf("%+v", got)
	}
	for _, s := range []string{"", "{}", "x", `{"v":"a","c":"nowhere","m":"1.1"}`, `{"v":"a","c":"C0X1","c":"C0X2","m":"1.1"}`} {
		if _, ok := readMetadata(s); ok {
			t.Errorf("%q is taken", s)
		}
	}
	if !json.Valid([]byte(m.String())) {
		t.Error("not JSON")
	}
}

// The refusal names what it needs and what the clicker is in, also when the mirror knows only the configuration's groups.
func TestRefusalNamesGroups(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.AddGroup(slacksim.Group{ID: "S0RELEASE", Name: "Release managers", Handle: "release-managers", Members: []string{"U0ALICE"}})
	w.AddGroup(slacksim.Group{ID: "S0HELP", Name: "Helpers", Handle: "helpers", Members: []string{"U0BOB"}})
	by := func(user string, d approvals.Denial) string {
		f := templates.Facts{Decision: "approve"}
		d.Kind = approvals.DenyNotReviewer
		w.h.nameGroups(w.ctx, &d, approvals.Reviewer{UserID: user, TeamID: "T0ACME"}, &f)
		return templates.Refusal(templates.RefuseNotReviewer, f).Plain()
	}
	for _, tc := range []struct {
		user string
		d    approvals.Denial
		want string
	}{
		{"U0BOB", approvals.Denial{Needs: []string{"S0RELEASE"}, NeedHandles: []string{"release-managers"}}, "You can't approve this: it needs release-managers; you are in helpers."},
		{"U0ANA", approvals.Denial{Needs: []string{"S0RELEASE", "U0ALICE"}}, "You can't approve this: it needs release-managers or @U0ALICE; you are in no user group."},
		{"U0BOB", approvals.Denial{Needs: []string{"U0ALICE"}, Have: []string{"night-shift"}}, "You can't approve this: it needs @U0ALICE; you are in night-shift and helpers."},
	} {
		if got := by(tc.user, tc.d); got != tc.want {
			t.Errorf("%s\n got %q\nwant %q", tc.user, got, tc.want)
		}
	}
	if n := w.Calls("usergroups.list"); n != 1 {
		t.Errorf("asked Slack %d times", n)
	}
	_, ts := w.post(t, nil)
	_, err := w.Click(w.ctx, "U0BOB", home, ts, templates.ActionApprove, slacksim.ClickOptions{})
	must(t, err)
	w.whisper(t, "U0BOB", "it needs release-managers; you are in support and helpers.")
}

// Slack that doesn't name groups keeps nobody from being told what the mirror knows.
func TestRefusalWithoutSlack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.h.slack = deaf{w.h.slack}
	f := templates.Facts{Decision: "reject"}
	w.h.nameGroups(w.ctx, &approvals.Denial{Kind: approvals.DenyNotReviewer, Needs: []string{"S0RELEASE"}, NeedHandles: []string{"release-managers"}}, approvals.Reviewer{UserID: "U0BOB", TeamID: "T0ACME"}, &f)
	if got, want := templates.Refusal(templates.RefuseNotReviewer, f).Plain(), "You can't reject this: it needs release-managers."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// deaf is a Slack whose groups can't be read.
type deaf struct{ Slack }

func (deaf) Groups(context.Context, string) (map[string]approvals.DirectoryGroup, error) {
	return nil, errors.New("not now")
}
