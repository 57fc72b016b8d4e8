package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

// demoTool is a downstream system with an effect that can be seen and a counter. It honours Idempotency-Key, as a good one does: the
// same key again gives the first answer and no second effect.
type demoTool struct {
	changed func()

	mu       sync.Mutex
	requests int
	effects  int
	last     string
	answers  map[string][]byte
}

func newDemoTool(changed func()) *demoTool {
	return &demoTool{changed: changed, answers: map[string][]byte{}}
}

func (t *demoTool) counts() (effects, requests int, last string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.effects, t.requests, t.last
}

func (t *demoTool) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.NotFound(w, r)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil {
		http.Error(w, "the body could not be read", http.StatusBadRequest)
		return
	}
	answer, err := t.apply(strings.TrimPrefix(r.URL.Path, "/demo/"), r.Header.Get("Idempotency-Key"), body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	}
	t.changed()
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(answer)
}

func (t *demoTool) apply(kind, key string, body []byte) ([]byte, error) {
	var args map[string]any
	if err := json.Unmarshal(body, &args); err != nil {
		return nil, fmt.Errorf("not JSON")
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.requests++
	if was, ok := t.answers[key]; ok && key != "" {
		return was, nil
	}
	t.effects++
	switch kind {
	case "releases":
		t.last = fmt.Sprintf("deployed %v to %v", args["release"], args["environment"])
	case "refunds":
		t.last = fmt.Sprintf("refunded %v %v on %v", args["amount"], args["currency"], args["order"])
	default:
		t.last = kind
	}
	answer, err := json.Marshal(map[string]any{"receipt": fmt.Sprintf("%s-%04d", kind, t.effects), "done": t.last})
	t.answers[key] = answer
	return answer, err
}
