package runstate

import (
	"fmt"
	"slices"
	"strings"
)

// dialect is one language's way to write the run state of OpenAI's Agents SDK.
// The two differ in names, and in where they keep a nested agent's run.
type dialect struct {
	schemas []string

	agent, step, processed, rawItem, callID, toolCall string

	// stepInterruptions: older versions have the interruptions in the step
	// itself, not under data, and the SDK still reads them there.
	stepInterruptions bool

	// nested gives the runs of the agents that this state's agent called.
	nested func(s *level) ([]nestedRun, error)
}

// nestedRun is a sub-agent's paused run.
type nestedRun struct {
	outerCall string // id of the call that runs the sub-agent
	state     map[string]any
	pointer   string
	mended    bool
}

var dialects = map[string]*dialect{
	FormatPython: {
		schemas: versions(17),
		agent:   "current_agent", step: "current_step", processed: "last_processed_response",
		rawItem: "raw_item", callID: "call_id", toolCall: "tool_call",
		stepInterruptions: true,
		nested:            nestedInFunctions,
	},
	FormatJS: {
		schemas: versions(22),
		agent:   "currentAgent", step: "currentStep", processed: "lastProcessedResponse",
		rawItem: "rawItem", callID: "callId", toolCall: "toolCall",
		nested: nestedInStrings,
	},
}

// versions gives "1.0" to "1.last".
func versions(last int) []string {
	out := make([]string, 0, last+1)
	for minor := range last + 1 {
		out = append(out, fmt.Sprintf("1.%d", minor))
	}
	return out
}

// maxNesting bounds how deep agents call agents.
const maxNesting = 32

// level is one agent's state, inside those that called it.
type level struct {
	*dialect
	state     map[string]any
	pointer   string
	mended    bool
	agents    []string // the callers' names
	calls     []string // the outer call ids
	functions map[string]function
	order     []string // ids of functions, in the state's order
}

// function is a tool call that the SDK will run when the state is resumed.
type function struct{ tool, arguments string }

// read gives the schema version and the waiting calls; none when the run is not
// at an interruption.
func (d *dialect) read(state map[string]any, mended bool) (string, []Call, error) {
	root := &level{dialect: d, state: state, mended: mended}
	calls, err := root.waiting()
	if err != nil {
		return "", nil, err
	}
	seen := make(map[string]bool, len(calls))
	for _, c := range calls {
		id := identity(c)
		if seen[id] {
			return "", nil, fmt.Errorf("%w: two calls with the same id and call path", ErrMismatch)
		}
		seen[id] = true
	}
	version, _ := state[schemaVersion].(string)
	return version, calls, nil
}

// identity is the call path and id, unambiguously.
func identity(c Call) string { return fmt.Sprintf("%q %q", c.CallPath, c.ToolCallID) }

// waiting gives the calls that wait at this level and below, in the order of
// this level's interruptions.
func (l *level) waiting() ([]Call, error) {
	version, ok := l.state[schemaVersion].(string)
	if !ok {
		return nil, fmt.Errorf("%w: it names no %s", ErrVersion, schemaVersion)
	}
	if !slices.Contains(l.schemas, version) {
		return nil, fmt.Errorf("%w: unknown schema", ErrVersion)
	}
	if len(l.calls) > maxNesting {
		return nil, fmt.Errorf("%w: agents nest too deep", ErrVersion)
	}
	agent, ok := l.state[l.agent].(map[string]any)
	if !ok {
		return nil, l.shape(l.agent)
	}
	name, err := l.name(agent, l.agent, "name")
	if err != nil {
		return nil, err
	}
	items, err := l.interruptions()
	if err != nil || len(items) == 0 {
		return nil, err
	}
	if err := l.readFunctions(); err != nil {
		return nil, err
	}
	below, err := l.below(name)
	if err != nil {
		return nil, err
	}
	return l.merge(items, below)
}

// interruptions gives the items of the step, if it is an interruption.
func (l *level) interruptions() ([]any, error) {
	value := l.state[l.step]
	if value == nil {
		return nil, nil
	}
	step, ok := value.(map[string]any)
	if !ok {
		return nil, l.shape(l.step)
	}
	switch step["type"] {
	case "next_step_interruption":
	case "next_step_final_output", "next_step_run_again", "next_step_handoff":
		return nil, nil
	default:
		return nil, fmt.Errorf("%w: unknown step type at %s", ErrVersion, brief(l.at(l.step, "type")))
	}
	data, ok := step["data"].(map[string]any)
	found := data["interruptions"]
	if found == nil && l.stepInterruptions {
		found, ok = step["interruptions"], true
	}
	items, list := found.([]any)
	if !ok || !list {
		return nil, l.shape(l.step, "data", "interruptions")
	}
	return items, nil
}

// readFunctions indexes the tool calls of the last response.
func (l *level) readFunctions() error {
	l.functions = map[string]function{}
	processed, _ := l.state[l.processed].(map[string]any)
	entries, _ := processed["functions"].([]any)
	for _, e := range entries {
		entry, _ := e.(map[string]any)
		call, ok := entry[l.toolCall].(map[string]any)
		if !ok {
			return l.shape(l.processed, "functions")
		}
		id, _ := call[l.callID].(string)
		if _, twice := l.functions[id]; twice || id == "" {
			return fmt.Errorf("%w: a tool call without an id of its own at %s", ErrMismatch, brief(l.at(l.processed, "functions")))
		}
		arguments, _ := call["arguments"].(string)
		l.functions[id] = function{tool: toolName(call), arguments: arguments}
		l.order = append(l.order, id)
	}
	return nil
}

