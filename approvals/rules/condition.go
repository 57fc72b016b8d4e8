package rules

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	celast "cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/interpreter"
)

// Bounds on a condition: its text, its size once macros are expanded, loops within
// loops, a pattern's compiled size, and what one evaluation may cost (CEL's units:
// about one an operation, a tenth of one a byte of text).
const (
	maxConditionText = 4096
	maxConditionTree = 2000
	maxLoopNesting   = 2
	maxPatternSize   = 1000
	maxCost          = 1_000_000
)

// condition is one CEL expression, compiled.
type condition struct {
	program cel.Program
	tree    *celast.AST
	groups  []string // the user groups that it asks for, by id
}

// The variables that name the agent and the requester are qualified names, so that a
// misspelt field is a fault of the configuration, not of a call.
var targetEnv = sync.OnceValues(func() (*cel.Env, error) {
	text, list := cel.StringType, cel.ListType(cel.StringType)
	return cel.NewEnv(
		cel.Variable("tool", text),
		cel.Variable("args", cel.MapType(cel.StringType, cel.DynType)),
		cel.Variable("agent.name", text),
		cel.Variable("agent.path", list),
		cel.Variable("agent.version", text),
		cel.Variable("requester.id", text),
		cel.Variable("requester.groups", list),
		// args are JSON: every number is a double, and `args.amount > 50` must work.
		cel.CrossTypeNumericComparisons(true),
		cel.ParserExpressionSizeLimit(maxConditionText),
		cel.ExpressionNodeLimit(maxConditionTree),
		cel.RegexProgramSizeLimit(maxPatternSize),
		cel.ASTValidators(cel.ValidateComprehensionNestingLimit(maxLoopNesting), cel.ValidateRegexLiterals(),
			cel.ValidateDurationLiterals(), cel.ValidateTimestampLiterals()),
	)
})

var conditionEnv = sync.OnceValues(func() (*cel.Env, error) {
	env, err := targetEnv()
	if err != nil {
		return nil, err
	}
	return env.Extend(cel.Variable("target", cel.StringType))
})

// condition compiles a rule's `when`: a boolean, or what may turn out to be one.
func (r *reader) condition(n *node, path, text string, known names) *condition {
	return r.compile(n, path, text, conditionEnv, cel.BoolType, known)
}

func (r *reader) compile(n *node, path, text string, environment func() (*cel.Env, error), want *cel.Type, known names) *condition {
	env, err := environment()
	if err != nil {
		r.fault(n, path, "conditions can't be compiled: %v", err)
		return nil
	}
	ast, issues := env.Compile(text)
	if issues != nil && issues.Err() != nil {
		for i, e := range issues.Errors() {
			if i == 3 {
				break // what follows is mostly the same fault again
			}
			r.faultWithin(n, path, e.Location.Line(), e.Location.Column(), "%s", explain(e.Message))
		}
		return nil
	}
	if got := ast.OutputType(); !got.IsExactType(want) && !got.IsExactType(cel.DynType) {
		r.fault(n, path, "must give %s, gives %s", want, got)
		return nil
	}
	c := &condition{tree: ast.NativeRep()}
	c.program, err = env.Program(ast, cel.CostLimit(maxCost))
	if err != nil {
		r.fault(n, path, "can't be compiled: %v", err)
		return nil
	}
	r.checkNames(n, path, c.tree, known)
	c.groups = r.groupsAsked(n, path, c.tree)
	return c
}

// faultWithin points into a text: line from 1, column from 0, as CEL counts.
func (r *reader) faultWithin(n *node, path string, line, column int, format string, a ...any) {
	msg := fmt.Sprintf(format, a...)
	at := *n
	switch {
	case n.line == 0:
	case n.block:
		msg += fmt.Sprintf(" (line %d of the text, column %d)", line, column+1)
		at.line += line
		at.col = 1
	case line == 1:
		at.col += column
		if n.quoted {
			at.col++
		}
	}
	r.fault(&at, path, "%s", msg)
}

func explain(message string) string {
	for name, fields := range map[string]string{"agent": "name, path and version", "requester": "id and groups"} {
		if strings.Contains(message, "undeclared reference to '"+name+"'") {
			return fmt.Sprintf("%s has the fields %s only, and is used through them", name, fields)
		}
	}
	if strings.Contains(message, "undeclared reference") {
		message += "; known: tool, args, target (rules), agent.name, agent.path, agent.version, requester.id, requester.groups"
	}
	return message
}

// checkNames refuses a comparison of `tool` or `agent.name` with a name that isn't
// configured: a misspelt one would leave its calls to a later, laxer rule.
func (r *reader) checkNames(n *node, path string, tree *celast.AST, known names) {
	check := func(subject, other celast.Expr) {
		list, what := known.tools, "tool"
		switch {
		case isIdent(tree, subject, "tool"):
		case isIdent(tree, subject, "agent.name"):
			list, what = known.agents, "agent"
		default:
			return
		}
		if list == nil { // not known where this text stands
			return
		}
		elements := []celast.Expr{other}
		if other.Kind() == celast.ListKind {
			elements = other.AsList().Elements()
		}
		for _, e := range elements {
			if s, ok := literalText(e); ok && !contains(list, s) {
				at := tree.SourceInfo().GetStartLocation(e.ID())
				r.faultWithin(n, path, at.Line(), at.Column(), "names the %s %q, which isn't configured%s", what, s, meant(s, list))
			}
		}
	}
	celast.PostOrderVisit(tree.Expr(), celast.NewExprVisitor(func(e celast.Expr) {
		if e.Kind() != celast.CallKind || len(e.AsCall().Args()) != 2 {
			return
		}
		a, b := e.AsCall().Args()[0], e.AsCall().Args()[1]
		switch e.AsCall().FunctionName() {
		case operators.Equals, operators.NotEquals:
			check(a, b)
			check(b, a)
		case operators.In:
			check(a, b)
		}
	}))
}

