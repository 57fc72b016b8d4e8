package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/holdpoint/holdpoint"

// arrows is the architecture: what each package may import of this module in
// its own code ("x/..." is x and all below it). Tests are free, but for cmd. A
// package that isn't here, or an arrow that is missing, fails TestArrows: think
// twice, then draw it.
var arrows = map[string][]string{
	// The core. Each leaf knows nothing of the others.
	"approvals/canon":      {},
	"approvals/secret":     {},
	"approvals/seal":       {},
	"approvals/rules":      {},
	"approvals/crashpoint": {},
	"approvals/runstate":   {"approvals/canon", "approvals/secret"},
	"approvals":            {"approvals/..."},
	"templates":            {},
	"migrations":           {},

	// The edges bring facts to the core and carry its consequences out.
	"bot":          {"approvals/...", "templates"},
	"bot/intake":   {"approvals/...", "templates"}, // the trail's words, the same in Slack and in the API
	"interactions": {"approvals/...", "bot", "templates"},
	"worker":       {"approvals/...", "worker/tools"}, // cards through its own one-method interface
	"worker/tools": {"approvals/..."},

	// For tests and `holdpoint dev`.
	"migrations/pgcluster": {},
	"migrations/pgtest":    {"migrations", "migrations/pgcluster"},
	"approvals/invariants": {},
	"worker/redistest":     {},
	"worker/proof/...":     {}, // its tests use everything; its commands nothing
	"bot/slacksim":         {},

	"cmd/...":      {"..."},
	"examples/...": {}, // as anyone outside would write them
}

// testOnly are imported by tests alone, whatever arrows says ("..." covers cmd).
var testOnly = []string{"approvals/invariants", "migrations/pgtest", "worker/redistest", "worker/proof"}

// users says which packages' own code may import a library; the others must not.
// cmd, which wires everything, may import any.
var users = map[string][]string{
	"cel.dev/cel-go":                        {"approvals/rules"},
	"github.com/santhosh-tekuri/jsonschema": {"approvals/rules"},
	"github.com/zricethezav/gitleaks":       {"approvals/secret"},
	"github.com/tink-crypto":                {"approvals/seal"},
	"github.com/pressly/goose":              {"migrations"},
	"github.com/jackc/pgx":                  {"approvals", "approvals/invariants", "migrations/..."},
	"github.com/fergusstrange":              {"migrations/pgcluster"},
	"github.com/slack-go/slack":             {"bot", "interactions", "templates"},
	"github.com/hibiken/asynq":              {"worker"},
	"github.com/redis/go-redis":             {"worker"},
	"github.com/alicebob/miniredis":         {},
	"github.com/danielgtaylor/huma":         {"bot/intake"},
	"github.com/alecthomas/kong":            {},
	"github.com/chromedp":                   {},
	"net/http":                              {"bot/...", "interactions", "worker/...", "migrations/pgcluster", "examples/..."},
	"testing":                               {"migrations/pgtest", "worker/redistest", "bot/slacksim"},
	"github.com/standard-webhooks":          {"worker/...", "examples/..."},
	"github.com/prometheus/client_golang":   {"approvals", "bot/...", "interactions", "worker/..."},
	"github.com/goccy/go-yaml":              {"approvals/rules"},
	"code.dny.dev/ssrf":                     {"worker/..."},
	"gocloud.dev":                           {"approvals/seal"},
	"github.com/google/go-cmp":              {},
	"pgregory.net/rapid":                    {},
	"github.com/rogpeppe/go-internal":       {},
	"go.uber.org/goleak":                    {},
}

// A pkg is what `go list -json` says of a package, as far as it is of use here.
type pkg struct {
	ImportPath, Dir                    string
	Imports, TestImports, XTestImports []string
	GoFiles, TestGoFiles, XTestGoFiles []string
}

// name is the package's folder in the repository.
func (p pkg) name() string {
	return strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
}

func list(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-e", "-json=ImportPath,Dir,Imports,TestImports,XTestImports,GoFiles,TestGoFiles,XTestGoFiles", module+"/...")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	var pkgs []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, p)
	}
	if len(pkgs) < 5 {
		t.Fatalf("go list names %d packages", len(pkgs))
	}
	return pkgs
}

