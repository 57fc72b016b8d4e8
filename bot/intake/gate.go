package intake

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/holdpoint/holdpoint/approvals/canon"
	"github.com/holdpoint/holdpoint/approvals/secret"
)

// maxDepth is how deep a state, arguments or a result may nest. The SDKs' states stay under 40.
const maxDepth = 256

// verbatim marks the types whose JSON is kept byte for byte: the gate checks that it is JSON, and how deep, and nothing else.
type verbatim interface{ verbatim() }

var verbatimType = reflect.TypeFor[verbatim]()

// gate walks a body against the Go type that it is for, before anything is decoded. Decoders forgive what two readers would read
// differently; the gate refuses it: duplicate names, unknown names, names in another letter case, trailing data, ill-formed Unicode.
//
// Its complaints are made of places, never of values. A place consists of names and of indexes; a name that the client made up is
// repeated only when it can be nothing but a name, because a misplaced secret must not come back in an error.
type gate struct {
	dec    *jsontext.Decoder
	tokens []string
}

// check reads one JSON object for the struct type t and says what is wrong with it; nil is fine.
func check(body []byte, t reflect.Type) *Problem {
	g := gate{dec: jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowDuplicateNames(true))}
	if len(bytes.TrimSpace(body)) == 0 {
		return invalid("", "The body is empty; send a JSON object.")
	}
	if g.dec.PeekKind() == 'n' {
		return invalid("", "The body must be a JSON object.")
	}
	if p := g.value(t); p != nil {
		return p
	}
	if _, err := g.dec.ReadToken(); !errors.Is(err, io.EOF) {
		return invalid("", "Something follows the JSON object, at byte %d; send one object and nothing else.", g.dec.InputOffset())
	}
	return nil
}

func (g *gate) here() string { return canon.Pointer(g.tokens...) }

func (g *gate) enter(token string) { g.tokens = append(g.tokens, token) }
func (g *gate) leave()             { g.tokens = g.tokens[:len(g.tokens)-1] }

// broken turns a syntax error into a complaint: where it is, never what is there.
func (g *gate) broken(err error) *Problem {
	var syntax *jsontext.SyntacticError
	if !errors.As(err, &syntax) {
		return invalid(g.here(), "The body ends in the middle of the JSON.")
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return invalid(g.here(), "The JSON ends too early, at byte %d.", syntax.ByteOffset)
	}
	return invalid(g.here(), "This is not JSON as RFC 8259 has it, or not well-formed Unicode, or nested without end, at byte %d.", syntax.ByteOffset)
}

// value reads one value of type t. null is let through: it is an absent value, and whether it may be absent is for the limits to say.
func (g *gate) value(t reflect.Type) *Problem {
	kind := g.dec.PeekKind()
	if t.Implements(verbatimType) {
		return g.verbatim(t, kind)
	}
	if kind == 'n' {
		return g.skip()
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Struct:
		if kind != '{' {
			return g.wrong(kind, "a JSON object")
		}
		return g.object(t)
	case reflect.Slice:
		if kind != '[' {
			return g.wrong(kind, "an array")
		}
		return g.array(t.Elem())
	case reflect.String:
		if kind != '"' {
			return g.wrong(kind, "a string")
		}
	case reflect.Bool:
		if kind != 't' && kind != 'f' {
			return g.wrong(kind, "true or false")
		}
	case reflect.Int, reflect.Int64:
		return g.integer(kind)
	default:
		panic(fmt.Sprintf("intake: no way to read a %s", t))
	}
	return g.skip()
}

func (g *gate) skip() *Problem {
	if err := g.dec.SkipValue(); err != nil {
		return g.broken(err)
	}
	return nil
}

// wrong complains about a kind, or about the syntax where there is no kind at all.
func (g *gate) wrong(kind jsontext.Kind, want string) *Problem {
	switch kind {
	case '{', '[', '"', '0', 't', 'f', 'n':
		return invalid(g.here(), "This must be %s.", want)
	}
	if p := g.skip(); p != nil {
		return p
	}
	return invalid(g.here(), "This must be %s.", want)
}

