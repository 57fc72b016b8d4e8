package runstate

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/holdpoint/holdpoint/approvals/canon"
)

func pointer(tokens ...string) string { return canon.Pointer(tokens...) }

// nestedInFunctions: the Python SDK keeps a nested run as an object with the
// function call that started it.
func nestedInFunctions(l *level) ([]nestedRun, error) {
	processed, _ := l.state[l.processed].(map[string]any)
	entries, _ := processed["functions"].([]any)
	var runs []nestedRun
	for i, e := range entries {
		entry, _ := e.(map[string]any)
		value := entry["agent_run_state"]
		if value == nil {
			continue
		}
		at := l.at(l.processed, "functions", fmt.Sprint(i), "agent_run_state")
		state, ok := value.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%w: %w at %s", ErrVersion, errShape, brief(at))
		}
		// readFunctions has seen to the id.
		runs = append(runs, nestedRun{outerCall: l.order[i], state: state, pointer: at})
	}
	return runs, nil
}

// pendingRuns is where the JavaScript SDK keeps nested runs, as strings.
const pendingRuns = "pendingAgentToolRuns"

// nestedInStrings: the JavaScript SDK keeps nested runs in an object whose names
// end in the outer call's id, each as a string that holds a state.
func nestedInStrings(l *level) ([]nestedRun, error) {
	value := l.state[pendingRuns]
	if value == nil {
		return nil, nil
	}
	pending, ok := value.(map[string]any)
	if !ok {
		return nil, l.shape(pendingRuns)
	}
	var runs []nestedRun
	for _, key := range slices.Sorted(maps.Keys(pending)) {
		at := l.at(pendingRuns, key)
		text, ok := pending[key].(string)
		outer, named := l.outerCall(key)
		if !ok || !named {
			return nil, fmt.Errorf("%w: %w at %s", ErrVersion, errShape, brief(at))
		}
		inner, err := decode([]byte(text))
		if err != nil {
			return nil, fmt.Errorf("%w at %s", err, brief(at))
		}
		state, ok := inner.value.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%w: %w at %s", ErrVersion, errShape, brief(at))
		}
		runs = append(runs, nestedRun{outerCall: outer, state: state, pointer: at, mended: inner.mended})
	}
	return runs, nil
}

// outerCall takes the call id out of a pending run's name: TOOL:ID, since
// schema 1.16 ["bare",TOOL]:ID with a JSON array in front.
func (l *level) outerCall(key string) (string, bool) {
	rest := key
	if strings.HasPrefix(key, "[") {
		d := json.NewDecoder(strings.NewReader(key))
		var identity []string
		if d.Decode(&identity) != nil {
			return "", false
		}
		rest = key[d.InputOffset():]
	} else if i := strings.IndexByte(key, ':'); i >= 0 {
		// A tool's name has no colon, an id may.
		rest = key[i:]
	}
	id, ok := strings.CutPrefix(rest, ":")
	return id, ok && id != ""
}
