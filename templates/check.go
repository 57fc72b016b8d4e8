package templates

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/slack-go/slack"
)

// ErrBlocks is wrapped by everything that [Check] and [CheckView] find. The text names the place and the limit,
// never a value.
var ErrBlocks = errors.New("slack would refuse the blocks")

// Slack's limits in characters and counts, from the Block Kit reference (docs.slack.dev/reference/block-kit).
const (
	maxBlocks      = 50
	maxViewBlocks  = 100
	maxView        = 250_000
	maxText        = 3_000
	maxHeader      = 150
	maxFields      = 10
	maxField       = 2_000
	maxContext     = 10
	maxActions     = 25
	maxID          = 255
	maxButton      = 75
	maxValue       = 2_000
	maxURL         = 3_000
	maxTitle       = 24
	maxMetadata    = 3_000
	maxOptions     = 100
	maxOverflow    = 5
	maxOption      = 75
	maxLabel       = 2_000
	maxInput       = 3_000
	maxPlaceholder = 150
)

// Check validates the blocks of a message against Slack's limits before they are sent, since Slack refuses the whole
// message for one bad block. No blocks at all is fine.
func Check(blocks []slack.Block) error {
	c := &checker{}
	c.blocks(blocks, maxBlocks, MaxCard, false)
	return c.err()
}

// CheckView validates a modal.
func CheckView(v slack.ModalViewRequest) error {
	c := &checker{}
	c.limit("callback_id", v.CallbackID, maxID)
	c.limit("private_metadata", v.PrivateMetadata, maxMetadata)
	c.plainText("title", toObject(v.Title), maxTitle)
	inputs := slices.ContainsFunc(v.Blocks.BlockSet, func(b slack.Block) bool { return b.BlockType() == slack.MBTInput })
	if v.Submit != nil {
		c.plainText("submit", toObject(v.Submit), maxTitle)
	} else if inputs {
		c.fail("submit", "is required with inputs")
	}
	if v.Close != nil {
		c.plainText("close", toObject(v.Close), maxTitle)
	}
	if len(v.Blocks.BlockSet) == 0 {
		c.fail("blocks", "must not be empty")
	}
	c.blocks(v.Blocks.BlockSet, maxViewBlocks, maxView, true)
	return c.err()
}

// CheckHome validates a home tab.
func CheckHome(v slack.HomeTabViewRequest) error {
	c := &checker{}
	c.limit("private_metadata", v.PrivateMetadata, maxMetadata)
	c.blocks(v.Blocks.BlockSet, maxViewBlocks, maxView, true)
	return c.err()
}

// checker walks the JSON that will be sent, not the Go values: what counts is what Slack gets.
type checker struct {
	problems []error
	seen     map[string]bool // block ids
}

type object = map[string]any

func (c *checker) err() error { return errors.Join(c.problems...) }

func (c *checker) fail(at, problem string) {
	c.problems = append(c.problems, fmt.Errorf("%w: %s %s", ErrBlocks, at, problem))
}

func (c *checker) limit(at, s string, most int) {
	if n := length(s); n > most {
		c.fail(at, fmt.Sprintf("has %d characters of %d", n, most))
	}
}

func (c *checker) blocks(blocks []slack.Block, most, total int, view bool) {
	if len(blocks) > most {
		c.fail("blocks", fmt.Sprintf("are %d of %d", len(blocks), most))
	}
	raw, err := json.Marshal(blocks)
	if err != nil {
		c.fail("blocks", "can't be encoded")
		return
	}
	n := length(string(raw))
	if view { // 250 KB: bytes
		n = len(raw)
	}
	if n > total {
		c.fail("blocks", fmt.Sprintf("have %d characters of %d", n, total))
	}
	var all []object
	if err := json.Unmarshal(raw, &all); err != nil {
		c.fail("blocks", "are not objects")
		return
	}
	c.seen = map[string]bool{}
	for i, b := range all {
		c.block(fmt.Sprintf("blocks/%d", i), b, view)
	}
}

