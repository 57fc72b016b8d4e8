//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package pgcluster

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
)

func TestTemporary(t *testing.T) {
	t.Parallel()
	c := start(t, Options{Superfast: true, MaxConnections: 33, Settings: map[string]string{"work_mem": "5MB"}})
	for setting, want := range map[string]string{
		"listen_addresses": "", "max_connections": "33", "work_mem": "5MB", "fsync": "off", "TimeZone": "UTC", "server_encoding": "UTF8",
	} {
		if got := query[string](t, c.DSN(), "SELECT current_setting($1)", setting); got != want {
			t.Errorf("%s = %q, want %q", setting, got, want)
		}
	}
	if got := query[string](t, c.DSN(), "SELECT current_database() || ' ' || current_user"); got != Database+" "+Role {
		t.Errorf("connected as %q", got)
	}
	info, err := os.Stat(c.run.path)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the socket's folder: %v, %v; want 0700", info.Mode(), err)
	}
	pid, dog := c.cmd.Process.Pid, c.dog.cmd.Process.Pid
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	if !gone(c.run.path) || alive(pid) || alive(dog) {
		t.Errorf("left behind: folder %t, server %t, watchdog %t", !gone(c.run.path), alive(pid), alive(dog))
	}
	if err := c.Stop(); err != nil {
		t.Errorf("a second Stop: %v", err)
	}
	if err := c.Wait(); err != nil {
		t.Errorf("Wait after Stop: %v", err)
	}
}

func TestDurableByDefault(t *testing.T) {
	t.Parallel()
	c := start(t, Options{})
	for _, setting := range []string{"fsync", "synchronous_commit", "full_page_writes", "autovacuum"} {
		if got := query[string](t, c.DSN(), "SELECT current_setting($1)", setting); got != "on" {
			t.Errorf("%s = %s", setting, got)
		}
	}
}

func TestCrashIsReported(t *testing.T) {
	t.Parallel()
	c := start(t, Options{Superfast: true})
	if err := c.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); !errors.Is(err, ErrExited) {
		t.Fatalf("Wait: %v, want ErrExited", err)
	}
	if err := c.Stop(); err != nil || !gone(c.run.path) {
		t.Errorf("Stop after a crash: %v, folder gone: %t", err, gone(c.run.path))
	}
}

func TestRefusedSettingNamesItself(t *testing.T) {
	t.Parallel()
	_, err := Start(t.Context(), Options{Superfast: true, CacheDir: testCache, Settings: map[string]string{"work_mem": "plenty"}})
	if !errors.Is(err, ErrExited) || !strings.Contains(err.Error(), "work_mem") {
		t.Fatalf("got %v, want ErrExited with the server's words", err)
	}
}

func TestEndedContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if c, err := Start(ctx, Options{Superfast: true, CacheDir: testCache}); err == nil {
		t.Errorf("started: %v", c.Stop())
	}
	ctx, cancel = context.WithCancel(t.Context())
	c, err := Start(ctx, Options{Superfast: true, CacheDir: testCache})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if got := query[int](t, c.DSN(), "SELECT 1"); got != 1 {
		t.Error("the server ended with Start's context")
	}
	if err := c.Stop(); err != nil {
		t.Error(err)
	}
}

// I24: no token reaches the server's environment, no row's value its log.
func TestNoSecretsReachTheServer(t *testing.T) {
	t.Parallel()
	c := start(t, Options{Superfast: true})
	exec1(t, c.DSN(), "CREATE TABLE secrets (value text PRIMARY KEY)")
	exec1(t, c.DSN(), "INSERT INTO secrets VALUES ('"+canary+"')")
	conn := connect(t, c.DSN())
	if _, err := conn.Exec(t.Context(), "INSERT INTO secrets VALUES ('"+canary+"')"); err == nil {
		t.Fatal("a duplicate was taken")
	}
	if _, err := conn.Exec(t.Context(), "INSERT INTO secrets VALUES ($1)", canary); err == nil {
		t.Fatal("a duplicate was taken")
	}
	log, err := os.ReadFile(filepath.Join(c.run.path, "postgres.log"))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(log), "duplicate key"); n != 2 {
		t.Fatalf("the log tells of %d duplicates, want 2:\n%s", n, log)
	}
	if strings.Contains(string(log), canary) {
		t.Errorf("a row's value in the log:\n%s", log)
	}
	if runtime.GOOS != "linux" {
		t.Skip("a process's environment is only read on Linux")
	}
	env, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(c.cmd.Process.Pid), "environ"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(env), "LC_ALL=C") || strings.Contains(string(env), canary) {
		t.Error("the server's environment is not the clean one")
	}
}

