package templates

import (
	"encoding/json"
	"math"
	"strings"
)

// A page of Details: some preformatted blocks, well within the 250 KB of a view also when every character needs an
// escape.
const (
	chunkRoom  = 2_900
	pageChunks = 20
	pageBytes  = 160_000
)

// document is the whole proposal as text. Values and links that the parts above it cut come first, in full.
func document(c Card) string {
	var b strings.Builder
	full := func(label, text string, room int) {
		if _, rest := fit(text, room); rest > 0 {
			b.WriteString(label + ": " + quoteVisible(text) + "\n")
		}
	}
	full("title", c.Title, maxHeader)
	full("tool", c.Tool, nameRoom)
	full("agent", c.Agent, nameRoom)
	full("target", c.Target, targetRoom)
	full("target version", c.TargetVersion, nameRoom)
	full("rule", c.Rule, nameRoom)
	full("application version", c.AppVersion, valueRoom)
	for _, name := range c.AgentPath {
		if len(c.AgentPath) > maxPath {
			b.WriteString("inside the run: " + quoteVisible(name) + "\n")
		} else {
			full("inside the run", name, nameRoom)
		}
	}
	for _, l := range c.Links {
		if len(c.Links) > maxLinks || length(l.URL) > maxCardLink {
			b.WriteString("link: " + quoteVisible(l.Text) + " " + quoteVisible(l.URL) + "\n")
		}
	}
	if c.Reason != "" {
		b.WriteString("agent says (unverified): " + quoteVisible(c.Reason) + "\n")
	}
	if b.Len() > 0 {
		b.WriteString("arguments: ")
	}
	switch {
	case c.Arguments == nil:
		b.WriteString("erased")
	case c.Unreadable != "" || !json.Valid(c.Arguments):
		b.WriteString("unreadable (" + quoteVisible(unreadable(c)) + "), as sent, secrets masked:\n" + Visible(string(c.Arguments)))
	default:
		p := printer{redacted: c.Redacted, room: math.MaxInt, lines: math.MaxInt, valueRoom: math.MaxInt}
		p.print(c.Arguments)
		b.WriteString(p.String())
	}
	return b.String()
}

func quoteVisible(s string) string {
	shown, _ := cut(s, math.MaxInt, true)
	return `"` + shown + `"`
}

// documentPages splits the document into pages of chunks. There is at least one page with one chunk.
func documentPages(c Card) [][]string {
	var pages [][]string
	var page []string
	bytes := 0
	for _, chunk := range chunks(document(c), chunkRoom) {
		n := jsonBytes(chunk)
		if len(page) == pageChunks || (len(page) > 0 && bytes+n > pageBytes) {
			pages = append(pages, page)
			page, bytes = nil, 0
		}
		page = append(page, chunk)
		bytes += n
	}
	return append(pages, page)
}

// chunks splits text at line breaks where they come often enough, else between runes. No chunk is empty and, but for
// the line breaks at the seams, nothing is lost.
func chunks(s string, room int) []string {
	var out []string
	for s != "" {
		end, used, lastBreak := 0, 0, 0
		for i, r := range s {
			n := 1
			if r > 0xFFFF {
				n = 2
			}
			if used+n > room {
				break
			}
			used += n
			end = i + len(string(r))
			if r == '\n' {
				lastBreak = i
			}
		}
		if end < len(s) && lastBreak > end/2 {
			end = lastBreak
		}
		out = append(out, s[:end])
		s = strings.TrimPrefix(s[end:], "\n")
	}
	if len(out) == 0 {
		out = []string{"—"}
	}
	return out
}

func jsonBytes(s string) int {
	raw, err := json.Marshal(s)
	if err != nil {
		return pageBytes
	}
	return len(raw)
}
