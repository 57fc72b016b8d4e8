package templates

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// length counts characters as strictly as Slack might: UTF-16 units, never fewer than the runes.
func length(s string) int {
	n := 0
	for _, r := range s {
		if n++; r > 0xFFFF {
			n++
		}
	}
	return n
}

// cut returns the visible form of s in at most limit characters and how many runes of s are not in it. Nothing is cut
// inside a rune or inside an escape.
func cut(s string, limit int, quoted bool) (shown string, hiddenRunes int) {
	var b strings.Builder
	used, runes := 0, 0
	reveal(s, quoted, func(chunk string, n int) bool {
		l := length(chunk)
		if used+l > limit {
			return false
		}
		used += l
		runes += n
		b.WriteString(chunk)
		return true
	})
	return b.String(), utf8.RuneCountInString(s) - runes
}

// fit returns the visible form of s in at most limit characters, with a count of what is hidden where it does not fit.
func fit(s string, limit int) (shown string, hiddenRunes int) {
	if shown, hiddenRunes = cut(s, limit, false); hiddenRunes == 0 {
		return shown, 0
	}
	const note = 26 // room for the longest count
	if limit <= note+8 {
		shown, hiddenRunes = cut(s, max(limit-1, 0), false)
		return shown + "…", hiddenRunes
	}
	shown, hiddenRunes = cut(s, limit-note, false)
	return shown + "… (+" + count(hiddenRunes, "character") + ")", hiddenRunes
}

// count writes "1 field", "1,204 characters".
func count(n int, noun string) string {
	s := thousands(n) + " " + noun
	if n != 1 {
		s += "s"
	}
	return s
}

func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// measure is one attempt to fit a card: the share of each part's room that is used, and what was hidden for it.
type measure struct {
	percent int
	fields  int  // argument fields not shown at all
	chars   int  // characters not shown
	links   int  // links not shown
	rtl     bool // something shown runs right to left
}

func (m *measure) room(full int) int { return max(full*m.percent/100, 4) }

// show is fit within this attempt's room, keeping the count.
func (m *measure) show(s string, full int) string {
	shown, n := fit(s, m.room(full))
	m.chars += n
	m.rtl = m.rtl || strings.ContainsFunc(shown, rightToLeft)
	return shown
}

// showLines is show for somebody's prose, keeping line breaks, for elements whose every line is marked as a quotation.
// Blank lines go, and many lines are cut: they would push the buttons out of sight.
func (m *measure) showLines(s string, full, most int) string {
	var out []string
	room := m.room(full)
	for _, l := range strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }) {
		if strings.TrimSpace(l) == "" {
			continue
		}
		if len(out) == most || room <= 0 {
			m.chars += utf8.RuneCountInString(l)
			continue
		}
		shown, n := fit(l, room)
		m.chars += n
		room -= length(shown)
		m.rtl = m.rtl || strings.ContainsFunc(shown, rightToLeft)
		out = append(out, shown)
	}
	return strings.Join(out, "\n")
}

func (m *measure) isCut() bool { return m.fields+m.chars+m.links > 0 }

// hiddenNote writes "+3 fields, 1,204 characters".
func (m *measure) hiddenNote() string {
	var parts []string
	if m.fields > 0 {
		parts = append(parts, count(m.fields, "field"))
	}
	if m.chars > 0 {
		parts = append(parts, count(m.chars, "character"))
	}
	if m.links > 0 {
		parts = append(parts, count(m.links, "link"))
	}
	return "+" + strings.Join(parts, ", ")
}
