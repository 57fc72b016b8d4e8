package rules_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/holdpoint/holdpoint/approvals/rules"
)

// Every refusal names the file, the line and the key.
func TestParseRefuses(t *testing.T) {
	t.Parallel()
	const (
		tickets = "- {name: tickets, when: 'tool in [\"open_ticket\", \"close_ticket\"] && agent.name == \"release-agent\" && requester.id != \"\"', reviewers: {users: [U0BOB, U0ALICE]}, quorum: 2, decide_within: 2d, execute_within: 1h}"
		refund  = "agent: {key_retention: 24h}"
		close_  = "close_ticket: {kind: effect, title: \"Close the ticket\", agent: {}}"
		ask     = "ask_user: {kind: question, title: \"{{.question}}\","
		resume  = "resume: {url: https://agents.acme.example/holdpoint/resume, secret: env:RELEASE_AGENT_SECRET}"
		window  = "window: {days: [mon, tue, wed, thu, fri], from: \"09:00\", to: \"17:00\", zone: Europe/Berlin}"
		body    = "body: {ticket: {weight: \"{{.weight}}\", subject: \"[{operation_key}] {{.subject}}\"}, version: 1.10, urgent: false}"
		lookup  = "lookup: https://deploy.acme.example/releases/{operation_key}"
		queueOf = "url: \"http://10.2.0.7:8080/queues/{{.queue}}/tickets?source=hp\""
		diffURL = "url: \"https://git.acme.example/compare/{{.release}}\""
		headers = "headers: {Authorization: env:DEPLOY_AUTH, X-Source: holdpoint}"
	)
	for _, c := range []struct{ name, old, new, want string }{
		// Form.
		{"unknown key", "do: ask\n", "doo: ask\n", `acme.yaml:11:9: tenants.acme.rules[0].doo: unknown key; did you mean "do"?`},
		{"unknown key far away", "risk: high", "colour: red", "tenants.acme.rules[0].colour: unknown key; known here: name, when"},
		{"unknown top key", "egress: {allow", "egres: {allow", `acme.yaml:2:1: egres: unknown key; did you mean "egress"?`},
		{"repeated key", "do: ask\n", "name: other\n", `acme.yaml:11:9: key "name" is written twice`},
		{"repeated key in flow", "slack: {team: T0ACME,", "slack: {team: T0ACME, team: T0ACME,", `acme.yaml:5:27: key "team" is written twice`},
		{"syntax", "slack: {team: T0ACME,", "slack: {team: [T0ACME,", "acme.yaml:5:"},
		{"anchor", "exclude: [requester, editor]", "exclude: &x [requester, editor]", "acme.yaml:15:18: YAML anchors"},
		{"merge key", "quorum: 1\n", "<<: {quorum: 1}\n", "acme.yaml:14:9: YAML merge keys"},
		{"octal", "quorum: 1\n", "quorum: 0o1\n", "acme.yaml:14:17: is a number in a form"},
		{"null", "reviewers: {users: [U0ALICE], groups: [S0RELEASE]}", "reviewers:", "acme.yaml:12:19: tenants.acme.rules[0].reviewers: must be a mapping, is nothing"},
		{"text for list", "exclude: [requester, editor]", "exclude: requester", "acme.yaml:15:18: tenants.acme.rules[0].exclude: must be a list, is text"},
		{"number for text", "name: production-deploys", "name: 7", "acme.yaml:9:15: tenants.acme.rules[0].name: must be text, is a number"},

		// The tenant.
		{"team", "team: T0ACME", "team: acme", "acme.yaml:5:19: tenants.acme.slack.team: must be a Slack id such as T0ACME"},
		{"no channel", ", channel: C0APPROVALS}", "}", "tenants.acme.slack.channel: is required"},
		{"no admins", "    admins: {users: [U0ROOT], groups: [S0ADMINS]}\n", "", "tenants.acme.admins: is required"},
		{"nobody", "admins: {users: [U0ROOT], groups: [S0ADMINS]}", "admins: {users: []}", "acme.yaml:6:13: tenants.acme.admins: names nobody"},
		{"limits", "open_per_run: 32", "open_per_run: 0", "acme.yaml:7:28: tenants.acme.limits.open_per_run: must be a whole number from 1"},
		{"fraction", "per_minute: 120", "per_minute: 1.5", "tenants.acme.limits.per_minute: must be a whole number"},
		{"egress form", "allow: [10.2.0.0/16]", "allow: [10.2.0.0]", "acme.yaml:2:18: egress.allow[0]: must be a network such as"},
		{"egress host bits", "allow: [10.2.0.0/16]", "allow: [10.2.0.0/16, 10.1.1.1/8]", "egress.allow[1]: has bits after its length; did you mean 10.0.0.0/8?"},
		{"egress metadata", "allow: [10.2.0.0/16]", "allow: [10.2.0.0/16, 169.254.169.254/32]", "overlaps 169.254.0.0/16, which is never opened"},
		{"egress everything", "allow: [10.2.0.0/16]", "allow: [0.0.0.0/0]", "egress.allow[0]: is too wide"},
		{"tenant name", "\n  acme:\n", "\n  ../acme:\n", "acme.yaml:4:3: tenants.../acme: a tenant's name is"},

		// Rules.
		{"no name", "name: production-deploys\n        when", "when", "tenants.acme.rules[0].name: is required"},
		{"reserved name", "name: production-deploys", "name: unreadable", `acme.yaml:9:15: tenants.acme.rules[0].name: "unreadable" is the built-in rule's name`},
		{"same name", "name: small-refunds", "name: refunds", `rule "refunds" is defined twice`},
		{"no condition", "when: 'tool == \"ask_user\"', ", "", "tenants.acme.rules[5].when: is required"},
		{"boolean condition", "when: 'tool == \"ask_user\"'", "when: true", "tenants.acme.rules[5].when: must be text, is true or false"},
		{"condition syntax", "args.environment == \"production\"\n        do", "args.environment ==\n        do", "acme.yaml:10:"},
		{"condition name", "when: tool == \"deploy_release\"", "when: tol == \"deploy_release\"", "acme.yaml:10:15: tenants.acme.rules[0].when: undeclared reference to 'tol'"},
		{"condition field", "requester.id != \"\"", "requester.name != \"\"", "undeclared reference to 'requester.name'"},
		{"condition bare name", "requester.id != \"\"", "size(requester) > 0", "requester has the fields id and groups only"},
		{"condition type", "when: 'tool == \"ask_user\"'", "when: size(tool)", "tenants.acme.rules[5].when: must give bool, gives int"},
		{"condition compares types", "requester.id != \"\"", "requester.id != 7", "found no matching overload"},
		{"condition tool", "tool == \"issue_refund\" && args.amount > 50", "tool == \"isue_refund\" && args.amount > 50", `names the tool "isue_refund", which isn't configured; did you mean "issue_refund"?`},
		{"condition tool in list", "\"open_ticket\", \"close_ticket\"]", "\"open_ticket\", \"close_tickets\"]", `acme.yaml:33:56: tenants.acme.rules[6].when: names the tool "close_tickets"`},
		{"condition agent", "agent.name == \"release-agent\"", "agent.name == \"release_agent\"", `names the agent "release_agent", which isn't configured`},
		{"condition in a block", "&& args.environment == \"staging\"", "&& arg.environment == \"staging\"", "acme.yaml:26:1: tenants.acme.rules[1].when: undeclared reference to 'arg'"},
		{"condition pattern", "requester.id != \"\"", "requester.id.matches(\"(\")", "tenants.acme.rules[6].when: invalid matches argument"},
		{"loops", "requester.id != \"\"", "requester.groups.all(a, requester.groups.all(b, requester.groups.all(c, a == b && b == c)))", "comprehension exceeds nesting limit"},
		{"groups in general", "requester.id != \"\"", "size(requester.groups) > 0", "acme.yaml:33:122: tenants.acme.rules[6].when: asks requester.groups for more than one named group"},
		{"groups by a pattern", "requester.id != \"\"", "requester.groups.exists(g, g.startsWith(\"S0\"))", "asks requester.groups for more than one named group"},
		{"groups by comparison", "requester.id != \"\"", "requester.groups == [\"S0ENG\"]", "asks requester.groups for more than one named group"},
		{"a group beside them", "requester.id != \"\"", "\"S0ENG\" in requester.groups && !(\"S0\" + \"OPS\" in requester.groups)", "asks requester.groups for more than one named group"},
		{"a group by its handle", "requester.id != \"\"", "\"eng\" in requester.groups", "name each by its id, as in `\"S0ENG\" in requester.groups"},
		{"a target by groups", "\"'service/checkout@' + args.environment\"", "'\"S0ENG\" in requester.groups ? \"a\" : \"b\"'", "target: can't depend on requester.groups"},
		{"do", "do: ask\n", "do: maybe\n", "acme.yaml:11:13: tenants.acme.rules[0].do: must be ask or allow or deny"},
		{"no reviewers", "        reviewers: {users: [U0ALICE], groups: [S0RELEASE]}\n", "", "tenants.acme.rules[0].reviewers: is required"},
		{"empty reviewers", "reviewers: {users: [U0BOB, U0ALICE]}", "reviewers: {}", "acme.yaml:33:140: tenants.acme.rules[6].reviewers: names nobody"},
		{"reviewer by name", "users: [U0BOB, U0ALICE]", "users: [bob, U0ALICE]", "tenants.acme.rules[6].reviewers.users[0]: must be a Slack id such as U0ALICE"},
		{"reviewer twice", "users: [U0BOB, U0ALICE]", "users: [U0BOB, U0BOB]", `"U0BOB" is listed twice`},
		{"quorum", "[U0BOB, U0ALICE]}, quorum: 2", "[U0BOB, U0ALICE]}, quorum: 3", "tenants.acme.rules[6].quorum: can't be reached: 3 approvals of 2 reviewers"},
		{"quorum zero", "quorum: 1\n", "quorum: 0\n", "acme.yaml:14:17: tenants.acme.rules[0].quorum: must be a whole number from 1"},
		{"exclude", "exclude: [requester, editor]", "exclude: [requestor]", `tenants.acme.rules[0].exclude[0]: must be one of requester, editor; did you mean "requester"?`},
		{"requesters", "requesters: {groups: [S0ENG]}", "requesters: {groups: []}", "tenants.acme.rules[0].requesters: names nobody"},
		{"decisions", "decisions: [approve, reject, edit]", "decisions: [reject]", "tenants.acme.rules[0].decisions: must offer approve"},
		{"decision", "decisions: [approve, reject, edit]", "decisions: [approve, refuse]", "tenants.acme.rules[0].decisions[1]: must be one of approve, reject, edit, respond"},
		{"no decide_within", "quorum: 2, decide_within: 2d, ", "quorum: 2, ", "tenants.acme.rules[6].decide_within: is required"},
		{"no execute_within", ", decide_within: 2d, execute_within: 1h}", ", decide_within: 2d}", "tenants.acme.rules[6].execute_within: is required"},
		{"duration", "decide_within: 2d", "decide_within: 2 days", "must be a duration such as 90s, 15m, 4h or 2d"},
		{"bare duration", "decide_within: 2d", "decide_within: 2", "tenants.acme.rules[6].decide_within: must be text, is a number"},
		{"negative duration", "decide_within: 2d", "decide_within: 1d-30h", "must be a duration"},
		{"zero duration", "decide_within: 2d", "decide_within: 0s", "must be longer than nothing"},
		{"long duration", "decide_within: 2d", "decide_within: 99999d", "at most 400d"},
		{"allow without execute_within", "do: allow\n        execute_within: 1d12h", "do: allow", "tenants.acme.rules[1].execute_within: is required"},
		{"allow with reviewers", "do: allow\n        execute_within: 1d12h", "do: allow\n        reviewers: {users: [U0ALICE]}\n        execute_within: 1h", "acme.yaml:28:20: tenants.acme.rules[1].reviewers: doesn't apply to `do: allow`"},
		{"allow with message", "do: allow\n        execute_within: 1d12h", "do: allow\n        message: hi\n        execute_within: 1h", "tenants.acme.rules[1].message: only a rule with `do: deny`"},
		{"deny without message", ", do: deny, message: \"Only staging and production exist.\"}", ", do: deny}", "tenants.acme.rules[2].message: is required"},
		{"deny with quorum", "do: deny,", "do: deny, quorum: 2,", "tenants.acme.rules[2].quorum: doesn't apply to `do: deny`"},
		{"channel", "channel: C0RELEASES", "channel: '#releases'", "tenants.acme.rules[0].channel: must be a Slack id"},
		{"risk", "risk: high", "risk: extreme", "tenants.acme.rules[0].risk: must be low or medium or high"},
		{"reconcile", "second_person: true", "second_person: 'yes'", "tenants.acme.rules[0].reconcile.second_person: must be true or false, is text"},
		{"window day", window, strings.Replace(window, "mon", "monday", 1), "acme.yaml:19:25: tenants.acme.rules[0].window.days[0]: must be one of sun"},
		{"window clock", window, strings.Replace(window, "09:00", "9:00", 1), `window.from: must be a time of day such as "09:00"`},
		{"window from 24", window, strings.Replace(window, "09:00", "24:00", 1), "window.from: must be a time of day"},
		{"window empty", window, strings.Replace(window, "17:00", "09:00", 1), "window.to: is the same as from"},
		{"window zone", window, strings.Replace(window, "Europe/Berlin", "Europe/Bärlin", 1), "window.zone: must be a time zone"},
		{"window local", window, strings.Replace(window, "Europe/Berlin", "Local", 1), "window.zone: must be a time zone"},
		{"window without zone", window, strings.Replace(window, ", zone: Europe/Berlin", "", 1), "window.zone: is required"},

		// Tools.
		{"no kind", "{kind: effect, title: \"Close", "{title: \"Close", "tenants.acme.tools.close_ticket.kind: is required"},
		{"kind", "{kind: question,", "{kind: query,", "tenants.acme.tools.ask_user.kind: must be effect or question"},
		{"no title", "title: \"Close the ticket\", ", "", "tenants.acme.tools.close_ticket.title: is required"},
		{"tool name", "close_ticket: {kind", "close ticket: {kind", "tenants.acme.tools.close ticket: a name here is"},
		{"title language", "title: \"Open a ticket: {{.subject}}\"", "title: \"Open {{printf .subject}}\"", "only fields are taken"},
		{"title open", "title: \"Open a ticket: {{.subject}}\"", "title: \"Open {{.subject\"", "has {{ without }}"},
		{"title field", "title: \"Deploy {{.release}} to", "title: \"Deploy {{.relaese}} to", "tenants.acme.tools.deploy_release.title: names .relaese, a field that the schema doesn't have"},
		{"schema", "amount: {type: number}", "amount: {type: numeric}", "tenants.acme.tools.issue_refund.schema: is not a valid JSON Schema"},
		{"schema pattern", "amount: {type: number}", "amount: {pattern: '('}", "tenants.acme.tools.issue_refund.schema: is not a valid JSON Schema"},
		{"schema elsewhere", "amount: {type: number}", "amount: {$ref: 'https://schemas.example/amount.json'}", "a schema can't refer to another document"},
		{"schema file", "amount: {type: number}", "amount: {$ref: 'file:///etc/passwd'}", "a schema can't refer to another document"},
		{"schema of text", ask, ask + " target: \"'x'\",", ""},
		{"schema not of objects", "schema: {type: object, required: [question]", "schema: {type: array, required: [question]", "tenants.acme.tools.ask_user.schema: must take an object"},
		{"target type", "target: \"'order/' + args.order\"", "target: \"size(args)\"", "tenants.acme.tools.issue_refund.target: must give string, gives int"},
		{"target of itself", "target: \"'order/' + args.order\"", "target: target", "undeclared reference to 'target'"},
		{"redact", "redact: [/token]", "redact: [token]", "acme.yaml:40:18: tenants.acme.tools.deploy_release.redact[0]: must be a JSON pointer"},
		{"redact unknown", "redact: [/token]", "redact: [/tokn]", "nothing would be redacted"},
		{"redact wildcard", "redact: [/token]", "redact: [/token/*]", "names no field"},
		{"redact escape", "redact: [/token]", "redact: [/token/~2]", "isn't ~0 or ~1"},
		{"link host", diffURL, strings.Replace(diffURL, "git.acme.example/compare", "{{.release}}.example/compare", 1), "with a fixed host"},
		{"link host end", diffURL, strings.Replace(diffURL, "acme.example/compare/{{", "acme.example{{", 1), "the host must be fixed"},
		{"link scheme", diffURL, "url: \"javascript:alert({{.release}})\"", "must be an http:// or https:// URL"},
		{"link user", diffURL, strings.Replace(diffURL, "https://git", "https://user:canary@git", 1), "acme.yaml:41:35: tenants.acme.tools.deploy_release.links[0].url: the host must be fixed"},
		{"link redacted", diffURL, strings.Replace(diffURL, "{{.release}}", "{{.token}}", 1), "names .token, which is redacted"},
		{"link key", diffURL, strings.Replace(diffURL, "{{.release}}", "{{.relase}}", 1), "a field that the schema doesn't have"},
		{"retry", "retry: queryable", "retry: querable", `must be idempotent or queryable or opaque; did you mean`},
		{"http and agent", refund, refund + "\n        http: {url: https://a.example/}", "tenants.acme.tools.issue_refund.http: an effect has exactly one of http"},
		{"neither", ", agent: {}}", "}", "tenants.acme.tools.close_ticket.http: an effect has exactly one of http"},
		{"question runs", ask, ask + " agent: {},", "tenants.acme.tools.ask_user.agent: doesn't apply to a question"},
		{"question retries", ask, ask + " retry: opaque,", "tenants.acme.tools.ask_user.retry: doesn't apply to a question"},
		{"idempotent agent", refund, "agent: {}", "tenants.acme.tools.issue_refund.agent.key_retention: is required by `retry: idempotent`"},
		{"queryable agent", close_, strings.Replace(close_, "agent", "retry: queryable, agent", 1), "queryable needs http"},
		{"opaque agent with retention", close_, strings.Replace(close_, "{}", "{key_retention: 1h}", 1), "has no meaning for an opaque tool"},
		{"idempotent http", "          key_retention: 24h\n", "", "http.key_retention: is required by `retry: idempotent`"},
		{"idempotent http without key", "          key_header: Idempotency-Key\n", "", "http.key_header: is required by `retry: idempotent`"},
		{"lookup without settle", "          settle: 1m\n", "", "http.settle: lookup and settle belong together"},
		{"lookup without key", lookup, "lookup: https://deploy.acme.example/releases", "http.lookup: must hold {operation_key}"},
		{"queryable without lookup", "          settle: 90s\n", "", "lookup and settle are required by `retry: queryable`"},
		{"queryable without key", body, strings.Replace(body, "[{operation_key}] ", "", 1), "http.key_header: is required by `retry: queryable`"},
		{"opaque with lookup", "retry: idempotent\n        http:", "retry: opaque\n        http:", "http.lookup: has no meaning for an opaque tool"},
		{"method", "method: POST", "method: HEAD", "http.method: must be POST or PUT"},
		{"no url", "          url: https://deploy.acme.example/releases\n", "", "http.url: is required"},
		{"url scheme", queueOf, "url: ftp://files.example/", "http.url: must be an http:// or https:// URL"},
		{"url host", queueOf, "url: \"http://{{.queue}}/\"", "http.url: must be an http:// or https:// URL with a fixed host"},
		{"url port", queueOf, "url: \"http://10.2.0.7:80{{.queue}}/\"", "the host must be fixed"},
		{"url optional field", queueOf, strings.Replace(queueOf, ".queue", ".labels", 1), "names .labels, which the schema doesn't require"},
		{"url climbs", queueOf, strings.Replace(queueOf, "queues/", "queues/../", 1), "the URL's path would climb"},
		{"url fragment", queueOf, strings.Replace(queueOf, "?source=hp", "#x", 1), "must not have a #fragment"},
		{"url private", queueOf, strings.Replace(queueOf, "10.2.0.7", "10.3.0.7", 1), "10.3.0.7 is a private address that egress.allow doesn't open"},
		{"url metadata", queueOf, strings.Replace(queueOf, "10.2.0.7:8080", "169.254.169.254", 1), "is a private address"},
		{"body field", body, strings.Replace(body, ".weight", ".labels", 1), "http.body.ticket.weight: names .labels, which the schema doesn't require"},
		{"body key", body, strings.Replace(body, "{ticket:", "{'{{.queue}}':", 1), "a key takes no placeholders"},
		{"body of GET", body, "method: GET\n          " + body, "http.body: doesn't apply to GET"},
		{"header managed", headers, strings.Replace(headers, "X-Source", "Host", 1), "http.headers.Host: is set by the worker itself"},
		{"header key", headers, strings.Replace(headers, "X-Source", "idempotency-key", 1), "is the key_header"},
		{"header twice", headers, strings.Replace(headers, "X-Source: holdpoint", "authorization: env:OTHER", 1), "is set twice"},
		{"header form", headers, strings.Replace(headers, "X-Source", "'X Source'", 1), "isn't a header's name"},
		{"header break", headers, strings.Replace(headers, "X-Source: holdpoint", "X-Source: \"a\\r\\nB: c\"", 1), "holds a control character"},
		{"timeout", "timeout: 30s", "timeout: 1h", "http.timeout: must be longer than nothing and at most 10m"},

		// References.
		{"literal credential", "Authorization: env:DEPLOY_AUTH", "Authorization: Bearer canary-4711", "acme.yaml:46:36: tenants.acme.tools.deploy_release.http.headers.Authorization: must be a reference"},
		{"own variable", "Authorization: env:DEPLOY_AUTH", "Authorization: env:HOLDPOINT_KEYSET", "HOLDPOINT_* and SLACK_* are this service's own"},
		{"own variable, any case", "Authorization: env:DEPLOY_AUTH", "Authorization: env:slack_bot_token", "HOLDPOINT_* and SLACK_* are this service's own"},
		{"variable form", "Authorization: env:DEPLOY_AUTH", "Authorization: env:A-B", "the name of an environment variable"},
		{"secret path", "Authorization: env:DEPLOY_AUTH", "Authorization: secret:../other/KEY", "after secret: stands a name"},
		{"relative file", "Authorization: env:DEPLOY_AUTH", "Authorization: file:auth.txt", "the absolute path of a plain file"},
		{"file climbs", "Authorization: env:DEPLOY_AUTH", "Authorization: file:/run/../proc/self/environ", "the absolute path of a plain file"},
		{"file of the process", "Authorization: env:DEPLOY_AUTH", "Authorization: file:/proc/self/environ", "the absolute path of a plain file"},
		{"literal resume secret", "secret: env:RELEASE_AGENT_SECRET", "secret: whsec_canary-4711", "tenants.acme.agents.release-agent.versions.release-agent/v1.resume.secret: must be a reference"},

		// Agents.
		{"unknown tool", "tools: [deploy_release, issue_refund,", "tools: [deploy_releases, issue_refund,", `acme.yaml:74:17: tenants.acme.agents.release-agent.tools[0]: "deploy_releases" isn't configured under tools; did you mean "deploy_release"?`},
		{"tool twice", "tools: [deploy_release, issue_refund,", "tools: [deploy_release, deploy_release,", `"deploy_release" is listed twice`},
		{"intake", "intake: closed", "intake: shut", "intake: must be open or closed"},
		{"format", "{format: openai-agents-js}", "{format: openai-agents-ts}", `states[1].format: must be openai-agents-python`},
		{"format twice", "{format: openai-agents-js}", "{format: opaque}", `format "opaque" is listed twice`},
		{"no states", "states: [{format: none}]\n", "states: []\n", "release-agent/v2.states: lists no format"},
		{"sdk", "sdk: \">=0.19.3\"", "sdk: \"~0.19\"", "states[0].sdk: must be a constraint"},
		{"sdk of none", "states: [{format: none}]\n", "states: [{format: none, sdk: \">=1\"}]\n", "states[0].sdk: doesn't apply to `none`"},
		{"schemas of opaque", "{format: opaque}", "{format: opaque, schemas: [\"1.0\"]}", "states[2].schemas: can't be checked"},
		{"schemas form", "schemas: [\"1.13\", 1.10]", "schemas: [latest]", "states[0].schemas[0]: must be a schema version"},
		{"no resume", "            resume: pull\n", "", "release-agent/v2.resume: is required"},
		{"resume word", "resume: pull\n", "resume: push\n", "release-agent/v2.resume: must be `pull`"},
		{"resume without secret", resume, "resume: {url: https://agents.acme.example/r}", "resume.secret: is required"},
		{"resume template", resume, strings.Replace(resume, "https://agents.acme.example/holdpoint/resume", "'https://agents.acme.example/{{.run}}'", 1), "resume.url: takes no placeholders"},
		{"resume private", resume, strings.Replace(resume, "agents.acme.example", "127.0.0.1", 1), "127.0.0.1 is a private address"},
		{"blocked", "blocked: reject", "blocked: drop", "blocked: must be withhold or reject"},
		{"rule form", tickets, "- tickets", "tenants.acme.rules[6]: must be a mapping, is text"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			text := change(t, acmeYAML(t), c.old, c.new)
			_, err := rules.Parse([]rules.File{{Name: "acme.yaml", Data: []byte(text)}})
			if c.want == "" {
				if err != nil {
					t.Fatalf("refused: %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got  %v\nwant %s", err, c.want)
			}
			if strings.Contains(err.Error(), "canary") {
				t.Error("the error repeats a secret")
			}
			var problem *rules.Problem
			if !errors.As(err, &problem) || problem.File != "acme.yaml" || problem.Line < 1 || problem.Col < 1 {
				t.Errorf("not placed: %#v", problem)
			}
		})
	}
}

