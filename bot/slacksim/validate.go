package slacksim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Surface is where blocks are shown; not every block is allowed everywhere.
type Surface string

// The surfaces.
const (
	SurfaceMessage Surface = "message"
	SurfaceModal   Surface = "modal"
	SurfaceHome    Surface = "home"
)

// messageBudget is the undocumented total of a message's characters: posts were refused from about 11,300
// (slackapi/bolt-js#2867), well below the documented 12,000 of a markdown block.
const messageBudget = 11_300

// checker walks decoded JSON against the tables of blocks.go and elements and collects what Slack would complain about.
type checker struct {
	surface  Surface
	messages []string
	blockIDs map[string]bool
	actions  map[string]bool // within the block at hand
	chars    int             // of visible text
	markdown int             // of markdown blocks together
	inputs   int
	focused  int
}

// check judges one value at a JSON pointer.
type check func(c *checker, at string, v any)

type prop struct {
	check    check
	required bool
}

func must(c check) prop { return prop{check: c, required: true} }
func may(c check) prop  { return prop{check: c} }

// shape is an object's known fields; others are refused.
type shape map[string]prop

func (c *checker) complain(at, format string, values ...any) {
	c.messages = append(c.messages, fmt.Sprintf("[ERROR] %s [json-pointer:%s]", fmt.Sprintf(format, values...), at))
}

// object checks fields in sorted order, so that messages are stable; then the rules run.
func object(fields shape, rules ...func(c *checker, at string, o map[string]any)) check {
	names := slices.Sorted(maps.Keys(fields))
	return func(c *checker, at string, v any) {
		o, ok := v.(map[string]any)
		if !ok {
			c.complain(at, "must be an object")
			return
		}
		for _, name := range names {
			value, there := o[name]
			if !there {
				if fields[name].required {
					c.complain(at, "missing required field: %s", name)
				}
				continue
			}
			fields[name].check(c, at+"/"+name, value)
		}
		for _, name := range slices.Sorted(maps.Keys(o)) {
			if _, known := fields[name]; !known {
				c.complain(at, "invalid additional property: %s", name)
			}
		}
		for _, rule := range rules {
			rule(c, at, o)
		}
	}
}

// choose checks an object by its "type".
func choose(kinds map[string]check) check {
	return func(c *checker, at string, v any) {
		o, ok := v.(map[string]any)
		if !ok {
			c.complain(at, "must be an object")
			return
		}
		kind, ok := o["type"].(string)
		if !ok {
			c.complain(at, "missing required field: type")
			return
		}
		sub, known := kinds[kind]
		if !known {
			c.complain(at+"/type", "unsupported type: %s", kind)
			return
		}
		sub(c, at, v)
	}
}

// list checks an array's length and items.
func list(low, high int, item check) check {
	return func(c *checker, at string, v any) {
		items, ok := v.([]any)
		switch {
		case !ok:
			c.complain(at, "must be an array")
			return
		case len(items) < low:
			c.complain(at, "no less than %d items required", low)
		case len(items) > high:
			c.complain(at, "no more than %d items allowed", high)
		}
		for i, e := range items {
			item(c, at+"/"+strconv.Itoa(i), e)
		}
	}
}

// str checks a string's length in UTF-16 units.
func str(low, high int) check {
	return func(c *checker, at string, v any) {
		s, ok := v.(string)
		n := utf16Len(s)
		switch {
		case !ok:
			c.complain(at, "must be a string")
		case n < low:
			c.complain(at, "must be more than %d characters", low-1)
		case n > high:
			c.complain(at, "must be less than %d characters", high+1)
		}
	}
}

// words is str for text that a person reads: it counts towards a message's budget.
func words(low, high int) check {
	limit := str(low, high)
	return func(c *checker, at string, v any) {
		limit(c, at, v)
		if s, ok := v.(string); ok {
			c.chars += utf16Len(s)
		}
	}
}

func boolean(c *checker, at string, v any) {
	if _, ok := v.(bool); !ok {
		c.complain(at, "must be a boolean")
	}
}

