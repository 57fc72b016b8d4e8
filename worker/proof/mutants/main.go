// Command mutants takes each guard of the product out, one at a time, in a copy of the source tree, and runs the tests that must then
// fail. It shows that the tests prove the guards: a guard that can go unnoticed might as well not be there.
//
//	go run ./worker/proof/mutants                 all of them; writes docs/mutants.md
//	go run ./worker/proof/mutants -only 'lock'    those whose name matches; replaces their rows in docs/mutants.md
//
// It ends with 1 when a mutant survived, did not compile, or its place in the source is not found any more. The tree that it is
// started in is read and, for docs/mutants.md, written; nothing else.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

var errBad = errors.New("some mutants were not killed")

func run(ctx context.Context) error {
	only := flag.String("only", "", "a regular expression on the guards' names")
	out := flag.String("out", "docs/mutants.md", "the report")
	list := flag.Bool("list", false, "list the guards and end")
	flag.Parse()
	pick, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	if *list {
		for _, m := range mutants {
			fmt.Printf("%-44s %s\n", m.guard, m.file)
		}
		return nil
	}
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	tree, err := copyTree(root)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tree) }()
	old, err := os.ReadFile(*out)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	written, bad := rows(old), false
	for _, m := range mutants {
		if !pick.MatchString(m.guard) {
			continue
		}
		r := m.try(ctx, tree)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		fmt.Printf("%-44s %s\n", m.guard, cell(r))
		written[m.guard] = row(r)
		bad = bad || !r.killed()
	}
	if err := os.WriteFile(*out, report(written), 0o644); err != nil { //nolint:gosec // a document of the repository
		return err
	}
	if bad {
		return errBad
	}
	return nil
}