// below gives the calls that wait in nested runs.
func (l *level) below(name string) ([]Call, error) {
	runs, err := l.nested(l)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(runs, func(a, b nestedRun) int {
		return slices.Index(l.order, a.outerCall) - slices.Index(l.order, b.outerCall)
	})
	var calls []Call
	for i, run := range runs {
		if slices.ContainsFunc(runs[:i], func(r nestedRun) bool { return r.outerCall == run.outerCall }) {
			return nil, fmt.Errorf("%w: two nested runs of one call at %s", ErrMismatch, brief(run.pointer))
		}
		inner := &level{
			dialect: l.dialect, state: run.state, pointer: run.pointer, mended: l.mended || run.mended,
			agents: append(slices.Clip(l.agents), name), calls: append(slices.Clip(l.calls), run.outerCall),
		}
		waiting, err := inner.waiting()
		if err != nil {
			return nil, err
		}
		if len(waiting) == 0 {
			return nil, fmt.Errorf("%w: a nested run in which nothing waits at %s", ErrMismatch, brief(run.pointer))
		}
		calls = append(calls, waiting...)
	}
	return calls, nil
}

// merge matches this level's interruptions with the calls below: one that is
// below is that one, the rest are this agent's own.
func (l *level) merge(items []any, below []Call) ([]Call, error) {
	unmatched := map[string][]Call{}
	for _, c := range below {
		key := signature(c)
		unmatched[key] = append(unmatched[key], c)
	}
	calls := make([]Call, 0, len(items))
	matched := 0
	for i, item := range items {
		call, err := l.call(i, item)
		if err != nil {
			return nil, err
		}
		if same := unmatched[signature(call)]; len(same) > 0 {
			unmatched[signature(call)] = same[1:]
			calls = append(calls, same[0])
			matched++
			continue
		}
		// What is shown for approval must be what the SDK would run.
		f, ok := l.functions[call.ToolCallID]
		if ok && (f.tool != call.Tool || f.arguments != call.Arguments) {
			return nil, fmt.Errorf("%w: a call differs from the one that would run at %s", ErrMismatch, brief(l.item(i)))
		}
		calls = append(calls, call)
	}
	if matched != len(below) {
		return nil, fmt.Errorf("%w: a nested run's call is missing at %s", ErrMismatch, brief(l.at(l.step, "data", "interruptions")))
	}
	return calls, nil
}

// signature is what a level repeats of a call below it.
func signature(c Call) string {
	return fmt.Sprintf("%q %q %q %q", c.ToolCallID, c.Tool, c.AgentPath[len(c.AgentPath)-1], c.Arguments)
}

// call reads the interruption at index i as a call of this level.
func (l *level) call(i int, value any) (Call, error) {
	item, ok := value.(map[string]any)
	if !ok {
		return Call{}, l.shape(l.step, "data", "interruptions")
	}
	raw, ok := item[l.rawItem].(map[string]any)
	if !ok || item["type"] != "tool_approval_item" || raw["type"] != "function_call" {
		return Call{}, fmt.Errorf("%w: unknown interruption type at %s", ErrVersion, brief(l.item(i)))
	}
	agent, ok := item["agent"].(map[string]any)
	if !ok {
		return Call{}, fmt.Errorf("%w: %w at %s", ErrVersion, errShape, brief(l.item(i)))
	}
	c := Call{Tool: toolName(raw), CallPath: l.calls}
	c.ToolCallID, _ = raw[l.callID].(string)
	arguments, ok := raw["arguments"].(string)
	c.Arguments = arguments
	name, _ := agent["name"].(string)
	if !ok || c.ToolCallID == "" || c.Tool == "" || name == "" {
		return Call{}, fmt.Errorf("%w: %w at %s", ErrVersion, errShape, brief(l.item(i)))
	}
	if l.mended && strings.ContainsRune(c.ToolCallID+c.Tool+name+c.Arguments, '\uFFFD') {
		return Call{}, fmt.Errorf("%w: broken Unicode at %s", ErrNotJSON, brief(l.item(i)))
	}
	c.AgentPath = append(slices.Clip(l.agents), name)
	return c, nil
}

// toolName qualifies a name by its namespace as both SDKs do; a namespace that
// repeats the name is a wire artefact.
func toolName(call map[string]any) string {
	name, _ := call["name"].(string)
	namespace, _ := call["namespace"].(string)
	if name == "" || namespace == "" || namespace == name {
		return name
	}
	return namespace + "." + name
}

// name reads a non-empty string member.
func (l *level) name(object map[string]any, where, member string) (string, error) {
	s, _ := object[member].(string)
	if s == "" {
		return "", l.shape(where, member)
	}
	if l.mended && strings.ContainsRune(s, '\uFFFD') {
		return "", fmt.Errorf("%w: broken Unicode at %s", ErrNotJSON, brief(l.at(where, member)))
	}
	return s, nil
}

func (l *level) at(tokens ...string) string { return l.pointer + pointer(tokens...) }

func (l *level) item(i int) string {
	return l.at(l.step, "data", "interruptions", fmt.Sprint(i))
}

func (l *level) shape(tokens ...string) error {
	return fmt.Errorf("%w: %w at %s", ErrVersion, errShape, brief(l.at(tokens...)))
}
