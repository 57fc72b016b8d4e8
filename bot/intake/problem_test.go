package intake

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdpoint/holdpoint/approvals"
)

// contractCodes is the contract's list, word for word, with the statuses of schema.md ("HTTP").
var contractCodes = map[int]string{
	400: "invalid_request",
	401: "unauthorized",
	404: "not_found",
	409: "different_arguments conflict not_executable",
	413: "state_too_large",
	422: "unknown_tool tool_not_allowed no_rule rule_error schema_mismatch no_quorum_possible requester_required unknown_requester version_unsupported intake_closed state_mismatch standing_approval_in_state secret_in_state",
	429: "rate_limited too_many_open",
}

func TestRefusalsOfTheCore(t *testing.T) {
	t.Parallel()
	codes := 0
	for status, list := range contractCodes {
		for _, code := range strings.Fields(list) {
			codes++
			t.Run(code, func(t *testing.T) {
				t.Parallel()
				h := newHouse(t, Options{})
				h.fail = fmt.Errorf("submit: %w", &approvals.Refusal{
					Code: approvals.Code(code), Detail: "Do this: <that>.", Pointer: "/run/state/value/trace~1key", Suggest: "rules:\n  - name: x", State: "held", RetryAfter: 1500 * time.Millisecond,
				})
				r := h.do("POST", "/v1/approvals", oneCall)
				p := r.problem(t)
				if p.Status != status || string(p.Code) != code || p.Detail != "Do this: <that>." || p.Pointer != "/run/state/value/trace~1key" || p.Suggest != "rules:\n  - name: x" || p.State != "held" {
					t.Errorf("%d %s", r.status, r.body)
				}
				if got := r.header.Get("Retry-After"); (got == "2") != (status == 429) && got != "2" {
					t.Errorf("Retry-After %q", got)
				}
				if got := r.header.Get("WWW-Authenticate"); (got != "") != (status == 401) {
					t.Errorf("WWW-Authenticate %q", got)
				}
				if log := h.log.String(); strings.Contains(log, "unforeseen") || !strings.Contains(log, `"code":"`+code+`"`) {
					t.Errorf("log: %s", log)
				}
			})
		}
	}
	// With forbidden (claim only), internal and unavailable the table is complete: nothing in it is without a test.
	if codes+3 != len(meanings) {
		t.Errorf("%d codes of the contract, %d in the table", codes, len(meanings))
	}
}

func TestErrorsOfTheCore(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		err    error
		status int
		code   approvals.Code
		state  string
		reason approvals.Reason
		retry  bool
		logged bool
	}{
		{name: "not found", err: fmt.Errorf("get: %w", approvals.ErrNotFound), status: 404, code: approvals.CodeNotFound},
		{name: "stale", err: fmt.Errorf("renew: %w", approvals.ErrStale), status: 409, code: approvals.CodeConflict},
		{name: "unavailable", err: fmt.Errorf("read: %w", approvals.ErrUnavailable), status: 503, code: codeUnavailable, retry: true},
		{name: "deadline", err: fmt.Errorf("read: %w", context.DeadlineExceeded), status: 503, code: codeUnavailable, retry: true},
		{name: "forbidden", err: &approvals.Refusal{Code: approvals.CodeForbidden, Reason: approvals.ReasonRequesterLostRole, Detail: "Gone."}, status: 403, code: approvals.CodeForbidden, reason: approvals.ReasonRequesterLostRole},
		{name: "not executable", err: &approvals.Refusal{Code: approvals.CodeNotExecutable, State: "uncertain", Detail: "Not now."}, status: 409, code: approvals.CodeNotExecutable, state: "uncertain"},
		{name: "rate limited without a time", err: &approvals.Refusal{Code: approvals.CodeRateLimited, Detail: "Later."}, status: 429, code: approvals.CodeRateLimited, retry: true},
		{name: "corrupt", err: fmt.Errorf("%s: %w", canary, approvals.ErrCorrupt), status: 500, code: codeInternal, logged: true},
		{name: "unforeseen", err: fmt.Errorf("%s: %w", canary, coded{canary}), status: 500, code: codeInternal, logged: true},
		{name: "a code that nobody knows", err: &approvals.Refusal{Code: "tea", Detail: canary}, status: 500, code: codeInternal, logged: true},
		{name: "cancelled by itself", err: errors.Join(errors.New(canary), context.Canceled), status: 500, code: codeInternal, logged: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, Options{})
			id := h.submitted()
			h.fail = c.err
			r := h.do("POST", "/v1/operations/"+id.String()+"/claim", "")
			p := r.problem(t)
			if p.Status != c.status || p.Code != c.code || p.State != c.state || p.ReasonCode != c.reason || (r.header.Get("Retry-After") != "") != c.retry {
				t.Errorf("%d %s %v", r.status, r.body, r.header)
			}
			log := h.log.String()
			if n := strings.Count(log, "unforeseen"); (n == 1) != c.logged || n > 1 {
				t.Errorf("logged %d times: %s", n, log)
			}
			if strings.Contains(log, canary) || strings.Contains(r.body, canary) {
				t.Errorf("the error's words got out: %s, %s", log, r.body)
			}
			if c.logged && !strings.Contains(log, r.header.Get("X-Request-Id")) {
				t.Error("the log can't be matched with the answer")
			}
		})
	}
}

// coded is a database error as pgx has them: its words may repeat a value, its SQLSTATE doesn't.
type coded struct{ words string }

func (c coded) Error() string  { return c.words }
func (coded) SQLState() string { return "23505" }

