package rules

import (
	"fmt"
	"sort"
	"strings"
)

// Change is one setting that differs between two configurations of a tenant. Old is
// empty when it was added, New when it was removed. References stay references.
type Change struct{ Path, Old, New string }

// String gives the change as a line.
func (c Change) String() string {
	switch {
	case c.Old == "":
		return fmt.Sprintf("+ %s: %s", c.Path, c.New)
	case c.New == "":
		return fmt.Sprintf("- %s: %s", c.Path, c.Old)
	}
	return fmt.Sprintf("~ %s: %s → %s", c.Path, c.Old, c.New)
}

// Diff lists what changed between two configurations, sorted by path; either may be
// nil. Rules are compared by name; another order of theirs is a change of its own,
// because the first match wins.
func Diff(was, now *Tenant) []Change {
	before, orderBefore := settings(was)
	after, orderAfter := settings(now)
	var out []Change
	for path, old := range before {
		if text, ok := after[path]; !ok || text != old {
			out = append(out, Change{Path: path, Old: cut(old), New: cut(text)})
		}
	}
	for path, text := range after {
		if _, ok := before[path]; !ok {
			out = append(out, Change{Path: path, New: cut(text)})
		}
	}
	if a, b := common(orderBefore, orderAfter), common(orderAfter, orderBefore); a != b {
		out = append(out, Change{Path: "rules (order)", Old: a, New: b})
	}
	for i, name := range orderAfter {
		if !contains(orderBefore, name) && was != nil {
			out = append(out, Change{Path: "rules (order)", New: fmt.Sprintf("%s is number %d of %d", name, i+1, len(orderAfter))})
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].Path < out[j].Path })
	return out
}

// ChangedTools names the tools of was that are gone or have another revision now:
// waiting approvals of theirs can't run any more.
func ChangedTools(was, now *Tenant) []string {
	var out []string
	for _, name := range sortedKeys(was.Tools) {
		if tool := now.Tools[name]; tool == nil || tool.Revision() != was.Tools[name].Revision() {
			out = append(out, name)
		}
	}
	return out
}

// settings flattens a body to path → text.
func settings(t *Tenant) (flat map[string]string, order []string) {
	flat = map[string]string{}
	if t == nil {
		return flat, nil
	}
	root, err := parseJSON(t.body)
	if err != nil {
		return flat, nil // not reached: the body was written by appendJSON
	}
	tenant := root.get("tenant")
	for _, f := range tenant.fields {
		if f.key != "rules" || f.value.kind != listNode {
			flatten(flat, f.key, f.value)
			continue
		}
		for i, rule := range f.value.items {
			order = append(order, t.Rules[i].Name)
			flatten(flat, "rules."+t.Rules[i].Name, rule)
		}
	}
	if egress := root.get("egress"); egress != nil {
		flatten(flat, "egress", egress)
	}
	return flat, order
}

func flatten(flat map[string]string, path string, n *node) {
	if n.kind == objectNode && len(n.fields) > 0 {
		for _, f := range n.fields {
			flatten(flat, path+"."+f.key, f.value)
		}
		return
	}
	text := n.text
	if n.kind != textNode || text == "" {
		text = string(n.appendJSON(nil))
	}
	flat[path] = text
}

func cut(text string) string {
	if runes := []rune(text); len(runes) > 200 {
		return fmt.Sprintf("%s… (%d characters)", string(runes[:200]), len(runes))
	}
	return text
}

func common(list, other []string) string {
	var both []string
	for _, s := range list {
		if contains(other, s) {
			both = append(both, s)
		}
	}
	return strings.Join(both, ", ")
}
