package canon

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// parse decodes one JSON value (RFC 8259) and reports the first trap it meets;
// reason is "" when there is none. With numbers, a number becomes a
// json.Number, else a float64. With object, only an object will do.
func parse(text string, numbers, object bool) (value any, reason string) {
	if !utf8.ValidString(text) {
		return nil, ReasonInvalidUTF8
	}
	p := parser{text: text, numbers: numbers}
	p.space()
	isObject := p.pos < len(text) && text[p.pos] == '{'
	value = p.value(0)
	if p.reason == "" {
		p.space()
		switch {
		case p.pos != len(text):
			p.reason = ReasonTrailingData
		case object && !isObject:
			p.reason = ReasonNotObject
		}
	}
	if p.reason != "" {
		return nil, p.reason
	}
	return value, ""
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

// string reads a string whose opening quote is next.
func (p *parser) string() string {
	p.pos++
	start := p.pos
	for p.pos < len(p.text) {
		switch c := p.text[p.pos]; {
		case c == '"':
			s := p.text[start:p.pos]
			p.pos++
			return s
		case c == '\\':
			return p.escaped(start)
		case c < 0x20:
			p.fail(ReasonNotJSON)
			return ""
		default:
			p.pos++
		}
	}
	p.fail(ReasonNotJSON)
	return ""
}

// escaped reads on from the first backslash of a string that began at start.
func (p *parser) escaped(start int) string {
	out := append(p.scratch[:0], p.text[start:p.pos]...)
	defer func() { p.scratch = out[:0] }()
	for p.pos < len(p.text) {
		c := p.text[p.pos]
		p.pos++
		switch {
		case c == '"':
			return string(out)
		case c < 0x20:
			p.fail(ReasonNotJSON)
			return ""
		case c != '\\':
			out = append(out, c)
			continue
		}
		if p.pos >= len(p.text) {
			break
		}
		c = p.text[p.pos]
		p.pos++
		switch c {
		case '"', '\\', '/':
			out = append(out, c)
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r := p.codePoint()
			if p.reason != "" {
				return ""
			}
			out = utf8.AppendRune(out, r)
		default:
			p.fail(ReasonNotJSON)
			return ""
		}
	}
	p.fail(ReasonNotJSON)
	return ""
}

// codePoint reads what follows \u: four hex digits, and the low half when they
// are a high surrogate.
func (p *parser) codePoint() rune {
	unit, ok := p.hex4()
	if !ok {
		p.fail(ReasonNotJSON)
		return 0
	}
	if unit < 0xD800 || unit > 0xDFFF {
		return unit
	}
	if unit > 0xDBFF || !strings.HasPrefix(p.text[p.pos:], `\u`) {
		p.fail(ReasonLoneSurrogate)
		return 0
	}
	p.pos += 2
	low, ok := p.hex4()
	switch {
	case !ok:
		p.fail(ReasonNotJSON)
		return 0
	case low < 0xDC00 || low > 0xDFFF:
		p.fail(ReasonLoneSurrogate)
		return 0
	}
	return (unit-0xD800)<<10 | (low - 0xDC00) + 0x10000
}

func (p *parser) hex4() (rune, bool) {
	if len(p.text)-p.pos < 4 {
		return 0, false
	}
	var r rune
	for _, c := range []byte(p.text[p.pos : p.pos+4]) {
		switch {
		case isDigit(c):
			r = r<<4 | rune(c-'0')
		case 'a' <= c && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case 'A' <= c && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	p.pos += 4
	return r, true
}

// number reads a number whose first byte is next.
func (p *parser) number() any {
	start := p.pos
	p.take('-')
	switch {
	case p.take('0'):
	case p.digits() == 0:
		p.fail(ReasonNotJSON)
		return nil
	}
	integer := true
	if p.take('.') {
		integer = false
		if p.digits() == 0 {
			p.fail(ReasonNotJSON)
			return nil
		}
	}
	if p.take('e') || p.take('E') {
		integer = false
		if !p.take('+') {
			p.take('-')
		}
		if p.digits() == 0 {
			p.fail(ReasonNotJSON)
			return nil
		}
	}
	literal := p.text[start:p.pos]
	f, err := strconv.ParseFloat(literal, 64)
	// Integers of up to 15 digits are exact; the rest is compared digit by digit.
	if err != nil || !(integer && len(literal) <= 15) && !p.exact(literal, f) {
		p.fail(ReasonNumber)
		return nil
	}
	if p.numbers {
		return json.Number(literal)
	}
	return f
}

func (p *parser) digits() int {
	start := p.pos
	for p.pos < len(p.text) && isDigit(p.text[p.pos]) {
		p.pos++
	}
	return p.pos - start
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
