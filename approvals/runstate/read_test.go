package runstate

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	deployArguments = `{"release":"2026.07.24","environment":"production","idempotency_key":"tenant-a:release:2026.07.24"}`
	invoice         = `{"invoice":"INV-77","amount":1250.50,"currency":"EUR"}`
)

func agentDeploy(release string) string {
	return fmt.Sprintf(`{"release":%q,"environment":"p","idempotency_key":"k"}`, release)
}

var deploy = Call{ToolCallID: "call_deploy_1", Tool: "deploy_release", Arguments: deployArguments, AgentPath: []string{"release-agent"}}

// Every fixture: what waits in it, or why it is refused.
func TestFixtures(t *testing.T) {
	t.Parallel()
	tests := []struct {
		format, name, schema string
		calls                []Call
		err                  error
		pointer              string // of a StandingError or SecretError
	}{
		{FormatJS, "single-paused.json", "1.22", []Call{deploy}, nil, ""},
		{FormatJS, "single-paused.sdk-0.19.0.json", "1.21", []Call{deploy}, nil, ""},
		{FormatJS, "single-paused.sdk-0.13.5.json", "1.13", []Call{deploy}, nil, ""},
		{FormatJS, "single-paused.sdk-0.3.9.json", "1.1", []Call{deploy}, nil, ""},
		{FormatJS, "stream-session-paused.json", "1.22", []Call{deploy}, nil, ""},
		{FormatJS, "multi-paused.json", "1.22", []Call{
			{"call_deploy_1", "deploy_release", deployArguments, []string{"ops-agent"}, nil},
			{"call_refund_1", "issue_refund", `{"order":"ORD-18472","amount":742.18,"currency":"USD"}`, []string{"ops-agent"}, nil},
		}, nil, ""},
		{FormatJS, "nested-paused.json", "1.22", []Call{{
			"call_inner_1", "deploy_release", strings.Replace(deployArguments, "production", "db-prod", 1),
			[]string{"outer-agent", "research-agent", "database-agent"},
			[]string{"call_outer_1", "call_mid_1"},
		}}, nil, ""},
		{FormatJS, "nested-parallel-paused.json", "1.22", []Call{
			{"call_same", "deploy_release", agentDeploy("agent-a"), []string{"outer", "agent-a"}, []string{"o1"}},
			{"call_b", "deploy_release", agentDeploy("agent-b"), []string{"outer", "agent-b"}, []string{"o2"}},
		}, nil, ""},
		{FormatJS, "nested-parallel-same-callid-paused.json", "1.22", []Call{
			{"call_same", "deploy_release", agentDeploy("agent-a"), []string{"outer", "agent-a"}, []string{"o1"}},
			{"call_same", "deploy_release", agentDeploy("agent-b"), []string{"outer", "agent-b"}, []string{"o2"}},
		}, nil, ""},
		{FormatJS, "nestedgate-paused-1.json", "1.22", []Call{
			{"call_outer_1", "ask_database_agent", `{"input":"export"}`, []string{"outer-agent"}, nil},
		}, nil, ""},
		{FormatJS, "schema-mismatch-paused.json", "1.22", []Call{
			{"call_bad_2", "deploy_release", `{"release":1,"surprise":true}`, []string{"bad-agent"}, nil},
		}, nil, ""},
		{FormatJS, "duplicate-keys-paused.json", "1.22", []Call{
			{"call_dup_1", "issue_refund", `{"order":"ORD-1","amount":5,"currency":"USD","amount":5000}`, []string{"bad-agent"}, nil},
		}, nil, ""},
		{FormatJS, "malformed-args-conditional-paused.json", "1.22", []Call{
			{"call_bad_3", "issue_refund", `{"order": "ORD-1", "amount": 5`, []string{"bad-agent"}, nil},
		}, nil, ""},
		{FormatJS, "malformed-args-not-paused-completed.json", "", nil, ErrNothingWaits, ""},
		{FormatJS, "single-completed.json", "", nil, ErrNothingWaits, ""},
		{FormatJS, "single-rejected-completed.json", "", nil, ErrNothingWaits, ""},
		{FormatJS, "single-approved.json", "", nil, nil, `/context/functionApprovals/0/approvals/["bare","deploy_release"]/approved`},
		{FormatJS, "single-approved.sdk-0.19.0.json", "", nil, nil, `/context/functionApprovals/0/approvals/["bare","deploy_release"]/approved`},
		{FormatJS, "single-approved.sdk-0.13.5.json", "", nil, nil, `/context/approvals/deploy_release/approved`},
		{FormatJS, "single-approved.sdk-0.3.9.json", "", nil, nil, `/context/approvals/deploy_release/approved`},
		{FormatJS, "single-approved-always.json", "", nil, nil, `/context/functionApprovals/0/approvals/["bare","deploy_release"]/approved`},
		{FormatJS, "single-rejected.json", "", nil, nil, `/context/functionApprovals/0/approvals/["bare","deploy_release"]/rejected`},
		{FormatJS, "single-rejected-nomsg.json", "", nil, nil, `/context/functionApprovals/0/approvals/["bare","deploy_release"]/rejected`},
		{FormatJS, "multi-partial.json", "", nil, nil, `/context/functionApprovals/0/approvals/["bare","deploy_release"]/approved`},
		{FormatJS, "multi-all-decided.json", "", nil, nil, `/context/functionApprovals/0/approvals/["bare","issue_refund"]/rejected`},
		{FormatJS, "nested-approved.json", "", nil, nil, `/context/functionApprovals/0/approvals/["bare","deploy_release"]/approved`},
		{FormatJS, "nestedgate-approved-1.json", "", nil, nil, `/context/functionApprovals/0/approvals/["bare","ask_database_agent"]/approved`},
		{FormatJS, "single-paused-with-context-secret.json", "", nil, nil, `/context/context/apiToken`},

		{FormatPython, "single-paused.json", "1.17", []Call{{"call_pay", "pay_invoice", invoice, []string{"billing"}, nil}}, nil, ""},
		{FormatPython, "namespace-paused.json", "1.13", []Call{
			{"call_pay", "pay_invoice", invoice, []string{"billing"}, nil},
			{"call_note", "mail.send", `{"to":"desk@acme.example"}`, []string{"billing"}, nil},
		}, nil, ""},
		{FormatPython, "nested-deep-paused.json", "1.15", []Call{
			{"call_pay", "pay_invoice", invoice, []string{"desk", "clerk", "ledger"}, []string{"outer_1", "mid_1"}},
		}, nil, ""},
		// One sub-agent called twice: only the call path tells them apart.
		{FormatPython, "nested-twice-paused.json", "1.15", []Call{
			{"call_pay", "pay_invoice", invoice, []string{"desk", "ledger"}, []string{"outer_1"}},
			{"call_pay", "pay_invoice", `{"invoice":"INV-78","amount":1,"currency":"EUR"}`, []string{"desk"}, nil},
			{"call_pay", "pay_invoice", invoice, []string{"desk", "ledger"}, []string{"outer_2"}},
		}, nil, ""},
	}
	covered := map[string]bool{}
	for _, tt := range tests {
		covered[filepath.Join("testdata", tt.format, tt.name)] = true
		t.Run(tt.format+"/"+tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := Read(tt.format, fixture(t, tt.format, tt.name))
			switch {
			case tt.pointer != "":
				if at := refusedAt(err); at != tt.pointer {
					t.Fatalf("refused at %q (%v), want %q", at, err, tt.pointer)
				}
			case !errors.Is(err, tt.err):
				t.Fatalf("%v, want %v", err, tt.err)
			}
			if tt.calls == nil {
				if err == nil || got.Calls != nil {
					t.Fatalf("%v, %v", got.Calls, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := Reading{Format: tt.format, SchemaVersion: tt.schema, Calls: tt.calls}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	for _, format := range []string{FormatJS, FormatPython} {
		files, err := filepath.Glob(filepath.Join("testdata", format, "*.json"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no fixtures of %s: %v", format, err)
		}
		for _, file := range files {
			if !covered[file] {
				t.Errorf("%s is in no test", file)
			}
		}
	}
}

// refusedAt is the pointer of a StandingError or SecretError.
func refusedAt(err error) string {
	var standing *StandingError
	var secret *SecretError
	switch {
	case errors.As(err, &standing):
		return standing.Pointer
	case errors.As(err, &secret):
		return secret.Pointer
	}
	return ""
}

// corpus is where the states of the Python SDK's own corpus are, if they are
// there; they are not part of this repository.
func corpus(t *testing.T) string {
	t.Helper()
	root := os.Getenv("HOLDPOINT_FIXTURES")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared", "fixtures")
	}
	if _, err := os.Stat(root); err != nil {
		t.Skip("the fixtures are not here; set HOLDPOINT_FIXTURES to their folder")
	}
	return root
}

// The Python SDK's compatibility corpus: all versions are read, nothing is a
// false positive, and what must be refused is.
func TestPythonCorpus(t *testing.T) {
	t.Parallel()
	root := filepath.Join(corpus(t), FormatPython)
	files, err := filepath.Glob(filepath.Join(root, "*", "*.json"))
	if err != nil || len(files) < 30 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	special := map[string]func(Reading, error) bool{
		"resume/v1_13_pending_tool_approval.json": func(r Reading, err error) bool {
			return err == nil && cmp.Equal(r.Calls, []Call{{
				ToolCallID: "historical-approval-1", Tool: "historical_approval", Arguments: `{"account_id":"account-1"}`, AgentPath: []string{"compat-agent"},
			}})
		},
		"negative/future_version.json":          func(_ Reading, err error) bool { return errors.Is(err, ErrVersion) },
		"negative/missing_version.json":         func(_ Reading, err error) bool { return errors.Is(err, ErrVersion) },
		"negative/malformed_current_agent.json": func(_ Reading, err error) bool { return errors.Is(err, ErrVersion) },
		"features/v1_14_hosted_mcp_approval_scope.json": func(_ Reading, err error) bool {
			return refusedAt(err) == "/context/hosted_mcp_approvals/0/decision/approved"
		},
		"security/v1_13_legacy_mount_credentials.json": func(_ Reading, err error) bool {
			return strings.HasPrefix(refusedAt(err), "/sandbox/session_state/manifest/entries/remote/")
		},
	}
	for _, file := range files {
		name, _ := filepath.Rel(root, file)
		t.Run(filepath.ToSlash(name), func(t *testing.T) {
			t.Parallel()
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			reading, err := Read(FormatPython, b)
			if err != nil && strings.Contains(err.Error(), "SENTINEL") {
				t.Errorf("the error quotes the state: %v", err)
			}
			check := special[filepath.ToSlash(name)]
			if check == nil {
				check = func(_ Reading, err error) bool { return errors.Is(err, ErrNothingWaits) }
			}
			if !check(reading, err) {
				t.Errorf("%v, %v", reading.Calls, err)
			}
		})
	}
}

// States of other frameworks are opaque, and nothing in them is a secret.
func TestOpaqueCorpus(t *testing.T) {
	t.Parallel()
	root := corpus(t)
	for _, dir := range []string{"langchain-js", "vercel-ai", "other"} {
		files, err := filepath.Glob(filepath.Join(root, dir, "*.json"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", dir, len(files), err)
		}
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Read(FormatOpaque, b); err != nil {
				t.Errorf("%s: %v", filepath.Base(file), err)
			}
		}
	}
}

func TestFormats(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff([]string{"openai-agents-python", "openai-agents-js", "opaque", "none"}, Formats()); diff != "" {
		t.Error(diff)
	}
	for _, format := range Formats() {
		known := format == FormatJS || format == FormatPython
		if Known(format) != known || (len(Schemas(format)) > 0) != known {
			t.Errorf("%s: known %t, schemas %q", format, Known(format), Schemas(format))
		}
	}
	python := Schemas(FormatPython)
	if python[0] != "1.0" || python[len(python)-1] != "1.17" || len(python) != 18 {
		t.Errorf("%q", python)
	}
	python[0] = "changed"
	if slices.Contains(Schemas(FormatPython), "changed") {
		t.Error("Schemas gives its own slice away")
	}
	// The same number means different things: 1.22 is no Python schema.
	if _, err := Read(FormatPython, fixture(t, FormatJS, "single-paused.json")); !errors.Is(err, ErrVersion) {
		t.Errorf("a JavaScript state as Python: %v", err)
	}
	if _, err := Read(FormatJS, fixture(t, FormatPython, "single-paused.json")); !errors.Is(err, ErrVersion) {
		t.Errorf("a Python state as JavaScript: %v", err)
	}
	for _, format := range []string{"", "OPAQUE", "openai-agents"} {
		if _, err := Read(format, []byte(`{}`)); !errors.Is(err, ErrVersion) || Known(format) {
			t.Errorf("%q: %v", format, err)
		}
	}
}

func TestNone(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"", "null"} {
		if r, err := Read(FormatNone, []byte(state)); err != nil || r.Format != FormatNone || r.Calls != nil {
			t.Errorf("%q: %v, %v", state, r, err)
		}
	}
	if _, err := Read(FormatNone, []byte(`{}`)); !errors.Is(err, ErrMismatch) {
		t.Errorf("a state that should not be there: %v", err)
	}
}

func TestCallDoesntPrintArguments(t *testing.T) {
	t.Parallel()
	c := Call{ToolCallID: "call_1", Tool: "t", Arguments: "canary-4711", CallPath: []string{"o"}}
	r := Reading{Format: FormatJS, Calls: []Call{c}}
	for _, p := range []string{fmt.Sprint(c), fmt.Sprintf("%+v", c), fmt.Sprintf("%#v", c), fmt.Sprintf("%+v", r), fmt.Sprintf("%#v", []Call{c}), fmt.Sprintf("%q", c)} {
		if strings.Contains(p, "canary") {
			t.Errorf("arguments in %s", p)
		}
	}
}

// refused says whether err is a StandingError or SecretError.
func refused(err error) bool {
	return errors.As(err, new(*StandingError)) || errors.As(err, new(*SecretError))
}
