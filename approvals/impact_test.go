package approvals

import (
	"slices"
	"testing"
	"time"
)

// What a configuration would do to each approval that waits, kind by kind; what the mirror can't tell is said so, and nothing is written.
func TestImpact(t *testing.T) {
	t.Parallel()
	const (
		deploys = `reviewers: {users: [U0ALICE], groups: [S0RELEASE]}, requesters: {groups: [S0ENG]}`
		freeze  = "- {name: freeze, when: 'tool == \"deploy_release\"', do: deny, message: \"Freeze.\"}\n      - {name: deploys,"
	)
	closed := func(w *world) []string {
		from := one[time.Time](w, `SELECT clock_timestamp()`).UTC().Add(6 * time.Hour)
		return []string{"execute_within: 15m", "execute_within: 15m, window: {from: \"" + from.Format("15:04") + "\", to: \"" + from.Add(time.Hour).Format("15:04") + "\", zone: UTC}"}
	}
	fixed := func(pairs ...string) func(*world) []string { return func(*world) []string { return pairs } }
	for what, c := range map[string]struct {
		now               func(*world)
		pairs             func(*world) []string
		pending, approved string // a reason, "held", "unchecked" or "" for not concerned
	}{
		"nothing of it":                 {nil, fixed("open_per_run: 64", "open_per_run: 63"), "", ""},
		"a rule that denies":            {nil, fixed("- {name: deploys,", freeze), "policy_changed", "policy_changed"},
		"no rule":                       {nil, fixed(`when: 'tool == "deploy_release"`, `when: 'false && tool == "deploy_release"`), "policy_changed", "policy_changed"},
		"a condition that errs":         {nil, fixed(`args.environment == "production"'`, `args.region == "eu"'`), "policy_changed", "policy_changed"},
		"requesters without them":       {nil, fixed("requesters: {groups: [S0ENG]}", "requesters: {groups: [S0FINANCE]}"), "requester_lost_role", "requester_lost_role"},
		"requesters, as named":          {nil, fixed("requesters: {groups: [S0ENG]}", "requesters: {users: [U0REQ]}"), "", ""},
		"requesters of an unread group": {nil, fixed("requesters: {groups: [S0ENG]}", "requesters: {groups: [S0UNREAD]}"), "unchecked", "unchecked"},
		"reviewers who count for none":  {nil, fixed(deploys, `reviewers: {users: [U0GUEST, U0GONE, U0OTHER]}, requesters: {groups: [S0ENG]}`), "no_quorum_possible", "reviewer_lost_authority"},
		"the requester alone":           {nil, fixed(deploys, `reviewers: {users: [U0REQ]}, requesters: {groups: [S0ENG]}`), "no_quorum_possible", "reviewer_lost_authority"},
		"reviewers nobody knows":        {nil, fixed(deploys, `reviewers: {users: [U0STRANGE]}, requesters: {groups: [S0ENG]}`), "unchecked", "reviewer_lost_authority"},
		"an unread group of reviewers":  {nil, fixed(deploys, `reviewers: {groups: [S0UNREAD]}, requesters: {groups: [S0ENG]}`), "unchecked", "unchecked"},
		"other reviewers":               {nil, fixed(deploys, `reviewers: {groups: [S0FINANCE]}, requesters: {groups: [S0ENG]}`), "", "reviewer_lost_authority"},
		"a quorum within reach":         {nil, fixed("decide_within: 4h", "decide_within: 4h, quorum: 2"), "", "policy_changed"},
		// alice, bob, carol and U0BLOCKED, whom nobody blocked here; perhaps U0NOBODY, who is in the group and not mirrored; not the requester.
		"a quorum of all":               {nil, fixed("decide_within: 4h", "decide_within: 4h, quorum: 4"), "", "policy_changed"},
		"a quorum perhaps within reach": {nil, fixed("decide_within: 4h", "decide_within: 4h, quorum: 5"), "unchecked", "policy_changed"},
		"a quorum out of reach":         {nil, fixed("decide_within: 4h", "decide_within: 4h, quorum: 6"), "no_quorum_possible", "policy_changed"},
		"a window":                      {nil, closed, "", "held"},
		"another tool":                  {nil, fixed(`"Deploy {{.release}} to`, `"Ship {{.release}} to`), "tool_changed", "tool_changed"},
		"another version":               {nil, fixed("release-agent/v1:", "release-agent/v2:"), "version_unregistered", "version_unregistered"},
		"an agent without the tool":     {nil, fixed("tools: [deploy_release, issue_refund, send_mail, ", "tools: [issue_refund, send_mail, "), "agent_not_allowed", "agent_not_allowed"},
		"a stale mirror":                {func(w *world) { w.age(decideAge + time.Second) }, fixed("decide_within: 4h", "decide_within: 3h"), "unchecked", "unchecked"},
		"a stale group": {func(w *world) {
			w.exec(`UPDATE slack_group SET synced_at = synced_at - interval '1 hour' WHERE group_id = 'S0RELEASE'`)
		}, fixed("users: [U0ALICE], groups: [S0RELEASE]", "groups: [S0RELEASE]"), "unchecked", "unchecked"},
		"a blocked requester": {func(w *world) {
			w.exec(`INSERT INTO blocked_user (tenant_id, user_id, reason, by) VALUES ('acme', $1, 'x', 'x')`, req)
		}, fixed("decide_within: 4h", "decide_within: 3h"), "requester_inactive", "requester_inactive"},
		"a condition over a group":         {nil, fixed(`args.environment == "production"'`, `args.environment == "production" && "S0FINANCE" in requester.groups'`, "name: staging, when: 'tool == \"deploy_release\"'", "name: staging, when: 'tool == \"deploy_release\" && args.environment == \"staging\"'"), "policy_changed", "policy_changed"},
		"a condition over an unread group": {nil, fixed(`args.environment == "production"'`, `args.environment == "production" && !("S0UNREAD" in requester.groups)'`), "unchecked", "unchecked"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			pending, approved := w.propose("deploy_release", production), w.propose("deploy_release", production)
			w.decide(approved.ApprovalID, bob, Approve)
			if c.now != nil {
				c.now(w)
			}
			before := w.dump()
			got, err := w.s.Impact(w.ctx, w.parse(configuration, c.pairs(w)...).Tenants["acme"])
			w.must(err)
			if w.dump() != before {
				t.Error("looking writes")
			}
			of := func(id ID) string {
				has := func(list []View) bool {
					return slices.ContainsFunc(list, func(v View) bool { return v.ApprovalID == id })
				}
				for why, list := range got.Blocked {
					if has(list) {
						return string(why)
					}
				}
				switch {
				case has(got.Held):
					return "held"
				case has(got.Unchecked):
					return "unchecked"
				}
				return ""
			}
			if a, b := of(pending.ApprovalID), of(approved.ApprovalID); a != c.pending || b != c.approved {
				t.Errorf("pending: %q, want %q; approved: %q, want %q", a, c.pending, b, c.approved)
			}
		})
	}
}

