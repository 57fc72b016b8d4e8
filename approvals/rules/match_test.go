package rules_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/holdpoint/holdpoint/approvals/rules"
)

// withRules is a tenant with two effects and a question, and these rules.
func withRules(t testing.TB, list ...string) *rules.Tenant {
	t.Helper()
	return parse(t, `tenants:
  acme:
    slack: {team: T0ACME, channel: C0APPROVALS}
    admins: {users: [U0ROOT]}
    tools:
      pay: {kind: effect, title: Pay, agent: {}}
      read: {kind: effect, title: Read, agent: {}}
      ask_user: {kind: question, title: "{{.question}}"}
    agents:
      planner: {tools: [pay, read, ask_user], versions: {v1: {states: [{format: none}], resume: pull}}}
    rules:
      - `+strings.Join(list, "\n      - ")+"\n")
}

func ask(name, when string) string {
	return fmt.Sprintf("{name: %s, when: %q, reviewers: {users: [U0ALICE]}, decide_within: 1h, execute_within: 1h}", name, when)
}

func allow(name, when string) string {
	return fmt.Sprintf("{name: %s, when: %q, do: allow, execute_within: 1h}", name, when)
}

func TestMatchTakesTheFirstTrueRule(t *testing.T) {
	t.Parallel()
	tenant := withRules(t,
		ask("large", `tool == "pay" && args.amount > 50`),
		ask("exact", `tool == "pay" && double(args.amount) >= 49 && args.amount in [49, 48]`),
		allow("small", `tool == "pay"`),
		ask("by-agent", `tool == "read" && agent.name == "planner" && agent.path[0] == "outer" && agent.version.startsWith("v1")`),
		ask("by-person", `tool == "read" && ("S0ENG" in requester.groups || requester.id == "U0BOB")`),
		ask("by-target", `target == "file/7"`),
		ask("by-list", `tool == "read" && has(args.tags) && args.tags.exists(t, t == "pii")`),
	)
	for _, c := range []struct {
		name string
		in   rules.Input
		want string
	}{
		{"a float over an int", rules.Input{Tool: "pay", Args: map[string]any{"amount": 50.01}}, "large"},
		{"an equal number", rules.Input{Tool: "pay", Args: map[string]any{"amount": 50.0}}, "small"},
		{"a float that is a whole number", rules.Input{Tool: "pay", Args: map[string]any{"amount": 49.0}}, "exact"},
		{"a json.Number", rules.Input{Tool: "pay", Args: map[string]any{"amount": json.Number("742.18")}}, "large"},
		{"agent", rules.Input{Tool: "read", Agent: rules.AgentInput{Name: "planner", Path: []string{"outer", "inner"}, Version: "v1.2"}, Requester: rules.RequesterInput{Groups: []string{"S0ENG"}}}, "by-agent"},
		{"requester's group", rules.Input{Tool: "read", Requester: rules.RequesterInput{ID: "U0X", Groups: []string{"S0OPS", "S0ENG"}}}, "by-person"},
		{"requester", rules.Input{Tool: "read", Requester: rules.RequesterInput{ID: "U0BOB"}}, "by-person"},
		{"target", rules.Input{Tool: "read", Target: "file/7"}, "by-target"},
		{"nested", rules.Input{Tool: "read", Args: map[string]any{"tags": []any{"x", "pii"}}}, "by-list"},
	} {
		got, err := tenant.Match(c.in)
		if err != nil || got.Rule.Name != c.want || got.Index != got.Rule.Index {
			t.Errorf("%s: got %+v, %v, want rule %s", c.name, got, err, c.want)
		}
	}
	if _, err := tenant.Match(rules.Input{Tool: "read", Args: map[string]any{}}); !errors.Is(err, rules.ErrNoRule) {
		t.Errorf("nothing matches: got %v, want ErrNoRule", err)
	}
	if _, err := tenant.Match(rules.Input{Tool: "drop"}); !errors.Is(err, rules.ErrUnknownTool) {
		t.Errorf("got %v, want ErrUnknownTool", err)
	}
}

