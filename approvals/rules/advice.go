package rules

import (
	"fmt"
	"slices"
	"strings"

	celast "cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
)

// Warnings are what a configuration says that can hardly be meant, each with its place: a rule that nothing reaches, a question that a
// rule can't settle, a condition over an argument that its tools' closed schemas don't have, or have with another type. They refuse
// nothing, and there is one only where it is certain. A configuration of a stored body has none, as it has no places.
func (c *Config) Warnings() []*Problem {
	var out []*Problem
	for _, name := range c.Names() {
		t := c.Tenants[name]
		var all *Rule // takes whatever comes to it
		for _, rule := range t.Rules {
			at := c.places[rule]
			if at == nil || rule.condition == nil {
				continue
			}
			warn := func(key, format string, a ...any) {
				p := *at
				p.Path, p.Msg = at.Path+"."+key, fmt.Sprintf(format, a...)
				out = append(out, &p)
			}
			if all != nil {
				warn("when", "never reached: rule %q before it takes every call", all.Name)
				continue
			}
			if constant(rule.condition.tree.Expr()) {
				all = rule
			}
			t.advise(rule, warn)
		}
	}
	return out
}

func (t *Tenant) advise(rule *Rule, warn func(key, format string, a ...any)) {
	names := named(rule.condition.tree.Expr())
	for _, name := range names {
		if tool := t.Tools[name]; tool != nil {
			if err := rule.fits(tool.Kind); err != nil {
				key := "decisions"
				if rule.Do == Allow {
					key = "do"
				}
				warn(key, "a call of %s can't be taken under it: %s", name, strings.TrimPrefix(err.Error(), fmt.Sprintf("rule %q: ", rule.Name)))
			}
		}
	}
	told := map[string]bool{}
	tell := func(field, problem string) {
		if problem != "" && !told[field] {
			told[field] = true
			warn("when", "args.%s %s of %s", field, problem, strings.Join(names, ", "))
		}
	}
	if len(names) == 0 {
		return
	}
	celast.PostOrderVisit(rule.condition.tree.Expr(), celast.NewExprVisitor(func(e celast.Expr) {
		if field, ok := argument(e); ok {
			tell(field, t.ofAll(names, field, func(_ map[string]any, known bool) string {
				if known {
					return ""
				}
				return "is no argument in the schema"
			}))
			return
		}
		if e.Kind() != celast.CallKind || !comparisons[e.AsCall().FunctionName()] || len(e.AsCall().Args()) != 2 {
			return
		}
		a, b := e.AsCall().Args()[0], e.AsCall().Args()[1]
		if a.Kind() == celast.LiteralKind {
			a, b = b, a
		}
		field, ok := argument(a)
		if !ok || b.Kind() != celast.LiteralKind {
			return
		}
		tell(field, t.ofAll(names, field, func(property map[string]any, known bool) string {
			if !known {
				return ""
			}
			return mismatch(property, b.AsLiteral().Value())
		}))
	}))
}

var comparisons = map[string]bool{
	operators.Equals: true, operators.NotEquals: true, operators.Less: true, operators.LessEquals: true, operators.Greater: true, operators.GreaterEquals: true,
}

// ofAll gives a problem that every one of the tools has; a tool whose schema isn't closed, or says more than properties, has none.
func (t *Tenant) ofAll(names []string, field string, judge func(property map[string]any, known bool) string) string {
	problem := ""
	for _, name := range names {
		tool := t.Tools[name]
		if tool == nil || tool.schema == nil || !closed(tool.schema.raw) {
			return ""
		}
		properties, _ := tool.schema.raw["properties"].(map[string]any)
		property, known := properties[field]
		object, _ := property.(map[string]any)
		if problem = judge(object, known); problem == "" {
			return ""
		}
	}
	return problem
}

func closed(schema map[string]any) bool {
	if open, ok := schema["additionalProperties"].(bool); !ok || open {
		return false
	}
	return schema["patternProperties"] == nil
}

// mismatch says that a value is none that the property can have: by its one simple type, or by its list of texts.
func mismatch(property map[string]any, value any) string {
	var got string
	switch value.(type) {
	case string:
		got = "string"
	case int64, uint64, float64:
		got = "number"
	case bool:
		got = "boolean"
	default:
		return ""
	}
	if kind, ok := property["type"].(string); ok && slices.Contains([]string{"string", "number", "integer", "boolean"}, kind) {
		if kind == "integer" {
			kind = "number"
		}
		if kind != got {
			return fmt.Sprintf("is compared with a %s, and is a %s in the schema", got, kind)
		}
	}
	if list, ok := property["enum"].([]any); ok && got == "string" && !slices.Contains(list, value) {
		return "is compared with what is not in the list (enum) in the schema"
	}
	return ""
}

// argument reads args.NAME, has(args.NAME) and args["NAME"].
func argument(e celast.Expr) (field string, ok bool) {
	isArgs := func(e celast.Expr) bool { return e.Kind() == celast.IdentKind && e.AsIdent() == "args" }
	switch e.Kind() {
	case celast.SelectKind:
		return e.AsSelect().FieldName(), isArgs(e.AsSelect().Operand())
	case celast.CallKind:
		if e.AsCall().FunctionName() == operators.Index && len(e.AsCall().Args()) == 2 && isArgs(e.AsCall().Args()[0]) {
			return literalText(e.AsCall().Args()[1])
		}
	}
	return "", false
}

func constant(e celast.Expr) bool {
	if e.Kind() != celast.LiteralKind {
		return false
	}
	yes, ok := e.AsLiteral().Value().(bool)
	return ok && yes
}

// named are the tools that a condition can be true for, as it says itself (tool == "a", tool in ["a", "b"]); nil where it doesn't.
func named(e celast.Expr) []string {
	if e.Kind() != celast.CallKind || len(e.AsCall().Args()) != 2 {
		return nil
	}
	a, b := e.AsCall().Args()[0], e.AsCall().Args()[1]
	isTool := func(e celast.Expr) bool { return e.Kind() == celast.IdentKind && e.AsIdent() == "tool" }
	switch e.AsCall().FunctionName() {
	case operators.Equals:
		if isTool(b) {
			a, b = b, a
		}
		if name, ok := literalText(b); ok && isTool(a) {
			return []string{name}
		}
	case operators.In:
		if !isTool(a) || b.Kind() != celast.ListKind {
			return nil
		}
		var out []string
		for _, one := range b.AsList().Elements() {
			name, ok := literalText(one)
			if !ok {
				return nil
			}
			out = append(out, name)
		}
		return out
	case operators.LogicalAnd: // either side bounds it
		if left := named(a); left != nil {
			return left
		}
		return named(b)
	case operators.LogicalOr: // both must
		left, right := named(a), named(b)
		if left == nil || right == nil {
			return nil
		}
		all := slices.Concat(left, right)
		slices.Sort(all)
		return slices.Compact(all)
	}
	return nil
}
