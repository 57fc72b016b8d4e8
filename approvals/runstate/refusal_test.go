package runstate

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/holdpoint/holdpoint/approvals/canon"
)

const (
	canary     = "canary-4711"
	jsInner    = `/pendingAgentToolRuns/["bare","ask_research_agent"]:call_outer_1`
	jsDeepest  = jsInner + `/pendingAgentToolRuns/["bare","ask_database_agent"]:call_mid_1`
	pyInner    = `/last_processed_response/functions/0/agent_run_state`
	pyDeepest  = pyInner + `/last_processed_response/functions/0/agent_run_state`
	jsStep     = `/currentStep/data/interruptions`
	pyStep     = `/current_step/data/interruptions`
	jsNested   = "nested-paused.json"
	pyNested   = "nested-deep-paused.json"
	pyTwice    = "nested-twice-paused.json"
	singleName = "single-paused.json"
)

// githubToken is made up, and put together here so that no scanner takes it
// for real.
var githubToken = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"

func record(approved, rejected any) map[string]any {
	return map[string]any{"some_tool": map[string]any{"approved": approved, "rejected": rejected}}
}

// What makes a good state a bad one, at every level.
func TestRefusals(t *testing.T) {
	t.Parallel()
	standing, secret := &StandingError{}, &SecretError{}
	for _, tt := range []struct {
		name, format, fixture, at string
		value                     any
		want                      error
		pointer                   string // "" for at
	}{
		{"no version", FormatJS, singleName, "/$schemaVersion", gone{}, ErrVersion, ""},
		{"future version", FormatJS, singleName, "/$schemaVersion", "1.23", ErrVersion, ""},
		{"version is a number", FormatJS, singleName, "/$schemaVersion", 1.22, ErrVersion, ""},
		{"future version, nested", FormatJS, jsNested, jsDeepest + "/$schemaVersion", "2.0", ErrVersion, ""},
		{"no version, nested", FormatPython, pyNested, pyDeepest + "/$schemaVersion", gone{}, ErrVersion, ""},
		{"unknown step", FormatJS, singleName, "/currentStep/type", "next_step_new", ErrVersion, ""},
		{"step is a string", FormatPython, singleName, "/current_step", "x", ErrVersion, ""},
		{"interruptions are missing", FormatJS, singleName, jsStep, gone{}, ErrVersion, ""},
		{"interruptions are no list", FormatPython, singleName, pyStep, map[string]any{}, ErrVersion, ""},
		{"unknown interruption", FormatJS, singleName, jsStep + "/0/type", "tool_question_item", ErrVersion, ""},
		{"unknown interruption beside a known one", FormatJS, singleName, jsStep + "/1", map[string]any{"type": "x"}, ErrVersion, ""},
		{"interruption is null", FormatPython, singleName, pyStep + "/1", nil, ErrVersion, ""},
		{"hosted tool call", FormatJS, singleName, jsStep + "/0/rawItem/type", "hosted_tool_call", ErrVersion, ""},
		{"shell call", FormatPython, singleName, pyStep + "/0/raw_item/type", "shell_call", ErrVersion, ""},
		{"custom tool call", FormatPython, singleName, pyStep + "/0/raw_item/type", "custom_tool_call", ErrVersion, ""},
		{"no call id", FormatJS, singleName, jsStep + "/0/rawItem/callId", gone{}, ErrVersion, ""},
		{"no tool", FormatPython, singleName, pyStep + "/0/raw_item/name", "", ErrVersion, ""},
		{"no agent", FormatPython, singleName, pyStep + "/0/agent", nil, ErrVersion, ""},
		{"no current agent", FormatJS, singleName, "/currentAgent/name", gone{}, ErrVersion, ""},
		{"arguments are an object", FormatJS, singleName, jsStep + "/0/rawItem/arguments", map[string]any{}, ErrVersion, ""},
		{"nested run is no JSON", FormatJS, jsNested, jsInner, "{", ErrNotJSON, ""},
		{"nested run is a list", FormatJS, jsNested, jsInner, "[]", ErrVersion, ""},
		{"nested run is no string", FormatJS, jsNested, jsInner, map[string]any{}, ErrVersion, ""},
		{"nested run is a string", FormatPython, pyNested, pyInner, "{}", ErrVersion, ""},
		{"nested runs are a list", FormatJS, jsNested, "/pendingAgentToolRuns", []any{}, ErrVersion, ""},
		{"nested run has a member twice", FormatJS, jsNested, jsInner, `{"$schemaVersion":"1.22","$schemaVersion":"1.22"}`, ErrNotJSON, ""},

		{"nothing waits", FormatJS, singleName, jsStep, []any{}, ErrNothingWaits, ""},
		{"no step", FormatPython, singleName, "/current_step", nil, ErrNothingWaits, ""},
		{"nothing waits in a nested run", FormatJS, jsNested, jsInner + "/currentStep", map[string]any{"type": "next_step_run_again"}, ErrMismatch, ""},
		{"a level shows nothing of what waits below", FormatPython, pyNested, pyInner + pyStep, []any{}, ErrMismatch, ""},
		{"a level shows other arguments than below", FormatJS, jsNested, jsStep + "/0/rawItem/arguments", `{"release":"other"}`, ErrMismatch, ""},
		{"a level shows another tool than below", FormatPython, pyNested, pyInner + pyStep + "/0/raw_item/name", "other", ErrMismatch, ""},
		{"shown and run differ", FormatJS, singleName, "/lastProcessedResponse/functions/0/toolCall/arguments", `{"release":"other"}`, ErrMismatch, ""},
		{"shown and run differ by tool", FormatPython, singleName, "/last_processed_response/functions/0/tool_call/name", "other", ErrMismatch, ""},
		{"shown and run differ in a nested run", FormatJS, jsNested, jsDeepest + "/lastProcessedResponse/functions/0/toolCall/arguments", `{}`, ErrMismatch, ""},
		{"a call twice", FormatPython, pyTwice, pyStep + "/3", map[string]any{"type": "tool_approval_item", "agent": map[string]any{"name": "desk"}, "raw_item": map[string]any{
			"type": "function_call", "call_id": "call_pay", "name": "pay_invoice", "arguments": `{"invoice":"INV-78","amount":1,"currency":"EUR"}`,
		}}, ErrMismatch, ""},
		{"two nested runs of one call", FormatJS, jsNested, `/pendingAgentToolRuns/ask_research_agent:call_outer_1`, `{"$schemaVersion":"1.22"}`, ErrMismatch, ""},
		{"nested run without a call id", FormatJS, jsNested, `/pendingAgentToolRuns/["bare","x"]`, `{}`, ErrVersion, ""},

		{"sticky approval", FormatJS, singleName, "/context/approvals", record(true, []any{}), standing, "/context/approvals/some_tool/approved"},
		{"sticky rejection", FormatPython, singleName, "/context/approvals", record([]any{}, true), standing, "/context/approvals/some_tool/rejected"},
		{"approval of the call", FormatPython, singleName, "/context/approvals", record([]any{"call_past", "call_pay"}, nil), standing, "/context/approvals/some_tool/approved"},
		{"rejection of the call", FormatPython, singleName, "/context/approvals", record([]any{}, []any{"call_pay"}), standing, "/context/approvals/some_tool/rejected"},
		{"legacy function approvals", FormatJS, singleName, "/context/legacyFunctionApprovals", record(true, nil), standing, "/context/legacyFunctionApprovals/some_tool/approved"},
		{"hosted MCP, JavaScript", FormatJS, singleName, "/context/hostedMcpApprovals", record(true, nil), standing, "/context/hostedMcpApprovals/some_tool/approved"},
		{"hosted MCP, Python", FormatPython, singleName, "/context/hosted_mcp_approvals", []any{map[string]any{"decision": map[string]any{"approved": true}}}, standing, "/context/hosted_mcp_approvals/0/decision/approved"},
		{"approval invocations", FormatJS, singleName, "/context/approvalInvocations", []any{map[string]any{"approvals": record(true, nil)}}, standing, "/context/approvalInvocations/0/approvals/some_tool/approved"},
		{"an approval no SDK writes", FormatJS, singleName, "/context/approvals", record("yes", nil), standing, "/context/approvals/some_tool/approved"},
		{"a list no SDK writes", FormatJS, singleName, "/context/approvals", record([]any{map[string]any{}}, nil), standing, "/context/approvals/some_tool/approved"},
		{"sticky in a nested run, JavaScript", FormatJS, jsNested, jsDeepest + "/context/functionApprovals", []any{map[string]any{"approvals": record(true, nil)}}, standing, jsDeepest + "/context/functionApprovals/0/approvals/some_tool/approved"},
		{"sticky in a nested run, Python", FormatPython, pyNested, pyDeepest + "/context/approvals", record(true, nil), standing, pyDeepest + "/context/approvals/some_tool/approved"},
		{"the inner call approved outside", FormatJS, jsNested, "/context/approvals", record([]any{"call_inner_1"}, nil), standing, "/context/approvals/some_tool/approved"},
		{"sticky outside of context", FormatJS, singleName, "/somewhere/approvals", record(true, nil), standing, "/somewhere/approvals/some_tool/approved"},

		{"tracing key, JavaScript", FormatJS, singleName, "/trace/tracing_api_key", canary, secret, ""},
		{"tracing key, Python", FormatPython, singleName, "/trace/tracing_api_key", canary, secret, ""},
		{"tracing key in a nested run", FormatJS, jsNested, jsDeepest + "/trace/tracing_api_key", canary, secret, ""},
		{"context secret by name", FormatPython, singleName, "/context/context/db_password", canary, secret, ""},
		{"context secret in a nested run", FormatJS, jsNested, jsDeepest + "/context/context/apiToken", canary, secret, ""},
		{"context secret by look", FormatJS, singleName, "/context/context/note", "use " + githubToken, secret, ""},
		{"secret in a tool's output", FormatPython, singleName, "/generated_items/0/output", `{"session":{"accessToken":"` + canary + `"}}`, secret, "/generated_items/0/output/session/accessToken"},
		{"secret in a message", FormatJS, singleName, "/originalInput", "my token is " + githubToken, secret, ""},
		{"secret in another call's arguments", FormatJS, singleName, "/modelResponses/0/output/0/arguments", `{"release":"r","token":"` + canary + `"}`, secret, "/modelResponses/0/output/0/arguments/token"},
		{"secret in a member's name", FormatPython, singleName, "/context/context/" + githubToken, true, secret, "/context/context"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			state := edited(t, fixture(t, tt.format, tt.fixture), tt.at, tt.value)
			_, err := Read(tt.format, state)
			if err == nil {
				t.Fatal("the state was taken")
			}
			for _, hidden := range []string{canary, githubToken, "INV-77", "2026.07.24"} {
				if strings.Contains(err.Error(), hidden) {
					t.Errorf("the error quotes the state: %v", err)
				}
			}
			want := tt.pointer
			if want == "" {
				want = tt.at
			}
			var gotStanding *StandingError
			var gotSecret *SecretError
			switch {
			case errors.As(tt.want, &gotStanding):
				if !errors.As(err, &gotStanding) || gotStanding.Pointer != want {
					t.Errorf("%v, want a StandingError at %s", err, want)
				}
			case errors.As(tt.want, &gotSecret):
				if !errors.As(err, &gotSecret) || gotSecret.Pointer != want || gotSecret.Rule == "" {
					t.Errorf("%v, want a SecretError at %s", err, want)
				}
			default:
				if !errors.Is(err, tt.want) {
					t.Errorf("%v, want %v", err, tt.want)
				}
			}
		})
	}
}

