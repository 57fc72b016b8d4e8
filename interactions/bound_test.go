package interactions

import (
	"strings"
	"testing"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/bot/slacksim"
	"github.com/holdpoint/holdpoint/templates"
)

// forged are values that were not made for the card that they are pressed on.
var forged = map[string]func(w *world, t *testing.T, value string) string{
	"a changed digest":  func(_ *world, _ *testing.T, v string) string { return strings.Replace(v, "77ab", "77ac", 1) },
	"a changed version": func(_ *world, _ *testing.T, v string) string { return strings.Replace(v, ".1.", ".2.", 1) },
	"a value of another key": func(w *world, t *testing.T, v string) string {
		b, err := approvals.ParseButton(strings.TrimLeft(v, "er"))
		must(t, err)
		return approvals.EncodeButton([]byte("ffffffffffffffffffffffffffffffff"), home, b.ID, "sha256-proposal-v1:"+strings.Repeat("77ab", 16), 1)
	},
}

// No form opens and no Details are shown for a press that is not the card's, although only Decide would ever count it.
func TestNothingOpensForAForgedPress(t *testing.T) {
	t.Parallel()
	for what, forge := range forged {
		for _, action := range []string{templates.ActionDetails, templates.ActionReject, templates.ActionReconcileYes} {
			t.Run(what+" "+action, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				_, ts := w.post(t, func(f *approvals.CardFacts) {
					if action == templates.ActionReconcileYes {
						f.Status = approvals.Uncertain
					}
				})
				_, err := w.Click(w.ctx, "U0ALICE", home, ts, action, slacksim.ClickOptions{Tamper: slacksim.Tamper{Payload: func(p map[string]any) {
					pressed(p)["value"] = forge(w, t, as[string](pressed(p)["value"]))
				}}})
				must(t, err)
				v, err := w.WaitView(w.ctx, "U0ALICE", nil)
				if err != nil || !strings.Contains(v.PlainText(), sentence(templates.RefuseTampered)) || v.CallbackID != "" && v.CallbackID == templates.ViewReject {
					t.Errorf("%v %s", err, v.PlainText())
				}
			})
		}
	}
}

// What a form remembers is good for its card, and for whoever opened it.
func TestFormsAreBoundToTheirCardAndPerson(t *testing.T) {
	t.Parallel()
	change := func(f func(*metadata)) func(map[string]any) {
		return func(p map[string]any) {
			v := as[map[string]any](p["view"])
			m, _ := readMetadata(as[string](v["private_metadata"]))
			f(&m)
			v["private_metadata"] = m.String()
		}
	}
	for what, tamper := range map[string]func(map[string]any){
		"another's form":  change(func(m *metadata) { m.User = "U0BOB" }),
		"nobody's form":   change(func(m *metadata) { m.User = "" }),
		"another channel": change(func(m *metadata) { m.Channel = "C0OTHER" }),
		"another message": change(func(m *metadata) { m.Message = "1700000000.000001" }),
		"another digest":  change(func(m *metadata) { m.Value = strings.Replace(m.Value, "77ab", "77ac", 1) }),
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			id, ts := w.post(t, func(f *approvals.CardFacts) { f.Status = approvals.Uncertain })
			v := w.open(t, "U0ROOT", ts, templates.ActionReconcileYes, slacksim.ClickOptions{}, templates.ViewReconcileYes)
			r, err := w.SubmitTampered(w.ctx, "U0ROOT", v, slacksim.Values{templates.InputText: "seen"}, slacksim.Tamper{Payload: tamper})
			if err != nil || r.Action != "update" || w.core.row(id).Status != approvals.Uncertain || len(w.core.done()) != 0 {
				t.Errorf("reconciled: %v %+v %s", err, r, w.core.row(id).Status)
			}
			id, ts = w.post(t, nil)
			v = w.open(t, "U0ALICE", ts, templates.ActionReject, slacksim.ClickOptions{}, templates.ViewReject)
			r, err = w.SubmitTampered(w.ctx, "U0ALICE", v, slacksim.Values{templates.InputText: "no"}, slacksim.Tamper{Payload: tamper})
			if err != nil || r.Action != "update" || w.core.row(id).Status != approvals.Pending {
				t.Errorf("rejected: %v %+v %s", err, r, w.core.row(id).Status)
			}
		})
	}
}

// The button of an unpause starts what it listed, for whom it was listed, or asks again.
func TestUnpauseAsksAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one := approvals.View{ApprovalID: approvals.NewID(), Tool: "deploy_release", Status: approvals.Approved}
	two := approvals.View{ApprovalID: approvals.NewID(), Tool: "deploy_release", Status: approvals.Approved}
	w.core.under = approvals.Suspension{WouldStart: []approvals.View{one}}
	w.core.pauses = []approvals.Switch{{Scope: "tool", Name: "deploy_release", By: "slack:U0ROOT", Reason: "incident 7"}}
	m := w.ask(t, "U0ROOT", "unpause tool deploy_release all good")
	_, err := w.Click(w.ctx, "U0ROOT", "C0OTHER", m.TS, actionUnpause, slacksim.ClickOptions{Tamper: slacksim.Tamper{Payload: func(p map[string]any) {
		pressed(p)["value"] = strings.Replace(as[string](pressed(p)["value"]), "U0ROOT", "U0ALICE", 1)
	}}})
	must(t, err)
	w.whisper(t, "U0ROOT", sentence(templates.RefuseTampered))
	w.core.mu.Lock()
	w.core.under.WouldStart = append(w.core.under.WouldStart, two)
	w.core.mu.Unlock()
	_, err = w.Click(w.ctx, "U0ROOT", "C0OTHER", m.TS, actionUnpause, slacksim.ClickOptions{})
	must(t, err)
	again, err := w.WaitEphemeral(w.ctx, "U0ROOT", func(x slacksim.Message) bool {
		return x.TS == m.TS && strings.Contains(x.PlainText(), two.ApprovalID.String())
	})
	if err != nil || !strings.Contains(again.PlainText(), "2 approved would start") || len(again.Actions()) != 1 || len(w.core.done()) != 0 {
		t.Fatalf("%v %v %s %q", err, again.Actions(), again.PlainText(), w.core.done())
	}
	_, err = w.Click(w.ctx, "U0ROOT", "C0OTHER", m.TS, actionUnpause, slacksim.ClickOptions{})
	must(t, err)
	w.settled(t)
	if got := w.core.done(); len(got) != 1 {
		t.Errorf("%q", got)
	}
}
