package intake

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdpoint/holdpoint/approvals"
)

// approved is a submitted call whose arguments are as awkward as they may be, and approved.
func (h *house) approved(arguments string) approvals.ID {
	h.t.Helper()
	quoted, err := json.Marshal(arguments)
	if err != nil {
		h.t.Fatal(err)
	}
	r := h.do("POST", "/v1/approvals", `{"run":{"id":"r","app_state_version":"v"},"calls":[{"tool_call_id":"c","tool":"t","arguments":`+string(quoted)+`}]}`)
	var p approvals.Pause
	r.decoded(h.t, &p)
	h.set(p.Approvals[0].ApprovalID, func(v *approvals.View) { v.Status = approvals.Approved })
	return p.Approvals[0].ApprovalID
}

// The story of an agent-run call: claim, renew, complete; then everybody who claims is given the stored result.
func TestOperation(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{})
	arguments := "{ \"amount\": 5.00,\n \"note\":\"<b>&\u2028\\u003c\" }"
	id := h.approved(arguments)
	at := "/v1/operations/" + id.String()

	r := h.do("POST", at+"/claim", `{"attempt_id":"try-1","agent_revision":"git:1","app_state_version":"release-agent/v1"}`)
	var c struct {
		State          string `json:"state"`
		LeaseToken     string `json:"lease_token"`
		Epoch          int64  `json:"epoch"`
		OperationKey   string `json:"operation_key"`
		Arguments      string `json:"arguments"`
		LeaseExpiresAt string `json:"lease_expires_at"`
	}
	r.decoded(t, &c)
	if r.status != 200 || c.State != "executing" || c.LeaseToken == "" || c.Epoch != 1 || c.OperationKey != operation || c.LeaseExpiresAt != "2026-07-24T12:00:00Z" || strings.Contains(r.body, "result") {
		t.Errorf("%d %s", r.status, r.body)
	}
	if c.Arguments != arguments {
		t.Errorf("I1: claimed %q, approved %q", c.Arguments, arguments)
	}
	if diff := cmp.Diff(approvals.AgentClaim{AttemptID: "try-1", AgentRevision: "git:1", AppStateVersion: "release-agent/v1"}, h.claimed); diff != "" {
		t.Error(diff)
	}
	if p := h.do("POST", at+"/claim", "").problem(t); p.Code != approvals.CodeNotExecutable || p.Status != 409 || p.State != "executing" {
		t.Errorf("a second claim: %+v", p)
	}
	lease := `"lease_token":"` + c.LeaseToken + `","epoch":1`
	if r = h.do("POST", at+"/renew", "{"+lease+"}"); r.status != 200 || r.body != `{"epoch":1,"lease_expires_at":"2026-07-24T12:01:00Z"}`+"\n" {
		t.Errorf("%d %s", r.status, r.body)
	}
	// I16: a stale holder is told so, and nothing is recorded.
	for _, verb := range []string{"renew", "complete", "fail"} {
		for _, stale := range []string{`{"lease_token":"` + c.LeaseToken + `","epoch":2}`, `{"lease_token":"other","epoch":1}`} {
			if p := h.do("POST", at+"/"+verb, stale).problem(t); p.Code != approvals.CodeConflict || p.Status != 409 {
				t.Errorf("%s %s: %+v", verb, stale, p)
			}
		}
	}
	result := `{"id": 9007199254740993, "n": 5.00, "n": 6, "t": "<&>"}`
	if r = h.do("POST", at+"/complete", "{"+lease+`,"result":`+result+"}"); r.status != 200 || !strings.Contains(r.body, `"status":"completed"`) {
		t.Errorf("%d %s", r.status, r.body)
	}
	if got := string(h.views[id].Result); got != result {
		t.Errorf("stored %s", got)
	}
	r = h.do("POST", at+"/claim", "")
	var done struct {
		State     string          `json:"state"`
		Arguments string          `json:"arguments"`
		Result    json.RawMessage `json:"result"`
	}
	r.decoded(t, &done)
	if done.State != "succeeded" || done.Arguments != arguments || string(done.Result) != `{"id":9007199254740993,"n":5.00,"n":6,"t":"<&>"}` || strings.Contains(r.body, "lease") {
		t.Errorf("%d %s", r.status, r.body)
	}
}

func TestOperationWithoutResult(t *testing.T) {
	t.Parallel()
	for _, result := range []string{"", `,"result":null`} {
		h := newHouse(t, Options{})
		id := h.approved("{}")
		at := "/v1/operations/" + id.String()
		var c claimAnswer
		h.do("POST", at+"/claim", "{}").decoded(t, &c)
		if r := h.do("POST", at+"/complete", `{"lease_token":"`+c.LeaseToken+`","epoch":1`+result+`}`); r.status != 200 || string(h.views[id].Result) != "null" {
			t.Errorf("%d %s", r.status, r.body)
		}
		if r := h.do("POST", at+"/claim", ""); r.body != `{"state":"succeeded","arguments":"{}","result":null}`+"\n" {
			t.Error(r.body)
		}
	}
}

