package rules

import (
	"fmt"
	"strconv"
	"strings"
)

// The suggestions are YAML to paste into the configuration, for a refusal that a
// setting would have avoided. Pasted unchanged they open nothing: S0CHANGEME is no
// group, so nobody can approve until it is replaced. A name that no configuration could
// hold gets no suggestion ("").

// SuggestTool is for unknown_tool.
func (t *Tenant) SuggestTool(tool string) string {
	if !toolName.MatchString(tool) {
		return ""
	}
	return t.snippet("tools:",
		"  "+strconv.Quote(tool)+":",
		"    kind: effect",
		"    title: "+strconv.Quote("Run "+tool),
		"    schema: {type: object}   # list the properties, and additionalProperties: false",
		"    retry: opaque",
		"    agent: {}                # or http: {url: …} for the worker to run it",
	)
}

// SuggestRule is for no_rule.
func (t *Tenant) SuggestRule(tool string) string {
	if !toolName.MatchString(tool) {
		return ""
	}
	name := strings.NewReplacer(":", "-", "/", "-").Replace(strings.TrimLeft(tool, "_"))
	if name = name[:min(len(name), 63)]; !ruleName.MatchString(name) || name == UnreadableRule {
		name = "new-rule"
	}
	return t.snippet("rules:   # the first match wins: mind the place",
		"  - name: "+strconv.Quote(name),
		"    when: 'tool == "+strconv.Quote(tool)+"'",
		"    reviewers: {groups: [S0CHANGEME]}   # who may approve it",
		"    decide_within: 4h",
		"    execute_within: 1h",
	)
}

// SuggestAllow is for tool_not_allowed.
func (t *Tenant) SuggestAllow(agent, tool string) string {
	if !agentName.MatchString(agent) || !toolName.MatchString(tool) {
		return ""
	}
	var tools []string
	if a := t.Agents[agent]; a != nil {
		for _, name := range a.Tools {
			tools = append(tools, strconv.Quote(name))
		}
	}
	return t.snippet("agents:",
		"  "+strconv.Quote(agent)+":",
		"    tools: ["+strings.Join(append(tools, strconv.Quote(tool)), ", ")+"]",
	)
}

// SuggestVersion is for version_unsupported and version_unregistered.
func (t *Tenant) SuggestVersion(agent, appVersion, format string) string {
	if !agentName.MatchString(agent) || !versionName.MatchString(appVersion) {
		return ""
	}
	return t.snippet(append([]string{"agents:", "  " + strconv.Quote(agent) + ":"}, versionLines(appVersion, format)...)...)
}

// SuggestAgent is for tool_not_allowed of an agent that the configuration does not know: tools are those that it asked for.
func (t *Tenant) SuggestAgent(agent, appVersion, format string, tools []string) string {
	if !agentName.MatchString(agent) || !versionName.MatchString(appVersion) {
		return ""
	}
	var quoted []string
	for _, tool := range tools {
		if q := strconv.Quote(tool); toolName.MatchString(tool) && !contains(quoted, q) {
			quoted = append(quoted, q)
		}
	}
	lines := []string{"agents:", "  " + strconv.Quote(agent) + ":", "    tools: [" + strings.Join(quoted, ", ") + "]"}
	return t.snippet(append(lines, versionLines(appVersion, format)...)...)
}

func versionLines(appVersion, format string) []string {
	if !contains([]string{FormatOpenAIPython, FormatOpenAIJS, FormatOpaque, FormatNone}, format) {
		format = FormatNone
	}
	return []string{
		"    versions:",
		"      " + strconv.Quote(appVersion) + ":",
		"        intake: open",
		"        states: [{format: " + format + "}]",
		"        resume: pull   # or {url: https://…, secret: secret:NAME}",
	}
}

func (t *Tenant) snippet(lines ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "tenants:\n  %s:\n", strconv.Quote(t.Name))
	for _, line := range lines {
		b.WriteString("    " + line + "\n")
	}
	return b.String()
}
