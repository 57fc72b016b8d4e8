package templates

import "github.com/slack-go/slack"

// Callback ids of the views, and the ids of their inputs. Every text input has the action id InputText. The metadata
// of a view is the caller's: opaque here, at most 3,000 characters.
const (
	ViewReject       = "hp_view_reject"
	ViewEdit         = "hp_view_edit"
	ViewRespond      = "hp_view_respond"
	ViewReconcileYes = "hp_view_happened"
	ViewReconcileNo  = "hp_view_not_happened"
	ViewReason       = "hp_view_reason"
	ViewDetails      = "hp_view_details"
	ViewNotice       = "hp_view_notice"

	InputReason    = "reason"
	InputArguments = "arguments"
	InputAnswer    = "answer"
	InputEvidence  = "evidence"
	InputText      = "text"
)

// RejectModal asks why; the agent's model reads the answer.
func RejectModal(c Card, metadata string) slack.ModalViewRequest {
	return form(ViewReject, "Reject", "Reject", metadata,
		subject(c),
		input(InputReason, "Reason", "The agent is told this. Say what would make it acceptable.", 1_000),
	)
}

// RespondModal answers a question.
func RespondModal(c Card, metadata string) slack.ModalViewRequest {
	return form(ViewRespond, "Answer", "Send the answer", metadata,
		subject(c),
		input(InputAnswer, "Your answer", "The agent gets exactly these words. Nothing is executed.", maxInput),
	)
}

// ReconcileModal records what a person found out about an operation of unknown outcome.
func ReconcileModal(c Card, happened bool, metadata string) slack.ModalViewRequest {
	callback, title, submit := ViewReconcileNo, "It did not happen", "It did not happen"
	effect := "The operation is recorded as failed, without any effect. If you are wrong and it is proposed again, it happens twice."
	if happened {
		callback, title, submit = ViewReconcileYes, "It happened", "It happened"
		effect = "The operation is recorded as done and won't run again. If you are wrong, it never happens."
	}
	return form(callback, title, submit, metadata,
		subject(c),
		richText("effect", section(plain(effect))),
		input(InputEvidence, "Evidence", "What did you look at, and what did it show? A link or a reference helps.", 2_000),
	)
}

// ReasonForm is a question for a reason: revoking, pausing, blocking.
type ReasonForm struct {
	Title    string // at most 24 characters
	Submit   string // at most 24 characters
	About    Line   // what will be done
	Metadata string
}

// ReasonModal asks for a reason.
func ReasonModal(f ReasonForm) slack.ModalViewRequest {
	blocks := []slack.Block{input(InputReason, "Reason", "It is kept in the audit trail.", 1_000)}
	if !f.About.Empty() {
		blocks = append([]slack.Block{richText("about", lines(f.About))}, blocks...)
	}
	return form(ViewReason, f.Title, f.Submit, f.Metadata, blocks...)
}

// Loading is what to open at once, within the three seconds that a trigger lives; the real view replaces it.
func Loading(title string) slack.ModalViewRequest {
	return NoticeModal(title, compose("⏳ One moment…"))
}

// NoticeModal says one thing and can only be closed.
func NoticeModal(title string, l Line) slack.ModalViewRequest {
	if l.Empty() {
		l = Refusal(RefuseInternal, Facts{})
	}
	return slack.ModalViewRequest{
		Type: slack.VTModal, CallbackID: ViewNotice, Title: literal(shortTitle(title)), Close: literal("Close"),
		Blocks: slack.Blocks{BlockSet: []slack.Block{richText("notice", lines(l))}},
	}
}

func form(callback, title, submit, metadata string, blocks ...slack.Block) slack.ModalViewRequest {
	return slack.ModalViewRequest{
		Type: slack.VTModal, CallbackID: callback, PrivateMetadata: metadata,
		Title: literal(shortTitle(title)), Submit: literal(shortTitle(submit)), Close: literal("Cancel"),
		Blocks: slack.Blocks{BlockSet: blocks},
	}
}

func shortTitle(s string) string { return orDash(first(fit(s, maxTitle))) }

// subject repeats what a form is about, so that nobody fills in the wrong one.
func subject(c Card) slack.Block {
	about := title(c)
	if c.Unreadable != "" {
		about = "Unreadable call of " + c.Tool
	}
	l := compose(shout(orDash(first(fit(about, 2*quoteRoom)))))
	if c.Target != "" {
		l = compose(l, " on ", code(c.Target))
	}
	id := compose(code(c.ApprovalID))
	if c.ShortDigest != "" {
		id = compose(id, " · digest ", code(c.ShortDigest))
	}
	return richText("subject", lines(l, id))
}

func input(id, label, hint string, most int) *slack.InputBlock {
	element := slack.NewPlainTextInputBlockElement(nil, InputText)
	element.Multiline = true
	element.MinLength = 1
	element.MaxLength = most
	element.FocusOnLoad = true
	return slack.NewInputBlock(id, literal(label), literal(hint), element)
}
