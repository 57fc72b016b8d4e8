package slacksim_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/holdpoint/holdpoint/bot/slacksim"
)

func modal(fields, blocks string) string {
	return `{"type":"modal","title":{"type":"plain_text","text":"T"}` + fields + `,"blocks":[` + blocks + `]}`
}

const (
	someBlock  = `{"type":"divider"}`
	withSubmit = `,"submit":{"type":"plain_text","text":"Send"}`
	reasonForm = `{"type":"input","block_id":"why","label":{"type":"plain_text","text":"Reason"},"element":{"type":"plain_text_input","action_id":"reason","max_length":20}},
		{"type":"input","block_id":"who","optional":true,"label":{"type":"plain_text","text":"Tell"},"element":{"type":"multi_users_select","action_id":"people"}},
		{"type":"input","block_id":"how","label":{"type":"plain_text","text":"Kind"},"element":{"type":"radio_buttons","action_id":"kind","options":[{"text":{"type":"plain_text","text":"A"},"value":"a"},{"text":{"type":"plain_text","text":"B"},"value":"b"}],"initial_option":{"text":{"type":"plain_text","text":"A"},"value":"a"}}},
		{"type":"actions","block_id":"acts","elements":[{"type":"button","action_id":"next","text":{"type":"plain_text","text":"Next"}}]}`
)

