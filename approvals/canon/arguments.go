package canon

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"

	"github.com/gowebpki/jcs"
)

// Digest prefixes. The prefix says what was hashed, so that a raw digest can
// never be taken for one over the canonical form.
const (
	// DigestJCS is followed by the hex SHA-256 of the RFC 8785 form.
	DigestJCS = "sha256-jcs-v1:"
	// DigestRaw is followed by the hex SHA-256 of the bytes as they came.
	DigestRaw = "sha256-raw-v1:"
)

// MaxDepth is how deep objects and arrays may nest; the outermost object is
// at depth 1.
const MaxDepth = 64

// Why arguments are unreadable. They name the trap and never quote the input.
const (
	ReasonNotJSON       = "not JSON"
	ReasonNotObject     = "not an object"
	ReasonDuplicateKey  = "duplicate key"
	ReasonCaseKeys      = "keys that differ only in case"
	ReasonInvalidUTF8   = "invalid UTF-8"
	ReasonLoneSurrogate = "lone surrogate"
	ReasonTrailingData  = "trailing data"
	ReasonNumber        = "a number that a float64 would change"
	ReasonTooDeep       = "nested too deep"
)

// Arguments are a tool call's arguments after the gate. The slices and the map
// are shared, not copied: treat them as read-only.
type Arguments struct {
	// Raw is the accepted text byte for byte, also when it is unreadable.
	// These are the bytes that are executed.
	Raw []byte
	// Canonical is the RFC 8785 form; nil when unreadable.
	Canonical []byte
	// Value is the decoded object with float64 numbers, as CEL and JSON Schema
	// want it; nil when unreadable. For showing, see [Numbers].
	Value map[string]any
	// Digest is DigestJCS or, when unreadable, DigestRaw, and 64 hex digits.
	Digest string
	// Unreadable is "" or one of the Reason constants.
	Unreadable string
}

// Read passes raw through the gate. It never fails: unreadable arguments carry
// a reason. raw is copied.
func Read(raw []byte) Arguments {
	a := Arguments{Raw: bytes.Clone(raw)}
	if a.Raw == nil {
		a.Raw = []byte{}
	}
	value, reason := parseObject(string(a.Raw), false)
	if reason == "" {
		// The gate has refused everything that the transformer could trip
		// over; should it still do so, the call is unreadable, not lost.
		canonical, err := jcs.Transform(a.Raw)
		if err == nil {
			a.Canonical, a.Value = canonical, value
			a.Digest = digest(DigestJCS, canonical)
			return a
		}
		reason = ReasonNotJSON
	}
	a.Unreadable = reason
	a.Digest = digest(DigestRaw, a.Raw)
	return a
}

// Readable says whether the arguments passed the gate. The zero Arguments did
// not.
func (a Arguments) Readable() bool { return a.Unreadable == "" && a.Canonical != nil }

// Numbers decodes raw like [Read] does, with every number a json.Number that
// keeps its text exactly as sent ("5.00" stays "5.00"), for showing. The error
// is an [UnreadableError].
func Numbers(raw []byte) (map[string]any, error) {
	value, reason := parseObject(string(raw), true)
	if reason != "" {
		return nil, &UnreadableError{Reason: reason}
	}
	return value, nil
}

// Marshal gives the RFC 8785 form of a Go value, for digests over things other
// than arguments (a snapshot, a tool's configuration). A value whose JSON form
// would not pass the gate is refused with an [UnreadableError]; it may be any
// JSON value, not only an object.
func Marshal(v any) ([]byte, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		// encoding/json quotes the offending value in some errors.
		return nil, fmt.Errorf("canon: %T has no JSON form", v)
	}
	if _, reason := parse(string(raw), false); reason != "" {
		return nil, &UnreadableError{Reason: reason}
	}
	out, err := jcs.Transform(raw)
	if err != nil {
		return nil, &UnreadableError{Reason: ReasonNotJSON}
	}
	return out, nil
}

// UnreadableError says why text was refused by the gate; it never quotes it.
type UnreadableError struct{ Reason string }

func (e *UnreadableError) Error() string { return "canon: unreadable JSON: " + e.Reason }

func digest(prefix string, b []byte) string {
	sum := sha256.Sum256(b)
	out := make([]byte, 0, len(prefix)+2*len(sum))
	out = append(out, prefix...)
	return string(hex.AppendEncode(out, sum[:]))
}

// String, GoString, Format, LogValue and MarshalJSON keep arguments out of
// logs, errors and messages: they give "[arguments sha256-…]" and nothing else.
func (a Arguments) String() string {
	if a.Digest == "" {
		return "[arguments none]"
	}
	return "[arguments " + a.Digest + "]"
}

// GoString implements fmt.GoStringer; see [Arguments.String].
func (a Arguments) GoString() string { return a.String() }

// Format implements fmt.Formatter for every verb; see [Arguments.String].
func (a Arguments) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, a.String()) }

// LogValue implements slog.LogValuer; see [Arguments.String].
func (a Arguments) LogValue() slog.Value { return slog.StringValue(a.String()) }

// MarshalJSON implements json.Marshaler; see [Arguments.String].
func (a Arguments) MarshalJSON() ([]byte, error) { return json.Marshal(a.String()) }

// MarshalText implements encoding.TextMarshaler, for encoders other than JSON;
// see [Arguments.String].
func (a Arguments) MarshalText() ([]byte, error) { return []byte(a.String()), nil }
