package templates

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/slack-go/slack"
)

// Action ids. The value that comes back with one is opaque: the caller's signed value for that action.
const (
	ActionApprove      = "hp_approve"
	ActionReject       = "hp_reject"
	ActionRespond      = "hp_respond"
	ActionDetails      = "hp_details"
	ActionOverflow     = "hp_more" // its options' values are those of ActionEdit and ActionRespond
	ActionEdit         = "hp_edit" // a key of Card.Values only: Slack returns ActionOverflow
	ActionReconcileYes = "hp_happened"
	ActionReconcileNo  = "hp_not_happened"
	ActionOriginal     = "hp_original"    // Details of what an edit replaced; the value is that of ActionDetails
	ActionReplacement  = "hp_replacement" // Details of what an edit replaced it by
	ActionPage         = "hp_page"        // Details: the value is the page's number from 0; suffixed _prev and _next
)

// The most characters of a signed value. An option's value is limited by Slack; a button may have 2,000, but four of
// them would crowd out the arguments. An action with a longer value is not offered.
const (
	MaxOptionValue = 75
	MaxButtonValue = 512
)

const actionsBlock = "actions"

// decisions are those of the rule, cut by what the card itself forbids: what can't be read can only be rejected.
func decisions(c Card) []string {
	if c.Unreadable == "" && json.Valid(c.Arguments) {
		return c.Decisions
	}
	if slices.Contains(c.Decisions, DecisionReject) {
		return []string{DecisionReject}
	}
	return nil
}

// actionBlock offers what can be done now, or is nil. On a cut card there is no Approve: Details comes first.
func actionBlock(c Card, isCut bool) slack.Block {
	var elements []slack.BlockElement
	add := func(b *slack.ButtonBlockElement) {
		if b != nil {
			elements = append(elements, b)
		}
	}
	switch c.Status {
	case StatusPending:
		if !isCut {
			add(approveButton(c))
		}
		details := button(c, ActionDetails, "Details")
		if isCut && details != nil && offered(c, DecisionApprove) {
			details.Text.Text = "Details and approval"
			add(details.WithStyle(slack.StylePrimary))
			details = nil
		}
		if offered(c, DecisionRespond) && !offered(c, DecisionApprove) {
			if b := button(c, ActionRespond, "Answer…"); b != nil {
				add(b.WithStyle(slack.StylePrimary))
			}
		}
		if offered(c, DecisionReject) {
			add(button(c, ActionReject, "Reject…"))
		}
		add(details)
		for _, b := range lineageButtons(c) {
			add(b)
		}
		if more := overflow(c); more != nil {
			elements = append(elements, more)
		}
	case StatusUncertain:
		add(button(c, ActionReconcileYes, "It happened…"))
		add(button(c, ActionReconcileNo, "It did not…"))
		add(button(c, ActionDetails, "Details"))
	default:
		add(button(c, ActionDetails, "Details"))
		for _, b := range lineageButtons(c) {
			add(b)
		}
	}
	if len(elements) == 0 {
		return nil
	}
	return slack.NewActionBlock(actionsBlock, elements...)
}

func approveButton(c Card) *slack.ButtonBlockElement {
	if !offered(c, DecisionApprove) {
		return nil
	}
	b := button(c, ActionApprove, "Approve")
	if b == nil {
		return nil
	}
	b.AccessibilityLabel = "Approve: " + first(fit(title(c), 60))
	if c.Risk == riskHigh {
		b.Confirm = confirmation(c)
	}
	return b.WithStyle(slack.StylePrimary)
}

// confirmation asks again and repeats the magnitude, so that the second click is a second look.
func confirmation(c Card) *slack.ConfirmationBlockObject {
	text := first(fit(title(c), maxHeader))
	if c.Target != "" {
		text += "\nTarget: " + first(fit(c.Target, 90))
	}
	text += "\nDigest: " + first(fit(c.ShortDigest, 24))
	return slack.NewConfirmationBlockObject(literal("Approve a high-risk call?"), literal(text), literal("Approve"), literal("Not yet")).
		WithStyle(slack.StyleDanger)
}

func overflow(c Card) slack.BlockElement {
	var options []*slack.OptionBlockObject
	option := func(action, text string) {
		if v := c.Values[action]; v != "" && length(v) <= MaxOptionValue {
			options = append(options, slack.NewOptionBlockObject(v, literal(text), nil))
		}
	}
	if offered(c, DecisionEdit) {
		option(ActionEdit, "Edit the arguments…")
	}
	if offered(c, DecisionRespond) && offered(c, DecisionApprove) {
		option(ActionRespond, "Answer instead…")
	}
	if len(options) == 0 {
		return nil
	}
	return slack.NewOverflowBlockElement(ActionOverflow, options...)
}

// button is nil without a value of the caller's: a button that proves nothing decides nothing.
func button(c Card, action, text string) *slack.ButtonBlockElement {
	v := c.Values[action]
	if v == "" || jsonLength(v) > MaxButtonValue {
		return nil
	}
	return slack.NewButtonBlockElement(action, v, literal(text))
}

func title(c Card) string {
	if c.Title == "" {
		return orDash(c.Tool)
	}
	return c.Title
}

func itoa(n int) string { return strconv.Itoa(n) }
