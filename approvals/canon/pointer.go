package canon

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// ErrPointer is returned for text that is no RFC 6901 JSON pointer, and for a
// pointer whose parent the document doesn't have.
var ErrPointer = errors.New("canon: no such JSON pointer")

// Pointer builds an RFC 6901 pointer from reference tokens, escaping ~ and /.
// Without tokens it is "", the whole document.
func Pointer(tokens ...string) string {
	var b strings.Builder
	for _, token := range tokens {
		b.WriteByte('/')
		_, _ = escaper.WriteString(&b, token)
	}
	return b.String()
}

var (
	escaper   = strings.NewReplacer("~", "~0", "/", "~1")
	unescaper = strings.NewReplacer("~1", "/", "~0", "~")
)

// Split gives the reference tokens of a pointer. It is an error, wrapping
// [ErrPointer], when text is neither "" nor starts with a slash, or when a ~
// stands without 0 or 1 after it.
func Split(pointer string) ([]string, error) {
	if pointer == "" {
		return nil, nil
	}
	if pointer[0] != '/' {
		return nil, fmt.Errorf("%w: a pointer starts with a slash", ErrPointer)
	}
	tokens := strings.Split(pointer[1:], "/")
	for i, token := range tokens {
		for j := range len(token) {
			if token[j] == '~' && (j+1 == len(token) || token[j+1] != '0' && token[j+1] != '1') {
				return nil, fmt.Errorf("%w: a ~ without 0 or 1 after it", ErrPointer)
			}
		}
		tokens[i] = unescaper.Replace(token)
	}
	return tokens, nil
}

// Get finds what a pointer names in a decoded document (map[string]any and
// []any). ok is false when there is nothing there, or the pointer is invalid;
// a null that is there is (nil, true).
func Get(document any, pointer string) (value any, ok bool) {
	tokens, err := Split(pointer)
	if err != nil {
		return nil, false
	}
	value = document
	for _, token := range tokens {
		switch container := value.(type) {
		case map[string]any:
			if value, ok = container[token]; !ok {
				return nil, false
			}
		case []any:
			i, valid := index(token)
			if !valid || i >= len(container) {
				return nil, false
			}
			value = container[i]
		default:
			return nil, false
		}
	}
	return value, true
}

// Has says whether a document has something, null included, at a pointer.
func Has(document any, pointer string) bool {
	_, ok := Get(document, pointer)
	return ok
}

// Set gives a document in which the pointer names value. Containers on the way
// are copied, the rest is shared; document is left as it is. A member is added
// or replaced, an array element replaced, or added with the index "-". Parents
// are never made: where one is missing the error wraps [ErrPointer].
func Set(document any, pointer string, value any) (any, error) {
	tokens, err := Split(pointer)
	if err != nil {
		return nil, err
	}
	return set(document, tokens, value)
}

func set(at any, tokens []string, value any) (any, error) {
	if len(tokens) == 0 {
		return value, nil
	}
	token, rest := tokens[0], tokens[1:]
	switch container := at.(type) {
	case map[string]any:
		child, ok := container[token]
		if !ok && len(rest) > 0 {
			return nil, fmt.Errorf("%w: a parent is missing", ErrPointer)
		}
		child, err := set(child, rest, value)
		if err != nil {
			return nil, err
		}
		out := maps.Clone(container)
		if out == nil {
			out = map[string]any{}
		}
		out[token] = child
		return out, nil
	case []any:
		if token == "-" && len(rest) == 0 {
			return append(slices.Clip(container), value), nil
		}
		i, ok := index(token)
		if !ok || i >= len(container) {
			return nil, fmt.Errorf("%w: no such array element", ErrPointer)
		}
		child, err := set(container[i], rest, value)
		if err != nil {
			return nil, err
		}
		out := slices.Clone(container)
		out[i] = child
		return out, nil
	default:
		return nil, fmt.Errorf("%w: a parent is neither object nor array", ErrPointer)
	}
}

// index reads an array index: digits without leading zeros (RFC 6901, 4).
func index(token string) (int, bool) {
	if token == "" || len(token) > 1 && token[0] == '0' || strings.Trim(token, "0123456789") != "" {
		return 0, false
	}
	i, err := strconv.Atoi(token)
	return i, err == nil
}
