package rules

import (
	"errors"
	"fmt"
	"math/big"
	"sort"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// schema is a tool's JSON Schema, compiled. Formats are asserted: a tool that says
// `format: email` means it.
type schema struct {
	compiled *jsonschema.Schema
	raw      map[string]any
	names    map[string]bool // every property name that the schema itself writes
}

// SchemaError is arguments that break their tool's schema. Pointer (RFC 6901) and
// Message hold no argument's value; a key that the schema doesn't write, in a map with
// free keys, reads "…".
type SchemaError struct{ Pointer, Message string }

func (e *SchemaError) Error() string {
	at := e.Pointer
	if at == "" {
		at = "the arguments"
	}
	return fmt.Sprintf("%s: %s", at, e.Message)
}

const schemaURL = "holdpoint:///schema.json"

// closedLoader refuses every document that is not part of the configuration.
type closedLoader struct{}

func (closedLoader) Load(string) (any, error) {
	return nil, errors.New("a schema can't refer to another document")
}

func compileSchema(raw map[string]any) (*schema, error) {
	c := jsonschema.NewCompiler()
	c.UseLoader(closedLoader{})
	c.AssertFormat()
	if err := c.AddResource(schemaURL, raw); err != nil {
		return nil, err
	}
	compiled, err := c.Compile(schemaURL)
	if err != nil {
		return nil, err
	}
	s := &schema{compiled: compiled, raw: raw, names: map[string]bool{}}
	s.collect(raw)
	return s, nil
}

func (s *schema) collect(v any) {
	switch v := v.(type) {
	case map[string]any:
		for key, item := range v {
			if object, ok := item.(map[string]any); ok && (key == "properties" || key == "dependentSchemas") {
				for name := range object {
					s.names[name] = true
				}
			}
			if list, ok := item.([]any); ok && key == "required" {
				for _, name := range list {
					if name, ok := name.(string); ok {
						s.names[name] = true
					}
				}
			}
			s.collect(item)
		}
	case []any:
		for _, item := range v {
			s.collect(item)
		}
	}
}

// Validate checks decoded arguments (numbers as float64 or json.Number) against the
// tool's schema. The error is a [*SchemaError] for the first place that fails.
func (t *Tool) Validate(args map[string]any) error {
	if args == nil {
		args = map[string]any{}
	}
	err := t.schema.compiled.Validate(args)
	if err == nil {
		return nil
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return &SchemaError{Message: "can't be checked against the schema"}
	}
	var found []*SchemaError
	t.schema.leaves(invalid, args, &found)
	if len(found) == 0 {
		return &SchemaError{Message: "breaks the schema"}
	}
	// The validator walks maps: sort, so that the same arguments get the same answer.
	sort.Slice(found, func(i, j int) bool {
		if found[i].Pointer != found[j].Pointer {
			return found[i].Pointer < found[j].Pointer
		}
		return found[i].Message < found[j].Message
	})
	return found[0]
}

func (s *schema) leaves(e *jsonschema.ValidationError, args any, out *[]*SchemaError) {
	switch e.ErrorKind.(type) {
	case *kind.AnyOf, *kind.OneOf, *kind.Not, *kind.Contains, *kind.PropertyNames:
		// Below these stand alternatives, none of which is the one fault.
	default:
		if len(e.Causes) > 0 {
			for _, cause := range e.Causes {
				s.leaves(cause, args, out)
			}
			return
		}
	}
	*out = append(*out, &SchemaError{Pointer: s.pointer(e.InstanceLocation, args), Message: s.message(e.ErrorKind)})
}

// pointer hides the keys that only the arguments contain.
func (s *schema) pointer(location []string, v any) string {
	var b strings.Builder
	for _, part := range location {
		b.WriteByte('/')
		switch container := v.(type) {
		case []any:
			b.WriteString(part)
			if i, err := strconv.Atoi(part); err == nil && i >= 0 && i < len(container) {
				v = container[i]
			}
		case map[string]any:
			if s.names[part] {
				b.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(part))
			} else {
				b.WriteString("…")
			}
			v = container[part]
		default:
			b.WriteString("…")
		}
	}
	return b.String()
}

