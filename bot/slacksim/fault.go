package slacksim

import (
	"net/http"
	"time"
)

// Fault makes a Web API call fail. The kinds are the types below.
type Fault interface {
	// before runs instead of the call when it returns false; it may then have answered.
	before(s *Sim, w http.ResponseWriter, r *http.Request) bool
	// after runs once the call was carried out, before its answer is written.
	after()
}

// RateLimited answers 429. A zero RetryAfter leaves the header out; Code defaults to ratelimited (rate_limited occurs too).
type RateLimited struct {
	RetryAfter time.Duration
	Code       string
}

// ServerError answers with a status (500 by default) and a body that is not JSON; the call is not carried out.
type ServerError struct{ Status int }

// Hang never answers: it holds the call until the client or the simulator gives up, and does not carry it out.
type Hang struct{}

// LoseAnswer carries the call out and then drops the connection: the ambiguous case.
type LoseAnswer struct{}

// Drop drops the connection before the call is carried out; the client cannot tell it from LoseAnswer.
type Drop struct{}

// Error answers {"ok": false} with a Slack error code; Needed and Provided go with missing_scope.
type Error struct {
	Code             string
	Needed, Provided string
}

type armedFault struct {
	method string
	fault  Fault
	left   int // < 0: for ever
}

// Fault arms a fault for the next count calls of a method ("*" for any); count <= 0 means until ClearFaults. Faults of
// one method are used in the order in which they were armed.
func (s *Sim) Fault(method string, f Fault, count int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if count <= 0 {
		count = -1
	}
	s.faults = append(s.faults, &armedFault{method: method, fault: f, left: count})
}

// ClearFaults disarms what is left.
func (s *Sim) ClearFaults() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// takeFault returns the fault of this call, if any. Held: mu.
func (s *Sim) takeFault(method string) Fault {
	for i, f := range s.faults {
		if f.method != method && f.method != "*" {
			continue
		}
		if f.left > 0 {
			f.left--
		}
		if f.left == 0 {
			s.faults = append(s.faults[:i:i], s.faults[i+1:]...)
		}
		return f.fault
	}
	return nil
}

func (f RateLimited) before(_ *Sim, w http.ResponseWriter, _ *http.Request) bool {
	code := f.Code
	if code == "" {
		code = "ratelimited"
	}
	writeLimited(w, code, f.RetryAfter)
	return false
}

func (f ServerError) before(_ *Sim, w http.ResponseWriter, _ *http.Request) bool {
	status := f.Status
	if status == 0 {
		status = http.StatusInternalServerError
	}
	http.Error(w, "upstream error", status)
	return false
}

func (Hang) before(s *Sim, _ http.ResponseWriter, r *http.Request) bool {
	select {
	case <-r.Context().Done():
	case <-s.ctx.Done():
	}
	panic(http.ErrAbortHandler) // ends the connection without an answer
}

func (LoseAnswer) before(*Sim, http.ResponseWriter, *http.Request) bool { return true }

func (Drop) before(*Sim, http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) }

func (f Error) before(_ *Sim, w http.ResponseWriter, _ *http.Request) bool {
	extra := reply{}
	if f.Needed != "" {
		extra["needed"], extra["provided"] = f.Needed, f.Provided
	}
	writeJSON(w, http.StatusOK, answer(nil, &failure{code: f.Code, extra: extra}))
	return false
}

func (RateLimited) after() {}
func (ServerError) after() {}
func (Hang) after()        {}
func (LoseAnswer) after()  { panic(http.ErrAbortHandler) }
func (Drop) after()        {}
func (Error) after()       {}
