package slacksim_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdpoint/holdpoint/bot/slacksim"
	"github.com/slack-go/slack"
)

func TestFaults(t *testing.T) {
	t.Parallel()
	var limited *slack.RateLimitedError
	var status slack.StatusCodeError
	var refused slack.SlackErrorResponse
	for name, c := range map[string]struct {
		fault slacksim.Fault
		saw   func(error) bool
		done  bool // the message exists all the same
	}{
		"429":                {slacksim.RateLimited{RetryAfter: 7 * time.Second}, func(err error) bool { return errors.As(err, &limited) && limited.RetryAfter == 7*time.Second }, false},
		"429 without header": {slacksim.RateLimited{}, func(err error) bool { return errors.As(err, &status) && status.Code == 429 }, false},
		"502":                {slacksim.ServerError{Status: 502}, func(err error) bool { return errors.As(err, &status) && status.Code == 502 }, false},
		"500":                {slacksim.ServerError{}, func(err error) bool { return errors.As(err, &status) && status.Code == 500 }, false},
		"code":               {slacksim.Error{Code: "channel_not_found"}, func(err error) bool { return errors.As(err, &refused) && refused.Err == "channel_not_found" }, false},
		"drop":               {slacksim.Drop{}, func(err error) bool { return err != nil && strings.Contains(err.Error(), "EOF") }, false},
		"lost answer":        {slacksim.LoseAnswer{}, func(err error) bool { return err != nil && strings.Contains(err.Error(), "EOF") }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSim(t, slacksim.Options{Unlimited: true})
			api := client(s)
			s.Fault("chat.postMessage", c.fault, 1)
			if _, err := api.AuthTestContext(ctx(t)); err != nil {
				t.Errorf("the fault hit another method: %v", err)
			}
			_, _, err := api.PostMessageContext(ctx(t), "C0APP", slack.MsgOptionText("x", false))
			if !c.saw(err) {
				t.Errorf("error %v", err)
			}
			if got := len(s.Messages("C0APP")) == 1; got != c.done {
				t.Errorf("carried out: %v, want %v", got, c.done)
			}
			if _, _, err := api.PostMessageContext(ctx(t), "C0APP", slack.MsgOptionText("x", false)); err != nil {
				t.Errorf("the fault was armed for one call: %v", err)
			}
		})
	}
}

func TestHang(t *testing.T) {
	t.Parallel()
	s := newSim(t, slacksim.Options{Unlimited: true})
	s.Fault("*", slacksim.Hang{}, 0)
	short, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if _, _, err := client(s).PostMessageContext(short, "C0APP", slack.MsgOptionText("x", false)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if len(s.Messages("C0APP")) != 0 {
		t.Error("a hung call was carried out")
	}
	s.ClearFaults()
	if _, err := client(s).AuthTestContext(ctx(t)); err != nil {
		t.Errorf("after ClearFaults: %v", err)
	}
}

// respond posts to a response_url and gives the status and the error code.
func respond(t *testing.T, url, body string) (int, string) {
	t.Helper()
	resp, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var out struct {
		Error string `json:"error"`
	}
	_ = json.NewDecoder(resp.Body).Decode(&out) // "ok" is not JSON
	return resp.StatusCode, out.Error
}

func TestResponseURL(t *testing.T) {
	t.Parallel()
	c := newClock()
	s := newSim(t, slacksim.Options{Now: c.now, Unlimited: true})
	a := newApp(t, s)
	ts := post(t, s, approveCard)
	click(t, s, a, ts)
	url := word(t, a.last().payload, "response_url")

	if code, _ := respond(t, url, `{"text":"only you"}`); code != 200 || len(s.Ephemerals("U0ANA")) != 1 {
		t.Errorf("ephemeral by default: %d", code)
	}
	if code, _ := respond(t, url, `{"text":"all","response_type":"in_channel"}`); code != 200 || len(s.Messages("C0APP")) != 2 {
		t.Errorf("in channel: %d", code)
	}
	if code, _ := respond(t, url, `{"text":"Approved","blocks":[{"type":"divider"}],"replace_original":true}`); code != 200 {
		t.Errorf("replace: %d", code)
	}
	if m, _ := s.Message("C0APP", ts); m.Text != "Approved" || len(m.Actions()) != 0 {
		t.Errorf("replaced: %+v", m)
	}
	if code, e := respond(t, url, `{"blocks":[{"type":"nope"}]}`); code != 400 || e != "invalid_blocks" {
		t.Errorf("invalid: %d %s", code, e)
	}
	if code, _ := respond(t, url, `{"delete_original":true}`); code != 200 || len(s.Messages("C0APP")) != 1 {
		t.Errorf("delete, the fifth use: %d", code)
	}
	if code, e := respond(t, url, `{"text":"x"}`); code != 404 || e != "used_url" {
		t.Errorf("the sixth use: %d %s", code, e)
	}

	ts = post(t, s, approveCard)
	click(t, s, a, ts)
	url = word(t, a.last().payload, "response_url")
	c.advance(30 * time.Minute)
	if code, _ := respond(t, url, `{"text":"x"}`); code != 200 {
		t.Errorf("after exactly half an hour: %d", code)
	}
	c.advance(time.Millisecond)
	if code, e := respond(t, url, `{"text":"x"}`); code != 404 || e != "expired_url" {
		t.Errorf("later: %d %s", code, e)
	}
	if code, _ := respond(t, s.URL()+"/response/made-up", `{"text":"x"}`); code != 404 {
		t.Errorf("made up: %d", code)
	}
}

func TestWaiting(t *testing.T) {
	t.Parallel()
	s := newSim(t, slacksim.Options{Unlimited: true})
	found := make(chan slacksim.Message, 1)
	go func() {
		m, err := s.WaitMessage(t.Context(), "C0APP", func(m slacksim.Message) bool { return m.Text == "second" })
		if err == nil {
			found <- m
		}
	}()
	ts := post(t, s, approveCard)
	api := client(s)
	if _, _, _, err := api.UpdateMessageContext(ctx(t), "C0APP", ts, slack.MsgOptionText("second", false)); err != nil {
		t.Fatal(err)
	}
	if m := <-found; m.TS != ts {
		t.Errorf("%+v", m)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.WaitMessage(gone, "C0APP", func(slacksim.Message) bool { return false }); !errors.Is(err, context.Canceled) {
		t.Errorf("a given-up wait: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.WaitEphemeral(t.Context(), "U0ANA", nil); !errors.Is(err, slacksim.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}
