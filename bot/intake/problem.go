package intake

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/holdpoint/holdpoint/approvals"
)

// Codes of answers that the core knows nothing of.
const (
	codeInternal    approvals.Code = "internal"
	codeUnavailable approvals.Code = "unavailable"
)

// Problem is the body of every answer that is not a success (RFC 9457, application/problem+json). No member ever repeats a value that
// the client sent.
type Problem struct {
	Type       string           `json:"type" doc:"A relative reference to the explanation of the code in the API's documentation." example:"/docs#no_rule"`
	Title      string           `json:"title" doc:"What the code means; the same sentence every time."`
	Status     int              `json:"status" doc:"The HTTP status."`
	Detail     string           `json:"detail" doc:"What is wrong this time and what to do about it."`
	Code       approvals.Code   `json:"code" doc:"The stable name to program against."`
	Pointer    string           `json:"pointer,omitempty" doc:"JSON pointer (RFC 6901) to the offending place in the body, or in the state or the arguments that the detail speaks of." example:"/calls/0/tool"`
	Parameter  string           `json:"parameter,omitempty" doc:"The query parameter that is wrong."`
	Suggest    string           `json:"suggest,omitempty" doc:"YAML to paste into the tenant's configuration, where a setting is missing."`
	State      string           `json:"state,omitempty" doc:"not_executable: the ledger's state, the approval's status, or held."`
	ReasonCode approvals.Reason `json:"reason_code,omitempty" doc:"forbidden: why the authority to execute is gone."`

	retryAfter time.Duration
	challenge  bool // send WWW-Authenticate
	hangUp     bool // what is left of the body can't be trusted to end
	gone       bool // the client left: nobody reads the answer
}

func (p *Problem) Error() string { return string(p.Code) + ": " + p.Detail }

// meaning is one row of the table from codes to HTTP (contract "Intake"; schema.md, Answers, HTTP).
type meaning struct {
	code   approvals.Code
	status int
	title  string
}

var meanings = []meaning{
	{approvals.CodeInvalidRequest, http.StatusBadRequest, "The request can't be read as this API defines it"},
	{approvals.CodeUnauthorized, http.StatusUnauthorized, "No valid API key"},
	{approvals.CodeForbidden, http.StatusForbidden, "The authority to execute is gone"},
	{approvals.CodeNotFound, http.StatusNotFound, "There is nothing here that this key may see"},
	{approvals.CodeDifferentArguments, http.StatusConflict, "The same call waits with other arguments"},
	{approvals.CodeConflict, http.StatusConflict, "Something else happened first"},
	{approvals.CodeNotExecutable, http.StatusConflict, "Not to be executed now, or not by the agent"},
	{approvals.CodeStateTooLarge, http.StatusRequestEntityTooLarge, "The state is too large"},
	{approvals.CodeUnknownTool, http.StatusUnprocessableEntity, "The tenant's configuration doesn't have this tool"},
	{approvals.CodeToolNotAllowed, http.StatusUnprocessableEntity, "This agent or key may not propose this tool"},
	{approvals.CodeNoRule, http.StatusUnprocessableEntity, "No rule matches the call"},
	{approvals.CodeRuleError, http.StatusUnprocessableEntity, "A rule could not be evaluated on the call"},
	{approvals.CodeSchemaMismatch, http.StatusUnprocessableEntity, "The arguments break the tool's schema"},
	{approvals.CodeNoQuorumPossible, http.StatusUnprocessableEntity, "Nobody, or too few people, could approve this"},
	{approvals.CodeRequesterRequired, http.StatusUnprocessableEntity, "The rule needs to know who is behind the call"},
	{approvals.CodeUnknownRequester, http.StatusUnprocessableEntity, "The requester is not known"},
	{approvals.CodeVersionUnsupported, http.StatusUnprocessableEntity, "This version of the agent or of the state is not supported"},
	{approvals.CodeIntakeClosed, http.StatusUnprocessableEntity, "This version of the agent takes no new requests"},
	{approvals.CodeStateMismatch, http.StatusUnprocessableEntity, "The state and the calls don't say the same"},
	{approvals.CodeStandingApproval, http.StatusUnprocessableEntity, "The state carries an approval of its own"},
	{approvals.CodeSecretInState, http.StatusUnprocessableEntity, "The state carries a secret"},
	{approvals.CodeTooManyOpen, http.StatusTooManyRequests, "Too many calls of this run wait already"},
	{approvals.CodeRateLimited, http.StatusTooManyRequests, "Too many requests"},
	{codeInternal, http.StatusInternalServerError, "Something went wrong inside"},
	{codeUnavailable, http.StatusServiceUnavailable, "The database did not answer in time"},
}

