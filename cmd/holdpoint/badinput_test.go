package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdpoint/holdpoint/approvals"
)

// Bad input, over real HTTP. Each is answered in one way that a program can act on; nothing is stored but audit rows; and nothing of it
// gets into the log (the world checks that at each test's end).

// rows counts every table's rows, but for the audit's and the mirror's.
func (w *world) rows() map[string]int {
	w.t.Helper()
	found, err := w.db.Query(w.ctx, `SELECT relname::text FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
		AND relname NOT LIKE 'audit%' AND relname NOT LIKE 'slack_%' AND relname NOT LIKE 'goose%'`)
	w.must(err)
	var names []string
	for found.Next() {
		var name string
		w.must(found.Scan(&name))
		names = append(names, name)
	}
	w.must(found.Err())
	if len(names) < 10 {
		w.t.Fatalf("only %v are looked at", names)
	}
	out := map[string]int{}
	for _, name := range names {
		out[name] = w.number(`SELECT count(*) FROM ` + name)
	}
	return out
}

// unchanged fails when a row was added or removed since before.
func (w *world) unchanged(what string, before map[string]int) {
	w.t.Helper()
	if now := w.rows(); !maps.Equal(before, now) {
		for name, n := range now {
			if n != before[name] {
				w.t.Errorf("%s: %s had %d rows and has %d", what, name, before[name], n)
			}
		}
	}
}

// with changes an intake's run.
func with(intake map[string]any, name string, value any) map[string]any {
	run, _ := intake["run"].(map[string]any)
	if value == nil {
		delete(run, name)
	} else {
		run[name] = value
	}
	return intake
}

// deploying is a well-formed intake, for a test to spoil.
func deploying() map[string]any {
	return called("run_bad", calling("call_1", "deploy_release", object{"release": "2026.07.24", "environment": "production", "token": canary}))
}

func TestBadIntakes(t *testing.T) {
	t.Parallel()
	p := start(t, 1, 0)
	js := func(file string) map[string]any {
		return stated("run_bad", "openai-agents-js", "0.20.0", p.state("testdata/"+file+".json"))
	}
	call := func(tool string, args any) map[string]any { return called("run_bad", calling("call_1", tool, args)) }
	for name, c := range map[string]struct {
		body    any
		status  int
		code    string
		pointer string
		suggest string
	}{
		"not JSON":                {body: []byte(`{"run": nope`), status: 400, code: "invalid_request"},
		"no object":               {body: []byte(`[1]`), status: 400, code: "invalid_request"},
		"a name twice":            {body: []byte(`{"run":{"id":"a","id":"b"},"calls":[]}`), status: 400, code: "invalid_request"},
		"an unknown name":         {body: map[string]any{"run": object{"id": "r"}, "approved": true}, status: 400, code: "invalid_request"},
		"nothing":                 {body: []byte{}, status: 400, code: "invalid_request"},
		"no run":                  {body: with(deploying(), "id", ""), status: 400, code: "invalid_request", pointer: "/run/id"},
		"an unknown tool":         {body: call("deploy_relase", object{}), status: 422, code: "unknown_tool"},
		"another agent's tool":    {body: call("rollback", object{}), status: 422, code: "tool_not_allowed"},
		"no rule":                 {body: call("uncovered", object{}), status: 422, code: "no_rule", suggest: "uncovered"},
		"no rule matches":         {body: call("deploy_release", object{"release": "1", "environment": "staging"}), status: 422, code: "no_rule", suggest: "deploy_release"},
		"a broken schema":         {body: call("issue_refund", object{"order": "ORD-18472", "amount": "lots", "currency": "EUR"}), status: 422, code: "schema_mismatch", pointer: "/calls/0/arguments/amount"},
		"a state's broken call":   {body: js("schema-mismatch-paused"), status: 422, code: "schema_mismatch"},
		"an unregistered version": {body: with(deploying(), "app_state_version", "release-agent/v9"), status: 422, code: "version_unsupported"},
		"a closed version":        {body: with(deploying(), "app_state_version", "release-agent/old"), status: 422, code: "intake_closed"},
		"an unregistered format":  {body: with(deploying(), "state", object{"format": "opaque", "value": object{"a": 1}}), status: 422, code: "version_unsupported"},
		"a state that is no JSON": {body: []byte(`{"run":{"id":"r","app_state_version":"release-agent/v1","state":{"format":"openai-agents-js","value":{"$schemaVersion":}}}}`), status: 400, code: "invalid_request"},
		"a state that is a text":  {body: with(js("duplicate-keys-paused"), "state", object{"format": "openai-agents-js", "sdk_version": "0.20.0", "value": "{broken"}), status: 422, code: "version_unsupported"},
		"a state too large":       {body: with(js("duplicate-keys-paused"), "state", object{"format": "openai-agents-js", "sdk_version": "0.20.0", "value": object{"$schemaVersion": "1.22", "pad": strings.Repeat("x", 70000)}}), status: 413, code: "state_too_large"},
		"a secret in the state":   {body: js("single-paused-with-context-secret"), status: 422, code: "secret_in_state", pointer: "/run/state/value/context/context/apiToken"},
		"a standing approval":     {body: js("single-approved-always"), status: 422, code: "standing_approval_in_state", pointer: `/run/state/value/context/functionApprovals/0/approvals/["bare","deploy_release"]/approved`},
		"another call than told":  {body: stateAndCall(p.world), status: 422, code: "state_mismatch"},
		"no requester":            {body: with(deploying(), "requester", nil), status: 422, code: "requester_required"},
		"a stranger as requester": {body: with(deploying(), "requester", "slack:U0NOBODY"), status: 422, code: "unknown_requester", pointer: "/run/requester"},
		"a requester elsewhere":   {body: with(deploying(), "requester", "email:rita@acme.example"), status: 422, code: "unknown_requester", pointer: "/run/requester"},
		"too few could approve":   {body: with(call("issue_refund", object{"order": "ORD-18472", "amount": 742.18, "currency": "USD"}), "requester", "slack:U0CAROL"), status: 422, code: "no_quorum_possible"},
	} {
		t.Run(name, func(t *testing.T) {
			before := p.rows()
			status, wrong := p.ask(http.MethodPost, "/v1/approvals", c.body, nil)
			if status != c.status || wrong.Code != c.code || wrong.Detail == "" {
				t.Errorf("%d %+v, want %d %s", status, wrong, c.status, c.code)
			}
			if c.pointer != "" && wrong.Pointer != c.pointer || !strings.Contains(wrong.Suggest, c.suggest) {
				t.Errorf("points to %q and suggests %q", wrong.Pointer, wrong.Suggest)
			}
			p.silent("the answer", fmt.Sprintf("%+v", wrong))
			p.unchanged(name, before)
		})
	}
	if n := len(p.sim.Messages(room)); n != 0 {
		t.Errorf("%d messages", n)
	}
}

