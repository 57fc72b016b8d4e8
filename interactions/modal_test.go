package interactions

import (
	"strings"
	"testing"
	"time"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/bot/slacksim"
	"github.com/holdpoint/holdpoint/templates"
)

// open presses a button that opens a modal and waits for it.
func (w *world) open(t *testing.T, user, ts, action string, opts slacksim.ClickOptions, callback string) slacksim.View {
	t.Helper()
	_, err := w.Click(w.ctx, user, home, ts, action, opts)
	must(t, err)
	v, err := w.WaitView(w.ctx, user, func(v slacksim.View) bool { return v.CallbackID == callback })
	must(t, err)
	return v
}

// more chooses an entry of the overflow menu by its verb.
func (w *world) more(t *testing.T, ts, mark string) slacksim.ClickOptions {
	t.Helper()
	m, _ := w.Message(home, ts)
	e, ok := m.Action(templates.ActionOverflow)
	if !ok {
		t.Fatal("no overflow menu")
	}
	for _, o := range as[[]any](e.Raw["options"]) {
		if v := as[string](as[map[string]any](o)["value"]); strings.HasPrefix(v, mark) {
			return slacksim.ClickOptions{Option: v}
		}
	}
	t.Fatalf("no option %q", mark)
	return slacksim.ClickOptions{}
}

func TestReject(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id, ts := w.post(t, nil)
	v := w.open(t, "U0ALICE", ts, templates.ActionReject, slacksim.ClickOptions{}, templates.ViewReject)
	r, err := w.Submit(w.ctx, "U0ALICE", v, slacksim.Values{templates.InputText: "not on a Friday"})
	if err != nil || r.Action != "clear" {
		t.Fatalf("%v %+v", err, r)
	}
	_, err = w.WaitMessage(w.ctx, home, func(m slacksim.Message) bool { return strings.Contains(m.PlainText(), "not on a Friday") })
	must(t, err)
	rq := w.core.requests()
	if f := w.core.row(id); f.Status != approvals.Rejected || len(rq) != 1 || rq[0].Reason != "not on a Friday" || rq[0].Surface != approvals.SurfaceModal || rq[0].MessageTS != ts {
		t.Errorf("%s %+v", f.Status, rq)
	}
}

func TestRejectWithoutWordsMarksTheField(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id, ts := w.post(t, nil)
	v := w.open(t, "U0ALICE", ts, templates.ActionReject, slacksim.ClickOptions{}, templates.ViewReject)
	r, err := w.Submit(w.ctx, "U0ALICE", v, slacksim.Values{templates.InputText: "  "})
	if err != nil || r.Action != "errors" || r.Errors[templates.InputReason] != sentence(templates.RefuseReasonMissing) {
		t.Errorf("%v %+v", err, r)
	}
	if w.core.row(id).Status != approvals.Pending {
		t.Error("rejected without a reason")
	}
}

// Whoever may not decide learns it from the form, and nobody else does.
func TestFormOfSomebodyElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, ts := w.post(t, nil)
	v := w.open(t, "U0BOB", ts, templates.ActionReject, slacksim.ClickOptions{}, templates.ViewReject)
	r, err := w.Submit(w.ctx, "U0BOB", v, slacksim.Values{templates.InputText: "no"})
	if err != nil || r.Action != "update" {
		t.Fatalf("%v %+v", err, r)
	}
	v, err = w.WaitView(w.ctx, "U0BOB", nil)
	if err != nil || !strings.Contains(v.PlainText(), "it needs release-managers") {
		t.Errorf("%s", v.PlainText())
	}
}

