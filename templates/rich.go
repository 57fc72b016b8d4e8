package templates

import "github.com/slack-go/slack"

// The few elements that cards are made of. Text elements of rich text are data: Slack interprets no markup, mention or
// emoji code in them.

func plain(s string) slack.RichTextSectionElement {
	return slack.NewRichTextSectionTextElement(s, nil)
}

func bold(s string) slack.RichTextSectionElement {
	return slack.NewRichTextSectionTextElement(s, &slack.RichTextSectionTextStyle{Bold: true})
}

func italic(s string) slack.RichTextSectionElement {
	return slack.NewRichTextSectionTextElement(s, &slack.RichTextSectionTextStyle{Italic: true})
}

func coded(s string) slack.RichTextSectionElement {
	return slack.NewRichTextSectionTextElement(s, &slack.RichTextSectionTextStyle{Code: true})
}

func section(elements ...slack.RichTextSectionElement) *slack.RichTextSection {
	return slack.NewRichTextSection(elements...)
}

func preformatted(s string) *slack.RichTextPreformatted {
	return &slack.RichTextPreformatted{Type: slack.RTEPreformatted, Elements: []slack.RichTextSectionElement{plain(s)}}
}

func quotation(s string) *slack.RichTextQuote {
	return &slack.RichTextQuote{Type: slack.RTEQuote, Elements: []slack.RichTextSectionElement{plain(s)}}
}

func richText(blockID string, elements ...slack.RichTextElement) *slack.RichTextBlock {
	return slack.NewRichTextBlock(blockID, elements...)
}

// lines puts one line under the other in one section, so that no client can run them together.
func lines(all ...Line) *slack.RichTextSection {
	var out []slack.RichTextSectionElement
	for _, l := range all {
		if l.Empty() {
			continue
		}
		if len(out) > 0 {
			out = append(out, plain("\n"))
		}
		out = append(out, l.rich()...)
	}
	return section(out...)
}

// literal is a plain_text object with emoji off: nothing in it is interpreted.
func literal(s string) *slack.TextBlockObject {
	return slack.NewTextBlockObject(slack.PlainTextType, s, false, false)
}

func header(blockID, s string) *slack.HeaderBlock {
	return slack.NewHeaderBlock(literal(s), slack.HeaderBlockOptionBlockID(blockID))
}

func contextLine(blockID string, texts ...string) *slack.ContextBlock {
	var elements []slack.MixedElement
	for _, t := range texts {
		if t != "" {
			elements = append(elements, literal(t))
		}
	}
	return slack.NewContextBlock(blockID, elements...)
}
