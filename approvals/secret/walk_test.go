package secret

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

func TestWalk(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, document string
		options        Options
		want           []Located
	}{
		{"nothing", `{"release":"2026.07.24","usage":{"total_tokens":15},"n":[1,null,true]}`, Options{}, nil},
		{"by name", `{"context":{"apiToken":"FAKE-SECRET"}}`, Options{}, []Located{{"/context/apiToken", "/context/apiToken", RuleName}}},
		{"not a string", `{"token":5,"password":null,"secret":{"kind":"x"},"api_key":true}`, Options{}, nil},
		{"inside an object of that name", `{"secret":{"password":"x"}}`, Options{}, []Located{{"/secret/password", "/secret/password", RuleName}}},
		{"array", `{"token":["a",{"b":"c"}]}`, Options{}, []Located{{"/token/0", "/token/0", RuleName}}},
		{"masked", `{"token":"","password":"***","secret":"[REDACTED]","apiKey":"<redacted>","pwd":"[redacted: 40 chars]","cookie":"•••"}`, Options{}, nil},
		{"not masked", `{"token":"[redacted: my chars]","pwd":"redacted-not"}`, Options{}, []Located{{"/pwd", "/pwd", RuleName}, {"/token", "/token", RuleName}}},
		{"by look", `{"a":[{"note":` + quote("use "+githubToken) + `}]}`, Options{}, []Located{{"/a/0/note", "/a/0/note", "github-pat"}}},
		{"in a name", `{"a":{` + quote(githubToken) + `:1,"b":2}}`, Options{}, []Located{{"/a", "/a", "github-pat"}}},
		{"escaped pointer", `{"a/b":{"~c":{"token":"x"}}}`, Options{}, []Located{{"/a~1b/~0c/token", "/a~1b/~0c/token", RuleName}}},
		{"in order", `{"z_token":"x","a_token":"x"}`, Options{}, []Located{{"/a_token", "/a_token", RuleName}, {"/z_token", "/z_token", RuleName}}},
		{"JSON in a string, not unpacked", `{"out":` + quote(`{"token":"x"}`) + `}`, Options{}, nil},
		{"JSON in a string", `{"out":` + quote(` {"token":"x"}`) + `}`, Options{Unpack: true}, []Located{{"/out/token", "/out", RuleName}}},
		{
			"JSON in JSON in a string", `{"out":` + quote(`[{"in":`+quote(`{"token":"x"}`)+`}]`) + `}`,
			Options{Unpack: true},
			[]Located{{"/out/0/in/token", "/out", RuleName}},
		},
		{"repeated names in a string", `{"out":` + quote(`{"token":"x","token":null,"token":5}`) + `}`, Options{Unpack: true}, []Located{{"/out/token", "/out", RuleName}}},
		{"broken JSON in a string", `{"out":` + quote(`{"note":"`+githubToken) + `}`, Options{Unpack: true}, []Located{{"/out", "/out", "github-pat"}}},
		{"skipped", `{"args":{"token":"x"},"token":"y"}`, Options{Skip: func(v any) bool {
			m, ok := v.(map[string]any)
			return ok && m["token"] == "x"
		}}, []Located{{"/token", "/token", RuleName}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var document any
			if err := json.Unmarshal([]byte(tt.document), &document); err != nil {
				t.Fatal(err)
			}
			got := slices.Collect(Walk(document, tt.options))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			for first := range Walk(document, tt.options) {
				if first != tt.want[0] {
					t.Errorf("the first is %+v", first)
				}
				break
			}
		})
	}
}

func TestUnpackRefuses(t *testing.T) {
	t.Parallel()
	deep := ""
	for range maxNesting + 10 {
		deep += "["
	}
	for _, s := range []string{"", "x", `"text"`, "12", `{"a":1} {"b":2}`, `{"a"`, deep} {
		if v, ok := unpack(s); ok {
			t.Errorf("%q unpacks to %v", s, v)
		}
	}
	v, ok := unpack(`{"a":"\ud800","n":1.5,"t":true}`)
	if want := map[string]any{"a": "\uFFFD", "n": 1.5, "t": true}; !ok || !cmp.Equal(v, any(want)) {
		t.Errorf("a lone surrogate stops it: %v", v)
	}
}

// A walk ends when it is told to, between the values and within a long string.
func TestWalkStops(t *testing.T) {
	t.Parallel()
	const key = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
	long := strings.Repeat("ghp_ nothing here ", 4*window/18) + key
	for what, document := range map[string]any{"values": []any{"a", "b", "c", "d", key}, "windows": long} {
		asked := 0
		for range Walk(document, Options{Stop: func() bool { asked++; return asked > 3 }}) {
			t.Errorf("%s: found after it was stopped", what)
		}
		if asked != 4 {
			t.Errorf("%s: asked %d times", what, asked)
		}
		if len(slices.Collect(Walk(document, Options{Stop: func() bool { return false }}))) != 1 {
			t.Errorf("%s: not found", what)
		}
	}
}