func TestUnforeseenErrorsAreLoggedByType(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{})
	h.fail = errors.Join(fmt.Errorf("%s: %w", canary, coded{canary}), approvals.ErrCorrupt)
	h.do("GET", "/v1/approvals", "")
	for _, want := range []string{"*errors.joinError > *fmt.wrapError > intake.coded", `"sqlstate":"23505"`, approvals.ErrCorrupt.Error()} {
		if !strings.Contains(h.log.String(), want) {
			t.Errorf("%q is not in %s", want, h.log.String())
		}
	}
}

func TestPanics(t *testing.T) {
	t.Parallel()
	var none []int
	for _, c := range []struct {
		name   string
		value  func() (v any)
		logged string
	}{
		{"a text", func() any { return canary }, `"panic":"string"`},
		{"an error", func() any { return errors.New(canary) }, `"panic":"*errors.errorString"`},
		{"Go's own", func() (v any) { defer func() { v = recover() }(); return none[0] }, "index out of range"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, Options{})
			h.panics = c.value()
			r := h.do("GET", "/v1/approvals", "")
			if p := r.problem(t); p.Status != 500 || p.Code != codeInternal {
				t.Errorf("%d %s", r.status, r.body)
			}
			if log := h.log.String(); strings.Contains(log+r.body, canary) || !strings.Contains(log, c.logged) || !strings.Contains(log, "problem_test.go") && !strings.Contains(log, "core_test.go") {
				t.Errorf("log: %s", log)
			}
		})
	}
}

// Everything outside the routes is a problem too, in the same form.
func TestNowhere(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{})
	for _, c := range []struct {
		method, path string
		status       int
		code         approvals.Code
		allow        string
	}{
		{"GET", "/", 404, approvals.CodeNotFound, ""},
		{"GET", "/v1", 404, approvals.CodeNotFound, ""},
		{"GET", "/v1/approvals/", 404, approvals.CodeNotFound, ""},
		{"GET", "/v1/" + canary, 404, approvals.CodeNotFound, ""},
		{"GET", "/healthz", 404, approvals.CodeNotFound, ""},
		{"GET", "/schemas/Intake.json", 404, approvals.CodeNotFound, ""},
		{"DELETE", "/v1/approvals", 405, approvals.CodeInvalidRequest, "GET, HEAD, POST"},
		{"PATCH", "/v1/approvals/apr_x", 405, approvals.CodeInvalidRequest, "GET, HEAD"},
		{"GET", "/v1/operations/apr_x/claim", 405, approvals.CodeInvalidRequest, "POST"},
		{canary, "/docs", 405, approvals.CodeInvalidRequest, "GET, HEAD"},
	} {
		r := h.do(c.method, c.path, "")
		if p := r.problem(t); p.Status != c.status || p.Code != c.code || r.header.Get("Allow") != c.allow {
			t.Errorf("%s %s: %d %s, Allow %q", c.method, c.path, r.status, r.body, r.header.Get("Allow"))
		}
	}
	if strings.Contains(h.log.String(), canary) {
		t.Error("a made-up path or method is logged")
	}
}

// I22: what isn't there, what isn't an id and what is another's are one answer, to the byte.
func TestNotFoundIsOneAnswer(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{})
	mine := h.submitted().String()
	swapped := strings.ToUpper(mine)
	want := h.do("GET", "/v1/approvals/"+approvals.NewID().String(), "")
	if want.problem(t).Code != approvals.CodeNotFound {
		t.Fatal(want.body)
	}
	bodies := map[string]string{"/complete": `{"lease_token":"t","epoch":1}`, "/fail": `{"lease_token":"t","epoch":1}`, "/renew": `{"lease_token":"t","epoch":1}`}
	for _, bad := range []string{"apr_", "apr_x", swapped, "run_" + mine[4:], mine[4:], mine + "0", "apr_01k0q3w8f7e5v9c2n4m6s8t0ya%00", "%2e%2e", canary} {
		r := h.do("GET", "/v1/approvals/"+bad, "")
		if r.status != 404 || r.body != want.body {
			t.Errorf("%s: %d %s", bad, r.status, r.body)
		}
	}
	for _, path := range []string{"GET /v1/approvals/ID", "GET /v1/approvals/ID?wait=1ms&since=9", "GET /v1/approvals/ID/events", "POST /v1/approvals/ID/revoke", "POST /v1/approvals/ID/resume", "POST /v1/operations/ID/claim", "POST /v1/operations/ID/renew", "POST /v1/operations/ID/complete", "POST /v1/operations/ID/fail"} {
		method, path, _ := strings.Cut(path, " ")
		body := bodies[path[strings.LastIndex(path, "/"):]]
		r := h.do(method, strings.ReplaceAll(path, "ID", mine), body, "Authorization", "Bearer "+otherBearer)
		if r.status != 404 || r.body != want.body {
			t.Errorf("another's %s %s: %d %s", method, path, r.status, r.body)
		}
		if r = h.do(method, strings.ReplaceAll(path, "ID", "apr_x"), body); r.status != 404 || r.body != want.body {
			t.Errorf("malformed %s %s: %d %s", method, path, r.status, r.body)
		}
	}
	if strings.Contains(h.log.String(), canary) {
		t.Error("a malformed id is logged")
	}
}

func TestEveryCodeHasOneRow(t *testing.T) {
	t.Parallel()
	seen := map[approvals.Code]bool{}
	for _, m := range meanings {
		if seen[m.code] || http.StatusText(m.status) == "" || m.title == "" {
			t.Errorf("%+v", m)
		}
		seen[m.code] = true
	}
	for _, r := range routes() {
		for _, code := range slices.Concat(r.codes, everywhere) {
			if !seen[code] {
				t.Errorf("%s answers with %s, which has no status", r.id, code)
			}
		}
	}
}
