package approvals

import (
	"regexp"
	"strings"

	"github.com/holdpoint/holdpoint/approvals/secret"
)

// said is the one way in for what a person typed as a reason or evidence. It goes on to the audit trail, the cards and the model, so
// credentials in it are masked before anything is judged or kept (I24).
func said(words string) string { return secret.Mask(strings.TrimSpace(words)) }

var slackUserForm = regexp.MustCompile(`^[UW][A-Z0-9]{2,20}$`)

// personID refuses what is no Slack user id: a name would match nobody, and a kill switch that meets nobody must not look thrown.
func personID(id string) error {
	if slackUserForm.MatchString(id) {
		return nil
	}
	return refuse(CodeInvalidRequest, "%q is not a Slack member id; nothing was changed. Use the id (U… or W…): in Slack, open the person's profile, ⋮, Copy member ID", id)
}
