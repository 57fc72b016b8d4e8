package slacksim_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/holdpoint/holdpoint/bot/slacksim"
	"github.com/slack-go/slack"
)

// Slack's own published example.
func TestSignatureVector(t *testing.T) {
	t.Parallel()
	body := "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner" +
		"&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
	want := "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"
	if got := slacksim.Sign("8f742231b10e8888abcd99yyyzzz85a5", "1531420618", []byte(body)); got != want {
		t.Errorf("got %s", got)
	}
}

func TestClick(t *testing.T) {
	t.Parallel()
	s := newSim(t, slacksim.Options{Unlimited: true})
	a := newApp(t, s)
	ts := post(t, s, approveCard)
	resp, err := s.Click(ctx(t), "U0ANA", "C0APP", ts, "approve", slacksim.ClickOptions{})
	if err != nil || !resp.Acked || resp.Status != 200 || resp.Latency <= 0 {
		t.Fatalf("%+v %v", resp, err)
	}
	got := a.last()
	if got.path != slacksim.InteractionsPath || !got.signed {
		t.Errorf("path %s, signed %v", got.path, got.signed)
	}
	for path, want := range map[string]any{
		"type": "block_actions", "api_app_id": "A0HOLDPOINT", "user id": "U0ANA", "user team_id": "T0ACME", "team id": "T0ACME",
		"container type": "message", "container message_ts": ts, "container channel_id": "C0APP", "container is_ephemeral": false,
		"channel id": "C0APP", "message ts": ts, "message bot_id": "B0HOLDPOINT", "actions 0 action_id": "approve", "actions 0 block_id": "decide",
		"actions 0 value": "v1.abc", "actions 0 type": "button", "actions 0 text text": "Approve",
	} {
		if v := at(got.payload, strings.Fields(path)...); v != want {
			t.Errorf("%s = %v, want %v", path, v, want)
		}
	}
	for _, k := range []string{"trigger_id", "response_url"} {
		if v, _ := got.payload[k].(string); v == "" {
			t.Errorf("no %s", k)
		}
	}
	// What slack-go makes of it: the production decoder reads the payload.
	var ic slack.InteractionCallback
	if err := ic.UnmarshalJSON([]byte(got.form.Get("payload"))); err != nil || ic.ActionCallback.BlockActions[0].Value != "v1.abc" || ic.Container.ChannelID != "C0APP" {
		t.Errorf("slack-go: %+v %v", ic.ActionCallback, err)
	}
	if _, err := s.ClickOverflow(ctx(t), "U0BEN", "C0APP", ts, "more", "edit"); err != nil || at(a.last().payload, "actions", "0", "selected_option", "value") != "edit" {
		t.Errorf("overflow: %v %v", err, a.last().payload["actions"])
	}
}

func TestClickRefusals(t *testing.T) {
	t.Parallel()
	s := newSim(t, slacksim.Options{Unlimited: true})
	a := newApp(t, s)
	ts := post(t, s, approveCard)
	click := func(user, channel, ts, action string, o slacksim.ClickOptions) error {
		_, err := s.Click(ctx(t), user, channel, ts, action, o)
		return err
	}
	for name, c := range map[string]struct{ got, want error }{
		"nobody":         {click("U0NOPE", "C0APP", ts, "approve", slacksim.ClickOptions{}), slacksim.ErrNoUser},
		"not in channel": {click("U0EXT", "C0APP", ts, "approve", slacksim.ClickOptions{}), slacksim.ErrNoMessage},
		"no message":     {click("U0ANA", "C0APP", "1.0", "approve", slacksim.ClickOptions{}), slacksim.ErrNoMessage},
		"no action":      {click("U0ANA", "C0APP", ts, "nope", slacksim.ClickOptions{}), slacksim.ErrNoAction},
		"other block":    {click("U0ANA", "C0APP", ts, "approve", slacksim.ClickOptions{BlockID: "nope"}), slacksim.ErrNoAction},
		"no option":      {click("U0ANA", "C0APP", ts, "more", slacksim.ClickOptions{Option: "nope"}), slacksim.ErrNoOption},
	} {
		if !errors.Is(c.got, c.want) {
			t.Errorf("%s: %v, want %v", name, c.got, c.want)
		}
	}
	if len(a.more) != 0 {
		t.Error("a refused click reached the app")
	}
	// A person of another workspace in a shared channel can click; the payload tells.
	out := raw(t, s, "chat.postMessage", url.Values{"channel": {"C0SHARED"}, "text": {"x"}, "blocks": {approveCard}})
	if err := click("U0EXT", "C0SHARED", word(t, out, "ts"), "approve", slacksim.ClickOptions{}); err != nil {
		t.Fatal(err)
	}
	if p := a.last().payload; at(p, "user", "team_id") != "T0OTHER" || at(p, "team", "id") != "T0ACME" {
		t.Errorf("teams: %v %v", p["user"], p["team"])
	}
}

