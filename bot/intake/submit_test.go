package intake

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdpoint/holdpoint/approvals"
)

// The contract's example reaches the core with every byte of the state and of the arguments as it was sent.
func TestSubmitKeepsWhatWasSent(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{})
	state := "{ \"$schemaVersion\":\"1.13\",\n\t\"twice\":1, \"twice\":2, \"big\":9007199254740993, \"text\":\"\\u003c\\/b>\" }"
	body := `{"run":{"id":"run_42","pause_key":"turn 3","agent_revision":"git:1f0c2d9","app_state_version":"release-agent/v1","requester":"slack:U0REQ",
	  "state":{"format":"openai-agents-python","sdk_version":"0.19.3","value":` + state + `}},
	  "calls":[{"tool_call_id":"call_1","tool":"deploy_release","arguments":"{\"release\":\"2026.07.24\", \"n\": 5.00}","agent_path":["planner","release-agent"],
	            "call_path":["outer"],"reason":"ships\nthe hotfix","expires_in":"2h","target_version":"etag-17"},
	           {"tool_call_id":"call_1","tool":"deploy_release","arguments":{ "a":1,  "a":2 }},
	           {"tool_call_id":"call_2","tool":"deploy_release","arguments":""}]}`
	r := h.do("POST", "/v1/approvals", body, "Content-Type", "application/json; charset=UTF-8")
	if r.status != http.StatusCreated {
		t.Fatalf("%d %s", r.status, r.body)
	}
	want := approvals.Intake{
		RunID: "run_42", PauseKey: "turn 3", AgentRevision: "git:1f0c2d9", AppStateVersion: "release-agent/v1", Requester: "slack:U0REQ",
		Format: "openai-agents-python", SDKVersion: "0.19.3", State: []byte(state), CallsGiven: true,
		Calls: []approvals.CallInput{
			{
				ToolCallID: "call_1", Tool: "deploy_release", Arguments: []byte(`{"release":"2026.07.24", "n": 5.00}`), AgentPath: []string{"planner", "release-agent"},
				CallPath: []string{"outer"}, Reason: "ships\nthe hotfix", ExpiresIn: 2 * time.Hour, TargetVersion: "etag-17",
			},
			{ToolCallID: "call_1", Tool: "deploy_release", Arguments: []byte(`{ "a":1,  "a":2 }`)},
			{ToolCallID: "call_2", Tool: "deploy_release", Arguments: []byte{}},
		},
	}
	if diff := cmp.Diff([]approvals.Intake{want}, h.intakes); diff != "" {
		t.Error(diff)
	}
}

// I21, at the edge: 201 first, 200 for the repeat, with the same approvals and the place where they are.
func TestSubmitAnswers(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{})
	first, again := h.do("POST", "/v1/approvals", oneCall), h.do("POST", "/v1/approvals", oneCall)
	if first.status != http.StatusCreated || again.status != http.StatusOK || first.body != again.body {
		t.Errorf("first %d %s\nagain %d %s", first.status, first.body, again.status, again.body)
	}
	var p approvals.Pause
	first.decoded(t, &p)
	if want := "/v1/approvals/" + p.Approvals[0].ApprovalID.String(); first.header.Get("Location") != want || again.header.Get("Location") != want {
		t.Errorf("Location %q and %q, want %q", first.header.Get("Location"), again.header.Get("Location"), want)
	}
	for _, exact := range []string{`"parent_id":null`, `"child_id":null`, `"call_path":[]`, `"agent_path":[]`, `"votes":[]`, `"title":"a <b>"`, `"version":1`, `"status":"pending"`} {
		if !strings.Contains(first.body, exact) {
			t.Errorf("%s is not in %s", exact, first.body)
		}
	}
	two := h.do("POST", "/v1/approvals", `{"run":{"id":"a b/ü","app_state_version":"v"},"calls":[{"tool_call_id":"1","tool":"x","arguments":{}},{"tool_call_id":"2","tool":"x","arguments":{}}]}`)
	if two.status != http.StatusCreated || two.header.Get("Location") != "/v1/approvals?run_id=a+b%2F%C3%BC" {
		t.Errorf("%d with Location %q", two.status, two.header.Get("Location"))
	}
	var page pageAnswer
	h.do("GET", two.header.Get("Location"), "").decoded(t, &page)
	if len(page.Approvals) != 2 {
		t.Errorf("the Location lists %d approvals", len(page.Approvals))
	}
}

