package tools

import (
	"context"
	"fmt"
	"net/http"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/approvals/rules"
)

// lookup asks for the operation by its key. Sending it twice would be harmless; it goes
// through the same door all the same.
func (e *Executor) lookup(ctx context.Context, call Call) approvals.Outcome {
	url, err := call.Tool.HTTP.LookupURL(call.Arguments.Raw, call.OperationKey)
	if err != nil {
		return unknown("not looked up: " + reasonOf(err))
	}
	if url == "" {
		return unknown("not looked up: the tool has no lookup")
	}
	headers, hidden, err := e.headers(call)
	if err != nil {
		return unknown("not looked up: " + reasonOf(err))
	}
	got, outcome := e.exchange(ctx, call, rules.Request{Method: http.MethodGet, URL: url}, headers)
	if outcome != nil {
		return unknown("the lookup got no answer")
	}
	return readLookup(call, got, newScreen(call, hidden))
}

// readLookup classifies an answer to a lookup.
func readLookup(call Call, got *answer, s *screen) approvals.Outcome {
	said := fmt.Sprintf("the lookup answered %s", phrase(got.status))
	switch {
	case got.status == http.StatusOK && (got.whole || got.tooMuch):
		return approvals.Outcome{Class: approvals.OutcomeSucceeded, Output: got.output(), Receipt: s.receipt(got)}
	case got.status == http.StatusOK:
		return unknown(said + " and broke off")
	case got.status == http.StatusNotFound && call.Settled:
		return approvals.Outcome{Class: approvals.OutcomeAbsent, Error: said}
	case got.status == http.StatusNotFound:
		return unknown(said + ", too early to be believed")
	}
	return unknown(said)
}