// stateAndCall says something else beside its state.
func stateAndCall(w *world) map[string]any {
	body := stated("run_bad", "openai-agents-js", "0.20.0", w.state("demo/deploy.json"))
	body["calls"] = []map[string]any{calling("call_deploy_1", "deploy_release", `{"release":"other","environment":"production"}`)}
	return body
}

// Without the agent's key nothing is said at all, and what others own does not exist (I22).
func TestWrongKeys(t *testing.T) {
	t.Parallel()
	p := start(t, 1, 0)
	a := p.deploy("run_mine")
	before := p.rows()
	good := p.key
	for name, key := range map[string]string{"none": "", "no key of ours": "sk-live-123", "a well-formed one": "hp_" + strings.Repeat("a", 52), "cut": good[:len(good)-1], "in capitals": strings.ToUpper(good)} {
		p.key = key
		for _, path := range []string{"/v1/approvals", "/v1/approvals/" + a.ApprovalID.String(), "/v1/runs/run_mine/resume"} {
			if status, wrong := p.ask(http.MethodGet, path, nil, nil); status != http.StatusUnauthorized || wrong.Code != "unauthorized" {
				t.Errorf("%s, GET %s: %d %+v", name, path, status, wrong)
			}
		}
	}
	other, id, err := p.core.CreateKey(p.ctx, "acme", "other-agent", nil, approvals.OperatorActor("test"))
	p.must(err)
	p.key = other
	for _, c := range [][2]string{
		{http.MethodGet, "/v1/approvals/" + a.ApprovalID.String()},
		{http.MethodGet, "/v1/approvals/" + a.ApprovalID.String() + "/events"},
		{http.MethodPost, "/v1/approvals/" + a.ApprovalID.String() + "/revoke"},
		{http.MethodPost, "/v1/approvals/" + a.ApprovalID.String() + "/resume"},
		{http.MethodPost, "/v1/operations/" + a.ApprovalID.String() + "/claim"},
		{http.MethodGet, "/v1/approvals/" + approvals.NewID().String()},
	} {
		var body any
		if strings.HasSuffix(c[1], "/revoke") {
			body = object{"reason": "not mine"}
		}
		if status, wrong := p.ask(c[0], c[1], body, nil); status != http.StatusNotFound || wrong.Code != "not_found" {
			t.Errorf("another agent, %s: %d %+v", c[1], status, wrong)
		}
	}
	p.must(p.core.RevokeKey(p.ctx, id, approvals.OperatorActor("test")))
	p.key = good
	if v := p.get(a.ApprovalID); v.Status != approvals.Pending {
		t.Errorf("it is %s", v.Status)
	}
	before["api_key"]++
	p.unchanged("wrong keys", before)
}

// A body that never ends is cut off at the limit, with an answer, and the connection is closed.
func TestEndlessBody(t *testing.T) {
	t.Parallel()
	p := start(t, 1, 0)
	before := p.rows()
	conn, err := net.Dial("tcp", strings.TrimPrefix(p.base, "http://"))
	p.must(err)
	defer func() { _ = conn.Close() }()
	p.must(conn.SetDeadline(time.Now().Add(patience)))
	_, err = fmt.Fprintf(conn, "POST /v1/approvals HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n", p.key)
	p.must(err)
	sent := make(chan int64, 1)
	go func() {
		chunk := fmt.Sprintf("10000\r\n%s\r\n", strings.Repeat(" ", 0x10000))
		var n int64
		for {
			if _, err := io.WriteString(conn, chunk); err != nil {
				sent <- n
				return
			}
			n += 0x10000
		}
	}()
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	p.must(err)
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Logf("the answer broke off: %v", err) // a reset, once the server has closed
	}
	if answer.StatusCode != http.StatusRequestEntityTooLarge || !strings.Contains(string(body), "invalid_request") || !answer.Close {
		t.Errorf("%d, close %v, %s", answer.StatusCode, answer.Close, body)
	}
	_ = conn.Close()
	if n := <-sent; n < 8<<20 { // whatever the limit is, nobody was cut off early
		t.Errorf("only %d bytes were taken", n)
	}
	p.unchanged("an endless body", before)
}