// Calls that are left out are not the same as calls that are an empty list.
func TestSubmitCallsGiven(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, calls string
		given       bool
	}{{"absent", ``, false}, {"null", `,"calls":null`, false}, {"empty", `,"calls":[]`, true}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, Options{})
			r := h.do("POST", "/v1/approvals", `{"run":{"id":"r","app_state_version":"v","state":{"format":"opaque","value":[1]}}`+c.calls+`}`)
			if r.status != http.StatusCreated || len(h.intakes) != 1 || h.intakes[0].CallsGiven != c.given || string(h.intakes[0].State) != "[1]" {
				t.Errorf("%d %s: %+v", r.status, r.body, h.intakes)
			}
		})
	}
}

// canary stands for a secret wherever a client can put one. It must not come back in a problem.
const canary = "c4nary-9f27-s3cret"

func oneOf(members string) string {
	return `{"run":{"id":"r","app_state_version":"v"},"calls":[{` + members + `}]}`
}

// refused is every body that the reader refuses, with where it points.
var refused = []struct {
	name, body string
	status     int
	code       approvals.Code
	pointer    string
	detail     string // a part of it
}{
	{"empty", ``, 400, "invalid_request", "", "empty"},
	{"blank", ` `, 400, "invalid_request", "", "empty"},
	{"null", `null`, 400, "invalid_request", "", "JSON object"},
	{"list", `["` + canary + `"]`, 400, "invalid_request", "", "JSON object"},
	{"text", canary, 400, "invalid_request", "", ""},
	{"string", `"` + canary + `"`, 400, "invalid_request", "", "JSON object"},
	{"cut off", `{"run":{"id":"` + canary, 400, "invalid_request", "/run/id", "ends too early"},
	{"cut off after a comma", `{"run":{"id":"r",`, 400, "invalid_request", "/run", ""},
	{"trailing object", oneOf(`"tool_call_id":"1","tool":"t","arguments":{}`) + `{"x":"` + canary + `"}`, 400, "invalid_request", "", "follows"},
	{"trailing text", oneOf(`"tool_call_id":"1","tool":"t","arguments":{}`) + canary, 400, "invalid_request", "", "follows"},
	{"comment", `{/*` + canary + `*/}`, 400, "invalid_request", "", ""},
	{"byte order mark", "\ufeff{}", 400, "invalid_request", "", ""},
	{"number as a name", `{1:2}`, 400, "invalid_request", "", ""},
	{"unknown", `{"` + canary + `":1}`, 400, "invalid_request", "", "Known are: run, calls"},
	{"unknown, a plain name", `{"run":{"id":"r","colour":"` + canary + `"}}`, 400, "invalid_request", "/run/colour", "There is no such name here. Known are: id, "},
	{"unknown, in an array", `{"calls":[{"colour":1}]}`, 400, "invalid_request", "/calls/0/colour", "There is no such name here"},
	{"unknown, with digits", `{"run":{"extra_field_v2":1}}`, 400, "invalid_request", "/run/extra_field_v2", "There is no such name here"},
	{"unknown, a key for a name", `{"run":{"id":"r","ghp_16C7e42F292c6912E7710c838347Ae178B4a":1}}`, 400, "invalid_request", "/run", "Member 2 of this object has a name that is not known here"},
	{"unknown, a long name", `{"` + strings.Repeat("x", 41) + `":1}`, 400, "invalid_request", "", "Member 1 of this object"},
	{"unknown, a slip", `{"cals":[]}`, 400, "invalid_request", "/cals", `did you mean "calls"`},
	{"unknown, another case", `{"Run":{}}`, 400, "invalid_request", "/Run", `did you mean "run"`},
	{"unknown, another style", `{"run":{"agentRevision":"` + canary + `"}}`, 400, "invalid_request", "/run/agentRevision", `did you mean "agent_revision"`},
	{"unknown, another API's", oneOf(`"args":"` + canary + `"`), 400, "invalid_request", "/calls/0/args", `did you mean "arguments"`},
	{"unknown, in the state's envelope", `{"run":{"state":{"` + canary + `":1}}}`, 400, "invalid_request", "/run/state", "Known are"},
	{"unknown and long", `{"` + strings.Repeat("run", 10000) + `":1}`, 400, "invalid_request", "", "Known are"},
	{"duplicate", `{"run":{"id":"r","id":"` + canary + `"}}`, 400, "invalid_request", "/run/id", "twice"},
	{"duplicate, escaped", `{"run":{"id":"r","\u0069d":"` + canary + `"}}`, 400, "invalid_request", "/run/id", "twice"},
	{"duplicate list", `{"calls":[],"calls":[]}`, 400, "invalid_request", "/calls", "twice"},
	{"duplicate state", `{"run":{"state":{"format":"opaque","value":1,"value":2}}}`, 400, "invalid_request", "/run/state/value", "twice"},
	{"invalid UTF-8", "{\"run\":{\"id\":\"\xff\"}}", 400, "invalid_request", "/run/id", "Unicode"},
	{"lone surrogate", `{"run":{"id":"\ud800"}}`, 400, "invalid_request", "/run/id", "Unicode"},
	{"lone surrogate in arguments", oneOf(`"tool_call_id":"1","tool":"t","arguments":"\udfff"`), 400, "invalid_request", "/calls/0/arguments", "Unicode"},
	{"invalid UTF-8 in the state", "{\"run\":{\"id\":\"r\",\"app_state_version\":\"v\",\"state\":{\"format\":\"opaque\",\"value\":\"\xff\"}}}", 400, "invalid_request", "/run/state/value", "Unicode"},
	{"broken state", `{"run":{"state":{"value":{"` + canary + `":tru}}}}`, 400, "invalid_request", "/run/state/value", "not JSON"},
	{"deep state", `{"run":{"state":{"format":"opaque","value":` + strings.Repeat("[", 257) + strings.Repeat("]", 257) + `}}}`, 400, "invalid_request", "/run/state/value", "deeper"},
	{"very deep state", `{"run":{"state":{"format":"opaque","value":` + strings.Repeat("[", 50000) + strings.Repeat("]", 50000) + `}}}`, 400, "invalid_request", "/run/state/value", ""},
	{"deep arguments", oneOf(`"arguments":` + strings.Repeat(`{"a":`, 257) + `1` + strings.Repeat(`}`, 257)), 400, "invalid_request", "/calls/0/arguments", "deeper"},
	{"run as text", `{"run":"` + canary + `"}`, 400, "invalid_request", "/run", "a JSON object"},
	{"calls as object", `{"calls":{"` + canary + `":1}}`, 400, "invalid_request", "/calls", "an array"},
	{"id as number", `{"run":{"id":7}}`, 400, "invalid_request", "/run/id", "a string"},
	{"path as text", oneOf(`"agent_path":"` + canary + `"`), 400, "invalid_request", "/calls/0/agent_path", "an array"},
	{"path of numbers", oneOf(`"agent_path":["a",7]`), 400, "invalid_request", "/calls/0/agent_path/1", "a string"},
	{"arguments as list", oneOf(`"arguments":["` + canary + `"]`), 400, "invalid_request", "/calls/0/arguments", "JSON object"},
	{"arguments as number", oneOf(`"arguments":7`), 400, "invalid_request", "/calls/0/arguments", "JSON object"},

	{"no run", `{"calls":[]}`, 400, "invalid_request", "/run/id", "required"},
	{"no run id", `{"run":{"app_state_version":"v"}}`, 400, "invalid_request", "/run/id", "required"},
	{"null run id", `{"run":{"id":null,"app_state_version":"v"}}`, 400, "invalid_request", "/run/id", "required"},
	{"no version", `{"run":{"id":"r"}}`, 400, "invalid_request", "/run/app_state_version", "required"},
	{"long run id", `{"run":{"id":"` + strings.Repeat("x", 257) + `","app_state_version":"v"}}`, 400, "invalid_request", "/run/id", "256 bytes"},
	{"long in bytes", `{"run":{"id":"` + strings.Repeat("ü", 129) + `","app_state_version":"v"}}`, 400, "invalid_request", "/run/id", "256 bytes"},
	{"control character", `{"run":{"id":"a\u0007","app_state_version":"v"}}`, 400, "invalid_request", "/run/id", "control"},
	{"newline in an id", oneOf(`"tool_call_id":"a\nb","tool":"t","arguments":{}`), 400, "invalid_request", "/calls/0/tool_call_id", "control"},
	{"C1 control", oneOf(`"tool_call_id":"a\u0085","tool":"t","arguments":{}`), 400, "invalid_request", "/calls/0/tool_call_id", "control"},
	{"escape in a reason", oneOf(`"tool_call_id":"1","tool":"t","arguments":{},"reason":"\u001b[2J"`), 400, "invalid_request", "/calls/0/reason", "control"},
	{"path step", `{"run":{"id":"..","app_state_version":"v"},"calls":[{"tool_call_id":"1","tool":"t","arguments":{}}]}`, 400, "invalid_request", "/run/id", "path"},
	{"null call", `{"run":{"id":"r","app_state_version":"v"},"calls":[null]}`, 400, "invalid_request", "/calls/0/tool_call_id", "required"},
	{"no call id", oneOf(`"tool":"t","arguments":{}`), 400, "invalid_request", "/calls/0/tool_call_id", "required"},
	{"no tool", oneOf(`"tool_call_id":"1","arguments":{}`), 400, "invalid_request", "/calls/0/tool", "required"},
	{"no arguments", oneOf(`"tool_call_id":"1","tool":"t"`), 400, "invalid_request", "/calls/0/arguments", "required"},
	{"null arguments", oneOf(`"tool_call_id":"1","tool":"t","arguments":null`), 400, "invalid_request", "/calls/0/arguments", "required"},
	{"long path entry", oneOf(`"tool_call_id":"1","tool":"t","arguments":{},"call_path":["` + strings.Repeat("x", 257) + `"]`), 400, "invalid_request", "/calls/0/call_path/0", "256 bytes"},
	{"empty path entry", oneOf(`"tool_call_id":"1","tool":"t","arguments":{},"call_path":["a",""]`), 400, "invalid_request", "/calls/0/call_path/1", "required"},
	{"null path entry", oneOf(`"tool_call_id":"1","tool":"t","arguments":{},"agent_path":[null]`), 400, "invalid_request", "/calls/0/agent_path/0", "required"},
	{"long path", oneOf(`"tool_call_id":"1","tool":"t","arguments":{},"agent_path":["a"` + strings.Repeat(`,"a"`, 16) + `]`), 400, "invalid_request", "/calls/0/agent_path", "16 entries"},
	{"long reason", oneOf(`"tool_call_id":"1","tool":"t","arguments":{},"reason":"` + strings.Repeat("x", 4001) + `"`), 400, "invalid_request", "/calls/0/reason", "4000 bytes"},
	{"65 calls", `{"run":{"id":"r","app_state_version":"v"},"calls":[{"tool_call_id":"1"}` + strings.Repeat(`,{}`, 64) + `]}`, 400, "invalid_request", "/calls", "64 entries"},
	{"a flood of calls", `{"calls":[{}` + strings.Repeat(`,{}`, 5000) + `]}`, 400, "invalid_request", "/calls", "1024"},
	{"zero expires_in", oneOf(`"tool_call_id":"1","tool":"t","arguments":{},"expires_in":"0s"`), 400, "invalid_request", "/calls/0/expires_in", "above zero"},
	{"negative expires_in", oneOf(`"tool_call_id":"1","tool":"t","arguments":{},"expires_in":"-1h"`), 400, "invalid_request", "/calls/0/expires_in", "above zero"},
	{"bad expires_in", oneOf(`"tool_call_id":"1","tool":"t","arguments":{},"expires_in":"` + canary + `"`), 400, "invalid_request", "/calls/0/expires_in", "duration"},
	{"endless expires_in", oneOf(`"tool_call_id":"1","tool":"t","arguments":{},"expires_in":"9999999999h"`), 400, "invalid_request", "/calls/0/expires_in", "duration"},
	{"same call twice", `{"run":{"id":"r","app_state_version":"v"},"calls":[{"tool_call_id":"1","tool":"t","arguments":{}},{"tool_call_id":"1","tool":"t","arguments":{}}]}`, 400, "invalid_request", "/calls/1/tool_call_id", "call_path"},
	{"nothing waits", `{"run":{"id":"r","app_state_version":"v"}}`, 400, "invalid_request", "/calls", "Nothing waits"},
	{"nothing waits, no state", `{"run":{"id":"r","app_state_version":"v","state":{"format":"none"}},"calls":[]}`, 400, "invalid_request", "/calls", "Nothing waits"},
	{"format without a value", `{"run":{"id":"r","app_state_version":"v","state":{"format":"opaque"}}}`, 400, "invalid_request", "/run/state/value", "required"},
	{"format with null", `{"run":{"id":"r","app_state_version":"v","state":{"format":"opaque","value":null}}}`, 400, "invalid_request", "/run/state/value", "required"},
	{"value without a format", `{"run":{"id":"r","app_state_version":"v","state":{"value":{"a":"` + canary + `"}}}}`, 400, "invalid_request", "/run/state/format", "required"},
	{"none with a value", `{"run":{"id":"r","app_state_version":"v","state":{"format":"none","value":{"a":"` + canary + `"}}}}`, 400, "invalid_request", "/run/state/value", "no value"},
	{"large arguments", oneOf(`"tool_call_id":"1","tool":"t","arguments":"` + strings.Repeat("x", 1<<20+1) + `"`), 413, "invalid_request", "/calls/0/arguments", "1048576 bytes"},
}

