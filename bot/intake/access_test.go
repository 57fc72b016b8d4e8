package intake

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/holdpoint/holdpoint/approvals"
)

func TestSecurityHeaders(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{})
	for _, path := range []string{"/v1/approvals", "/v1/approvals/apr_x", "/nowhere", "/docs", "/openapi.json"} {
		r := h.do("GET", path, "")
		for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer", "Cross-Origin-Resource-Policy": "same-origin"} {
			if got := r.header.Get(name); got != want {
				t.Errorf("%s: %s is %q", path, name, got)
			}
		}
		if csp := r.header.Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none';") || !strings.Contains(csp, "frame-ancestors 'none'") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s: %q", path, csp)
		}
		if cache := r.header.Get("Cache-Control"); strings.HasPrefix(path, "/v1") && cache != "no-store" {
			t.Errorf("%s: Cache-Control %q", path, cache)
		}
		if r.header.Get("X-Request-Id") == "" || r.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %v", path, r.header)
		}
	}
}

// One line a request, of ids, patterns and numbers.
func TestAccessLine(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{})
	id := h.submitted()
	for _, c := range []struct {
		method, path string
		want         map[string]any
	}{
		{"GET", "/v1/approvals/" + id.String() + "?wait=0s", map[string]any{"level": "INFO", "method": "GET", "route": "/v1/approvals/{approval_id}", "status": 200., "tenant": "acme", "agent": "release-agent", "key": "k1", "approval": id.String()}},
		{"GET", "/v1/runs/run_42/resume", map[string]any{"level": "INFO", "route": "/v1/runs/{run_id}/resume", "status": 204., "run": "run_42"}},
		{"GET", "/v1/approvals?" + canary + "=1", map[string]any{"route": "/v1/approvals", "status": 400., "code": "invalid_request"}},
		{canary, "/v1/" + canary, map[string]any{"method": "other", "route": "none", "status": 404., "code": "not_found"}},
	} {
		before := len(h.log.String())
		r := h.do(c.method, c.path, "")
		eventually(t, func() bool { return len(h.log.String()) > before })
		line := strings.TrimSpace(h.log.String()[before:])
		var got map[string]any
		if err := json.Unmarshal([]byte(line), &got); err != nil || strings.Count(line, "\n") != 0 {
			t.Fatalf("%v: %s", err, line)
		}
		for name, want := range c.want {
			if got[name] != want {
				t.Errorf("%s: %s is %v, want %v", c.path, name, got[name], want)
			}
		}
		if got["request_id"] != r.header.Get("X-Request-Id") || got["ms"] == nil || strings.Contains(line, canary) {
			t.Errorf("%s: %s", c.path, line)
		}
	}
}