func TestParseReportsEveryProblemInOrder(t *testing.T) {
	t.Parallel()
	text := change(t, acmeYAML(t), "risk: high", "risk: extreme")
	text = change(t, text, "team: T0ACME", "team: acme")
	text = change(t, text, "blocked: reject", "blocked: drop")
	_, err := rules.Parse([]rules.File{{Name: "acme.yaml", Data: []byte(text)}})
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		t.Fatalf("got %v, want joined problems", err)
	}
	var lines []int
	for _, e := range joined.Unwrap() {
		var p *rules.Problem
		if !errors.As(e, &p) {
			t.Fatalf("%v isn't a Problem", e)
		}
		lines = append(lines, p.Line)
	}
	if len(lines) != 3 || lines[0] != 5 || lines[1] != 21 || lines[2] != 80 {
		t.Errorf("problems at lines %v, want 5, 21, 80", lines)
	}
}

func TestParseSurvivesGarbage(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "\x00", "{", "}", "[", "- - -", ": :", "? ?", "!!", "&", "*", "|", ">", "\"", "'", "a: b: c", "\t", "%YAML 9\n---\n", strings.Repeat("[", 2000), strings.Repeat("a:\n ", 300), "tenants: 7", "tenants: []", "tenants: {acme: }"} {
		if _, err := rules.Parse([]rules.File{{Name: "x", Data: []byte(text)}}); err == nil {
			t.Errorf("%.20q was taken", text)
		}
	}
}
