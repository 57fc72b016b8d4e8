package interactions

import (
	"context"
	"fmt"

	"github.com/slack-go/slack"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/bot"
	"github.com/holdpoint/holdpoint/templates"
)

// eventHome is a person who opens a tab of the app (docs.slack.dev/reference/events/app_home_opened).
const (
	eventHome = "app_home_opened"
	tabHome   = "home"
)

// homeOpened paints the home tab of whoever opened it, after the acknowledgement. The event has no team of the person: it has
// the workspace that the app is installed in, and whether the person is a member of that is read from the mirror.
func (h *Handler) homeOpened(e event) answer {
	by := approvals.Reviewer{UserID: e.user(), TeamID: e.TeamID}
	if e.Event.Tab != tabHome || !userForm.MatchString(by.UserID) {
		return answer{}
	}
	return answer{after: []func(context.Context){func(ctx context.Context) {
		v, err := h.homeOf(ctx, by)
		if err == nil {
			err = h.slack.PublishHome(ctx, by.UserID, v)
		}
		if err != nil {
			h.log.Warn("a home tab could not be painted; it is when it is opened again", "class", string(bot.ClassOf(err)), "error", err)
		}
	}}}
}

// homeOf is what one person's home tab shows. There is time to look somebody up who can't be checked yet. Who may not look gets
// the reason, in the place of what an earlier tab may have shown them.
func (h *Handler) homeOf(ctx context.Context, by approvals.Reviewer) (v slack.HomeTabViewRequest, err error) {
	tenant, err := h.core.TenantOfTeam(ctx, by.TeamID)
	if err != nil {
		return v, fmt.Errorf("whose home tab: %w", err)
	}
	p, err := h.core.Standing(ctx, tenant, by)
	if err == nil && p.Denial == approvals.DenyUncheckable && h.lookUp(ctx, tenant, by.UserID) {
		p, err = h.core.Standing(ctx, tenant, by)
	}
	if err != nil {
		return v, fmt.Errorf("who opened the home tab: %w", err)
	}
	if p.Denial != "" {
		h.refused(ctx, tenant, by, asked{"home", approvals.SurfaceHome}, string(p.Denial))
		return templates.HomeView(templates.Home{Why: whyNot(p)}), nil
	}
	open, err := h.core.Open(ctx, tenant, opened)
	if err != nil {
		return v, fmt.Errorf("what waits: %w", err)
	}
	pauses, err := h.core.Switches(ctx, tenant)
	if err != nil {
		return v, fmt.Errorf("what is paused: %w", err)
	}
	var waiting, recent []approvals.View
	for _, v := range open {
		switch {
		case p.MayDecide(v):
			waiting = append(waiting, v)
		case v.Status != approvals.Pending: // what waits for somebody else is neither
			recent = append(recent, v)
		}
	}
	return templates.HomeView(templates.Home{
		Waiting: cardsUnder(waiting, pauses), Recent: cardsUnder(recent, pauses), Pauses: pausesShown(pauses), More: len(open) == opened,
	}), nil
}