// covers says whether a pattern of the tables names a package.
func covers(pattern, name string) bool {
	base, all := strings.CutSuffix(pattern, "...")
	if !all {
		return pattern == name
	}
	base = strings.TrimSuffix(base, "/")
	return base == "" || base == name || strings.HasPrefix(name, base+"/")
}

func anyCovers(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return covers(p, name) })
}

// allowed finds a package's line in arrows.
func allowed(name string) (patterns []string, drawn bool) {
	if patterns, drawn = arrows[name]; drawn {
		return patterns, true
	}
	for pattern, patterns := range arrows {
		if covers(pattern, name) {
			return patterns, true
		}
	}
	return nil, false
}

// faults lists what is wrong with one package's imports.
func faults(p pkg) (wrong []string) {
	inside, drawn := allowed(p.name())
	if !drawn {
		wrong = append(wrong, "is not in the diagram")
	}
	for _, imp := range p.Imports {
		in, ours := strings.CutPrefix(imp, module+"/")
		switch {
		case ours && (!anyCovers(inside, in) || slices.Contains(testOnly, in)):
			wrong = append(wrong, "must not import "+in)
		case !ours && !covers("cmd/...", p.name()):
			for library, by := range users {
				if (imp == library || strings.HasPrefix(imp, library+"/")) && !anyCovers(by, p.name()) {
					wrong = append(wrong, "must not import "+imp)
				}
			}
		}
	}
	for _, imp := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
		if in, ours := strings.CutPrefix(imp, module+"/"); ours && covers("cmd/...", in) && in != p.name() {
			wrong = append(wrong, "imports the program "+in)
		}
	}
	return wrong
}

// The diagram of the architecture, held against the code.
func TestArrows(t *testing.T) {
	t.Parallel()
	for _, p := range list(t) {
		for _, wrong := range faults(p) {
			t.Errorf("%s %s", p.name(), wrong)
		}
	}
}

// The test above can fail.
func TestArrowsSeesFaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		imports []string
		want    []string
	}{
		{"approvals", []string{"context", module + "/approvals/seal", "github.com/jackc/pgx/v5"}, nil},
		{"cmd/holdpoint", []string{module + "/bot/slacksim", "github.com/hibiken/asynq"}, nil},
		{"approvals", []string{module + "/bot"}, []string{"must not import bot"}},
		{"approvals/seal", []string{module + "/approvals/rules"}, []string{"must not import approvals/rules"}},
		{"approvals", []string{"net/http"}, []string{"must not import net/http"}},
		{"approvals", []string{"github.com/slack-go/slack/slackevents"}, []string{"must not import github.com/slack-go/slack/slackevents"}},
		{"cmd/holdpoint", []string{module + "/migrations/pgtest"}, []string{"must not import migrations/pgtest"}},
		{"bot", []string{module + "/bot/slacksim"}, []string{"must not import bot/slacksim"}},
		{"worker", []string{module + "/cmd/holdpoint"}, []string{"must not import cmd/holdpoint", "imports the program cmd/holdpoint"}},
		{"everything", nil, []string{"is not in the diagram"}},
	} {
		if got := faults(pkg{ImportPath: module + "/" + c.name, Imports: c.imports}); !slices.Equal(got, c.want) {
			t.Errorf("%s with %v: %q, want %q", c.name, c.imports, got, c.want)
		}
	}
}

// vagueWords say nothing about what a file holds.
var vagueWords = []string{"util", "utils", "common", "helper", "helpers", "misc", "model", "models", "manager", "managers"}

func TestFilesAreNamedByRole(t *testing.T) {
	t.Parallel()
	for _, p := range list(t) {
		for _, file := range slices.Concat([]string{path.Base(p.ImportPath)}, p.GoFiles, p.TestGoFiles, p.XTestGoFiles) {
			for word := range strings.SplitSeq(strings.TrimSuffix(strings.ToLower(file), ".go"), "_") {
				if slices.Contains(vagueWords, word) {
					t.Errorf("%s/%s: %q says nothing about what it holds", p.name(), file, word)
				}
			}
		}
	}
}

