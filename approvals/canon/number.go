package canon

import (
	"encoding/json"
	"strconv"
)

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
	short := integer && len(literal) <= 15
	if err != nil || !short && !p.exact(literal, f) {
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

// exact says whether the literal's decimal value is that of f's shortest form,
// the one that RFC 8785 writes. "5.00" and "1e2" are; 9007199254740993 is not.
// literal must be a JSON number and f what strconv made of it.
func (p *parser) exact(literal string, f float64) bool {
	var sent, kept [maxDigits]byte
	got, gotExp, ok := decimal(sent[:0], literal)
	if !ok {
		return false
	}
	shortest := strconv.AppendFloat(p.float[:0], f, 'e', -1, 64)
	want, wantExp, ok := decimal(kept[:0], shortest)
	return ok && gotExp == wantExp && string(got) == string(want)
}

const (
	// maxDigits is the most significant digits that a shortest float64 form
	// has; a number with more is never equal to one.
	maxDigits = 17
	// maxExponent is far beyond float64's range, and far from overflow.
	maxExponent = 1 << 20
)

// decimal reduces a JSON number, its sign aside, to its significant digits
// without zeros at either end and the power of ten of the last of them, so that
// equal numbers give equal results. Zero has no digits and power 0. ok is false
// when no float64 could have that value.
func decimal[T string | []byte](digits []byte, literal T) (_ []byte, exp int, ok bool) {
	zeros, fraction, written := 0, 0, 0 // zeros: seen since the last digit written
	point := false
	for i := range len(literal) {
		c := literal[i]
		if c == '-' {
			continue
		}
		if c == '.' {
			point = true
			continue
		}
		if c == 'e' || c == 'E' {
			written = exponent(literal[i+1:])
			break
		}
		if point {
			fraction++
		}
		if c == '0' {
			if len(digits) > 0 {
				zeros++
			}
			continue
		}
		if len(digits)+zeros >= maxDigits {
			return nil, 0, false
		}
		for ; zeros > 0; zeros-- {
			digits = append(digits, '0')
		}
		digits = append(digits, c)
	}
	if len(digits) == 0 {
		return digits, 0, true
	}
	return digits, written - fraction + zeros, written < maxExponent && written > -maxExponent
}

// exponent reads the digits after an e, capped at ±maxExponent.
func exponent[T string | []byte](literal T) int {
	n, negative := 0, false
	for i := range len(literal) {
		switch c := literal[i]; c {
		case '-':
			negative = true
		case '+':
		default:
			n = min(n*10+int(c-'0'), maxExponent)
		}
	}
	if negative {
		return -n
	}
	return n
}