func TestClaimOfAnAnswer(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{})
	id := h.approved("{}")
	h.set(id, func(v *approvals.View) { v.Status, v.Result = approvals.Responded, json.RawMessage(`"blue"`) })
	if r := h.do("POST", "/v1/operations/"+id.String()+"/claim", ""); r.status != 200 || r.body != `{"state":"responded","result":"blue"}`+"\n" {
		t.Errorf("%d %s", r.status, r.body)
	}
}

// I1: bytes that JSON can't carry unchanged, or none, are not told at all.
func TestClaimTellsExactlyOrNothing(t *testing.T) {
	t.Parallel()
	for name, arguments := range map[string][]byte{"not UTF-8": []byte("{\"a\":\"\xff\"}"), "empty": {}, "nil": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, Options{})
			id := h.approved("{}")
			h.args[id] = arguments
			if p := h.do("POST", "/v1/operations/"+id.String()+"/claim", "").problem(t); p.Code != codeInternal {
				t.Errorf("%+v", p)
			}
		})
	}
}

func TestFail(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		body string
		want approvals.AgentFailure
	}{
		{``, approvals.AgentFailure{}},
		{`,"retryable":true,"error":"503 from\nthe deployer"`, approvals.AgentFailure{Retryable: true, Error: "503 from\nthe deployer"}},
		{`,"uncertain":true`, approvals.AgentFailure{Uncertain: true}},
		{`,"uncertain":true,"retryable":true`, approvals.AgentFailure{Uncertain: true}}, // I18: what may have happened is not retryable
		{`,"uncertain":false,"retryable":null`, approvals.AgentFailure{}},
	} {
		h := newHouse(t, Options{})
		at := "/v1/operations/" + h.approved("{}").String()
		var claimed claimAnswer
		h.do("POST", at+"/claim", "").decoded(t, &claimed)
		r := h.do("POST", at+"/fail", `{"lease_token":"`+claimed.LeaseToken+`","epoch":1`+c.body+`}`)
		if diff := cmp.Diff(c.want, h.failure); diff != "" || r.status != 200 || !strings.Contains(r.body, `"status":"failed"`) {
			t.Errorf("%s: %d %s\n%s", c.body, r.status, r.body, diff)
		}
	}
}

func TestOperationsRefuse(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{})
	at := "/v1/operations/" + h.approved("{}").String()
	for _, c := range []struct {
		verb, body string
		status     int
		pointer    string
	}{
		{"claim", `{"attempt":"x"}`, 400, "/attempt"},
		{"claim", `{"attempt_id":"` + strings.Repeat("x", 257) + `"}`, 400, "/attempt_id"},
		{"claim", `[]`, 400, ""},
		{"claim", `null`, 400, ""},
		{"claim", ` `, 400, ""},
		{"renew", ``, 400, ""},
		{"renew", `{}`, 400, "/lease_token"},
		{"renew", `{"lease_token":"t"}`, 400, "/epoch"},
		{"renew", `{"lease_token":"t","epoch":0}`, 400, "/epoch"},
		{"renew", `{"lease_token":"t","epoch":1,"result":1}`, 400, "/result"},
		{"renew", `{"lease_token":"t","epoch":1,"epoch":2}`, 400, "/epoch"},
		{"complete", `{"lease_token":"t","epoch":1,"output":1}`, 400, "/output"},
		{"complete", `{"epoch":1,"result":1}`, 400, "/lease_token"},
		{"complete", `{"lease_token":"t","epoch":1,"result":"` + strings.Repeat("x", 1<<20) + `"}`, 413, "/result"},
		{"complete", `{"lease_token":"t","epoch":1,"result":"` + strings.Repeat("x", 1<<21) + `"}`, 413, ""},
		{"complete", `{"lease_token":"t","epoch":1,"result":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `}`, 400, "/result"},
		{"fail", `{"lease_token":"t","epoch":1,"error":"` + strings.Repeat("x", 4001) + `"}`, 400, "/error"},
		{"fail", `{"lease_token":"t","epoch":1,"retryable":"yes"}`, 400, "/retryable"},
	} {
		if p := h.do("POST", at+"/"+c.verb, c.body).problem(t); p.Status != c.status || p.Code != approvals.CodeInvalidRequest || p.Pointer != c.pointer {
			t.Errorf("%s %.80s: %+v", c.verb, c.body, p)
		}
	}
}
