package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/holdpoint/holdpoint/migrations/pgtest"
)

// typed runs a command as somebody types it, in this process.
func typed(args ...string) result {
	var out, errs bytes.Buffer
	code := run(args, streams{&out, &errs})
	return result{code: code, out: out.String(), err: errs.String()}
}

// Every command has a --help that says what it is for, and an unknown flag is an error that names it.
func TestHelp(t *testing.T) {
	t.Parallel()
	var c cli
	parser, err := kong.New(&c, kong.Name("holdpoint"))
	if err != nil {
		t.Fatal(err)
	}
	leaves := parser.Model.Leaves(true)
	if len(leaves) < 15 {
		t.Fatalf("%d commands", len(leaves))
	}
	for _, leaf := range leaves {
		path := strings.Fields(leaf.Path())
		r := typed(append(path, "--help")...)
		if r.code != 0 || r.err != "" || !strings.Contains(oneLine(r.out), leaf.Help) || !strings.HasPrefix(r.out, "Usage: holdpoint "+strings.Join(path, " ")) {
			t.Errorf("%s --help: %+v", leaf.Path(), r)
		}
		if r := typed(append(path, "--no-such-flag")...); r.code == 0 || !strings.Contains(r.err, "--no-such-flag") {
			t.Errorf("%s with an unknown flag: exit %d, %s", leaf.Path(), r.code, r.err)
		}
	}
	for _, args := range [][]string{{}, {"--help"}} {
		if r := typed(args...); !strings.Contains(r.out, "dev") || (r.code == 0) != (len(args) == 1) {
			t.Errorf("%q: %+v", args, r)
		}
	}
	if r := typed("sevre"); r.code == 0 || !strings.Contains(r.err, "sevre") {
		t.Errorf("an unknown command: %+v", r)
	}
}

