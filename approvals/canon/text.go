package canon

import (
	"strings"
	"unicode/utf8"
)

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
