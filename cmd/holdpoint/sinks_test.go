package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// board is state that tests wait on: whoever changes it wakes everybody.
type board struct {
	mu      sync.Mutex
	changed chan struct{}
}

// touch announces a change. Held: mu.
func (b *board) touch() {
	if b.changed != nil {
		close(b.changed)
	}
	b.changed = make(chan struct{})
}

// wait returns once ok, called with mu held, is true.
func (b *board) wait(ctx context.Context, ok func() bool) error {
	for {
		b.mu.Lock()
		if b.changed == nil {
			b.changed = make(chan struct{})
		}
		done, changed := ok(), b.changed
		b.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// request is one that the tool received.
type request struct {
	path, key string
	body      string
}

// target is the downstream system. It counts every request that arrives, and effects by Idempotency-Key, as a good one does: the
// same key again gives the first answer. A request without a key is an effect each time.
type target struct {
	board
	url      string
	requests []request
	effects  []request
	answers  map[string]string
	gate     chan struct{} // requests of hold wait here, after their effect
	held     int           // how many more requests are to wait
}

func newTarget(t *testing.T) *target {
	t.Helper()
	x := &target{answers: map[string]string{}, gate: make(chan struct{})}
	s := httptest.NewServer(x)
	x.url = s.URL
	t.Cleanup(func() {
		x.release()
		s.Close()
	})
	return x
}

func (x *target) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // broken off: nothing was asked for
	}
	req := request{path: r.URL.Path, key: r.Header.Get("Idempotency-Key"), body: string(body)}
	x.mu.Lock()
	x.requests = append(x.requests, req)
	answer, known := x.answers[req.key]
	if !known || req.key == "" {
		x.effects = append(x.effects, req)
		answer = fmt.Sprintf(`{"receipt":"R-%04d"}`, len(x.effects))
		x.answers[req.key] = answer
	}
	var gate chan struct{}
	if x.held > 0 {
		x.held--
		gate = x.gate
	}
	x.touch()
	x.mu.Unlock()
	if gate != nil {
		<-gate // not the request's end: a caller that is gone changes nothing here
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, answer)
}

// hold makes the next n requests have their effect and wait for release before they are answered.
func (x *target) hold(n int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.held = n
}

func (x *target) release() {
	x.mu.Lock()
	defer x.mu.Unlock()
	close(x.gate)
	x.gate, x.held = make(chan struct{}), 0
}

// counts are the effects and the requests so far.
func (x *target) counts() (effects, requests int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.effects), len(x.requests)
}

// told is a resume message as the agent reads it.
type told struct {
	Type string
	Data struct {
		Run struct {
			ID, Agent string
			Pause     int
		}
		State *struct {
			Format string
			Value  json.RawMessage
		}
		Decisions []answered
	}
	webhookID string
}

type answered struct {
	ApprovalID      string `json:"approval_id"`
	ToolCallID      string `json:"tool_call_id"`
	Tool            string
	Decision        string
	Edited          bool
	Arguments       string
	ArgumentsDigest string  `json:"arguments_digest"`
	ExecutedBy      *string `json:"executed_by"`
	Outcome         string
	Result          json.RawMessage
	ReasonCode      *string `json:"reason_code"`
	Message         *string
	Votes           []struct{ By, Decision string }
}

// listener is the agent's webhook: it verifies the signature (Standard Webhooks), and remembers what it was told.
type listener struct {
	board
	url, secret string
	messages    []told
	refused     []string // webhook ids whose signature was wrong
}

const hookSecret = "whsec_aG9sZHBvaW50LXRlc3QtYWdlbnQta2V5LTAxMjM0NTY3"

func newListener(t *testing.T) *listener {
	t.Helper()
	l := &listener{secret: hookSecret}
	s := httptest.NewServer(l)
	l.url = s.URL
	t.Cleanup(s.Close)
	return l
}

func (l *listener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	hook, hookErr := standardwebhooks.NewWebhook(l.secret)
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.touch()
	m := told{webhookID: r.Header.Get("webhook-id")}
	if err != nil || hookErr != nil || hook.Verify(body, r.Header) != nil || json.Unmarshal(body, &m) != nil {
		l.refused = append(l.refused, m.webhookID)
		http.Error(w, "no", http.StatusUnauthorized)
		return
	}
	l.messages = append(l.messages, m)
	_, _ = io.WriteString(w, `{"agent_revision":"git:resumed"}`)
}

// of are the messages about one run.
func (l *listener) of(run string) []told {
	var out []told
	for _, m := range l.messages {
		if m.Data.Run.ID == run {
			out = append(out, m)
		}
	}
	return out
}

// journal is a log that tests read.
type journal struct {
	board
	b strings.Builder
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	defer j.touch()
	return j.b.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.String()
}

// says waits for a text in the log.
func (j *journal) says(ctx context.Context, text string) error {
	return j.wait(ctx, func() bool { return strings.Contains(j.b.String(), text) })
}
