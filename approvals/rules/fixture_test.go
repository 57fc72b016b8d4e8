package rules_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/holdpoint/holdpoint/approvals/rules"
)

// The configuration that the shared fixtures come with must stay acceptable.
func TestSharedFixtureParses(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("HOLDPOINT_FIXTURES")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "fixtures")
	}
	data, err := os.ReadFile(filepath.Join(dir, "holdpoint.yaml"))
	if os.IsNotExist(err) {
		t.Skip("the shared fixtures aren't here; set HOLDPOINT_FIXTURES to their folder")
	}
	if err != nil {
		t.Fatal(err)
	}
	config, err := rules.Parse([]rules.File{{Name: "holdpoint.yaml", Data: data}})
	if err != nil {
		t.Fatal(err)
	}
	if got := config.Tenants["acme"]; len(got.Rules) != 5 || len(got.Tools) != 5 {
		t.Fatalf("got %d rules and %d tools, want 5 and 5", len(got.Rules), len(got.Tools))
	}
}