// What looks like one of the above, and is fine.
func TestHarmless(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, format, fixture, at string
		value                     any
	}{
		{"past approvals", FormatJS, singleName, "/context/approvals", record([]any{"call_past"}, []any{"call_other"})},
		{"past approvals, no lists", FormatPython, singleName, "/context/approvals", record(false, nil)},
		{"approved elsewhere", FormatPython, singleName, "/context/context/loan", map[string]any{"approved": true}},
		{"an approval in a tool's text output", FormatJS, singleName, "/modelResponses/0/output/0/output", `{"approvals":[{"approved":true}]}`},
		{"counters", FormatJS, singleName, "/context/context/usage", map[string]any{"totalTokens": 7, "token": 7, "max_tokens": 5}},
		{"a cursor", FormatPython, singleName, "/context/context/nextPageToken", "CAUQAA"},
		{"a key's hash", FormatPython, singleName, "/trace/tracing_api_key_hash", strings.Repeat("0f", 32)},
		{"no tracing key", FormatJS, singleName, "/trace/tracing_api_key", nil},
		{"a masked secret", FormatPython, singleName, "/context/context/apiToken", "[REDACTED]"},
		{"interruptions in the step itself", FormatPython, singleName, "/current_step/data", gone{}},
		{"a lone surrogate in a message", FormatJS, singleName, "/originalInput", json.RawMessage(`"cut \ud83d"`)},
		{"legacy name of a nested run", FormatJS, singleName, "/pendingAgentToolRuns", map[string]any{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			base := fixture(t, tt.format, tt.fixture)
			before, err := Read(tt.format, base)
			if err != nil {
				t.Fatal(err)
			}
			if tt.name == "interruptions in the step itself" {
				var state any
				if err := json.Unmarshal(base, &state); err != nil {
					t.Fatal(err)
				}
				items, ok := canon.Get(state, pyStep)
				if !ok {
					t.Fatal("no interruptions")
				}
				base = edited(t, base, "/current_step/interruptions", items)
			}
			after, err := Read(tt.format, edited(t, base, tt.at, tt.value))
			if err != nil {
				t.Fatal(err)
			}
			if len(after.Calls) != len(before.Calls) || identity(after.Calls[0]) != identity(before.Calls[0]) {
				t.Errorf("calls %v, not %v", after.Calls, before.Calls)
			}
		})
	}
}