// An edit makes a new request with a card of its own. Untouched characters beyond ASCII come back as they were, although
// Slack changes such characters, and curly quotes from a phone are taken for straight ones.
func TestEdit(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(string) string{
		"typed": func(s string) string { return strings.Replace(s, "2026.07.24", "2026.07.25", 1) },
		"on a phone": func(s string) string {
			return strings.NewReplacer("2026.07.24", "2026.07.25", `"release"`, "“release”").Replace(s)
		},
		"all in curly": func(s string) string { return strings.NewReplacer("2026.07.24", "2026.07.25", `"`, "”").Replace(s) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			id, ts := w.post(t, nil)
			v := w.open(t, "U0ALICE", ts, templates.ActionOverflow, w.more(t, ts, "e"), templates.ViewEdit)
			e, _ := v.Action(templates.InputText)
			initial := e.String("initial_value")
			if !strings.Contains(initial, `caf\u00e9`) {
				t.Fatalf("the form: %s", initial)
			}
			r, err := w.Submit(w.ctx, "U0ALICE", v, slacksim.Values{templates.InputText: edit(initial)})
			if err != nil || r.Action != "clear" {
				t.Fatalf("%v %+v", err, r)
			}
			child := *w.core.row(id).ChildID
			_, err = w.WaitMessage(w.ctx, home, func(m slacksim.Message) bool {
				return strings.Contains(m.PlainText(), child.String()) && shows(m, templates.ActionApprove)
			})
			must(t, err)
			w.settled(t)
			if m, _ := w.Message(home, ts); shows(m, templates.ActionApprove) || !strings.Contains(m.PlainText(), "Replaced") {
				t.Errorf("the old card: %s", m.PlainText())
			}
			args := string(w.core.requests()[0].Arguments)
			if !strings.Contains(args, `"2026.07.25"`) || !strings.Contains(args, `caf\u00e9 \u0026 cr\u00eape`) {
				t.Errorf("%s", args)
			}
		})
	}
}

func TestEditThatIsNoJSONMarksTheField(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id, ts := w.post(t, nil)
	v := w.open(t, "U0ALICE", ts, templates.ActionOverflow, w.more(t, ts, "e"), templates.ViewEdit)
	r, err := w.Submit(w.ctx, "U0ALICE", v, slacksim.Values{templates.InputText: "{release: x}"})
	if err != nil || r.Action != "errors" || !strings.Contains(r.Errors[templates.InputArguments], "/release: must be a string") {
		t.Fatalf("%v %+v", err, r)
	}
	if w.core.row(id).Status != approvals.Pending {
		t.Error("edited")
	}
}

func TestAnswerAQuestion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id, ts := w.post(t, func(f *approvals.CardFacts) { f.Kind, f.Scope.Decisions = "question", []string{"respond", "reject"} })
	v := w.open(t, "U0ALICE", ts, templates.ActionRespond, slacksim.ClickOptions{}, templates.ViewRespond)
	_, err := w.Submit(w.ctx, "U0ALICE", v, slacksim.Values{templates.InputText: " blue, “please” "})
	must(t, err)
	if rq := w.core.requests(); w.core.row(id).Status != approvals.Responded || rq[0].Answer != " blue, “please” " {
		t.Errorf("%+v: the agent is to get exactly these words", rq)
	}
}

// A form for what is already decided says so at once.
func TestFormForADecidedCard(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id, ts := w.post(t, nil)
	now := time.Now()
	w.core.change(id, func(f *approvals.CardFacts) {
		f.Status, f.DecidedBy, f.DecidedAt = approvals.Rejected, "slack:U0ANA", &now
	})
	v := w.open(t, "U0ALICE", ts, templates.ActionReject, slacksim.ClickOptions{}, templates.ViewNotice)
	if !strings.Contains(v.PlainText(), "Already rejected") {
		t.Error(v.PlainText())
	}
}

