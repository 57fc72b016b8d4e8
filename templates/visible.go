package templates

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Runs longer than these are shown by their count or code points: padding pushes text out of sight, and stacked
// marks draw over the lines around them.
const (
	maxSpaces = 8
	maxMarks  = 3
)

// Visible returns s with every character that a reader can't see, or can't trust, written out as \u{202E}:
// control (also line breaks), format, line and paragraph separators, private use, unassigned, bidi controls,
// default-ignorable characters, blanks other than the plain space, and stacked or stray combining marks. Bytes that
// are not UTF-8 read \x{FF}; more than eight spaces in a row read \u{20}×12. In a host that mixes scripts, as the
// Cyrillic а in "pаypal.com", the non-ASCII letters are written out as well. The result is one line of valid UTF-8.
func Visible(s string) string {
	if plainASCII(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	reveal(s, false, func(chunk string, _ int) bool {
		b.WriteString(chunk)
		return true
	})
	return b.String()
}

// Escape escapes the three characters that mrkdwn gives a meaning to, & < and >, as Slack asks. mrkdwn has no escape
// for * _ ~ and the backtick, so it suits words of our own and names, not arbitrary values.
func Escape(s string) string { return mrkdwnEscaper.Replace(s) }

var mrkdwnEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// reveal calls emit with each piece of the visible form of s and the number of runes of s that it stands for, until
// emit answers false. With quoted, pieces suit the inside of a JSON string: quotes, backslashes and line breaks are
// escaped, so a backslash written by a value can't pass for one of ours.
func reveal(s string, quoted bool, emit func(chunk string, runes int) bool) {
	suspects := suspectHosts(s)
	marks := maxMarks // a mark at the start would sit on the character before the value
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		chunk, n := s[i:i+size], 1
		inHost := false
		for len(suspects) > 0 && i >= suspects[0].end {
			suspects = suspects[1:]
		}
		if len(suspects) > 0 && i >= suspects[0].start {
			inHost = r >= utf8.RuneSelf
		}
		if unicode.Is(unicode.Mn, r) {
			marks++
		} else {
			marks = 0
		}
		switch {
		case r == utf8.RuneError && size <= 1:
			chunk = `\x{` + strings.ToUpper(strconv.FormatUint(uint64(s[i]), 16)) + `}`
			marks = maxMarks
		case r == ' ':
			for i+n < len(s) && s[i+n] == ' ' {
				n++
			}
			size = n
			if chunk = s[i : i+n]; n > maxSpaces {
				chunk = `\u{20}×` + strconv.Itoa(n)
			}
		case quoted && strings.ContainsRune("\"\\\n\r\t", r):
			q := strconv.Quote(chunk)
			chunk = q[1 : len(q)-1]
		case hidden(r) || inHost || marks > maxMarks:
			chunk = codePoint(r)
			marks = maxMarks // what follows would attach to the closing brace
		}
		if !emit(chunk, n) {
			return
		}
		i += size
	}
}

func codePoint(r rune) string {
	return `\u{` + strings.ToUpper(strconv.FormatInt(int64(r), 16)) + `}`
}

// hidden reports whether r leaves no mark of its own, reorders others, or means nothing agreed upon. Unicode's graphic
// characters exclude Cc, Cf, Cs, Co, Cn, Zl and Zp; the rest are those that are graphic by category only.
func hidden(r rune) bool {
	switch {
	case r == ' ':
		return false
	case r < utf8.RuneSelf:
		return r < ' ' || r == 0x7f
	case !unicode.IsGraphic(r), unicode.Is(unicode.Zs, r), unicode.Is(unicode.Me, r):
		return true
	case unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r), unicode.Is(unicode.Variation_Selector, r):
		return true
	}
	return r == '\u2800' || r == '\U0001D159' || r == '\U00016FE4' // blank by design
}

// plainASCII reports whether Visible has nothing to do.
func plainASCII(s string) bool {
	spaces := 0
	for i := range len(s) {
		if s[i] < ' ' || s[i] >= 0x7f {
			return false
		}
		if s[i] != ' ' {
			spaces = 0
		} else if spaces++; spaces > maxSpaces {
			return false
		}
	}
	return true
}
