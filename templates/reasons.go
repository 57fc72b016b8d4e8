package templates

// Sentence says a reason code of the contract in one sentence for the people who look at the card. An unknown code
// gets a sentence as well, without the code in it.
func Sentence(reasonCode string) string {
	if s, ok := sentences[reasonCode]; ok {
		return s
	}
	return "Something about this request changed, so it can't run."
}

var sentences = map[string]string{
	"requester_inactive":      "The person behind this call is no longer active in the workspace.",
	"requester_lost_role":     "The person behind this call no longer has the role that the rule asks for.",
	"agent_not_allowed":       "The agent, or its key, may no longer use this tool.",
	"reviewer_lost_authority": "Someone who approved this may no longer approve it, so the approvals don't suffice.",
	"policy_changed":          "The rule changed and no longer allows this call.",
	"digest_mismatch":         "The arguments are not the ones that were approved.",
	"version_unregistered":    "This version of the agent or of its saved state is no longer registered.",
	"tool_changed":            "The tool was configured anew after this was proposed.",
	"target_changed":          "The target changed after this was proposed.",
	"window_closed":           "It is outside the hours in which this may run.",
	"paused":                  "An admin paused this.",
	"authority_unreadable":    "We can't check people and groups right now, and nothing runs unchecked.",
	"superseded":              "A newer request of the same run took its place.",
	"withdrawn":               "The agent withdrew it.",
	"revoked_by_admin":        "An admin revoked it.",
	"decide_expired":          "Nobody decided in time.",
	"execute_expired":         "It was approved but could not run in time.",
	"no_effect":               "The tool confirmed that nothing happened.",
	"retries_spent":           "Every attempt failed and none is left.",
}