// I4: a condition that can't be decided refuses the call; the laxer rule behind it is
// never reached. I24: the error shows no argument.
func TestRuleErrorNeverFallsThrough(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, when, reason string }{
		{"missing field", `args.limit > 5`, "it reads a field that is not there: args.limit (column 5)"},
		{"missing nested field", `args.order.id == "x"`, "it reads a field that is not there: args.order.id"},
		{"missing dynamic field", `args[args.secret] == 1`, "it reads a field that is not there"},
		{"wrong type", `args.secret > 5`, "it doesn't fit the type of a value"},
		{"not a boolean", `args.secret`, "something other than true or false"},
		{"a number is not a boolean", `args.amount`, "something other than true or false"},
		{"division", `int(args.amount) / int(args.zero) > 1`, "it divides by zero"},
		{"past the end", `args.list[5] == 1`, "it reads past the end of a list"},
		{"conversion", `int(args.secret) > 1`, "it could not be evaluated"},
		{"cost", `args.big.all(a, args.big.all(b, a == b))`, "it costs more to evaluate than is allowed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tenant := withRules(t, ask("first", c.when), allow("open", "true"))
			big := make([]any, 3000)
			for i := range big {
				big[i] = 1.0
			}
			_, err := tenant.Match(rules.Input{Tool: "pay", Args: map[string]any{
				"amount": 742.18, "secret": "canary-4711", "zero": 0.0, "list": []any{1.0}, "order": map[string]any{}, "big": big,
			}})
			var refusal *rules.RuleError
			if !errors.As(err, &refusal) || refusal.Rule != "first" {
				t.Fatalf("got %v, want a RuleError of the first rule", err)
			}
			if !strings.Contains(err.Error(), c.reason) {
				t.Errorf("got %q, want %q in it", err, c.reason)
			}
			if strings.Contains(err.Error(), "canary") || strings.Contains(err.Error(), "742") {
				t.Errorf("the error shows an argument: %v", err)
			}
		})
	}
}

func TestRuleMustFitTheToolsKind(t *testing.T) {
	t.Parallel()
	approves := "{name: a, when: 'true', reviewers: {users: [U0ALICE]}, decisions: [approve, reject], decide_within: 1h, execute_within: 1h}"
	responds := "{name: r, when: 'true', reviewers: {users: [U0ALICE]}, decisions: [respond, reject], decide_within: 1h, execute_within: 1h}"
	for _, c := range []struct{ rule, tool, want string }{
		{allow("open", "true"), "ask_user", "a question needs a person's answer"},
		{approves, "ask_user", "don't offer respond"},
		{responds, "pay", "don't offer approve"},
		{approves, "pay", ""},
		{responds, "ask_user", ""},
		{ask("default", "true"), "ask_user", ""},
		{"{name: d, when: 'true', do: deny, message: no}", "ask_user", ""},
	} {
		_, err := withRules(t, c.rule).Match(rules.Input{Tool: c.tool})
		var refusal *rules.RuleError
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s on %s: %v", c.rule, c.tool, err)
		case c.want != "" && (!errors.As(err, &refusal) || !strings.Contains(refusal.Reason, c.want)):
			t.Errorf("%s on %s: got %v, want %q", c.rule, c.tool, err, c.want)
		}
	}
}

func TestDecisionsFor(t *testing.T) {
	t.Parallel()
	rule := &rules.Rule{}
	if got := fmt.Sprint(rule.DecisionsFor(rules.Effect), rule.DecisionsFor(rules.Question)); got != "[approve reject edit] [respond reject]" {
		t.Errorf("defaults: %s", got)
	}
	rule.Decisions = []rules.Decision{rules.Respond, rules.Edit, rules.Approve}
	if got := fmt.Sprint(rule.DecisionsFor(rules.Effect), rule.DecisionsFor(rules.Question)); got != "[edit approve] [respond]" {
		t.Errorf("listed: %s", got)
	}
}

func TestWhyShowsTheRuleAndNoArgument(t *testing.T) {
	t.Parallel()
	tenant := withRules(t, ask("never", "false"), ask("large", `tool == "pay" && args.amount > 50`))
	got, err := tenant.Match(rules.Input{Tool: "pay", Args: map[string]any{"amount": 742.18}})
	if err != nil {
		t.Fatal(err)
	}
	if want := `Rule "large" (2 of 2) is the first whose condition is true: tool == "pay" && args.amount > 50`; got.Why != want {
		t.Errorf("got  %s\nwant %s", got.Why, want)
	}
}

// I5: without a requester, one who must not review can't be told apart.
func TestNeedsRequester(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule string
		want bool
	}{
		{ask("a", "true"), true},
		{strings.Replace(ask("a", "true"), "decide", "exclude: [requester], decide", 1), true},
		{strings.Replace(ask("a", "true"), "decide", "exclude: [editor], decide", 1), false},
		{strings.Replace(ask("a", "true"), "decide", "exclude: [], requesters: {users: [U0BOB]}, decide", 1), true},
		{allow("a", "true"), false},
		{strings.Replace(allow("a", "true"), "do:", "requesters: {users: [U0BOB]}, do:", 1), true},
		{"{name: a, when: 'true', do: deny, message: no}", false},
	} {
		if got := withRules(t, c.rule).Rules[0].NeedsRequester(); got != c.want {
			t.Errorf("%s: %v, want %v", c.rule, got, c.want)
		}
	}
}

