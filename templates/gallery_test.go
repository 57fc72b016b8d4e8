package templates

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

var (
	noon = time.Date(2026, 7, 24, 12, 0, 0, 0, time.UTC)
	two  = time.Date(2026, 7, 24, 14, 2, 0, 0, time.UTC)
)

// refund is the card that most others vary.
func refund(change ...func(*Card)) Card {
	c := Card{
		ApprovalID: "apr_01k0refund", ShortDigest: "77ab3c9e10f2",
		Tool: "issue_refund", ToolKind: "effect", Executor: "http",
		Title: "Refund 742.18 USD on ORD-18472", Target: "order/ORD-18472", TargetVersion: "etag-17",
		Agent: "support-agent", AgentPath: []string{"support-agent"}, Requester: "slack:U0REQ", AppVersion: "support-agent/v3",
		Reason:    "The parcel never arrived and the customer asked for the money back.",
		Arguments: []byte(`{"order":"ORD-18472","amount":742.18,"currency":"USD"}`),
		Rule:      "refunds", RuleRevision: 12, Risk: "medium",
		Status: StatusPending, Quorum: 1, DecideBy: noon,
		Decisions: []string{DecisionApprove, DecisionReject, DecisionEdit},
		Values: map[string]string{
			ActionApprove: "v1.approve.mac", ActionReject: "v1.reject.mac", ActionDetails: "v1.details.mac", ActionEdit: "v1.edit.mac",
			ActionRespond: "v1.respond.mac", ActionReconcileYes: "v1.yes.mac", ActionReconcileNo: "v1.no.mac",
		},
	}
	for _, f := range change {
		f(&c)
	}
	return c
}

// approved is the refund after Ana's click.
func approved(change ...func(*Card)) Card {
	c := refund(func(c *Card) {
		c.Status, c.Votes, c.VotesBy, c.DecidedBy, c.DecidedAt = StatusApproved, 1, []string{"U0ANA"}, "U0ANA", two
		c.ExecuteBy = two.Add(time.Hour)
	})
	for _, f := range change {
		f(&c)
	}
	return c
}

