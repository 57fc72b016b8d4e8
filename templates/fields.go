package templates

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/slack-go/slack"
)

// Room for each value of the card at full size, in characters.
const (
	nameRoom    = 100
	targetRoom  = 240
	reasonRoom  = 600
	reasonLines = 8
	maxPath     = 8
	maxLinks    = 5
	maxCardLink = 500
)

// fieldLines are the facts, one a line: our label in bold, the value as code. A value never opens a line.
func fieldLines(c Card, m *measure) []Line {
	field := func(label, text string, full int) Line {
		if text == "" {
			return Line{}
		}
		return compose(shout(label+"  "), part{kind: value, text: m.show(text, full)})
	}
	target := field("Target", c.Target, targetRoom)
	if c.TargetVersion != "" && !target.Empty() {
		target = compose(target, " at version ", part{kind: value, text: m.show(c.TargetVersion, nameRoom)})
	}
	requester := compose(shout("Requested by  "), "nobody named")
	if c.Requester != "" {
		requester = compose(shout("Requested by  "), who(c.Requester), " (the agent's word)")
	}
	rule := field("Rule", c.Rule, nameRoom)
	out := []Line{field("Tool", orDash(c.Tool), nameRoom), target, requester, field("Agent", c.Agent, nameRoom), pathLine(c, m), riskLine(c.Risk), rule}
	if len(c.Editors) > 1 || len(c.Editors) == 1 && len(editBlocks(c, &measure{percent: 100})) == 0 { // one is named with the diff
		out = append(out, compose(shout("Edited by  "), people(c.Editors)))
	}
	return out
}

// pathLine sets each name apart, so that a name with an arrow in it stays one name. It never stands for the agent: only the key's name
// is proven, and a path that is that name alone adds nothing to it.
func pathLine(c Card, m *measure) Line {
	path := c.AgentPath
	if len(path) == 0 || len(path) == 1 && path[0] == c.Agent {
		return Line{}
	}
	l := compose(shout("Inside the run  "))
	for i, name := range path {
		if i > 0 {
			l = compose(l, " › ")
		}
		if i == maxPath-1 && len(path) > maxPath { // the innermost agent is the one that asks: always show it
			hiddenNames := len(path) - maxPath
			m.fields += hiddenNames
			l = compose(l, "… (+"+count(hiddenNames, "agent")+") › ")
			name = path[len(path)-1]
		}
		l = compose(l, part{kind: value, text: orDash(m.show(name, nameRoom))})
		if i == maxPath-1 {
			break
		}
	}
	return compose(l, " (the agent's word)")
}

func riskLine(risk string) Line {
	switch risk {
	case "":
		return Line{}
	case "low":
		return compose(shout("Risk  "), "🟢 low")
	case "medium":
		return compose(shout("Risk  "), "🟠 medium")
	case riskHigh:
		return compose(shout("Risk  "), "🔴 high")
	}
	return compose(shout("Risk  "), code(risk))
}

// reasonBlocks quotes the agent, every line of it inside the quote.
func reasonBlocks(c Card, m *measure) []slack.Block {
	if c.Reason == "" {
		return nil
	}
	return []slack.Block{richText("reason", section(bold("Agent says (unverified)")), quotation(orDash(m.showLines(c.Reason, reasonRoom, reasonLines))))}
}

// linkBlocks lists the links with the host in sight. An address that is not plain http(s), or too long, or whose host
// needs a second look, is not made clickable.
func linkBlocks(c Card, m *measure) []slack.Block {
	var out []slack.RichTextSectionElement
	most := m.room(maxLinks*100) / 100
	for i, l := range c.Links {
		if i >= most {
			m.links += len(c.Links) - i
			break
		}
		if len(out) > 0 {
			out = append(out, plain("\n"))
		}
		out = append(out, linkElements(l, m)...)
	}
	if len(out) == 0 {
		return nil
	}
	return []slack.Block{richText("links", section(out...))}
}

func linkElements(l Link, m *measure) []slack.RichTextSectionElement {
	label := first(fit(l.Text, m.room(nameRoom)))
	host, ok := safeHost(l.URL)
	if !ok || length(l.URL) > maxCardLink {
		why := HostWarning(l.URL)
		if why == "" {
			why = "not shown as a link"
		}
		return []slack.RichTextSectionElement{plain("⚠️ " + orDash(label) + " (" + why + ")  "), coded(orDash(first(fit(l.URL, m.room(nameRoom)))))}
	}
	return []slack.RichTextSectionElement{
		plain("↗ "),
		slack.NewRichTextSectionLinkElement(l.URL, orDash(label), nil),
		plain("  on "), coded(first(fit(host, m.room(nameRoom)))),
	}
}

// safeHost returns the host of an http(s) address of visible characters.
func safeHost(raw string) (string, bool) {
	u, err := url.Parse(raw)
	if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" || HostWarning(raw) != "" {
		return "", false
	}
	if strings.ContainsFunc(raw, func(r rune) bool { return r == ' ' || hidden(r) }) || Visible(raw) != raw {
		return "", false
	}
	return u.Host, true
}

// footer names the request: what a person quotes, what the digest is, under which rules it was proposed.
func footer(c Card) slack.Block {
	texts := []string{c.ApprovalID}
	if c.ShortDigest != "" {
		texts = append(texts, "digest "+c.ShortDigest)
	}
	if c.RuleRevision > 0 {
		texts = append(texts, "rules r"+strconv.FormatInt(c.RuleRevision, 10))
	}
	if c.AppVersion != "" {
		texts = append(texts, c.AppVersion)
	}
	if c.ParentID != "" {
		texts = append(texts, "replaces "+c.ParentID)
	}
	for i, t := range texts {
		texts[i] = first(fit(t, valueRoom))
	}
	return contextLine("footer", orDash(strings.Join(texts, " · ")))
}
