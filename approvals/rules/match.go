package rules

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Input is what a condition may look at.
type Input struct {
	Tool      string
	Args      map[string]any // the decoded arguments; numbers as float64 or json.Number
	Target    string         // from [Tool.Target]
	Agent     AgentInput
	Requester RequesterInput
}

// AgentInput is the agent as conditions see it.
type AgentInput struct {
	Name    string   // of the API key
	Path    []string // of the state, outermost first
	Version string   // the application's version
}

// RequesterInput is who is behind the call; the zero value when nobody is named.
type RequesterInput struct {
	ID     string
	Groups []string
}

var (
	// ErrNoRule means that no rule's condition is true: intake refuses with no_rule.
	ErrNoRule = errors.New("no rule matches")
	// ErrUnknownTool means that the tenant has no such tool.
	ErrUnknownTool = errors.New("unknown tool")
)

// RuleError is a rule that can't be applied to a call. The call is refused; the next
// rule is not asked. Its text holds no argument's value.
type RuleError struct{ Rule, Reason string }

func (e *RuleError) Error() string { return fmt.Sprintf("rule %q: %s", e.Rule, e.Reason) }

// TargetError is a tool's `target` that gives no usable name for the resource. Its
// text holds no argument's value.
type TargetError struct{ Tool, Reason string }

func (e *TargetError) Error() string { return fmt.Sprintf("target of tool %q: %s", e.Tool, e.Reason) }

// Match is the rule that covers a call. Why tells it in a sentence, from the
// configuration's text alone.
type Match struct {
	Rule  *Rule
	Index int
	Why   string
}

// Match finds the first rule whose condition is true. Errors: [ErrUnknownTool],
// [ErrNoRule], [*RuleError].
func (t *Tenant) Match(in Input) (Match, error) {
	tool := t.Tools[in.Tool]
	if tool == nil {
		return Match{}, ErrUnknownTool
	}
	vars := in.variables()
	vars["target"] = in.Target
	for i, rule := range t.Rules {
		value, err := rule.condition.eval(vars)
		if err != nil {
			return Match{}, &RuleError{Rule: rule.Name, Reason: "its condition can't be decided: " + err.Error()}
		}
		hit, ok := value.(bool)
		if !ok {
			return Match{}, &RuleError{Rule: rule.Name, Reason: "its condition gives something other than true or false"}
		}
		if !hit {
			continue
		}
		if err := rule.fits(tool.Kind); err != nil {
			return Match{}, err
		}
		return Match{Rule: rule, Index: i, Why: rule.why(len(t.Rules))}, nil
	}
	return Match{}, ErrNoRule
}

// fits refuses a rule that could never settle a tool of this kind.
func (r *Rule) fits(kind Kind) error {
	settles := Approve
	if kind == Question {
		settles = Respond
	}
	switch r.Do {
	case Allow:
		if kind == Question {
			return &RuleError{Rule: r.Name, Reason: "a question needs a person's answer; a rule can't allow it"}
		}
	case Ask:
		for _, d := range r.DecisionsFor(kind) {
			if d == settles {
				return nil
			}
		}
		return &RuleError{Rule: r.Name, Reason: fmt.Sprintf("its decisions don't offer %s, which a tool of kind %s needs", settles, kind)}
	case Deny:
	}
	return nil
}

func (r *Rule) why(of int) string {
	text := strings.Join(strings.Fields(r.Text), " ")
	return fmt.Sprintf("Rule %q (%d of %d) is the first whose condition is true: %s", r.Name, r.Index+1, of, text)
}

func (in Input) variables() map[string]any {
	args, _ := plain(in.Args).(map[string]any)
	return map[string]any{
		"tool": in.Tool, "args": args,
		"agent.name": in.Agent.Name, "agent.path": list(in.Agent.Path), "agent.version": in.Agent.Version,
		"requester.id": in.Requester.ID, "requester.groups": list(in.Requester.Groups),
	}
}

func list(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

const maxTarget = 512

// Target derives the resource that the call acts on: the tool's CEL expression over
// the same variables as a condition's, without in.Target; by default the tool's name.
// The error is a [*TargetError].
func (t *Tool) Target(in Input) (string, error) {
	if t.target == nil {
		return t.Name, nil
	}
	value, err := t.target.eval(in.variables())
	if err != nil {
		return "", &TargetError{Tool: t.Name, Reason: err.Error()}
	}
	s, ok := value.(string)
	switch {
	case !ok:
		return "", &TargetError{Tool: t.Name, Reason: "it gives something other than text"}
	case strings.TrimSpace(s) == "":
		return "", &TargetError{Tool: t.Name, Reason: "it gives empty text"}
	case len(s) > maxTarget:
		return "", &TargetError{Tool: t.Name, Reason: fmt.Sprintf("it gives more than %d bytes", maxTarget)}
	case !utf8.ValidString(s) || strings.ContainsRune(s, 0):
		return "", &TargetError{Tool: t.Name, Reason: "it gives bytes that aren't text"}
	}
	return s, nil
}
