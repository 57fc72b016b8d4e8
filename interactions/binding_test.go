package interactions

import (
	"errors"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/bot/slacksim"
	"github.com/holdpoint/holdpoint/templates"
)

// A forwarded card, a tampered value and another card's value decide nothing.
func TestClickIsBoundToTheCard(t *testing.T) {
	t.Parallel()
	for name, tamper := range map[string]func(w *world, p map[string]any){
		"another channel": func(_ *world, p map[string]any) { place(p)["channel_id"] = "C0OTHER" },
		"another message": func(_ *world, p map[string]any) { place(p)["message_ts"] = "1700000000.000001" },
		"a changed digest": func(_ *world, p map[string]any) {
			pressed(p)["value"] = strings.Replace(as[string](pressed(p)["value"]), "77ab", "77ac", 1)
		},
		"a changed version": func(_ *world, p map[string]any) {
			pressed(p)["value"] = strings.Replace(as[string](pressed(p)["value"]), ".1.", ".2.", 1)
		},
		"no value": func(_ *world, p map[string]any) { delete(pressed(p), "value") },
		"another approval's value": func(w *world, p map[string]any) {
			other, ts := w.post(t, func(f *approvals.CardFacts) { f.Card.MACKey = []byte("ffffffffffffffffffffffffffffffff") })
			m, _ := w.Message(home, ts)
			e, _ := m.Action(templates.ActionApprove)
			_ = other
			pressed(p)["value"] = e.String("value")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			_, ts := w.post(t, nil)
			_, err := w.Click(w.ctx, "U0ALICE", home, ts, templates.ActionApprove, slacksim.ClickOptions{
				Tamper: slacksim.Tamper{Payload: func(p map[string]any) { tamper(w, p) }},
			})
			must(t, err)
			w.whisper(t, "U0ALICE", sentence(templates.RefuseTampered))
			for _, f := range w.core.rows {
				if f.Status != approvals.Pending {
					t.Error("it was decided")
				}
			}
		})
	}
}

// What is not signed, not in time or of another app never gets as far as the core; nor does a query string.
func TestClickThatIsNotSlacks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tamper slacksim.Tamper
		status int
	}{
		"unsigned":       {slacksim.Tamper{Unsigned: true}, 401},
		"another secret": {slacksim.Tamper{Secret: "guess"}, 401},
		"stale":          {slacksim.Tamper{Skew: -6 * time.Minute}, 401},
		"from later":     {slacksim.Tamper{Skew: 6 * time.Minute}, 401},
		"changed":        {slacksim.Tamper{AfterSign: func(b []byte) []byte { return append(b, "&x=1"...) }}, 401},
		"another app":    {slacksim.Tamper{Payload: func(p map[string]any) { p["api_app_id"] = "A0OTHER" }}, 400},
		"two actions":    {slacksim.Tamper{Payload: func(p map[string]any) { p["actions"] = []any{pressed(p), pressed(p)} }}, 400},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			_, ts := w.post(t, nil)
			r, err := w.Click(w.ctx, "U0ALICE", home, ts, templates.ActionApprove, slacksim.ClickOptions{Tamper: c.tamper})
			if r.Status != c.status || !errors.Is(err, slacksim.ErrNotAcked) || len(w.core.requests()) != 0 {
				t.Errorf("%d %v, %d decisions", r.Status, err, len(w.core.requests()))
			}
		})
	}
	t.Run("in the query", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		_, ts := w.post(t, nil)
		r, err := w.Click(w.ctx, "U0ALICE", home, ts, templates.ActionReject, slacksim.ClickOptions{})
		must(t, err)
		form, err := url.ParseQuery(string(r.Delivery.Body))
		must(t, err)
		w.SetCallbackURL(w.server.URL)
		d := r.Delivery
		d.Path += "?" + form.Encode()
		d.Body = []byte("a=1")
		if r, _ := w.Replay(w.ctx, d); r.Status != 401 {
			t.Errorf("status %d", r.Status)
		}
	})
}

// A delivery that is repeated byte for byte is refused; one that Slack signs anew finds the first one's vote.
func TestReplay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id, ts := w.post(t, func(f *approvals.CardFacts) { f.Quorum = 2 })
	r, err := w.Click(w.ctx, "U0ALICE", home, ts, templates.ActionApprove, slacksim.ClickOptions{})
	must(t, err)
	if again, _ := w.Replay(w.ctx, r.Delivery); again.Status != 401 {
		t.Errorf("status %d", again.Status)
	}
	w.settled(t)
	_, err = w.Click(w.ctx, "U0ALICE", home, ts, templates.ActionApprove, slacksim.ClickOptions{})
	must(t, err)
	w.whisper(t, "U0ALICE", "You already voted")
	if n := len(w.core.row(id).Votes); n != 1 {
		t.Errorf("%d votes", n)
	}
}

// Another process saw the click first: the second delivery finds its vote, changes nothing, and is noticed.
func TestReplayAtAnotherProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id, ts := w.post(t, nil)
	r, err := w.Click(w.ctx, "U0ALICE", home, ts, templates.ActionApprove, slacksim.ClickOptions{})
	must(t, err)
	w.settled(t)
	w.h.seen = memory{} // a process that has just started
	again, err := w.Replay(w.ctx, r.Delivery)
	must(t, err)
	w.whisper(t, "U0ALICE", "Already approved")
	if again.Status != 200 || len(w.core.row(id).Votes) != 1 || !strings.Contains(w.log.String(), "delivered twice") {
		t.Errorf("status %d, %s", again.Status, w.log.String())
	}
}

func TestDoubleClick(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id, ts := w.post(t, nil)
	var wg sync.WaitGroup
	for _, u := range []string{"U0ALICE", "U0ANA"} {
		wg.Go(func() {
			if _, err := w.Click(w.ctx, u, home, ts, templates.ActionApprove, slacksim.ClickOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	w.settled(t)
	if n := len(w.core.row(id).Votes); n != 1 {
		t.Errorf("%d votes for a quorum of one", n)
	}
	if n := len(w.Ephemerals("U0ALICE")) + len(w.Ephemerals("U0ANA")); n != 1 {
		t.Errorf("%d were told", n)
	}
}
