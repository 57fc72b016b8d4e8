package templates

import (
	"fmt"
	"net/url"
)

// element checks an interactive element.
func (c *checker) element(at string, e object) {
	c.limit(at+"/action_id", text(e, "action_id"), maxID)
	switch text(e, "type") {
	case "button":
		c.plainText(at+"/text", child(e, "text"), maxButton)
		c.limit(at+"/value", text(e, "value"), maxValue)
		c.limit(at+"/url", text(e, "url"), maxURL)
		c.limit(at+"/accessibility_label", text(e, "accessibility_label"), maxButton)
		switch text(e, "style") {
		case "", "primary", "danger":
		default:
			c.fail(at+"/style", "is unknown")
		}
	case "overflow":
		c.options(at, list(e, "options"), maxOverflow)
	case "static_select", "radio_buttons", "checkboxes":
		most := maxOptions
		if text(e, "type") != "static_select" {
			most = 10
		}
		c.options(at, list(e, "options"), most)
	case "plain_text_input":
		c.limit(at+"/initial_value", text(e, "initial_value"), maxInput)
		if n, ok := e["max_length"].(float64); ok && (n < 1 || n > maxInput) {
			c.fail(at+"/max_length", "is out of range")
		}
	default:
		c.fail(at, "has a type that cards don't use")
	}
	if p := child(e, "placeholder"); p != nil {
		c.plainText(at+"/placeholder", p, maxPlaceholder)
	}
	if d := child(e, "confirm"); d != nil {
		c.plainText(at+"/confirm/title", child(d, "title"), 100)
		c.textObject(at+"/confirm/text", child(d, "text"), 300)
		c.plainText(at+"/confirm/confirm", child(d, "confirm"), 30)
		c.plainText(at+"/confirm/deny", child(d, "deny"), 30)
	}
}

func (c *checker) options(at string, options []object, most int) {
	c.between(at+"/options", len(options), 1, most)
	for i, o := range options {
		where := fmt.Sprintf("%s/options/%d", at, i)
		c.textObject(where+"/text", child(o, "text"), maxOption)
		c.limit(where+"/value", text(o, "value"), maxOption)
		if text(o, "value") == "" {
			c.fail(where+"/value", "is empty")
		}
	}
}

func (c *checker) richText(at string, b object) {
	elements := list(b, "elements")
	if len(elements) == 0 {
		c.fail(at, "is empty")
	}
	for i, e := range elements {
		where := fmt.Sprintf("%s/elements/%d", at, i)
		inner := list(e, "elements")
		if len(inner) == 0 {
			c.fail(where, "is empty")
		}
		switch kind := text(e, "type"); kind {
		case "rich_text_section", "rich_text_quote", "rich_text_preformatted":
			for j, t := range inner {
				c.richElement(fmt.Sprintf("%s/elements/%d", where, j), t, kind == "rich_text_preformatted")
			}
		default:
			c.fail(where, "has a type that cards don't use")
		}
	}
}

func (c *checker) richElement(at string, e object, pre bool) {
	switch kind := text(e, "type"); kind {
	case "text":
		if text(e, "text") == "" {
			c.fail(at, "is empty")
		}
		return
	case "link":
		u, err := url.Parse(text(e, "url"))
		if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") {
			c.fail(at+"/url", "is not an http(s) address")
		}
		c.limit(at+"/url", text(e, "url"), maxURL)
		return
	case "user":
		if !userID.MatchString(text(e, "user_id")) {
			c.fail(at, "names no user")
		}
	case "usergroup":
		if !groupID.MatchString(text(e, "usergroup_id")) {
			c.fail(at, "names no group")
		}
	case "date":
		if n, ok := e["timestamp"].(float64); !ok || n <= 0 || text(e, "format") == "" || text(e, "fallback") == "" {
			c.fail(at, "is not a date with a format and a fallback")
		}
	default:
		c.fail(at, "has a type that cards don't use")
	}
	if pre {
		c.fail(at, "may not stand in preformatted text")
	}
}
