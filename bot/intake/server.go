package intake

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/holdpoint/holdpoint/approvals"
)

type server struct {
	core   Core
	opts   Options
	log    *slog.Logger
	now    func() time.Time
	mux    *http.ServeMux
	door   *door
	waits  *shares
	bodies *shares
	reads  *pace
}

// New makes the handler of every route of the API, /openapi.json and /docs included. Probes and metrics are not among them.
func New(core Core, opts Options) http.Handler {
	opts = opts.withDefaults()
	s := &server{
		core: core, opts: opts, log: opts.Log, now: opts.Now, mux: http.NewServeMux(),
		door:   newDoor(opts.FailedPerMinute, opts.Now),
		waits:  newShares(opts.MaxWaiting),
		bodies: newShares(opts.MaxReading),
		reads:  newPace(opts.ReadsPerMinute, opts.Now),
	}
	table := routes()
	api := humago.New(s.mux, describe(table))
	for _, route := range table {
		api.Adapter().Handle(route.operation(), func(ctx huma.Context) {
			r, w := humago.Unwrap(ctx)
			s.serve(route, w, r)
		})
	}
	document := render(api.OpenAPI())
	s.static("GET /openapi.json", "application/openapi+json", document, "")
	page, policy := docsPage(api.OpenAPI())
	s.static("GET /docs", "text/html; charset=utf-8", page, policy)
	return s
}

func (s *server) static(pattern, contentType string, content []byte, policy string) {
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Cache-Control", "no-cache")
		if policy != "" {
			w.Header().Set("Content-Security-Policy", policy)
		}
		_, _ = w.Write(content)
	})
}

// call is one authenticated request on its way to a handler.
type call struct {
	w     http.ResponseWriter
	r     *http.Request
	key   approvals.Key
	id    approvals.ID
	runID string
	query map[string]string
	body  []byte
}

// answer is a success. Without body and raw it has no content.
type answer struct {
	status   int
	location string
	body     any
	raw      []byte // JSON that is passed on as it is
}

// serve is the way of every request: who, where, what, then the one call into the core.
func (s *server) serve(route route, w http.ResponseWriter, r *http.Request) {
	ans, err := s.handle(route, w, r)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	s.write(w, r, ans)
}

func (s *server) handle(route route, w http.ResponseWriter, r *http.Request) (answer, error) {
	c := &call{w: w, r: r}
	var err error
	if c.key, err = s.authenticate(r); err != nil {
		if r.ContentLength != 0 {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(strangersPatience))
		}
		return answer{}, err
	}
	note(w, slog.String("tenant", c.key.Tenant), slog.String("agent", c.key.Agent), slog.String("key", c.key.ID))
	if route.method == http.MethodGet {
		if p := s.reads.take(c.key); p != nil {
			return answer{}, p
		}
	}
	if p := c.place(route); p != nil {
		return answer{}, p
	}
	if c.query, err = parameters(r.URL.RawQuery, route.query); err != nil {
		return answer{}, err
	}
	if route.body != nil {
		giveBack, p := s.bodies.take(c.key)
		if p != nil {
			return answer{}, p
		}
		defer giveBack()
		if c.body, p = s.readBody(w, r, route.limit(s.opts), route.bodyRequired); p != nil {
			return answer{}, p
		}
	}
	return route.serve(s, r.Context(), c)
}

// strangersPatience is how long the unread body of a caller without a key may still take: long enough to get the answer across.
const strangersPatience = 2 * time.Second

// authenticate names the caller, or refuses before anything else of the request is looked at.
func (s *server) authenticate(r *http.Request) (approvals.Key, error) {
	from := network(s.opts.ClientAddr(r))
	token, ok := bearer(r.Header)
	if may, after := s.door.mayTry(from, token); !may {
		p := problem(approvals.CodeRateLimited, "Too many failed authentications from this address.")
		p.retryAfter = after
		return approvals.Key{}, p
	}
	if !ok {
		s.door.failed(from, token)
		p := problem(approvals.CodeUnauthorized, "Send one header Authorization: Bearer hp_… with an API key of the agent.")
		p.challenge = true
		return approvals.Key{}, p
	}
	key, err := s.core.Authenticate(r.Context(), token)
	var refusal *approvals.Refusal
	switch {
	case err == nil:
		s.door.worked(token)
	case errors.As(err, &refusal) && refusal.Code == approvals.CodeUnauthorized:
		s.door.failed(from, token)
	}
	return key, err
}

const bearerAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/="

// bearer takes the token out of the one Authorization header (RFC 6750, 2.1); anything ambiguous is no token.
func bearer(h http.Header) (string, bool) {
	values := h.Values("Authorization")
	if len(values) != 1 {
		return "", false
	}
	scheme, token, ok := strings.Cut(values[0], " ")
	token = strings.TrimLeft(token, " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") || !strings.HasPrefix(token, "hp_") || len(token) > 256 || strings.Trim(token, bearerAlphabet) != "" {
		return "", false
	}
	return token, true
}

// place reads the path. What can't be an id names nothing, like an id that isn't there.
func (c *call) place(route route) *Problem {
	if strings.Contains(route.path, "{approval_id}") {
		id, err := approvals.ParseID(c.r.PathValue("approval_id"))
		if err != nil || id.IsZero() {
			return notFound()
		}
		c.id = id
		note(c.w, slog.String("approval", id.String()))
	}
	if strings.Contains(route.path, "{run_id}") {
		c.runID = c.r.PathValue("run_id")
		if text(c.runID, 1, maxRunID, false) != "" {
			return notFound()
		}
		note(c.w, slog.String("run", c.runID))
	}
	return nil
}

// parameters reads a query strictly: an unknown name, a name that stands twice or a bad escape would silently ask for something else.
func parameters(raw string, known []parameter) (map[string]string, error) {
	given, err := url.ParseQuery(raw)
	if err != nil {
		return nil, problem(approvals.CodeInvalidRequest, "The query can't be read.")
	}
	names := make([]string, len(known))
	for i, k := range known {
		names[i] = k.name
	}
	out := make(map[string]string, len(given))
	for name, values := range given {
		if !slices.Contains(names, name) {
			return nil, unknownParameter(name, names)
		}
		if len(values) != 1 {
			return nil, wrongParameter(name, "The parameter stands more than once.")
		}
		if why := text(values[0], 0, maxParameter, false); why != "" {
			return nil, wrongParameter(name, "%s", why)
		}
		out[name] = values[0]
	}
	return out, nil
}

func unknownParameter(name string, names []string) *Problem {
	if meant := nearest(name, names); meant != "" {
		return wrongParameter(name, "There is no such parameter here; did you mean %q?", meant)
	}
	if len(names) == 0 {
		return problem(approvals.CodeInvalidRequest, "This path takes no query parameters.")
	}
	return problem(approvals.CodeInvalidRequest, "The query has a parameter that is not known here. Known are: %s.", strings.Join(names, ", "))
}

func wrongParameter(name, format string, args ...any) *Problem {
	p := problem(approvals.CodeInvalidRequest, format, args...)
	p.Parameter = name
	return p
}

// refuse writes a problem. What nobody foresaw is logged here, once, without its text.
func (s *server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	p, known := problemOf(r.Context(), err)
	if !known {
		s.log.LogAttrs(context.WithoutCancel(r.Context()), slog.LevelError, "intake: unforeseen error", slog.String("request_id", requestID(w)), slog.Any("error", anatomy(err)))
	}
	note(w, slog.String("code", string(p.Code)))
	if p.gone {
		note(w, slog.Bool("client_left", true))
	}
	body, err := encode(p)
	if err != nil {
		body = nil // strings alone: can't fail
	}
	p.headers(w.Header())
	w.WriteHeader(p.Status)
	_, _ = w.Write(body)
}

func (s *server) write(w http.ResponseWriter, r *http.Request, ans answer) {
	body := ans.raw
	if ans.body != nil {
		var err error
		if body, err = encode(ans.body); err != nil {
			s.refuse(w, r, err)
			return
		}
	}
	if ans.location != "" {
		w.Header().Set("Location", ans.location)
	}
	if body != nil {
		w.Header().Set("Content-Type", "application/json")
	}
	w.WriteHeader(ans.status)
	_, _ = w.Write(body)
}

// encode writes JSON with the strings as they are: an escaped < would make approved bytes look like others.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}
