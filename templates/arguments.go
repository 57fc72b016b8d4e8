package templates

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/slack-go/slack"
)

const (
	argumentsRoom = 2_400 // of all arguments on a card, in characters
	argumentLines = 40    // of all arguments on a card
	argumentRoom  = 280   // of one value, in characters
	maxIndent     = 12    // levels that are indented; JSON may nest deeper than a screen is wide
)

// argumentBlocks shows the arguments in preformatted rich text: JSON with two spaces of indent, members in the order
// and numbers in the digits they were sent in.
func argumentBlocks(c Card, m *measure) []slack.Block {
	switch {
	case c.Arguments == nil:
		return []slack.Block{richText("arguments", section(bold("Arguments"), plain("  were erased")))}
	case c.Unreadable != "" || !json.Valid(c.Arguments):
		text := m.show(string(c.Arguments), argumentsRoom)
		return []slack.Block{richText("arguments",
			section(bold("Arguments can't be read"), plain(": "+m.show(unreadable(c), nameRoom)+". As sent, secrets masked:")),
			preformatted(orDash(text)))}
	}
	p := printer{redacted: c.Redacted, room: m.room(argumentsRoom), lines: m.room(argumentLines), valueRoom: m.room(argumentRoom)}
	p.print(c.Arguments)
	m.fields += p.fields
	m.chars += p.chars
	m.rtl = m.rtl || strings.ContainsFunc(p.String(), rightToLeft)
	blocks := []slack.Block{richText("arguments", section(bold("Arguments")), preformatted(p.String()))}
	return append(blocks, redactedNote(c)...)
}

func redactedNote(c Card) []slack.Block {
	n := len(c.Redacted)
	if n == 0 {
		return nil
	}
	return []slack.Block{contextLine("redacted", "🙈 "+count(n, "value")+" hidden by the configuration or as a detected secret")}
}

// printer writes JSON in visible characters until its room is used up; what comes after is counted, not written.
type printer struct {
	strings.Builder
	redacted  []string // pointers whose values are markers and stand without quotes, as no value can
	room      int      // characters left
	lines     int      // line breaks left
	valueRoom int      // for one value
	closed    bool     // the room was used up
	fields    int      // values not written at all
	chars     int      // characters not written
}

// print writes one valid JSON text.
func (p *printer) print(text []byte) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	p.value(dec, "", 0, "")
}

// value writes the next value; lead (a comma, a line break, a key) goes before it, if it goes at all.
func (p *printer) value(dec *json.Decoder, lead string, depth int, pointer string) {
	token, err := dec.Token()
	if err != nil { // not for valid JSON
		p.closed = true
		p.fields++
		return
	}
	switch t := token.(type) {
	case json.Delim:
		p.container(dec, t, lead, depth, pointer)
	case string:
		if slices.Contains(p.redacted, pointer) {
			p.leaf(lead, t, false, "", "")
		} else {
			p.leaf(lead, t, true, `"`, `"`)
		}
	case json.Number:
		p.leaf(lead, t.String(), false, "", "")
	case bool:
		if t {
			p.leaf(lead, "true", false, "", "")
		} else {
			p.leaf(lead, "false", false, "", "")
		}
	case nil:
		p.leaf(lead, "null", false, "", "")
	}
}

func (p *printer) container(dec *json.Decoder, open json.Delim, lead string, depth int, pointer string) {
	end := "}"
	if open == '[' {
		end = "]"
	}
	if !dec.More() {
		_, _ = dec.Token() // the closing bracket of valid JSON
		p.leaf(lead, open.String()+end, false, "", "")
		return
	}
	wrote := p.write(lead + open.String())
	for i := 0; dec.More(); i++ {
		next := "\n"
		if i > 0 {
			next = ",\n"
		}
		next += strings.Repeat("  ", min(depth+1, maxIndent))
		at := pointer
		if open == '{' {
			key, _ := dec.Token()
			name, _ := key.(string)
			shown, rest := cut(name, p.valueRoom, true)
			next += `"` + shown + `"`
			if rest > 0 {
				next += "…"
				p.chars += rest
			}
			next += ": "
			if len(p.redacted) > 0 {
				at += "/" + pointerEscaper.Replace(name)
			}
		} else if len(p.redacted) > 0 {
			at += "/" + itoa(i)
		}
		p.value(dec, next, depth+1, at)
	}
	_, _ = dec.Token()
	if wrote && !p.closed {
		p.write("\n" + strings.Repeat("  ", min(depth, maxIndent)) + end)
	}
}

// leaf writes a value, or the part of it that fits.
func (p *printer) leaf(lead, text string, quotes bool, open, end string) {
	shown, rest := cut(text, p.valueRoom, quotes)
	if rest > 0 {
		end += "…"
	}
	if !p.write(lead + open + shown + end) {
		p.fields++
		p.chars += utf8.RuneCountInString(text)
		return
	}
	p.chars += rest
}

// write writes all of s or nothing, and nothing more once something did not fit.
func (p *printer) write(s string) bool {
	n, breaks := length(s), strings.Count(s, "\n")
	if p.closed || n > p.room || breaks > p.lines {
		if !p.closed {
			p.closed = true
			p.WriteString("\n…")
		}
		return false
	}
	p.room -= n
	p.lines -= breaks
	p.WriteString(s)
	return true
}

var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1") // RFC 6901

func unreadable(c Card) string {
	if c.Unreadable != "" {
		return c.Unreadable
	}
	return "not JSON"
}
