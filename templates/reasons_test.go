package templates

import (
	"slices"
	"strings"
	"testing"
)

// reasonCodes are the contract's.
var reasonCodes = strings.Fields(`requester_inactive requester_lost_role agent_not_allowed reviewer_lost_authority policy_changed digest_mismatch
	version_unregistered tool_changed target_changed window_closed paused authority_unreadable superseded withdrawn revoked_by_admin
	decide_expired execute_expired no_effect retries_spent`)

// Wherever a card shows a reason, each code of the contract reads as itself: no two alike, none raw, none as "something changed".
func TestEachReasonHasItsOwnWordsOnTheCard(t *testing.T) {
	t.Parallel()
	places := map[string]func(c *Card, code string){
		"revoked while waiting": func(c *Card, code string) {
			c.Status, c.ReasonCode, c.DecidedBy, c.VotesBy, c.Votes = StatusRevoked, code, "", nil, 0
			c.DecidedAt = noon.AddDate(-99, 0, 0)
		},
		"revoked after approval": func(c *Card, code string) { c.Status, c.ReasonCode = StatusRevoked, code },
		"migration required":     func(c *Card, code string) { c.Status, c.ReasonCode = StatusMigrationRequired, code },
		"failed":                 func(c *Card, code string) { c.Status, c.ReasonCode, c.Ledger = StatusFailed, code, "failed_terminal" },
		"held":                   func(c *Card, code string) { c.Held, c.HeldSince = code, two },
	}
	for place, at := range places {
		seen := map[string]string{}
		for _, code := range append(slices.Clone(reasonCodes), "of_the_future") {
			m := Render(approved(func(c *Card) { at(c, code) }))
			got := blockText(t, m.Blocks, "status")
			if other, twice := seen[got]; twice {
				t.Errorf("%s: %s reads as %s: %q", place, code, other, got)
			}
			seen[got] = code
			if strings.Contains(got, "_") || strings.Contains(m.Text, code) && strings.Contains(code, "_") {
				t.Errorf("%s: %s is shown raw: %q, %q", place, code, got, m.Text)
			}
		}
	}
	// The two ends of time have a state of their own.
	early := blockText(t, Render(refund(func(c *Card) { c.Status, c.ReasonCode = StatusExpired, "decide_expired" })).Blocks, "status")
	late := blockText(t, Render(approved(func(c *Card) { c.Status, c.ReasonCode = StatusExpired, "execute_expired" })).Blocks, "status")
	if early == late || !strings.Contains(early, "obody decided in time") || !strings.Contains(late, "not run in time") {
		t.Errorf("%q and %q", early, late)
	}
}
