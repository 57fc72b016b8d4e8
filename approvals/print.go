package approvals

import (
	"fmt"
	"io"
	"log/slog"
)

// What carries arguments, states, answers, results, tokens or keys prints as ids and digests only, with every verb of fmt and in
// slog (I24). Their fields stay readable where they are used.

func show(s fmt.State, text string) { _, _ = io.WriteString(s, text) }

// String names the run and how much came with it.
func (in Intake) String() string {
	return fmt.Sprintf("[intake of run %q, %d calls, state of %d bytes]", in.RunID, len(in.Calls), len(in.State))
}

// GoString is String: a field has the name of fmt.Formatter's method.
func (in Intake) GoString() string { return in.String() }

// LogValue is String.
func (in Intake) LogValue() slog.Value { return slog.StringValue(in.String()) }

// String names the call.
func (c CallInput) String() string { return fmt.Sprintf("[call %q of %q]", c.ToolCallID, c.Tool) }

// Format is String for every verb.
func (c CallInput) Format(s fmt.State, _ rune) { show(s, c.String()) }

// LogValue is String.
func (c CallInput) LogValue() slog.Value { return slog.StringValue(c.String()) }

// String names the approval, its status and its digest.
func (v View) String() string {
	return fmt.Sprintf("[approval %s %s v%d %s]", v.ApprovalID, v.Status, v.Version, v.ShortDigest())
}

// Format is String for every verb.
func (v View) Format(s fmt.State, _ rune) { show(s, v.String()) }

// LogValue is String.
func (v View) LogValue() slog.Value { return slog.StringValue(v.String()) }

// String names where the card is.
func (c Card) String() string {
	return fmt.Sprintf("[card %s in %s at %s, shows v%d]", c.ID, c.Channel, c.MessageTS, c.ShownVersion)
}

// Format is String for every verb.
func (c Card) Format(s fmt.State, _ rune) { show(s, c.String()) }

// LogValue is String.
func (c Card) LogValue() slog.Value { return slog.StringValue(c.String()) }

// String names the approval and its card.
func (f CardFacts) String() string { return f.View.String() + " " + f.Card.String() }

// Format is String for every verb.
func (f CardFacts) Format(s fmt.State, _ rune) { show(s, f.String()) }

// LogValue is String.
func (f CardFacts) LogValue() slog.Value { return slog.StringValue(f.String()) }

// String names the operation and its epoch; the token stays out: whoever has it may record an outcome.
func (l Lease) String() string { return fmt.Sprintf("[lease of %s, epoch %d]", l.ID, l.Epoch) }

// Format is String for every verb.
func (l Lease) Format(s fmt.State, _ rune) { show(s, l.String()) }

// LogValue is String.
func (l Lease) LogValue() slog.Value { return slog.StringValue(l.String()) }

// String says what the claim allows.
func (c Claim) String() string {
	switch {
	case c.Go:
		return fmt.Sprintf("[claim: run attempt %d, %s, %s]", c.Attempt, c.Lease, c.Arguments)
	case c.LookupFirst:
		return fmt.Sprintf("[claim: look up, %s, %s]", c.Lease, c.Arguments)
	}
	return "[claim: " + c.Why + "]"
}

// Format is String for every verb.
func (c Claim) Format(s fmt.State, _ rune) { show(s, c.String()) }

// LogValue is String.
func (c Claim) LogValue() slog.Value { return slog.StringValue(c.String()) }

// String says what the claim found.
func (a AgentClaimAnswer) String() string {
	return fmt.Sprintf("[agent's claim: %s, epoch %d]", a.State, a.Epoch)
}

// Format is String for every verb.
func (a AgentClaimAnswer) Format(s fmt.State, _ rune) { show(s, a.String()) }

// LogValue is String.
func (a AgentClaimAnswer) LogValue() slog.Value { return slog.StringValue(a.String()) }

// String names the class of the outcome.
func (o Outcome) String() string {
	return fmt.Sprintf("[outcome %s, %d bytes]", o.Class, len(o.Output))
}

// Format is String for every verb.
func (o Outcome) Format(s fmt.State, _ rune) { show(s, o.String()) }

// LogValue is String.
func (o Outcome) LogValue() slog.Value { return slog.StringValue(o.String()) }

// String names the message.
func (d Delivery) String() string {
	return fmt.Sprintf("[delivery %s of %q, try %d, %d bytes]", d.WebhookID, d.Agent, d.Attempt, len(d.Body))
}

// Format is String for every verb.
func (d Delivery) Format(s fmt.State, _ rune) { show(s, d.String()) }

// LogValue is String.
func (d Delivery) LogValue() slog.Value { return slog.StringValue(d.String()) }

// String names the decision, the person and the approval.
func (r DecideRequest) String() string {
	return fmt.Sprintf("[%s of %s by %s]", r.Verb, r.Button.ID, r.By.UserID)
}

// Format is String for every verb.
func (r DecideRequest) Format(s fmt.State, _ rune) { show(s, r.String()) }

// LogValue is String.
func (r DecideRequest) LogValue() slog.Value { return slog.StringValue(r.String()) }
