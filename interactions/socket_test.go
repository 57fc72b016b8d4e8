package interactions

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/bot/slacksim"
	"github.com/holdpoint/holdpoint/templates"
)

// sockets is Slack's end of Socket Mode.
type sockets struct {
	mu    sync.Mutex
	conns []*websocket.Conn
	opens chan struct{}
	acks  chan string
	auth  bool
	srv   *httptest.Server
}

func newSockets(t *testing.T) *sockets {
	s := &sockets{opens: make(chan struct{}, 8), acks: make(chan string, 32), auth: true}
	mux := http.NewServeMux()
	mux.HandleFunc("/apps.connections.open", func(w http.ResponseWriter, r *http.Request) {
		if !s.auth || r.Header.Get("Authorization") != "Bearer xapp-test" {
			_, _ = fmt.Fprint(w, `{"ok":false,"error":"invalid_auth"}`)
			return
		}
		_, _ = fmt.Fprintf(w, `{"ok":true,"url":"ws%s/link"}`, strings.TrimPrefix(s.srv.URL, "http"))
	})
	mux.HandleFunc("/link", func(w http.ResponseWriter, r *http.Request) {
		up := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}
		c, err := up.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		s.mu.Lock()
		s.conns = append(s.conns, c)
		s.mu.Unlock()
		s.opens <- struct{}{}
		for {
			_, m, err := c.ReadMessage()
			if err != nil {
				return
			}
			s.acks <- string(m)
		}
	})
	s.srv = httptest.NewServer(mux)
	t.Cleanup(func() {
		s.mu.Lock()
		for _, c := range s.conns {
			_ = c.Close()
		}
		s.mu.Unlock()
		s.srv.Close()
	})
	return s
}

func (s *sockets) send(t *testing.T, conn int, kind, envelope string, payload json.RawMessage) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	must(t, s.conns[conn].WriteJSON(map[string]any{"type": kind, "envelope_id": envelope, "payload": payload, "accepts_response_payload": kind != "events_api"}))
}

func (w *world) connect(t *testing.T, s *sockets) {
	t.Helper()
	ctx, cancel := context.WithCancel(w.ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.h.Socket(ctx, SocketOptions{AppToken: "xapp-test", APIURL: s.srv.URL + "/"}) }()
	for range connections {
		<-s.opens
	}
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// payloadOf is what the simulator posts for a click, as Socket Mode would carry it.
func payloadOf(t *testing.T, d slacksim.Delivery) json.RawMessage {
	t.Helper()
	form, err := url.ParseQuery(string(d.Body))
	must(t, err)
	return json.RawMessage(form.Get("payload"))
}

// The same click over Socket Mode: decided once, whichever connection repeats it, and acknowledged each time. An element
// that the library does not know loses nothing.
func TestSocketMode(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id, ts := w.post(t, nil)
	// Let the simulator make the payload; the app behind its callback address is somebody else's.
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(elsewhere.Close)
	w.SetCallbackURL(elsewhere.URL)
	r, err := w.Click(w.ctx, "U0ALICE", home, ts, templates.ActionApprove, slacksim.ClickOptions{Tamper: slacksim.Tamper{Payload: func(p map[string]any) {
		pressed(p)["text"] = 7 // fails slack-go's decoding of the whole
	}}})
	must(t, err)
	s := newSockets(t)
	w.connect(t, s)
	click := payloadOf(t, r.Delivery)
	s.send(t, 0, "interactive", "e1", click)
	s.send(t, 1, "interactive", "e2", click)
	acks := []string{<-s.acks, <-s.acks}
	slices.Sort(acks)
	if d := []string{`{"envelope_id":"e1"}`, `{"envelope_id":"e2"}`}; !slices.Equal(acks, d) {
		t.Errorf("%q", acks)
	}
	_, err = w.WaitMessage(w.ctx, home, func(m slacksim.Message) bool { return !shows(m, templates.ActionApprove) })
	must(t, err)
	w.settled(t)
	if n := len(w.core.requests()); n != 1 || w.core.row(id).Status != approvals.Approved {
		t.Errorf("%d decisions", n)
	}

	s.send(t, 0, "slash_commands", "e3", json.RawMessage(`{"api_app_id":"A0HOLDPOINT","team_id":"T0ACME","user_id":"U0ROOT","text":"help","trigger_id":"t3"}`))
	if a := <-s.acks; !strings.Contains(a, `"e3"`) || !strings.Contains(a, "What /approvals can do") {
		t.Error(a)
	}
	s.send(t, 1, "events_api", "e4", json.RawMessage(`{"type":"event_callback","api_app_id":"A0HOLDPOINT","team_id":"T0ACME","event_id":"Ev1","event":{"type":"user_change","user":{"id":"U0BOB"}}}`))
	if a := <-s.acks; a != `{"envelope_id":"e4"}` {
		t.Error(a)
	}
	if e := <-w.dir.events; e.User != "U0BOB" {
		t.Errorf("%+v", e)
	}
	s.send(t, 0, "interactive", "e5", json.RawMessage(strings.Replace(string(click), appID, "A0OTHER", 1)))
	if a := <-s.acks; a != `{"envelope_id":"e5"}` || len(w.core.requests()) != 1 {
		t.Errorf("another app's: %s", a)
	}
}

func TestSocketModeToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if err := w.h.Socket(w.ctx, SocketOptions{}); err == nil {
		t.Error("it starts without a token")
	}
	s := newSockets(t)
	s.auth = false
	err := w.h.Socket(w.ctx, SocketOptions{AppToken: "xapp-test", APIURL: s.srv.URL + "/"})
	if err == nil || strings.Contains(err.Error(), "xapp") {
		t.Errorf("%v", err)
	}
}