// problem fills in what the code alone decides. A code that isn't in the table is internal: it fails closed.
func problem(code approvals.Code, format string, args ...any) *Problem {
	for _, m := range meanings {
		if m.code == code {
			return &Problem{Type: "/docs#" + string(code), Title: m.title, Status: m.status, Code: code, Detail: fmt.Sprintf(format, args...)}
		}
	}
	return internal()
}

func internal() *Problem {
	return problem(codeInternal, "Try again; if it stays, tell the operator the X-Request-Id of this answer.")
}

func notFound() *Problem {
	return problem(approvals.CodeNotFound, "No such thing for this API key: it doesn't exist, or it belongs to another agent.")
}

// invalid is a 400 that points into the body.
func invalid(pointer, format string, args ...any) *Problem {
	p := problem(approvals.CodeInvalidRequest, format, args...)
	p.Pointer = pointer
	return p
}

// as gives an invalid_request the status that HTTP has a better word for.
func (p *Problem) as(status int) *Problem {
	p.Status = status
	return p
}

// problemOf is the one table from errors to answers. known is false for what must be logged: nobody foresaw it.
func problemOf(ctx context.Context, err error) (p *Problem, known bool) {
	var refusal *approvals.Refusal
	switch {
	case errors.As(err, &p):
		return p, true
	case errors.As(err, &refusal):
		p = problem(refusal.Code, "%s", refusal.Detail)
		if p.Code != refusal.Code {
			return p, false
		}
		p.Pointer, p.Suggest, p.State, p.ReasonCode = refusal.Pointer, refusal.Suggest, refusal.State, refusal.Reason
		p.challenge = p.Status == http.StatusUnauthorized
		if refusal.TooLarge {
			p.Status = http.StatusRequestEntityTooLarge
		}
		if p.retryAfter = refusal.RetryAfter; p.Status == http.StatusTooManyRequests && p.retryAfter <= 0 {
			p.retryAfter = time.Second
		}
		return p, true
	case errors.Is(err, approvals.ErrNotFound):
		return notFound(), true
	case errors.Is(err, approvals.ErrStale):
		return problem(approvals.CodeConflict, "The lease is over: another holder has the operation now. Nothing was recorded; claim again to learn the outcome."), true
	case ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, approvals.ErrUnavailable)):
		p = problem(codeUnavailable, "The client left.")
		p.gone = true
		return p, true
	case errors.Is(err, approvals.ErrUnavailable), errors.Is(err, context.DeadlineExceeded):
		p = problem(codeUnavailable, "Nothing is known to have changed. Send the same request again: a repeat is recognised.")
		p.retryAfter = 2 * time.Second
		return p, true
	}
	return internal(), false
}

// headers that go with the problem.
func (p *Problem) headers(h http.Header) {
	h.Set("Content-Type", "application/problem+json")
	if p.challenge {
		h.Set("WWW-Authenticate", `Bearer realm="holdpoint"`)
	}
	if p.retryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(int64((p.retryAfter+time.Second-1)/time.Second), 10))
	}
	if p.hangUp {
		h.Set("Connection", "close")
	}
}
