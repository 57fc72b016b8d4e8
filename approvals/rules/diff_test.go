package rules_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdpoint/holdpoint/approvals/rules"
)

func TestDiff(t *testing.T) {
	t.Parallel()
	text := acmeYAML(t)
	old := parse(t, text)
	for _, c := range []struct {
		name, old, new string
		want           []string
		tools          []string
	}{
		{"nothing", "risk: high", "risk: high   # still", nil, nil},
		{"a rule's setting", "[approve, reject, edit]\n        decide_within: 4h", "[approve, reject, edit]\n        decide_within: 2h", []string{"~ rules.production-deploys.decide_within: 4h → 2h"}, nil},
		{"a list", "users: [U0BOB, U0ALICE]", "users: [U0BOB, U0ALICE, U0EVE]", []string{`~ rules.tickets.reviewers.users: ["U0BOB","U0ALICE"] → ["U0BOB","U0ALICE","U0EVE"]`}, nil},
		{"added", "            resume: pull\n", "            resume: pull\n            blocked: reject\n", []string{"+ agents.release-agent.versions.release-agent/v2.blocked: reject"}, nil},
		{"removed", "        risk: high\n", "", []string{"- rules.production-deploys.risk: high"}, nil},
		{"egress", "[10.2.0.0/16]", "[10.2.0.0/16, 10.3.0.0/16]", []string{`~ egress.allow: ["10.2.0.0/16"] → ["10.2.0.0/16","10.3.0.0/16"]`}, nil},
		{"a tool", "timeout: 30s", "timeout: 20s", []string{"~ tools.deploy_release.http.timeout: 30s → 20s"}, []string{"deploy_release"}},
		{"a reference", "env:DEPLOY_AUTH", "secret:DEPLOY", []string{"~ tools.deploy_release.http.headers.Authorization: env:DEPLOY_AUTH → secret:DEPLOY"}, []string{"deploy_release"}},
		{"a message", "Only staging and production exist.", "No.", []string{"~ rules.deploys.message: Only staging and production exist. → No."}, nil},
	} {
		now := parse(t, change(t, text, c.old, c.new))
		var got []string
		for _, change := range rules.Diff(old, now) {
			got = append(got, change.String())
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
		if diff := cmp.Diff(c.tools, rules.ChangedTools(old, now)); diff != "" {
			t.Errorf("%s: tools: %s", c.name, diff)
		}
	}
}

// The first match wins, so the order and a new rule's place are changes.
func TestDiffShowsTheOrderOfRules(t *testing.T) {
	t.Parallel()
	old := withRules(t, ask("a", "true"), ask("b", "false"))
	swapped := withRules(t, ask("b", "false"), ask("a", "true"))
	if got := rules.Diff(old, swapped); len(got) != 1 || got[0].String() != "~ rules (order): a, b → b, a" {
		t.Errorf("got %v", got)
	}
	added := withRules(t, ask("a", "true"), allow("new", "true"), ask("b", "false"))
	var lines []string
	for _, c := range rules.Diff(old, added) {
		lines = append(lines, c.String())
	}
	want := []string{"+ rules (order): new is number 2 of 3", "+ rules.new.do: allow", "+ rules.new.execute_within: 1h", "+ rules.new.name: new", "+ rules.new.when: true"}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Error(diff)
	}
}

func TestDiffOfNewGoneAndLong(t *testing.T) {
	t.Parallel()
	acme := parse(t, acmeYAML(t))
	for _, c := range rules.Diff(nil, acme) {
		if !strings.HasPrefix(c.String(), "+ ") {
			t.Errorf("a new tenant: %s", c)
		}
	}
	if n := len(rules.Diff(acme, nil)); n < 50 {
		t.Errorf("a tenant that is gone has %d changes", n)
	}
	long := func(end string) *rules.Tenant {
		return parse(t, change(t, acmeYAML(t), "Only staging and production exist.", strings.Repeat("x", 300)+end))
	}
	if got := rules.Diff(long("a"), long("b")); len(got) != 1 || len(got[0].String()) > 600 {
		t.Errorf("two long texts: %v", got)
	}
	without := parse(t, change(t, change(t, acmeYAML(t), ", close_ticket]", "]"), ", \"close_ticket\"]", "]"))
	if got := rules.ChangedTools(acme, without); len(got) != 0 {
		t.Errorf("tools %v changed by a rule", got)
	}
}

