package runstate

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAgree(t *testing.T) {
	t.Parallel()
	a1 := Call{"same", "pay", `{"n":5.00,"to":"x"}`, []string{"desk", "ledger"}, []string{"o1"}}
	a2 := Call{"same", "pay", `{"n":5.00,"to":"x"}`, []string{"desk", "ledger"}, []string{"o2"}}
	b := Call{"b", "note", `broken`, []string{"desk"}, nil}
	with := func(c Call, change func(*Call)) Call {
		change(&c)
		return c
	}
	bare := func(c *Call) { c.AgentPath, c.CallPath = nil, nil }
	for _, tt := range []struct {
		name        string
		read, given []Call
		want        []Call
	}{
		{"the same", []Call{a1, b}, []Call{a1, b}, []Call{a1, b}},
		{"in the order given", []Call{a1, b}, []Call{b, a1}, []Call{b, a1}},
		{"without paths", []Call{a1, b}, []Call{with(a1, bare), with(b, bare)}, []Call{a1, b}},
		{"spelled differently", []Call{a1}, []Call{with(a1, func(c *Call) { c.Arguments = `{"to":"x","n":5}` })}, []Call{a1}},
		{"told apart by the call path", []Call{a1, a2}, []Call{a2, a1}, []Call{a2, a1}},
		{"not told apart", []Call{a1, a2}, []Call{with(a1, bare), with(a2, bare)}, nil},
		{"one missing", []Call{a1, b}, []Call{a1}, nil},
		{"one too many", []Call{a1}, []Call{a1, b}, nil},
		{"one twice", []Call{a1, b}, []Call{b, b}, nil},
		{"another id", []Call{b}, []Call{with(b, func(c *Call) { c.ToolCallID = "x" })}, nil},
		{"another tool", []Call{b}, []Call{with(b, func(c *Call) { c.Tool = "x" })}, nil},
		{"other arguments", []Call{a1}, []Call{with(a1, func(c *Call) { c.Arguments = `{"n":6,"to":"x"}` })}, nil},
		{"other unreadable arguments", []Call{b}, []Call{with(b, func(c *Call) { c.Arguments = `broken ` })}, nil},
		{"another agent path", []Call{a1}, []Call{with(a1, func(c *Call) { c.AgentPath = []string{"ledger"} })}, nil},
		{"another call path", []Call{a1}, []Call{with(a1, func(c *Call) { c.CallPath = []string{"o2"} })}, nil},
		{"an empty call path for a nested call", []Call{a1}, []Call{with(a1, func(c *Call) { c.CallPath = []string{} })}, nil},
	} {
		got, err := Agree(tt.read, tt.given)
		if (tt.want == nil) != errors.Is(err, ErrMismatch) || tt.want != nil && err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}
