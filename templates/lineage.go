package templates

import (
	"strings"

	"github.com/slack-go/slack"
)

// Room for the diff of an edit.
const (
	diffRoom   = 1_200 // on a card, in characters
	diffLines  = 24
	diffChunks = 8 // in Details, of chunkRoom each
)

// editBlocks shows what an edit changed, and who edited: whoever approves the child decides about that. A line of the diff is
// a line of JSON, in which strings keep their line breaks escaped, so no value can pass for a line of its own.
func editBlocks(c Card, m *measure) []slack.Block {
	if c.ParentID == "" || c.EditDiff == "" && !c.EditHidden {
		return nil
	}
	if c.EditDiff == "" {
		return []slack.Block{richText("edit", lines(compose(editedBy(c), ": only hidden values were changed")))}
	}
	shown := m.diff(changes(c.EditDiff))
	return []slack.Block{richText("edit", section(append(compose(editedBy(c), ": what was changed").rich(), plain("\n"))...), preformatted(shown))}
}

// editedBy names the last editor and what was edited.
func editedBy(c Card) Line {
	l := compose(shout("✏️ Edited"))
	if n := len(c.Editors); n > 0 {
		l = compose(l, by(" by ", c.Editors[n-1]))
	}
	return compose(l, ", in place of ", code(c.ParentID))
}

// fullEditBlocks is the diff in Details.
func fullEditBlocks(c Card) []slack.Block {
	m := &measure{percent: 100}
	blocks := editBlocks(c, m)
	if !m.isCut() {
		return blocks
	}
	blocks = []slack.Block{richText("edit", lines(compose(editedBy(c), ": what was changed")))}
	var text []string
	for _, l := range changes(c.EditDiff) {
		text = append(text, Visible(l))
	}
	for i, chunk := range chunks(strings.Join(text, "\n"), chunkRoom) {
		if i == diffChunks {
			return append(blocks, contextLine("edit_cut", "✂️ The rest of what was changed is not shown here; the arguments below are whole"))
		}
		blocks = append(blocks, richText("edit_"+itoa(i), preformatted(chunk)))
	}
	return blocks
}

// changes are the lines of a unified diff without its heads; hunks are set apart.
func changes(diff string) []string {
	var out []string
	for i, l := range strings.Split(strings.TrimSuffix(diff, "\n"), "\n") {
		switch {
		case i < 2 && (strings.HasPrefix(l, "--- ") || strings.HasPrefix(l, "+++ ")):
		case strings.HasPrefix(l, "@@ "):
			if len(out) > 0 {
				out = append(out, "⋯")
			}
		default:
			out = append(out, l)
		}
	}
	return out
}

// diff is as many lines as there is room for; what is left out is counted, so that a cut card has no one-click Approve.
func (m *measure) diff(all []string) string {
	var out []string
	room, most := m.room(diffRoom), m.room(diffLines)
	for i, l := range all {
		if i >= most || room <= 0 {
			m.chars += len([]rune(l))
			continue
		}
		shown, n := fit(l, min(room, m.room(argumentRoom)))
		m.chars += n
		room -= length(shown) + 1
		m.rtl = m.rtl || strings.ContainsFunc(shown, rightToLeft)
		out = append(out, shown)
	}
	if len(out) < len(all) {
		out = append(out, "…")
	}
	return strings.Join(out, "\n")
}

// lineageButtons lead from a card to the Details of the request that it replaced, or that replaced it. They only look: their
// value proves the card that was pressed, and the other one is found in its row.
func lineageButtons(c Card) []*slack.ButtonBlockElement {
	var out []*slack.ButtonBlockElement
	add := func(action, text string) {
		if v := c.Values[ActionDetails]; v != "" && jsonLength(v) <= MaxButtonValue {
			out = append(out, slack.NewButtonBlockElement(action, v, literal(text)))
		}
	}
	if c.ParentID != "" {
		add(ActionOriginal, "What it replaced")
	}
	if c.ChildID != "" && c.Status == StatusEdited {
		add(ActionReplacement, "What replaced it")
	}
	return out
}
