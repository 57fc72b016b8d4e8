package interactions

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/bot"
	"github.com/holdpoint/holdpoint/bot/slacksim"
	"github.com/holdpoint/holdpoint/templates"
)

// ask runs a command and returns what the person is told.
func (w *world) ask(t *testing.T, user, text string) slacksim.Message {
	t.Helper()
	before := len(w.Ephemerals(user))
	_, err := w.Command(w.ctx, user, "C0OTHER", "/approvals", text)
	must(t, err)
	all := w.Ephemerals(user)
	if len(all) != before+1 {
		t.Fatalf("%q: %d answers", text, len(all)-before)
	}
	return all[len(all)-1]
}

func TestCommandsThatLook(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id, _ := w.post(t, nil)
	gone, _ := w.post(t, func(f *approvals.CardFacts) { f.Status = approvals.Approved })
	foreign, _ := w.post(t, func(f *approvals.CardFacts) { f.Tenant = "other" })
	for text, want := range map[string]string{
		"help":                              "reconcile ID succeeded|failed evidence",
		"":                                  "What /approvals can do",
		"list":                              id.String(),
		"show " + id.String():               "Deploy 2026.07.24 to production",
		"audit " + id.String():              "Proposed by the agent release-agent",
		"show " + foreign.String():          "no approval",
		"show " + anID:                      "no approval",
		"whoami":                            "You are",
		"lst":                               "Did you mean /approvals list",
		"frobnicate":                        "There is no such command as frobnicate. Try list, show ID, whoami or /approvals help.",
		"show apr_nonsense":                 "apr_nonsense is no approval's id",
		"pause tool":                        "Something is missing: the tool's name. The whole command: /approvals pause tenant|agent A|tool T reason",
		"pause the tool":                    "the is not understood here: expected tenant, agent NAME or tool NAME",
		"list all":                          "all is not understood here: expected nothing more",
		"block bob left":                    "bob is not understood here: expected a person",
		"revoke who:x why":                  "who:x is not understood here: expected apr_…, run:R, agent:A, tool:T or by:@user",
		"revoke by:bob why":                 "bob is not understood here: expected a person",
		"revoke run: why":                   "expected a name right after the colon",
		"revoke " + anID:                    "Something is missing: a reason",
		"reconcile " + anID:                 "Something is missing: succeeded (it happened) or failed",
		"reconcile " + anID + " perhaps so": "perhaps is not understood here: expected succeeded (it happened) or failed",
		"reconcile " + anID + " failed":     "Something is missing: the evidence",
	} {
		m := w.ask(t, "U0BOB", text)
		if !strings.Contains(m.PlainText(), want) {
			t.Errorf("%q: %s", text, m.PlainText())
		}
		if text == "list" && strings.Contains(m.PlainText(), gone.String()) {
			t.Error("the list has what needs no decision")
		}
		if len(w.Messages("C0OTHER")) != 0 {
			t.Fatal("everybody sees the answer")
		}
	}
}

// An answer to show is nobody's card: it has no Approve, and its Details speaks for the real one.
func TestShowLeadsToTheCard(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id, ts := w.post(t, func(f *approvals.CardFacts) { f.Card.Plain = true })
	m := w.ask(t, "U0ALICE", "show "+id.String())
	if !slices.Equal(m.Actions(), []string{templates.ActionDetails}) {
		t.Fatalf("%v", m.Actions())
	}
	_, err := w.Click(w.ctx, "U0ALICE", "C0OTHER", m.TS, templates.ActionDetails, slacksim.ClickOptions{})
	must(t, err)
	v, err := w.WaitView(w.ctx, "U0ALICE", func(v slacksim.View) bool { return v.CallbackID == templates.ViewDetails })
	must(t, err)
	_, err = w.ClickView(w.ctx, "U0ALICE", v.ID, templates.ActionApprove, nil, slacksim.ClickOptions{})
	must(t, err)
	w.settled(t)
	if rq := w.core.requests(); w.core.row(id).Status != approvals.Approved || rq[0].Channel != home || rq[0].MessageTS != ts {
		t.Errorf("%+v", rq)
	}
}

// What is over is not revoked, nor said to be: the admin hears what it is, and what to do instead.
func TestRevokeOfWhatIsOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	child, _ := w.post(t, nil)
	for status, want := range map[approvals.Status]string{
		approvals.Completed: "Already over: this is approved and done. Nothing was changed.",
		approvals.Revoked:   "Already over: this is revoked. Nothing was changed.",
		approvals.Edited:    "this was replaced by " + child.String() + "; revoke that one",
		approvals.Uncertain: "succeeded|failed evidence",
	} {
		id, _ := w.post(t, func(f *approvals.CardFacts) {
			f.Status = status
			if status == approvals.Edited {
				f.ChildID = &child
			}
		})
		if m := w.ask(t, "U0ROOT", "revoke "+id.String()+" why not"); !strings.Contains(m.PlainText(), want) || strings.Contains(m.PlainText(), "Revoked 1") {
			t.Errorf("%s: %s", status, m.PlainText())
		}
	}
	if acts := w.core.done(); len(acts) != 0 {
		t.Errorf("%q", acts)
	}
}

