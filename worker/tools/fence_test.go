package tools_test

import (
	"crypto/x509"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/worker/tools"
)

// HTTP/2 would resend on a peer's reset; a server that offers it is spoken to in HTTP/1.
func TestNoHTTP2(t *testing.T) {
	t.Parallel()
	var effects, http2 atomic.Int64
	far := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		effects.Add(1)
		if r.ProtoMajor != 1 {
			http2.Add(1)
		}
		panic(http.ErrAbortHandler) // RST_STREAM in HTTP/2
	}))
	far.EnableHTTP2 = true
	far.Config.ErrorLog = log.New(io.Discard, "", 0)
	far.StartTLS()
	t.Cleanup(far.Close)
	for _, method := range []string{"POST", "GET"} {
		run := executor()
		run.Egress.Roots = x509.NewCertPool()
		run.Egress.Roots.AddCert(far.Certificate())
		wantClass(t, run.Execute(t.Context(), call(class(t, "keyed", method, far.URL, "5s"))), approvals.OutcomeUnknown)
	}
	if effects.Load() != 2 || http2.Load() != 0 {
		t.Errorf("%d effects for 2 calls, %d of them over HTTP/2", effects.Load(), http2.Load())
	}
}

// I16: after the lease nothing leaves, be it lost before the connection or after it.
func TestFence(t *testing.T) {
	t.Parallel()
	t.Run("before", func(t *testing.T) {
		t.Parallel()
		far := receive(t, status(200, "{}"), nil)
		c := call(class(t, "unkeyed", "POST", far.url(), "5s"))
		c.Live = func() bool { return false }
		wantClass(t, executor().Execute(t.Context(), c), approvals.OutcomeUnsent)
		if far.connections() != 0 {
			t.Error("a connection was made")
		}
	})
	t.Run("between connection and first byte", func(t *testing.T) {
		t.Parallel()
		far := receive(t, status(200, "{}"), nil)
		c := call(class(t, "unkeyed", "POST", far.url(), "5s"))
		var asked atomic.Int64
		c.Live = func() bool { return asked.Add(1) == 1 } // alive at the check, gone at the write
		wantClass(t, executor().Execute(t.Context(), c), approvals.OutcomeUnknown)
		if far.effects() != 0 {
			t.Error("a request arrived after the lease")
		}
	})
}

// What the core must never hand over is not sent either.
func TestUnfitCalls(t *testing.T) {
	t.Parallel()
	far := receive(t, status(200, "{}"), nil)
	good := call(class(t, "keyed", "POST", far.url(), "5s"))
	for name, spoil := range map[string]func(*tools.Call){
		"no tool":              func(c *tools.Call) { c.Tool = nil },
		"no tenant":            func(c *tools.Call) { c.Tenant = nil },
		"no key":               func(c *tools.Call) { c.OperationKey = "" },
		"unreadable arguments": func(c *tools.Call) { c.Arguments.Unreadable = "not JSON" },
	} {
		c := good
		spoil(&c)
		if out := executor().Execute(t.Context(), c); out.Class != approvals.OutcomeUnsent {
			t.Errorf("%s: %s", name, out.Class)
		}
		if out := executor().Lookup(t.Context(), c); out.Class == approvals.OutcomeSucceeded || out.Class == approvals.OutcomeAbsent {
			t.Errorf("%s, lookup: %s", name, out.Class)
		}
	}
	if far.connections() != 0 {
		t.Error("something was sent")
	}
}
