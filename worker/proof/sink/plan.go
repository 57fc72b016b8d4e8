package main

import (
	"net"
	"net/http"
	"strings"
	"time"
)

// The steps of a plan. What is not one of them is `ok`.
const (
	stepOK      = "ok"     // the effect, and its answer
	stepBefore  = "before" // reset; no effect
	stepAfter   = "after"  // the effect, then a reset instead of an answer
	stepBroken  = "broken" // the effect, then an answer that breaks off in its middle
	stepFails   = "5xx"    // the effect, then 503
	stepBusy    = "busy"   // 429; no effect
	stepRefuses = "refuse" // 422; no effect
	stepSlow    = "slow"   // the effect, and its answer after slowly
	stepStuck   = "stuck"  // the effect, and no answer while the connection stands
	slowly      = time.Second
	stuckFor    = time.Minute
	partOfReply = `{"receipt":"R-`
)

// step gives the n-th step of a plan, from 1.
func step(plan string, n int) string {
	steps := strings.Split(plan, ",")
	return strings.TrimSpace(steps[min(n, len(steps))-1])
}

// acts says whether a step has the effect.
func acts(step string) bool {
	switch step {
	case stepBefore, stepBusy, stepRefuses:
		return false
	}
	return true
}

// reply ends a request as its step says.
func reply(w http.ResponseWriter, r *http.Request, step, body string) {
	switch step {
	case stepBefore, stepAfter:
		reset(w)
	case stepBroken:
		w.Header().Set("Content-Length", "4096")
		_, _ = w.Write([]byte(partOfReply))
		if f, ok := w.(http.Flusher); ok {
			f.Flush()
		}
		reset(w)
	case stepFails:
		http.Error(w, "down", http.StatusServiceUnavailable)
	case stepBusy:
		http.Error(w, "busy", http.StatusTooManyRequests)
	case stepRefuses:
		http.Error(w, "no", http.StatusUnprocessableEntity)
	case stepSlow:
		pause(r, slowly)
		answer(w, body)
	case stepStuck:
		pause(r, stuckFor)
		answer(w, body)
	default:
		answer(w, body)
	}
}

func answer(w http.ResponseWriter, body string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(body))
}

// pause waits, or until the caller is gone.
func pause(r *http.Request, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-r.Context().Done():
	}
}

// reset breaks the connection with RST.
func reset(w http.ResponseWriter) {
	h, ok := w.(http.Hijacker)
	if !ok {
		panic(http.ErrAbortHandler)
	}
	conn, _, err := h.Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
