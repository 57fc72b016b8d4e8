package intake

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdpoint/holdpoint/approvals"
)

func TestContentType(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{})
	for _, c := range []struct {
		headers []string
		status  int
	}{
		{[]string{"Content-Type", ""}, 415},
		{[]string{"Content-Type", "text/plain"}, 415},
		{[]string{"Content-Type", "application/x-www-form-urlencoded"}, 415},
		{[]string{"Content-Type", "application/json; charset=latin1"}, 415},
		{[]string{"Content-Type", "application/json;;"}, 415},
		{[]string{"Content-Type", "application/jsonp"}, 415},
		{[]string{"Content-Encoding", "gzip"}, 415},
		{[]string{"Content-Encoding", "identity"}, 201},
		{[]string{"Content-Type", "Application/JSON"}, 200},
	} {
		if r := h.do("POST", "/v1/approvals", oneCall, c.headers...); r.status != c.status {
			t.Errorf("%q: %d %s", c.headers, r.status, r.body)
		} else if c.status == 415 && r.problem(t).Code != approvals.CodeInvalidRequest {
			t.Errorf("%q: %s", c.headers, r.body)
		}
	}
}

// endless is a body that never ends. It counts what was taken of it.
type endless struct {
	head  io.Reader
	fill  byte
	taken int
}

func (e *endless) Read(b []byte) (int, error) {
	if e.head != nil {
		if n, err := e.head.Read(b); err == nil {
			return n, nil
		}
		e.head = nil
	}
	for i := range b {
		b[i] = e.fill
	}
	e.taken += len(b)
	return len(b), nil
}

// A body over the limit is a 413 whether its length was announced or not, and the code says what is too large.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	const limit = 64 << 10
	h := newHouse(t, Options{MaxBody: limit})
	state := `{"run":{"id":"r","app_state_version":"v","state":{"format":"opaque","value":"` + canary
	for _, c := range []struct {
		name, head, code, pointer string
	}{
		{"a state", state, "state_too_large", "/run/state/value"},
		{"a nested state", strings.TrimSuffix(state, `"`+canary) + `{"a":["`, "state_too_large", "/run/state/value"},
		{"arguments", `{"calls":[{"arguments":"`, "invalid_request", ""},
		{"a run id", `{"run":{"id":"` + canary, "invalid_request", ""},
		{"no JSON", canary, "invalid_request", ""},
	} {
		for _, announced := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, announced %v", c.name, announced), func(t *testing.T) {
				t.Parallel()
				var body io.Reader = &endless{head: strings.NewReader(c.head), fill: 'x'}
				if announced {
					body = strings.NewReader(c.head + strings.Repeat("x", 2*limit))
				}
				r := h.send(t.Context(), "POST", "/v1/approvals", body)
				if p := r.problem(t); p.Status != 413 || string(p.Code) != c.code || p.Pointer != c.pointer || strings.Contains(r.body, canary) {
					t.Errorf("%d %s", r.status, r.body)
				}
				if !r.closes {
					t.Errorf("the connection stays open: %v", r.header)
				}
			})
		}
	}
	t.Run("exactly the limit", func(t *testing.T) {
		t.Parallel()
		full := oneCall + strings.Repeat(" ", limit-len(oneCall))
		if r := h.do("POST", "/v1/approvals", full); r.status != 201 {
			t.Errorf("%d %s", r.status, r.body)
		}
		if r := h.do("POST", "/v1/approvals", full+" "); r.status != 413 {
			t.Errorf("one more: %d %s", r.status, r.body)
		}
	})
	t.Run("small routes", func(t *testing.T) {
		t.Parallel()
		r := h.send(t.Context(), "POST", "/v1/approvals/"+approvals.NewID().String()+"/revoke", &endless{head: strings.NewReader(`{"reason":"`), fill: 'x'})
		if p := r.problem(t); p.Status != 413 || p.Code != approvals.CodeInvalidRequest {
			t.Errorf("%d %s", r.status, r.body)
		}
	})
}

