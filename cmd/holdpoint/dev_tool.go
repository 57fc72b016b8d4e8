package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// demoTool is a downstream system with an effect that can be seen and a counter. It honours Idempotency-Key, as a good one does: the
// same key again gives the first answer and no second effect.
type demoTool struct {
	changed func()
	state   *demoState
}

func newDemoTool(state *demoState, changed func()) *demoTool {
	return &demoTool{changed: changed, state: state}
}

func (t *demoTool) counts() (effects, requests int, last string) {
	t.state.do(func(k *demoKept) bool {
		effects, requests, last = k.Effects, k.Requests, k.Last
		return false
	})
	return effects, requests, last
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
	var answer []byte
	var err error
	t.state.do(func(k *demoKept) bool {
		k.Requests++
		if was, ok := k.Answers[key]; ok && key != "" {
			answer = []byte(was)
			return true
		}
		k.Effects++
		k.Last = done(kind, args)
		answer, err = json.Marshal(map[string]any{"receipt": fmt.Sprintf("%s-%04d", kind, k.Effects), "done": k.Last})
		k.Answers[key] = string(answer)
		return true
	})
	return answer, err
}

// done says what was done.
func done(kind string, args map[string]any) string {
	switch kind {
	case "releases":
		return fmt.Sprintf("deployed %v to %v", args["release"], args["environment"])
	case "refunds":
		return fmt.Sprintf("refunded %v %v on %v", args["amount"], args["currency"], args["order"])
	}
	return kind
}