// Older JavaScript SDKs name a nested run TOOL:ID.
func TestLegacyNestedName(t *testing.T) {
	t.Parallel()
	var state any
	base := fixture(t, FormatJS, jsNested)
	if err := json.Unmarshal(base, &state); err != nil {
		t.Fatal(err)
	}
	run, ok := canon.Get(state, jsInner)
	if !ok {
		t.Fatal("no nested run")
	}
	got, err := Read(FormatJS, edited(t, base, "/pendingAgentToolRuns", map[string]any{"ask_research_agent:call_outer_1": run}))
	if err != nil || len(got.Calls) != 1 || strings.Join(got.Calls[0].CallPath, " ") != "call_outer_1 call_mid_1" {
		t.Errorf("%v, %v", got.Calls, err)
	}
}

// The waiting calls' own arguments are the reviewer's business: a credential in
// them does not make the state a bad one, wherever it repeats them.
func TestOwnArguments(t *testing.T) {
	t.Parallel()
	for _, arguments := range []string{`{"release":"r","token":"` + githubToken + `"}`, `not JSON: ` + githubToken, `{"token":"` + githubToken + `","token":1}`} {
		text := string(fixture(t, FormatJS, jsNested))
		original := strings.Replace(deployArguments, "production", "db-prod", 1)
		// At the deepest level the text is escaped three times.
		for range 4 {
			original, arguments = quoted(original), quoted(arguments)
			text = strings.ReplaceAll(text, original, arguments)
		}
		got, err := Read(FormatJS, []byte(text))
		if err != nil || len(got.Calls) != 1 || !strings.Contains(got.Calls[0].Arguments, githubToken) {
			t.Errorf("%v, %v", got.Calls, err)
		}
	}
	// Decoded copies too; other places are not covered by it.
	arguments := `{"amount":5.00,"token":"` + githubToken + `"}`
	given := Call{ToolCallID: "c1", Tool: "t", Arguments: arguments}
	decodedCopy := `{"messages":[{"args":{"token":"` + githubToken + `","amount":5}}]}`
	if _, err := Read(FormatOpaque, []byte(decodedCopy), given); err != nil {
		t.Errorf("a decoded copy: %v", err)
	}
	if _, err := Read(FormatOpaque, []byte(decodedCopy)); refusedAt(err) != "/messages/0/args/token" {
		t.Errorf("no call with these arguments: %v", err)
	}
	if _, err := Read(FormatOpaque, []byte(`{"args":{"token":"`+githubToken+`","amount":6}}`), given); refusedAt(err) != "/args/token" {
		t.Errorf("other arguments: %v", err)
	}
}

