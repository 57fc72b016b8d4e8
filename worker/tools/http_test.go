package tools_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/holdpoint/holdpoint/approvals"
)

// I13: whatever the far side does, one Execute is one request there at most, for every
// method and with and without a key. (Go's transport resends GET, keyed and body-less
// requests by itself.)
func TestOneEffectHoweverItBreaks(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		answer  func(net.Conn, <-chan struct{})
		timeout string
		want    approvals.OutcomeClass
		effects int
	}{
		"answers 200":                  {status(200, `{"id":"rel_1"}`), "5s", approvals.OutcomeSucceeded, 1},
		"answers 204":                  {says("HTTP/1.1 204 No Content\r\n\r\n"), "5s", approvals.OutcomeSucceeded, 1},
		"resets after the request":     {resets, "5s", approvals.OutcomeUnknown, 1},
		"closes after the request":     {says(""), "5s", approvals.OutcomeUnknown, 1},
		"hangs":                        {hangs, "50ms", approvals.OutcomeUnknown, 1},
		"hangs in the middle":          {sayThenHang("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"), "50ms", approvals.OutcomeUnknown, 1},
		"breaks in the middle":         {says("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"id\":"), "5s", approvals.OutcomeUnknown, 1},
		"breaks in a chunk":            {says("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"), "5s", approvals.OutcomeUnknown, 1},
		"breaks in the status line":    {says("HTTP/1.1 20"), "5s", approvals.OutcomeUnknown, 1},
		"answers garbage":              {says("220 smtp.example ESMTP\r\n\r\n"), "5s", approvals.OutcomeUnknown, 1},
		"endless headers":              {says("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("a", 100<<10) + "\r\n\r\n"), "5s", approvals.OutcomeUnknown, 1},
		"1xx, then 200":                {says("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"), "5s", approvals.OutcomeSucceeded, 1},
		"1xx, then nothing":            {says("HTTP/1.1 100 Continue\r\n\r\n"), "5s", approvals.OutcomeUnknown, 1},
		"1xx without end":              {says(strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", 5000)), "5s", approvals.OutcomeUnknown, 1},
		"101 as the last word":         {says("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"), "5s", approvals.OutcomeUnknown, 1},
		"answers 500":                  {status(500, ""), "5s", approvals.OutcomeUnknown, 1},
		"answers 503 with Retry-After": {status(503, "", "Retry-After: 1"), "5s", approvals.OutcomeUnknown, 1},
		"answers 408":                  {status(408, ""), "5s", approvals.OutcomeUnknown, 1},
		"answers 408 and keeps open":   {sayThenHang("HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n"), "5s", approvals.OutcomeUnknown, 1},
		"answers 429":                  {status(429, "", "Retry-After: 1"), "5s", approvals.OutcomeNoEffect, 1},
		"answers 425":                  {status(425, ""), "5s", approvals.OutcomeNoEffect, 1},
		"answers 422":                  {status(422, `{"detail":"no"}`), "5s", approvals.OutcomeRefused, 1},
		"answers 401":                  {status(401, "", "WWW-Authenticate: Basic"), "5s", approvals.OutcomeRefused, 1},
		"answers 422 and breaks off":   {says("HTTP/1.1 422 No\r\nContent-Length: 100\r\n\r\n{"), "5s", approvals.OutcomeRefused, 1},
		"closes at once":               {nil, "5s", approvals.OutcomeUnknown, 0},
	}
	for name, c := range cases {
		for kind := range classes {
			for _, method := range []string{"POST", "PUT", "DELETE", "GET"} {
				t.Run(name+"/"+kind+"/"+method, func(t *testing.T) {
					t.Parallel()
					far := receive(t, c.answer, nil)
					out := executor().Execute(t.Context(), call(class(t, kind, method, far.url(), c.timeout)))
					if out.Class != c.want {
						t.Errorf("class %s (%s), want %s", out.Class, out.Error, c.want)
					}
					if far.effects() != c.effects || far.connections() != 1 {
						t.Errorf("%d effects on %d connections, want %d on 1", far.effects(), far.connections(), c.effects)
					}
					if (out.Error == "") != (c.want == approvals.OutcomeSucceeded) {
						t.Errorf("error %q for %s", out.Error, c.want)
					}
					hasNothingOf(t, out.Error, far.Addr().String(), "releases", "2026.07.24", "hidden-value-1", "Their Own Words")
				})
			}
		}
	}
}

func sayThenHang(text string) func(net.Conn, <-chan struct{}) {
	return func(conn net.Conn, gone <-chan struct{}) {
		_, _ = io.WriteString(conn, text)
		<-gone
	}
}

func hasNothingOf(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if strings.Contains(text, part) {
			t.Errorf("%q holds %q", text, part)
		}
	}
}

// A redirect is not followed, with a method that may be repeated or not: neither hop
// becomes a second effect.
func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	for _, code := range []int{300, 301, 302, 303, 304, 307, 308} {
		for _, method := range []string{"POST", "GET"} {
			t.Run(fmt.Sprint(code, method), func(t *testing.T) {
				t.Parallel()
				second := receive(t, status(200, "{}"), nil)
				first := receive(t, status(code, "", "Location: "+second.url()+"/releases"), nil)
				out := executor().Execute(t.Context(), call(class(t, "keyed", method, first.url(), "5s")))
				if out.Class != approvals.OutcomeUnknown {
					t.Errorf("class %s: a redirect proves nothing", out.Class)
				}
				if first.effects() != 1 || second.connections() != 0 {
					t.Errorf("%d effects, %d connections to the other place; want 1, 0", first.effects(), second.connections())
				}
			})
		}
	}
}

// Before a connection is handed over, nothing can have left: that alone is "unsent".
func TestUnsent(t *testing.T) {
	t.Parallel()
	t.Run("nobody listens", func(t *testing.T) {
		t.Parallel()
		gone := receive(t, nil, nil)
		_ = gone.Close()
		out := executor().Execute(t.Context(), call(class(t, "unkeyed", "POST", gone.url(), "5s")))
		wantClass(t, out, approvals.OutcomeUnsent)
	})
	t.Run("the certificate is unknown", func(t *testing.T) {
		t.Parallel()
		far := httptest.NewUnstartedServer(http.NotFoundHandler())
		far.Config.ErrorLog = log.New(io.Discard, "", 0)
		far.StartTLS()
		t.Cleanup(far.Close)
		out := executor().Execute(t.Context(), call(class(t, "unkeyed", "POST", far.URL, "5s")))
		wantClass(t, out, approvals.OutcomeUnsent)
	})
	t.Run("the handshake hangs", func(t *testing.T) {
		t.Parallel()
		far := receive(t, hangs, nil) // reads, and never gets a request out of it
		url := "https" + strings.TrimPrefix(far.url(), "http")
		out := executor().Execute(t.Context(), call(class(t, "unkeyed", "POST", url, "100ms")))
		wantClass(t, out, approvals.OutcomeUnsent)
		if far.effects() != 0 {
			t.Error("a request arrived")
		}
	})
	t.Run("the context has ended", func(t *testing.T) {
		t.Parallel()
		far := receive(t, status(200, "{}"), nil)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		out := executor().Execute(ctx, call(class(t, "unkeyed", "POST", far.url(), "5s")))
		wantClass(t, out, approvals.OutcomeUnsent)
		if far.effects() != 0 {
			t.Error("a request arrived")
		}
	})
	t.Run("a header's reference leads nowhere", func(t *testing.T) {
		t.Parallel()
		far := receive(t, status(200, "{}"), nil)
		out := executor().Execute(t.Context(), call(config(t, `
retry: opaque
http: {url: "`+far.url()+`/x", headers: {Authorization: env:NOT_SET}}`)))
		wantClass(t, out, approvals.OutcomeUnsent)
		if far.connections() != 0 {
			t.Error("a connection was made")
		}
	})
}

func wantClass(t *testing.T, out approvals.Outcome, want approvals.OutcomeClass) {
	t.Helper()
	if out.Class != want {
		t.Fatalf("class %s (%s), want %s", out.Class, out.Error, want)
	}
}

// What leaves is what was approved: the bytes, the key, the version, the resolved header.
func TestRequestAsApproved(t *testing.T) {
	t.Parallel()
	far := receive(t, status(201, `{"id":"rel_1"}`), nil)
	tenant := config(t, `
retry: idempotent
http:
  url: `+far.url()+`/releases
  headers: {Authorization: env:DEPLOY_AUTH, X-Team: release}
  key_header: Idempotency-Key
  key_retention: 24h
  if_match: true`)
	out := executor().Execute(t.Context(), call(tenant))
	wantClass(t, out, approvals.OutcomeSucceeded)
	if string(out.Output) != `{"id":"rel_1"}` || out.Receipt != `201 Created: {"id":"rel_1"}` {
		t.Errorf("output %s, receipt %q", out.Output, out.Receipt)
	}
	got := far.only(t)
	if got.body != arguments {
		t.Errorf("body %q, want the approved bytes %q", got.body, arguments)
	}
	for name, want := range map[string]string{
		"Idempotency-Key": "op-key-1", "If-Match": "etag-17", "Authorization": "Bearer header-secret-1", "X-Team": "release",
		"Content-Type": "application/json", "Connection": "", "Cookie": "", "Accept-Encoding": "",
	} {
		if name == "Connection" {
			if !got.Close {
				t.Error("the connection was to be kept")
			}
			continue
		}
		if have := got.Header.Get(name); have != want {
			t.Errorf("%s: %q, want %q", name, have, want)
		}
	}
	if got.Method != "POST" || got.URL.Path != "/releases" {
		t.Errorf("%s %s", got.Method, got.URL.Path)
	}
}

// A tool's own body and URL templates are filled by the rules, with the key.
func TestTemplates(t *testing.T) {
	t.Parallel()
	far := receive(t, status(200, ""), nil)
	out := executor().Execute(t.Context(), call(config(t, `
retry: idempotent
http:
  method: PUT
  url: "`+far.url()+`/releases/{{.release}}/{operation_key}"
  body: {env: "{{.environment}}", key: "{operation_key}"}
  key_retention: 24h`)))
	wantClass(t, out, approvals.OutcomeSucceeded)
	got := far.only(t)
	if got.URL.Path != "/releases/2026.07.24/op-key-1" || got.body != `{"env":"production","key":"op-key-1"}` {
		t.Errorf("%s %s", got.URL.Path, got.body)
	}
}

// The operator asked for a condition; a call without a version is not a way around it.
func TestIfMatch(t *testing.T) {
	t.Parallel()
	const spec = `
retry: idempotent
http: {url: "%s/releases", key_header: Idempotency-Key, key_retention: 24h, if_match: true}`
	for name, c := range map[string]struct {
		version string
		first   bool
		want    approvals.OutcomeClass
		effects int
	}{
		"412 on a first attempt":      {"etag-17", true, approvals.OutcomeTargetChanged, 1},
		"412 after one that was sent": {"etag-17", false, approvals.OutcomeRefused, 1},
		"no version":                  {"", true, approvals.OutcomeRefused, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			far := receive(t, status(412, ""), nil)
			c0 := call(config(t, fmt.Sprintf(spec, far.url())))
			c0.TargetVersion, c0.FirstAttempt = c.version, c.first
			out := executor().Execute(t.Context(), c0)
			wantClass(t, out, c.want)
			if far.effects() != c.effects {
				t.Errorf("%d effects, want %d", far.effects(), c.effects)
			}
		})
	}
	t.Run("412 without if_match is any other refusal", func(t *testing.T) {
		t.Parallel()
		far := receive(t, status(412, ""), nil)
		wantClass(t, executor().Execute(t.Context(), call(class(t, "unkeyed", "POST", far.url(), "5s"))), approvals.OutcomeRefused)
	})
}

// A key that was sent before and is still in work answers 409: no refusal.
func TestConflictOnAKeyInWork(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		class string
		first bool
		want  approvals.OutcomeClass
	}{
		"keyed, first":    {"keyed", true, approvals.OutcomeRefused},
		"keyed, again":    {"keyed", false, approvals.OutcomeUnknown},
		"unkeyed, first":  {"unkeyed", true, approvals.OutcomeRefused},
		"unkeyed, second": {"unkeyed", false, approvals.OutcomeRefused},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			far := receive(t, status(409, ""), nil)
			c0 := call(class(t, c.class, "POST", far.url(), "5s"))
			c0.FirstAttempt = c.first
			wantClass(t, executor().Execute(t.Context(), c0), c.want)
		})
	}
}
