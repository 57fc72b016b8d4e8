package rules

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// piece is one part of a template: literal text, an argument's field, or the
// operation key.
type piece struct {
	text  string
	path  []string // {{.a.b}}
	opKey bool     // {operation_key}
}

const operationKeyMark = "{operation_key}"

var fieldPath = regexp.MustCompile(`^\.[A-Za-z_][A-Za-z0-9_-]*(\.[A-Za-z_][A-Za-z0-9_-]*)*$`)

// splitTemplate reads {{.field}} and, where it has a meaning, {operation_key}. There
// is no language behind it: no pipes, calls or conditions.
func splitTemplate(s string, opKey bool) ([]piece, error) {
	var out []piece
	text := func(t string) {
		for opKey {
			before, after, found := strings.Cut(t, operationKeyMark)
			if !found {
				break
			}
			if before != "" {
				out = append(out, piece{text: before})
			}
			out = append(out, piece{opKey: true})
			t = after
		}
		if t != "" {
			out = append(out, piece{text: t})
		}
	}
	for {
		before, after, found := strings.Cut(s, "{{")
		if strings.Contains(before, "}}") {
			return nil, errors.New("has }} without {{")
		}
		text(before)
		if !found {
			return out, nil
		}
		inner, rest, closed := strings.Cut(after, "}}")
		if !closed {
			return nil, errors.New("has {{ without }}")
		}
		inner = strings.TrimSpace(inner)
		if !fieldPath.MatchString(inner) {
			return nil, fmt.Errorf("has the placeholder {{%s}}; only fields are taken, such as {{.release}} or {{.order.id}}", inner)
		}
		out = append(out, piece{path: strings.Split(inner[1:], ".")})
		s = rest
	}
}

func (p piece) name() string { return "." + strings.Join(p.path, ".") }

// lookup follows the path through nested objects.
func lookup(args map[string]any, path []string) (any, bool) {
	var v any = args
	for _, key := range path {
		object, ok := v.(map[string]any)
		if !ok {
			return nil, false
		}
		if v, ok = object[key]; !ok {
			return nil, false
		}
	}
	return v, true
}

// covered reports whether a redacted pointer and the field lie on one path, so that
// the field's text could show what is redacted, or show its marker as if it were data.
func covered(path []string, pointers [][]string) bool {
	for _, p := range pointers {
		same := true
		for i := 0; i < len(p) && i < len(path); i++ {
			same = same && p[i] == path[i]
		}
		if same {
			return true
		}
	}
	return false
}
