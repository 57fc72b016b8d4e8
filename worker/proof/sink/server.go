package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

// line is one thing that happened.
type line struct {
	At      time.Time         `json:"at"`
	Kind    string            `json:"kind"`  // request, effect, lookup, hook, torn
	Class   string            `json:"class"` // idempotent, queryable, opaque
	Key     string            `json:"key,omitempty"`
	Op      string            `json:"op,omitempty"`
	Step    string            `json:"step,omitempty"`
	Body    string            `json:"body,omitempty"`
	Found   bool              `json:"found,omitempty"`   // lookup
	Headers map[string]string `json:"headers,omitempty"` // hook
}

// server counts. All of its state is behind one lock: what it says happened in that order.
type server struct {
	mu      sync.Mutex
	log     *os.File
	seen    map[string]int    // requests by op
	effects map[string]string // answers by class and key
}

func newServer(log *os.File) *server {
	return &server{log: log, seen: map[string]int{}, effects: map[string]string{}}
}

func (s *server) routes() http.Handler {
	mux := http.NewServeMux()
	for _, class := range []string{"idempotent", "queryable", "opaque"} {
		mux.HandleFunc("POST /"+class, func(w http.ResponseWriter, r *http.Request) { s.effect(w, r, class) })
	}
	mux.HandleFunc("GET /queryable/{key}", s.lookup)
	mux.HandleFunc("POST /hook", s.hook)
	return mux
}

// write appends a line. Held: mu. A line that can't be written ends the process: a count with a gap is worse than none.
func (s *server) write(l line) {
	l.At = time.Now().UTC()
	text, err := json.Marshal(l)
	if err == nil {
		_, err = s.log.Write(append(text, '\n'))
	}
	if err != nil {
		panic(fmt.Sprintf("the log can't be written: %v", err))
	}
}

// effect takes a tool's request.
func (s *server) effect(w http.ResponseWriter, r *http.Request, class string) {
	body, err := io.ReadAll(r.Body)
	key := r.Header.Get("Idempotency-Key")
	var said struct{ Op, Plan string }
	if err != nil || json.Unmarshal(body, &said) != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.write(line{Kind: "torn", Class: class, Key: key}) // broken off: it was not asked for
		panic(http.ErrAbortHandler)
	}
	s.mu.Lock()
	s.seen[said.Op]++
	now := step(said.Plan, s.seen[said.Op])
	l := line{Kind: "request", Class: class, Key: key, Op: said.Op, Step: now, Body: string(body)}
	s.write(l)
	answer := ""
	if acts(now) {
		var known bool
		if answer, known = s.effects[class+" "+key]; !known || class != "idempotent" || key == "" {
			answer = fmt.Sprintf(`{"receipt":"R-%s"}`, said.Op)
			s.effects[class+" "+key] = answer
			l.Kind, l.Body = "effect", ""
			s.write(l)
		}
	}
	s.mu.Unlock()
	reply(w, r, now, answer)
}

// lookup says whether an effect happened under a key.
func (s *server) lookup(w http.ResponseWriter, r *http.Request) {
	key := r.PathValue("key")
	s.mu.Lock()
	body, found := s.effects["queryable "+key]
	s.write(line{Kind: "lookup", Class: "queryable", Key: key, Found: found})
	s.mu.Unlock()
	if !found {
		http.NotFound(w, r)
		return
	}
	answer(w, body)
}

// hook takes a webhook. Its step is by the run's id: `run_7~5xx,ok`.
func (s *server) hook(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	var said struct {
		Data struct{ Run struct{ ID string } }
	}
	_ = json.Unmarshal(body, &said) // an unreadable one is counted all the same
	run := said.Data.Run.ID
	_, plan, _ := strings.Cut(run, "~")
	headers := map[string]string{}
	for _, name := range []string{"webhook-id", "webhook-timestamp", "webhook-signature"} {
		headers[name] = r.Header.Get(name)
	}
	s.mu.Lock()
	s.seen["hook "+run]++
	now := step(plan, s.seen["hook "+run])
	s.write(line{Kind: "hook", Op: run, Key: headers["webhook-id"], Step: now, Body: string(body), Headers: headers})
	s.mu.Unlock()
	reply(w, r, now, `{"agent_revision":"git:resumed"}`)
}
