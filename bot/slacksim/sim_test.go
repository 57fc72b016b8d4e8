package slacksim_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/holdpoint/holdpoint/bot/slacksim"
	"github.com/slack-go/slack"
)

// clock is a time that moves when a test says so.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func newClock() *clock { return &clock{at: time.Date(2026, 7, 24, 12, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// newSim starts a workspace with a few people and channels.
func newSim(t *testing.T, opts slacksim.Options) *slacksim.Sim {
	t.Helper()
	s := slacksim.New(opts)
	if _, err := s.Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	s.AddUser(slacksim.User{ID: "U0ANA", Name: "ana", RealName: "Ana Lima"})
	s.AddUser(slacksim.User{ID: "U0BEN", Name: "ben", RealName: "Ben Okoye"})
	s.AddUser(slacksim.User{ID: "U0EXT", Name: "eve", TeamID: "T0OTHER"})
	s.AddUser(slacksim.User{ID: "U0GONE", Name: "gone", Deleted: true})
	s.AddGroup(slacksim.Group{ID: "S0REL", Handle: "release", Members: []string{"U0ANA"}})
	s.AddGroup(slacksim.Group{ID: "S0OLD", Handle: "old", Members: []string{"U0BEN"}, Disabled: true})
	s.AddChannel(slacksim.Channel{ID: "C0APP", Name: "approvals"})
	s.AddChannel(slacksim.Channel{ID: "C0ARCH", Name: "archive", Archived: true})
	s.AddChannel(slacksim.Channel{ID: "C0OUT", Name: "elsewhere", NoBot: true})
	s.AddChannel(slacksim.Channel{ID: "C0SHARED", Name: "partners", Shared: true})
	return s
}

func client(s *slacksim.Sim) *slack.Client {
	return slack.New("xoxb-simulator", slack.OptionAPIURL(s.URL()+"/api/"))
}

// raw calls a method with a form and returns the whole answer.
func raw(t *testing.T, s *slacksim.Sim, method string, form url.Values) map[string]any {
	t.Helper()
	form.Set("token", "xoxb-simulator")
	resp, err := http.PostForm(s.URL()+"/api/"+method, form)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var out map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	return out
}

func post(t *testing.T, s *slacksim.Sim, blocks string) string {
	t.Helper()
	out := raw(t, s, "chat.postMessage", url.Values{"channel": {"C0APP"}, "text": {"card"}, "blocks": {blocks}})
	return word(t, out, "ts")
}

// app is the other side of the callbacks: it checks signatures and keeps what came.
type app struct {
	t      *testing.T
	secret string
	mu     sync.Mutex
	got    []received
	answer func(n int, r received, w http.ResponseWriter) // n counts from 1
	more   chan struct{}
}

type received struct {
	path    string
	header  http.Header
	form    url.Values
	payload map[string]any
	signed  bool
}

func newApp(t *testing.T, s *slacksim.Sim) *app {
	t.Helper()
	a := &app{t: t, secret: "simulator-signing-secret", more: make(chan struct{}, 100)}
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	s.SetCallbackURL(server.URL)
	return a
}

func (a *app) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	got := received{path: r.URL.Path, header: r.Header, payload: map[string]any{}}
	ts := r.Header.Get("X-Slack-Request-Timestamp")
	got.signed = ts != "" && r.Header.Get("X-Slack-Signature") == slacksim.Sign(a.secret, ts, body)
	if r.Header.Get("Content-Type") == "application/json" {
		_ = json.Unmarshal(body, &got.payload)
	} else {
		got.form, _ = url.ParseQuery(string(body))
		_ = json.Unmarshal([]byte(got.form.Get("payload")), &got.payload)
	}
	a.mu.Lock()
	a.got = append(a.got, got)
	n, answer := len(a.got), a.answer
	a.mu.Unlock()
	a.more <- struct{}{}
	if answer != nil {
		answer(n, got, w)
	}
}

// reply sets how the app answers from now on; nil is an empty 200.
func (a *app) reply(answer func(n int, r received, w http.ResponseWriter)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answer = answer
}

// waitFor returns the newest callback once it came to this path.
func (a *app) waitFor(path string) received {
	a.t.Helper()
	for {
		a.wait(1)
		if got := a.last(); got.path == path {
			return got
		}
	}
}

// wait returns once n callbacks have come.
func (a *app) wait(n int) {
	a.t.Helper()
	for range n {
		select {
		case <-a.more:
		case <-a.t.Context().Done():
			a.t.Fatal("the callback did not come")
		}
	}
}

// last is the newest callback.
func (a *app) last() received {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.got) == 0 {
		a.t.Fatal("the app got nothing")
	}
	return a.got[len(a.got)-1]
}

// at digs into a decoded payload: numbers index arrays.
func at(v any, path ...string) any {
	for _, p := range path {
		switch x := v.(type) {
		case map[string]any:
			v = x[p]
		case []any:
			i, _ := strconv.Atoi(p)
			v = x[i]
		default:
			return nil
		}
	}
	return v
}

// word is a string deep in a payload, items a list; neither may be missing.
func word(t *testing.T, v any, path ...string) string {
	t.Helper()
	s, ok := at(v, path...).(string)
	if !ok {
		t.Fatalf("no text at %v in %v", path, v)
	}
	return s
}

func items(t *testing.T, v any, path ...string) []any {
	t.Helper()
	l, ok := at(v, path...).([]any)
	if !ok {
		t.Fatalf("no list at %v in %v", path, v)
	}
	return l
}

func ctx(t *testing.T) context.Context {
	c, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	t.Cleanup(cancel)
	return c
}

const approveCard = `[
 {"type":"section","text":{"type":"mrkdwn","text":"Deploy?"}},
 {"type":"actions","block_id":"decide","elements":[
  {"type":"button","action_id":"approve","value":"v1.abc","style":"primary","text":{"type":"plain_text","text":"Approve"}},
  {"type":"overflow","action_id":"more","options":[{"text":{"type":"plain_text","text":"Edit"},"value":"edit"},{"text":{"type":"plain_text","text":"Respond"},"value":"respond"}]}]}]`
