package runstate

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func fuzzRead(f *testing.F, format string) {
	for _, dir := range []string{FormatJS, FormatPython} {
		files, _ := filepath.Glob(filepath.Join("testdata", dir, "*.json"))
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b)
		}
	}
	f.Add([]byte(`{"$schemaVersion":"1.0"}`))
	f.Add([]byte(`{"$schemaVersion":"1.0","currentAgent":{"name":"a"},"currentStep":{"type":"next_step_interruption","data":{"interruptions":[` +
		`{"type":"tool_approval_item","agent":{"name":"a"},"rawItem":{"type":"function_call","callId":"c","name":"t","arguments":"{}"}}]}}}`))
	f.Add([]byte(`{"$schemaVersion":"1.0","current_agent":{"name":"a"},"current_step":{"type":"next_step_interruption","data":{"interruptions":[` +
		`{"type":"tool_approval_item","agent":{"name":"a"},"raw_item":{"type":"function_call","call_id":"c","name":"t","arguments":"{}"}}]}}}`))
	f.Add([]byte(`"{\"$schemaVersion\":\"1.0\",\"approvals\":{\"approved\":true}}"`))
	f.Fuzz(func(t *testing.T, state []byte) {
		got, err := Read(format, state)
		if err != nil {
			if got.Calls != nil {
				t.Fatal("calls beside an error")
			}
			if !refused(err) && !errors.Is(err, ErrNotJSON) && !errors.Is(err, ErrVersion) && !errors.Is(err, ErrMismatch) {
				t.Fatalf("an error of another kind: %v", err)
			}
			return
		}
		if !json.Valid(state) {
			t.Fatal("encoding/json doesn't take what was read")
		}
		seen := map[string]bool{}
		for _, c := range got.Calls {
			if c.ToolCallID == "" || c.Tool == "" || len(c.AgentPath) != len(c.CallPath)+1 || seen[identity(c)] {
				t.Fatalf("%v", c)
			}
			seen[identity(c)] = true
		}
		if Known(format) && len(got.Calls) == 0 {
			t.Fatal("a known format without calls")
		}
		// The same JSON, spelled otherwise.
		var value any
		if err := json.Unmarshal(state, &value); err != nil {
			t.Fatal(err)
		}
		spelled, err := json.MarshalIndent(value, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		again, err := Read(format, spelled)
		if err != nil || !cmp.Equal(got, again) {
			t.Fatalf("%v, %v; not %v", again.Calls, err, got.Calls)
		}
		// One more member makes it a state that must be refused.
		if object, ok := value.(map[string]any); ok {
			object["zApprovals"] = map[string]any{"approved": true}
			sticky, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			var standing *StandingError
			if _, err := Read(format, sticky); !errors.As(err, &standing) {
				t.Fatalf("sticky: %v", err)
			}
		}
	})
}

func FuzzReadJS(f *testing.F)     { fuzzRead(f, FormatJS) }
func FuzzReadPython(f *testing.F) { fuzzRead(f, FormatPython) }
func FuzzReadOpaque(f *testing.F) { fuzzRead(f, FormatOpaque) }

func BenchmarkRead(b *testing.B) {
	small := fixture(b, FormatJS, "single-paused.json")
	nested := fixture(b, FormatJS, "nested-paused.json")
	var large map[string]any
	if err := json.Unmarshal(small, &large); err != nil {
		b.Fatal(err)
	}
	var messages []any
	for range 400 {
		messages = append(messages, map[string]any{"role": "user", "content": strings.Repeat("Please look into the release and tell me what you think. ", 45)})
	}
	large["originalInput"] = messages
	big, err := json.Marshal(large)
	if err != nil {
		b.Fatal(err)
	}
	for name, state := range map[string][]byte{"single": small, "nested": nested, "1MiB": big} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(state)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Read(FormatJS, state); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