// quoted is s as it stands inside a JSON string.
func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b[1 : len(b)-1])
}

func TestNotJSON(t *testing.T) {
	t.Parallel()
	single := string(fixture(t, FormatJS, singleName))
	for name, state := range map[string]string{
		"empty":             "",
		"broken":            single[:len(single)/2],
		"trailing":          single + "{}",
		"a member twice":    strings.Replace(single, `"maxTurns"`, `"currentTurn":1,"maxTurns"`, 1),
		"a member twice, 2": `{"context":{"approvals":{},"approvals":{"t":{"approved":true}}}}`,
		"NaN":               `{"a":NaN}`,
	} {
		for _, format := range []string{FormatJS, FormatPython, FormatOpaque} {
			if _, err := Read(format, []byte(state)); !errors.Is(err, ErrNotJSON) || strings.Contains(err.Error(), "approved") {
				t.Errorf("%s as %s: %v", name, format, err)
			}
		}
	}
	// Broken Unicode in a call: it can't be told what was meant.
	for _, at := range []string{"/0/rawItem/callId", "/0/rawItem/name", "/0/rawItem/arguments", "/0/agent/name"} {
		state := edited(t, []byte(single), jsStep+at, json.RawMessage(`"x\ud83d"`))
		if _, err := Read(FormatJS, state); !errors.Is(err, ErrNotJSON) {
			t.Errorf("broken Unicode at %s: %v", at, err)
		}
	}
	if _, err := Read(FormatJS, []byte(`[]`)); !errors.Is(err, ErrVersion) {
		t.Errorf("a list: %v", err)
	}
}

