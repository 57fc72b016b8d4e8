package proof

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/approvals/canon"
	"github.com/holdpoint/holdpoint/templates"
)

// The invariant checker: what must hold between the database and what everybody outside of the product saw, once all is quiet.
// faults judges gathered evidence and nothing else, so that a test can show that it sees each fault (checker_self_test.go).

// check ends every test of this package.
func (w *world) check() {
	w.t.Helper()
	for _, f := range w.gather().faults() {
		w.t.Errorf("invariant broken: %s", f)
	}
}

// accepted says that a webhook's step was an answer that means "done".
func accepted(step string) bool { return step == "" || step == "ok" || step == "slow" }

func (e evidence) faults() (wrong []string) {
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	for _, v := range e.violations {
		say("%s: %s", v.Kind, v.ID)
	}
	wrong = append(wrong, e.queries...)
	if e.broken != "" {
		say("I26 the audit chain: %s", e.broken)
	}
	for name, text := range e.said {
		for what, secret := range map[string]string{"an argument": canary, "the bot's token": botToken, "the webhook's key": hookSecret, "the signing secret": signingSecret} {
			if strings.Contains(text, secret) {
				say("I24 %s is in what %s wrote", what, name)
			}
		}
	}
	byOp, lines, lookups := map[string][]row{}, map[string][]line{}, map[string]int64{}
	for _, l := range e.log {
		lines[l.Op] = append(lines[l.Op], l) // a webhook's op is its run
		if l.Kind == "lookup" {
			lookups[l.Key]++
		}
	}
	for _, r := range e.rows {
		byOp[r.op()] = append(byOp[r.op()], r)
		e.trail(r, say)
		e.telling(r, lines[r.Run], say)
		e.card(r, say)
	}
	for op, rows := range byOp {
		effects(op, rows, lines[op], lookups, say)
	}
	for _, l := range e.log {
		if l.Kind == "request" && byOp[l.Op] == nil {
			say("I2 a request for %q, which nobody proposed", l.Op)
		}
	}
	slices.Sort(wrong)
	return wrong
}

type sayer func(format string, args ...any)

// effects holds what the sink counted for one call (an edited one has several rows) to what was decided about it.
func effects(op string, rows []row, log []line, lookups map[string]int64, say sayer) {
	last, claims, looks := rows[len(rows)-1], int64(0), int64(0)
	for _, r := range rows {
		claims += r.Claims
		looks += r.Lookups
		if r.Claims > 0 {
			last = r
		}
	}
	requests, harmless, effects, keys := int64(0), int64(0), 0, map[string]bool{}
	for _, l := range log {
		switch l.Kind {
		case "effect":
			effects++
		case "request":
			requests++
			keys[l.Key] = true
			if l.Step == "busy" {
				harmless++ // a documented "nothing was done"
			}
			if got := canon.Read([]byte(l.Body)).Digest; got != last.Digest {
				say("I1 %s: the bytes that were sent are not the ones that were approved", op)
			}
			if last.Executor == "worker" && l.Class != "opaque" && l.Key != last.Key {
				say("I14 %s: sent under another key than the operation's", op)
			}
			if last.FirstClaim != nil && l.At.Before(*last.FirstClaim) {
				say("I15 %s: sent before its intent was durable", op)
			}
		}
	}
	if requests > claims {
		say("I2 I15 %s: %d requests for %d claims", op, requests, claims)
	}
	if asked := lookups[last.Key]; asked > 0 && looks == 0 && last.Status != string(approvals.Uncertain) && !last.Doubted {
		say("I15 %s was looked up without a claim", op)
	}
	if effects > 1 {
		say("I13 %s: %d effects", op, effects)
	}
	if last.Tool == "send" && requests-harmless > 1 {
		say("I13 %s: an opaque tool was sent %d requests", op, requests)
	}
	if len(keys) > 1 {
		say("I14 %s: %d operation keys", op, len(keys))
	}
	switch done := last.Status == string(approvals.Completed); {
	case done && effects != 1:
		say("I17 %s is completed with %d effects", op, effects)
	case !done && effects > 0 && last.Status != string(approvals.Uncertain) && last.Status != string(approvals.Executing):
		say("I17 %s is %s, but it had its effect", op, last.Status)
	}
}

// trail holds the audit's order of things to the table of transitions, and to the bounds of liveness.
func (e evidence) trail(r row, say sayer) {
	if r.Claims+r.Lookups > 0 && (r.ApprovedAt == nil || r.FirstClaim.Before(*r.ApprovedAt)) {
		say("I2 %s was claimed before it was approved", r.op())
	}
	if r.EndedAt != nil && r.LastClaim != nil && r.LastClaim.After(*r.EndedAt) {
		say("I9 %s was claimed after its end", r.op())
	}
	if r.Overdue {
		say("I2 %s was claimed past its deadline", r.op())
	}
	if r.Epoch != 0 && r.Claims+r.Lookups != r.Epoch {
		say("I16 %s: epoch %d after %d claims", r.op(), r.Epoch, r.Claims+r.Lookups)
	}
	if r.Late {
		say("L2 %s expired more than 30 s after its time", r.op())
	}
	if r.Slow {
		say("L3 L4 %s: a claim, or the end after one, came too late", r.op())
	}
	if approvals.Status(r.Status).Terminal() != (r.EndedAt != nil) {
		say("I9 %s: %s and ended %v", r.op(), r.Status, r.EndedAt)
	}
}

