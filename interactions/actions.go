package interactions

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/bot"
	"github.com/holdpoint/holdpoint/templates"
)

// click is one press of one button, by somebody, on a card or in a modal that speaks for a card.
type click struct {
	action  string
	value   string // opaque: the signed value, or a page's number
	by      approvals.Reviewer
	trigger string
	surface approvals.Surface
	// The card: the message that was pressed, or the one that a modal was opened for.
	channel, message string
	ephemeral        bool // an answer that only the clicker sees; it is no card
	view             *view
	respond          string // response_url, "" in a modal
}

// asks names what a press on a card or in a modal wants to see.
func (c click) asks() asked {
	verb := "details"
	switch c.action {
	case templates.ActionReject:
		verb = "reject"
	case templates.ActionRespond:
		verb = "respond"
	case templates.ActionOverflow:
		verb = "more"
	case templates.ActionReconcileYes, templates.ActionReconcileNo:
		verb = "reconcile"
	}
	return asked{verb, c.surface}
}

// metadata is what a modal remembers. Slack gives it back in signed payloads only, and only this app can set it; all the same it is held
// against the stored card, by the core, whenever it is used, and it is good for whoever opened the modal alone.
type metadata struct {
	Value   string `json:"v"`
	Channel string `json:"c"`
	Message string `json:"m"`
	User    string `json:"u"`
	Related string `json:"r,omitempty"` // the action that led to another request's Details
}

func (m metadata) String() string {
	b, err := json.Marshal(m)
	if err != nil { // three strings
		return ""
	}
	return string(b)
}

func readMetadata(s string) (metadata, bool) {
	var m metadata
	ok := decode([]byte(s), &m) == nil && channelForm.MatchString(m.Channel) && stampForm.MatchString(m.Message)
	return m, ok
}

// interaction takes a verified body: a click or a submitted form.
func (h *Handler) interaction(ctx context.Context, id signature, body []byte) answer {
	p, err := readInteraction(body, h.appID)
	if err != nil {
		return answer{status: http.StatusBadRequest}
	}
	return h.dispatch(ctx, id, p)
}

func (h *Handler) dispatch(ctx context.Context, id signature, p payload) answer {
	switch p.Type {
	case "block_actions":
		return h.clicked(ctx, id, p)
	case "view_submission":
		return h.submitted(ctx, id, p)
	}
	return answer{}
}

func (h *Handler) clicked(ctx context.Context, id signature, p payload) answer {
	c := click{
		action: p.Actions[0].ID, value: p.Actions[0].value(), by: approvals.Reviewer{UserID: p.User.ID, TeamID: p.User.TeamID},
		trigger: p.Trigger, surface: approvals.SurfaceCard, channel: p.Container.Channel, message: p.Container.Message,
		ephemeral: p.Container.Ephemeral, view: p.View, respond: p.ResponseURL,
	}
	if c.view != nil {
		m, ok := readMetadata(c.view.Metadata)
		if !ok {
			return answer{status: http.StatusBadRequest}
		}
		if m.User != c.by.UserID {
			return answer{after: []func(context.Context){h.tell(c, templates.Refusal(templates.RefuseTampered, templates.Facts{}))}}
		}
		c.surface, c.channel, c.message = approvals.SurfaceModal, m.Channel, m.Message
		if strings.HasPrefix(c.action, templates.ActionPage) {
			return answer{after: []func(context.Context){h.turnPage(c, m, c.value)}}
		}
	}
	verb, value := bot.SplitValue(c.value)
	c.value = value
	switch c.action {
	case templates.ActionApprove:
		return h.approve(ctx, id, c)
	case templates.ActionReject:
		return h.form(c, rejectForm)
	case templates.ActionRespond:
		return h.form(c, respondForm)
	case templates.ActionOverflow:
		switch verb {
		case approvals.Edit:
			return h.form(c, editForm)
		case approvals.Respond:
			return h.form(c, respondForm)
		}
		return answer{after: []func(context.Context){h.tell(c, templates.Refusal(templates.RefuseTampered, templates.Facts{}))}}
	case templates.ActionDetails:
		return h.details(c)
	case templates.ActionOriginal, templates.ActionReplacement:
		return h.related(c)
	case templates.ActionReconcileYes:
		return h.form(c, happenedForm)
	case templates.ActionReconcileNo:
		return h.form(c, didNotForm)
	case actionUnpause:
		return h.unpause(ctx, id, c)
	}
	return answer{} // a link, or a card of an older version; Slack wants a 200
}

