package templates

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/slack-go/slack"
)

// EditModal offers the editable arguments (redacted fields left out) as JSON text. It is false, and the view a notice,
// when they don't fit Slack's 3,000 characters or aren't JSON.
func EditModal(c Card, editable []byte, metadata string) (slack.ModalViewRequest, bool) {
	initial, err := EditableText(editable)
	if err != nil || length(initial) > maxInput {
		return NoticeModal("Edit", Refusal(RefuseEditTooLong, Facts{})), false
	}
	hint := "JSON, in straight quotes. Other than ASCII characters are written as \\u00e9, so that they come back unchanged."
	if n := len(c.Redacted); n > 0 {
		hint += " " + count(n, "hidden value") + " stay as sent."
	}
	in := input(InputArguments, "Arguments", hint, maxInput)
	if element, ok := in.Element.(*slack.PlainTextInputBlockElement); ok {
		element.InitialValue = initial
	}
	return form(ViewEdit, "Edit the arguments", "Propose this", metadata,
		subject(c),
		richText("effect", section(plain("This ends the request and proposes a new one with your arguments: a new digest, no votes, no later deadline. You can't approve it yourself unless the rule says so."))),
		in,
	), true
}

// EditableText writes JSON for a form: indented, members and numbers as they are, every character that is not plain
// ASCII, and & < >, as \u escapes. Slack gives other characters back changed; parsed, these are the same values.
func EditableText(raw []byte) (string, error) {
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		return "", fmt.Errorf("arguments for a form are not JSON")
	}
	var out strings.Builder
	for i := 0; i < b.Len(); {
		r, n := utf8.DecodeRune(b.Bytes()[i:])
		if r == utf8.RuneError && n <= 1 {
			return "", fmt.Errorf("arguments for a form are not UTF-8")
		}
		i += n
		switch {
		case r > 0xFFFF:
			hi, lo := utf16.EncodeRune(r)
			fmt.Fprintf(&out, `\u%04x\u%04x`, hi, lo)
		case r >= 0x7f || strings.ContainsRune("&<>", r):
			fmt.Fprintf(&out, `\u%04x`, r)
		default:
			out.WriteRune(r)
		}
	}
	return out.String(), nil
}
