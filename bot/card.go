package bot

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/templates"
)

// CardOf copies a row into what its card shows. It is pure: the same row gives the same card (I27), with signed values for
// what can be done now.
func CardOf(f approvals.CardFacts) templates.Card {
	c := cardOfView(f.View)
	c.HeldBy, c.HeldDetail = f.HeldBy, f.HeldDetail
	c.HeldUntil, c.MaxAttempts = at(f.HeldUntil), f.MaxAttempts
	c.Mention = f.Admins
	if len(f.Card.MACKey) > 0 && f.Card.Channel != "" {
		c.Values = values(f)
	}
	return c
}

// CardOfView is the card without anything to press: for lists, audit trails and answers to commands.
func CardOfView(v approvals.View) templates.Card { return cardOfView(v) }

func cardOfView(v approvals.View) templates.Card {
	c := templates.Card{
		ApprovalID: v.ApprovalID.String(), ShortDigest: v.ShortDigest(),
		Tool: v.Tool, ToolKind: v.Kind, Executor: v.Executor, Target: v.Target, TargetVersion: v.TargetVersion,
		Agent: v.Agent, AgentPath: v.AgentPath, Requester: v.Requester, AppVersion: v.AppStateVersion, Unreadable: v.Unreadable,
		Rule: v.Rule, RuleRevision: v.ConfigRevision, Risk: v.Scope.Risk,
		Status: string(v.Status), Held: string(v.Held), HeldSince: at(v.HeldSince),
		Quorum: v.Needs(), Editors: v.Editors, DecideBy: v.DecideBy,
		DecidedBy: v.DecidedBy, DecidedAt: at(v.DecidedAt), RevokedBy: v.RevokedBy, RevokedAt: at(v.RevokedAt),
		ReasonCode: string(v.ReasonCode), Message: v.Message, Receipt: v.Receipt, Decisions: v.Scope.Decisions,
		EditDiff: v.EditDiff, EditHidden: v.ParentID != nil && v.EditDiff == "",
	}
	if v.ParentID != nil {
		c.ParentID = v.ParentID.String()
	}
	if v.ChildID != nil {
		c.ChildID = v.ChildID.String()
	}
	if v.Status != approvals.Pending {
		c.ExecuteBy = v.ExpiresAt // the deadline in force
	}
	for _, vote := range v.Votes {
		if vote.Approves() { // not those that a block voided
			c.Votes++
			c.VotesBy = append(c.VotesBy, vote.By)
		}
	}
	if v.StartedAt != nil && v.EndedAt != nil {
		c.Duration = v.EndedAt.Sub(*v.StartedAt)
	}
	if l := v.Ledger; l != nil {
		c.Ledger, c.Attempt, c.NextTry, c.Error = string(l.State), l.Attempts, at(l.NextTryAt), l.Error
	}
	snapshot(&c, v.Snapshot)
	return c
}

// snapshot is what the reviewer sees; one that was erased or can't be read leaves the card without arguments, on which
// nothing can be approved.
func snapshot(c *templates.Card, raw []byte) {
	var s approvals.Snapshot
	if len(raw) == 0 || json.Unmarshal(raw, &s) != nil {
		return
	}
	c.Title, c.Reason, c.Redacted = s.Title, s.Reason, s.Redacted
	c.Arguments = s.Arguments
	if c.Unreadable != "" {
		c.Arguments = []byte(s.Raw)
	}
	for _, l := range s.Links {
		c.Links = append(c.Links, templates.Link{Text: l.Text, URL: l.URL})
	}
}

func at(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

// An option of the overflow menu carries its verb before the signed value, as both options share the action id. The verb
// needs no signature: whoever may press one button may press the other, and Decide checks what is offered.
const (
	markEdit    = "e"
	markRespond = "r"
)

func values(f approvals.CardFacts) map[string]string {
	v := approvals.EncodeButton(f.Card.MACKey, f.Card.Channel, f.ApprovalID, f.Digest, f.Version)
	return map[string]string{
		templates.ActionApprove: v, templates.ActionReject: v, templates.ActionDetails: v,
		templates.ActionEdit: markEdit + v, templates.ActionRespond: markRespond + v,
		templates.ActionReconcileYes: v, templates.ActionReconcileNo: v,
	}
}

// SplitValue takes the verb off a value: edit, respond, or none.
func SplitValue(raw string) (verb approvals.Verb, value string) {
	const form = "hp"
	if v, ok := strings.CutPrefix(raw, markEdit); ok && strings.HasPrefix(v, form) {
		return approvals.Edit, v
	}
	if v, ok := strings.CutPrefix(raw, markRespond); ok && strings.HasPrefix(v, form) {
		return approvals.Respond, v
	}
	return "", raw
}