func TestSubmitRefuses(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{})
	for _, c := range refused {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := h.do("POST", "/v1/approvals", c.body)
			p := r.problem(t)
			if p.Status != c.status || p.Code != c.code || p.Pointer != c.pointer || !strings.Contains(p.Detail, c.detail) {
				t.Errorf("got %s\nwant %d %s at %q with %q", r.body, c.status, c.code, c.pointer, c.detail)
			}
			if strings.Contains(r.body, canary) || len(r.body) > 700 {
				t.Errorf("the problem repeats what was sent: %s", r.body)
			}
		})
	}
	t.Cleanup(func() {
		if len(h.intakes) != 0 {
			t.Errorf("%d refused bodies reached the core", len(h.intakes))
		}
		if strings.Contains(h.log.String(), canary) {
			t.Error("the log repeats what was sent")
		}
	})
}

// What is on the edge of a limit is still taken.
func TestSubmitTakesTheLimits(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{})
	long := strings.Repeat("x", 256)
	var calls []map[string]any
	for i := range 64 {
		calls = append(calls, map[string]any{
			"tool_call_id": long[:255] + string(rune('0'+i)), "tool": long, "arguments": "{}", "reason": strings.Repeat("y", 4000),
			"agent_path": []string{long, long, long, long, long, long, long, long, long, long, long, long, long, long, long, long},
		})
	}
	calls[0]["arguments"] = strings.Repeat(" ", 1<<20)
	body, err := json.Marshal(map[string]any{
		"run":   map[string]any{"id": long, "app_state_version": long, "state": map[string]any{"format": "opaque", "value": json.RawMessage(strings.Repeat("[", 256) + strings.Repeat("]", 256))}},
		"calls": calls,
	})
	if err != nil {
		t.Fatal(err)
	}
	if r := h.do("POST", "/v1/approvals", string(body)); r.status != http.StatusCreated || len(h.intakes[0].Calls) != 64 {
		t.Errorf("%d %.300s", r.status, r.body)
	}
}