func (g *gate) integer(kind jsontext.Kind) *Problem {
	if kind != '0' {
		return g.wrong(kind, "a whole number")
	}
	raw, err := g.dec.ReadValue()
	if err != nil {
		return g.broken(err)
	}
	if _, err := strconv.ParseInt(string(raw), 10, 64); err != nil {
		return invalid(g.here(), "This must be a whole number, written without a fraction or an exponent.")
	}
	return nil
}

func (g *gate) verbatim(t reflect.Type, kind jsontext.Kind) *Problem {
	if t == reflect.TypeFor[argumentsText]() && kind != '"' && kind != '{' && kind != 'n' {
		return g.wrong(kind, "the arguments' JSON text as a string, or a JSON object")
	}
	raw, err := g.dec.ReadValue()
	if err != nil {
		return g.broken(err)
	}
	if depth(raw) > maxDepth {
		return invalid(g.here(), "This nests deeper than %d levels.", maxDepth)
	}
	return nil
}

// depth counts the levels of a valid JSON value.
func depth(raw []byte) (deepest int) {
	level, inString := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			level++
			deepest = max(deepest, level)
		case c == '}' || c == ']':
			level--
		}
	}
	return deepest
}

// maxElements bounds an array before its own limit is looked at, so that a body of commas costs nothing.
const maxElements = 1024

func (g *gate) array(elem reflect.Type) *Problem {
	if _, err := g.dec.ReadToken(); err != nil {
		return g.broken(err)
	}
	for i := 0; g.dec.PeekKind() != ']'; i++ {
		if i == maxElements {
			return invalid(g.here(), "This has more than %d entries.", maxElements)
		}
		g.enter(strconv.Itoa(i))
		if p := g.value(elem); p != nil {
			return p
		}
		g.leave()
	}
	if _, err := g.dec.ReadToken(); err != nil {
		return g.broken(err)
	}
	return nil
}

func (g *gate) object(t reflect.Type) *Problem {
	if _, err := g.dec.ReadToken(); err != nil {
		return g.broken(err)
	}
	known := members(t)
	seen := make([]bool, len(known))
	for nth := 1; g.dec.PeekKind() != '}'; nth++ {
		token, err := g.dec.ReadToken()
		if err != nil {
			return g.broken(err)
		}
		if token.Kind() != '"' {
			return invalid(g.here(), "This is not JSON as RFC 8259 has it.")
		}
		name := token.String()
		i := slices.IndexFunc(known, func(m member) bool { return m.name == name })
		if i < 0 {
			return g.unknown(name, known, nth)
		}
		g.enter(name)
		if seen[i] {
			return invalid(g.here(), "This name stands twice in the same object; two readers could take different ones.")
		}
		seen[i] = true
		if p := g.value(known[i].of); p != nil {
			return p
		}
		g.leave()
	}
	if _, err := g.dec.ReadToken(); err != nil {
		return g.broken(err)
	}
	return nil
}

// unknown complains about the nth name of an object.
func (g *gate) unknown(name string, known []member, nth int) *Problem {
	names := make([]string, len(known))
	for i, m := range known {
		names[i] = m.name
	}
	if meant := nearest(name, names); meant != "" {
		g.enter(name)
		return invalid(g.here(), "There is no such name here; did you mean %q?", meant)
	}
	if len(names) == 0 {
		if nameable(name) {
			g.enter(name)
		}
		return invalid(g.here(), "This object takes no names: send {} or no body at all.")
	}
	if nameable(name) {
		g.enter(name)
		return invalid(g.here(), "There is no such name here. Known are: %s.", strings.Join(names, ", "))
	}
	return invalid(g.here(), "Member %d of this object has a name that is not known here. Known are: %s.", nth, strings.Join(names, ", "))
}

// nameable says that a name may be repeated: it is short, made like an identifier, and hardly any of it is digits, as of keys and tokens.
func nameable(name string) bool {
	digits := 0
	for i, c := range name {
		switch {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '$':
		case i > 0 && (c == '-' || c == '.'):
		case i > 0 && c >= '0' && c <= '9':
			digits++
		default:
			return false
		}
	}
	return name != "" && len(name) <= 40 && digits <= 3 && !secret.Found(name)
}

// member is one name of an object and the type of its value.
type member struct {
	name string
	of   reflect.Type
}

// members lists the JSON names of a struct in their order.
func members(t reflect.Type) []member {
	var out []member
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		out = append(out, member{name, f.Type})
	}
	return out
}
