package bot

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"

	"github.com/holdpoint/holdpoint/bot/slacksim"
	"github.com/holdpoint/holdpoint/templates"
)

var hello = templates.Message{Text: "hello"}

func TestErrorsAreSorted(t *testing.T) {
	t.Parallel()
	answer := func(code string) error { return slack.SlackErrorResponse{Err: code} }
	for _, c := range []struct {
		err   error
		class Class
		code  string
	}{
		{answer("message_not_found"), ClassCard, "message_not_found"},
		{answer("cant_update_message"), ClassCard, "cant_update_message"},
		{answer("invalid_blocks"), ClassContent, "invalid_blocks"},
		{answer("msg_too_long"), ClassContent, "msg_too_long"},
		{answer("channel_not_found"), ClassChannel, "channel_not_found"},
		{answer("token_revoked"), ClassInstall, "token_revoked"},
		{answer("missing_scope"), ClassInstall, "missing_scope"},
		{answer("ratelimited"), ClassRateLimited, "ratelimited"},
		{answer("rate_limited"), ClassRateLimited, "rate_limited"},
		{answer("internal_error"), ClassAmbiguous, "internal_error"},
		{answer("fatal_error"), ClassAmbiguous, "fatal_error"},
		{answer("some_new_code"), ClassRefused, "some_new_code"},
		{answer("<html>a proxy's page xoxb-1"), ClassRefused, "unknown"},
		{slack.StatusCodeError{Code: 429}, ClassRateLimited, "http_429"},
		{slack.StatusCodeError{Code: 503}, ClassAmbiguous, "http_503"},
		{slack.StatusCodeError{Code: 404}, ClassRefused, "http_404"},
		{&slack.RateLimitedError{RetryAfter: 3 * time.Second}, ClassRateLimited, "ratelimited"},
		{context.DeadlineExceeded, ClassAmbiguous, "timeout"},
		{errors.New("unexpected EOF"), ClassAmbiguous, "transport"},
		{fmt.Errorf("wrapped: %w", answer("is_archived")), ClassChannel, "is_archived"},
	} {
		e := classify("chat.update", c.err)
		if e.Class != c.class || e.Code != c.code {
			t.Errorf("%v: %s %s, want %s %s", c.err, e.Class, e.Code, c.class, c.code)
		}
		if e.Class == ClassRateLimited && RetryAfter(e) <= 0 {
			t.Errorf("%v: no time to come back at", c.err)
		}
	}
}

func TestContentErrorKeepsPointersAlone(t *testing.T) {
	t.Parallel()
	e := classify("chat.postMessage", slack.SlackErrorResponse{Err: "invalid_blocks", ResponseMetadata: slack.ResponseMetadata{
		Messages: []string{`[ERROR] must be less than 151 characters: "the secret title" [json-pointer:/blocks/0/text/text]`},
	}})
	if s := e.Error(); !strings.Contains(s, "/blocks/0/text/text") || strings.Contains(s, "secret") {
		t.Error(s)
	}
}

func TestRateLimitsAreWaitedFor(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]slacksim.RateLimited{
		"with a time":    {RetryAfter: 3 * time.Second},
		"without a time": {},
		"the other code": {RetryAfter: time.Second, Code: "rate_limited"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.Fault("chat.postMessage", f, 1)
			if _, _, err := w.client.Post(t.Context(), channel, "", hello, Metadata{EventType: "x"}); err != nil {
				t.Fatal(err)
			}
			want := f.RetryAfter
			if want == 0 {
				want = defaultRetry
			}
			if len(w.clock.waits) != 1 || w.clock.waits[0] != want {
				t.Errorf("waited %v, want %v", w.clock.waits, want)
			}
		})
	}
}