func TestTampering(t *testing.T) {
	t.Parallel()
	c := newClock()
	s := newSim(t, slacksim.Options{Unlimited: true, Now: c.now})
	a := newApp(t, s)
	ts := post(t, s, approveCard)
	try := func(tamper slacksim.Tamper) received {
		t.Helper()
		if _, err := s.Click(ctx(t), "U0ANA", "C0APP", ts, "approve", slacksim.ClickOptions{Tamper: tamper}); err != nil {
			t.Fatal(err)
		}
		return a.last()
	}
	if got := try(slacksim.Tamper{Payload: func(p map[string]any) { p["api_app_id"] = "A0EVIL" }}); got.payload["api_app_id"] != "A0EVIL" || !got.signed {
		t.Error("a changed payload is sent signed")
	}
	if got := try(slacksim.Tamper{Secret: "other"}); got.signed {
		t.Error("another secret gave the same signature")
	}
	if got := try(slacksim.Tamper{Unsigned: true}); got.header.Get("X-Slack-Signature") != "" {
		t.Error("unsigned, yet signed")
	}
	if got := try(slacksim.Tamper{AfterSign: func(b []byte) []byte { return bytes.Replace(b, []byte("U0ANA"), []byte("U0BEN"), 1) }}); got.signed || at(got.payload, "user", "id") != "U0BEN" {
		t.Error("the body was not changed after signing")
	}
	if got := try(slacksim.Tamper{Skew: -10 * time.Minute}); got.header.Get("X-Slack-Request-Timestamp") != "1784893800" || !got.signed {
		t.Errorf("skewed: %v", got.header)
	}
}

func TestReplayAndTwice(t *testing.T) {
	t.Parallel()
	c := newClock()
	s := newSim(t, slacksim.Options{Unlimited: true, Now: c.now})
	a := newApp(t, s)
	ts := post(t, s, approveCard)
	both, err := s.ClickTwice(ctx(t), "U0ANA", "C0APP", ts, "approve", slacksim.ClickOptions{})
	if err != nil || !both[0].Acked || !both[1].Acked || !bytes.Equal(both[0].Delivery.Body, both[1].Delivery.Body) {
		t.Fatalf("%v %v", both, err)
	}
	first := a.last()
	c.advance(time.Hour)
	if _, err := s.Replay(ctx(t), s.Deliveries()[0]); err != nil {
		t.Fatal(err)
	}
	if again := a.last(); again.header.Get("X-Slack-Signature") != first.header.Get("X-Slack-Signature") || again.form.Get("payload") != first.form.Get("payload") {
		t.Error("a replay is not the same bytes under the same signature")
	}
}