// told is a resume message as far as the checker reads it.
type told struct {
	Type string
	Data struct {
		Run       struct{ ID string }
		Decisions []struct {
			ApprovalID string `json:"approval_id"`
			Decision   string
			Outcome    string
			Result     json.RawMessage
		}
	}
}

var outcomes = map[approvals.Status]string{
	approvals.Completed: "succeeded", approvals.Failed: "failed", approvals.Rejected: "not_run", approvals.Expired: "not_run", approvals.Revoked: "not_run",
	approvals.MigrationRequired: "not_run",
}

// telling holds the webhooks of a pause to its row: told once all is settled, never before, with one id and the same bytes each time.
func (e evidence) telling(r row, log []line, say sayer) {
	if r.Status == string(approvals.Edited) {
		return // its child speaks for it
	}
	good, body := 0, ""
	for _, l := range log {
		if l.Kind != "hook" {
			continue
		}
		if accepted(l.Step) {
			good++
		}
		if body != "" && l.Body != body {
			say("I20 %s was told two different things", r.op())
		}
		body = l.Body
		if l.Key != approvals.WebhookID([16]byte(r.PauseID)) {
			say("L5 %s was told under another id", r.op())
		}
		if !signed(l) {
			say("%s was told under a wrong signature", r.op())
		}
		if r.ClosedAt == nil || l.At.Before(*r.ClosedAt) {
			say("L5 %s was told before all of its calls were settled", r.op())
		}
	}
	switch {
	case r.Superseded != nil:
	case r.Settled && (r.ClosedAt == nil || r.ToldAt == nil || good == 0):
		say("L5 %s is settled, and its run was not told", r.op())
	case !r.Settled && good > 0:
		say("L5 %s is not settled, and its run was told", r.op())
	case good > 1 && !e.repeats:
		say("%s was told %d times", r.op(), good)
	}
	if body == "" {
		return
	}
	var m told
	if json.Unmarshal([]byte(body), &m) != nil || len(m.Data.Decisions) != 1 || m.Data.Decisions[0].ApprovalID != r.ID.String() {
		say("L5 %s was told of something else", r.op())
		return
	}
	d, want := m.Data.Decisions[0], outcomes[approvals.Status(r.Status)]
	if want != "" && d.Outcome != want && r.Executor == "worker" {
		say("I20 %s is %s, and was told as %s", r.op(), r.Status, d.Outcome)
	}
	if d.Outcome == "succeeded" && len(d.Result) < 3 {
		say("I20 %s succeeded, and was told without its result", r.op())
	}
}

func signed(l line) bool {
	hook, err := standardwebhooks.NewWebhook(hookSecret)
	if err != nil {
		return false
	}
	h := http.Header{}
	for name, v := range l.Headers {
		h.Set(name, v)
	}
	return hook.VerifyIgnoringTimestamp([]byte(l.Body), h) == nil
}

var cardWords = map[approvals.Status][]string{
	approvals.Pending: {"Waiting for"}, approvals.Completed: {"Done"}, approvals.Failed: {"Failed"}, approvals.Rejected: {"Rejected"}, approvals.Expired: {"Expired"},
	approvals.Revoked: {"Revoked", "Withdrawn", "Superseded", "blocked"}, approvals.Edited: {"Replaced"}, approvals.Uncertain: {"We don't know"},
	approvals.MigrationRequired: {"Out of date"},
}

// card holds what Slack shows to the row: one message, the row's last state, no button that decides any more (L6), and admins called
// to what nobody knows (L7).
func (e evidence) card(r row, say sayer) {
	copies := e.copies[r.Card]
	if r.CardTS == "" {
		if copies > 0 {
			say("L6 %s has a card that nobody remembers", r.op())
		}
		if !r.Auto && !approvals.Status(r.Status).Terminal() {
			say("L1 %s has no card", r.op())
		}
		return
	}
	m, ok := e.messages[r.CardTS]
	if !ok || copies > 1 {
		say("L6 %s has %d cards", r.op(), copies)
		return
	}
	text := m.PlainText()
	if words := cardWords[approvals.Status(r.Status)]; r.Shown != r.Version || len(words) > 0 && !slices.ContainsFunc(words, func(s string) bool { return strings.Contains(text, s) }) {
		say("L6 the card of %s does not show that it is %s", r.op(), r.Status)
	}
	if want := e.painted[r.CardTS]; want != "" && string(m.Blocks) != want {
		say("I27 the card of %s is not what its row paints:\n%s\nbut\n%s", r.op(), want, m.Blocks)
	}
	if r.Status != string(approvals.Pending) {
		for _, a := range m.Actions() {
			if a == templates.ActionApprove || a == templates.ActionReject || a == templates.ActionOverflow {
				say("L6 the card of %s still offers %s", r.op(), a)
			}
		}
	}
	if strings.Contains(text+string(m.Blocks), canary) {
		say("I24 the card of %s shows a redacted argument", r.op())
	}
	if r.Status == string(approvals.Uncertain) && e.threads[r.CardTS] == 0 {
		say("L7 nobody was called to %s, of which nobody knows", r.op())
	}
}
