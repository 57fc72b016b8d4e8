package proof

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/bot/slacksim"
	"github.com/holdpoint/holdpoint/templates"
)

// What an agent and people say.

type object = map[string]any

// problem is an answer that is no success (RFC 9457).
type problem struct {
	Code, Detail, State string
	ReasonCode          string `json:"reason_code"`
}

// ask makes one request as the agent. An error is a broken connection.
func (w *world) ask(method, path string, body, into any) (status int, p problem, err error) {
	var send io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return 0, p, err
		}
		send = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(w.ctx, method, w.base+path, send)
	if err != nil {
		return 0, p, err
	}
	req.Header.Set("Authorization", "Bearer "+w.key)
	req.Header.Set("Content-Type", "application/json")
	req.Close = true // no connection of ours is left to a process that is killed
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, p, err
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return 0, p, err
	case resp.StatusCode >= 400:
		err = json.Unmarshal(data, &p)
	case into != nil && len(data) > 0:
		err = json.Unmarshal(data, into)
	}
	return resp.StatusCode, p, err
}

// asked is ask for answers that must come.
func (w *world) asked(method, path string, body, into any) (status int, p problem) {
	w.t.Helper()
	status, p, err := w.ask(method, path, body, into)
	w.must(err)
	return status, p
}

// call is one proposed call. Its run is named after it.
type call struct {
	op, tool, plan string
	hooks          string // the webhook's plan
	within         string // expires_in
	id             approvals.ID
	key            string
}

func (c *call) run() string {
	if c.hooks == "" {
		return "run-" + c.op
	}
	return "run-" + c.op + "~" + c.hooks
}

func (c *call) intake() object {
	one := object{"tool_call_id": "call-1", "tool": c.tool, "arguments": object{"op": c.op, "plan": c.plan, "note": canary}}
	if c.within != "" {
		one["expires_in"] = c.within
	}
	return object{"run": object{"id": c.run(), "app_state_version": "proof/v1", "requester": "slack:U0REQ"}, "calls": []any{one}}
}

// submit hands a call in.
func (w *world) submit(c *call) (status int, err error) {
	var p approvals.Pause
	status, wrong, err := w.ask(http.MethodPost, "/v1/approvals", c.intake(), &p)
	if err != nil {
		return 0, err
	}
	if status >= 400 {
		return status, fmt.Errorf("intake of %s: %d %+v", c.op, status, wrong)
	}
	c.id, c.key = p.Approvals[0].ApprovalID, p.Approvals[0].OperationKey
	return status, nil
}

func (w *world) propose(c *call) {
	w.t.Helper()
	status, err := w.submit(c)
	w.must(err)
	if status != http.StatusCreated {
		w.t.Fatalf("intake of %s: %d", c.op, status)
	}
}

// place is where a call's card is.
func (w *world) place(id approvals.ID) (ts string) {
	// A card that is not posted yet is "".
	if err := w.db.QueryRow(w.ctx, `SELECT coalesce(c.message_ts, '') FROM card c JOIN approval_request r USING (card_id) WHERE r.approval_id = $1`, id).Scan(&ts); err != nil {
		return ""
	}
	return ts
}

// posted makes the card appear by this process, and gives its place.
func (w *world) posted(id approvals.ID) string {
	w.t.Helper()
	w.must(w.cards.Sync(w.ctx, id))
	ts := w.place(id)
	if ts == "" {
		w.t.Fatal("the card was not posted")
	}
	return ts
}

// approve presses Approve. An error means that Slack got no answer.
func (w *world) approve(user, ts string) (slacksim.Response, error) {
	return w.sim.Click(w.ctx, user, room, ts, templates.ActionApprove, slacksim.ClickOptions{})
}

// reject presses Reject… and submits the form with its reason.
func (w *world) reject(user, ts string) (slacksim.SubmitResult, error) {
	if _, err := w.sim.Click(w.ctx, user, room, ts, templates.ActionReject, slacksim.ClickOptions{}); err != nil {
		return slacksim.SubmitResult{}, err
	}
	view, err := w.sim.WaitView(w.ctx, user, func(v slacksim.View) bool { return v.CallbackID == templates.ViewReject })
	if err != nil {
		return slacksim.SubmitResult{}, err
	}
	return w.sim.Submit(w.ctx, user, view, slacksim.Values{templates.InputText: "not now"})
}

// status reads how an approval stands.
func (w *world) status(id approvals.ID) approvals.Status {
	w.t.Helper()
	return approvals.Status(value[string](w, `SELECT status FROM approval_request WHERE approval_id = $1`, id))
}

// becomes waits for one of the statuses.
func (w *world) becomes(id approvals.ID, want ...approvals.Status) approvals.Status {
	w.t.Helper()
	var now approvals.Status
	w.eventually(fmt.Sprintf("%s is %v", id, want), func() (string, bool) {
		now = w.status(id)
		return string(now), slices.Contains(want, now)
	})
	return now
}

// settled waits until nothing is promised or due any more: the outbox is empty, runs that can be told are told, cards show their
// rows.
func (w *world) settled() {
	w.t.Helper()
	w.eventually("all is settled", func() (string, bool) {
		var seen []string
		for what, sql := range unsettled {
			if n := value[int](w, sql); n > 0 {
				seen = append(seen, fmt.Sprintf("%d %s", n, what))
			}
		}
		slices.Sort(seen)
		return strings.Join(seen, ", "), len(seen) == 0
	})
}

var unsettled = map[string]string{
	"outbox rows":     `SELECT count(*) FROM outbox`,
	"runs not told":   `SELECT count(*) FROM run_pause WHERE closed_at IS NOT NULL AND superseded_at IS NULL AND told_at IS NULL`,
	"cards behind":    `SELECT count(*) FROM card c JOIN approval_request r USING (card_id) WHERE c.shown_version < r.version AND c.message_ts IS NOT NULL`,
	"calls under way": `SELECT count(*) FROM approval_request WHERE status IN ('approved', 'executing') AND executor = 'worker'`,
}
