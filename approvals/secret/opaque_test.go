package secret

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

// I24: a secret doesn't print, in a struct's unexported field either.
func TestSecretsDontPrint(t *testing.T) {
	t.Parallel()
	const canary = "canary-4711"
	type holder struct {
		B      Bytes
		T      Text
		hidden Bytes
		text   Text
	}
	b, s := NewBytes([]byte(canary)), NewText(canary)
	h := holder{b, s, b, s}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "b", b, "s", s, "h", h)
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "b", b, "s", s, "h", h)
	encoded, err := json.Marshal([]any{b, s, &b, &s, h, map[string]any{"b": b}})
	if err != nil {
		t.Fatal(err)
	}
	printed := []string{log.String(), string(encoded), fmt.Errorf("with %v and %v", b, s).Error(), b.GoString() + s.GoString() + b.String() + s.String()}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%p"} {
		for _, v := range []any{b, s, &b, &s, h, &h, []Bytes{b}, []Text{s}} {
			printed = append(printed, fmt.Sprintf(verb, v))
		}
		if verb != "%p" && fmt.Sprintf(verb, b)+fmt.Sprintf(verb, s) != placeholder+placeholder {
			t.Errorf("%s prints %s", verb, fmt.Sprintf(verb, b))
		}
	}
	for _, p := range printed {
		if strings.Contains(p, canary) || strings.Contains(strings.ToLower(p), "63616e617279") || strings.Contains(p, "99 97 110") {
			t.Errorf("a secret in %s", p)
		}
	}
}

func TestSecretsReveal(t *testing.T) {
	t.Parallel()
	b, s := NewBytes([]byte("abc")), NewText("abc")
	if string(b.Reveal()) != "abc" || s.Reveal() != "abc" || b.Len() != 3 || s.Len() != 3 {
		t.Error("the secret is not what went in")
	}
	if !b.Equal(NewBytes([]byte("abc"))) || b.Equal(NewBytes([]byte("abd"))) || b.Equal(Bytes{}) {
		t.Error("Bytes.Equal")
	}
	if !s.Equal(NewText("abc")) || s.Equal(NewText("abcd")) || !(Text{}).Equal(NewText("")) {
		t.Error("Text.Equal")
	}
	b.Clear()
	if string(b.Reveal()) != "\x00\x00\x00" {
		t.Error("Clear left it")
	}
	var none Bytes
	none.Clear()
	if none.Reveal() != nil || none.Len() != 0 || (Text{}).Reveal() != "" {
		t.Error("the zero values are not empty")
	}
}
