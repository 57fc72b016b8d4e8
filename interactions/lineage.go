package interactions

import (
	"context"
	"strconv"

	"github.com/slack-go/slack"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/templates"
)

// related shows the Details of what an edit replaced, or of what replaced it. The press proves the card it was made on; the other
// request is the one that the row names, and nothing can be decided here: its own card is where that is done.
func (h *Handler) related(c click) answer {
	return answer{after: []func(context.Context){func(ctx context.Context) {
		h.present(ctx, c, "Details", func(ctx context.Context) slack.ModalViewRequest { return h.relatedView(ctx, c, c.action, 0) })
	}}}
}

func (h *Handler) relatedView(ctx context.Context, c click, action string, page int) slack.ModalViewRequest {
	f, line := h.card(ctx, c)
	if line == nil {
		of := metadata{Value: c.value, Channel: f.Card.Channel, Message: f.Card.MessageTS, User: c.by.UserID, Related: action}
		id := f.ParentID
		if action == templates.ActionReplacement {
			id = f.ChildID
		}
		if id == nil {
			return templates.NoticeModal("Details", *refusal(templates.RefuseTampered, templates.Facts{}))
		}
		other, err := h.core.CardFacts(ctx, *id)
		if err == nil && other.Tenant != f.Tenant {
			err = approvals.ErrNotFound
		}
		if err == nil {
			var e approvals.Explanation
			if e, err = h.core.Explain(ctx, f.Tenant, *id); err == nil {
				other.Card.MACKey = nil // no values, so nothing to press
				return detailsOf(other, e, page, of.String())
			}
		}
		line = h.failure(err, *id)
	}
	return templates.NoticeModal("Details", *line)
}

// turned is the page of a Details modal that somebody turned to.
func (h *Handler) turned(ctx context.Context, c click, m metadata, page string) (v slack.ModalViewRequest, ok bool) {
	n, err := strconv.Atoi(page)
	if err != nil {
		return v, false
	}
	c.value = m.Value
	switch m.Related {
	case templates.ActionOriginal, templates.ActionReplacement:
		return h.relatedView(ctx, c, m.Related, n), true
	}
	return h.detailsView(ctx, c, n), true
}