// Whoever would wait longer than a worker's slot is worth gives it back, and knows when to return.
func TestLongRateLimitGoesBackToTheQueue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Fault("chat.postMessage", slacksim.RateLimited{RetryAfter: time.Minute}, 1)
	for i := range 2 { // the second finds the gate closed and does not even call
		_, _, err := w.client.Post(t.Context(), channel, "", hello, Metadata{})
		if ClassOf(err) != ClassRateLimited || RetryAfter(err) < 59*time.Second {
			t.Fatalf("%d: %v", i, err)
		}
	}
	if n := w.Calls("chat.postMessage"); n != 1 {
		t.Errorf("%d calls", n)
	}
	w.AddChannel(slacksim.Channel{ID: "C0OTHER", Name: "other"})
	if _, _, err := w.client.Post(t.Context(), "C0OTHER", "", hello, Metadata{}); err != nil {
		t.Errorf("another channel has a limit of its own: %v", err)
	}
	w.clock.move(time.Minute)
	if _, _, err := w.client.Post(t.Context(), channel, "", hello, Metadata{}); err != nil {
		t.Errorf("after the time: %v", err)
	}
}

func TestDeadlineIsNotWaitedAcross(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	w.Fault("views.open", slacksim.RateLimited{RetryAfter: 4 * time.Second}, 1)
	_, err := w.client.OpenView(ctx, "t", templates.Loading("x"))
	if ClassOf(err) != ClassRateLimited || len(w.clock.waits) != 0 {
		t.Errorf("%v, waited %v", err, w.clock.waits)
	}
}

// chat.postMessage is made again after a 429 only; what sets the same thing again, or reads, may be repeated.
func TestWhatIsRepeated(t *testing.T) {
	t.Parallel()
	for _, f := range []slacksim.Fault{slacksim.LoseAnswer{}, slacksim.Drop{}, slacksim.ServerError{Status: 502}, slacksim.Error{Code: "internal_error"}} {
		t.Run(fmt.Sprintf("%T", f), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			_, ts, err := w.client.Post(t.Context(), channel, "", hello, Metadata{EventType: "x"})
			must(t, err)
			w.Fault("chat.postMessage", f, 1)
			if _, _, err := w.client.Post(t.Context(), channel, "", hello, Metadata{EventType: "x"}); ClassOf(err) != ClassAmbiguous {
				t.Errorf("post: %v", err)
			}
			if n := w.Calls("chat.postMessage"); n != 2 {
				t.Errorf("%d posts: an ambiguous one was repeated", n)
			}
			w.Fault("chat.update", f, 1)
			if err := w.client.Update(t.Context(), channel, ts, hello); err != nil {
				t.Errorf("update: %v", err)
			}
			w.Fault("users.info", f, 1)
			if _, err := w.client.User(t.Context(), "U0ALICE"); err != nil {
				t.Errorf("read: %v", err)
			}
		})
	}
}

func TestHangIsAmbiguous(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.client.http.Timeout = 50 * time.Millisecond
	w.Fault("chat.postMessage", slacksim.Hang{}, 1)
	_, _, err := w.client.Post(t.Context(), channel, "", hello, Metadata{})
	if ClassOf(err) != ClassAmbiguous {
		t.Errorf("%v", err)
	}
}

func TestNobodyListening(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	c := w.newClient(t, gone.URL+"/", "xoxb-simulator")
	_, _, err := c.Post(t.Context(), channel, "", hello, Metadata{})
	if ClassOf(err) != ClassUnsent || w.seen.of("chat.postMessage", ClassUnsent) != tries {
		t.Errorf("%v", err)
	}
}

// I24: whatever fails, the token and the address of an answer stay out of the error.
func TestErrorsHoldNoSecret(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.newClient(t, w.URL()+"/api/", "xoxb-canary-token")
	_, _, err := c.Post(t.Context(), channel, "", hello, Metadata{})
	if ClassOf(err) != ClassInstall || strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), "canary") {
		t.Errorf("%v", err)
	}
	w.Fault("response_url", slacksim.Drop{}, 1)
	err = w.client.Respond(t.Context(), w.URL()+"/response/canary", hello, false)
	if err == nil || strings.Contains(fmt.Sprintf("%v %+v", err, errors.Unwrap(err)), "canary") {
		t.Errorf("%v", err)
	}
}