// FuzzBody: whatever is sent, the reader doesn't break; what it takes, it takes byte for byte and within the limits; what it
// refuses, it doesn't repeat.
func FuzzBody(f *testing.F) {
	f.Add([]byte(oneCall))
	for _, c := range refused {
		if len(c.body) < 4096 {
			f.Add([]byte(c.body))
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var in intakeBody
		if p := decode(body, &in); p != nil {
			text, err := encode(p)
			if err != nil || bytes.Contains(text, []byte(canary)) || len(text) > 700 || p.Status < 400 {
				t.Errorf("%s, %v", text, err)
			}
			return
		}
		out, p := in.intake(defaultMaxArguments)
		if p != nil {
			return
		}
		if !json.Valid(body) || len(out.RunID) == 0 || len(out.RunID) > 256 || len(out.Calls) > 64 || out.State != nil && !bytes.Contains(body, out.State) {
			t.Errorf("taken: %q", body)
		}
		for i, c := range out.Calls {
			if c.Arguments == nil || c.ToolCallID == "" || c.Tool == "" || c.ExpiresIn < 0 {
				t.Errorf("call %d of %q", i, body)
			}
			quoted, err := json.Marshal(string(c.Arguments))
			if err != nil || !bytes.Contains(body, c.Arguments) && !bytes.Contains(body, []byte(`\`)) {
				t.Errorf("call %d: %s is not in %q", i, quoted, body)
			}
		}
	})
}
