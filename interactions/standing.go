package interactions

import (
	"context"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/bot"
	"github.com/holdpoint/holdpoint/templates"
)

// member lets a full, active member of a tenant's workspace look at its requests, and says to anybody else why not. A shared
// channel has people of other workspaces in it, and guests: that they see a card doesn't open them the rest.
func (h *Handler) member(ctx context.Context, by approvals.Reviewer) (tenant string, no *templates.Line) {
	tenant, p, no := h.standing(ctx, by)
	if no == nil && p.Denial != "" {
		no = refusal(whyNot(p), templates.Facts{})
	}
	return tenant, no
}

// standing reads what somebody counts for. Whoever can't be checked, as they were never mirrored or too long ago, is looked up
// in the background: the next try gets a better answer.
func (h *Handler) standing(ctx context.Context, by approvals.Reviewer) (tenant string, p approvals.Standing, no *templates.Line) {
	tenant, err := h.core.TenantOfTeam(ctx, by.TeamID)
	if err != nil {
		return "", p, h.outsider(err)
	}
	p, err = h.core.Standing(ctx, tenant, by)
	if err != nil {
		return "", p, h.failure(err, approvals.ID{})
	}
	if p.Denial == approvals.DenyUncheckable {
		h.back.start(func(ctx context.Context) { h.lookUp(ctx, tenant, by.UserID) })
	}
	return tenant, p, nil
}

// lookUp mirrors one person, and says whether that worked.
func (h *Handler) lookUp(ctx context.Context, tenant, user string) bool {
	err := h.directory.Fresh(ctx, tenant, nil, []string{user}, 0)
	if err != nil {
		h.log.Warn("somebody could not be looked up", "tenant", tenant, "class", string(bot.ClassOf(err)), "error", err)
	}
	return err == nil
}

// whyNot is the refusal of whoever doesn't count; "" for the others.
func whyNot(p approvals.Standing) templates.RefusalCode {
	if p.Denial == "" {
		return ""
	}
	if code, ok := denials[p.Denial]; ok {
		return code
	}
	return templates.RefuseInternal
}

// whoami tells people what they count for: also those who may not look, since it says only what is known of themselves.
func (h *Handler) whoami(ctx context.Context, by approvals.Reviewer) templates.Message {
	_, p, no := h.standing(ctx, by)
	if no != nil {
		return no.Message()
	}
	return templates.WhoamiLine(templates.Whoami{
		Person: templates.Person{ID: by.UserID}, Groups: p.Names, Admin: p.Admin, Active: p.Denial == "", Why: whyNot(p),
	}).Message()
}
