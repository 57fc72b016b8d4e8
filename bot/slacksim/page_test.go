package slacksim_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/holdpoint/holdpoint/bot/slacksim"
)

// states reads the page's stream as one person.
func states(t *testing.T, s *slacksim.Sim, as string) func() map[string]any {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx(t), http.MethodGet, s.URL()+"/page/stream?as="+as, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	lines := bufio.NewReader(resp.Body)
	return func() map[string]any {
		t.Helper()
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatalf("the stream ended: %v", err)
			}
			if data, ok := strings.CutPrefix(line, "data: "); ok {
				var state map[string]any
				if err := json.Unmarshal([]byte(data), &state); err != nil {
					t.Fatal(err)
				}
				return state
			}
		}
	}
}

// act does what a person does on the page and returns the page's error.
func act(t *testing.T, s *slacksim.Sim, header http.Header, fields map[string]any) (int, string) {
	t.Helper()
	body, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(ctx(t), http.MethodPost, s.URL()+"/page/act", strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range header {
		req.Header[k] = v
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var out struct {
		Error string `json:"error"`
	}
	_ = json.NewDecoder(resp.Body).Decode(&out) // a refusal is plain text
	return resp.StatusCode, out.Error
}

func texts(t *testing.T, state map[string]any, channel string) []string {
	t.Helper()
	var out []string
	for _, c := range items(t, state, "channels") {
		if at(c, "id") != channel {
			continue
		}
		for _, m := range items(t, c, "messages") {
			out = append(out, fmt.Sprint(at(m, "text")))
		}
	}
	return out
}

// Each person's stream holds what that person sees, and nothing else.
func TestPageShowsWhatAPersonSees(t *testing.T) {
	t.Parallel()
	s := newSim(t, slacksim.Options{Unlimited: true})
	s.AddChannel(slacksim.Channel{ID: "C0SECRET", Name: "secret", Private: true, Members: []string{"U0BEN"}})
	ana := states(t, s, "U0ANA")
	if got := ana(); got["me"] != "U0ANA" || got["panel"] != nil {
		t.Fatalf("first state: me %v, panel %v", got["me"], got["panel"])
	}
	raw(t, s, "chat.postEphemeral", url.Values{"channel": {"C0APP"}, "user": {"U0ANA"}, "text": {"for ana"}})
	raw(t, s, "chat.postEphemeral", url.Values{"channel": {"C0APP"}, "user": {"U0BEN"}, "text": {"for ben"}})
	raw(t, s, "chat.postMessage", url.Values{"channel": {"C0APP"}, "text": {"for all"}})
	state := ana()
	for len(texts(t, state, "C0APP")) < 2 {
		state = ana()
	}
	if got := strings.Join(texts(t, state, "C0APP"), ","); got != "for ana,for all" {
		t.Errorf("ana sees %q", got)
	}
	for _, c := range items(t, state, "channels") {
		if at(c, "id") == "C0SECRET" {
			t.Error("ana sees a private channel that she is not in")
		}
	}
	eve := states(t, s, "U0EXT")()
	if len(items(t, eve, "channels")) != 1 || at(eve["channels"], "0", "id") != "C0SHARED" {
		t.Errorf("an outsider sees %v", eve["channels"])
	}
}

func TestPageActs(t *testing.T) {
	t.Parallel()
	pressed := make(chan string, 1)
	s := newSim(t, slacksim.Options{
		Unlimited: true,
		Panel: func() slacksim.Panel {
			return slacksim.Panel{Title: "Demo", Items: []slacksim.PanelItem{{Label: "effects", Value: "1", Tone: "good"}}}
		},
		OnAction: func(id string) error { pressed <- id; return nil },
	})
	a := newApp(t, s)
	ts := post(t, s, approveCard)
	if p := states(t, s, "U0ANA")()["panel"]; at(p, "items", "0", "value") != "1" {
		t.Errorf("panel: %v", p)
	}
	if code, e := act(t, s, nil, map[string]any{"kind": "click", "as": "U0ANA", "channel": "C0APP", "ts": ts, "action_id": "approve"}); code != 200 || e != "" || at(a.last().payload, "user", "id") != "U0ANA" {
		t.Errorf("click: %d %s", code, e)
	}
	if _, e := act(t, s, nil, map[string]any{"kind": "click", "as": "U0EXT", "channel": "C0APP", "ts": ts, "action_id": "approve"}); e == "" {
		t.Error("an outsider clicked")
	}
	if _, e := act(t, s, nil, map[string]any{"kind": "say", "as": "U0ANA", "channel": "C0APP", "text": "/approvals  list "}); e != "" || a.last().form.Get("text") != "list" {
		t.Errorf("command: %s %v", e, a.last().form)
	}
	if _, e := act(t, s, nil, map[string]any{"kind": "say", "as": "U0ANA", "channel": "C0APP", "text": "hello", "ts": ts}); e != "" || s.Messages("C0APP")[1].ThreadTS != ts {
		t.Errorf("reply: %s %+v", e, s.Messages("C0APP"))
	}
	if _, e := act(t, s, nil, map[string]any{"kind": "panel", "id": "again"}); e != "" || <-pressed != "again" {
		t.Errorf("panel: %s", e)
	}
	if _, e := act(t, s, nil, map[string]any{"kind": "dance"}); e == "" {
		t.Error("an unknown act")
	}
	before := len(a.more)
	cross := http.Header{"Origin": {"https://evil.example"}, "Sec-Fetch-Site": {"cross-site"}}
	if code, _ := act(t, s, cross, map[string]any{"kind": "click", "as": "U0ANA", "channel": "C0APP", "ts": ts, "action_id": "approve"}); code != http.StatusForbidden || len(a.more) != before {
		t.Errorf("another site's page clicked: %d", code)
	}
}

func TestPageFiles(t *testing.T) {
	t.Parallel()
	s := newSim(t, slacksim.Options{})
	for path, kind := range map[string]string{"/": "text/html", "/assets/main.js": "text/javascript", "/assets/base.css": "text/css", "/assets/emoji.json": "application/json"} {
		resp, err := http.Get(s.URL() + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != 200 || !strings.HasPrefix(resp.Header.Get("Content-Type"), kind) {
			t.Errorf("%s: %d %s %v", path, resp.StatusCode, resp.Header.Get("Content-Type"), err)
		}
		if csp := resp.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s: policy %q", path, csp)
		}
		for _, bad := range []string{"innerHTML", "insertAdjacentHTML", "document.write", "eval(", "https://fonts", "<style", " style=\""} {
			if strings.Contains(string(body), bad) {
				t.Errorf("%s contains %s", path, bad)
			}
		}
	}
	for _, file := range []string{"dom", "store", "chat", "blocks", "elements", "mrkdwn", "richtext", "modal", "inputs", "confirm", "nav"} {
		resp, err := http.Get(s.URL() + "/assets/" + file + ".js")
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != 200 || strings.Contains(string(body), "HTML") && strings.Contains(string(body), ".innerHTML") {
			t.Errorf("%s: %d", file, resp.StatusCode)
		}
	}
}
