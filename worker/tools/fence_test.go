package tools_test

import (
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/approvals/canon"
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
		wantClass(t, executor().Execute(t.Context(), c), approvals.OutcomeUnsent)
		if far.effects() != 0 {
			t.Error("a request arrived after the lease")
		}
	})
}

// I13, I17, I19: what could not begin to leave in time never leaves, and is provably unsent: a lookup's 404 and a key's retention are
// counted from the claim.
func TestSendDeadline(t *testing.T) {
	t.Parallel()
	t.Run("over before the connection", func(t *testing.T) {
		t.Parallel()
		far := receive(t, status(200, "{}"), nil)
		c := call(class(t, "unkeyed", "POST", far.url(), "5s"))
		c.SendBy = time.Now()
		wantClass(t, executor().Execute(t.Context(), c), approvals.OutcomeUnsent)
		if far.effects() != 0 {
			t.Error("sent too late")
		}
	})
	t.Run("over before the first byte", func(t *testing.T) {
		t.Parallel()
		far := receive(t, status(200, "{}"), nil)
		c := call(class(t, "unkeyed", "POST", far.url(), "5s"))
		c.SendBy = time.Now().Add(2 * time.Second)
		// The connection is there in time; then this process is stopped until it is too late.
		stalled := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { <-time.After(time.Until(c.SendBy)) }})
		wantClass(t, executor().Execute(stalled, c), approvals.OutcomeUnsent)
		if far.effects() != 0 || far.connections() != 1 {
			t.Errorf("%d effects over %d connections", far.effects(), far.connections())
		}
	})
	t.Run("in time, and the answer takes longer", func(t *testing.T) {
		t.Parallel()
		sendBy := time.Now().Add(2 * time.Second)
		far := receive(t, func(conn net.Conn, gone <-chan struct{}) {
			<-time.After(time.Until(sendBy))
			status(200, "{}")(conn, gone)
		}, nil)
		c := call(class(t, "unkeyed", "POST", far.url(), "5s"))
		c.SendBy = sendBy
		wantClass(t, executor().Execute(t.Context(), c), approvals.OutcomeSucceeded)
	})
	t.Run("the rest is bound by the timeout", func(t *testing.T) {
		t.Parallel()
		release := make(chan struct{})
		far := deaf(t, release)
		c := call(class(t, "unkeyed", "POST", "http://"+far.Addr().String(), "1s"))
		c.Arguments = canon.Read([]byte(`{"name":"` + strings.Repeat("x", 900<<10) + `"}`))
		c.SendBy = time.Now().Add(time.Second)
		wantClass(t, executor().Execute(t.Context(), c), approvals.OutcomeUnknown)
		close(release)
		// What the kernel still held must not arrive after the attempt was given up.
		if n := <-far.got; n > 900<<10 {
			t.Errorf("%d bytes arrived after the timeout: the whole request", n)
		}
	})
}

// deaf accepts one connection and reads nothing of it before release; then it counts what comes.
func deaf(t *testing.T, release <-chan struct{}) *deafEnd {
	t.Helper()
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		_ = c.Control(func(fd uintptr) { err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 8<<10) })
		return err
	}}
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &deafEnd{Listener: l, got: make(chan int64, 1)}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		conn, err := l.Accept()
		if err != nil {
			d.got <- 0
			return
		}
		defer func() { _ = conn.Close() }()
		<-release
		n, _ := io.Copy(io.Discard, conn)
		d.got <- n
	}()
	return d
}

type deafEnd struct {
	net.Listener
	got chan int64
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