// I24: a secret put into every place of every body and query of every route comes out in no log, no header and no problem,
// whether the core takes it, refuses it, breaks or panics.
func TestCanary(t *testing.T) {
	t.Parallel()
	lease := `"lease_token":"` + canary + `","epoch":1`
	requests := []struct{ method, path, body string }{
		{"POST", "/v1/approvals", `{"run":{"id":"r","app_state_version":"v","pause_key":"` + canary + `","agent_revision":"` + canary + `","requester":"` + canary + `","state":{"format":"opaque","sdk_version":"` + canary + `","value":{"` + canary + `":"` + canary + `"}}},"calls":[{"tool_call_id":"1","tool":"t","arguments":{"token":"` + canary + `"},"reason":"` + canary + `","target_version":"` + canary + `"},{"tool_call_id":"2","tool":"t","arguments":"{\"token\":\"` + canary + `\"}"}]}`},
		{"POST", "/v1/approvals", `{"run":{"state":{"format":"` + canary + `","value":"` + canary},
		{"POST", "/v1/approvals", `{"run":{"id":"r","app_state_version":"v"},"calls":[{"tool_call_id":"1","tool":"t","arguments":"{}","` + canary + `":"` + canary + `"}]}`},
		{"GET", "/v1/approvals?cursor=" + canary, ""},
		{"GET", "/v1/approvals?" + canary, ""},
		{"GET", "/v1/approvals/" + canary, ""},
		{"GET", "/v1/approvals/ID?wait=" + canary, ""},
		{"POST", "/v1/approvals/ID/revoke", `{"reason":"` + canary + `"}`},
		{"POST", "/v1/approvals/ID/resume", `{"` + canary + `":1}`},
		{"POST", "/v1/runs/r/resume/ack", `{"pause":1,"agent_revision":"` + canary + `"}`},
		{"POST", "/v1/operations/ID/claim", `{"attempt_id":"` + canary + `"}`},
		{"POST", "/v1/operations/ID/renew", `{` + lease + `}`},
		{"POST", "/v1/operations/ID/complete", `{` + lease + `,"result":{"` + canary + `":"` + canary + `"}}`},
		{"POST", "/v1/operations/ID/fail", `{` + lease + `,"error":"` + canary + `"}`},
	}
	moods := map[string]func(*house){
		"taken": func(*house) {},
		"refused": func(h *house) {
			h.fail = &approvals.Refusal{Code: approvals.CodeSecretInState, Detail: "No.", Pointer: "/run/state/value"}
		},
		"broken":      func(h *house) { h.fail = fmt.Errorf("insert %s: %w", canary, coded{canary}) },
		"panicking":   func(h *house) { h.panics = "bad " + canary },
		"unavailable": func(h *house) { h.fail = fmt.Errorf("%s: %w", canary, approvals.ErrUnavailable) },
	}
	for mood, set := range moods {
		t.Run(mood, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, Options{FailedPerMinute: 1000})
			id := h.submitted().String()
			set(h)
			for _, q := range requests {
				for _, bearer := range []string{aliceBearer, otherBearer, "hp_" + canary, canary} {
					r := h.do(q.method, strings.ReplaceAll(q.path, "ID", id), q.body, "Authorization", "Bearer "+bearer)
					if r.status >= 400 && strings.Contains(r.body, canary) || strings.Contains(fmt.Sprint(r.header), canary) {
						t.Errorf("%s %s: %d %s %v", q.method, q.path, r.status, r.body, r.header)
					}
				}
			}
			log := h.log.String()
			for _, secret := range []string{canary, aliceBearer, otherBearer} {
				if at := strings.Index(log, secret); at >= 0 {
					t.Errorf("the log has %q: …%s", secret, log[max(0, at-200):at+len(secret)])
				}
			}
		})
	}
}

// What holds arguments, states and results can't be printed by accident.
func TestUnprintable(t *testing.T) {
	t.Parallel()
	var in intakeBody
	body := oneOf(`"tool_call_id":"1","tool":"t","arguments":"` + canary + `"`)
	body = strings.Replace(body, `"v"}`, `"v","state":{"format":"opaque","value":"`+canary+`"}}`, 1)
	if p := decode([]byte(body), &in); p != nil {
		t.Fatal(p)
	}
	asNumbers := strings.Trim(fmt.Sprintf("%d", []byte(canary[:4])), "[]") // how %v prints bytes
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for _, v := range []any{in.Calls[0].Arguments, &in.Calls[0].Arguments, in.Run.State.Value, in.Calls, *in.Run.State} {
			out := fmt.Sprintf(verb, v)
			if strings.Contains(out, canary) || strings.Contains(out, fmt.Sprintf("%x", canary)) || strings.Contains(out, asNumbers) {
				t.Errorf("%s of %T: %s", verb, v, out)
			}
		}
	}
	j := &journal{}
	slog.New(slog.NewJSONHandler(j, nil)).Info("x", "calls", in.Calls, "state", in.Run.State)
	if out := j.String(); strings.Contains(out, canary) {
		t.Error(out)
	}
}

// A handler in another's mux, behind another's writer, works all the same.
func TestMounted(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	r := httptest.NewRequest("POST", "/v1/approvals", strings.NewReader(oneCall))
	r.Header.Set("Authorization", "Bearer "+aliceBearer)
	r.Header.Set("Content-Type", "application/json")
	New(newMemory(), Options{}).ServeHTTP(w, r)
	if w.Code != 201 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
