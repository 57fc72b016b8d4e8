package slacksim

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"time"
)

// Panel is what the page shows at its right: the development command's own state.
type Panel struct {
	Title   string        `json:"title"`
	Items   []PanelItem   `json:"items"`
	Actions []PanelAction `json:"actions"`
}

// PanelItem is a line of the panel. Tone is "", good, warn or bad.
type PanelItem struct {
	Label string `json:"label"`
	Value string `json:"value"`
	Tone  string `json:"tone,omitempty"`
}

// PanelAction is a button of the panel; its ID goes to Options.OnAction.
type PanelAction struct {
	Label string `json:"label"`
	ID    string `json:"id"`
}

//go:embed web
var web embed.FS

// contentPolicy: everything comes from here, nothing is inline, and nobody frames the page.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// pageRoutes serves the page, its stream of states, and the one door for what a person does on it.
func (s *Sim) pageRoutes(mux *http.ServeMux) {
	root, err := fs.Sub(web, "web")
	if err != nil {
		panic("slacksim: " + err.Error()) // embedded: a broken build
	}
	files := http.FileServerFS(root)
	mux.Handle("GET /{$}", pageHeaders(files))
	mux.Handle("GET /assets/", http.StripPrefix("/assets", pageHeaders(files)))
	mux.Handle("GET /page/stream", pageHeaders(http.HandlerFunc(s.stream)))
	// Another site's page must not be able to click here on a developer's behalf.
	mux.Handle("POST /page/act", http.NewCrossOriginProtection().Handler(pageHeaders(http.HandlerFunc(s.serveAct))))
}

func pageHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", contentPolicy)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Referrer-Policy", "no-referrer")
		w.Header().Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// heartbeat keeps the stream alive through proxies, and lets a page without changes notice that panel values moved.
const heartbeat = 15 * time.Second

// stream sends the page's whole state, as one person sees it, at once and after every change (server-sent events).
// Changes that come while a state is written are sent together.
func (s *Sim) stream(w http.ResponseWriter, r *http.Request) {
	out := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		s.mu.Lock()
		changed := s.changed
		state := s.pageState(r.URL.Query().Get("as"))
		s.mu.Unlock()
		if s.opts.Panel != nil {
			state["panel"] = s.opts.Panel() // without the lock: it may look at the simulator
		}
		if _, err := fmt.Fprintf(w, "event: state\ndata: %s\n\n", encode(state)); err != nil {
			return
		}
		if out.Flush() != nil {
			return
		}
		select {
		case <-changed:
		case <-beat.C:
		case <-r.Context().Done():
			return
		case <-s.ctx.Done():
			return
		}
	}
}

// act is what a person did on the page.
type act struct {
	Kind     string   `json:"kind"` // click, view, submit, close, say, home, panel
	As       string   `json:"as"`
	Channel  string   `json:"channel"`
	TS       string   `json:"ts"`
	BlockID  string   `json:"block_id"`
	ActionID string   `json:"action_id"`
	Option   string   `json:"option"`
	User     string   `json:"user"`
	Date     string   `json:"date"`
	Options  []string `json:"options"`
	ViewID   string   `json:"view_id"`
	Values   Values   `json:"values"`
	All      bool     `json:"all"`
	Text     string   `json:"text"`
	ID       string   `json:"id"`
}

// serveAct carries an act out and answers {"error": "…"} for the person, or {}.
func (s *Sim) serveAct(w http.ResponseWriter, r *http.Request) {
	var a act
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&a); err != nil {
		writeJSON(w, http.StatusBadRequest, map[string]string{"error": "malformed request"})
		return
	}
	// The app's work goes on when the browser leaves: a click is a click.
	if err := s.do(context.WithoutCancel(r.Context()), a); err != nil {
		writeJSON(w, http.StatusOK, map[string]string{"error": forPerson(err)})
		return
	}
	writeJSON(w, http.StatusOK, map[string]string{})
}

func (s *Sim) do(ctx context.Context, a act) error {
	opts := ClickOptions{BlockID: a.BlockID, Option: a.Option, User: a.User, Date: a.Date, Options: a.Options}
	var err error
	switch a.Kind {
	case "click":
		_, err = s.Click(ctx, a.As, a.Channel, a.TS, a.ActionID, opts)
	case "view":
		_, err = s.ClickView(ctx, a.As, a.ViewID, a.ActionID, a.Values, opts)
	case "submit":
		_, err = s.Submit(ctx, a.As, View{ID: a.ViewID}, a.Values)
	case "close":
		err = s.CloseView(ctx, a.As, a.All)
	case "say":
		err = s.sayOrCommand(ctx, a)
	case "home":
		_, err = s.Event(ctx, s.homeOpened(a.As))
	case "panel":
		if s.opts.OnAction != nil {
			err = s.opts.OnAction(a.ID)
		}
		s.Refresh()
	default:
		err = errors.New("slacksim: unknown act")
	}
	return err
}

// forPerson is what Slack's client would say, or the simulator's own word to the developer.
func forPerson(err error) string {
	if errors.Is(err, ErrNotAcked) {
		return "This app did not respond: " + err.Error()
	}
	return err.Error()
}