// An answer goes to Slack or nowhere, whatever address a payload names.
func TestResponseURLMustBeSlacks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	real, err := NewClient(ClientOptions{Token: "x"})
	must(t, err)
	for url, want := range map[string]bool{
		"https://hooks.slack.com/actions/T0/1/2":       true,
		"https://hooks.slack-gov.com/actions/T0/1/2":   true,
		"http://hooks.slack.com/actions":               false,
		"https://hooks.slack.com:8443/actions":         false,
		"https://hooks.slack.com.evil.example/actions": false,
		"https://evil.example/hooks.slack.com":         false,
		"https://u@hooks.slack.com/":                   false,
		"http://169.254.169.254/latest":                false,
		"https://slack.com/api/chat.postMessage":       false,
		w.URL() + "/response/1":                        false,
		"":                                             false,
	} {
		if got := real.ours(url); got != want {
			t.Errorf("%q: %t", url, got)
		}
	}
	if !w.client.ours(w.URL() + "/response/1") {
		t.Error("the simulator's address")
	}
	if err := w.client.Respond(t.Context(), "http://127.0.0.1:1/x", hello, false); ClassOf(err) != ClassRefused {
		t.Errorf("%v", err)
	}
}

// A stranger's block that no library knows, and a copy of our metadata by somebody else, don't hide or fake our message.
func TestFindMessage(t *testing.T) {
	t.Parallel()
	mark := Metadata{EventType: "holdpoint_card", Payload: map[string]string{"card": "1", "mac": "2"}}
	history := `{"ok":true,"messages":[
		{"ts":"1700000009.000000","bot_id":"B0OTHER","metadata":{"event_type":"holdpoint_card","event_payload":{"card":"1","mac":"2"}}},
		{"ts":"1700000008.000000","bot_id":"B0HOLDPOINT","blocks":[{"type":"from_the_future","text":7}],"attachments":"no list"},
		{"ts":"1700000007.000000","bot_id":"B0HOLDPOINT","metadata":{"event_type":"holdpoint_card","event_payload":{"card":"1","mac":"forged"}}},
		%s],"response_metadata":{"next_cursor":"%s"}}`
	mux := http.NewServeMux()
	mux.HandleFunc("/auth.test", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, `{"ok":true,"team_id":"T0ACME","bot_id":"B0HOLDPOINT"}`)
	})
	mux.HandleFunc("/conversations.history", func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("cursor") == "" {
			_, _ = fmt.Fprintf(w, history, `{"ts":"1700000006.000000"}`, "more")
			return
		}
		_, _ = fmt.Fprintf(w, history, `{"ts":"1700000005.000000","bot_id":"B0HOLDPOINT","metadata":{"event_type":"holdpoint_card","event_payload":{"card":"1","mac":"2"}}}`, "")
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	w := newWorld(t)
	c := w.newClient(t, srv.URL+"/", "x")
	ts, ok, err := c.FindMessage(t.Context(), Search{Channel: channel, Mark: mark})
	if err != nil || !ok || ts != "1700000005.000000" {
		t.Errorf("%s %t %v", ts, ok, err)
	}
	_, ok, err = c.FindMessage(t.Context(), Search{Channel: channel, After: "1700000006.000000", Mark: mark})
	if err != nil || ok {
		t.Errorf("found what is too old: %v", err)
	}
}

func TestRefusedViewNeverSpendsATrigger(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := templates.Loading("x")
	v.Blocks = slack.Blocks{}
	if _, err := w.client.OpenView(t.Context(), "t", v); ClassOf(err) != ClassContent || w.Calls("views.open") != 0 {
		t.Errorf("%v", err)
	}
}

func TestClientNeedsAToken(t *testing.T) {
	t.Parallel()
	for _, o := range []ClientOptions{{}, {Token: "x", APIURL: "nowhere"}, {Token: "x", APIURL: "https://slack.example/api"}} {
		if _, err := NewClient(o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}
