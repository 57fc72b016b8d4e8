package interactions

import (
	"slices"
	"strings"
	"testing"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/bot/slacksim"
	"github.com/holdpoint/holdpoint/templates"
)

// unpause shows what would start and asks; the button checks whoever presses it.
func TestUnpauseAsks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := approvals.NewID()
	w.core.under = approvals.Suspension{WouldStart: []approvals.View{{ApprovalID: id, Tool: "deploy_release", Status: approvals.Approved}}}
	w.core.pauses = []approvals.Switch{{Scope: "tool", Name: "deploy_release", By: "slack:U0ROOT", Reason: "incident 7"}}
	m := w.ask(t, "U0ROOT", "unpause tool deploy_release all good")
	if !strings.Contains(m.PlainText(), "1 approved would start") || !strings.Contains(m.PlainText(), id.String()) || len(w.core.done()) != 0 {
		t.Fatalf("%s, %q", m.PlainText(), w.core.done())
	}
	w.core.mu.Lock()
	w.core.admins = nil
	w.core.mu.Unlock()
	_, err := w.Click(w.ctx, "U0ROOT", "C0OTHER", m.TS, actionUnpause, slacksim.ClickOptions{})
	must(t, err)
	w.settled(t)
	if len(w.core.done()) != 0 {
		t.Fatal("no admin any more, and still it was unpaused")
	}
	w.core.mu.Lock()
	w.core.admins = []string{"U0ROOT"}
	w.core.mu.Unlock()
	m = w.ask(t, "U0ROOT", "unpause tool deploy_release all good")
	_, err = w.Click(w.ctx, "U0ROOT", "C0OTHER", m.TS, actionUnpause, slacksim.ClickOptions{})
	must(t, err)
	w.settled(t)
	if got := w.core.done(); !slices.Equal(got, []string{"unpause tool deploy_release all good slack:U0ROOT"}) {
		t.Errorf("%q", got)
	}
	got, err := w.WaitEphemeral(w.ctx, "U0ROOT", func(x slacksim.Message) bool { return x.TS == m.TS })
	if err != nil || len(got.Actions()) != 0 || !strings.Contains(got.PlainText(), "Unpaused tool deploy_release") {
		t.Errorf("the question stays: %v %s", got.Actions(), got.PlainText())
	}
	// The question of before is out of date.
	late := w.ask(t, "U0ROOT", "unpause tool deploy_release all good")
	if len(late.Actions()) != 0 || !strings.Contains(late.PlainText(), "tool deploy_release is not paused") {
		t.Errorf("%v %s", late.Actions(), late.PlainText())
	}
}

// Lifting what is not paused offers nothing and says what is; so does a button whose switch somebody else has lifted.
func TestUnpauseOfWhatIsNotPaused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if m := w.ask(t, "U0ROOT", "unpause tool nope why"); len(m.Actions()) != 0 || !strings.Contains(m.PlainText(), "tool nope is not paused") {
		t.Errorf("%v %s", m.Actions(), m.PlainText())
	}
	w.core.pauses = []approvals.Switch{{Scope: "agent", Name: "release-agent"}, {Scope: "tenant"}}
	if m := w.ask(t, "U0ROOT", "unpause tool nope why"); len(m.Actions()) != 0 || !strings.Contains(m.PlainText(), "Paused now: agent release-agent") || !strings.Contains(m.PlainText(), "Paused now: the whole tenant") {
		t.Errorf("%v %s", m.Actions(), m.PlainText())
	}
	m := w.ask(t, "U0ROOT", "unpause tenant over")
	if !slices.Equal(m.Actions(), []string{actionUnpause}) {
		t.Fatalf("%v %s", m.Actions(), m.PlainText())
	}
	w.core.mu.Lock()
	w.core.pauses = nil
	w.core.mu.Unlock()
	_, err := w.Click(w.ctx, "U0ROOT", "C0OTHER", m.TS, actionUnpause, slacksim.ClickOptions{})
	must(t, err)
	got, err := w.WaitEphemeral(w.ctx, "U0ROOT", func(x slacksim.Message) bool { return x.TS == m.TS && len(x.Actions()) == 0 })
	if err != nil || !strings.Contains(got.PlainText(), "the whole tenant is not paused") || len(w.core.done()) != 0 {
		t.Errorf("%v %s %q", err, got.PlainText(), w.core.done())
	}
}

// The switch is seen where people look: on the cards of what waits, in the list and on the home tab; and it is gone when lifted.
func TestPauseIsShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.core.stand("U0ALICE", approvals.Standing{Groups: []string{"S0RELEASE"}})
	_, ts := w.post(t, nil)
	_, other := w.post(t, func(f *approvals.CardFacts) { f.Tool = "issue_refund" })
	w.core.under = approvals.Suspension{
		InFlight:   []approvals.View{{ApprovalID: approvals.NewID(), Tool: "deploy_release", Status: approvals.Executing}},
		WouldStart: []approvals.View{{ApprovalID: approvals.NewID(), Tool: "deploy_release", Status: approvals.Approved}},
	}
	m := w.ask(t, "U0ROOT", "pause tool deploy_release incident 7")
	for _, want := range []string{"Paused tool deploy_release", "1 already running", "1 approved; these are held", "1 waiting for a decision", "/approvals unpause tool deploy_release reason"} {
		if !strings.Contains(m.PlainText(), want) {
			t.Errorf("no %q in %s", want, m.PlainText())
		}
	}
	card, err := w.WaitMessage(w.ctx, home, func(m slacksim.Message) bool {
		return m.TS == ts && strings.Contains(m.PlainText(), "tool deploy_release: incident 7")
	})
	if err != nil || !shows(card, templates.ActionApprove) {
		t.Fatalf("%v: the card does not say it, or can't be decided: %s", err, card.PlainText())
	}
	w.settled(t)
	if m, _ := w.Message(home, other); strings.Contains(m.PlainText(), "Paused") {
		t.Errorf("another tool's card: %s", m.PlainText())
	}
	const said = "⏸ Paused: the tool deploy_release"
	for where, text := range map[string]string{"list": w.ask(t, "U0ALICE", "list").PlainText(), "home": w.tab(t, "U0ALICE")} {
		if !strings.Contains(text, said) || !strings.Contains(text, "incident 7") || strings.Count(text, "It can be decided") != 1 {
			t.Errorf("%s: %s", where, text)
		}
	}
	m = w.ask(t, "U0ROOT", "unpause tool deploy_release over")
	_, err = w.Click(w.ctx, "U0ROOT", "C0OTHER", m.TS, actionUnpause, slacksim.ClickOptions{})
	must(t, err)
	_, err = w.WaitMessage(w.ctx, home, func(m slacksim.Message) bool { return m.TS == ts && !strings.Contains(m.PlainText(), "Paused") })
	must(t, err)
	if text := w.ask(t, "U0ALICE", "list").PlainText(); strings.Contains(text, "Paused") {
		t.Error(text)
	}
}