// groupID is a Slack user group's id.
var groupID = regexp.MustCompile(`^S[A-Z0-9]{2,20}$`)

// groupsAsked collects the groups of `"S0ENG" in requester.groups` and refuses every other use of requester.groups. Only a group that
// is named can be mirrored, be read freshly and be locked; `size(requester.groups) > 0` would be decided from whichever groups happen
// to be mirrored for other reasons.
func (r *reader) groupsAsked(n *node, path string, tree *celast.AST) []string {
	const subject = "requester.groups"
	var out []string
	asked := map[int64]bool{}
	celast.PostOrderVisit(tree.Expr(), celast.NewExprVisitor(func(e celast.Expr) {
		if e.Kind() != celast.CallKind || e.AsCall().FunctionName() != operators.In || len(e.AsCall().Args()) != 2 {
			return
		}
		id, list := e.AsCall().Args()[0], e.AsCall().Args()[1]
		if s, ok := literalText(id); ok && groupID.MatchString(s) && isIdent(tree, list, subject) {
			asked[list.ID()] = true
			out = append(out, s)
		}
	}))
	celast.PostOrderVisit(tree.Expr(), celast.NewExprVisitor(func(e celast.Expr) {
		if isIdent(tree, e, subject) && !asked[e.ID()] {
			at := tree.SourceInfo().GetStartLocation(e.ID())
			r.faultWithin(n, path, at.Line(), at.Column(), "asks requester.groups for more than one named group, and Holdpoint reads no others from Slack; name each by its id, as in `\"S0ENG\" in requester.groups || \"S0OPS\" in requester.groups`")
		}
	}))
	slices.Sort(out)
	return slices.Compact(out)
}

func literalText(e celast.Expr) (string, bool) {
	if e.Kind() != celast.LiteralKind {
		return "", false
	}
	s, ok := e.AsLiteral().Value().(string)
	return s, ok
}

func isIdent(tree *celast.AST, e celast.Expr, name string) bool {
	if ref, ok := tree.ReferenceMap()[e.ID()]; ok && ref.Name == name {
		return true
	}
	return e.Kind() == celast.IdentKind && e.AsIdent() == name
}

// eval runs the condition. Its error is a sentence without any value: CEL's own text
// can hold one ("no such key: …").
func (c *condition) eval(vars map[string]any) (any, error) {
	out, _, err := c.program.Eval(vars)
	if err != nil {
		return nil, errors.New(c.reason(err))
	}
	return out.Value(), nil
}

func (c *condition) reason(err error) string {
	var cancelled interpreter.EvalCancelledError
	if errors.As(err, &cancelled) {
		return "it costs more to evaluate than is allowed"
	}
	text, where := err.Error(), ""
	var at *types.Err
	if errors.As(err, &at) {
		where = c.place(at.NodeID())
	}
	switch {
	case strings.Contains(text, "no such key"):
		return "it reads a field that is not there" + where
	case strings.Contains(text, "no such overload"):
		return "it doesn't fit the type of a value" + where
	case strings.Contains(text, "by zero"):
		return "it divides by zero" + where
	case strings.Contains(text, "overflow"), strings.Contains(text, "range"):
		return "a number leaves its range" + where
	case strings.Contains(text, "index out of bounds"):
		return "it reads past the end of a list" + where
	}
	return "it could not be evaluated" + where
}

// place names the expression as the condition's author wrote it.
func (c *condition) place(id int64) string {
	if id == 0 {
		return ""
	}
	where := ""
	if at := c.tree.SourceInfo().GetStartLocation(id); at.Line() > 0 {
		where = fmt.Sprintf(" (column %d)", at.Column()+1)
		if at.Line() > 1 {
			where = fmt.Sprintf(" (line %d, column %d)", at.Line(), at.Column()+1)
		}
	}
	celast.PostOrderVisit(c.tree.Expr(), celast.NewExprVisitor(func(e celast.Expr) {
		if e.ID() == id && e.Kind() == celast.SelectKind {
			where = ": " + selection(e) + where
		}
	}))
	return where
}

func selection(e celast.Expr) string {
	switch e.Kind() {
	case celast.SelectKind:
		return selection(e.AsSelect().Operand()) + "." + e.AsSelect().FieldName()
	case celast.IdentKind:
		return e.AsIdent()
	}
	return "…"
}

// plain turns json.Number into float64, CEL's double; other values stay.
func plain(v any) any {
	switch v := v.(type) {
	case json.Number:
		f, err := v.Float64()
		if err != nil {
			return v.String() // not a number CEL can hold: comparisons then fail
		}
		return f
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, item := range v {
			out[k] = plain(item)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = plain(item)
		}
		return out
	}
	return v
}
