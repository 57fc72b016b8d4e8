package interactions

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/bot"
	"github.com/holdpoint/holdpoint/templates"
)

// command takes a verified slash command.
func (h *Handler) command(ctx context.Context, id signature, raw []byte) answer {
	c, err := readCommand(raw, h.appID)
	if err != nil {
		return answer{status: http.StatusBadRequest}
	}
	return h.run(ctx, id, c)
}

// runTime is what a command may take in all; commandPatience is when its answer is promised for later, since Slack wants the
// acknowledgement within three seconds.
const (
	runTime         = 30 * time.Second
	commandPatience = 2 * time.Second
)

// run answers a command, at once where it can: one that takes longer, as revoking many may, answers over the response_url.
func (h *Handler) run(ctx context.Context, id signature, c command) answer {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), runTime)
	result := make(chan templates.Message, 1)
	go func() {
		defer cancel()
		defer func() {
			if recover() != nil {
				h.log.Error("a command panicked")
				result <- templates.Refusal(templates.RefuseInternal, templates.Facts{}).Message()
			}
		}()
		result <- h.answer(ctx, id, c)
	}()
	select {
	case m := <-result:
		return answer{body: body(m)}
	case <-h.after(commandPatience):
	}
	late := func(ctx context.Context) {
		select {
		case m := <-result:
			h.say(click{respond: c.ResponseURL, channel: c.Channel, by: approvals.Reviewer{UserID: c.UserID}}, m)(ctx)
		case <-ctx.Done():
			h.log.Warn("a command took too long to be answered")
		}
	}
	return answer{body: body(message(line{said("⏳ One moment: this takes a little longer.")})), after: []func(context.Context){late}}
}

// answer runs one command. Reading is for the full, active members of the tenant's workspace, over redacted data; whatever stops,
// starts or settles something is for its admins, and is refused when it is a replay.
func (h *Handler) answer(ctx context.Context, id signature, c command) templates.Message {
	a, wrong := parseAsk(c.Text)
	switch {
	case wrong != nil:
		return wrong.line().Message()
	case a.verb == "help":
		return templates.Help()
	}
	by := approvals.Reviewer{UserID: c.UserID, TeamID: c.TeamID}
	switch a.verb {
	case "whoami":
		return h.whoami(ctx, by)
	case "list", "show", "audit":
		tenant, no := h.member(ctx, by, asked{a.verb, approvals.SurfaceCommand})
		if no != nil {
			return no.Message()
		}
		m, err := h.look(ctx, tenant, a)
		if err != nil {
			return h.failure(err, a.id).Message()
		}
		return m
	}
	if again, err := h.replayed(ctx, id); err != nil {
		return h.failure(err, a.id).Message()
	} else if again {
		return message(line{said("This command was already delivered once, so it was not run again.")})
	}
	tenant, actor, no := h.admin(ctx, by, asked{a.verb, approvals.SurfaceCommand})
	if no != nil {
		return no.Message()
	}
	m, err := h.act(ctx, tenant, actor, a)
	var clear *approvals.Refusal
	switch {
	case errors.As(err, &clear): // a clear no to an admin; its sentence may repeat what was typed
		h.refused(ctx, tenant, by, asked{a.verb, approvals.SurfaceCommand}, string(clear.Code))
		return message(line{said("Nothing was changed: "), named(clear.Detail)})
	case err != nil:
		return h.failure(err, a.id).Message()
	}
	return m
}

// opened is how many approvals that are not over a list looks at, newest first.
const opened = 200

// look runs the commands that change nothing.
func (h *Handler) look(ctx context.Context, tenant string, a ask) (templates.Message, error) {
	switch a.verb {
	case "list":
		open, err := h.core.Open(ctx, tenant, opened)
		if err != nil {
			return templates.Message{}, err
		}
		pauses, err := h.core.Switches(ctx, tenant)
		if err != nil {
			return templates.Message{}, err
		}
		more := len(open) == opened
		// What runs or is held needs nobody's decision.
		open = slices.DeleteFunc(open, func(v approvals.View) bool { return v.Status != approvals.Pending })
		return templates.ListMessage(cardsUnder(open, pauses), pausesShown(pauses), more), nil
	case "show":
		return h.show(ctx, tenant, a.id)
	}
	e, err := h.core.Explain(ctx, tenant, a.id)
	if err != nil {
		return templates.Message{}, err
	}
	return templates.AuditMessage(bot.CardOfView(e.View), bot.Timeline(e.Events)), nil
}