func TestViewLimits(t *testing.T) {
	t.Parallel()
	field := func(name string) func(int) string {
		return func(n int) string { return modal(`,"`+name+`":"`+x(n)+`"`, someBlock) }
	}
	for name, c := range map[string]struct {
		make  func(n int) string
		limit int
		at    string
	}{
		"title": {func(n int) string {
			return `{"type":"modal","title":` + plainText(n) + `,"blocks":[` + someBlock + `]}`
		}, 24, "/view/title/text"},
		"submit":           {func(n int) string { return modal(`,"submit":`+plainText(n), someBlock) }, 24, "/view/submit/text"},
		"close":            {func(n int) string { return modal(`,"close":`+plainText(n), someBlock) }, 24, "/view/close/text"},
		"private_metadata": {field("private_metadata"), 3000, "/view/private_metadata"},
		"callback_id":      {field("callback_id"), 255, "/view/callback_id"},
		"external_id":      {field("external_id"), 255, "/view/external_id"},
		"blocks":           {func(n int) string { return modal("", times(n, func(int) string { return someBlock })) }, 100, "/view/blocks"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := slacksim.ValidateView([]byte(c.make(c.limit)), "modal"); got != nil {
				t.Errorf("at the limit: %v", got)
			}
			got := strings.Join(slacksim.ValidateView([]byte(c.make(c.limit+1)), "modal"), "\n")
			if !strings.Contains(got, "[json-pointer:"+c.at+"]") {
				t.Errorf("one over: got %q, want a complaint at %s", got, c.at)
			}
		})
	}
	for name, c := range map[string]struct{ view, kind, want string }{
		"input without submit": {modal("", reasonForm), "modal", "submit"},
		"input with submit":    {modal(withSubmit, reasonForm), "modal", ""},
		"no blocks":            {modal("", ""), "modal", "no less than 1 items"},
		"unknown field":        {modal(`,"size":"big"`, someBlock), "modal", "invalid additional property: size"},
		"home has no title":    {`{"type":"home","title":` + plainText(1) + `,"blocks":[` + someBlock + `]}`, "home", "invalid additional property: title"},
		"home":                 {`{"type":"home","blocks":[` + someBlock + `]}`, "home", ""},
		"home opened as modal": {`{"type":"home","blocks":[` + someBlock + `]}`, "modal", "must be modal"},
		"markdown in a view":   {modal("", `{"type":"markdown","text":"x"}`), "modal", "unsupported type: markdown"},
		"alert in a modal":     {modal("", `{"type":"alert","text":{"type":"plain_text","text":"x"}}`), "modal", ""},
		"two focused": {modal(withSubmit, times(2, func(i int) string {
			return fmt.Sprintf(`{"type":"input","label":%s,"element":{"type":"plain_text_input","action_id":"a%d","focus_on_load":true}}`, plainText(1), i)
		})), "modal", "only one element can have focus_on_load"},
		"250 KB": {modal("", times(100, func(int) string { return `{"type":"section","text":` + mrkdwn(2900) + `}` })), "modal", "view_too_large"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := strings.Join(slacksim.ValidateView([]byte(c.view), c.kind), "\n")
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// click presses approve and returns the trigger that the app got.
func click(t *testing.T, s *slacksim.Sim, a *app, ts string) string {
	t.Helper()
	if _, err := s.Click(ctx(t), "U0ANA", "C0APP", ts, "approve", slacksim.ClickOptions{}); err != nil {
		t.Fatal(err)
	}
	return word(t, a.last().payload, "trigger_id")
}

func open(t *testing.T, s *slacksim.Sim, method, trigger, view string) (map[string]any, string) {
	t.Helper()
	out := raw(t, s, method, url.Values{"trigger_id": {trigger}, "view": {view}})
	code, _ := out["error"].(string)
	return out, code
}

func TestTriggers(t *testing.T) {
	t.Parallel()
	c := newClock()
	s := newSim(t, slacksim.Options{Now: c.now, Unlimited: true})
	a := newApp(t, s)
	ts := post(t, s, approveCard)

	trigger := click(t, s, a, ts)
	c.advance(3 * time.Second)
	if _, code := open(t, s, "views.open", trigger, modal("", someBlock)); code != "" {
		t.Fatalf("after exactly three seconds: %s", code)
	}
	if _, code := open(t, s, "views.open", trigger, modal("", someBlock)); code != "exchanged_trigger_id" {
		t.Errorf("used twice: %q", code)
	}
	late := click(t, s, a, ts)
	c.advance(3*time.Second + time.Millisecond)
	if _, code := open(t, s, "views.open", late, modal("", someBlock)); code != "expired_trigger_id" {
		t.Errorf("too late: %q", code)
	}
	if _, code := open(t, s, "views.open", "made-up", modal("", someBlock)); code != "invalid_trigger_id" {
		t.Errorf("made up: %q", code)
	}
	if _, code := open(t, s, "views.open", click(t, s, a, ts), modal("", reasonForm)); code != "invalid_arguments" {
		t.Errorf("bad view: %q", code)
	}
}

func TestViewStackAndHash(t *testing.T) {
	t.Parallel()
	s := newSim(t, slacksim.Options{Unlimited: true})
	a := newApp(t, s)
	ts := post(t, s, approveCard)
	first, _ := open(t, s, "views.open", click(t, s, a, ts), modal(withSubmit, reasonForm))
	id, hash := word(t, first, "view", "id"), word(t, first, "view", "hash")

	if _, code := open(t, s, "views.push", click(t, s, a, ts), modal("", someBlock)); code != "not_found" {
		t.Errorf("push by a trigger from a message: %q", code)
	}
	update := url.Values{"view_id": {id}, "hash": {hash}, "view": {modal(withSubmit, reasonForm)}}
	if out := raw(t, s, "views.update", update); out["ok"] != true {
		t.Fatalf("update with the right hash: %v", out)
	}
	if out := raw(t, s, "views.update", update); out["error"] != "hash_conflict" {
		t.Errorf("update with the old hash: %v", out)
	}
	if out := raw(t, s, "views.update", url.Values{"view_id": {"V0NOPE"}, "view": {modal("", someBlock)}}); out["error"] != "not_found" {
		t.Errorf("update of no view: %v", out)
	}
	for depth := 2; depth <= 4; depth++ {
		top := s.Views("U0ANA")[len(s.Views("U0ANA"))-1]
		if _, err := s.ClickView(ctx(t), "U0ANA", top.ID, "next", nil, slacksim.ClickOptions{}); err != nil {
			t.Fatal(err)
		}
		got := a.last().payload
		if at(got, "container", "view_id") != top.ID || at(got, "view", "id") != top.ID || at(got, "actions", "0", "action_id") != "next" || got["response_url"] != nil {
			t.Fatalf("payload of a click in a view: %v", got)
		}
		out, code := open(t, s, "views.push", word(t, got, "trigger_id"), modal(withSubmit, reasonForm))
		if want := map[int]string{4: "push_limit_reached"}[depth]; code != want {
			t.Errorf("push to depth %d: %q, want %q", depth, code, want)
		}
		if depth == 3 && (at(out, "view", "root_view_id") != id || at(out, "view", "previous_view_id") != top.ID) {
			t.Errorf("lineage: %v", out)
		}
	}
	if err := s.CloseView(ctx(t), "U0ANA", false); err != nil || len(s.Views("U0ANA")) != 2 {
		t.Errorf("closing the top leaves %d views, %v", len(s.Views("U0ANA")), err)
	}
	if err := s.CloseView(ctx(t), "U0ANA", true); err != nil || s.WaitNoView(ctx(t), "U0ANA") != nil {
		t.Errorf("closing all: %v", err)
	}
}

func TestSubmit(t *testing.T) {
	t.Parallel()
	s := newSim(t, slacksim.Options{Unlimited: true})
	a := newApp(t, s)
	ts := post(t, s, approveCard)
	open(t, s, "views.open", click(t, s, a, ts), modal(withSubmit+`,"callback_id":"reject","private_metadata":"pm","notify_on_close":true`, reasonForm))
	view, err := s.WaitView(ctx(t), "U0ANA", func(v slacksim.View) bool { return v.CallbackID == "reject" })
	if err != nil || view.PrivateMetadata() != "pm" {
		t.Fatal(view, err)
	}
	for name, v := range map[string]slacksim.Values{
		"missing": {}, "too long": {"reason": x(21)}, "no such option": {"reason": "r", "kind": "z"}, "no such input": {"reason": "r", "nope": "z"}, "no such person": {"reason": "r", "people": []string{"U0NOPE"}},
	} {
		if _, err := s.Submit(ctx(t), "U0ANA", view, v); !errors.Is(err, slacksim.ErrInvalidInput) {
			t.Errorf("%s: %v", name, err)
		}
	}
	a.reply(func(_ int, _ received, w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"response_action":"errors","errors":{"why":"Say more"}}`))
	})
	res, err := s.Submit(ctx(t), "U0ANA", view, slacksim.Values{"why/reason": "no 🚀 yet", "people": []string{"U0BEN"}})
	if err != nil || res.Action != "errors" || res.Errors["why"] != "Say more" || s.Views("U0ANA")[0].Errors()["why"] != "Say more" {
		t.Fatalf("errors: %+v %v", res, err)
	}
	got := a.last().payload
	values := at(got, "view", "state", "values")
	if got["type"] != "view_submission" || at(values, "why", "reason", "value") != "no :rocket: yet" || at(values, "who", "people", "selected_users", "0") != "U0BEN" ||
		at(values, "how", "kind", "selected_option", "value") != "a" || at(got, "view", "private_metadata") != "pm" || at(got, "user", "team_id") != "T0ACME" {
		t.Errorf("payload: %v", got)
	}
	a.reply(func(_ int, _ received, w http.ResponseWriter) {
		_, _ = w.Write([]byte(`{"response_action":"update","view":{"type":"modal"}}`))
	})
	if _, err := s.Submit(ctx(t), "U0ANA", view, slacksim.Values{"reason": "r"}); err == nil || !strings.Contains(err.Error(), "invalid_arguments") {
		t.Errorf("a broken view in the answer: %v", err)
	}
	a.reply(nil) // an empty 200 closes
	if res, err := s.Submit(ctx(t), "U0ANA", view, slacksim.Values{"reason": "r"}); err != nil || res.Action != "" || len(s.Views("U0ANA")) != 0 {
		t.Errorf("closing: %+v %v", res, err)
	}
	if _, err := s.Submit(ctx(t), "U0ANA", view, slacksim.Values{"reason": "r"}); !errors.Is(err, slacksim.ErrNoView) {
		t.Errorf("a second submission of a closed view: %v", err)
	}
}

func TestHomeTab(t *testing.T) {
	t.Parallel()
	s := newSim(t, slacksim.Options{Unlimited: true})
	a := newApp(t, s)
	home := `{"type":"home","blocks":[{"type":"actions","elements":[{"type":"button","action_id":"refresh","text":{"type":"plain_text","text":"R"}}]}]}`
	out := raw(t, s, "views.publish", url.Values{"user_id": {"U0ANA"}, "view": {home}})
	if out["ok"] != true {
		t.Fatal(out)
	}
	if out := raw(t, s, "views.publish", url.Values{"user_id": {"U0ANA"}, "view": {home}, "hash": {"old"}}); out["error"] != "hash_conflict" {
		t.Errorf("old hash: %v", out)
	}
	if _, err := s.OpenHome(ctx(t), "U0ANA"); err != nil {
		t.Fatal(err)
	}
	if e := at(a.last().payload, "event"); at(e, "type") != "app_home_opened" || at(e, "user") != "U0ANA" || at(e, "view", "type") != "home" {
		t.Errorf("event: %v", e)
	}
	view, ok := s.Home("U0ANA")
	if !ok {
		t.Fatal("no home")
	}
	if _, err := s.ClickView(ctx(t), "U0ANA", view.ID, "refresh", nil, slacksim.ClickOptions{}); err != nil || at(a.last().payload, "view", "type") != "home" {
		t.Errorf("click: %v %v", err, a.last().payload)
	}
}
