package interactions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/slack-go/slack"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/templates"
)

// actionUnpause is the button that ends a pause; its value says which, who was asked, and what they were shown. It carries no authority:
// whoever presses it is checked as an admin again, and the core starts exactly what was listed, or nothing.
const actionUnpause = "hp_unpause"

type pauseEnd struct {
	Scope  string `json:"s"`
	Name   string `json:"n,omitempty"`
	Reason string `json:"r"`
	User   string `json:"u"`
	Listed string `json:"l"`
}

// askUnpause shows what would start, and asks. What an end of a pause sets off can't be taken back.
func (h *Handler) askUnpause(ctx context.Context, tenant, user string, a ask) (templates.Message, error) {
	all, thrown, err := h.paused(ctx, tenant, a)
	if err != nil {
		return templates.Message{}, err
	}
	if !thrown {
		return notPaused(a, all), nil
	}
	under, err := h.core.Reach(ctx, tenant, a.scope, a.name)
	if err != nil {
		return templates.Message{}, err
	}
	held := under.WouldStart
	value, err := json.Marshal(pauseEnd{Scope: a.scope, Name: a.name, Reason: a.reason, User: user, Listed: under.Listed})
	if err != nil {
		return templates.Message{}, err
	}
	if len(value) > templates.MaxButtonValue*3 {
		return templates.Refusal(templates.RefuseUsage, templates.Facts{Detail: "/approvals unpause tenant|agent A|tool T reason"}).Message(), nil
	}
	lines := []line{{said("Unpause "), named(a.subject()), said("? Nothing approved is held by it now.")}}
	if n := len(held); n > 0 {
		lines = each([]line{{said("Unpause "), named(a.subject()), said(fmt.Sprintf("? %d approved would start at once, after being checked again:", n))}}, held)
	}
	m := message(lines...)
	text := func(s string) *slack.TextBlockObject {
		return slack.NewTextBlockObject(slack.PlainTextType, s, false, false)
	}
	yes := slack.NewButtonBlockElement(actionUnpause, string(value), text("Unpause")).WithStyle(slack.StyleDanger)
	m.Blocks = append(m.Blocks, slack.NewActionBlock("unpause", yes))
	return m, nil
}

// unpause ends a pause, once whoever pressed the button turns out to be an admin.
func (h *Handler) unpause(ctx context.Context, id signature, c click) answer {
	var end pauseEnd
	a := ask{}
	if c.view != nil || !c.ephemeral || decode([]byte(c.value), &end) != nil || end.User != c.by.UserID || end.Listed == "" {
		return answer{after: []func(context.Context){h.tell(c, templates.Refusal(templates.RefuseTampered, templates.Facts{}))}}
	}
	a.scope, a.name, a.reason = end.Scope, end.Name, end.Reason
	return answer{after: []func(context.Context){func(ctx context.Context) {
		m := h.endPause(ctx, id, c.by, a, end.Listed)
		if err := h.slack.Respond(ctx, c.respond, m, true); err != nil { // in the place of the question: its button goes
			h.say(c, m)(ctx)
		}
	}}}
}

func (h *Handler) endPause(ctx context.Context, id signature, by approvals.Reviewer, a ask, listed string) templates.Message {
	if again, err := h.replayed(ctx, id); err != nil {
		return h.failure(err, approvals.ID{}).Message()
	} else if again {
		return message(line{said("This was already delivered once, so it was not done again.")})
	}
	tenant, actor, no := h.admin(ctx, by, asked{"unpause", approvals.SurfaceCommand})
	if no != nil {
		return no.Message()
	}
	all, thrown, err := h.paused(ctx, tenant, a)
	if err != nil {
		return h.failure(err, approvals.ID{}).Message()
	}
	if !thrown { // somebody was faster
		return notPaused(a, all)
	}
	s, err := h.core.Suspend(ctx, approvals.SuspendRequest{
		Tenant: tenant, By: actor, Surface: approvals.SurfaceCommand, Scope: a.scope, Name: a.name, Reason: a.reason, Active: false, Listed: listed,
	})
	if errors.Is(err, approvals.ErrListChanged) { // shown anew, and asked anew
		if m, err := h.askUnpause(ctx, tenant, by.UserID, a); err == nil {
			return m
		}
	}
	if err != nil {
		return h.failure(err, approvals.ID{}).Message()
	}
	h.repaint(s.Waiting)
	lines := []line{{said("▶️ Unpaused "), named(a.subject()), said(".")}}
	if len(s.WouldStart) > 0 {
		lines = each(append(lines, line{said(fmt.Sprintf("%d start now, after being checked again:", len(s.WouldStart)))}), s.WouldStart)
	}
	return message(lines...)
}
