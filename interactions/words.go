package interactions

import (
	"regexp"
	"strings"
	"unicode"
)

// straight spells quotes the way JSON and this parser want them. Slack's clients and keyboards send the curly ones.
var straight = strings.NewReplacer("“", `"`, "”", `"`, "„", `"`, "‟", `"`, "«", `"`, "»", `"`, "‘", "'", "’", "'", "‚", "'", "\u00a0", " ")

func straighten(s string) string { return straight.Replace(s) }

// unescape resolves what Slack escapes in a command's text, after mentions were recognised: a typed "<@U…>" arrives
// escaped and is text, never a mention.
var unescape = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")

// words reads a command's text one word at a time. Quotes keep spaces in a word, and so do Slack's angle brackets.
type words struct{ left string }

func newWords(text string) *words { return &words{left: straighten(text)} }

// raw takes the next word as Slack sent it; ok is false at the end.
func (w *words) raw() (word string, ok bool) {
	w.left = strings.TrimLeftFunc(w.left, unicode.IsSpace)
	if w.left == "" {
		return "", false
	}
	var b strings.Builder
	closing := rune(0)
	for i, r := range w.left {
		switch {
		case closing == 0 && unicode.IsSpace(r):
			w.left = w.left[i:]
			return b.String(), true
		case closing == 0 && r == '"':
			closing = '"'
		case closing == '"' && r == '"':
			closing = 0
		case closing == 0 && r == '<':
			closing = '>'
			b.WriteRune(r)
		case closing == '>' && r == '>':
			closing = 0
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
	}
	w.left = ""
	return b.String(), true
}

// next is raw with Slack's escapes resolved; "" at the end.
func (w *words) next() string {
	s, _ := w.raw()
	return unescape.Replace(s)
}

// rest is all that is left: a reason or evidence. Quotes around the whole of it go, those inside stay.
func (w *words) rest() string {
	s := strings.TrimSpace(w.left)
	w.left = ""
	if len(s) >= 2 && s[0] == '"' && s[len(s)-1] == '"' && !strings.Contains(s[1:len(s)-1], `"`) {
		s = s[1 : len(s)-1]
	}
	return strings.TrimSpace(unescape.Replace(s))
}

var mentionForm = regexp.MustCompile(`^<@([UW][A-Z0-9]{2,20})(?:\|[^<>]*)?>$`)

// mentioned is the id in an escaped mention. A bare name is nobody: names are not unique and can be chosen.
func mentioned(raw string) (user string, ok bool) {
	m := mentionForm.FindStringSubmatch(raw)
	if m == nil {
		return "", false
	}
	return m[1], true
}

// closest is the known word that was probably meant, or "".
func closest(word string, known []string) string {
	best, least := "", 3
	for _, k := range known {
		if d := distance(strings.ToLower(word), k); d < least && d < len(k) {
			best, least = k, d
		}
	}
	return best
}

// distance counts the insertions, deletions, replacements and swaps of neighbours between two short words.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	if len(x) > 32 {
		return len(x)
	}
	d := make([][]int, len(x)+1)
	for i := range d {
		d[i] = make([]int, len(y)+1)
		d[i][0] = i
	}
	for j := range d[0] {
		d[0][j] = j
	}
	for i := 1; i <= len(x); i++ {
		for j := 1; j <= len(y); j++ {
			change := 1
			if x[i-1] == y[j-1] {
				change = 0
			}
			d[i][j] = min(d[i-1][j]+1, d[i][j-1]+1, d[i-1][j-1]+change)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				d[i][j] = min(d[i][j], d[i-2][j-2]+1)
			}
		}
	}
	return d[len(x)][len(y)]
}
