//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package pgcluster

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestKilledOwnerLeavesNothing(t *testing.T) {
	t.Parallel()
	o := startOwner(t, "")
	if got := query[int](t, o.dsn, "SELECT 1"); got != 1 || !alive(o.server) || !alive(o.watch) {
		t.Fatal("not up")
	}
	o.kill(t)
	eventually(t, "server, watchdog and folder are gone", func() bool {
		return !alive(o.server) && !alive(o.watch) && gone(o.run)
	})
}

func TestKilledOwnerOfKeptData(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	o := startOwner(t, dir)
	exec1(t, o.dsn, "CREATE TABLE kept AS SELECT 42 AS n")
	o.kill(t)
	// At once: the old server may still be on its way out.
	c := start(t, Options{Dir: dir})
	if got := query[int](t, c.DSN(), "SELECT n FROM kept"); got != 42 {
		t.Errorf("kept %d", got)
	}
	if alive(o.server) {
		t.Error("two servers on one data folder")
	}
}

// With owner and watchdog killed the server lives on: the next Start ends it.
func TestSweepOfAnOrphan(t *testing.T) {
	t.Parallel()
	o := startOwner(t, "")
	living := startOwner(t, "")
	if err := syscall.Kill(o.watch, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	o.kill(t)
	if got := query[int](t, o.dsn, "SELECT 1"); got != 1 {
		t.Fatal("the orphan does not live")
	}
	start(t, Options{Superfast: true})
	eventually(t, "the orphan and its folder are gone", func() bool { return !alive(o.server) && gone(o.run) })
	if got := query[int](t, living.dsn, "SELECT 1"); got != 1 {
		t.Error("a cluster with a living owner was swept")
	}
	living.kill(t)
	eventually(t, "the other folder is gone", func() bool { return gone(living.run) })
}

func TestOrphanOnKeptData(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	o := startOwner(t, dir)
	exec1(t, o.dsn, "CREATE TABLE kept AS SELECT 42 AS n")
	if err := syscall.Kill(o.watch, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	o.kill(t)
	c := start(t, Options{Dir: dir})
	if got := query[int](t, c.DSN(), "SELECT n FROM kept"); got != 42 || alive(o.server) {
		t.Errorf("kept %d, the orphan lives: %t", got, alive(o.server))
	}
	// Its run folder goes with the first sweep after its end.
	start(t, Options{Superfast: true})
	eventually(t, "the orphan's folder is gone", func() bool { return gone(o.run) })
}

func TestSweepSpares(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	who := runner{uid: os.Geteuid(), gid: os.Getegid()}
	coming := filepath.Join(base, runPrefix+"coming-up")
	stale := filepath.Join(base, runPrefix+"stale")
	other := filepath.Join(base, "something-else")
	for _, dir := range []string{coming, stale, other} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	target := filepath.Join(t.TempDir(), "target")
	if err := os.Mkdir(target, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, filepath.Join(base, runPrefix+"link")); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-time.Hour)
	for _, dir := range []string{stale, other, target} {
		if err := os.Chtimes(dir, old, old); err != nil {
			t.Fatal(err)
		}
	}
	sweep(t.Context(), base, who)
	if !gone(stale) {
		t.Error("an abandoned folder stays")
	}
	for _, dir := range []string{coming, other, target} {
		if gone(dir) {
			t.Errorf("%s was removed", dir)
		}
	}
}

func TestRunBaseFitsASocket(t *testing.T) {
	who := runner{uid: os.Geteuid(), gid: os.Getegid()}
	short := t.TempDir()
	t.Setenv("TMPDIR", short)
	if got, err := runBase(who, false); len(short) < 50 && (err != nil || got != short) {
		t.Errorf("%s, %v; want TMPDIR", got, err)
	}
	t.Setenv("TMPDIR", filepath.Join(short, strings.Repeat("long", 20)))
	got, err := runBase(who, false)
	if err != nil || len(filepath.Join(got, runPrefix+"1234567890", socketName)) > maxSocket {
		t.Errorf("%s, %v: no room for a socket's path", got, err)
	}
}
