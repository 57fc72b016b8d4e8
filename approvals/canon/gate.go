package canon

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// parse decodes one JSON value (RFC 8259) and reports the first trap it meets;
// reason is "" when there is none. With numbers, a number becomes a
// json.Number, else a float64.
func parse(text string, numbers bool) (value any, reason string) {
	if !utf8.ValidString(text) {
		return nil, ReasonInvalidUTF8
	}
	p := parser{text: text, numbers: numbers}
	p.space()
	value = p.value(0)
	p.space()
	if p.reason == "" && p.pos != len(text) {
		p.reason = ReasonTrailingData
	}
	if p.reason != "" {
		return nil, p.reason
	}
	return value, ""
}

// parseObject is parse for arguments: they are an object.
func parseObject(text string, numbers bool) (object map[string]any, reason string) {
	value, reason := parse(text, numbers)
	if reason != "" {
		return nil, reason
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, ReasonNotObject
	}
	return object, ""
}

// parser walks the text once. Keys and strings without escapes are substrings
// of it, so that a large document costs few allocations.
type parser struct {
	text    string
	pos     int
	numbers bool
	reason  string
	keys    []string // those of the objects being read, innermost last
	scratch []byte
	float   [32]byte
}

func (p *parser) fail(reason string) {
	if p.reason == "" {
		p.reason = reason
	}
}

func (p *parser) space() {
	for p.pos < len(p.text) {
		switch p.text[p.pos] {
		case ' ', '\t', '\r', '\n':
			p.pos++
		default:
			return
		}
	}
}

// take consumes c, when it is next.
func (p *parser) take(c byte) bool {
	if p.pos < len(p.text) && p.text[p.pos] == c {
		p.pos++
		return true
	}
	return false
}

// value reads one value; depth is the number of containers around it.
func (p *parser) value(depth int) any {
	if p.pos >= len(p.text) {
		p.fail(ReasonNotJSON)
		return nil
	}
	switch c := p.text[p.pos]; {
	case c == '{' || c == '[':
		if depth >= MaxDepth {
			p.fail(ReasonTooDeep)
			return nil
		}
		p.pos++
		if c == '{' {
			return p.object(depth + 1)
		}
		return p.array(depth + 1)
	case c == '"':
		return p.string()
	case c == '-' || isDigit(c):
		return p.number()
	case strings.HasPrefix(p.text[p.pos:], "true"):
		p.pos += 4
		return true
	case strings.HasPrefix(p.text[p.pos:], "false"):
		p.pos += 5
		return false
	case strings.HasPrefix(p.text[p.pos:], "null"):
		p.pos += 4
		return nil
	}
	p.fail(ReasonNotJSON)
	return nil
}

func (p *parser) array(depth int) any {
	out := []any{}
	p.space()
	if p.take(']') {
		return out
	}
	for {
		p.space()
		v := p.value(depth)
		if p.reason != "" {
			return nil
		}
		out = append(out, v)
		p.space()
		if p.take(']') {
			return out
		}
		if !p.take(',') {
			p.fail(ReasonNotJSON)
			return nil
		}
	}
}

func (p *parser) object(depth int) any {
	out := map[string]any{}
	first := len(p.keys)
	var folded map[string]struct{}
	defer func() { p.keys = p.keys[:first] }()
	p.space()
	if p.take('}') {
		return out
	}
	for {
		p.space()
		if p.pos >= len(p.text) || p.text[p.pos] != '"' {
			p.fail(ReasonNotJSON)
			return nil
		}
		key := p.string()
		if p.reason != "" {
			return nil
		}
		if _, twice := out[key]; twice {
			p.fail(ReasonDuplicateKey)
			return nil
		}
		if folded = p.unique(key, first, folded); p.reason != "" {
			return nil
		}
		p.space()
		if !p.take(':') {
			p.fail(ReasonNotJSON)
			return nil
		}
		p.space()
		v := p.value(depth)
		if p.reason != "" {
			return nil
		}
		out[key] = v
		p.space()
		if p.take('}') {
			return out
		}
		if !p.take(',') {
			p.fail(ReasonNotJSON)
			return nil
		}
	}
}

// wideObject is from how many keys on an object's keys are compared through a
// map instead of pairwise.
const wideObject = 12

// unique notes key and fails when another key of the same object, from
// p.keys[first] on, is equal to it under simple case folding: the equality
// that encoding/json matches struct fields with.
func (p *parser) unique(key string, first int, folded map[string]struct{}) map[string]struct{} {
	siblings := p.keys[first:]
	p.keys = append(p.keys, key)
	if len(siblings) < wideObject {
		for _, other := range siblings {
			if strings.EqualFold(other, key) {
				p.fail(ReasonCaseKeys)
				return nil
			}
		}
		return nil
	}
	if folded == nil {
		folded = make(map[string]struct{}, 4*wideObject)
		for _, other := range siblings {
			folded[foldKey(other)] = struct{}{}
		}
	}
	form := foldKey(key)
	if _, twice := folded[form]; twice {
		p.fail(ReasonCaseKeys)
		return nil
	}
	folded[form] = struct{}{}
	return folded
}

// foldKey gives one form to all keys that are equal under simple case folding,
// as strings.EqualFold and encoding/json see it: each rune becomes the smallest
// of its folding orbit (k, K and the Kelvin sign become K).
func foldKey(key string) string {
	out := make([]byte, 0, len(key))
	for _, r := range key {
		for {
			next := unicode.SimpleFold(r)
			if next <= r { // the orbit has wrapped around to its smallest
				r = next
				break
			}
			r = next
		}
		out = utf8.AppendRune(out, r)
	}
	return string(out)
}
