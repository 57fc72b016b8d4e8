package runstate

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// fixture reads a state of testdata.
func fixture(t testing.TB, format, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", format, name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// edited gives a state with value at a pointer; a string that holds JSON on the
// way is unpacked and packed again.
func edited(t testing.TB, state []byte, at string, value any) []byte {
	t.Helper()
	var document any
	if err := json.Unmarshal(state, &document); err != nil {
		t.Fatal(err)
	}
	tokens := strings.Split(strings.TrimPrefix(at, "/"), "/")
	for i := range tokens {
		tokens[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(tokens[i])
	}
	out, err := json.Marshal(edit(t, document, tokens, value))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// gone as a value removes the member.
type gone struct{}

func edit(t testing.TB, at any, tokens []string, value any) any {
	t.Helper()
	if len(tokens) == 0 {
		return value
	}
	switch v := at.(type) {
	case map[string]any:
		if _, remove := value.(gone); remove && len(tokens) == 1 {
			delete(v, tokens[0])
			return v
		}
		v[tokens[0]] = edit(t, v[tokens[0]], tokens[1:], value)
		return v
	case []any:
		i, err := strconv.Atoi(tokens[0])
		if err != nil || i > len(v) {
			t.Fatalf("no element %q", tokens[0])
		}
		if i == len(v) {
			v = append(v, nil)
		}
		v[i] = edit(t, v[i], tokens[1:], value)
		return v
	case string:
		var inner any
		if err := json.Unmarshal([]byte(v), &inner); err != nil {
			t.Fatalf("a string on the way is no JSON: %v", err)
		}
		out, err := json.Marshal(edit(t, inner, tokens, value))
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	case nil:
		return edit(t, map[string]any{}, tokens, value)
	}
	t.Fatalf("can't edit a %T", at)
	return nil
}
