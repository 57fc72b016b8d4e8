package main

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// I9: the diagrams that people read are those of the core's package, which its own test holds to the code and the triggers.
func TestStatesPageHasTheCoresDiagrams(t *testing.T) {
	t.Parallel()
	read := func(path string) string {
		t.Helper()
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	var core, page [][]string
	inside := false
	for line := range strings.Lines(read("../../approvals/doc.go")) {
		text, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "//\t")
		switch {
		case !ok:
			inside = false
		case strings.TrimSpace(text) == "stateDiagram-v2":
			core, inside = append(core, nil), true
		case inside:
			core[len(core)-1] = append(core[len(core)-1], strings.TrimSpace(text))
		}
	}
	for i, block := range strings.Split(read("../../docs/states.md"), "```mermaid\n") {
		if i == 0 {
			continue
		}
		body, _, closed := strings.Cut(block, "\n```")
		lines := strings.Split(body, "\n")
		if !closed || strings.TrimSpace(lines[0]) != "stateDiagram-v2" {
			t.Fatalf("a block that is no state diagram: %s", lines[0])
		}
		var trimmed []string
		for _, l := range lines[1:] {
			trimmed = append(trimmed, strings.TrimSpace(l))
		}
		page = append(page, trimmed)
	}
	if len(core) != 2 || len(core[0]) < 20 || len(core[1]) < 10 {
		t.Fatalf("approvals/doc.go has %d diagrams", len(core))
	}
	if diff := cmp.Diff(core, page); diff != "" {
		t.Errorf("docs/states.md is not approvals/doc.go (-core +page):\n%s", diff)
	}
}
