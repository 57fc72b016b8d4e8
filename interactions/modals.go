package interactions

import (
	"context"
	"errors"
	"time"

	"github.com/slack-go/slack"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/bot"
	"github.com/holdpoint/holdpoint/templates"
)

// form makes a view from a card's facts, or says why not.
type form struct {
	title string
	admin bool // for the tenant's admins alone, which is said before the form is filled in; what is submitted is checked again
	make  func(f approvals.CardFacts, metadata string) (slack.ModalViewRequest, *templates.Line)
}

var (
	rejectForm = form{"Reject", false, pending("reject", func(c templates.Card, _ approvals.CardFacts, m string) slack.ModalViewRequest {
		return templates.RejectModal(c, m)
	})}
	respondForm = form{"Answer", false, pending("respond", func(c templates.Card, _ approvals.CardFacts, m string) slack.ModalViewRequest {
		return templates.RespondModal(c, m)
	})}
	editForm = form{"Edit", false, pending("edit", func(c templates.Card, _ approvals.CardFacts, m string) slack.ModalViewRequest {
		v, _ := templates.EditModal(c, c.Arguments, m)
		return v
	})}
	happenedForm = form{"It happened", true, reconciling(true)}
	didNotForm   = form{"It did not happen", true, reconciling(false)}
)

// pending keeps people from filling in a form for what is already decided. It is a kindness: Decide is what counts.
func pending(verb string, build func(templates.Card, approvals.CardFacts, string) slack.ModalViewRequest) func(approvals.CardFacts, string) (slack.ModalViewRequest, *templates.Line) {
	return func(f approvals.CardFacts, m string) (slack.ModalViewRequest, *templates.Line) {
		if f.Status != approvals.Pending {
			by, ago := outcome(f.View, f.Now)
			return slack.ModalViewRequest{}, refusal(templates.RefuseDecided, templates.Facts{Decision: verb, Status: string(f.Status), By: by, Ago: ago})
		}
		return build(bot.CardOf(f), f, m), nil
	}
}

func reconciling(happened bool) func(approvals.CardFacts, string) (slack.ModalViewRequest, *templates.Line) {
	return func(f approvals.CardFacts, m string) (slack.ModalViewRequest, *templates.Line) {
		if f.Status != approvals.Uncertain {
			return slack.ModalViewRequest{}, refusal(templates.RefuseNotUncertain, templates.Facts{Status: string(f.Status)})
		}
		return templates.ReconcileModal(bot.CardOf(f), happened, m), nil
	}
}

// form answers at once and then opens a form for the card that was pressed.
func (h *Handler) form(c click, fm form) answer {
	return answer{after: []func(context.Context){func(ctx context.Context) {
		h.present(ctx, c, fm.title, func(ctx context.Context) slack.ModalViewRequest {
			f, line := h.card(ctx, c)
			if line == nil && fm.admin {
				_, _, line = h.admin(ctx, c.by, c.asks())
			}
			var v slack.ModalViewRequest
			if line == nil {
				v, line = fm.make(f, metadata{Value: c.value, Channel: f.Card.Channel, Message: f.Card.MessageTS, User: c.by.UserID}.String())
			}
			if line != nil {
				return templates.NoticeModal(fm.title, *line)
			}
			return v
		})
	}}}
}

// details shows everything about a card. Asked from an answer that only the clicker sees (/approvals show), which is nobody's
// card, it speaks for the stored one.
func (h *Handler) details(c click) answer {
	return answer{after: []func(context.Context){func(ctx context.Context) {
		h.present(ctx, c, "Details", func(ctx context.Context) slack.ModalViewRequest { return h.detailsView(ctx, c, 0) })
	}}}
}

func (h *Handler) detailsView(ctx context.Context, c click, page int) slack.ModalViewRequest {
	f, line := h.card(ctx, c)
	if line == nil {
		e, err := h.core.Explain(ctx, f.Tenant, f.ApprovalID)
		if err == nil {
			m := metadata{Value: c.value, Channel: f.Card.Channel, Message: f.Card.MessageTS, User: c.by.UserID}
			return detailsOf(f, e, page, m.String())
		}
		line = h.failure(err, f.ApprovalID)
	}
	return templates.NoticeModal("Details", *line)
}

