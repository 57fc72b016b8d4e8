package interactions

import (
	"slices"
	"testing"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/bot/slacksim"
	"github.com/holdpoint/holdpoint/templates"
)

// Whoever asks for what they may not is refused in the sight of the audit, wherever they ask; whoever may leaves nothing there.
func TestWhatIsRefusedIsAudited(t *testing.T) {
	t.Parallel()
	of := func(user, verb string, s approvals.Surface, why string) approvals.RefusedCommand {
		return approvals.RefusedCommand{Tenant: "acme", By: approvals.SlackActor(user), Surface: s, Verb: verb, Why: why}
	}
	uncertain := func(f *approvals.CardFacts) { f.Status = approvals.Uncertain }
	command := func(user, text string) func(*testing.T, *world) {
		return func(t *testing.T, w *world) { t.Helper(); w.ask(t, user, text) }
	}
	out := func(user string, why approvals.DenialKind) func(*world) {
		return func(w *world) { w.core.stand(user, approvals.Standing{Denial: why}) }
	}
	none := func(*world) {}
	for name, c := range map[string]struct {
		before func(*world)
		do     func(*testing.T, *world)
		want   []approvals.RefusedCommand
	}{
		"a command of the admins": {none, command("U0ALICE", "pause tenant why"), []approvals.RefusedCommand{of("U0ALICE", "pause", approvals.SurfaceCommand, approvals.RefusedNotAdmin)}},
		"by an admin":             {none, command("U0ROOT", "pause tenant why"), nil},
		"a clear no to an admin": {
			func(w *world) { w.core.rejected = &approvals.Refusal{Code: approvals.CodeInvalidRequest, Detail: "no"} },
			command("U0ROOT", "pause tool nope why"),
			[]approvals.RefusedCommand{of("U0ROOT", "pause", approvals.SurfaceCommand, string(approvals.CodeInvalidRequest))},
		},
		"a look":           {out("U0BOB", approvals.DenyBlocked), command("U0BOB", "list"), []approvals.RefusedCommand{of("U0BOB", "list", approvals.SurfaceCommand, "blocked")}},
		"a look that may":  {none, command("U0ALICE", "list"), nil},
		"a look at a call": {out("U0ROOT", approvals.DenyIneligible), command("U0ROOT", "show "+anID), []approvals.RefusedCommand{of("U0ROOT", "show", approvals.SurfaceCommand, "ineligible")}},
		"the home tab": {
			out("U0BOB", approvals.DenyIneligible), func(t *testing.T, w *world) { w.tab(t, "U0BOB") },
			[]approvals.RefusedCommand{of("U0BOB", "home", approvals.SurfaceHome, "ineligible")},
		},
		"a form": {
			out("U0BOB", approvals.DenyBlocked), func(t *testing.T, w *world) {
				_, ts := w.post(t, nil)
				w.open(t, "U0BOB", ts, templates.ActionReject, slacksim.ClickOptions{}, templates.ViewNotice)
			}, []approvals.RefusedCommand{of("U0BOB", "reject", approvals.SurfaceCard, "blocked")},
		},
		"Details": {
			out("U0BOB", approvals.DenyBlocked), func(t *testing.T, w *world) {
				_, ts := w.post(t, nil)
				w.open(t, "U0BOB", ts, templates.ActionDetails, slacksim.ClickOptions{}, templates.ViewNotice)
			}, []approvals.RefusedCommand{of("U0BOB", "details", approvals.SurfaceCard, "blocked")},
		},
		"the button of a reconciliation": {
			none, func(t *testing.T, w *world) {
				_, ts := w.post(t, uncertain)
				w.open(t, "U0ALICE", ts, templates.ActionReconcileYes, slacksim.ClickOptions{}, templates.ViewNotice)
			}, []approvals.RefusedCommand{of("U0ALICE", "reconcile", approvals.SurfaceCard, approvals.RefusedNotAdmin)},
		},
		"the form of a reconciliation": {
			none, func(t *testing.T, w *world) {
				_, ts := w.post(t, uncertain)
				v := w.open(t, "U0ROOT", ts, templates.ActionReconcileYes, slacksim.ClickOptions{}, templates.ViewReconcileYes)
				w.core.mu.Lock()
				w.core.admins = nil
				w.core.mu.Unlock()
				_, err := w.Submit(w.ctx, "U0ROOT", v, slacksim.Values{templates.InputText: "ledger line 7"})
				must(t, err)
			}, []approvals.RefusedCommand{of("U0ROOT", "reconcile", approvals.SurfaceModal, approvals.RefusedNotAdmin)},
		},
		"the button of an unpause": {
			func(w *world) { w.core.pauses = []approvals.Switch{{Scope: "tool", Name: "deploy_release"}} },
			func(t *testing.T, w *world) {
				m := w.ask(t, "U0ROOT", "unpause tool deploy_release all good")
				w.core.mu.Lock()
				w.core.admins = nil
				w.core.mu.Unlock()
				_, err := w.Click(w.ctx, "U0ROOT", "C0OTHER", m.TS, actionUnpause, slacksim.ClickOptions{})
				must(t, err)
			},
			[]approvals.RefusedCommand{of("U0ROOT", "unpause", approvals.SurfaceCommand, approvals.RefusedNotAdmin)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c.before(w)
			c.do(t, w)
			w.settled(t)
			w.core.mu.Lock()
			defer w.core.mu.Unlock()
			if !slices.Equal(w.core.refused, c.want) {
				t.Errorf("audited %+v, want %+v", w.core.refused, c.want)
			}
		})
	}
}
