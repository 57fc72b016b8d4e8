package intake

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/holdpoint/holdpoint/approvals"
)

// journal is a log that can be read while it is written.
type journal struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.Write(b)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.String()
}

// house is a running API with a memory behind it.
type house struct {
	*memory
	t   *testing.T
	url string
	log *journal
}

func newHouse(t *testing.T, opts Options) *house {
	t.Helper()
	h := &house{memory: newMemory(), t: t, log: &journal{}}
	opts.Log = slog.New(slog.NewJSONHandler(h.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	srv := httptest.NewServer(New(h.memory, opts))
	t.Cleanup(srv.Close)
	h.url = srv.URL
	return h
}

type response struct {
	status int
	header http.Header
	body   string
	closes bool // the server ends the connection
}

func (r response) problem(t *testing.T) Problem {
	t.Helper()
	if got := r.header.Get("Content-Type"); got != "application/problem+json" {
		t.Fatalf("Content-Type %q of %d %s", got, r.status, r.body)
	}
	var p Problem
	d := json.NewDecoder(strings.NewReader(r.body))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		t.Fatalf("a problem that can't be read: %v in %s", err, r.body)
	}
	if p.Status != r.status || p.Title == "" || p.Detail == "" || p.Type != "/docs#"+string(p.Code) {
		t.Fatalf("an incomplete problem with status %d: %s", r.status, r.body)
	}
	return p
}

// decoded reads a success into v.
func (r response) decoded(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(r.body), v); err != nil {
		t.Fatalf("%d %s: %v", r.status, r.body, err)
	}
}

// do sends one request as the release agent; headers replace the usual ones, a header without a value goes.
func (h *house) do(method, path, body string, headers ...string) response {
	h.t.Helper()
	return h.send(h.t.Context(), method, path, strings.NewReader(body), headers...)
}

func (h *house) send(ctx context.Context, method, path string, body io.Reader, headers ...string) response {
	h.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, h.url+path, body)
	if err != nil {
		h.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+aliceBearer)
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i+1] == "" {
			r.Header.Del(headers[i])
		} else {
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		h.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return response{answer.StatusCode, answer.Header, string(b), answer.Close}
}

const oneCall = `{"run":{"id":"run_42","app_state_version":"release-agent/v1"},"calls":[{"tool_call_id":"call_1","tool":"deploy_release","arguments":"{\"release\":\"1\"}"}]}`

// submitted hands in one call and gives its id.
func (h *house) submitted() approvals.ID {
	h.t.Helper()
	r := h.do("POST", "/v1/approvals", oneCall)
	var p approvals.Pause
	r.decoded(h.t, &p)
	if r.status != http.StatusCreated || len(p.Approvals) != 1 {
		h.t.Fatalf("%d %s", r.status, r.body)
	}
	return p.Approvals[0].ApprovalID
}
