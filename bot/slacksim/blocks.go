package slacksim

import "strings"

// The block tables. Source: https://docs.slack.dev/reference/block-kit/blocks and …/composition-objects.

var (
	blockID  = may(str(1, 255))
	typeName = may(func(*checker, string, any) {}) // choose has looked at it
)

// onlyOn names the blocks that are not allowed on every surface.
var onlyOn = map[string][]Surface{
	"markdown": {SurfaceMessage},
	"alert":    {SurfaceModal},
}

var blockKinds = map[string]check{
	"header":    object(shape{"type": typeName, "block_id": blockID, "text": must(plain(150))}),
	"divider":   object(shape{"type": typeName, "block_id": blockID}),
	"section":   object(shape{"type": typeName, "block_id": blockID, "text": may(text(3000)), "fields": may(list(1, 10, text(2000))), "accessory": may(choose(accessories)), "expand": may(boolean)}, sectionHasText),
	"context":   object(shape{"type": typeName, "block_id": blockID, "elements": must(list(1, 10, choose(contextKinds)))}),
	"actions":   object(shape{"type": typeName, "block_id": blockID, "elements": must(list(1, 25, choose(actionKinds)))}),
	"image":     object(shape{"type": typeName, "block_id": blockID, "image_url": must(link(3000)), "alt_text": must(words(1, 2000)), "title": may(plain(2000))}),
	"markdown":  object(shape{"type": typeName, "block_id": blockID, "text": must(markdown)}),
	"rich_text": object(shape{"type": typeName, "block_id": blockID, "elements": must(list(1, 1000, choose(richBlocks)))}),
	"alert":     object(shape{"type": typeName, "block_id": blockID, "text": must(text(200)), "level": may(oneOf("default", "info", "warning", "error", "success"))}),
	"input": object(shape{
		"type": typeName, "block_id": blockID, "label": must(plain(2000)), "element": must(choose(inputKinds)), "hint": may(plain(2000)),
		"optional": may(boolean), "dispatch_action": may(boolean),
	}),
}

func sectionHasText(c *checker, at string, o map[string]any) {
	if o["text"] == nil && o["fields"] == nil {
		c.complain(at, "must provide text or fields")
	}
}

// markdown blocks share 12,000 characters in one message.
func markdown(c *checker, at string, v any) {
	words(1, 12_000)(c, at, v)
	s, _ := v.(string)
	c.markdown += utf16Len(s)
	if c.markdown > 12_000 && utf16Len(s) <= 12_000 {
		c.complain(at, "must be less than 12001 characters in all markdown blocks")
	}
}

// plain is a plain_text object; text takes mrkdwn too.
func plain(high int) check {
	return object(shape{"type": must(oneOf("plain_text")), "text": must(words(1, high)), "emoji": may(boolean)})
}

func text(high int) check {
	return choose(map[string]check{
		"plain_text": plain(high),
		"mrkdwn":     object(shape{"type": typeName, "text": must(words(1, high)), "verbatim": may(boolean)}),
	})
}

// confirmation: Slack's clients fall over when one of the four texts is missing, so all are required, as documented.
var confirmation = object(shape{
	"title": must(plain(100)), "text": must(text(300)), "confirm": must(plain(30)), "deny": must(plain(30)), "style": may(oneOf("primary", "danger")),
})

// choice is an option of an element; the label check says whether mrkdwn is allowed, and only overflows take a URL.
func choice(label check, withURL bool) check {
	fields := shape{"text": must(label), "value": must(str(1, 75)), "description": may(plain(75))}
	if withURL {
		fields["url"] = may(link(3000))
	}
	return object(fields)
}

// distinct refuses two options with one value: a click could not say which was meant.
func distinct(c *checker, at string, o map[string]any) {
	seen := map[any]bool{}
	for _, opt := range options(o) {
		if v := opt["value"]; v != nil && seen[v] {
			c.complain(at+"/options", "options must have unique values")
			return
		}
		seen[opt["value"]] = true
	}
}

// Rich text: https://docs.slack.dev/reference/block-kit/blocks/rich-text-block

func style(names ...string) prop {
	fields := shape{}
	for _, n := range names {
		fields[n] = may(boolean)
	}
	return may(object(fields))
}

var (
	textStyle    = style("bold", "italic", "strike", "code", "underline")
	mentionStyle = style("bold", "italic", "strike", "highlight", "client_highlight", "unlink")
)

var richElements = map[string]check{
	"text":      object(shape{"type": typeName, "text": must(words(1, messageBudget*4)), "style": textStyle}),
	"link":      object(shape{"type": typeName, "url": must(link(3000)), "text": may(words(1, 3000)), "unsafe": may(boolean), "style": textStyle}),
	"user":      object(shape{"type": typeName, "user_id": must(ident("UW")), "style": mentionStyle}),
	"usergroup": object(shape{"type": typeName, "usergroup_id": must(ident("S")), "style": mentionStyle}),
	"channel":   object(shape{"type": typeName, "channel_id": must(ident("CDG")), "style": mentionStyle}),
	"emoji":     object(shape{"type": typeName, "name": must(str(1, 255)), "unicode": may(str(1, 255)), "skin_tone": may(integer(1, 6)), "style": textStyle}),
	"broadcast": object(shape{"type": typeName, "range": must(oneOf("here", "channel", "everyone")), "style": mentionStyle}),
	"date": object(shape{
		"type": typeName, "timestamp": must(integer(0, 1<<40)), "format": must(str(1, 255)), "url": may(link(3000)), "fallback": may(words(1, 255)), "timezone": may(str(1, 64)), "style": textStyle,
	}),
}

var preformattedElements = map[string]check{"text": richElements["text"], "link": richElements["link"]}

var (
	border      = may(integer(0, 1))
	richSection = object(shape{"type": typeName, "elements": must(list(0, 10_000, choose(richElements)))})
	richBlocks  = map[string]check{
		"rich_text_section":      richSection,
		"rich_text_quote":        object(shape{"type": typeName, "elements": must(list(0, 10_000, choose(richElements))), "border": border}),
		"rich_text_preformatted": object(shape{"type": typeName, "elements": must(list(0, 10_000, choose(preformattedElements))), "border": border, "language": may(str(1, 64))}),
		"rich_text_list": object(shape{
			"type": typeName, "elements": must(list(1, 1000, choose(map[string]check{"rich_text_section": richSection}))), "style": must(oneOf("bullet", "ordered")),
			"indent": may(integer(0, 8)), "offset": may(integer(0, 10_000)), "border": border,
		}),
	}
)

// ident wants a Slack id that starts with one of the letters.
func ident(letters string) check {
	return func(c *checker, at string, v any) {
		s, _ := v.(string)
		if len(s) < 2 || len(s) > 64 || !strings.Contains(letters, s[:1]) {
			c.complain(at, "must be a valid ID")
		}
	}
}
