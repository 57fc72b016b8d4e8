package runstate

import (
	"errors"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// decoded is a state's JSON: maps, slices, strings, float64.
type decoded struct {
	value any
	// mended: broken Unicode was replaced by U+FFFD. Real states have it in
	// model output that was cut between two UTF-16 halves; in a call it can't
	// be told what was meant.
	mended bool
}

// decode decodes one JSON value and refuses an object with a member twice.
func decode(text []byte) (decoded, error) {
	var d decoded
	// Errors quote the text: they are dropped.
	if json.Unmarshal(text, &d.value) == nil {
		return d, nil
	}
	d = decoded{mended: true}
	if json.Unmarshal(text, &d.value, jsontext.AllowInvalidUTF8(true)) == nil {
		return d, nil
	}
	return decoded{}, ErrNotJSON
}

// state decodes a string if it holds a serialized run state.
func stateInString(s string) (map[string]any, bool) {
	if !strings.HasPrefix(strings.TrimLeft(s, " \t\r\n"), "{") {
		return nil, false
	}
	d, err := decode([]byte(s))
	if err != nil {
		return nil, false
	}
	object, ok := d.value.(map[string]any)
	if !ok || object[schemaVersion] == nil {
		return nil, false
	}
	return object, true
}

// schemaVersion is the member by which both SDKs mark a run state.
const schemaVersion = "$schemaVersion"

// errShape is for what a schema doesn't have; see at.
var errShape = errors.New("not as its schema has it")
