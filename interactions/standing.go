package interactions

import (
	"context"
	"time"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/bot"
	"github.com/holdpoint/holdpoint/templates"
)

// member lets a full, active member of a tenant's workspace look at its requests, and says to anybody else why not. A shared
// channel has people of other workspaces in it, and guests: that they see a card doesn't open them the rest.
func (h *Handler) member(ctx context.Context, by approvals.Reviewer, a asked) (tenant string, no *templates.Line) {
	tenant, p, no := h.standing(ctx, by, a)
	if no == nil && p.Denial != "" {
		no = refusal(whyNot(p), templates.Facts{})
		h.refused(ctx, tenant, by, a, string(p.Denial))
	}
	return tenant, no
}

// asked is what somebody wants of what only some may: a fixed word, and where.
type asked struct {
	verb    string
	surface approvals.Surface
}

// refused has it counted and audited that somebody asked for what they may not.
func (h *Handler) refused(ctx context.Context, tenant string, by approvals.Reviewer, a asked, why string) {
	err := h.core.RefusedCommand(ctx, approvals.RefusedCommand{Tenant: tenant, By: approvals.SlackActor(by.UserID), Surface: a.surface, Verb: a.verb, Why: why})
	if err != nil {
		h.log.Warn("a refusal could not be audited", "tenant", tenant, "verb", a.verb, "why", why, "error", err)
	}
}

// standing reads what somebody counts for. Whoever can't be checked, as they were never mirrored or too long ago, is looked up
// first: answers may come late, and the first thing that anybody sees should not be that they are unknown.
func (h *Handler) standing(ctx context.Context, by approvals.Reviewer, a asked) (tenant string, p approvals.Standing, no *templates.Line) {
	tenant, err := h.core.TenantOfTeam(ctx, by.TeamID)
	if err != nil {
		return "", p, h.outsider(ctx, err, by, a)
	}
	p, err = h.core.Standing(ctx, tenant, by)
	if err == nil && p.Denial == approvals.DenyUncheckable && h.lookUp(ctx, tenant, by.UserID) {
		p, err = h.core.Standing(ctx, tenant, by)
	}
	if err != nil {
		return "", p, h.failure(err, approvals.ID{})
	}
	return tenant, p, nil
}

// lookUpTime is less than anybody waits for an answer.
const lookUpTime = 5 * time.Second

// lookUp mirrors one person, and says whether that worked.
func (h *Handler) lookUp(ctx context.Context, tenant, user string) bool {
	ctx, cancel := context.WithTimeout(ctx, lookUpTime)
	defer cancel()
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
	_, p, no := h.standing(ctx, by, asked{"whoami", approvals.SurfaceCommand})
	if no != nil {
		return no.Message()
	}
	groups, known := h.called(ctx, by, p.Names)
	return templates.WhoamiLine(templates.Whoami{
		Person: templates.Person{ID: by.UserID}, Groups: groups, InNone: known && len(groups) == 0, Admin: p.Admin, Active: p.Denial == "", Why: whyNot(p),
	}).Message()
}