// A cut card's Approve is in Details, on the last page; it decides for the card that Details was opened from.
func TestApproveInDetails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	long := `{"title":"Deploy","arguments":{"notes":"` + strings.Repeat("word ", 12_000) + `"}}`
	id, ts := w.post(t, func(f *approvals.CardFacts) { f.Snapshot = []byte(long) })
	if m, _ := w.Message(home, ts); shows(m, templates.ActionApprove) {
		t.Fatal("a cut card has an Approve")
	}
	v := w.open(t, "U0ALICE", ts, templates.ActionDetails, slacksim.ClickOptions{}, templates.ViewDetails)
	for range 20 {
		if _, ok := v.Action(templates.ActionApprove); ok {
			break
		}
		before := v.Hash
		_, err := w.ClickView(w.ctx, "U0ALICE", v.ID, templates.ActionPage+"_next", nil, slacksim.ClickOptions{})
		must(t, err)
		v, err = w.WaitView(w.ctx, "U0ALICE", func(v slacksim.View) bool { return v.Hash != before })
		must(t, err)
	}
	_, err := w.ClickView(w.ctx, "U0ALICE", v.ID, templates.ActionApprove, nil, slacksim.ClickOptions{})
	must(t, err)
	_, err = w.WaitView(w.ctx, "U0ALICE", func(v slacksim.View) bool {
		return v.CallbackID == templates.ViewNotice && strings.Contains(v.PlainText(), "Approved")
	})
	must(t, err)
	w.settled(t)
	if rq := w.core.requests(); w.core.row(id).Status != approvals.Approved || rq[0].Surface != approvals.SurfaceModal || rq[0].MessageTS != ts {
		t.Errorf("%+v", rq)
	}
	if m, _ := w.Message(home, ts); !strings.Contains(m.PlainText(), "Approved") {
		t.Error("the card does not follow")
	}
}

// A form opened in Details lies on top of it; a refused Approve there is told in the modal.
func TestFormsInDetails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, ts := w.post(t, nil)
	v := w.open(t, "U0BOB", ts, templates.ActionDetails, slacksim.ClickOptions{}, templates.ViewDetails)
	if !strings.Contains(v.PlainText(), "Proposed by the agent") {
		t.Error("no timeline")
	}
	_, err := w.ClickView(w.ctx, "U0BOB", v.ID, templates.ActionReject, nil, slacksim.ClickOptions{})
	must(t, err)
	_, err = w.WaitView(w.ctx, "U0BOB", func(v slacksim.View) bool { return v.CallbackID == templates.ViewReject })
	must(t, err)
	if n := len(w.Views("U0BOB")); n != 2 {
		t.Errorf("%d views", n)
	}
	must(t, w.CloseView(w.ctx, "U0BOB", false))
	_, err = w.ClickView(w.ctx, "U0BOB", v.ID, templates.ActionApprove, nil, slacksim.ClickOptions{})
	must(t, err)
	_, err = w.WaitView(w.ctx, "U0BOB", func(v slacksim.View) bool { return strings.Contains(v.PlainText(), "it needs release-managers") })
	must(t, err)
}

// A view that takes long to make is preceded by a placeholder, while the trigger lives.
func TestSlowDetailsOpenAPlaceholder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, ts := w.post(t, nil)
	slow := make(chan struct{})
	w.core.mu.Lock()
	w.core.slow = slow
	w.core.mu.Unlock()
	_, err := w.Click(w.ctx, "U0ALICE", home, ts, templates.ActionDetails, slacksim.ClickOptions{})
	must(t, err)
	w.alarm <- time.Time{}
	_, err = w.WaitView(w.ctx, "U0ALICE", func(v slacksim.View) bool { return v.CallbackID == templates.ViewNotice })
	must(t, err)
	close(slow)
	_, err = w.WaitView(w.ctx, "U0ALICE", func(v slacksim.View) bool { return v.CallbackID == templates.ViewDetails })
	must(t, err)
}

