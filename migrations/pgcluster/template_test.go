//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package pgcluster

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

func prepare(calls *int, sql string) func(context.Context, string) error {
	return func(ctx context.Context, dsn string) error {
		*calls++
		conn, err := pgx.Connect(ctx, dsn)
		if err != nil {
			return err
		}
		_, err = conn.Exec(ctx, sql)
		return errors.Join(err, conn.Close(ctx))
	}
}

func TestPrepareRunsOnceAKey(t *testing.T) {
	t.Parallel()
	calls := 0
	o := Options{Superfast: true, PrepareKey: t.Name(), Prepare: prepare(&calls, "CREATE TABLE prepared AS SELECT 7 AS n")}
	for range 2 {
		c := start(t, o)
		if got := query[int](t, c.DSN(), "SELECT n FROM prepared"); got != 7 || calls != 1 {
			t.Errorf("n = %d after %d calls; want 7 after 1", got, calls)
		}
		exec1(t, c.DSN(), "UPDATE prepared SET n = 8") // must not reach the template
	}
	o.PrepareKey += " 2"
	start(t, o)
	if calls != 2 {
		t.Errorf("%d calls after another key, want 2", calls)
	}
}

func TestFailedPrepareIsNotCached(t *testing.T) {
	t.Parallel()
	calls := 0
	o := Options{Superfast: true, CacheDir: testCache, PrepareKey: t.Name(), Prepare: prepare(&calls, "SELECT 1/0")}
	for want := 1; want <= 2; want++ {
		if _, err := Start(t.Context(), o); err == nil || !strings.Contains(err.Error(), "division by zero") {
			t.Fatalf("got %v, want Prepare's error", err)
		}
		if calls != want {
			t.Errorf("%d calls, want %d", calls, want)
		}
	}
}

func TestDamagedTemplateIsMadeAnew(t *testing.T) {
	t.Parallel()
	cache := t.TempDir()
	if err := start(t, Options{Superfast: true, CacheDir: cache}).Stop(); err != nil {
		t.Fatal(err)
	}
	controls, err := filepath.Glob(filepath.Join(cache, "templates", "*", "global", "pg_control"))
	if err != nil || len(controls) != 1 {
		t.Fatalf("templates: %v, %v", controls, err)
	}
	if err := os.Truncate(controls[0], 100); err != nil {
		t.Fatal(err)
	}
	c := start(t, Options{Superfast: true, CacheDir: cache})
	if got := query[int](t, c.DSN(), "SELECT 1"); got != 1 {
		t.Error("no answer")
	}
	if info, err := os.Stat(controls[0]); err != nil || info.Size() == 100 {
		t.Errorf("the template is still the damaged one (%v)", err)
	}
}

func TestCacheThatOthersCanWriteIsNotUsed(t *testing.T) {
	t.Parallel()
	cache := t.TempDir()
	dir := filepath.Join(cache, "templates")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	c := start(t, Options{Superfast: true, CacheDir: cache})
	if got := query[int](t, c.DSN(), "SELECT 1"); got != 1 {
		t.Error("no answer")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("used all the same: %v, %v", entries, err)
	}
}

func TestPrune(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mk := func(name string, age time.Duration) {
		path := filepath.Join(dir, name)
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(-age)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	mk("current", 50*time.Hour)
	mk("fresh", time.Minute)
	mk("crashed.1.part", 2*time.Hour)
	mk("building.2.part", time.Minute)
	for i, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		mk(name, time.Duration(i+2)*time.Hour)
	}
	templates{dir: dir}.prune("current")
	var left []string
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		left = append(left, e.Name())
	}
	// keepTemplates in all: current, fresh and the four youngest others.
	if got, want := strings.Join(left, " "), "a b building.2.part c current d fresh"; got != want {
		t.Errorf("left %s\nwant %s", got, want)
	}
}

func TestCopyTreeTakesOnlyFilesAndFolders(t *testing.T) {
	t.Parallel()
	src := t.TempDir()
	if err := os.Symlink("/etc/passwd", filepath.Join(src, "link")); err != nil {
		t.Fatal(err)
	}
	if err := copyTree(src, filepath.Join(t.TempDir(), "copy"), runner{}, false); err == nil {
		t.Error("a link was copied")
	}
}