func integer(low, high int64) check {
	return func(c *checker, at string, v any) {
		n, ok := v.(json.Number)
		i, err := n.Int64()
		switch {
		case !ok || err != nil:
			c.complain(at, "must be an integer")
		case i < low:
			c.complain(at, "must be at least %d", low)
		case i > high:
			c.complain(at, "must be at most %d", high)
		}
	}
}

func oneOf(allowed ...string) check {
	return func(c *checker, at string, v any) {
		s, ok := v.(string)
		if !ok || !slices.Contains(allowed, s) {
			c.complain(at, "must be a valid enum value")
		}
	}
}

func link(high int) check {
	length := str(1, high)
	return func(c *checker, at string, v any) {
		length(c, at, v)
		s, _ := v.(string)
		if !strings.HasPrefix(s, "https://") && !strings.HasPrefix(s, "http://") && !strings.HasPrefix(s, "mailto:") {
			c.complain(at, "must be a valid URL")
		}
	}
}

// parseStrict decodes exactly one JSON value, numbers as sent.
func parseStrict(raw []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("trailing data")
	}
	return v, nil
}

// checkMessage validates a message's blocks and returns them as Slack stores them. text is the length of the
// message's own text, which counts towards the budget.
func checkMessage(raw []byte, text int) ([]any, *failure) {
	v, err := parseStrict(raw)
	if err != nil {
		return nil, fail("invalid_blocks_format")
	}
	blocks, ok := v.([]any)
	if !ok {
		return nil, fail("invalid_blocks_format")
	}
	c := newChecker(SurfaceMessage)
	list(0, 50, c.block)(c, "/blocks", v)
	switch {
	case len(c.messages) > 0:
		return nil, fail("invalid_blocks", c.messages...)
	case c.chars+text > messageBudget:
		return nil, fail("msg_blocks_too_long")
	}
	return storeBlocks(blocks), nil
}

func newChecker(s Surface) *checker {
	return &checker{surface: s, blockIDs: map[string]bool{}}
}

// block checks one block: its kind, its place, and that its ids are its own.
func (c *checker) block(_ *checker, at string, v any) {
	o, _ := v.(map[string]any)
	kind, _ := o["type"].(string)
	c.actions = map[string]bool{}
	choose(blockKinds)(c, at, v)
	if where, limited := onlyOn[kind]; limited && !slices.Contains(where, c.surface) {
		c.complain(at+"/type", "unsupported type: %s", kind)
	}
	if id, ok := o["block_id"].(string); ok && id != "" {
		if c.blockIDs[id] {
			c.complain(at+"/block_id", "`block_id` %q already exists", id)
		}
		c.blockIDs[id] = true
	}
	if kind == "input" {
		c.inputs++
	}
}

// ValidateBlocks gives Slack's complaints about a JSON array of blocks, without posting anything; none is nil. A
// message over its character budget gives msg_blocks_too_long.
func ValidateBlocks(surface Surface, raw []byte) []string {
	if surface == SurfaceMessage {
		_, bad := checkMessage(raw, 0)
		return complaints(bad)
	}
	v, err := parseStrict(raw)
	if err != nil {
		return []string{"invalid_blocks_format"}
	}
	c := newChecker(surface)
	list(1, 100, c.block)(c, "/view/blocks", v)
	return c.messages
}

func complaints(bad *failure) []string {
	switch {
	case bad == nil:
		return nil
	case len(bad.messages) > 0:
		return bad.messages
	}
	return []string{bad.code}
}

// utf16Len is a text's length as JavaScript counts it.
func utf16Len(s string) int {
	n := 0
	for _, r := range s {
		n++
		if r > 0xFFFF {
			n++
		}
	}
	return n
}

// cut shortens to at most n UTF-16 units, at a rune.
func cut(s string, n int) string {
	units := 0
	for i, r := range s {
		units++
		if r > 0xFFFF {
			units++
		}
		if units > n {
			return s[:i]
		}
	}
	return s
}