func TestUnreadableRuleOnlyRejects(t *testing.T) {
	t.Parallel()
	tenant := parse(t, acmeYAML(t))
	rule := tenant.Unreadable()
	if rule.Name != "unreadable" || rule.Do != rules.Ask || rule.Quorum != 1 || rule.DecideWithin <= 0 || rule.NeedsRequester() {
		t.Errorf("%+v", rule)
	}
	for _, kind := range []rules.Kind{rules.Effect, rules.Question} {
		if got := fmt.Sprint(rule.DecisionsFor(kind)); got != "[reject]" {
			t.Errorf("%s: offers %s", kind, got)
		}
	}
	if by, ok := rule.Reviewers.Permits("U0X", []string{"S0ADMINS"}); !ok || by != "S0ADMINS" {
		t.Error("an admin isn't its reviewer")
	}
	if found, ok := tenant.Rule("unreadable"); !ok || found != rule {
		t.Error("not found by name")
	}
}

func TestReviewersPermits(t *testing.T) {
	t.Parallel()
	r := rules.Reviewers{Users: []string{"U0ALICE"}, Groups: []string{"S0A", "S0B"}}
	for _, c := range []struct {
		user   string
		groups []string
		by     string
	}{
		{"U0ALICE", []string{"S0B"}, "U0ALICE"}, {"U0BOB", []string{"S0X", "S0B"}, "S0B"}, {"U0BOB", nil, ""}, {"", []string{"S0A"}, ""},
	} {
		if by, ok := r.Permits(c.user, c.groups); by != c.by || ok != (c.by != "") {
			t.Errorf("%q %v: got %q %v", c.user, c.groups, by, ok)
		}
	}
	if _, ok := (rules.Reviewers{}).Permits("U0ALICE", []string{"S0A"}); ok {
		t.Error("an empty set permits somebody")
	}
}

func TestTarget(t *testing.T) {
	t.Parallel()
	acme := parse(t, acmeYAML(t))
	deploy, question := acme.Tools["deploy_release"], acme.Tools["ask_user"]
	if got, err := deploy.Target(rules.Input{Args: map[string]any{"environment": "staging"}}); err != nil || got != "service/checkout@staging" {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := question.Target(rules.Input{}); err != nil || got != "ask_user" {
		t.Errorf("default: got %q, %v", got, err)
	}
	raw := change(t, acmeYAML(t), "target: \"'order/' + args.order\"", "target: args.order")
	refund := parse(t, raw).Tools["issue_refund"]
	for name, order := range map[string]any{"a number": 4711.0, "empty": " ", "long": strings.Repeat("canary ", 100), "not text": "canary\xff", "missing": nil} {
		in := rules.Input{Args: map[string]any{"order": order}}
		if name == "missing" {
			in.Args = nil
		}
		_, err := refund.Target(in)
		var bad *rules.TargetError
		if !errors.As(err, &bad) || bad.Tool != "issue_refund" {
			t.Errorf("%s: got %v, want a TargetError", name, err)
		} else if strings.Contains(err.Error(), "canary") || strings.Contains(err.Error(), "4711") {
			t.Errorf("%s: shows an argument: %v", name, err)
		}
	}
}

func TestMatchIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	tenant := withRules(t, ask("large", `args.amount > 50 && args.tags.all(t, t.matches("^[a-z]+$"))`), allow("small", "true"))
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for n := range 50 {
				amount, want := float64(n+i), "small"
				if amount > 50 {
					want = "large"
				}
				got, err := tenant.Match(rules.Input{Tool: "pay", Args: map[string]any{"amount": amount, "tags": []any{"a", "b"}}})
				if err != nil || got.Rule.Name != want {
					t.Errorf("%v: got %+v, %v, want %s", amount, got.Rule, err, want)
				}
			}
		})
	}
	group.Wait()
}

func BenchmarkMatch(b *testing.B) {
	acme := parse(b, acmeYAML(b))
	in := rules.Input{Tool: "issue_refund", Args: map[string]any{"order": "o", "amount": 10.0, "currency": "USD"}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := acme.Match(in); err != nil {
			b.Fatal(err)
		}
	}
}

// The dearest condition that the limit lets through bounds what one intake can burn.
func BenchmarkMatchAtTheCostLimit(b *testing.B) {
	tenant := withRules(b, ask("dear", `args.big.all(a, args.big.all(b, a == b))`))
	big := make([]any, 3000)
	for i := range big {
		big[i] = 1.0
	}
	in := rules.Input{Tool: "pay", Args: map[string]any{"big": big}}
	for b.Loop() {
		if _, err := tenant.Match(in); err == nil {
			b.Fatal("not stopped")
		}
	}
}