// message words a fault from the schema's side only.
func (s *schema) message(k jsonschema.ErrorKind) string {
	number := func(r *big.Rat) string { return strings.TrimRight(strings.TrimRight(r.FloatString(12), "0"), ".") }
	switch k := k.(type) {
	case *kind.Type:
		return "must be " + strings.Join(k.Want, " or ") + ", is " + k.Got
	case *kind.Required:
		return "misses " + quoted(k.Missing)
	case *kind.AdditionalProperties:
		return fmt.Sprintf("has %d fields that the schema doesn't name", len(k.Properties))
	case *kind.Enum:
		if words, ok := scalars(k.Want); ok {
			return "must be one of " + words
		}
	case *kind.Const:
		if words, ok := scalars([]any{k.Want}); ok {
			return "must be " + words
		}
	case *kind.Format:
		return "is not a valid " + k.Want
	case *kind.Pattern:
		return "doesn't match the pattern " + strconv.Quote(k.Want)
	case *kind.MinLength:
		return fmt.Sprintf("must have at least %d characters", k.Want)
	case *kind.MaxLength:
		return fmt.Sprintf("must have at most %d characters", k.Want)
	case *kind.MinItems:
		return fmt.Sprintf("must have at least %d items", k.Want)
	case *kind.MaxItems:
		return fmt.Sprintf("must have at most %d items", k.Want)
	case *kind.MinProperties:
		return fmt.Sprintf("must have at least %d fields", k.Want)
	case *kind.MaxProperties:
		return fmt.Sprintf("must have at most %d fields", k.Want)
	case *kind.UniqueItems:
		return "must not repeat an item"
	case *kind.Minimum:
		return "must be at least " + number(k.Want)
	case *kind.Maximum:
		return "must be at most " + number(k.Want)
	case *kind.ExclusiveMinimum:
		return "must be more than " + number(k.Want)
	case *kind.ExclusiveMaximum:
		return "must be less than " + number(k.Want)
	case *kind.MultipleOf:
		return "must be a multiple of " + number(k.Want)
	}
	if path := k.KeywordPath(); len(path) > 0 {
		return fmt.Sprintf("breaks the schema's %q", path[0])
	}
	return "is not allowed by the schema"
}

func quoted(words []string) string {
	sorted := append([]string(nil), words...)
	sort.Strings(sorted)
	for i, w := range sorted {
		sorted[i] = strconv.Quote(w)
	}
	return strings.Join(sorted, ", ")
}

func scalars(values []any) (string, bool) {
	words := make([]string, len(values))
	for i, v := range values {
		switch v := v.(type) {
		case map[string]any, []any:
			return "", false
		case string:
			words[i] = strconv.Quote(v)
		default:
			words[i] = fmt.Sprint(v)
		}
	}
	return strings.Join(words, ", "), true
}

// known reports whether the schema leaves the field open or names it; required,
// whether every valid arguments object has it. Both follow plain `properties` only.
func (s *schema) known(path []string) bool {
	at := any(s.raw)
	for _, key := range path {
		object, ok := at.(map[string]any)
		if !ok {
			return true
		}
		properties, _ := object["properties"].(map[string]any)
		next, named := properties[key]
		if !named {
			closed, ok := object["additionalProperties"].(bool)
			_, patterns := object["patternProperties"]
			return !ok || closed || patterns
		}
		at = next
	}
	return true
}

func (s *schema) required(path []string) bool {
	at := any(s.raw)
	for i, key := range path {
		object, ok := at.(map[string]any)
		if !ok || i > 0 && object["type"] != "object" {
			return false
		}
		list, _ := object["required"].([]any)
		found := false
		for _, name := range list {
			found = found || name == key
		}
		if !found {
			return false
		}
		properties, _ := object["properties"].(map[string]any)
		at = properties[key]
	}
	return true
}
