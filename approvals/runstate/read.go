package runstate

import (
	"errors"
	"fmt"
	"slices"
)

// The formats. Python and JavaScript number their schemas separately: the same
// number means different things.
const (
	FormatPython = "openai-agents-python" // RunState.to_json() of OpenAI's Agents SDK for Python
	FormatJS     = "openai-agents-js"     // RunState.toString() of @openai/agents
	FormatOpaque = "opaque"               // any JSON that the agent resumes from; its calls are given
	FormatNone   = "none"                 // no state: the agent keeps it; its calls are given
)

var (
	// ErrNotJSON means not one JSON value, or an ambiguous one (a member twice,
	// broken Unicode in a call).
	ErrNotJSON = errors.New("runstate: the state is not unambiguous JSON")
	// ErrVersion means an unknown format, schema, step or interruption type, or a
	// shape that the schema doesn't have (version_unsupported).
	ErrVersion = errors.New("runstate: the state's version is not supported")
	// ErrMismatch means that the state contradicts itself or the calls given with it
	// (state_mismatch).
	ErrMismatch = errors.New("runstate: the state doesn't agree on what waits")
	// ErrNothingWaits means that no call waits in the state (state_mismatch). It
	// is an ErrMismatch.
	ErrNothingWaits = fmt.Errorf("%w: nothing waits in it", ErrMismatch)
	// ErrStopped means that the caller left before the search was over.
	ErrStopped = errors.New("runstate: the search was stopped")
)

// StandingError says that the state holds a decision that was not made here
// (standing_approval_in_state).
type StandingError struct {
	Pointer string // of the "approved" or "rejected" member
}

func (e *StandingError) Error() string {
	return "runstate: a standing approval or a decision on a waiting call at " + brief(e.Pointer)
}

// SecretError says that the state holds a credential (secret_in_state).
type SecretError struct {
	Pointer string
	Rule    string // gitleaks' rule, or secret.RuleName for a field's name
}

func (e *SecretError) Error() string {
	return fmt.Sprintf("runstate: a credential (%s) at %s", e.Rule, brief(e.Pointer))
}

// Call is one tool call that waits.
type Call struct {
	ToolCallID string
	// Tool is the tool's name as the model called it, "namespace.name" for a
	// tool in a namespace.
	Tool string
	// Arguments is the text exactly as the SDK holds it; it may be broken.
	Arguments string
	// AgentPath names the agents, outermost first; the last one made the call.
	AgentPath []string
	// CallPath has the ids of the outer tool calls, outermost first; empty for
	// a call of the run's own agent. It and ToolCallID are the call's identity.
	CallPath []string
}

// String gives ids and names, without the arguments.
func (c Call) String() string {
	return fmt.Sprintf("[call %q of %q at %q]", c.ToolCallID, c.Tool, c.CallPath)
}

// GoString is String: arguments stay out of logs.
func (c Call) GoString() string { return c.String() }

// Reading is what a state says. Calls is nil for formats whose calls can't be
// read, and never empty for the others.
type Reading struct {
	Format        string
	SchemaVersion string // "" where the format has none
	Calls         []Call // in the order in which the state lists them
}

// Formats lists the formats by name.
func Formats() []string { return []string{FormatPython, FormatJS, FormatOpaque, FormatNone} }

// Known says whether the waiting calls can be read from a format's states.
func Known(format string) bool { return dialects[format] != nil }

// Schemas lists the schema versions that this release reads, oldest first; nil
// for formats without any.
func Schemas(format string) []string {
	if d := dialects[format]; d != nil {
		return slices.Clone(d.schemas)
	}
	return nil
}

// Read reads a state of a format. given are the calls that came with it: they
// matter for formats whose calls can't be read (their arguments are left out of
// the search for secrets, decisions on them are found); for the others the state
// decides, and [Agree] compares.
//
// The errors: ErrNotJSON, ErrVersion, ErrMismatch, ErrNothingWaits,
// *StandingError, *SecretError.
func Read(format string, state []byte, given ...Call) (Reading, error) {
	return ReadUntil(nil, format, state, given...)
}

// ReadUntil is Read, which can take seconds for a large state, for a caller who may leave: once stop says true, the search for secrets
// ends with ErrStopped.
func ReadUntil(stop func() bool, format string, state []byte, given ...Call) (Reading, error) {
	r := Reading{Format: format}
	switch dialect := dialects[format]; {
	case dialect != nil:
		root, err := decode(state)
		if err != nil {
			return Reading{}, err
		}
		object, ok := root.value.(map[string]any)
		if !ok {
			return Reading{}, fmt.Errorf("%w: not an object", ErrVersion)
		}
		r.SchemaVersion, r.Calls, err = dialect.read(object, root.mended)
		if err != nil {
			return Reading{}, err
		}
		if err := refuse(root.value, r.Calls, stop); err != nil {
			return Reading{}, err
		}
		if len(r.Calls) == 0 {
			return Reading{}, ErrNothingWaits
		}
		return r, nil
	case format == FormatOpaque:
		root, err := decode(state)
		if err != nil {
			return Reading{}, err
		}
		return r, refuse(root.value, given, stop)
	case format == FormatNone:
		if len(state) != 0 && string(state) != "null" {
			return Reading{}, fmt.Errorf("%w: the format %q comes without a state", ErrMismatch, FormatNone)
		}
		return r, nil
	default:
		return Reading{}, fmt.Errorf("%w: unknown format", ErrVersion)
	}
}

// refuse finds what must not be in a state in which calls wait.
func refuse(root any, calls []Call, stop func() bool) error {
	own := newCopies(calls)
	if pointer, found := standing(root, own); found {
		return &StandingError{Pointer: pointer}
	}
	if located, found := credential(root, own, stop); found {
		return &SecretError{Pointer: located.Pointer, Rule: located.Rule}
	}
	if stop != nil && stop() {
		return ErrStopped
	}
	return nil
}

// brief cuts a pointer to what fits an error message; names in it are the
// state's.
func brief(pointer string) string {
	const most = 200
	if len(pointer) <= most {
		return fmt.Sprintf("%q", pointer)
	}
	return fmt.Sprintf("%q…", pointer[:most])
}
