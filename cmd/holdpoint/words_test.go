package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/bot/slacksim"
	"github.com/holdpoint/holdpoint/templates"
)

// What the stories are told with: an agent's words, and a person's.

// problem is an answer that is no success (RFC 9457).
type problem struct {
	Code, Detail, Pointer, Suggest, State string
	ReasonCode                            string `json:"reason_code"`
}

// ask makes a request as the agent; into gets the body. The problem is empty on success.
func (w *world) ask(method, path string, body, into any) (status int, p problem) {
	w.t.Helper()
	var send io.Reader
	switch b := body.(type) {
	case nil:
	case []byte:
		send = bytes.NewReader(b)
	default:
		text, err := json.Marshal(b)
		w.must(err)
		send = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(w.ctx, method, w.base+path, send)
	w.must(err)
	req.Header.Set("Authorization", "Bearer "+w.key)
	if send != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(req)
	w.must(err)
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	w.must(err)
	if resp.StatusCode >= 400 {
		if resp.Header.Get("Content-Type") != "application/problem+json" {
			w.t.Fatalf("%s %s: %d is no problem+json: %s", method, path, resp.StatusCode, data)
		}
		w.must(json.Unmarshal(data, &p))
		return resp.StatusCode, p
	}
	if into != nil && len(data) > 0 {
		w.must(json.Unmarshal(data, into))
	}
	return resp.StatusCode, problem{}
}

// stated is an intake with an SDK's paused state; its calls are read from it.
func stated(run, format, sdk string, state []byte) map[string]any {
	return map[string]any{"run": map[string]any{
		"id": run, "agent_revision": "git:1f0c2d9", "app_state_version": "release-agent/v1", "requester": "slack:U0REQ",
		"state": map[string]any{"format": format, "sdk_version": sdk, "value": json.RawMessage(state)},
	}}
}

// called is an intake of an agent that keeps its state itself.
func called(run string, calls ...map[string]any) map[string]any {
	return map[string]any{"run": map[string]any{"id": run, "app_state_version": "release-agent/v1", "requester": "slack:U0REQ"}, "calls": calls}
}

// calling is one call of such an intake.
func calling(id, tool string, args any) map[string]any {
	return map[string]any{"tool_call_id": id, "tool": tool, "arguments": args}
}

type object = map[string]any

// state reads a paused state of this folder.
func (w *world) state(path string) []byte {
	w.t.Helper()
	data, err := os.ReadFile(path)
	w.must(err)
	return data
}

// propose hands a pause in and gives its approvals.
func (w *world) propose(intake map[string]any) []approvals.View {
	w.t.Helper()
	var p approvals.Pause
	if status, wrong := w.ask(http.MethodPost, "/v1/approvals", intake, &p); status != http.StatusCreated {
		w.t.Fatalf("intake: %d %+v", status, wrong)
	}
	return p.Approvals
}

// deploy hands in the demo's real paused state of a deploy.
func (w *world) deploy(run string) approvals.View {
	w.t.Helper()
	return w.propose(stated(run, "openai-agents-js", "0.20.0", w.state("demo/deploy.json")))[0]
}

// get reads an approval as its agent.
func (w *world) get(id approvals.ID) approvals.View {
	w.t.Helper()
	var v approvals.View
	if status, p := w.ask(http.MethodGet, "/v1/approvals/"+id.String(), nil, &v); status != http.StatusOK {
		w.t.Fatalf("get: %d %+v", status, p)
	}
	return v
}

// becomes waits, by long polls, until an approval has a status.
func (w *world) becomes(id approvals.ID, want approvals.Status) approvals.View {
	w.t.Helper()
	return w.comes(id, string(want), func(v approvals.View) bool { return v.Status == want })
}

func (w *world) comes(id approvals.ID, what string, ok func(approvals.View) bool) approvals.View {
	w.t.Helper()
	v := w.get(id)
	for !ok(v) {
		if v.Status.Terminal() {
			w.t.Fatalf("%s ended as %s (%s), not as %s", id, v.Status, v.ReasonCode, what)
		}
		path := "/v1/approvals/" + id.String() + "?wait=5s&since=" + itoa(v.Version)
		if status, p := w.ask(http.MethodGet, path, nil, &v); status != http.StatusOK {
			w.t.Fatalf("watch: %d %+v", status, p)
		}
		if w.ctx.Err() != nil {
			w.t.Fatalf("%s stays %s, waited for %s", id, v.Status, what)
		}
	}
	return v
}

func itoa(n int64) string {
	b, _ := json.Marshal(n) // a number always encodes
	return string(b)
}

// card waits until the card of an approval says all of the words.
func (w *world) card(id approvals.ID, words ...string) slacksim.Message {
	w.t.Helper()
	m, err := w.sim.WaitMessage(w.ctx, room, func(m slacksim.Message) bool {
		text := m.PlainText()
		return strings.Contains(text, id.String()) && !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) })
	})
	if err != nil {
		var all []string
		for _, m := range w.sim.Messages(room) {
			all = append(all, m.PlainText())
		}
		w.t.Fatalf("no card of %s says %q; the channel:\n%s", id, words, strings.Join(all, "\n---\n"))
	}
	return m
}

