package secret

import (
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// repeated holds the values of a member name that an object has more than once.
// Readers differ in which one they take, so all of them are looked at.
type repeated []any

// maxNesting bounds how deep unpacked JSON may nest; what is deeper is looked
// at as text.
const maxNesting = 500

var errNesting = errors.New("secret: JSON nests too deep")

// unpack decodes a string that holds one JSON object or array. Duplicate names
// and broken Unicode don't stop it: all of the text is to be seen.
func unpack(s string) (any, bool) {
	trimmed := strings.TrimLeft(s, " \t\r\n")
	if trimmed == "" || trimmed[0] != '{' && trimmed[0] != '[' {
		return nil, false
	}
	d := jsontext.NewDecoder(strings.NewReader(s), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	v, err := unpackValue(d)
	if err != nil {
		return nil, false
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, false
	}
	return v, true
}

func unpackValue(d *jsontext.Decoder) (any, error) {
	if d.StackDepth() > maxNesting {
		return nil, errNesting
	}
	token, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	switch token.Kind() {
	case '{':
		return unpackObject(d)
	case '[':
		out := []any{}
		for d.PeekKind() != ']' {
			v, err := unpackValue(d)
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		_, err = d.ReadToken()
		return out, err
	case '"':
		return token.String(), nil
	case '0':
		return token.Float(), nil
	case 't', 'f':
		return token.Bool(), nil
	default:
		return nil, nil
	}
}

func unpackObject(d *jsontext.Decoder) (any, error) {
	out := map[string]any{}
	for d.PeekKind() != '}' {
		token, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		name := token.String()
		v, err := unpackValue(d)
		if err != nil {
			return nil, err
		}
		switch earlier, twice := out[name]; {
		case !twice:
			out[name] = v
		default:
			if all, ok := earlier.(repeated); ok {
				out[name] = append(all, v)
			} else {
				out[name] = repeated{earlier, v}
			}
		}
	}
	_, err := d.ReadToken()
	return out, err
}

// masked says whether a string only stands in for a secret.
func masked(s string) bool {
	if strings.Trim(s, "*•") == "" {
		return true
	}
	inner := strings.ToLower(strings.Trim(s, "[]<>(){}"))
	return inner == "redacted" || inner == "secret" || inner == "omitted" || inner == "hidden" || isRedacted(s)
}

// isRedacted recognises what [Redacted] writes.
func isRedacted(s string) bool {
	count, ok := strings.CutPrefix(s, "[redacted: ")
	if !ok {
		return false
	}
	count, ok = strings.CutSuffix(count, " chars]")
	if !ok {
		return false
	}
	_, err := strconv.Atoi(count)
	return err == nil
}
