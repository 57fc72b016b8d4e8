package rules

import (
	"fmt"
	"strings"
	"testing"
)

const advised = `tenants:
  acme:
    slack: {team: T0ACME, channel: C0APPROVALS}
    admins: {users: [U0ROOT]}
    rules:
      - {name: first, when: '%s', %s}
      - {name: rest, when: 'tool == "ask"', reviewers: {users: [U0ANA]}, decide_within: 1h, execute_within: 1h}
    tools:
      deploy:
        kind: effect
        title: Deploy
        retry: opaque
        agent: {}
        schema: {type: object, properties: {env: {enum: [staging, production]}, count: {type: integer}, name: {type: string}}, additionalProperties: false}
      open:
        kind: effect
        title: Open
        retry: opaque
        agent: {}
        schema: {type: object, properties: {name: {type: string}}}
      ask:
        kind: question
        title: Ask
        schema: {type: object, properties: {name: {type: string}}, additionalProperties: false}
    agents:
      a: {tools: [deploy, open, ask], versions: {a/v1: {states: [{format: none}], resume: pull}}}
`

// There is a warning for what can't be meant, at its place, and none where anything is uncertain.
func TestWarnings(t *testing.T) {
	t.Parallel()
	const asks = "reviewers: {users: [U0ANA]}, decide_within: 1h, execute_within: 1h"
	for _, c := range []struct{ when, rest, want string }{
		{`tool == "deploy" && args.env == "production" && args.count > 5 && args.name != "x"`, asks, ""},
		{`true`, asks, `acme.yaml:7:9: tenants.acme.rules[1].when: never reached: rule "first" before it takes every call`},
		{`tool == "ask"`, asks + ", decisions: [approve, reject]", `acme.yaml:6:9: tenants.acme.rules[0].decisions: a call of ask can't be taken under it: its decisions don't offer respond`},
		{`tool == "ask"`, "do: allow, execute_within: 1h", `tenants.acme.rules[0].do: a call of ask can't be taken under it: a question needs a person's answer`},
		{`tool == "deploy" && args.environ == "production"`, asks, `rules[0].when: args.environ is no argument in the schema of deploy`},
		{`tool == "deploy" && has(args.environ)`, asks, `args.environ is no argument in the schema of deploy`},
		{`tool == "deploy" && args["environ"] == "x"`, asks, `args.environ is no argument in the schema of deploy`},
		{`tool in ["deploy", "ask"] && args.environ == "x"`, asks, `args.environ is no argument in the schema of deploy, ask`},
		{`tool == "deploy" && args.count == "5"`, asks, `args.count is compared with a string, and is a number in the schema of deploy`},
		{`tool == "deploy" && 5 < args.name`, asks, `args.name is compared with a number, and is a string in the schema of deploy`},
		{`tool == "deploy" && args.env == "prod"`, asks, `args.env is compared with what is not in the list (enum) in the schema of deploy`},
		// An open schema, another tool that has it, a condition that names no tool: nothing is certain.
		{`tool == "open" && args.anything == 5`, asks, ""},
		{`tool in ["deploy", "ask"] && args.env == "staging"`, asks, ""},
		{`tool in ["deploy", "open"] && args.anything == 5`, asks, ""},
		{`args.anything == 5`, asks, ""},
		{`tool == "deploy" || args.anything == 5`, asks, ""},
		{`tool != "deploy" && args.anything == 5`, asks, ""},
	} {
		cfg, err := Parse([]File{{Name: "acme.yaml", Data: fmt.Appendf(nil, advised, c.when, c.rest)}})
		if err != nil {
			t.Fatalf("%s: %v", c.when, err)
		}
		got := cfg.Warnings()
		switch {
		case c.want == "" && len(got) == 0:
		case c.want != "" && len(got) == 1 && strings.Contains(got[0].Error(), c.want):
		default:
			t.Errorf("%s: %v, want %q", c.when, got, c.want)
		}
	}
}