// gallery is a card for every row of the status table, and for everything that is hard to show.
func gallery() map[string]Card {
	set := func(status string, more ...func(*Card)) Card {
		return approved(append([]func(*Card){func(c *Card) { c.Status = status }}, more...)...)
	}
	undecided := func(status string, more ...func(*Card)) Card {
		return refund(append([]func(*Card){func(c *Card) { c.Status = status }}, more...)...)
	}
	return map[string]Card{
		"pending":        refund(),
		"pending_quorum": refund(func(c *Card) { c.Quorum, c.Votes, c.VotesBy = 2, 1, []string{"U0BO"} }),
		"pending_high_risk": refund(func(c *Card) {
			c.Risk, c.Rule, c.Tool, c.Title = "high", "production-deploys", "deploy_release", "Deploy 2026.07.24 to production"
			c.Target, c.Arguments = "service/checkout@production", []byte(`{"release":"2026.07.24","environment":"production"}`)
		}),
		"pending_question": refund(func(c *Card) {
			c.Tool, c.ToolKind, c.Executor, c.Title = "ask_user", "question", "", "Which of the two addresses is the right one?"
			c.Target, c.TargetVersion, c.Risk, c.Rule = "ask_user", "", "", "questions"
			c.Arguments, c.Decisions = []byte(`{"question":"Which of the two addresses is the right one?"}`), []string{DecisionRespond, DecisionReject}
		}),
		"pending_redacted": refund(func(c *Card) {
			c.Arguments = []byte(`{"release":"2026.07.24","environment":"production","token":"[redacted: 40 chars]","note":"[redacted: 40 chars]"}`)
			c.Redacted = []string{"/token"}
		}),
		"pending_nested": refund(func(c *Card) {
			c.AgentPath = []string{"planner", "research › agent", "database-agent"}
			c.Tool, c.Title, c.Target = "export_rows", "Export 12000 customer records", "database/customers"
			c.Arguments = []byte(`{"table":"customers","filter":{"country":["DE","FR"],"active":true},"limit":12000,"cursor":null}`)
		}),
		"pending_links": refund(func(c *Card) {
			c.Links = []Link{
				{"Order", "https://shop.acme.example/orders/ORD-18472"},
				{"Look-alike", "https://\u0430cme.example/orders"},
				{"Script", "javascript:alert(1)"},
				{"With a name", "https://acme.example@evil.example/"},
			}
		}),
		"pending_long": refund(func(c *Card) {
			c.Arguments = []byte(`{"order":"ORD-18472","note":"` + strings.Repeat("long ", 400) + `","items":[` +
				strings.TrimSuffix(strings.Repeat(`{"sku":"A-1","count":2,"price":19.90},`, 120), ",") + `]}`)
		}),
		"pending_long_title": refund(func(c *Card) { c.Title = "Refund " + strings.Repeat("a very long story ", 20) }),
		"pending_hostile": refund(func(c *Card) {
			c.Tool, c.AgentPath = "issue_refund\u202edesreverof", []string{"agent\nRisk  🟢 low"}
			c.Title = "Refund 1 USD\u202e DSU 81.247\u2066*bold* <!channel> :white_check_mark: Approved"
			c.Target, c.Reason = "`order`/<@U0ANA>\u200b", "*Approved by the CFO*\n> see <https://evil.example|the policy> <!here> https://p\u0430ypal.com/\n```\u0007"
			c.Arguments = []byte("{\"order\":\"x\\\",\\n  \\\"amount\\\": 1\",\"amount\":742.180,\"a\\u202eb\":\"\\u202e\\u0000 ```<!channel>\\u00a0\",\"pad\":\"" +
				strings.Repeat(" ", 60) + "end\",\"host\":\"https://p\u0430ypal.com/login\"}")
		}),
		"pending_unreadable": refund(func(c *Card) {
			c.Title, c.Rule, c.Unreadable = "issue_refund", "unreadable", "duplicate key"
			c.Arguments = []byte("{\"amount\": 5, \"amount\": 5000, \x1b[2K [redacted: 40 chars]}\xff")
		}),
		"pending_multiline": refund(func(c *Card) {
			c.Reason = "Three parcels are late:\n\n- ORD-18472\n- ORD-18473\r\n> Approved by Ana\n" + strings.Repeat("more\n", 9)
		}),
		"pending_right_to_left": refund(func(c *Card) { c.Arguments = []byte(`{"to":"\u05d0\u05d1 5","amount":742.18}`) }),
		"pending_edited_child":  refund(func(c *Card) { c.ParentID, c.Editors = "apr_01k0parent", []string{"U0CY"} }),
		"pending_edited_diff": refund(func(c *Card) {
			c.ParentID, c.Editors = "apr_01k0parent", []string{"U0BO", "U0CY"}
			c.EditDiff = "--- proposed\n+++ edited\n@@ -1,5 +1,5 @@\n {\n   \"order\": \"ORD-18472\",\n-  \"amount\": 900,\n+  \"amount\": 742.18,\n   \"currency\": \"USD\"\n }\n"
		}),
		"pending_edited_long": refund(func(c *Card) {
			c.ParentID, c.Editors = "apr_01k0parent", []string{"U0CY"}
			c.EditDiff = "--- proposed\n+++ edited\n@@ -1,90 +1,90 @@\n" + strings.Repeat("-  \"note\": \"\u202e``` <!channel>\",\n+  \"note\": \"two\",\n", 40) + "@@ -100,2 +100,2 @@\n-  \"last\": 1\n+  \"last\": 2\n"
		}),
		"pending_edited_hidden": refund(func(c *Card) { c.ParentID, c.Editors, c.EditHidden = "apr_01k0parent", []string{"U0CY"}, true }),
		"pending_paused":        refund(func(c *Card) { c.HeldBy, c.HeldDetail = "slack:U0ROOT", "tool issue_refund: incident 4711" }),
		"pending_no_requester":  refund(func(c *Card) { c.Requester, c.Reason = "", "" }),
		"approved":              approved(),
		"approved_agent":        approved(func(c *Card) { c.Executor = "agent" }),
		"approved_by_rule":      approved(func(c *Card) { c.DecidedBy, c.VotesBy, c.Votes, c.Rule = "rule:small-refunds", nil, 0, "small-refunds" }),
		"approved_two":          approved(func(c *Card) { c.Quorum, c.Votes, c.VotesBy = 2, 2, []string{"U0BO", "U0ANA"} }),
		"edited":                undecided(StatusEdited, func(c *Card) { c.ChildID, c.DecidedBy = "apr_01k0child", "U0CY" }),
		"rejected":              undecided(StatusRejected, func(c *Card) { c.DecidedBy, c.DecidedAt, c.Message = "U0ANA", two, "wrong order, see ORD-18473" }),
		"responded":             undecided(StatusResponded, func(c *Card) { c.DecidedBy, c.DecidedAt, c.ToolKind = "U0ANA", two, "question" }),
		"expired":               undecided(StatusExpired, func(c *Card) { c.ReasonCode = "decide_expired" }),
		"expired_approved":      set(StatusExpired, func(c *Card) { c.ReasonCode = "execute_expired" }),
		"revoked": set(StatusRevoked, func(c *Card) {
			c.RevokedBy, c.RevokedAt, c.ReasonCode, c.Message = "U0ROOT", two.Add(time.Minute), "revoked_by_admin", "customer called back"
		}),
		"revoked_block": set(StatusRevoked, func(c *Card) {
			c.RevokedBy, c.RevokedAt, c.ReasonCode = "slack:U0ROOT", two.Add(time.Minute), "reviewer_lost_authority"
		}),
		"pending_no_path":    refund(func(c *Card) { c.AgentPath = nil }),
		"pending_posing":     refund(func(c *Card) { c.AgentPath = []string{"release-agent", "sub"} }),
		"revoked_withdrawn":  undecided(StatusRevoked, func(c *Card) { c.RevokedBy, c.ReasonCode = "agent:support-agent", "withdrawn" }),
		"revoked_superseded": undecided(StatusRevoked, func(c *Card) { c.ReasonCode = "superseded" }),
		"revoked_pending":    undecided(StatusRevoked, func(c *Card) { c.ReasonCode = "policy_changed" }),
		"blocked":            set(StatusRevoked, func(c *Card) { c.ReasonCode = "requester_lost_role" }),
		"held_paused": approved(func(c *Card) {
			c.Held, c.HeldSince, c.HeldBy, c.HeldDetail = "paused", two, "U0ROOT", "tool issue_refund: incident 4711"
		}),
		"held_window": approved(func(c *Card) {
			c.Held, c.HeldSince, c.HeldUntil = "window_closed", two, time.Date(2026, 7, 27, 7, 0, 0, 0, time.UTC)
		}),
		"held_unreadable":    approved(func(c *Card) { c.Held, c.HeldSince = "authority_unreadable", two }),
		"migration_required": undecided(StatusMigrationRequired, func(c *Card) { c.ReasonCode = "tool_changed" }),
		"executing":          set(StatusExecuting, func(c *Card) { c.Ledger, c.Attempt, c.MaxAttempts = "executing", 1, 5 }),
		"executing_revoked": set(StatusExecuting, func(c *Card) {
			c.Ledger, c.Attempt, c.RevokedBy, c.RevokedAt = "executing", 1, "U0ROOT", two
		}),
		"completed": set(StatusCompleted, func(c *Card) {
			c.Ledger, c.Duration, c.Receipt = "succeeded", 1234*time.Millisecond, "re_8842"
		}),
		"retrying": approved(func(c *Card) {
			c.Ledger, c.Attempt, c.MaxAttempts, c.NextTry, c.Error = "failed_retryable", 1, 5, two.Add(time.Minute), "503 from the shop"
		}),
		"failed": set(StatusFailed, func(c *Card) {
			c.Ledger, c.ReasonCode, c.Error = "failed_terminal", "no_effect", "422 order is already refunded"
		}),
		"uncertain": set(StatusUncertain, func(c *Card) {
			c.Ledger, c.Attempt, c.Mention = "uncertain", 1, []string{"U0ROOT", "S0ADMINS", "<!channel>"}
		}),
		"erased":  set(StatusCompleted, func(c *Card) { c.Arguments, c.Title, c.Reason = nil, "", "" }),
		"unknown": undecided("of the future"),
	}
}

func galleryNames() []string { return slices.Sorted(maps.Keys(gallery())) }

// everything that a golden shows of a message or view, one JSON text.
func golden(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		panic(fmt.Sprintf("golden: %v", err))
	}
	return b.Bytes()
}