// Each suggestion, pasted into a configuration that refused, is accepted by Parse,
// and answers the refusal.
func TestSuggestionsCanBePasted(t *testing.T) {
	t.Parallel()
	base := withRules(t, ask("a", `tool == "pay"`))
	head := "tenants:\n  \"acme\":\n    slack: {team: T0ACME, channel: C0APPROVALS}\n    admins: {users: [U0ROOT]}\n"
	body := func(suggestion string) string {
		t.Helper()
		rest, ok := strings.CutPrefix(suggestion, "tenants:\n  \"acme\":\n")
		if !ok {
			t.Fatalf("not under its tenant:\n%s", suggestion)
		}
		return rest
	}
	tool := "    tools: {\"mcp:srv/do-it\": {kind: effect, title: Do, agent: {}}}\n"

	added := parse(t, head+body(base.SuggestTool("mcp:srv/do-it")))
	if added.Tools["mcp:srv/do-it"] == nil {
		t.Error("SuggestTool adds no tool")
	}
	ruled := parse(t, head+tool+body(base.SuggestRule("mcp:srv/do-it")))
	match, err := ruled.Match(rules.Input{Tool: "mcp:srv/do-it"})
	if err != nil || match.Rule.Do != rules.Ask {
		t.Errorf("SuggestRule: %+v, %v", match, err)
	}
	if _, ok := match.Rule.Reviewers.Permits("U0ANY", []string{"S0ADMINS"}); ok {
		t.Error("SuggestRule, pasted unchanged, lets somebody approve")
	}
	version := base.SuggestVersion("planner", "v2@rc.1", rules.FormatOpenAIJS)
	agent := parse(t, head+strings.Replace(body(version), "    versions:", "    tools: []\n        versions:", 1)).Agents["planner"]
	if v, ok := agent.Version("v2@rc.1"); !ok || v.AcceptsState(rules.FormatOpenAIJS, "", "1.22") != nil {
		t.Error("SuggestVersion registers no version that takes the format")
	}
	fresh := parse(t, head+"    tools: {pay: {kind: effect, title: Pay, agent: {}}}\n"+body(base.SuggestAgent("writer", "v1", rules.FormatOpaque, []string{"pay", "pay", "a b"}))).Agents["writer"]
	if v, ok := fresh.Version("v1"); !ok || v.AcceptsState(rules.FormatOpaque, "", "") != nil || !v.Open || !fresh.Allows("pay") {
		t.Error("SuggestAgent registers no agent that may do what it asked for")
	}
	allowed := base.SuggestAllow("planner", "wire")
	if !strings.Contains(allowed, `tools: ["pay", "read", "ask_user", "wire"]`) {
		t.Errorf("SuggestAllow drops tools:\n%s", allowed)
	}
	for _, hostile := range []string{"", "a b", "x: {y}", "a\nb", `a"b`, "a'b", "a}}", strings.Repeat("a", 200)} {
		for _, got := range []string{base.SuggestTool(hostile), base.SuggestRule(hostile), base.SuggestAllow("planner", hostile), base.SuggestAllow(hostile, "pay"), base.SuggestVersion("planner", hostile, "none"), base.SuggestVersion(hostile, "v1", "none"), base.SuggestAgent(hostile, "v1", "none", nil), base.SuggestAgent("planner", hostile, "none", nil)} {
			if got != "" {
				t.Errorf("%q got a suggestion:\n%s", hostile, got)
			}
		}
	}
	if got := base.SuggestVersion("planner", "v2", "x}, {format: opaque"); !strings.Contains(got, "[{format: none}]") {
		t.Errorf("a format was taken as it came:\n%s", got)
	}
}
