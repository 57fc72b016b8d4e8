package rules_test

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/holdpoint/holdpoint/approvals/rules"
)

func acmeYAML(t testing.TB) string {
	t.Helper()
	data, err := os.ReadFile("testdata/acme.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func parse(t testing.TB, yaml string) *rules.Tenant {
	t.Helper()
	config, err := rules.Parse([]rules.File{{Name: "acme.yaml", Data: []byte(yaml)}})
	if err != nil {
		t.Fatal(err)
	}
	return config.Tenants["acme"]
}

// change replaces one place of the text and fails when it isn't exactly one.
func change(t testing.TB, text, from, to string) string {
	t.Helper()
	if n := strings.Count(text, from); n != 1 {
		t.Fatalf("%q occurs %d times, want once", from, n)
	}
	return strings.Replace(text, from, to, 1)
}

func TestParseReadsEverySetting(t *testing.T) {
	t.Parallel()
	acme := parse(t, acmeYAML(t))
	if acme.Slack != (rules.Slack{Team: "T0ACME", Channel: "C0APPROVALS"}) || acme.Limits != (rules.Limits{OpenPerRun: 32, PerMinute: 120, StateBytes: 1 << 20}) {
		t.Errorf("slack %+v, limits %+v", acme.Slack, acme.Limits)
	}
	if diff := cmp.Diff(rules.Reviewers{Users: []string{"U0ROOT"}, Groups: []string{"S0ADMINS"}}, acme.Admins); diff != "" {
		t.Error(diff)
	}
	if len(acme.Egress) != 1 || acme.Egress[0].String() != "10.2.0.0/16" {
		t.Errorf("egress %v", acme.Egress)
	}
	ask, ok := acme.Rule("production-deploys")
	if !ok {
		t.Fatal("no rule production-deploys")
	}
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	want := &rules.Rule{
		Name: "production-deploys", Text: `tool == "deploy_release" && args.environment == "production"`, Do: rules.Ask,
		Reviewers:  rules.Reviewers{Users: []string{"U0ALICE"}, Groups: []string{"S0RELEASE"}},
		Requesters: &rules.Reviewers{Groups: []string{"S0ENG"}}, Quorum: 1, ExcludeRequester: true, ExcludeEditor: true,
		Decisions: []rules.Decision{rules.Approve, rules.Reject, rules.Edit}, DecideWithin: 4 * time.Hour, ExecuteWithin: 15 * time.Minute,
		Window:  &rules.Window{Days: [7]bool{false, true, true, true, true, true, false}, From: 9 * time.Hour, To: 17 * time.Hour, Zone: berlin},
		Channel: "C0RELEASES", Risk: rules.High, SecondPerson: true,
	}
	if diff := cmp.Diff(want, ask, sameTenant...); diff != "" {
		t.Error(diff)
	}
	refunds, _ := acme.Rule("refunds")
	if refunds.Quorum != 2 || refunds.ExcludeRequester || refunds.ExcludeEditor || refunds.Decisions != nil || refunds.NeedsRequester() {
		t.Errorf("refunds: %+v", refunds)
	}
	allow, _ := acme.Rule("staging-deploys")
	if allow.Do != rules.Allow || allow.ExecuteWithin != 36*time.Hour || allow.NeedsRequester() {
		t.Errorf("staging-deploys: %+v", allow)
	}
	deny, _ := acme.Rule("deploys")
	if deny.Do != rules.Deny || deny.Message != "Only staging and production exist." {
		t.Errorf("deploys: %+v", deny)
	}
	deploy := acme.Tools["deploy_release"]
	wantHTTP := &rules.HTTP{
		Method: "POST", URL: "https://deploy.acme.example/releases", KeyHeader: "Idempotency-Key", KeyRetention: 24 * time.Hour,
		Headers: map[string]rules.Ref{"Authorization": {Scheme: rules.EnvScheme, Name: "DEPLOY_AUTH"}, "X-Source": {Scheme: rules.LiteralScheme, Name: "holdpoint"}},
		Lookup:  "https://deploy.acme.example/releases/{operation_key}", Settle: time.Minute, IfMatch: true, Timeout: 30 * time.Second,
	}
	if diff := cmp.Diff(wantHTTP, deploy.HTTP, sameTenant...); diff != "" {
		t.Error(diff)
	}
	if deploy.Executor() != rules.WorkerExecutor || deploy.KeyRetention() != 24*time.Hour || deploy.Retry != rules.Idempotent {
		t.Errorf("deploy_release: %+v", deploy)
	}
	if refund := acme.Tools["issue_refund"]; refund.Executor() != rules.AgentExecutor || refund.KeyRetention() != 24*time.Hour {
		t.Errorf("issue_refund: %+v", refund)
	}
	if ticket := acme.Tools["open_ticket"]; ticket.HTTP.Timeout != 30*time.Second || ticket.Retry != rules.Queryable || ticket.KeyRetention() != 0 {
		t.Errorf("open_ticket: %+v", ticket)
	}
	if question := acme.Tools["ask_user"]; question.Executor() != rules.NoExecutor || question.Retry != "" {
		t.Errorf("ask_user: %+v", question)
	}
	if closed := acme.Tools["close_ticket"]; closed.Retry != rules.Opaque {
		t.Errorf("close_ticket: %+v", closed)
	}
	agent := acme.Agents["release-agent"]
	v1, _ := agent.Version("release-agent/v1")
	if v1.Open || v1.Blocked != rules.RejectRun || v1.Resume.Pull || v1.Resume.Secret.String() != "env:RELEASE_AGENT_SECRET" {
		t.Errorf("v1: %+v", v1)
	}
	v2, _ := agent.Version("release-agent/v2")
	if !v2.Open || v2.Blocked != rules.Withhold || !v2.Resume.Pull {
		t.Errorf("v2: %+v", v2)
	}
	if _, ok := agent.Version("release-agent/v3"); ok || agent.Allows("drop_database") || !agent.Allows("ask_user") {
		t.Error("an agent allows what isn't listed, or not what is")
	}
	if diff := cmp.Diff([]string{"env:DEPLOY_AUTH", "env:RELEASE_AGENT_SECRET"}, acme.LocalReferences()); diff != "" {
		t.Error(diff)
	}
}

var sameTenant = []cmp.Option{
	cmpopts.IgnoreUnexported(rules.Tenant{}, rules.Rule{}, rules.Tool{}, rules.HTTP{}, rules.State{}),
	cmp.Comparer(func(a, b *time.Location) bool { return a.String() == b.String() }),
	cmpopts.EquateComparable(netip.Prefix{}),
}

func TestBodyCompilesToTheSameTenant(t *testing.T) {
	t.Parallel()
	parsed := parse(t, acmeYAML(t))
	compiled, err := rules.Compile("acme", parsed.Body())
	if err != nil {
		t.Fatal(err)
	}
	if string(compiled.Body()) != string(parsed.Body()) {
		t.Errorf("the body changed on the way:\n%s\n%s", parsed.Body(), compiled.Body())
	}
	if diff := cmp.Diff(parsed, compiled, sameTenant...); diff != "" {
		t.Error(diff)
	}
	for name, tool := range parsed.Tools {
		if compiled.Tools[name].Revision() != tool.Revision() {
			t.Errorf("%s: another revision after Compile", name)
		}
	}
	args := []byte(`{"subject":"s","queue":"q","weight":5.00}`)
	a, errA := parsed.Tools["open_ticket"].HTTP.Request(args, "op")
	b, errB := compiled.Tools["open_ticket"].HTTP.Request(args, "op")
	if errA != nil || errB != nil || string(a.Body) != string(b.Body) {
		t.Errorf("another request after Compile: %s %v, %s %v", a.Body, errA, b.Body, errB)
	}
	if diff := rules.Diff(parsed, compiled); len(diff) != 0 {
		t.Errorf("Diff of equal tenants: %v", diff)
	}
}

func TestBodyIgnoresFormatting(t *testing.T) {
	t.Parallel()
	text := acmeYAML(t)
	a := parse(t, text)
	other := change(t, text, "slack: {team: T0ACME, channel: C0APPROVALS}", "slack:   # comment\n      channel: 'C0APPROVALS'\n      team: \"T0ACME\"")
	if b := parse(t, other); string(a.Body()) != string(b.Body()) {
		t.Errorf("formatting changed the body:\n%s\n%s", a.Body(), b.Body())
	}
}

func TestBodyKeepsReferences(t *testing.T) {
	t.Setenv("DEPLOY_AUTH", "Bearer canary-4711")
	if body := string(parse(t, acmeYAML(t)).Body()); !strings.Contains(body, `"env:DEPLOY_AUTH"`) || strings.Contains(body, "canary") {
		t.Error("a body holds a secret, or not its reference")
	}
}

func TestCompileRefusesBrokenBodies(t *testing.T) {
	t.Parallel()
	good := string(parse(t, acmeYAML(t)).Body())
	for name, body := range map[string]string{
		"empty": "", "not JSON": "{", "trailing": good + "{}", "repeated key": `{"tenant":{},"tenant":{}}`,
		"no tenant": "{}", "unknown key": strings.Replace(good, `"tenant":`, `"x":1,"tenant":`, 1),
		"unknown key inside": strings.Replace(good, `"slack":`, `"slak":1,"slack":`, 1),
		"deep":               strings.Repeat("[", 5000),
	} {
		var problem *rules.Problem
		if _, err := rules.Compile("acme", []byte(body)); !errors.As(err, &problem) {
			t.Errorf("%s: got %v, want a Problem", name, err)
		}
	}
	if _, err := rules.Compile("../etc", []byte(good)); err == nil {
		t.Error("a tenant's name that is a path was taken")
	}
}

func TestSeveralFilesAndTenants(t *testing.T) {
	t.Parallel()
	tenant := func(name, extra string) string {
		return "tenants:\n  " + name + ":\n    slack: {team: T0ACME, channel: C0APPROVALS}\n    admins: {users: [U0ROOT]}\n" + extra
	}
	agent := func(secret string) string {
		return "    agents: {a: {tools: [], versions: {v1: {states: [{format: none}], resume: {url: https://a.example/r, secret: '" + secret + "'}}}}}\n"
	}
	config, err := rules.Parse([]rules.File{
		{Name: "a.yaml", Data: []byte("egress: {allow: [10.0.0.0/8]}\n" + tenant("acme", agent("secret:RESUME")))},
		{Name: "b.yaml", Data: []byte(tenant("beta", ""))},
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"acme", "beta"}, config.Names()); diff != "" {
		t.Error(diff)
	}
	if len(config.Tenants["beta"].Egress) != 1 {
		t.Error("egress of another file doesn't cover the tenant")
	}
	for name, c := range map[string]struct {
		files []string
		want  string
	}{
		"twice":         {[]string{tenant("acme", ""), tenant("acme", "")}, "1.yaml:3:5: tenants.acme: is defined twice"},
		"two egress":    {[]string{"egress: {}\n" + tenant("acme", ""), "egress: {}\n"}, "1.yaml:1:9: egress: stands in more than one file"},
		"env of many":   {[]string{tenant("acme", agent("env:S")), tenant("beta", "")}, "0.yaml:5:114: tenants.acme.agents.a.versions.v1.resume.secret: env: works while there is one tenant only"},
		"file of many":  {[]string{tenant("acme", agent("file:/run/s")), tenant("beta", "")}, "file: works while there is one tenant only"},
		"no tenant":     {[]string{"egress: {}\n"}, "there is no tenant"},
		"none":          {nil, "there is no tenant"},
		"two documents": {[]string{tenant("acme", "") + "---\n" + tenant("beta", "")}, "0.yaml:6:1: holds a second YAML document"},
	} {
		var files []rules.File
		for i, text := range c.files {
			files = append(files, rules.File{Name: fmt.Sprintf("%d.yaml", i), Data: []byte(text)})
		}
		if _, err := rules.Parse(files); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}
