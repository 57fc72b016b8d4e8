package secret

import (
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
)

// placeholder is all that a secret ever prints as.
const placeholder = "[secret]"

// Bytes is a secret that prints as [secret] with every fmt verb, as JSON and in
// slog. It holds a pointer to a pointer, so that even fmt on an unexported field
// of another struct, where it can't call methods, shows an address only (one
// pointer isn't enough: %s of a struct follows it to a slice). The zero Bytes is
// empty.
type Bytes struct{ p **[]byte }

// NewBytes wraps b without copying it.
func NewBytes(b []byte) Bytes {
	p := &b
	return Bytes{&p}
}

// Reveal gives the secret itself; nil for the zero Bytes.
func (b Bytes) Reveal() []byte {
	if b.p == nil {
		return nil
	}
	return **b.p
}

// Len is the secret's length in bytes.
func (b Bytes) Len() int { return len(b.Reveal()) }

// Equal compares in constant time for secrets of equal length.
func (b Bytes) Equal(other Bytes) bool {
	return subtle.ConstantTimeCompare(b.Reveal(), other.Reveal()) == 1
}

// Clear overwrites the secret with zeros, also where NewBytes got it from.
func (b Bytes) Clear() { clear(b.Reveal()) }

// String gives "[secret]", as do all methods below.
func (Bytes) String() string { return placeholder }

// GoString implements fmt.GoStringer.
func (Bytes) GoString() string { return placeholder }

// Format implements fmt.Formatter.
func (Bytes) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, placeholder) }

// LogValue implements slog.LogValuer.
func (Bytes) LogValue() slog.Value { return slog.StringValue(placeholder) }

// MarshalJSON implements json.Marshaler.
func (Bytes) MarshalJSON() ([]byte, error) { return json.Marshal(placeholder) }

// MarshalText implements encoding.TextMarshaler.
func (Bytes) MarshalText() ([]byte, error) { return []byte(placeholder), nil }

// Text is [Bytes] for a string.
type Text struct{ p *string }

// NewText wraps s.
func NewText(s string) Text { return Text{&s} }

// Reveal gives the secret itself; "" for the zero Text.
func (t Text) Reveal() string {
	if t.p == nil {
		return ""
	}
	return *t.p
}

// Len is the secret's length in bytes.
func (t Text) Len() int { return len(t.Reveal()) }

// Equal compares in constant time for secrets of equal length.
func (t Text) Equal(other Text) bool {
	return subtle.ConstantTimeCompare([]byte(t.Reveal()), []byte(other.Reveal())) == 1
}

// String gives "[secret]", as do all methods below.
func (Text) String() string { return placeholder }

// GoString implements fmt.GoStringer.
func (Text) GoString() string { return placeholder }

// Format implements fmt.Formatter.
func (Text) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, placeholder) }

// LogValue implements slog.LogValuer.
func (Text) LogValue() slog.Value { return slog.StringValue(placeholder) }

// MarshalJSON implements json.Marshaler.
func (Text) MarshalJSON() ([]byte, error) { return json.Marshal(placeholder) }

// MarshalText implements encoding.TextMarshaler.
func (Text) MarshalText() ([]byte, error) { return []byte(placeholder), nil }
