package intake

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/holdpoint/holdpoint/approvals"
)

// ServeHTTP is around every request: headers that forbid browsers to be clever, one access line, and an end to panics.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := s.now()
	rec := &recorder{ResponseWriter: w, id: uuid.NewString(), patience: s.opts.WriteTimeout}
	guard(rec.Header(), rec.id)
	if r.ContentLength != 0 {
		// Also for bodies that nobody will read: net/http reads on a little after the answer, and a sender must not stall it there.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(s.opts.ReadTimeout))
	}
	handler, pattern := s.mux.Handler(r)
	if pattern == "" {
		pattern = "none"
	}
	defer func() {
		if v := recover(); v != nil {
			s.panicked(rec, r, v)
		}
		s.line(r, rec, pattern, s.now().Sub(start))
	}()
	if pattern == "none" {
		s.nowhere(rec, r, handler)
		return
	}
	s.mux.ServeHTTP(rec, r)
}

func guard(h http.Header, id string) {
	h.Set("X-Request-Id", id)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Cache-Control", "no-store")
}

// nowhere answers what no route takes: 404, or 405 with the methods that the path has. The mux's own words are plain text, so only
// its Allow header is taken.
func (s *server) nowhere(w http.ResponseWriter, r *http.Request, handler http.Handler) {
	probe := headerOnly{}
	handler.ServeHTTP(probe, r)
	if allow := http.Header(probe).Get("Allow"); allow != "" {
		w.Header().Set("Allow", allow)
		s.refuse(w, r, problem(approvals.CodeInvalidRequest, "This path has other methods; see the header Allow.").as(http.StatusMethodNotAllowed))
		return
	}
	s.refuse(w, r, problem(approvals.CodeNotFound, "There is no such path; /docs lists them."))
}

type headerOnly http.Header

func (h headerOnly) Header() http.Header         { return http.Header(h) }
func (h headerOnly) Write(b []byte) (int, error) { return len(b), nil }
func (h headerOnly) WriteHeader(int)             {}

// panicked ends a request whose handler broke. The value may repeat what a client sent: only a runtime error, whose text is Go's own,
// is logged with its words.
func (s *server) panicked(rec *recorder, r *http.Request, v any) {
	if err, ok := v.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(v)
	}
	what := fmt.Sprintf("%T", v)
	if err, ok := v.(runtime.Error); ok {
		what = err.Error()
	}
	s.log.LogAttrs(context.WithoutCancel(r.Context()), slog.LevelError, "intake: panic", slog.String("request_id", rec.id), slog.String("panic", what), slog.String("stack", string(debug.Stack())))
	if rec.status != 0 {
		rec.note = append(rec.note, slog.Bool("broke_off", true))
		return
	}
	p := internal()
	p.hangUp = true
	s.refuse(rec, r, p)
}

// line is the access log: ids, the route's pattern, the outcome. The path itself is never in it: it is the client's.
func (s *server) line(r *http.Request, rec *recorder, pattern string, took time.Duration) {
	level := slog.LevelInfo
	if rec.status >= http.StatusInternalServerError && !slices.ContainsFunc(rec.note, func(a slog.Attr) bool { return a.Key == "client_left" }) {
		level = slog.LevelError
	}
	_, route, found := strings.Cut(pattern, " ")
	if !found {
		route = pattern
	}
	attrs := append([]slog.Attr{
		slog.String("request_id", rec.id), slog.String("method", method(r)), slog.String("route", route),
		slog.Int("status", rec.status), slog.Int64("ms", took.Milliseconds()),
	}, rec.note...)
	s.log.LogAttrs(context.WithoutCancel(r.Context()), level, "intake: request", attrs...)
}

// method is the method when it is one that HTTP defines: any token is allowed on the wire.
func method(r *http.Request) string {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions, http.MethodConnect, http.MethodTrace:
		return r.Method
	}
	return "other"
}

// recorder keeps what the access line needs and gives the client a deadline to take the answer.
type recorder struct {
	http.ResponseWriter
	id       string
	status   int
	patience time.Duration
	note     []slog.Attr
}

// Unwrap lets http.ResponseController reach the connection.
func (rec *recorder) Unwrap() http.ResponseWriter { return rec.ResponseWriter }

// WriteHeader notes the status.
func (rec *recorder) WriteHeader(status int) {
	if rec.status == 0 {
		rec.status = status
		// Not supported by in-memory writers, and then there is nobody slow either.
		_ = http.NewResponseController(rec.ResponseWriter).SetWriteDeadline(time.Now().Add(rec.patience))
	}
	rec.ResponseWriter.WriteHeader(status)
}

func (rec *recorder) Write(b []byte) (int, error) {
	if rec.status == 0 {
		rec.WriteHeader(http.StatusOK)
	}
	return rec.ResponseWriter.Write(b)
}

// note adds to the access line of the request that w answers.
func note(w http.ResponseWriter, attrs ...slog.Attr) {
	if rec, ok := w.(*recorder); ok {
		rec.note = append(rec.note, attrs...)
	}
}

func requestID(w http.ResponseWriter) string {
	if rec, ok := w.(*recorder); ok {
		return rec.id
	}
	return ""
}

// anatomy is an error without its words: the types of its chain, and the SQLSTATE where there is one.
type anatomyOf struct{ err error }

func anatomy(err error) slog.LogValuer { return anatomyOf{err} }

// LogValue names types only.
func (a anatomyOf) LogValue() slog.Value {
	var types []string
	var state string
	var walk func(error)
	walk = func(err error) {
		if err == nil || len(types) >= 16 {
			return
		}
		types = append(types, fmt.Sprintf("%T", err))
		if coded, ok := err.(interface{ SQLState() string }); ok { // each link of the chain is looked at in turn
			state = coded.SQLState()
		}
		switch u := err.(type) { //nolint:errorlint // same
		case interface{ Unwrap() error }:
			walk(u.Unwrap())
		case interface{ Unwrap() []error }:
			for _, e := range u.Unwrap() {
				walk(e)
			}
		}
	}
	walk(a.err)
	attrs := []slog.Attr{slog.String("types", strings.Join(types, " > "))}
	if state != "" {
		attrs = append(attrs, slog.String("sqlstate", state))
	}
	for _, known := range []error{approvals.ErrCorrupt, context.DeadlineExceeded, context.Canceled} {
		if errors.Is(a.err, known) {
			attrs = append(attrs, slog.String("is", known.Error()))
		}
	}
	return slog.GroupValue(attrs...)
}