func detailsOf(f approvals.CardFacts, e approvals.Explanation, page int, metadata string) slack.ModalViewRequest {
	return templates.DetailsModal(bot.DetailsOf(f, e, page, metadata))
}

// turnPage replaces the Details modal by another page of it.
func (h *Handler) turnPage(c click, m metadata, page string) func(context.Context) {
	return func(ctx context.Context) {
		v, ok := h.turned(ctx, c, m, page)
		if !ok {
			return
		}
		if err := h.slack.UpdateView(ctx, bot.View{ID: c.view.ID, Hash: c.view.Hash}, v); err != nil {
			h.log.Warn("a page could not be turned", "class", string(bot.ClassOf(err)), "error", err)
		}
	}
}

// card reads the facts of the card that was pressed, for the eyes of a full, active member of its tenant's workspace. A message
// that is not the stored card shows nothing: what was forwarded is no way in.
func (h *Handler) card(ctx context.Context, c click) (approvals.CardFacts, *templates.Line) {
	b, err := approvals.ParseButton(c.value)
	if err != nil {
		return approvals.CardFacts{}, refusal(templates.RefuseTampered, templates.Facts{})
	}
	tenant, no := h.member(ctx, c.by, c.asks())
	if no != nil {
		return approvals.CardFacts{}, no
	}
	f, err := h.core.CardFacts(ctx, b.ID)
	switch {
	case err != nil:
		return f, h.failure(err, b.ID)
	case f.Tenant != tenant:
		return approvals.CardFacts{}, refusal(templates.RefuseNotFound, templates.Facts{ApprovalID: b.ID.String()})
	}
	press := approvals.Press{Button: b, Channel: c.channel, MessageTS: c.message}
	if c.ephemeral { // an answer that only the clicker sees: nobody's card, so that it speaks for the stored one
		press.Channel, press.MessageTS = f.Card.Channel, f.Card.MessageTS
	}
	if d := f.Bound(press); d != "" {
		return approvals.CardFacts{}, refusal(denials[d], templates.Facts{})
	}
	return f, nil
}

// patience is how long a view may take to make before a placeholder is opened: a trigger lives for three seconds.
const patience = 1200 * time.Millisecond

// present opens a view for a click: on top of the modal that was clicked in, or as a new one. One that takes long is
// preceded by a placeholder, which spends the trigger in time.
func (h *Handler) present(ctx context.Context, c click, title string, build func(context.Context) slack.ModalViewRequest) {
	built := make(chan slack.ModalViewRequest, 1)
	go func() {
		defer func() {
			if recover() != nil {
				h.log.Error("a view could not be made")
				built <- templates.NoticeModal(title, templates.Refusal(templates.RefuseInternal, templates.Facts{}))
			}
		}()
		built <- build(ctx)
	}()
	open := h.slack.OpenView
	if c.view != nil {
		open = h.slack.PushView
	}
	var err error
	select {
	case v := <-built:
		_, err = open(ctx, c.trigger, v)
	case <-h.after(patience):
		var at bot.View
		if at, err = open(ctx, c.trigger, templates.Loading(title)); err == nil {
			err = h.slack.UpdateView(ctx, at, <-built)
		}
	}
	if err != nil {
		h.log.Warn("a view could not be shown", "class", string(bot.ClassOf(err)), "error", err)
		if c.view == nil {
			h.tell(c, templates.Refusal(templates.RefuseBusy, templates.Facts{}))(ctx)
		}
	}
}

// outsider answers somebody of a workspace that is nobody's.
func (h *Handler) outsider(ctx context.Context, err error, by approvals.Reviewer, a asked) *templates.Line {
	if errors.Is(err, approvals.ErrNoTenant) || errors.Is(err, approvals.ErrNotFound) {
		h.refused(ctx, "", by, a, approvals.RefusedStranger)
		return refusal(templates.RefuseOutsider, templates.Facts{})
	}
	return h.failure(err, approvals.ID{})
}
