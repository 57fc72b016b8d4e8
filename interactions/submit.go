package interactions

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/slack-go/slack"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/templates"
)

// submitted takes a form: one call into the core, and an answer that closes it, marks a field or says why not.
func (h *Handler) submitted(ctx context.Context, id signature, p payload) answer {
	v := p.View
	m, ok := readMetadata(v.Metadata)
	if !ok {
		return answer{status: http.StatusBadRequest}
	}
	c := click{
		value: m.Value, by: approvals.Reviewer{UserID: p.User.ID, TeamID: p.User.TeamID}, surface: approvals.SurfaceModal,
		channel: m.Channel, message: m.Message, view: v,
	}
	if m.User != c.by.UserID { // not the person who opened the form
		return answer{body: noticeInstead("Nothing was decided", templates.Refusal(templates.RefuseTampered, templates.Facts{}))}
	}
	switch v.Callback {
	case templates.ViewReject:
		return h.submit(ctx, id, c, templates.InputReason, approvals.DecideRequest{
			Verb: approvals.Reject, Reason: strings.TrimSpace(v.input(templates.InputReason, templates.InputText)),
		})
	case templates.ViewRespond:
		return h.submit(ctx, id, c, templates.InputAnswer, approvals.DecideRequest{
			Verb: approvals.Respond, Answer: v.input(templates.InputAnswer, templates.InputText),
		})
	case templates.ViewEdit:
		return h.submit(ctx, id, c, templates.InputArguments, approvals.DecideRequest{
			Verb: approvals.Edit, Arguments: editedArguments(v.input(templates.InputArguments, templates.InputText)),
		})
	case templates.ViewReconcileYes, templates.ViewReconcileNo:
		return h.reconciled(ctx, id, c, v.Callback == templates.ViewReconcileYes, strings.TrimSpace(v.input(templates.InputEvidence, templates.InputText)))
	}
	return answer{}
}

// editedArguments are the bytes as typed. Phones and word processors put curly quotes where JSON wants straight ones, so when
// the text is not JSON, and is with straight quotes, that was meant. What comes of it is a new proposal, in everybody's sight.
func editedArguments(typed string) []byte {
	if !json.Valid([]byte(typed)) {
		if straight := straighten(typed); json.Valid([]byte(straight)) {
			return []byte(straight)
		}
	}
	return []byte(typed)
}

func (h *Handler) submit(ctx context.Context, id signature, c click, field string, rq approvals.DecideRequest) answer {
	rq.Surface = approvals.SurfaceModal
	ruling, line := h.decide(ctx, c, rq)
	after := []func(context.Context){h.note(id)}
	if line == nil {
		return answer{body: slack.NewClearViewSubmissionResponse(), after: append(after, h.decided(c, ruling))}
	}
	after = append(after, h.heal(c, ruling))
	if d := ruling.Denial; d != nil {
		switch d.Kind {
		case approvals.DenyReason, approvals.DenyEditInvalid, approvals.DenyEditUnchanged, approvals.DenyEditNoRule:
			return answer{body: fieldError(field, *line), after: after}
		case approvals.DenyPolicy:
			if rq.Verb == approvals.Edit {
				return answer{body: fieldError(field, *line), after: after}
			}
		}
	}
	return answer{body: noticeInstead("Nothing was decided", *line), after: after}
}

// fieldError keeps the form open, with the sentence under the field.
func fieldError(field string, line templates.Line) *slack.ViewSubmissionResponse {
	return slack.NewErrorsViewSubmissionResponse(map[string]string{field: line.Plain()})
}

// noticeInstead puts the sentence in the place of the form.
func noticeInstead(title string, line templates.Line) *slack.ViewSubmissionResponse {
	v := templates.NoticeModal(title, line)
	return slack.NewUpdateViewSubmissionResponse(&v)
}

// reconciled records what an admin found out. It changes what the run is told, so a replay is looked for first.
func (h *Handler) reconciled(ctx context.Context, id signature, c click, happened bool, evidence string) answer {
	if evidence == "" {
		return answer{body: fieldError(templates.InputEvidence, templates.Refusal(templates.RefuseReasonMissing, templates.Facts{}))}
	}
	b, err := approvals.ParseButton(c.value)
	if err != nil {
		return answer{body: noticeInstead("Nothing was recorded", templates.Refusal(templates.RefuseTampered, templates.Facts{}))}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), clickTime)
	defer cancel()
	if again, err := h.replayed(ctx, id); again || err != nil {
		if again {
			return answer{status: http.StatusUnauthorized}
		}
		return answer{body: noticeInstead("Nothing was recorded", *h.failure(err, b.ID))}
	}
	tenant, by, line := h.admin(ctx, c.by, asked{"reconcile", approvals.SurfaceModal})
	if line == nil {
		var v approvals.View
		v, err = h.core.Reconcile(ctx, approvals.ReconcileRequest{
			Tenant: tenant, By: by, Surface: approvals.SurfaceModal, ID: b.ID, Happened: happened, Evidence: evidence,
			Press: &approvals.Press{Button: b, Channel: c.channel, MessageTS: c.message},
		})
		v.ApprovalID = b.ID
		after := []func(context.Context){h.decided(c, approvals.Ruling{View: v})}
		switch {
		case err == nil:
			return answer{body: slack.NewClearViewSubmissionResponse(), after: after}
		case errors.Is(err, approvals.ErrSecondPerson):
			return answer{body: noticeInstead("Noted", h.noted(err, b.ID)), after: after}
		}
		if line = h.failure(err, b.ID); errors.Is(err, approvals.ErrNotUncertain) && v.Status != "" {
			line = refusal(templates.RefuseNotUncertain, templates.Facts{Status: string(v.Status)})
		}
	}
	return answer{body: noticeInstead("Nothing was recorded", *line)}
}

// noted tells an admin whose statement does not settle it alone how it stands.
func (h *Handler) noted(err error, id approvals.ID) templates.Line {
	var alone *approvals.SecondPersonError
	if !errors.As(err, &alone) {
		return *h.failure(err, id)
	}
	f := templates.Facts{Again: alone.Repeated}
	if alone.Opposite != "" {
		f.By = templates.Person{ID: string(approvals.SlackActor(alone.Opposite))}
	}
	return templates.Refusal(templates.RefuseSecondPerson, f)
}

// admin authorises somebody as an admin of their workspace's tenant.
func (h *Handler) admin(ctx context.Context, by approvals.Reviewer, a asked) (tenant string, actor approvals.Actor, line *templates.Line) {
	tenant, err := h.core.TenantOfTeam(ctx, by.TeamID)
	if err != nil {
		return "", "", h.outsider(ctx, err, by, a)
	}
	actor, err = h.core.Admin(ctx, tenant, by)
	switch {
	case errors.Is(err, approvals.ErrNotAdmin):
		h.refused(ctx, tenant, by, a, approvals.RefusedNotAdmin)
	case errors.Is(err, approvals.ErrUncheckable):
		h.refused(ctx, tenant, by, a, string(approvals.DenyUncheckable))
	}
	if err != nil {
		return "", "", h.failure(err, approvals.ID{})
	}
	return tenant, actor, nil
}
