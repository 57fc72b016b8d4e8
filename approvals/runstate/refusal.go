package runstate

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/holdpoint/holdpoint/approvals/canon"
	"github.com/holdpoint/holdpoint/approvals/secret"
)

// copies recognises the waiting calls' own arguments wherever a state repeats
// them, as text or decoded, and knows the calls' ids.
type copies struct {
	texts   map[string]bool
	decoded []map[string]any
	ids     map[string]bool
}

func newCopies(calls []Call) *copies {
	c := &copies{texts: map[string]bool{}, ids: map[string]bool{}}
	for _, call := range calls {
		c.ids[call.ToolCallID] = true
		if c.texts[call.Arguments] {
			continue
		}
		c.texts[call.Arguments] = true
		if a := canon.Read([]byte(call.Arguments)); a.Readable() && len(a.Value) > 0 {
			c.decoded = append(c.decoded, a.Value)
		}
	}
	return c
}

// is says whether a value is a copy of a waiting call's arguments.
func (c *copies) is(value any) bool {
	switch v := value.(type) {
	case string:
		return c.texts[v]
	case map[string]any:
		for _, own := range c.decoded {
			if len(own) == len(v) && reflect.DeepEqual(own, v) {
				return true
			}
		}
	}
	return false
}

// credential finds the first credential of a state.
func credential(root any, own *copies, stop func() bool) (secret.Located, bool) {
	for located := range secret.Walk(root, secret.Options{Unpack: true, Skip: own.is, Stop: stop}) {
		return located, true
	}
	return secret.Located{}, false
}

// standing finds a decision that would act without being made here: an approval
// record (any object under a member whose name ends in "approvals") that is
// approved or rejected as a whole, or for a call that waits. Lists of past
// calls are history. States in strings are entered.
func standing(root any, own *copies) (string, bool) {
	w := standingWalk{own: own}
	// An opaque state may be a run state's text.
	if text, ok := root.(string); ok {
		return w.text(text)
	}
	return w.value(root, false)
}

type standingWalk struct {
	own   *copies
	depth int // of states in strings
}

// value walks v and gives the pointer from there to what it found; records says
// whether v is under an approvals member.
func (w *standingWalk) value(v any, records bool) (string, bool) {
	if w.own.is(v) {
		return "", false
	}
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if records && (key == "approved" || key == "rejected") && w.decides(v[key]) {
				return canon.Pointer(key), true
			}
			if found, ok := w.value(v[key], records || approvalsName(key)); ok {
				return canon.Pointer(key) + found, true
			}
		}
	case []any:
		for i, element := range v {
			if found, ok := w.value(element, records); ok {
				return canon.Pointer(strconv.Itoa(i)) + found, true
			}
		}
	case string:
		return w.text(v)
	}
	return "", false
}

// text enters a string that holds a state.
func (w *standingWalk) text(s string) (string, bool) {
	if w.depth > maxNesting {
		return "", false
	}
	state, ok := stateInString(s)
	if !ok {
		return "", false
	}
	w.depth++
	defer func() { w.depth-- }()
	return w.value(state, false)
}

// decides says whether an "approved" or "rejected" member is more than history.
func (w *standingWalk) decides(value any) bool {
	switch v := value.(type) {
	case nil:
		return false
	case bool:
		return v
	case []any:
		for _, element := range v {
			id, text := element.(string)
			if !text || w.own.ids[id] {
				return true
			}
		}
		return false
	default:
		return true // no SDK writes this; what it would do is unknown
	}
}

// approvalsName: approvals, functionApprovals, legacyFunctionApprovals,
// hostedMcpApprovals, hosted_mcp_approvals.
func approvalsName(key string) bool {
	return strings.HasSuffix(strings.ToLower(key), "approvals")
}