// pending waits for the card of an approval that can be decided: the message that is stored as its card. A click before it is stored
// is asked to come again.
func (w *world) pending(id approvals.ID) slacksim.Message {
	w.t.Helper()
	var card slacksim.Message
	w.eventually("there is a card to decide on", func() (string, bool) {
		var ts *string
		err := w.db.QueryRow(w.ctx, `SELECT c.message_ts FROM card c JOIN approval_request r USING (card_id) WHERE r.approval_id = $1`, id).Scan(&ts)
		if err != nil || ts == nil {
			return "no place is stored", false
		}
		var found, offered bool
		if card, found = w.sim.Message(room, *ts); found {
			_, offered = card.Action(templates.ActionReject)
		}
		return card.PlainText(), offered
	})
	return card
}

// click presses a button of a card.
func (w *world) click(user string, card slacksim.Message, action string) slacksim.Response {
	w.t.Helper()
	r, err := w.sim.Click(w.ctx, user, card.Channel, card.TS, action, slacksim.ClickOptions{})
	w.must(err)
	return r
}

func (w *world) approve(user string, id approvals.ID) slacksim.Response {
	w.t.Helper()
	return w.click(user, w.pending(id), templates.ActionApprove)
}

// form waits for a modal with an input, and submits it.
func (w *world) form(user, callback, text string) slacksim.SubmitResult {
	w.t.Helper()
	v, err := w.sim.WaitView(w.ctx, user, func(v slacksim.View) bool { return v.CallbackID == callback })
	w.must(err)
	r, err := w.sim.Submit(w.ctx, user, v, slacksim.Values{templates.InputText: text})
	w.must(err)
	return r
}

// hears waits until a person alone is told something.
func (w *world) hears(user, words string) slacksim.Message {
	w.t.Helper()
	m, err := w.sim.WaitEphemeral(w.ctx, user, func(m slacksim.Message) bool { return strings.Contains(m.PlainText(), words) })
	if err != nil {
		var all []string
		for _, m := range w.sim.Ephemerals(user) {
			all = append(all, m.PlainText())
		}
		w.t.Fatalf("%s was not told %q but %q", user, words, all)
	}
	return m
}

// command types a slash command.
func (w *world) command(user, text string) {
	w.t.Helper()
	_, err := w.sim.Command(w.ctx, user, room, "/approvals", text)
	w.must(err)
}

// resumed waits until the agent is told about a run.
func (w *world) resumed(run string) told {
	w.t.Helper()
	var m told
	err := w.agent.wait(w.ctx, func() bool {
		all := w.agent.of(run)
		if len(all) > 0 {
			m = all[0]
		}
		return len(all) > 0
	})
	if err != nil {
		w.t.Fatalf("the agent was told nothing of %s (%d messages, %d refused)", run, len(w.agent.messages), len(w.agent.refused))
	}
	return m
}

// toldOnce makes sure that nothing more is said of a run; call it after settled.
func (w *world) toldOnce(run string) {
	w.t.Helper()
	w.agent.mu.Lock()
	defer w.agent.mu.Unlock()
	if n := len(w.agent.of(run)); n != 1 || len(w.agent.refused) > 0 {
		w.t.Errorf("the agent was told %d times, %d refused", n, len(w.agent.refused))
	}
}

// effects checks what the tool counted.
func (w *world) effects(effects, requests int) {
	w.t.Helper()
	if e, r := w.tool.counts(); e != effects || r != requests {
		w.t.Errorf("the tool had %d effects in %d requests, want %d in %d", e, r, effects, requests)
	}
}

type slackMessage = slacksim.Message
