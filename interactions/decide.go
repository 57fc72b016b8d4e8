package interactions

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/templates"
)

// clickTime leaves room to answer within Slack's three seconds.
const clickTime = 2500 * time.Millisecond

// decide is the one call of a decision. line is nil when it was taken, and else what to tell the clicker; what is unknown is
// never told as "nothing happened" (I17).
func (h *Handler) decide(ctx context.Context, c click, rq approvals.DecideRequest) (r approvals.Ruling, line *templates.Line) {
	button, err := approvals.ParseButton(c.value)
	if err != nil {
		return r, refusal(templates.RefuseTampered, templates.Facts{})
	}
	rq.DecisionID, rq.Button, rq.By = approvals.NewDecisionID(), button, c.by
	rq.Channel, rq.MessageTS = c.channel, c.message
	// A client that hangs up does not take a decision back.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), clickTime)
	defer cancel()
	r, err = h.core.Decide(ctx, rq)
	switch {
	case err != nil:
		return r, h.failure(err, button.ID)
	case r.Applied:
		return r, nil
	case r.Denial == nil:
		h.log.Error("the core neither took nor refused a decision", approvals.LogIDs(button.ID, "", "", ""))
		return r, refusal(templates.RefuseInternal, templates.Facts{})
	}
	code, facts := denial(r, rq.Verb, c.by)
	h.nameGroups(ctx, r.Denial, c.by, &facts)
	return r, refusal(code, facts)
}

func refusal(code templates.RefusalCode, f templates.Facts) *templates.Line {
	l := templates.Refusal(code, f)
	return &l
}

// failure turns an error of the core into one sentence. What is not expected is logged once, here, under a reference that the
// person is given.
func (h *Handler) failure(err error, id approvals.ID) *templates.Line {
	switch {
	case errors.Is(err, approvals.ErrNotFound):
		return refusal(templates.RefuseNotFound, templates.Facts{ApprovalID: id.String()})
	case errors.Is(err, approvals.ErrNotAdmin):
		return refusal(templates.RefuseNotAdmin, templates.Facts{})
	case errors.Is(err, approvals.ErrUncheckable):
		return refusal(templates.RefuseCantCheck, templates.Facts{})
	case errors.Is(err, approvals.ErrSecondPerson):
		return refusal(templates.RefuseSecondPerson, templates.Facts{})
	case errors.Is(err, approvals.ErrTampered):
		return refusal(templates.RefuseTampered, templates.Facts{})
	case errors.Is(err, approvals.ErrNotUncertain):
		return refusal(templates.RefuseNotUncertain, templates.Facts{})
	case errors.Is(err, approvals.ErrUnavailable), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		h.log.Warn("a request of Slack's could not be served in time", "error", err)
		return refusal(templates.RefuseUnclear, templates.Facts{})
	}
	reference := uuid.NewString()[:8]
	h.log.Error("a request of Slack's failed", "reference", reference, "error", err)
	return refusal(templates.RefuseInternal, templates.Facts{Detail: reference})
}

// denials names each kind's sentence.
var denials = map[approvals.DenialKind]templates.RefusalCode{
	approvals.DenyNotReviewer: templates.RefuseNotReviewer, approvals.DenyIneligible: templates.RefuseOutsider,
	approvals.DenyBlocked: templates.RefuseBlocked, approvals.DenyRequester: templates.RefuseRequester,
	approvals.DenyEditor: templates.RefuseEditor, approvals.DenyAlreadyVoted: templates.RefuseVoted,
	approvals.DenyVoteVoid: templates.RefuseVoteVoid,
	approvals.DenyDecided:  templates.RefuseDecided, approvals.DenyExpired: templates.RefuseExpired,
	approvals.DenyChanged: templates.RefuseStale, approvals.DenyTampered: templates.RefuseTampered,
	approvals.DenyNotYet: templates.RefuseOneMoment, approvals.DenyUncheckable: templates.RefuseCantCheck,
	approvals.DenyVerb: templates.RefuseNotOffered, approvals.DenyEditInvalid: templates.RefuseEditInvalid,
	approvals.DenyEditUnchanged: templates.RefuseEditUnchanged, approvals.DenyEditNoRule: templates.RefuseEditNoRule,
	approvals.DenyPolicy: templates.RefuseNotOffered,
	approvals.DenyReason: templates.RefuseReasonMissing,
}

// denial turns a refused decision into a sentence with its facts, from the row that the same call read (I8).
func denial(r approvals.Ruling, verb approvals.Verb, by approvals.Reviewer) (templates.RefusalCode, templates.Facts) {
	d, v := r.Denial, r.View
	code, ok := denials[d.Kind]
	if !ok {
		code = templates.RefuseInternal
	}
	if d.Kind == approvals.DenyPolicy && verb == approvals.Edit {
		code = templates.RefuseEditNobody
	}
	f := templates.Facts{Decision: string(verb), Status: string(v.Status)}
	if !v.ApprovalID.IsZero() {
		f.ApprovalID = v.ApprovalID.String()
	}
	switch d.Kind {
	case approvals.DenyNotReviewer: // see nameGroups
		f.Has, f.Needs = d.Have, d.NeedHandles
	case approvals.DenyAlreadyVoted:
		for _, vote := range v.Votes {
			if vote.By == string(approvals.SlackActor(by.UserID)) {
				f.Ago = d.At.Sub(vote.At)
			}
		}
	case approvals.DenyDecided:
		f.By, f.Ago = outcome(v, d.At)
	case approvals.DenyExpired:
		f.Ago = d.At.Sub(v.ExpiresAt)
	case approvals.DenyEditInvalid:
		f.Detail = d.Detail
		if d.Pointer != "" {
			f.Detail = d.Pointer + ": " + d.Detail
		}
	}
	return code, f
}

// outcome is who ended a request and how long ago.
func outcome(v approvals.View, now time.Time) (templates.Person, time.Duration) {
	since := func(t *time.Time) time.Duration {
		if t == nil {
			return 0
		}
		return now.Sub(*t)
	}
	switch v.Status {
	case approvals.Revoked, approvals.MigrationRequired:
		return templates.Person{ID: v.RevokedBy}, since(v.RevokedAt)
	case approvals.Expired:
		return templates.Person{}, now.Sub(v.ExpiresAt)
	}
	return templates.Person{ID: v.DecidedBy}, since(v.DecidedAt)
}
