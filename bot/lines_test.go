package bot

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/holdpoint/holdpoint/approvals"
)

// The lines of a card name its call as every other line does; nothing that the card shows is in them.
func TestCardLinesNameTheCall(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.request()
	w.store.change(id, func(f *approvals.CardFacts) {
		f.RunID, f.ToolCallID, f.OperationKey = "run_42", "call_1", "op_1"
	})
	var log bytes.Buffer
	s := w.syncer(SyncOptions{Log: slog.New(slog.NewJSONHandler(&log, nil))})
	must(t, s.Sync(t.Context(), id))
	w.store.change(id, func(f *approvals.CardFacts) { f.Status = approvals.Approved })
	must(t, s.Sync(t.Context(), id))
	var seen []string
	for d := json.NewDecoder(bytes.NewReader(log.Bytes())); d.More(); {
		var l map[string]any
		must(t, d.Decode(&l))
		msg, _ := l["msg"].(string)
		seen = append(seen, msg)
		if l["approval"] != id.String() || l["run"] != "run_42" || l["tool_call"] != "call_1" || l["operation"] != "op_1" {
			t.Errorf("%v", l)
		}
	}
	if len(seen) != 2 || seen[0] != "a card was posted" || seen[1] != "a card was updated" {
		t.Errorf("%q", seen)
	}
	if bytes.Contains(log.Bytes(), []byte("2026.07.24")) {
		t.Error("an argument is in the log")
	}
}
