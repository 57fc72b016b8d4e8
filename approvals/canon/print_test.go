package canon

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

// I24: no way of printing arguments shows them.
func TestArgumentsDontPrint(t *testing.T) {
	t.Parallel()
	const canary = "canary-4711"
	for _, raw := range []string{`{"card":"` + canary + `"}`, `{"card":"` + canary} {
		a := Read([]byte(raw))
		want := "[arguments " + a.Digest + "]"
		type holder struct {
			Args    Arguments
			Pointer *Arguments
		}
		h := holder{a, &a}
		var log bytes.Buffer
		logger := slog.New(slog.NewJSONHandler(&log, nil))
		logger.Info("x", "args", a, "pointer", &a, "holder", h)
		slog.New(slog.NewTextHandler(&log, nil)).Info("x", "args", a, "any", []Arguments{a})
		encoded, err := json.Marshal(map[string]any{"a": a, "p": &a, "h": h})
		if err != nil {
			t.Fatal(err)
		}
		printed := []string{log.String(), string(encoded), fmt.Errorf("wrapped: %v", a).Error(), a.GoString()}
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%X", "%T %v"} {
			args := []any{a}
			if verb == "%T %v" {
				args = []any{a, a}
			}
			printed = append(printed, fmt.Sprintf(verb, args...), fmt.Sprintf(verb, h, h), fmt.Sprintf(verb, &h, h))
			if got := fmt.Sprintf(verb, args...); !strings.Contains(got, want) {
				t.Errorf("%s printed %s", verb, got)
			}
		}
		for _, p := range printed {
			if strings.Contains(p, canary) || strings.Contains(p, "63616e617279") || strings.Contains(p, "[99 97 110") {
				t.Errorf("arguments in %s", p)
			}
		}
	}
	if got := fmt.Sprint(Arguments{}); got != "[arguments none]" {
		t.Errorf("the zero Arguments print %s", got)
	}
	if (Arguments{}).Readable() {
		t.Error("the zero Arguments are readable")
	}
}