// Votes that were cast count towards a quorum, those of people who may no more don't; a voter has no second vote. Without the keyset
// nothing is said to be fine.
func TestImpactOnVotes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	v := w.propose("issue_refund", bigRefund)
	w.decide(v.ApprovalID, dave, Approve)
	for what, c := range map[string]struct {
		pairs []string
		want  bool
	}{
		"as it is":                     {[]string{"quorum: 2", "quorum: 2, risk: low"}, false},
		"three of three":               {[]string{"quorum: 2", "quorum: 3"}, false},
		"four of three":                {[]string{"quorum: 2", "quorum: 4"}, true},
		"the voter and one more":       {[]string{"reviewers: {groups: [S0FINANCE]}", "reviewers: {users: [U0DAVE, U0ERIN]}"}, false},
		"the voter, who has no second": {[]string{"reviewers: {groups: [S0FINANCE]}", "reviewers: {users: [U0DAVE, U0GUEST]}"}, true},
		"one who did not vote":         {[]string{"reviewers: {groups: [S0FINANCE]}", "reviewers: {users: [U0ERIN, U0GONE]}"}, true},
	} {
		got, err := w.s.Impact(w.ctx, w.parse(configuration, c.pairs...).Tenants["acme"])
		w.must(err)
		if blocked := len(got.Blocked[ReasonNoQuorum]) == 1; blocked != c.want || len(got.Unchecked) != 0 {
			t.Errorf("%s: %v, %d unchecked", what, got.Blocked, len(got.Unchecked))
		}
	}
	shell := New(Options{Clicks: w.db, Intake: w.db, Work: w.db})
	got, err := shell.Impact(w.ctx, w.parse(configuration, "quorum: 2", "quorum: 3").Tenants["acme"])
	w.must(err)
	if len(got.Unchecked) != 1 || len(got.Blocked) != 0 {
		t.Fatalf("without the keyset: %v, %d unchecked", got.Blocked, len(got.Unchecked))
	}
}
