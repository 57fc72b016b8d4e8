package interactions

import (
	"strings"
	"testing"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/bot/slacksim"
	"github.com/holdpoint/holdpoint/templates"
)

// edited makes a request and its edited child, with their cards.
func (w *world) edited(t *testing.T) (parent, child approvals.ID, parentTS, childTS string) {
	t.Helper()
	child, _ = w.post(t, nil)
	parent, parentTS = w.post(t, nil)
	w.core.change(parent, func(f *approvals.CardFacts) {
		f.Status, f.ChildID, f.DecidedBy = approvals.Edited, &child, "slack:U0ANA"
	})
	must(t, w.cards.Sync(w.ctx, parent))
	w.core.change(child, func(f *approvals.CardFacts) {
		f.ParentID, f.Editors = &parent, []string{"slack:U0ANA"}
		f.EditDiff = "--- proposed\n+++ edited\n@@ -1,3 +1,3 @@\n {\n-  \"release\": \"2026.07.23\"\n+  \"release\": \"2026.07.24\"\n }\n"
	})
	must(t, w.cards.Sync(w.ctx, child))
	return parent, child, parentTS, w.core.row(child).Card.MessageTS
}

// From an edited call's card to what it replaced, and back: to look at, with nothing to press. Details has the diff (I10).
func TestDetailsOfTheOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	parent, child, parentTS, childTS := w.edited(t)
	v := w.open(t, "U0BOB", childTS, templates.ActionOriginal, slacksim.ClickOptions{}, templates.ViewDetails)
	if text := v.PlainText(); !strings.Contains(text, parent.String()) || !strings.Contains(text, "Replaced") || pressable(v) {
		t.Errorf("what it replaced: %s", text)
	}
	must(t, w.CloseView(w.ctx, "U0BOB", true))
	v = w.open(t, "U0BOB", parentTS, templates.ActionReplacement, slacksim.ClickOptions{}, templates.ViewDetails)
	text := v.PlainText()
	if !strings.Contains(text, child.String()) || pressable(v) {
		t.Errorf("what replaced it: %s", text)
	}
	for _, want := range []string{"Edited", "in place of " + parent.String(), "-  \"release\": \"2026.07.23\"", "+  \"release\": \"2026.07.24\""} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
}

// I22: the other one must be the same tenant's, and the press must be on the card it speaks for.
func TestDetailsOfTheOtherStayInTheTenant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	parent, _, _, childTS := w.edited(t)
	w.core.change(parent, func(f *approvals.CardFacts) { f.Tenant = "other" })
	v := w.open(t, "U0BOB", childTS, templates.ActionOriginal, slacksim.ClickOptions{}, templates.ViewNotice)
	if text := v.PlainText(); !strings.Contains(text, "There is no approval") || strings.Contains(text, "Deploy") {
		t.Error(text)
	}
}

// pressable says whether a modal has anything that decides.
func pressable(v slacksim.View) bool {
	for _, action := range []string{templates.ActionApprove, templates.ActionReject, templates.ActionRespond, templates.ActionOverflow} {
		if _, ok := v.Action(action); ok {
			return true
		}
	}
	return false
}
