package interactions

import (
	"context"
	"fmt"
	"slices"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/bot"
	"github.com/holdpoint/holdpoint/templates"
)

// pause throws the switch and says what it meets.
func (h *Handler) pause(ctx context.Context, tenant string, by approvals.Actor, a ask) (templates.Message, error) {
	s, err := h.core.Suspend(ctx, approvals.SuspendRequest{
		Tenant: tenant, By: by, Surface: approvals.SurfaceCommand, Scope: a.scope, Name: a.name, Reason: a.reason, Active: true,
	})
	if err != nil {
		return templates.Message{}, err
	}
	h.repaint(s.Waiting)
	lines := []line{{said("⏸ Paused "), named(a.subject()), said(". Nothing of it starts until it is unpaused.")}}
	if n := len(s.InFlight); n > 0 {
		lines = each(append(lines, line{said(fmt.Sprintf("%d already running; these are not stopped:", n))}), s.InFlight)
	}
	if n := len(s.WouldStart); n > 0 {
		lines = each(append(lines, line{said(fmt.Sprintf("%d approved; these are held:", n))}), s.WouldStart)
	}
	if n := len(s.Waiting); n > 0 {
		lines = append(lines, line{said(fmt.Sprintf("%d waiting for a decision; the cards say that it is paused.", n))})
	}
	return message(append(lines, line{said("To lift it: "), named("/approvals unpause " + a.typed() + " reason")})...), nil
}

// typed is the switch as a command has it.
func (a ask) typed() string {
	if a.scope == "tenant" {
		return a.scope
	}
	return a.scope + " " + a.name
}

// paused finds the switch that a command means among those that are thrown.
func (h *Handler) paused(ctx context.Context, tenant string, a ask) (all []approvals.Switch, thrown bool, err error) {
	all, err = h.core.Switches(ctx, tenant)
	return all, slices.ContainsFunc(all, func(p approvals.Switch) bool { return p.Scope == a.scope && p.Name == a.name }), err
}

// notPaused says that there is nothing to lift, and what there is.
func notPaused(a ask, all []approvals.Switch) templates.Message {
	lines := []line{{said("Nothing was changed: "), named(a.subject()), said(" is not paused.")}}
	for _, p := range all {
		lines = append(lines, line{said("Paused now: "), named(ask{scope: p.Scope, name: p.Name}.subject())})
	}
	if len(all) == 0 {
		lines = append(lines, line{said("Nothing else is, either.")})
	}
	return message(lines...)
}

// repaintMost are painted at once; the outbox has all of them.
const repaintMost = 20

// repaint makes the cards of what waits say at once that it is paused, or no longer. The switch is thrown already: a card that lags
// misleads nobody who presses its button.
func (h *Handler) repaint(ids []approvals.ID) {
	h.back.start(func(ctx context.Context) {
		for _, id := range ids[:min(len(ids), repaintMost)] {
			if err := h.cards.Sync(ctx, id); err != nil {
				h.log.Info("cards under a switch follow it later", "class", string(bot.ClassOf(err)), "error", err)
				return
			}
		}
	})
}

// cardsUnder are cards of rows, each with the widest switch that it is under.
func cardsUnder(views []approvals.View, pauses []approvals.Switch) []templates.Card {
	var out []templates.Card
	for _, v := range views {
		c := bot.CardOfView(v)
		if i := slices.IndexFunc(pauses, func(p approvals.Switch) bool { return p.Covers(v) }); i >= 0 && v.Status == approvals.Pending {
			c.HeldBy, c.HeldDetail = pauses[i].By, pauses[i].String()
		}
		out = append(out, c)
	}
	return out
}

func pausesShown(all []approvals.Switch) []templates.Pause {
	var out []templates.Pause
	for _, p := range all {
		out = append(out, templates.Pause{Scope: p.Scope, Name: p.Name, By: p.By, At: p.At, Reason: p.Reason})
	}
	return out
}