func TestNoMoreIsReadThanTheLimit(t *testing.T) {
	t.Parallel()
	const limit = 100_000
	body := &endless{fill: ' '}
	got, err := readAll(http.MaxBytesReader(nil, io.NopCloser(body), limit), 512)
	if err == nil || len(got) != limit || body.taken > 2*limit {
		t.Errorf("%d bytes kept, %d taken, %v", len(got), body.taken, err)
	}
}

// A sender who dribbles, or who stops, is answered at the deadline and hung up on: a 408 in the one form, then the end.
func TestSlowBody(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, framing string }{
		{"announced", "Content-Length: 1000\r\n\r\n" + `{"run":`},
		{"chunked", "Transfer-Encoding: chunked\r\n\r\n7\r\n" + `{"run":` + "\r\n"},
		{"nothing at all", "Content-Length: 5\r\n\r\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, Options{ReadTimeout: 30 * time.Millisecond})
			conn, answer := h.raw("POST /v1/approvals HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nAuthorization: Bearer " + aliceBearer + "\r\n" + c.framing)
			if p := answer.problem(t); p.Status != 408 || p.Code != approvals.CodeInvalidRequest || !strings.Contains(p.Detail, "30ms") {
				t.Errorf("%d %s", answer.status, answer.body)
			}
			closed(t, conn)
		})
	}
}

// A stranger's body is neither waited for nor able to hold the connection.
func TestSlowStranger(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{ReadTimeout: time.Hour})
	conn, answer := h.raw("POST /v1/approvals HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nAuthorization: Bearer hp_wrong\r\nContent-Length: 1000\r\n\r\n{")
	if p := answer.problem(t); p.Code != approvals.CodeUnauthorized {
		t.Errorf("%d %s", answer.status, answer.body)
	}
	closed(t, conn)
}

// A body that breaks off is nobody's request.
func TestBrokenOffBody(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{})
	for _, framing := range []string{
		"Content-Length: 1000\r\n\r\n" + oneCall,
		"Transfer-Encoding: chunked\r\n\r\nzz\r\n" + oneCall,
	} {
		conn := h.dial("POST /v1/approvals HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nAuthorization: Bearer " + aliceBearer + "\r\n" + framing)
		if err := conn.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		answer := readResponse(t, conn)
		if p := answer.problem(t); p.Status != 400 || !strings.Contains(p.Detail, "broke off") {
			t.Errorf("%d %s", answer.status, answer.body)
		}
		closed(t, conn)
	}
	if len(h.intakes) != 0 {
		t.Errorf("%d intakes", len(h.intakes))
	}
}

// The deadline of a body doesn't end what comes after it: a call into the core that takes longer than the body had.
func TestBodyDeadlineIsLifted(t *testing.T) {
	t.Parallel()
	const patience = 400 * time.Millisecond
	h := newHouse(t, Options{ReadTimeout: patience})
	h.slow = func(ctx context.Context) error {
		timer := time.NewTimer(2 * patience)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			return nil
		}
	}
	if r := h.do("POST", "/v1/approvals", oneCall); r.status != 201 {
		t.Errorf("%d %s", r.status, r.body)
	}
}

// raw speaks HTTP by hand, for requests that a client wouldn't send.
func (h *house) raw(request string) (net.Conn, response) {
	h.t.Helper()
	conn := h.dial(request)
	return conn, readResponse(h.t, conn)
}

func (h *house) dial(request string) *net.TCPConn {
	h.t.Helper()
	to, err := net.ResolveTCPAddr("tcp", strings.TrimPrefix(h.url, "http://"))
	if err != nil {
		h.t.Fatal(err)
	}
	conn, err := net.DialTCP("tcp", nil, to)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = conn.Close() })
	if _, err = io.WriteString(conn, request); err != nil {
		h.t.Fatal(err)
	}
	return conn
}

func readResponse(t *testing.T, conn net.Conn) response {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response{answer.StatusCode, answer.Header, string(body), answer.Close}
}

// closed holds the server to having hung up.
func closed(t *testing.T, conn net.Conn) {
	t.Helper()
	n, err := io.Copy(io.Discard, conn)
	if n != 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("still open: %d more bytes, %v", n, err)
	}
}
