package proof

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The crash points in the code, those in the mechanism's documentation and those of the matrix are the same: none is left out, and
// none is proven that is not there.
func TestEveryCrashPointIsACell(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	var code, cases []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && d.Name() != ".." || d.Name() == "node_modules"):
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		code = append(code, pointsIn(f)...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "approvals", "crashpoint", "doc.go"))
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, m := range regexp.MustCompile(`(?m)^//\t([a-z]+\.[a-z]+) `).FindAllStringSubmatch(string(text), -1) {
		told = append(told, m[1])
	}
	for _, p := range points {
		cases = append(cases, p.name)
	}
	slices.Sort(code)
	slices.Sort(told)
	slices.Sort(cases)
	if len(code) < 10 || !slices.Equal(code, told) || !slices.Equal(code, cases) {
		t.Errorf("the code has %q,\nits documentation %q,\nthe matrix %q", code, told, cases)
	}
}

// pointsIn finds the calls of crashpoint.At.
func pointsIn(f *ast.File) (out []string) {
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) != 1 {
			return true
		}
		sel, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || sel.Sel.Name != "At" {
			return true
		}
		if pkg, ok := sel.X.(*ast.Ident); !ok || pkg.Name != "crashpoint" {
			return true
		}
		if lit, ok := call.Args[0].(*ast.BasicLit); ok {
			if name, err := strconv.Unquote(lit.Value); err == nil {
				out = append(out, name)
			}
		}
		return true
	})
	return out
}