// parse reads the files of a package that are chosen.
func parse(t *testing.T, fset *token.FileSet, p pkg, files []string) map[string]*ast.File {
	t.Helper()
	parsed := make(map[string]*ast.File, len(files))
	for _, name := range files {
		f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // removed since it was listed
			t.Errorf("%s/%s: %v", p.name(), name, err)
		}
		if f != nil {
			parsed[p.name()+"/"+name] = f
		}
	}
	return parsed
}

var (
	setStatus = regexp.MustCompile(`(?i)\bSET\s+status\b`)
	// Also where status isn't the first column that is set.
	updateStatus = regexp.MustCompile(`(?is)\bUPDATE\s+(?:ONLY\s+)?approval_request\b(?:[^;]*?\s)SET\b(?:(?:[^;]*?),)?\s*status\s*=`)
)

// swaps finds the string literals of a file that change an approval's status.
func swaps(f *ast.File) (n int) {
	ast.Inspect(f, func(node ast.Node) bool {
		if lit, ok := node.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if text, err := strconv.Unquote(lit.Value); err == nil && (setStatus.MatchString(text) || updateStatus.MatchString(text)) {
				n++
			}
		}
		return true
	})
	return n
}

// One door (I25): a status is changed in one place, which also writes the audit
// and the outbox.
func TestOneDoor(t *testing.T) {
	t.Parallel()
	fset := token.NewFileSet()
	var found []string
	for _, p := range list(t) {
		for name, f := range parse(t, fset, p, p.GoFiles) {
			for range swaps(f) {
				found = append(found, name)
			}
		}
	}
	if want := []string{"approvals/transition.go"}; !slices.Equal(found, want) {
		t.Errorf("a status is set in %v, want %v alone", found, want)
	}
}

func TestOneDoorSeesSwaps(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string]int{
		"UPDATE approval_request SET status = $1":                                         1,
		"update approval_request r\nset\n status = $1":                                    1,
		"UPDATE approval_request r SET version = version + 1, status = $1":                1,
		"INSERT INTO x VALUES (1) ON CONFLICT DO UPDATE SET status = 'x'":                 1,
		"SELECT status FROM approval_request WHERE status = $1":                           0,
		"UPDATE approval_request SET reason_code = $1 WHERE approval_id = $2":             0,
		"UPDATE approval_request SET snapshot = NULL WHERE tenant_id = $1 AND status = 1": 0,
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\n// SET status in a comment\nconst q = "+strconv.Quote(sql), 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := swaps(f); got != want {
			t.Errorf("%q: %d, want %d", sql, got, want)
		}
	}
}

// sleeps finds the calls of time.Sleep, but for those in a synctest bubble,
// where time is a fake that waits for nothing.
func sleeps(f *ast.File) (at []token.Pos) {
	called := func(call *ast.CallExpr, pkg, fun string) bool {
		sel, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || sel.Sel.Name != fun {
			return false
		}
		id, ok := sel.X.(*ast.Ident)
		return ok && id.Name == pkg
	}
	ast.Inspect(f, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok {
			return true
		}
		if called(call, "time", "Sleep") {
			at = append(at, call.Pos())
		}
		return !called(call, "synctest", "Test")
	})
	return at
}

func TestTestsDoNotSleep(t *testing.T) {
	t.Parallel()
	fset := token.NewFileSet()
	for _, p := range list(t) {
		for _, f := range parse(t, fset, p, slices.Concat(p.TestGoFiles, p.XTestGoFiles)) {
			for _, pos := range sleeps(f) {
				t.Errorf("%s: time.Sleep in a test: wait for a condition, or use testing/synctest", fset.Position(pos))
			}
		}
	}
	const source = `package x
func a() { time.Sleep(1) }
func b(t *testing.T) { synctest.Test(t, func(*testing.T) { time.Sleep(1) }) }`
	f, err := parser.ParseFile(fset, "x.go", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(sleeps(f)); n != 1 {
		t.Errorf("%d sleeps in the sample, want 1", n)
	}
}
