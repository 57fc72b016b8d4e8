package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// mutant is one guard, and how it is taken out: old, which must stand in the file exactly once, becomes broken.
type mutant struct {
	guard    string // its name
	holds    string // the invariants that rest on it
	file     string
	old      string
	broken   string
	packages string // of the tests
	tests    string // a regular expression: those that must see it
	short    bool   // -short
}

// result is what became of a mutant.
type result struct {
	mutant
	failed []string // tests, the innermost
	wrong  string   // why it proves nothing
}

func (r result) killed() bool { return r.wrong == "" && len(r.failed) > 0 }

func (r result) verdict() string {
	switch {
	case r.wrong != "":
		return "INVALID: " + r.wrong
	case len(r.failed) == 0:
		return "SURVIVED"
	}
	return strings.Join(r.failed, ", ")
}

const patience = 4 * time.Minute

// try breaks the guard, runs the tests, and mends it.
func (m mutant) try(ctx context.Context, tree string) result {
	r := result{mutant: m}
	path := filepath.Join(tree, filepath.FromSlash(m.file))
	text, err := os.ReadFile(path)
	if err != nil {
		r.wrong = "the file is gone"
		return r
	}
	if n := strings.Count(string(text), m.old); n != 1 {
		r.wrong = fmt.Sprintf("its text stands %d times in the file", n)
		return r
	}
	broken := strings.Replace(string(text), m.old, m.broken, 1)
	if err := os.WriteFile(path, []byte(broken), 0o600); err != nil { //nolint:gosec // in our own copy
		r.wrong = err.Error()
		return r
	}
	r.failed, err = m.test(ctx, tree)
	if err != nil {
		r.wrong = err.Error()
	}
	if err := os.WriteFile(path, text, 0o600); err != nil { //nolint:gosec // in our own copy
		r.wrong = err.Error()
	}
	return r
}

// event is one of `go test -json`.
type event struct {
	Action, Test, Output string
}

var (
	errNoCompile = errors.New("it does not compile")
	errNoTests   = errors.New("no test of that name ran")
)

// test runs the named tests and gives those that failed. A test that hangs until the time is over has failed too.
func (m mutant) test(ctx context.Context, tree string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience+time.Minute)
	defer cancel()
	args := []string{"test", "-json", "-count=1", "-vet=off", "-failfast", "-timeout=" + patience.String(), "-run", m.tests}
	if m.short {
		args = append(args, "-short")
	}
	cmd := exec.CommandContext(ctx, "go", append(args, strings.Fields(m.packages)...)...)
	cmd.Dir, cmd.Env = tree, append(os.Environ(), "HOLDPOINT_PROOF=1")
	out, err := cmd.Output()
	ran, said := 0, ""
	var failed []string
	for in := json.NewDecoder(bytes.NewReader(out)); ; {
		var e event
		if in.Decode(&e) != nil {
			break
		}
		switch {
		case e.Action == "build-fail" || e.Action == "build-output" && strings.Contains(e.Output, ".go:"):
			return nil, fmt.Errorf("%w: %s", errNoCompile, strings.TrimSpace(e.Output))
		case e.Action == "run":
			ran++
		case e.Action == "fail" && e.Test != "":
			failed = append(failed, e.Test)
		case e.Action == "output" && strings.Contains(e.Output, "panic: test timed out"):
			said = "(hangs)"
		}
	}
	if ran == 0 {
		return nil, errNoTests
	}
	if err != nil && len(failed) == 0 && said != "" {
		failed = []string{m.tests + " " + said}
	}
	return innermost(failed), nil
}

// innermost leaves out tests whose sub-tests are named.
func innermost(all []string) (out []string) {
	slices.Sort(all)
	for _, name := range all {
		if !slices.ContainsFunc(all, func(s string) bool { return strings.HasPrefix(s, name+"/") }) {
			out = append(out, name)
		}
	}
	return out
}

// row is a mutant's line in the report.
func row(r result) string {
	return fmt.Sprintf("| %s | %s | `%s` | %s |", r.guard, r.holds, r.file, cell(r))
}

// rows are the lines of a report, by their guards.
func rows(report []byte) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(string(report)) {
		if cells := strings.Split(line, " | "); len(cells) >= 4 && strings.HasPrefix(line, "| ") {
			out[strings.TrimPrefix(cells[0], "| ")] = strings.TrimSpace(line)
		}
	}
	return out
}

// report is docs/mutants.md. A guard that was never tried says so.
func report(written map[string]string) []byte {
	var b bytes.Buffer
	killed, lines := 0, make([]string, len(mutants))
	for i, m := range mutants {
		if lines[i] = written[m.guard]; lines[i] == "" {
			lines[i] = row(result{mutant: m, wrong: "not tried"})
		}
		if !strings.Contains(lines[i], "**") {
			killed++
		}
	}
	_, _ = fmt.Fprintf(&b, `# Mutants

Written by `+"`make mutants`"+` (worker/proof/mutants), not by hand. Each row takes one guard out of the product, in one place, and names the
tests that fail without it. %d of %d guards are proven this way.

| guard | holds | in | fails without it |
|---|---|---|---|
%s
`, killed, len(mutants), strings.Join(lines, "\n"))
	return b.Bytes()
}

// cell names at most three tests.
func cell(r result) string {
	const most = 3
	if !r.killed() {
		return "**" + r.verdict() + "**"
	}
	names := make([]string, 0, most)
	for _, name := range r.failed[:min(most, len(r.failed))] {
		names = append(names, "`"+strings.ReplaceAll(name, "|", "\\|")+"`")
	}
	text := strings.Join(names, ", ")
	if more := len(r.failed) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
