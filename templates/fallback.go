package templates

import (
	"strings"

	"github.com/slack-go/slack"
)

// Fallback is what to post when Slack refuses the blocks: plain sentences without arguments, links or buttons, and
// the way to the rest. It decides nothing, so a card that can't be shown can't be approved from the channel. Post it
// with `mrkdwn: false` and `blocks: []`, so that an earlier card's buttons go.
func Fallback(c Card) Message {
	var b strings.Builder
	for _, l := range statusLines(c) {
		if !l.Empty() {
			b.WriteString(plainText(l))
			b.WriteByte('\n')
		}
	}
	b.WriteString(plainText(compose("Title: ", quoted(title(c)))))
	b.WriteString(plainText(compose("\nTool: ", code(orDash(c.Tool)))))
	b.WriteString(plainText(compose("\nSlack refused the full card. See it with /approvals show ", code(c.ApprovalID))))
	if c.ShortDigest != "" {
		b.WriteString(plainText(compose("\nDigest: ", code(c.ShortDigest))))
	}
	return Message{Text: b.String(), Blocks: []slack.Block{}, Plain: true}
}

// plainText is for text posted with `mrkdwn: false`, where Slack still reads & < and >.
func plainText(l Line) string { return Escape(l.Plain()) }

// UncertainThread is the reply in the card's thread that calls for the admins: updating a card notifies nobody, a new
// message that mentions them does. Mentions that are not Slack ids are left out.
func UncertainThread(c Card) Message {
	var elements []slack.RichTextSectionElement
	text := ""
	for _, id := range c.Mention {
		if len(elements) >= 2*maxPeople {
			break
		}
		switch {
		case isPerson(id):
			id = strings.TrimPrefix(id, "slack:")
			elements = append(elements, slack.NewRichTextSectionUserElement(id, nil), plain(" "))
			text += "<@" + id + "> "
		case groupID.MatchString(id):
			elements = append(elements, slack.NewRichTextSectionUserGroupElement(id), plain(" "))
			text += "<!subteam^" + id + "> "
		}
	}
	l := compose("We don't know whether this happened: ", quoted(title(c)), " on ", code(orDash(c.Target)),
		". Nothing will be tried again by itself. Please look at the target, then answer on the card above (", code(c.ApprovalID), ").")
	return Message{Text: text + l.Mrkdwn(), Blocks: []slack.Block{richText("uncertain", section(append(elements, l.rich()...)...))}}
}