// What is shown belongs to the tenant, and to the card: neither outsiders nor forwarded messages get to see more.
func TestDetailsOfOthers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		user   string
		change func(*approvals.CardFacts)
		tamper func(map[string]any)
		want   string
	}{
		"an outsider":    {user: "U0EXTERN", want: sentence(templates.RefuseOutsider)},
		"another tenant": {user: "U0ALICE", change: func(f *approvals.CardFacts) { f.Tenant = "other" }, want: "no approval"},
		"a forwarded card": {user: "U0ALICE", want: sentence(templates.RefuseTampered), tamper: func(p map[string]any) {
			place(p)["channel_id"] = "C0OTHER"
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			_, ts := w.post(t, c.change)
			v := w.open(t, c.user, ts, templates.ActionDetails, slacksim.ClickOptions{Tamper: slacksim.Tamper{Payload: c.tamper}}, templates.ViewNotice)
			if !strings.Contains(v.PlainText(), c.want) || strings.Contains(v.PlainText(), "2026.07.24") {
				t.Error(v.PlainText())
			}
		})
	}
}

// Reviewers are not admins: they hear it before they fill in anything.
func TestReconcileIsRefusedAtTheClick(t *testing.T) {
	t.Parallel()
	for _, action := range []string{templates.ActionReconcileYes, templates.ActionReconcileNo} {
		w := newWorld(t)
		id, ts := w.post(t, func(f *approvals.CardFacts) { f.Status = approvals.Uncertain })
		v := w.open(t, "U0ALICE", ts, action, slacksim.ClickOptions{}, templates.ViewNotice)
		if _, field := v.Action(templates.InputText); field || !strings.Contains(v.PlainText(), sentence(templates.RefuseNotAdmin)) {
			t.Errorf("%s: %s", action, v.PlainText())
		}
		if w.core.row(id).Status != approvals.Uncertain {
			t.Errorf("%s: reconciled", action)
		}
	}
}

func TestReconcile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		action, callback, user string
		second                 bool
		status                 approvals.Status
		answer                 string
	}{
		{templates.ActionReconcileYes, templates.ViewReconcileYes, "U0ROOT", false, approvals.Completed, "clear"},
		{templates.ActionReconcileNo, templates.ViewReconcileNo, "U0ROOT", false, approvals.Failed, "clear"},
		{templates.ActionReconcileYes, templates.ViewReconcileYes, "U0ROOT", true, approvals.Uncertain, "update"},
	} {
		w := newWorld(t)
		w.core.second = c.second
		id, ts := w.post(t, func(f *approvals.CardFacts) { f.Status = approvals.Uncertain })
		v := w.open(t, c.user, ts, c.action, slacksim.ClickOptions{}, c.callback)
		r, err := w.Submit(w.ctx, c.user, v, slacksim.Values{templates.InputText: "ledger line 7"})
		if err != nil || r.Action != c.answer || w.core.row(id).Status != c.status {
			t.Errorf("%+v: %v %+v, %s", c, err, r, w.core.row(id).Status)
		}
		if c.answer == "clear" {
			must(t, w.WaitNoView(w.ctx, c.user))
		} else if v, err := w.WaitView(w.ctx, c.user, nil); err != nil || strings.HasPrefix(v.Title(), "Noted") != c.second {
			t.Errorf("%+v: %v %s", c, err, v.PlainText())
		}
	}
}

// Another process already recorded it: the second delivery is refused before anything is asked of the core.
func TestReconcileReplayAtAnotherProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, ts := w.post(t, func(f *approvals.CardFacts) { f.Status = approvals.Uncertain })
	v := w.open(t, "U0ROOT", ts, templates.ActionReconcileYes, slacksim.ClickOptions{}, templates.ViewReconcileYes)
	r, err := w.Submit(w.ctx, "U0ROOT", v, slacksim.Values{templates.InputText: "ledger line 7"})
	must(t, err)
	w.settled(t)
	w.h.seen = memory{}
	if again, _ := w.Replay(w.ctx, r.Delivery); again.Status != 401 || len(w.core.done()) != 1 {
		t.Errorf("status %d, %q", again.Status, w.core.done())
	}
}