// approve is the one press that decides by itself: Decide, 200, and the rest after.
func (h *Handler) approve(ctx context.Context, id signature, c click) answer {
	ruling, line := h.decide(ctx, c, approvals.DecideRequest{Verb: approvals.Approve, Surface: c.surface})
	a := answer{after: []func(context.Context){h.note(id)}}
	if line == nil {
		a.after = append(a.after, h.decided(c, ruling))
		if c.view != nil {
			a.after = append(a.after, h.notice(c, "Approved", templates.Recorded(templates.DecisionApprove, ruling.View.Approving(), ruling.View.Needs())))
		}
		return a
	}
	a.after = append(a.after, h.tell(c, *line), h.heal(c, ruling))
	return a
}

// tell says one line to the clicker alone: through the response_url, else as an ephemeral message, or in the modal.
func (h *Handler) tell(c click, line templates.Line) func(context.Context) {
	if c.view != nil {
		return h.notice(c, "Nothing was decided", line)
	}
	return h.say(c, line.Message())
}

func (h *Handler) say(c click, m templates.Message) func(context.Context) {
	return func(ctx context.Context) {
		if c.respond != "" && h.slack.Respond(ctx, c.respond, m, false) == nil {
			return
		}
		if c.channel == "" {
			return
		}
		if err := h.slack.Ephemeral(ctx, c.channel, c.by.UserID, m); err != nil {
			h.log.Warn("an answer did not reach the person who clicked", "class", string(bot.ClassOf(err)), "error", err)
		}
	}
}

// notice puts one line in the place of the modal.
func (h *Handler) notice(c click, title string, line templates.Line) func(context.Context) {
	return func(ctx context.Context) {
		if err := h.slack.UpdateView(ctx, bot.View{ID: c.view.ID}, templates.NoticeModal(title, line)); err != nil {
			h.log.Warn("a modal could not be updated", "class", string(bot.ClassOf(err)), "error", err)
		}
	}
}

// decided makes the cards show a decision: the one that was pressed by its response_url, which is instant and free, and the
// child of an edit by a new message. The outbox of the decision does the same again, should this be lost.
func (h *Handler) decided(c click, r approvals.Ruling) func(context.Context) {
	return func(ctx context.Context) {
		var err error
		if c.view == nil && !c.ephemeral && c.respond != "" {
			err = h.cards.SyncVia(ctx, r.View.ApprovalID, c.respond)
		} else {
			err = h.cards.Sync(ctx, r.View.ApprovalID)
		}
		if err == nil && r.Child != nil {
			err = h.cards.Sync(ctx, r.Child.ApprovalID)
		}
		if err != nil {
			h.log.Info("a card follows its decision later", r.View.LogIDs(), "class", string(bot.ClassOf(err)), "error", err)
		}
	}
}

// heal is what a refusal sets right: a card whose buttons ought to be gone is painted again, a card that is being posted is
// looked for, and people who could not be checked are read, so that the next press gets a better answer.
func (h *Handler) heal(c click, r approvals.Ruling) func(context.Context) {
	return func(ctx context.Context) {
		if r.Denial == nil {
			return
		}
		var err error
		switch id := r.View.ApprovalID; r.Denial.Kind {
		case approvals.DenyDecided, approvals.DenyExpired, approvals.DenyChanged:
			if b, bad := approvals.ParseButton(c.value); bad == nil && b.Version < r.View.Version {
				err = h.cards.Repaint(ctx, id)
			} else {
				err = h.cards.Sync(ctx, id)
			}
		case approvals.DenyNotYet:
			err = h.cards.Sync(ctx, id)
		case approvals.DenyUncheckable:
			err = h.directory.Fresh(ctx, r.View.Tenant, r.View.Scope.Groups, people(r.View, c.by), 0)
		}
		if err != nil {
			h.log.Info("what a refused click found could not be set right at once", "denial", string(r.Denial.Kind), "error", err)
		}
	}
}

// people are those whose standing a decision asks for: the clicker, and whoever is behind the call.
func people(v approvals.View, by approvals.Reviewer) []string {
	out := []string{by.UserID}
	if user, ok := strings.CutPrefix(v.Requester, "slack:"); ok && user != by.UserID {
		out = append(out, user)
	}
	return out
}
