package tools_test

import (
	"net"
	"testing"

	"github.com/holdpoint/holdpoint/approvals"
)

// Contract: 200 happened, 404 did not (believed after timeout + settle), else unknown.
func TestLookup(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer  func(net.Conn, <-chan struct{})
		settled bool
		want    approvals.OutcomeClass
	}{
		"200":                 {status(200, `{"id":"rel_1"}`), true, approvals.OutcomeSucceeded},
		"200 too early":       {status(200, `{"id":"rel_1"}`), false, approvals.OutcomeSucceeded},
		"200 broken off":      {says("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"), true, approvals.OutcomeUnknown},
		"404":                 {status(404, ""), true, approvals.OutcomeAbsent},
		"404 too early":       {status(404, ""), false, approvals.OutcomeUnknown},
		"204 is not 200":      {status(204, ""), true, approvals.OutcomeUnknown},
		"410 is not 404":      {status(410, ""), true, approvals.OutcomeUnknown},
		"401":                 {status(401, ""), true, approvals.OutcomeUnknown},
		"429":                 {status(429, ""), true, approvals.OutcomeUnknown},
		"302 to a login page": {status(302, "", "Location: /login"), true, approvals.OutcomeUnknown},
		"500":                 {status(500, ""), true, approvals.OutcomeUnknown},
		"reset":               {resets, true, approvals.OutcomeUnknown},
		"no connection":       {nil, true, approvals.OutcomeUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			far := receive(t, c.answer, nil)
			x := call(config(t, `
retry: queryable
http:
  url: "`+far.url()+`/releases"
  headers: {Authorization: env:DEPLOY_AUTH}
  key_header: Idempotency-Key
  lookup: "`+far.url()+`/releases/{operation_key}"
  settle: 1m
  timeout: 5s`))
			x.Settled = c.settled
			out := executor().Lookup(t.Context(), x)
			wantClass(t, out, c.want)
			if c.answer == nil {
				return
			}
			got := far.only(t)
			if got.Method != "GET" || got.URL.Path != "/releases/op-key-1" || got.body != "" || got.Header.Get("Authorization") != "Bearer header-secret-1" {
				t.Errorf("%s %s %q", got.Method, got.URL.Path, got.body)
			}
		})
	}
	t.Run("a tool without one", func(t *testing.T) {
		t.Parallel()
		far := receive(t, status(200, ""), nil)
		wantClass(t, executor().Lookup(t.Context(), call(class(t, "keyed", "POST", far.url(), "5s"))), approvals.OutcomeUnknown)
		if far.connections() != 0 {
			t.Error("something was sent")
		}
	})
}
