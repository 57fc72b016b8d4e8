package interactions

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/templates"
)

// line is a sentence of a command's answer: our words, and values that are set apart as code, so that none of them can pass
// for ours.
type line []bit

type bit struct{ words, value, user string }

func said(words string) bit { return bit{words: words} }
func named(value string) bit {
	return bit{value: short(value)}
}
func person(id string) bit { return bit{user: strings.TrimPrefix(id, "slack:")} }

// short is a value's visible form, cut.
func short(s string) string {
	const most = 120
	s = templates.Visible(s)
	if utf8.RuneCountInString(s) > most {
		s = string([]rune(s)[:most]) + "…"
	}
	if s == "" {
		return "—"
	}
	return s
}

// message is lines as an answer for one person.
func message(lines ...line) templates.Message {
	var text strings.Builder
	var elements []slack.RichTextSectionElement
	for i, l := range lines {
		if i > 0 {
			text.WriteString("\n")
			elements = append(elements, slack.NewRichTextSectionTextElement("\n", nil))
		}
		for _, b := range l {
			switch {
			case b.user != "":
				text.WriteString("<@" + b.user + ">")
				elements = append(elements, slack.NewRichTextSectionUserElement(b.user, nil))
			case b.value != "":
				text.WriteString("`" + templates.Escape(strings.ReplaceAll(b.value, "`", "'")) + "`")
				elements = append(elements, slack.NewRichTextSectionTextElement(b.value, &slack.RichTextSectionTextStyle{Code: true}))
			default:
				text.WriteString(templates.Escape(b.words))
				elements = append(elements, slack.NewRichTextSectionTextElement(b.words, nil))
			}
		}
	}
	return templates.Message{Text: text.String(), Blocks: []slack.Block{slack.NewRichTextBlock("answer", slack.NewRichTextSection(elements...))}}
}

// maxNamed is how many approvals an answer names.
const maxNamed = 10

// each adds a line an approval: its id, its tool and where it stands.
func each(lines []line, views []approvals.View) []line {
	for i, v := range views {
		if i == maxNamed {
			return append(lines, line{said(fmt.Sprintf("… and %d more", len(views)-i))})
		}
		lines = append(lines, line{said("• "), named(v.ApprovalID.String()), said(" "), named(v.Tool), said(" · " + strings.ReplaceAll(string(v.Status), "_", " "))})
	}
	return lines
}

// body is an answer in the acknowledgement of a command, or over a response_url.
func body(m templates.Message) map[string]any {
	out := map[string]any{"response_type": slack.ResponseTypeEphemeral, "text": m.Text}
	if len(m.Blocks) > 0 {
		out["blocks"] = m.Blocks
	}
	if m.Plain {
		out["mrkdwn"] = false
	}
	return out
}