// oneLine undoes the wrapping of a help text.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// A wrong configuration is told with the file, the line and the key, each fault on a line of its own.
func TestConfigCheck(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const head = "tenants:\n  acme:\n    slack: {team: T0ACME, channel: C0APPROVALS}\n    admins: {users: [U0ROOT]}\n"
	for name, c := range map[string]struct{ text, want string }{
		"a misspelt key":      {head + "    rules:\n      - {name: a, whne: 'true', do: allow, execute_within: 1h}\n", `a misspelt key.yaml:6:19: tenants.acme.rules\[0\].whne: unknown key; did you mean "when"\?`},
		"a broken condition":  {head + "    rules:\n      - {name: a, when: 'tool ==', do: allow, execute_within: 1h}\n", `a broken condition.yaml:6:\d+: tenants.acme.rules\[0\].when: `},
		"a missing setting":   {head + "    rules:\n      - {name: a, when: 'true', reviewers: {users: [U0ALICE]}, execute_within: 1h}\n", `a missing setting.yaml:6:\d+: tenants.acme.rules\[0\].decide_within: is required`},
		"a wrong duration":    {head + "    rules:\n      - {name: a, when: 'true', do: allow, execute_within: soon}\n", `a wrong duration.yaml:6:\d+: tenants.acme.rules\[0\].execute_within: `},
		"an argument as host": {head + "    tools:\n      x: {kind: effect, title: x, target: \"'x'\", http: {method: POST, url: 'https://{{.host}}/x'}}\n", `an argument as host.yaml:6:\d+: tenants.acme.tools.x.http.url: `},
		"no YAML":             {"tenants: [", `no YAML.yaml:1:`},
	} {
		r := typed("config", "check", file(name+".yaml", c.text))
		if r.code != 1 || !regexp.MustCompile(c.want).MatchString(r.err) {
			t.Errorf("%s: exit %d\n%s\nwant %s", name, r.code, r.err, c.want)
		}
	}
	if r := typed("config", "check", file("two.yaml", strings.ReplaceAll(head, "acme", "two")+"    rules:\n      - {name: a, wen: 'true'}\n      - {name: b, dou: allow}\n")); strings.Count(r.err, "two.yaml:") < 2 {
		t.Errorf("two faults: %s", r.err)
	}
	if r := typed("config", "check", filepath.Join(dir, "absent.yaml")); r.code != 1 || !strings.Contains(r.err, "absent.yaml") {
		t.Errorf("an absent file: %+v", r)
	}
	good := t.TempDir()
	if r := typed("config", "check", good); r.code != 1 || !strings.Contains(r.err, "no .yaml file") {
		t.Errorf("an empty folder: %+v", r)
	}
	text, err := os.ReadFile("testdata/holdpoint.yaml")
	if err != nil {
		t.Fatal(err)
	}
	whole := strings.NewReplacer("{{TOOL}}", "http://127.0.0.1:1", "{{AGENT}}", "http://127.0.0.1:1", "{{SECRET}}", "/run/secret").Replace(string(text))
	if err := os.WriteFile(filepath.Join(good, "acme.yml"), []byte(whole), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := typed("config", "check", good); r.code != 0 || !regexp.MustCompile(`ok    acme: 7 rules, \d+ tools, 2 agents`).MatchString(r.out) {
		t.Errorf("a good folder: %+v", r)
	}
}

// A keyset is made once, for its owner's eyes, and never overwritten: what it sealed could not be read without it.
func TestKeyset(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keyset.json")
	if r := typed("keys", "keyset", "--out", path); r.code != 0 || !strings.Contains(r.out, path) {
		t.Fatalf("%+v", r)
	}
	first, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if r := typed("keys", "keyset", "--out", path); r.code != 1 || !strings.Contains(r.err, "not overwritten") {
		t.Errorf("again: %+v", r)
	}
	if same, err := os.ReadFile(path); err != nil || !bytes.Equal(first, same) {
		t.Error("the keyset changed")
	}
	if r := typed("keys", "rotate", "--keyset", path); r.code != 0 {
		t.Errorf("rotate: %+v", r)
	}
	if rotated, err := os.ReadFile(path); err != nil || bytes.Equal(first, rotated) {
		t.Error("the rotation added no key")
	}
	if r := typed("keys", "rotate", "--keyset", path+"x"); r.code != 1 {
		t.Errorf("an absent keyset is rotated: %+v", r)
	}
}

func TestMigrate(t *testing.T) {
	t.Parallel()
	dsn := "--database-url=" + pgtest.Empty(t)
	if r := typed("migrate", "status", dsn); r.code != 0 || !strings.Contains(r.out, "missing") || strings.Contains(r.out, "applied") {
		t.Errorf("an empty database: %+v", r)
	}
	for range 2 {
		if r := typed("migrate", "up", dsn); r.code != 0 || !strings.Contains(r.out, "the schema is at version") {
			t.Errorf("up: %+v", r)
		}
	}
	if r := typed("migrate", "status", dsn); r.code != 0 || strings.Contains(r.out, "missing") || !strings.Contains(r.out, "applied") {
		t.Errorf("after up: %+v", r)
	}
	if r := typed("migrate", "down", dsn); r.code == 0 || !strings.Contains(r.err, "--yes") {
		t.Errorf("down without --yes: %+v", r)
	}
	if r := typed("migrate", "down", "--yes", dsn); r.code != 0 {
		t.Errorf("down: %+v", r)
	}
	if r := typed("migrate", "status", dsn); strings.Count(r.out, "missing") != 1 {
		t.Errorf("after down: %+v", r)
	}
	if r := typed("keys", "list", dsn); r.code != 1 || !strings.Contains(r.err, "migrate up") {
		t.Errorf("a command on an old schema: %+v", r)
	}
	for _, bad := range []string{"", "postgres://nobody:hunter2@127.0.0.1:1/none?connect_timeout=1"} {
		if r := typed("migrate", "up", "--database-url="+bad); r.code != 1 || strings.Contains(r.err, "hunter2") {
			t.Errorf("%q: %+v", bad, r)
		}
	}
}

// What is missing is named, all of it at once, and nothing starts.
func TestMissingSettings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"serve"}, []string{"SLACK_BOT_TOKEN", "SLACK_SIGNING_SECRET", "SLACK_APP_ID"}},
		{[]string{"serve", "--slack-bot-token=x", "--slack-signing-secret= , ", "--slack-app-id=A1", "--database-url=x"}, []string{"SLACK_SIGNING_SECRET"}},
		{[]string{"serve", "--slack-bot-token=x", "--slack-signing-secret=x", "--slack-app-id=A1"}, []string{"HOLDPOINT_DATABASE_URL"}},
		{[]string{"serve", "--slack-bot-token=x", "--slack-signing-secret=x", "--slack-app-id=A1", "--slack-api-url=http://x/api"}, []string{"HOLDPOINT_SLACK_API_URL"}},
		{[]string{"worker"}, []string{"--redis-url"}},
		{[]string{"worker", "--redis-url=redis://x"}, []string{"SLACK_BOT_TOKEN"}},
		{[]string{"config", "show"}, []string{"HOLDPOINT_DATABASE_URL"}},
	} {
		r := typed(c.args...)
		if r.code == 0 || slices.ContainsFunc(c.want, func(w string) bool { return !strings.Contains(r.err, w) }) {
			t.Errorf("%q: exit %d, %s", c.args, r.code, r.err)
		}
	}
}

func TestManifest(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--url", "https://holdpoint.acme.example"}, {"--socket-mode"}} {
		r := typed(append([]string{"slack", "manifest"}, args...)...)
		var m struct {
			OAuth struct {
				Scopes struct{ Bot []string }
			} `json:"oauth_config"`
			Settings struct {
				SocketMode bool `json:"socket_mode_enabled"`
			}
		}
		if err := json.Unmarshal([]byte(r.out), &m); r.code != 0 || err != nil {
			t.Fatalf("%q: %v %+v", args, err, r)
		}
		if !slices.Contains(m.OAuth.Scopes.Bot, "chat:write") || m.Settings.SocketMode != (len(args) == 1) {
			t.Errorf("%q: %+v", args, m)
		}
	}
	if r := typed("slack", "manifest", "--url", "http://plain.example"); r.code != 1 || r.out != "" {
		t.Errorf("a plain address: %+v", r)
	}
}
