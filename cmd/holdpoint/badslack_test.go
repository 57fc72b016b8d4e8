package main

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/bot/slacksim"
	"github.com/holdpoint/holdpoint/templates"
)

// What did not come from Slack is a 401 and no more.
func TestForgedCallbacks(t *testing.T) {
	t.Parallel()
	p := start(t, 1, 0)
	p.work()
	a := p.deploy("run_forged")
	card := p.pending(a.ApprovalID)
	p.stopWork()
	before := p.rows()
	for name, tamper := range map[string]slacksim.Tamper{
		"unsigned":                 {Unsigned: true},
		"another secret":           {Secret: "not-the-secret"},
		"six minutes old":          {Skew: -6 * time.Minute},
		"six minutes ahead":        {Skew: 6 * time.Minute},
		"changed after signing":    {AfterSign: func(body []byte) []byte { return append(body, '&') }},
		"another's id in the body": {AfterSign: func(body []byte) []byte { return []byte(strings.ReplaceAll(string(body), "U0MALLORY", "U0ALICE")) }},
	} {
		click, err := p.sim.Click(p.ctx, "U0MALLORY", card.Channel, card.TS, templates.ActionApprove, slacksim.ClickOptions{Tamper: tamper})
		if click.Status != http.StatusUnauthorized {
			t.Errorf("a click, %s: %d %v", name, click.Status, err)
		}
		command, err := p.sim.CommandTampered(p.ctx, "U0ROOT", room, "/approvals", "pause tenant now U0MALLORY", tamper)
		if command.Status != http.StatusUnauthorized {
			t.Errorf("a command, %s: %d %v", name, command.Status, err)
		}
		event, err := p.sim.EventTampered(p.ctx, map[string]any{"type": "app_home_opened", "user": "U0MALLORY"}, tamper)
		if event.Status != http.StatusUnauthorized {
			t.Errorf("an event, %s: %d %v", name, event.Status, err)
		}
	}
	if v := p.get(a.ApprovalID); v.Status != approvals.Pending || len(v.Votes) != 0 {
		t.Errorf("it is %s with %d votes", v.Status, len(v.Votes))
	}
	p.unchanged("forged callbacks", before)
}

// Signed by Slack, and still not a decision about this card: each is refused in words, to whoever clicked alone, and recorded.
func TestTamperedCards(t *testing.T) {
	t.Parallel()
	p := start(t, 1, 1)
	a, b := p.deploy("run_one"), p.deploy("run_other")
	card, other := p.pending(a.ApprovalID), p.pending(b.ApprovalID)
	set := func(value any, path ...string) func(map[string]any) {
		return func(payload map[string]any) {
			at := payload
			for _, name := range path[:len(path)-1] {
				if list, ok := at[name].([]any); ok {
					at, _ = list[0].(map[string]any)
					continue
				}
				at, _ = at[name].(map[string]any)
			}
			at[path[len(path)-1]] = value
		}
	}
	approve, _ := card.Action(templates.ActionApprove)
	value := approve.String("value")
	theirs, _ := other.Action(templates.ActionApprove)
	p.settled()
	last := map[bool]string{true: "A", false: "B"}[!strings.HasSuffix(value, "A")]
	before := p.rows()
	for name, c := range map[string]struct {
		change func(map[string]any)
		status int
		words  string
	}{
		"a changed value":           {change: set(value[:len(value)-1]+last, "actions", "value"), words: "doesn't belong to this card"},
		"another card's value":      {change: set(theirs.String("value"), "actions", "value"), words: "doesn't belong to this card"},
		"rubbish as a value":        {change: set("hp1.!!", "actions", "value"), words: "doesn't belong to this card"},
		"forwarded":                 {change: set("C0OTHER", "container", "channel_id"), words: "doesn't belong to this card"},
		"copied into a new message": {change: set("1700000000.000100", "container", "message_ts"), words: "doesn't belong to this card"},
		"another app":               {change: set("A0EVIL", "api_app_id"), status: http.StatusBadRequest},
		"no container":              {change: func(m map[string]any) { delete(m, "container") }, status: http.StatusBadRequest},
		"another workspace":         {change: set("T0EVIL", "user", "team_id"), words: ""},
	} {
		n := len(p.sim.Ephemerals("U0ALICE"))
		r, err := p.sim.Click(p.ctx, "U0ALICE", card.Channel, card.TS, templates.ActionApprove, slacksim.ClickOptions{Tamper: slacksim.Tamper{Payload: c.change}})
		if c.status != 0 {
			if r.Status != c.status {
				t.Errorf("%s: %d %v", name, r.Status, err)
			}
			continue
		}
		p.must(err)
		p.eventually(name+" is answered", func() (string, bool) {
			all := p.sim.Ephemerals("U0ALICE")
			if len(all) <= n {
				return "nothing", false
			}
			text := all[len(all)-1].PlainText()
			return text, strings.Contains(text, c.words)
		})
	}
	p.settled()
	for _, id := range []approvals.ID{a.ApprovalID, b.ApprovalID} {
		if v := p.get(id); v.Status != approvals.Pending || len(v.Votes) != 0 {
			t.Errorf("it is %s with %d votes", v.Status, len(v.Votes))
		}
	}
	p.unchanged("tampered cards", before)
	p.effects(0, 0)
}

// A payload in the query string is outside the signature, and is not looked at.
func TestPayloadInTheQuery(t *testing.T) {
	t.Parallel()
	p := start(t, 1, 1)
	a := p.deploy("run_query")
	card := p.pending(a.ApprovalID)
	r := p.click("U0MALLORY", card, templates.ActionApprove) // signed, and worth nothing
	form, err := url.ParseQuery(string(r.Delivery.Body))
	p.must(err)
	forged := url.Values{"payload": {strings.ReplaceAll(form.Get("payload"), "U0MALLORY", "U0ALICE")}}
	replayed, err := p.sim.Replay(p.ctx, slacksim.Delivery{Path: slacksim.InteractionsPath + "?" + forged.Encode(), Header: r.Delivery.Header, Body: r.Delivery.Body})
	if replayed.Status != http.StatusUnauthorized { // as a replay of Mallory's own
		t.Errorf("%d %v", replayed.Status, err)
	}
	p.settled()
	if v := p.get(a.ApprovalID); v.Status != approvals.Pending || len(v.Votes) != 0 {
		t.Errorf("it is %s with %d votes", v.Status, len(v.Votes))
	}
	p.effects(0, 0)
}
