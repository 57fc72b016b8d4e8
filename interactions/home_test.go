package interactions

import (
	"errors"
	"strings"
	"testing"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/bot/slacksim"
	"github.com/holdpoint/holdpoint/templates"
)

// tab opens somebody's home tab and returns what it shows.
func (w *world) tab(t *testing.T, user string) string {
	t.Helper()
	r, err := w.OpenHome(w.ctx, user)
	if err != nil || len(r.Body) != 0 {
		t.Fatalf("%v %s", err, r.Body)
	}
	w.settled(t)
	v, ok := w.Home(user)
	if !ok {
		t.Fatalf("%s has no home tab: %s", user, w.log)
	}
	return v.PlainText()
}

// The tab has what the person may decide apart from what was decided, and nothing of what waits for others.
func TestHome(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.core.stand("U0ALICE", approvals.Standing{Groups: []string{"S0RELEASE"}})
	mine, _ := w.post(t, nil)
	voted, _ := w.post(t, func(f *approvals.CardFacts) {
		f.Quorum, f.Votes = 2, []approvals.Vote{{By: "slack:U0ALICE", Decision: "approve"}}
	})
	others, _ := w.post(t, func(f *approvals.CardFacts) { f.Scope.Groups = []string{"S0FINANCE"} })
	running, _ := w.post(t, func(f *approvals.CardFacts) { f.Status = approvals.Executing })
	foreign, _ := w.post(t, func(f *approvals.CardFacts) { f.Tenant = "other" })
	shown := w.tab(t, "U0ALICE")
	waiting, recent, ok := strings.Cut(shown, "Decided lately")
	if !ok || !strings.Contains(waiting, mine.String()) || !strings.Contains(recent, running.String()) || strings.Contains(recent, mine.String()) {
		t.Error(shown)
	}
	for _, id := range []approvals.ID{voted, others, foreign} {
		if strings.Contains(shown, id.String()) {
			t.Errorf("%s is shown: %s", id, shown)
		}
	}
	if shown := w.tab(t, "U0BOB"); !strings.Contains(shown, "Nothing waits for you") || strings.Contains(shown, mine.String()) {
		t.Error(shown)
	}
	w.core.change(mine, func(f *approvals.CardFacts) { f.Status = approvals.Approved })
	if shown := w.tab(t, "U0ALICE"); !strings.Contains(shown, "Nothing waits for you") || !strings.Contains(shown, mine.String()) {
		t.Error(shown)
	}
}

// A list that was cut says so, also when nothing of what it looked at is the person's.
func TestHomeSaysThatThereIsMore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.core.mu.Lock()
	for range opened {
		w.core.add(nil)
	}
	w.core.mu.Unlock()
	if shown := w.tab(t, "U0BOB"); !strings.Contains(shown, "There is more") {
		t.Error(shown)
	}
	w.core.mu.Lock()
	for id := range w.core.rows {
		delete(w.core.rows, id)
		break
	}
	w.core.mu.Unlock()
	if shown := w.tab(t, "U0BOB"); strings.Contains(shown, "There is more") {
		t.Error(shown)
	}
}

// A tab from better times is replaced by the reason.
func TestHomeIsForMembers(t *testing.T) {
	t.Parallel()
	for kind, code := range outs {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			id, _ := w.post(t, nil)
			w.core.stand("U0BOB", approvals.Standing{Groups: []string{"S0RELEASE"}})
			if shown := w.tab(t, "U0BOB"); !strings.Contains(shown, id.String()) {
				t.Fatal(shown)
			}
			w.core.stand("U0BOB", approvals.Standing{Groups: []string{"S0RELEASE"}, Denial: kind})
			if shown := w.tab(t, "U0BOB"); !strings.Contains(shown, sentence(code)) || strings.Contains(shown, id.String()) {
				t.Error(shown)
			}
		})
	}
}

// Whom the mirror has never seen is looked up first: the tab is painted after the acknowledgement anyway.
func TestHomeOfAStranger(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id, _ := w.post(t, nil)
	w.core.stand("U0BOB", approvals.Standing{Denial: approvals.DenyUncheckable})
	w.dir.learns = func(string) error { return errors.New("not now") }
	if shown := w.tab(t, "U0BOB"); !strings.Contains(shown, sentence(templates.RefuseCantCheck)) {
		t.Error(shown)
	}
	w.dir.learns = func(user string) error {
		w.core.stand(user, approvals.Standing{Groups: []string{"S0RELEASE"}})
		return nil
	}
	if shown := w.tab(t, "U0BOB"); !strings.Contains(shown, id.String()) {
		t.Error(shown)
	}
}

// Another tab, nobody, and an event that Slack repeats cost nothing.
func TestHomeThatIsNotOpened(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, e := range map[string]map[string]any{
		"another tab": {"type": "app_home_opened", "user": "U0ALICE", "tab": "messages"},
		"no tab":      {"type": "app_home_opened", "user": "U0ALICE"},
		"nobody":      {"type": "app_home_opened", "tab": "home"},
		"a name":      {"type": "app_home_opened", "user": "alice", "tab": "home"},
	} {
		r, err := w.Event(w.ctx, e)
		must(t, err)
		w.settled(t)
		if r.Status != 200 || w.Calls("views.publish") != 0 {
			t.Errorf("%s: %d, %d painted", name, r.Status, w.Calls("views.publish"))
		}
	}
	r, err := w.OpenHome(w.ctx, "U0ALICE")
	must(t, err)
	_, err = w.EventTampered(w.ctx, map[string]any{"type": "app_home_opened", "user": "U0ALICE", "tab": "home"}, slacksim.Tamper{
		Payload: func(p map[string]any) { p["event_id"] = eventID(t, r.Delivery.Body) },
	})
	must(t, err)
	w.settled(t)
	if n := w.Calls("views.publish"); n != 1 {
		t.Errorf("painted %d times", n)
	}
}

// What goes wrong is logged by its class, and the event is acknowledged all the same.
func TestHomeThatFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Fault("views.publish", slacksim.Error{Code: "missing_scope"}, 1)
	_, err := w.OpenHome(w.ctx, "U0ALICE")
	must(t, err)
	w.settled(t)
	w.core.err = approvals.ErrUnavailable
	_, err = w.OpenHome(w.ctx, "U0ALICE")
	must(t, err)
	w.settled(t)
	log := w.log.String()
	if _, ok := w.Home("U0ALICE"); ok || strings.Count(log, "could not be painted") != 2 || !strings.Contains(log, "class=install") {
		t.Error(log)
	}
}
