package templates

import (
	"slices"
	"strings"
	"testing"
)

// I10: whoever approves an edited call sees what was changed, and by whom, and can look at what it replaced.
func TestEditedCallShowsItsDiff(t *testing.T) {
	t.Parallel()
	m := Render(gallery()["pending_edited_diff"])
	got := blockText(t, m.Blocks, "edit")
	for _, want := range []string{"✏️ Edited by ", "in place of apr_01k0parent", "-  \"amount\": 900,\n+  \"amount\": 742.18,", "\n   \"currency\": \"USD\"\n }"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "@@") || strings.Contains(got, "---") {
		t.Errorf("the diff's heads are shown:\n%s", got)
	}
	if got, want := actionIDs(t, m.Blocks), []string{ActionApprove, ActionReject, ActionDetails, ActionOriginal, ActionOverflow}; !slices.Equal(got, want) {
		t.Errorf("offers %v, want %v", got, want)
	}
	if got, want := actionIDs(t, Render(gallery()["edited"]).Blocks), []string{ActionDetails, ActionReplacement}; !slices.Equal(got, want) {
		t.Errorf("what was edited offers %v, want %v", got, want)
	}
	if got := blockText(t, Render(gallery()["pending_edited_hidden"]).Blocks, "edit"); !strings.Contains(got, "only hidden values were changed") {
		t.Errorf("an edit of hidden values reads %q", got)
	}
}

// A diff that does not fit is counted like anything that is cut: Approve moves behind Details, which has all of it.
func TestLongDiffIsReadInDetails(t *testing.T) {
	t.Parallel()
	c := gallery()["pending_edited_long"]
	m := Render(c)
	if !m.Truncated || slices.Contains(actionIDs(t, m.Blocks), ActionApprove) {
		t.Errorf("a cut diff can be approved at once: %v", actionIDs(t, m.Blocks))
	}
	if got := blockText(t, m.Blocks, "edit"); strings.Contains(got, `"last": 2`) || !strings.HasSuffix(got, "\n…") {
		t.Errorf("not cut:\n%s", got)
	}
	d := DetailsModal(Details{Card: c})
	var all strings.Builder
	for _, id := range []string{"edit", "edit_0", "edit_1"} {
		all.WriteString(blockText(t, d.Blocks.BlockSet, id))
	}
	if got := all.String(); strings.Count(got, `"two"`) != 40 || !strings.Contains(got, "⋯") || !strings.Contains(got, `"last": 2`) {
		t.Errorf("Details has\n%s", got)
	}
}
