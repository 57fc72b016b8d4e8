package interactions

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/bot/slacksim"
	"github.com/holdpoint/holdpoint/templates"
)

// outs are those who don't count, with what they are told.
var outs = map[approvals.DenialKind]templates.RefusalCode{
	approvals.DenyIneligible: templates.RefuseOutsider, approvals.DenyBlocked: templates.RefuseBlocked, approvals.DenyUncheckable: templates.RefuseCantCheck,
}

// lookedUp wants one person to have been looked up, once everything after the answers is done.
func (w *world) lookedUp(t *testing.T, user string) {
	t.Helper()
	w.settled(t)
	select {
	case got := <-w.dir.fresh:
		if !slices.Equal(got, []string{user}) {
			t.Errorf("looked up %v", got)
		}
	default:
		t.Errorf("%s was not looked up", user)
	}
}

// Only full, active members look: the others learn why not, alone, and nothing of the request.
func TestLookingIsForMembers(t *testing.T) {
	t.Parallel()
	for kind, code := range outs {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			id, _ := w.post(t, nil)
			w.core.stand("U0BOB", approvals.Standing{Groups: []string{"S0RELEASE"}, Names: []string{"release-managers"}, Denial: kind})
			for _, text := range []string{"list", "show " + id.String(), "audit " + id.String(), "show " + anID} {
				m := w.ask(t, "U0BOB", text)
				if m.PlainText() != sentence(code) {
					t.Errorf("%s: %s", text, m.PlainText())
				}
			}
			if len(w.Messages("C0OTHER")) != 0 {
				t.Error("everybody sees the answers")
			}
			w.settled(t)
			if n := len(w.dir.fresh); (n > 0) != (kind == approvals.DenyUncheckable) {
				t.Errorf("%d look-ups", n)
			}
		})
	}
}

// Details and the forms show a request's arguments: none of them opens for whoever may not look.
func TestModalsAreForMembers(t *testing.T) {
	t.Parallel()
	for kind, code := range outs {
		for _, action := range []string{templates.ActionDetails, templates.ActionReject} {
			t.Run(string(kind)+" "+action, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				_, ts := w.post(t, nil)
				w.core.stand("U0BOB", approvals.Standing{Denial: kind})
				v := w.open(t, "U0BOB", ts, action, slacksim.ClickOptions{}, templates.ViewNotice)
				if !strings.Contains(v.PlainText(), sentence(code)) || strings.Contains(v.PlainText(), "2026.07.24") {
					t.Error(v.PlainText())
				}
			})
		}
	}
}

// A page that is turned after somebody was blocked shows nothing more.
func TestPageAfterABlock(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, ts := w.post(t, func(f *approvals.CardFacts) {
		f.Snapshot = []byte(`{"title":"Deploy","arguments":{"note":"` + strings.Repeat("many words ", 6_000) + `"}}`)
	})
	v := w.open(t, "U0BOB", ts, templates.ActionDetails, slacksim.ClickOptions{}, templates.ViewDetails)
	w.core.stand("U0BOB", approvals.Standing{Denial: approvals.DenyBlocked})
	_, err := w.ClickView(w.ctx, "U0BOB", v.ID, templates.ActionPage+"_next", nil, slacksim.ClickOptions{})
	must(t, err)
	got, err := w.WaitView(w.ctx, "U0BOB", func(v slacksim.View) bool { return v.CallbackID == templates.ViewNotice })
	if err != nil || !strings.Contains(got.PlainText(), sentence(templates.RefuseBlocked)) || strings.Contains(got.PlainText(), "many words") {
		t.Errorf("%v %s", err, got.PlainText())
	}
}

// Whom the mirror has never seen is looked up first, and answered at once; a look-up is not repeated.
func TestStrangerIsLookedUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id, _ := w.post(t, nil)
	w.core.stand("U0BOB", approvals.Standing{Denial: approvals.DenyUncheckable})
	w.dir.learns = func(user string) error {
		w.core.stand(user, approvals.Standing{})
		return nil
	}
	if m := w.ask(t, "U0BOB", "list"); !strings.Contains(m.PlainText(), id.String()) {
		t.Error(m.PlainText())
	}
	w.lookedUp(t, "U0BOB")
	if m := w.ask(t, "U0BOB", "list"); !strings.Contains(m.PlainText(), id.String()) {
		t.Error(m.PlainText())
	}
	if len(w.dir.fresh) != 0 {
		t.Error("a known person was looked up")
	}
}

// A look-up that fails is logged by its class, and leaves the person unchecked.
func TestStrangerStaysUnknown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.core.stand("U0BOB", approvals.Standing{Denial: approvals.DenyUncheckable})
	w.dir.learns = func(string) error { return errors.New("not now") }
	for range 2 {
		if m := w.ask(t, "U0BOB", "list"); m.PlainText() != sentence(templates.RefuseCantCheck) {
			t.Error(m.PlainText())
		}
		w.settled(t)
	}
	if !strings.Contains(w.log.String(), "could not be looked up") || !strings.Contains(w.log.String(), "class=refused") {
		t.Error(w.log.String())
	}
}

func TestWhoami(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.core.stand("U0ROOT", approvals.Standing{Groups: []string{"S0ADMINS"}, Names: []string{"admins"}})
	w.core.stand("U0ALICE", approvals.Standing{Groups: []string{"S0RELEASE", "S0ENG"}, Names: []string{"release-managers", "eng"}})
	w.core.stand("U0ANA", approvals.Standing{Denial: approvals.DenyUncheckable})
	w.core.stand("U0BOB", approvals.Standing{Names: []string{"support"}, Denial: approvals.DenyBlocked})
	// Groups that no configuration names are not mirrored; people are in them all the same.
	w.AddGroup(slacksim.Group{ID: "S0SUPPORT", Name: "Support", Handle: "support", Members: []string{"U0ANA", "U0BOB"}})
	w.AddGroup(slacksim.Group{ID: "S0DESIGN", Name: "Design", Handle: "design", Members: []string{"U0ANA"}})
	const may = ". You may decide the requests that name you or one of your groups."
	for user, want := range map[string]string{
		"U0ROOT":  "You are @U0ROOT, an admin, in admins" + may,
		"U0ALICE": "You are @U0ALICE, not an admin, in release-managers and eng" + may,
		"U0ANA":   "You are @U0ANA, not an admin, in design and support. " + sentence(templates.RefuseCantCheck),
		"U0BOB":   "You are @U0BOB, not an admin, in support. " + sentence(templates.RefuseBlocked),
	} {
		if m := w.ask(t, user, "whoami"); m.PlainText() != want {
			t.Errorf("%s: %s", user, m.PlainText())
		}
	}
	w.lookedUp(t, "U0ANA")
	_, err := w.Command(w.ctx, "U0EXTERN", home, "/approvals", "whoami")
	must(t, err)
	w.whisper(t, "U0EXTERN", sentence(templates.RefuseOutsider))
}

// Every denial that a standing can have has a sentence of its own.
func TestWhyNot(t *testing.T) {
	t.Parallel()
	for kind, code := range outs {
		if got := whyNot(approvals.Standing{Denial: kind}); got != code {
			t.Errorf("%s: %s", kind, got)
		}
	}
	if whyNot(approvals.Standing{}) != "" || whyNot(approvals.Standing{Denial: "new"}) != templates.RefuseInternal {
		t.Error("a member is refused, or an unknown denial is not")
	}
}