func TestOpaque(t *testing.T) {
	t.Parallel()
	call := Call{ToolCallID: "c1", Tool: "t", Arguments: `{}`}
	packed, _ := json.Marshal(string(fixture(t, FormatJS, "single-approved-always.json")))
	for name, tt := range map[string]struct{ state, pointer string }{
		"anything":                         {`{"thread":"t1","step":3}`, ""},
		"a list":                           {`[1,"two",null]`, ""},
		"a string":                         {`"where I was"`, ""},
		"a secret":                         {`{"cfg":{"api_key":"x"}}`, "/cfg/api_key"},
		"a sticky approval":                {`{"approvals":{"t":{"approved":true}}}`, "/approvals/t/approved"},
		"a decision on the call":           {`{"approvals":{"t":{"approved":["c1"]}}}`, "/approvals/t/approved"},
		"a past decision":                  {`{"approvals":{"t":{"approved":["c0"]}}}`, ""},
		"a run state in a string":          {string(packed), `/context/functionApprovals/0/approvals/["bare","deploy_release"]/approved`},
		"a run state in a string, deeper":  {`{"state":` + string(packed) + `}`, `/state/context/functionApprovals/0/approvals/["bare","deploy_release"]/approved`},
		"a secret in a string in a string": {`{"state":"{\"a\":\"{\\\"token\\\":\\\"x\\\"}\"}"}`, "/state/a/token"},
	} {
		got, err := Read(FormatOpaque, []byte(tt.state), call)
		if at := refusedAt(err); at != tt.pointer || tt.pointer == "" && err != nil {
			t.Errorf("%s: %v at %q, want %q", name, err, at, tt.pointer)
		}
		if got.Calls != nil || got.Format != FormatOpaque {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestPointerInErrorsIsCut(t *testing.T) {
	t.Parallel()
	err := &SecretError{Pointer: "/" + strings.Repeat("a", 5000), Rule: "r"}
	if len(err.Error()) > 300 {
		t.Errorf("%d characters", len(err.Error()))
	}
}
