package rules_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdpoint/holdpoint/approvals/rules"
)

func TestSecretsResolve(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(path, text string) string {
		t.Helper()
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("acme/KEY", "canary-acme\n")
	write("acme/EMPTY", "\n")
	write("acme/LINES", "canary-a\ncanary-b\r\n")
	write("acme/BIG", strings.Repeat("canary", 20_000))
	write("beta/KEY", "canary-beta")
	plain := write("plain", "canary-file")
	for link, to := range map[string]string{"acme/STOLEN": filepath.Join(dir, "beta", "KEY"), "acme/RELATIVE": "../beta/KEY", "acme/INSIDE": "KEY", "environ": "/proc/self/environ"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "acme", "DIR"), 0o700); err != nil {
		t.Fatal(err)
	}
	lookup := func(name string) (string, bool) {
		switch name {
		case "DEPLOY_AUTH":
			return "canary-env", true
		case "EMPTY":
			return "", true
		case "HOLDPOINT_KEYSET", "SLACK_BOT_TOKEN":
			return "canary-own", true
		}
		return "", false
	}
	sole := rules.Secrets{Dir: dir, Sole: true, LookupEnv: lookup}
	many := rules.Secrets{Dir: dir, LookupEnv: lookup}
	for _, c := range []struct {
		name    string
		secrets rules.Secrets
		tenant  string
		ref     rules.Ref
		want    string // empty: refused
	}{
		{"secret", many, "acme", rules.Ref{Scheme: rules.SecretScheme, Name: "KEY"}, "canary-acme"},
		{"the tenant's own", many, "beta", rules.Ref{Scheme: rules.SecretScheme, Name: "KEY"}, "canary-beta"},
		{"lines", many, "acme", rules.Ref{Scheme: rules.SecretScheme, Name: "LINES"}, "canary-a\ncanary-b"},
		{"link inside", many, "acme", rules.Ref{Scheme: rules.SecretScheme, Name: "INSIDE"}, "canary-acme"},
		{"link to another tenant", many, "acme", rules.Ref{Scheme: rules.SecretScheme, Name: "STOLEN"}, ""},
		{"relative link", many, "acme", rules.Ref{Scheme: rules.SecretScheme, Name: "RELATIVE"}, ""},
		{"name with a path", many, "acme", rules.Ref{Scheme: rules.SecretScheme, Name: "../beta/KEY"}, ""},
		{"tenant with a path", many, "../acme", rules.Ref{Scheme: rules.SecretScheme, Name: "KEY"}, ""},
		{"missing", many, "acme", rules.Ref{Scheme: rules.SecretScheme, Name: "NONE"}, ""},
		{"no folder of the tenant", many, "gamma", rules.Ref{Scheme: rules.SecretScheme, Name: "KEY"}, ""},
		{"no folder", rules.Secrets{Sole: true}, "acme", rules.Ref{Scheme: rules.SecretScheme, Name: "KEY"}, ""},
		{"empty", many, "acme", rules.Ref{Scheme: rules.SecretScheme, Name: "EMPTY"}, ""},
		{"too large", many, "acme", rules.Ref{Scheme: rules.SecretScheme, Name: "BIG"}, ""},
		{"a folder", many, "acme", rules.Ref{Scheme: rules.SecretScheme, Name: "DIR"}, ""},
		{"variable", sole, "acme", rules.Ref{Scheme: rules.EnvScheme, Name: "DEPLOY_AUTH"}, "canary-env"},
		{"variable with several tenants", many, "acme", rules.Ref{Scheme: rules.EnvScheme, Name: "DEPLOY_AUTH"}, ""},
		{"variable not set", sole, "acme", rules.Ref{Scheme: rules.EnvScheme, Name: "NONE"}, ""},
		{"variable empty", sole, "acme", rules.Ref{Scheme: rules.EnvScheme, Name: "EMPTY"}, ""},
		{"own variable", sole, "acme", rules.Ref{Scheme: rules.EnvScheme, Name: "HOLDPOINT_KEYSET"}, ""},
		{"Slack's variable", sole, "acme", rules.Ref{Scheme: rules.EnvScheme, Name: "SLACK_BOT_TOKEN"}, ""},
		{"file", sole, "acme", rules.Ref{Scheme: rules.FileScheme, Name: plain}, "canary-file"},
		{"file with several tenants", many, "acme", rules.Ref{Scheme: rules.FileScheme, Name: plain}, ""},
		{"file by a relative path", sole, "acme", rules.Ref{Scheme: rules.FileScheme, Name: "plain"}, ""},
		{"file missing", sole, "acme", rules.Ref{Scheme: rules.FileScheme, Name: filepath.Join(dir, "none")}, ""},
		{"link to the environment", sole, "acme", rules.Ref{Scheme: rules.FileScheme, Name: filepath.Join(dir, "environ")}, ""},
		{"literal", many, "acme", rules.Ref{Scheme: rules.LiteralScheme, Name: "holdpoint"}, "holdpoint"},
		{"nothing", sole, "acme", rules.Ref{}, ""},
	} {
		got, err := c.secrets.Resolve(c.tenant, c.ref)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: got %q, %v, want %q", c.name, got, err, c.want)
		}
		if err != nil && (!errors.Is(err, rules.ErrReference) || strings.Contains(err.Error(), "canary")) {
			t.Errorf("%s: error %v", c.name, err)
		}
	}
}

// A rotated secret counts at the next use.
func TestSecretsAreReadAtUse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "acme", "KEY")
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"one", "two"} {
		if err := os.WriteFile(path, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		var resolver rules.RefResolver = rules.Secrets{Dir: dir}
		if got, err := resolver.Resolve("acme", rules.Ref{Scheme: rules.SecretScheme, Name: "KEY"}); err != nil || got != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
}