func (c *checker) block(at string, b object, view bool) {
	if id := text(b, "block_id"); id != "" {
		c.limit(at+"/block_id", id, maxID)
		if c.seen[id] {
			c.fail(at+"/block_id", "is used twice")
		}
		c.seen[id] = true
	}
	switch text(b, "type") {
	case "header":
		c.plainText(at+"/text", child(b, "text"), maxHeader)
	case "section":
		c.section(at, b)
	case "rich_text":
		c.richText(at, b)
	case "context":
		elements := list(b, "elements")
		c.between(at+"/elements", len(elements), 1, maxContext)
		for i, e := range elements {
			c.textObject(fmt.Sprintf("%s/elements/%d", at, i), e, maxText)
		}
	case "actions":
		elements := list(b, "elements")
		c.between(at+"/elements", len(elements), 1, maxActions)
		ids := map[string]bool{}
		for i, e := range elements {
			where := fmt.Sprintf("%s/elements/%d", at, i)
			c.element(where, e)
			if id := text(e, "action_id"); ids[id] {
				c.fail(where+"/action_id", "is used twice")
			} else {
				ids[id] = true
			}
		}
	case "input":
		if !view {
			c.fail(at, "is an input outside of a view")
		}
		c.plainText(at+"/label", child(b, "label"), maxLabel)
		if h := child(b, "hint"); h != nil {
			c.plainText(at+"/hint", h, maxLabel)
		}
		c.element(at+"/element", child(b, "element"))
	case "divider":
	default:
		c.fail(at, "has a type that cards don't use")
	}
}

func (c *checker) section(at string, b object) {
	fields := list(b, "fields")
	if t := child(b, "text"); t != nil {
		c.textObject(at+"/text", t, maxText)
	} else if len(fields) == 0 {
		c.fail(at, "has neither text nor fields")
	}
	if len(fields) > maxFields {
		c.fail(at+"/fields", "are too many")
	}
	for i, f := range fields {
		c.textObject(fmt.Sprintf("%s/fields/%d", at, i), f, maxField)
	}
	if a := child(b, "accessory"); a != nil {
		c.element(at+"/accessory", a)
	}
}

func (c *checker) between(at string, n, least, most int) {
	if n < least || n > most {
		c.fail(at, fmt.Sprintf("are %d, not %d to %d", n, least, most))
	}
}

func (c *checker) textObject(at string, t object, most int) {
	switch text(t, "type") {
	case "plain_text", "mrkdwn":
	default:
		c.fail(at, "is not a text object")
		return
	}
	if text(t, "text") == "" {
		c.fail(at, "is empty")
	}
	c.limit(at, text(t, "text"), most)
}

func (c *checker) plainText(at string, t object, most int) {
	if text(t, "type") != "plain_text" {
		c.fail(at, "is not plain_text")
		return
	}
	c.textObject(at, t, most)
}

// size counts the characters of the JSON that slack-go sends.
func size(blocks []slack.Block) int {
	raw, err := json.Marshal(blocks)
	if err != nil {
		return maxView + 1
	}
	return length(string(raw))
}

func jsonLength(s string) int {
	raw, err := json.Marshal(s)
	if err != nil {
		return maxView + 1
	}
	return length(string(raw)) - 2
}

func toObject(t *slack.TextBlockObject) object {
	if t == nil {
		return nil
	}
	return object{"type": t.Type, "text": t.Text}
}

func text(o object, key string) string {
	s, _ := o[key].(string)
	return s
}

func child(o object, key string) object {
	m, _ := o[key].(object)
	return m
}

func list(o object, key string) []object {
	all, _ := o[key].([]any)
	out := make([]object, 0, len(all))
	for _, e := range all {
		m, _ := e.(object)
		out = append(out, m)
	}
	return out
}
