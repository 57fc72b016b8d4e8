//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package pgcluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// testCache is shared by this package's tests; the user's own is not touched.
var testCache string

// canary stands for a token in our environment.
const canary = "canary-7c1f0e"

func TestMain(m *testing.M) {
	if os.Getenv("PGCLUSTER_BE_OWNER") != "" {
		beOwner()
	}
	var err error
	if testCache, err = os.MkdirTemp(memoryBase(), "pgcluster-cache-"); err != nil {
		panic(err)
	}
	if err := os.Setenv("PGCLUSTER_TOKEN", canary); err != nil {
		panic(err)
	}
	code := m.Run()
	if err := os.RemoveAll(testCache); err != nil {
		panic(err)
	}
	os.Exit(code)
}

// beOwner is the child of the tests that kill an owner: it starts a cluster,
// prints where, and waits for its end.
func beOwner() {
	c, err := Start(context.Background(), Options{
		Superfast: true, CacheDir: os.Getenv("PGCLUSTER_CACHE"), Dir: os.Getenv("PGCLUSTER_DIR"),
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(c.DSN(), c.run.path, c.cmd.Process.Pid, c.dog.cmd.Process.Pid)
	select {}
}

// An owner is a child process with a cluster.
type owner struct {
	cmd           *exec.Cmd
	dsn, run      string
	server, watch int
}

func startOwner(t *testing.T, dir string) *owner {
	t.Helper()
	o := &owner{cmd: exec.CommandContext(t.Context(), os.Args[0])}
	o.cmd.Env = append(os.Environ(), "PGCLUSTER_BE_OWNER=1", "PGCLUSTER_CACHE="+testCache, "PGCLUSTER_DIR="+dir)
	o.cmd.Stderr = os.Stderr
	out, err := o.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := o.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscan(line, &o.dsn, &o.run, &o.server, &o.watch); err != nil {
		t.Fatal(err)
	}
	return o
}

func (o *owner) kill(t *testing.T) {
	t.Helper()
	if err := o.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = o.cmd.Wait() // killed
}

// openDir is a temporary folder that the server's user can enter; t.TempDir is
// closed to others.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "pgcluster-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func start(t *testing.T, o Options) *Cluster {
	t.Helper()
	if o.CacheDir == "" {
		o.CacheDir = testCache
	}
	c, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) }) // the server may be gone
	return conn
}

func query[T any](t *testing.T, dsn, sql string, args ...any) (value T) {
	t.Helper()
	if err := connect(t, dsn).QueryRow(t.Context(), sql, args...).Scan(&value); err != nil {
		t.Fatal(err)
	}
	return value
}

func exec1(t *testing.T, dsn, sql string) {
	t.Helper()
	if _, err := connect(t, dsn).Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		if time.Now().After(deadline) {
			t.Fatalf("not within 30 s: %s", what)
		}
		<-tick.C
	}
}

func gone(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, os.ErrNotExist)
}

// alive says whether a process runs; one that has ended and was not reaped does
// not (Linux; elsewhere init reaps at once).
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return gone("/proc/self") // without /proc the signal's word counts
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}
