package tools

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/holdpoint/holdpoint/approvals/canon"
	"github.com/holdpoint/holdpoint/approvals/secret"
)

const (
	receiptRunes = 200     // what a card has room for
	receiptBody  = 8 << 10 // a longer answer is not quoted: it could not be scanned whole, cheaply
)

// screen decides what of an answer a person may see. It knows the texts that must not
// come back: redacted arguments, credentials among the arguments, resolved headers. It
// gathers them only when there is an answer to quote.
type screen struct {
	call    Call
	headers []string
	hidden  []string // lower case
}

func newScreen(call Call, headers []string) *screen { return &screen{call: call, headers: headers} }

func (s *screen) gather() {
	for _, h := range s.headers {
		s.hide(h)
		if _, credential, found := strings.Cut(h, " "); found { // "Bearer …"
			s.hide(credential)
		}
	}
	args, err := canon.Numbers(s.call.Arguments.Raw)
	if err != nil {
		return // unreadable arguments never get here
	}
	for _, pointer := range s.call.Tool.Redact {
		if v, ok := canon.Get(args, pointer); ok {
			s.hideAll(v)
		}
	}
	for found := range secret.Walk(args, secret.Options{Unpack: true}) {
		if v, ok := canon.Get(args, found.At); ok {
			s.hideAll(v)
		}
	}
}

func (s *screen) hide(text string) {
	if text = strings.TrimSpace(text); text != "" {
		s.hidden = append(s.hidden, strings.ToLower(text))
	}
}

func (s *screen) hideAll(v any) {
	switch v := v.(type) {
	case string:
		s.hide(v)
	case json.Number:
		s.hide(v.String())
	case []any:
		for _, item := range v {
			s.hideAll(item)
		}
	case map[string]any:
		for _, item := range v {
			s.hideAll(item)
		}
	}
}

// receipt is one line of at most 200 runes: the status, and the answer's beginning when
// nothing in it must stay hidden.
func (s *screen) receipt(got *answer) string {
	head := phrase(got.status)
	switch {
	case got.tooMuch:
		return head + " (more than 1 MiB, not kept)"
	case len(got.body) == 0:
		return head
	case len(got.body) > receiptBody:
		return fmt.Sprintf("%s (%d KiB, not shown)", head, (len(got.body)+1023)/1024)
	case !utf8.Valid(got.body):
		return fmt.Sprintf("%s (%d bytes, not text)", head, len(got.body))
	case !s.clean(got.body):
		return head + " (answer not shown: it holds something hidden)"
	}
	text := got.body
	var small bytes.Buffer
	if json.Compact(&small, text) == nil {
		text = small.Bytes()
	}
	if line := oneLine(string(text)); line != "" {
		return cut(head+": "+line, receiptRunes)
	}
	return head
}

// clean reports that neither a credential nor a hidden text is in the answer, escaped or
// not, in a value or in a name.
func (s *screen) clean(body []byte) bool {
	s.gather()
	if secret.Found(string(body)) || s.covers(string(body)) {
		return false
	}
	var doc any
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	if dec.Decode(&doc) != nil {
		return true // not JSON: there was no escaping to see through
	}
	for range secret.Walk(doc, secret.Options{Unpack: true}) {
		return false
	}
	return s.cleanValue(doc)
}

func (s *screen) cleanValue(v any) bool {
	switch v := v.(type) {
	case string:
		return !s.covers(v)
	case []any:
		for _, item := range v {
			if !s.cleanValue(item) {
				return false
			}
		}
	case map[string]any:
		for name, item := range v {
			if s.covers(name) || !s.cleanValue(item) {
				return false
			}
		}
	}
	return true
}

func (s *screen) covers(text string) bool {
	text = strings.ToLower(text)
	for _, h := range s.hidden {
		if strings.Contains(text, h) {
			return true
		}
	}
	return false
}

// oneLine makes any text harmless on a card: one line, printable characters only (no
// controls, no direction marks), and no angle brackets, with which Slack's mentions and
// links begin.
func oneLine(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case unicode.IsSpace(r):
			b.WriteByte(' ')
		case r == '<':
			b.WriteRune('‹')
		case r == '>':
			b.WriteRune('›')
		case unicode.IsGraphic(r) && !unicode.Is(unicode.Cf, r):
			b.WriteRune(r)
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

func cut(text string, runes int) string {
	if utf8.RuneCountInString(text) <= runes {
		return text
	}
	return string([]rune(text)[:runes-1]) + "…"
}
