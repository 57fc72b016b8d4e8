package rules_test

import (
	"fmt"

	"github.com/holdpoint/holdpoint/approvals/rules"
)

func Example() {
	config, err := rules.Parse([]rules.File{{Name: "holdpoint.yaml", Data: []byte(`
tenants:
  acme:
    slack: {team: T0ACME, channel: C0APPROVALS}
    admins: {users: [U0ROOT]}
    tools:
      issue_refund: {kind: effect, title: "Refund {{.amount}} {{.currency}}", target: "'order/' + args.order", agent: {}}
    rules:
      - {name: refunds, when: 'tool == "issue_refund" && args.amount > 50', reviewers: {groups: [S0FINANCE]}, quorum: 2, decide_within: 24h, execute_within: 1h}
      - {name: small-refunds, when: 'tool == "issue_refund"', do: allow, execute_within: 1h}
`)}})
	if err != nil {
		fmt.Println(err)
		return
	}
	acme := config.Tenants["acme"]
	in := rules.Input{Tool: "issue_refund", Args: map[string]any{"amount": 742.18, "currency": "USD", "order": "ORD-18472"}}
	in.Target, _ = acme.Tools["issue_refund"].Target(in)
	match, err := acme.Match(in)
	fmt.Println(acme.Tools["issue_refund"].Title(in.Args), in.Target, match.Rule.Do, match.Rule.Quorum, err)
	fmt.Println(match.Why)
	// Output:
	// Refund 742.18 USD order/ORD-18472 ask 2 <nil>
	// Rule "refunds" (1 of 2) is the first whose condition is true: tool == "issue_refund" && args.amount > 50
}