func TestSlowAndFailingApps(t *testing.T) {
	t.Parallel()
	s := newSim(t, slacksim.Options{Unlimited: true, AckTimeout: 50 * time.Millisecond})
	a := newApp(t, s)
	ts := post(t, s, approveCard)
	release := make(chan struct{})
	a.reply(func(n int, _ received, w http.ResponseWriter) {
		if n == 1 {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		<-release
	})
	resp, err := s.Click(ctx(t), "U0ANA", "C0APP", ts, "approve", slacksim.ClickOptions{})
	if !errors.Is(err, slacksim.ErrNotAcked) || resp.Status != 500 || resp.Acked {
		t.Errorf("500: %+v %v", resp, err)
	}
	resp, err = s.Click(ctx(t), "U0ANA", "C0APP", ts, "approve", slacksim.ClickOptions{})
	close(release)
	if !errors.Is(err, slacksim.ErrNotAcked) || resp.Status != 0 || resp.Latency < 50*time.Millisecond {
		t.Errorf("slow: %+v %v", resp, err)
	}
	s.SetCallbackURL("")
	if _, err := s.Click(ctx(t), "U0ANA", "C0APP", ts, "approve", slacksim.ClickOptions{}); !errors.Is(err, slacksim.ErrNoCallback) {
		t.Errorf("no address: %v", err)
	}
}

func TestCommand(t *testing.T) {
	t.Parallel()
	s := newSim(t, slacksim.Options{Unlimited: true})
	a := newApp(t, s)
	a.reply(func(n int, _ received, w http.ResponseWriter) {
		switch n {
		case 1:
			_, _ = io.WriteString(w, "plain *words*")
		case 2:
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"response_type":"in_channel","text":"for all"}`)
		case 3:
			_, _ = io.WriteString(w, `{"blocks":[{"type":"nope"}]}`)
		}
	})
	run := func(text string) error {
		_, err := s.Command(ctx(t), "U0ANA", "C0APP", "/approvals", text)
		return err
	}
	if err := run(`block @ben @release #approvals @nobody "why" & <that>`); err != nil {
		t.Fatal(err)
	}
	form := a.last().form
	want := `block <@U0BEN|ben> <!subteam^S0REL|@release> <#C0APP|approvals> @nobody "why" &amp; &lt;that&gt;`
	if form.Get("text") != want || form.Get("command") != "/approvals" || form.Get("user_id") != "U0ANA" || form.Get("team_id") != "T0ACME" || form.Get("trigger_id") == "" || !a.last().signed {
		t.Errorf("form: %v", form)
	}
	if e := s.Ephemerals("U0ANA"); len(e) != 1 || e[0].Text != "plain *words*" || len(s.Ephemerals("U0BEN")) != 0 {
		t.Errorf("answer: %v", e)
	}
	if err := run("share"); err != nil || s.Messages("C0APP")[0].Text != "for all" {
		t.Errorf("in channel: %v", err)
	}
	if err := run("broken"); err == nil || !strings.Contains(err.Error(), "invalid_blocks") {
		t.Errorf("a refused answer: %v", err)
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	pauses := make(chan time.Duration, 8)
	s := newSim(t, slacksim.Options{Unlimited: true, After: func(d time.Duration) <-chan time.Time {
		pauses <- d
		now := make(chan time.Time, 1)
		now <- time.Now()
		return now
	}})
	a := newApp(t, s)
	a.reply(func(n int, r received, w http.ResponseWriter) {
		switch {
		case r.payload["type"] == "url_verification":
			_, _ = fmt.Fprint(w, r.payload["challenge"])
		case n < 5:
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	if err := s.Challenge(ctx(t)); err != nil {
		t.Fatal(err)
	}
	a.wait(1)
	err := s.SetGroupMembers(ctx(t), "S0REL", []string{"U0BEN"}, true)
	if !errors.Is(err, slacksim.ErrNotAcked) {
		t.Fatalf("the first try: %v", err)
	}
	a.wait(4) // the first, at once, after one minute, after five
	if p1, p2 := <-pauses, <-pauses; p1 != time.Minute || p2 != 5*time.Minute {
		t.Errorf("pauses %v %v", p1, p2)
	}
	last := a.last()
	if last.header.Get("X-Slack-Retry-Num") != "3" || last.header.Get("X-Slack-Retry-Reason") != "http_error" || !last.signed {
		t.Errorf("headers: %v", last.header)
	}
	e := last.payload["event"]
	if at(e, "type") != "subteam_members_changed" || at(e, "subteam_id") != "S0REL" || at(e, "added_users", "0") != "U0BEN" || at(e, "removed_users", "0") != "U0ANA" || last.payload["team_id"] != "T0ACME" {
		t.Errorf("event: %v", last.payload)
	}
}