func TestKept(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	c := start(t, Options{Dir: dir})
	exec1(t, c.DSN(), "CREATE TABLE kept AS SELECT 42 AS n")

	_, err := Start(t.Context(), Options{Dir: dir, CacheDir: testCache})
	if !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), "process "+strconv.Itoa(os.Getpid())) {
		t.Errorf("a second owner: %v, want ErrInUse that names this process", err)
	}
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	if !gone(c.run.path) || !gone(filepath.Join(dir, "postgres", "postmaster.pid")) {
		t.Error("not shut down cleanly")
	}
	c = start(t, Options{Dir: dir})
	if got := query[int](t, c.DSN(), "SELECT n FROM kept"); got != 42 {
		t.Errorf("kept %d", got)
	}
}

// A crash of the machine leaves postmaster.pid with a number that another
// process may have by now; PostgreSQL alone would refuse to start then.
func TestStalePostmasterPID(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	c := start(t, Options{Dir: dir})
	exec1(t, c.DSN(), "CREATE TABLE kept AS SELECT 42 AS n")
	other := start(t, Options{Superfast: true}) // a living process of the same user
	pidFile := filepath.Join(dir, "postgres", "postmaster.pid")
	text, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(ignoreExited(c.Wait()), c.Stop()); err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\n")
	stale := strconv.Itoa(other.cmd.Process.Pid) + "\n" + rest
	if err := os.WriteFile(pidFile, []byte(stale), 0o600); err != nil {
		t.Fatal(err)
	}
	c = start(t, Options{Dir: dir})
	if got := query[int](t, c.DSN(), "SELECT n FROM kept"); got != 42 {
		t.Errorf("kept %d", got)
	}
	if got := query[int](t, other.DSN(), "SELECT 1"); got != 1 {
		t.Error("the process that has the number now was harmed")
	}
}

func ignoreExited(err error) error {
	if errors.Is(err, ErrExited) {
		return nil
	}
	return err
}

func TestForeignDataFolders(t *testing.T) {
	t.Parallel()
	t.Run("of a version that is not installed", func(t *testing.T) {
		t.Parallel()
		dir := openDir(t)
		if err := os.Mkdir(filepath.Join(dir, "postgres"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "postgres", "PG_VERSION"), []byte("9\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Start(t.Context(), Options{Dir: dir, CacheDir: testCache}); !errors.Is(err, ErrVersion) {
			t.Errorf("got %v, want ErrVersion", err)
		}
	})
	t.Run("not PostgreSQL's", func(t *testing.T) {
		t.Parallel()
		dir := openDir(t)
		file := filepath.Join(dir, "postgres", "thesis.txt")
		if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Start(t.Context(), Options{Dir: dir, CacheDir: testCache}); err == nil || gone(file) {
			t.Errorf("got %v; the file is gone: %t", err, gone(file))
		}
	})
	t.Run("out of the server's reach", func(t *testing.T) {
		t.Parallel()
		if os.Geteuid() != 0 {
			t.Skip("only root runs the server as another user")
		}
		_, err := Start(t.Context(), Options{Dir: filepath.Join(t.TempDir(), "data"), CacheDir: testCache})
		if err == nil || !strings.Contains(err.Error(), "can't enter") {
			t.Errorf("got %v, want the folder that bars the way", err)
		}
	})
}

func BenchmarkStart(b *testing.B) {
	warm, err := Start(b.Context(), Options{Superfast: true, CacheDir: testCache})
	if err != nil {
		b.Fatal(err)
	}
	if err := warm.Stop(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		c, err := Start(b.Context(), Options{Superfast: true, CacheDir: testCache})
		if err != nil {
			b.Fatal(err)
		}
		conn, err := pgx.Connect(b.Context(), c.DSN())
		if err != nil {
			b.Fatal(err)
		}
		if err := errors.Join(conn.Close(b.Context()), c.Stop()); err != nil {
			b.Fatal(err)
		}
	}
}
