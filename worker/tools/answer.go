package tools

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/approvals/rules"
)

// read classifies an answer to the effect's own request; the table is in the package
// documentation, the reasons are here.
func read(call Call, got *answer, s *screen) approvals.Outcome {
	out := approvals.Outcome{Output: got.output(), Receipt: s.receipt(got)}
	said := fmt.Sprintf("the tool answered %s", phrase(got.status))
	switch {
	case got.status >= 200 && got.status < 300:
		if !got.whole && !got.tooMuch {
			// The status was a success, the answer was not finished: a server that fails half-way
			// breaks off like this. Not believed in either direction.
			return unknown(said + " and broke off")
		}
		out.Class = approvals.OutcomeSucceeded
	case got.status == http.StatusPreconditionFailed && call.Tool.HTTP.IfMatch:
		// After an attempt that may have arrived, our own effect may have changed the version: then
		// it is a refusal of this attempt only, and the core keeps it uncertain.
		out.Class, out.Error = approvals.OutcomeRefused, said
		if call.FirstAttempt {
			out.Class = approvals.OutcomeTargetChanged
		}
	case got.status == http.StatusConflict && !call.FirstAttempt && call.Tool.Retry == rules.Idempotent:
		// A key that is still in work answers 409 (the Idempotency-Key draft, 2.7): the first request
		// may yet succeed.
		return unknown(said + " to a key that was sent before")
	case got.status == http.StatusTooManyRequests, got.status == http.StatusTooEarly:
		out.Class, out.Error = approvals.OutcomeNoEffect, said
	case got.status == http.StatusRequestTimeout:
		return unknown(said)
	case got.status >= 400 && got.status < 500:
		out.Class, out.Error = approvals.OutcomeRefused, said
	default: // 1xx, 3xx, 5xx and what is no HTTP status
		return unknown(said)
	}
	return out
}

// notKept stands for an answer above the cap.
var notKept = json.RawMessage(`"[the answer was larger than 1 MiB and was not kept]"`)

// output is the answer as a JSON value: JSON as it came, anything else as a string, an
// empty body as null.
func (a *answer) output() json.RawMessage {
	switch {
	case a.tooMuch:
		return notKept
	case len(a.body) == 0:
		return json.RawMessage("null")
	case utf8.Valid(a.body) && json.Valid(a.body):
		return json.RawMessage(a.body)
	}
	text, err := json.Marshal(strings.ToValidUTF8(string(a.body), string(utf8.RuneError)))
	if err != nil {
		return json.RawMessage("null") // a string always encodes
	}
	return text
}

// phrase is the status in our words, not in the server's.
func phrase(status int) string {
	if text := http.StatusText(status); text != "" {
		return fmt.Sprintf("%d %s", status, text)
	}
	return fmt.Sprint(status)
}