func TestCommandsThatStop(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id, _ := w.post(t, nil)
	w.core.under = approvals.Suspension{InFlight: []approvals.View{{ApprovalID: id, Tool: "deploy_release", Status: approvals.Executing}}}
	for _, c := range []struct{ text, act, told string }{
		{"pause tool deploy_release the sky falls", "pause tool deploy_release the sky falls slack:U0ROOT", "1 already running"},
		{"block @bob left", "block U0BOB left", "decides nothing"},
		{"unblock @bob back", "unblock U0BOB back", "may decide again"},
		{"revoke " + id.String() + " why not", "revoke " + id.String() + " why not", "Revoked 1"},
		{"revoke by:@ana why not", "revoke U0ANA why not", "Revoked 1"},
	} {
		if m := w.ask(t, "U0ALICE", c.text); !strings.Contains(m.PlainText(), sentence(templates.RefuseNotAdmin)) {
			t.Errorf("%s by a reviewer: %s", c.text, m.PlainText())
		}
		before := len(w.core.done())
		m := w.ask(t, "U0ROOT", c.text)
		acts := w.core.done()[before:]
		if !slices.Equal(acts, []string{c.act}) || !strings.Contains(m.PlainText(), c.told) {
			t.Errorf("%s: %q, %s", c.text, acts, m.PlainText())
		}
	}
	if m := w.ask(t, "U0ALICE", "list"); strings.Contains(m.PlainText(), "blocked") {
		t.Error(m.PlainText())
	}
}

func TestReconcileCommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id, _ := w.post(t, nil)
	if m := w.ask(t, "U0ROOT", "reconcile "+id.String()+" failed ledger"); !strings.Contains(m.PlainText(), "Nothing to reconcile: this is still waiting for a decision.") {
		t.Error(m.PlainText())
	}
	w.core.change(id, func(f *approvals.CardFacts) { f.Status = approvals.Uncertain })
	if m := w.ask(t, "U0ROOT", "reconcile "+id.String()+" failed ledger line 7"); !strings.Contains(m.PlainText(), "Recorded") {
		t.Error(m.PlainText())
	}
	if got := w.core.done(); !slices.Equal(got, []string{"reconcile failed ledger line 7"}) {
		t.Errorf("%q", got)
	}
}

// Whoever's statement does not settle it alone is told how it stands, and that it was noted.
func TestAStatementThatStandsAlone(t *testing.T) {
	t.Parallel()
	for want, alone := range map[string]*approvals.SecondPersonError{
		"someone else has to confirm":         {},
		"You have said so already; a second":  {Repeated: true},
		"Noted. @U0ALICE said the opposite: ": {Opposite: "U0ALICE", Repeated: true},
	} {
		w := newWorld(t)
		id, _ := w.post(t, func(f *approvals.CardFacts) { f.Status = approvals.Uncertain })
		w.core.alone = alone
		if m := w.ask(t, "U0ROOT", "reconcile "+id.String()+" failed ledger"); !strings.Contains(m.PlainText(), want) {
			t.Errorf("%+v: %s", alone, m.PlainText())
		}
	}
}

func TestClearNoIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.core.rejected = &approvals.Refusal{Code: approvals.CodeInvalidRequest, Detail: "no tool of that name <!channel>"}
	m := w.ask(t, "U0ROOT", "pause tool nope why")
	if !strings.Contains(m.PlainText(), "no tool of that name <!channel>") || strings.Contains(m.Text, "<!channel>") {
		t.Errorf("%s / %s", m.PlainText(), m.Text)
	}
}

// A command that takes long is acknowledged in time and answered over its response_url.
func TestSlowCommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.post(t, nil)
	slow := make(chan struct{})
	w.core.slow = slow
	go func() { w.alarm <- time.Time{} }()
	if m := w.ask(t, "U0ROOT", "revoke tool:deploy_release why"); !strings.Contains(m.PlainText(), "One moment") {
		t.Fatal(m.PlainText())
	}
	close(slow)
	_, err := w.WaitEphemeral(w.ctx, "U0ROOT", func(m slacksim.Message) bool { return strings.Contains(m.PlainText(), "Revoked 1") })
	must(t, err)
}

func TestCommandOfOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, c := range map[string]struct {
		tamper slacksim.Tamper
		status int
	}{
		"another app": {slacksim.Tamper{Payload: func(p map[string]any) { p["api_app_id"] = "A0OTHER" }}, 400},
		"unsigned":    {slacksim.Tamper{Unsigned: true}, 401},
		"stale":       {slacksim.Tamper{Skew: -time.Hour}, 401},
	} {
		r, err := w.CommandTampered(w.ctx, "U0ROOT", home, "/approvals", "pause tenant why", c.tamper)
		if r.Status != c.status || err == nil || len(w.core.done()) != 0 {
			t.Errorf("%s: %d %v", name, r.Status, err)
		}
	}
	_, err := w.Command(w.ctx, "U0EXTERN", home, "/approvals", "list")
	must(t, err)
	w.whisper(t, "U0EXTERN", sentence(templates.RefuseOutsider))
}

// A stopping command that another process already got is not run again.
func TestCommandReplayAtAnotherProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r, err := w.Command(w.ctx, "U0ROOT", home, "/approvals", "pause tenant why")
	must(t, err)
	if again, _ := w.Replay(w.ctx, r.Delivery); again.Status != 401 {
		t.Errorf("status %d", again.Status)
	}
	w.h.seen = memory{}
	again, err := w.Replay(w.ctx, r.Delivery)
	must(t, err)
	if len(w.core.done()) != 1 || !strings.Contains(string(again.Body), "already delivered") {
		t.Errorf("%q %s", w.core.done(), again.Body)
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	must(t, w.Challenge(w.ctx))
	w.AddGroup(slacksim.Group{ID: "S0RELEASE", Handle: "release", Members: []string{"U0ALICE"}})
	must(t, w.SetGroupMembers(w.ctx, "S0RELEASE", []string{"U0BOB"}, true))
	want := bot.Event{Type: "subteam_members_changed", Team: "T0ACME", Group: "S0RELEASE", People: []string{"U0BOB", "U0ALICE"}}
	if d := cmp.Diff(want, <-w.dir.events); d != "" {
		t.Error(d)
	}
	_, err := w.Event(w.ctx, map[string]any{"type": "subteam_updated", "subteam": map[string]any{"id": "S0X"}})
	must(t, err)
	if e := <-w.dir.events; e.Group != "S0X" {
		t.Errorf("%+v", e)
	}
	r, err := w.Event(w.ctx, map[string]any{"type": "user_change", "user": map[string]any{"id": "U0BOB", "deleted": true}})
	must(t, err)
	if e := <-w.dir.events; e.User != "U0BOB" {
		t.Errorf("%+v", e)
	}
	// Slack sends an event again, under its id and a new signature.
	_, err = w.EventTampered(w.ctx, map[string]any{"type": "user_change", "user": map[string]any{"id": "U0BOB"}}, slacksim.Tamper{
		Skew: time.Second, Payload: func(p map[string]any) { p["event_id"] = eventID(t, r.Delivery.Body) },
	})
	must(t, err)
	_, err = w.Event(w.ctx, map[string]any{"type": "message", "user": "U0BOB"})
	must(t, err)
	w.settled(t)
	if n := len(w.dir.events); n != 0 {
		t.Errorf("%d more", n)
	}
	if r, err := w.EventTampered(w.ctx, map[string]any{"type": "user_change"}, slacksim.Tamper{
		Payload: func(p map[string]any) { p["api_app_id"] = "A0OTHER" },
	}); err == nil || r.Status != 400 {
		t.Errorf("another app's: %d %v", r.Status, err)
	}
}

func eventID(t *testing.T, body []byte) string {
	t.Helper()
	e, err := parseEvent(body, appID)
	must(t, err)
	return e.ID
}

// Nothing of what people type, and no approval's content, is in the log.
func TestLogHoldsNoWords(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, ts := w.post(t, nil)
	w.core.err = approvals.ErrCorrupt
	_, err := w.Click(w.ctx, "U0ALICE", home, ts, templates.ActionApprove, slacksim.ClickOptions{})
	must(t, err)
	w.Fault("response_url", slacksim.Drop{}, 0)
	w.Fault("chat.postEphemeral", slacksim.Error{Code: "user_not_in_channel"}, 0)
	_, err = w.Click(w.ctx, "U0BOB", home, ts, templates.ActionApprove, slacksim.ClickOptions{})
	must(t, err)
	v := w.open(t, "U0ALICE", ts, templates.ActionReject, slacksim.ClickOptions{}, templates.ViewReject)
	_, err = w.Submit(w.ctx, "U0ALICE", v, slacksim.Values{templates.InputText: "canary words"})
	must(t, err)
	w.ask(t, "U0ROOT", "pause tenant canary words")
	w.settled(t)
	log := w.log.String()
	if !strings.Contains(log, "reference") || strings.Contains(log, "canary") || strings.Contains(log, "2026.07.24") || strings.Contains(log, "/response/") {
		t.Error(log)
	}
}