// show is a card that only the asker sees. It decides nothing itself: its one button opens Details, which speaks for the
// stored card.
func (h *Handler) show(ctx context.Context, tenant string, id approvals.ID) (templates.Message, error) {
	f, err := h.core.CardFacts(ctx, id)
	if err == nil && f.Tenant != tenant {
		err = approvals.ErrNotFound
	}
	if err != nil {
		return templates.Message{}, err
	}
	card := bot.CardOf(f)
	card.Values = map[string]string{templates.ActionDetails: card.Values[templates.ActionDetails]}
	if f.Card.MessageTS == "" {
		card.Values = nil
	}
	return templates.Render(card), nil
}

// act runs the commands of the admins.
func (h *Handler) act(ctx context.Context, tenant string, by approvals.Actor, a ask) (templates.Message, error) {
	switch a.verb {
	case "revoke":
		if !a.sel.ID.IsZero() {
			over, err := h.over(ctx, tenant, a.sel.ID)
			switch {
			case err != nil:
				return templates.Message{}, err
			case over != nil:
				return over.Message(), nil
			}
		}
		done, err := h.core.Revoke(ctx, approvals.RevokeRequest{Tenant: tenant, By: by, Surface: approvals.SurfaceCommand, Select: a.sel, Reason: a.reason})
		if err != nil {
			return templates.Message{}, err
		}
		if len(done) == 1 && done[0].Status != approvals.Revoked {
			if over := notRevoked(done[0]); over != nil { // it ended between the two
				return over.Message(), nil
			}
		}
		return revoked(done), nil
	case "pause":
		return h.pause(ctx, tenant, by, a)
	case "unpause":
		return h.askUnpause(ctx, tenant, strings.TrimPrefix(string(by), "slack:"), a)
	case "block", "unblock":
		hit, err := h.core.Block(ctx, approvals.BlockRequest{
			Tenant: tenant, By: by, Surface: approvals.SurfaceCommand, UserID: a.user, Reason: a.reason, Blocked: a.verb == "block",
		})
		if err != nil {
			return templates.Message{}, err
		}
		return blocked(a, hit), nil
	}
	v, err := h.core.Reconcile(ctx, approvals.ReconcileRequest{
		Tenant: tenant, By: by, Surface: approvals.SurfaceCommand, ID: a.id, Happened: a.happened, Evidence: a.reason,
	})
	if errors.Is(err, approvals.ErrNotUncertain) && v.Status != "" {
		return templates.Refusal(templates.RefuseNotUncertain, templates.Facts{Status: string(v.Status)}).Message(), nil
	}
	if errors.Is(err, approvals.ErrSecondPerson) {
		return h.noted(err, a.id).Message(), nil
	}
	if err != nil {
		return templates.Message{}, err
	}
	return message(each([]line{{said("Recorded.")}}, []approvals.View{v})...), nil
}

func (a ask) subject() string {
	if a.scope == "tenant" {
		return "the whole tenant"
	}
	return a.scope + " " + a.name
}

// over says why one approval can't be revoked any more; nil where it can, or where its attempt runs and its retries can be stopped.
func (h *Handler) over(ctx context.Context, tenant string, id approvals.ID) (*templates.Line, error) {
	f, err := h.core.CardFacts(ctx, id)
	if err == nil && f.Tenant != tenant {
		err = approvals.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	return notRevoked(f.View), nil
}

func notRevoked(v approvals.View) *templates.Line {
	facts := templates.Facts{Status: string(v.Status), ApprovalID: v.ApprovalID.String()}
	switch {
	case v.Status == approvals.Edited && v.ChildID != nil:
		facts.ApprovalID = v.ChildID.String()
	case v.Status != approvals.Uncertain && !v.Status.Terminal():
		return nil
	}
	return refusal(templates.RefuseTooLateToRevoke, facts)
}

func revoked(all []approvals.View) templates.Message {
	var stopped, late []approvals.View
	for _, v := range all {
		if v.Status == approvals.Revoked {
			stopped = append(stopped, v)
		} else {
			late = append(late, v)
		}
	}
	if len(all) == 0 {
		return message(line{said("Nothing of that is waiting, approved or running: nothing was revoked.")})
	}
	lines := []line{{said(fmt.Sprintf("🚫 Revoked %d.", len(stopped)))}}
	lines = each(lines, stopped)
	if len(late) > 0 {
		lines = each(append(lines, line{said("Too late for these: the attempt that runs is not stopped, and none is made after it.")}), late)
	}
	return message(lines...)
}

func blocked(a ask, hit []approvals.View) templates.Message {
	lines := []line{{person(a.user), said(" may decide again.")}}
	if a.verb == "block" {
		lines = []line{{person(a.user), said(" decides nothing from now on, and no approval that needs their vote runs.")}}
	}
	if len(hit) > 0 {
		lines = each(append(lines, line{said(fmt.Sprintf("%d of their approvals are concerned:", len(hit)))}), hit)
	}
	return message(lines...)
}
