package redistest

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	// As the child of TestEndsWithItsOwner: be a test binary that is killed.
	if os.Getenv("REDISTEST_BE_OWNER") != "" {
		program, err := find(exec.LookPath)
		if err != nil {
			panic(err)
		}
		p, err := launch(context.Background(), program, os.Getenv("REDISTEST_BE_OWNER"), os.Getenv("REDISTEST_DIR"))
		if err != nil {
			panic(err)
		}
		_, _ = os.Stdout.WriteString(strconv.Itoa(p.cmd.Process.Pid) + "\n")
		select {}
	}
	os.Exit(m.Run())
}

func do(t *testing.T, addr string, command string) string {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, command+"\r\n"); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

func TestServersAreApart(t *testing.T) {
	t.Parallel()
	a, b := New(t), New(t)
	if a == b {
		t.Fatalf("two servers at %s", a)
	}
	if got := do(t, a, "SET k v"); got != "+OK" {
		t.Fatalf("SET: %s", got)
	}
	if got := do(t, a, "EXISTS k"); got != ":1" {
		t.Errorf("own key: %s", got)
	}
	if got := do(t, b, "EXISTS k"); got != ":0" {
		t.Errorf("the other server's key: %s", got)
	}
}

func TestStopAndRestart(t *testing.T) {
	t.Parallel()
	s := Start(t)
	if got := do(t, s.Addr(), "SET k v"); got != "+OK" {
		t.Fatalf("SET: %s", got)
	}
	s.Stop()
	s.Stop() // nothing to do
	if err := ping(s.Addr()); err == nil {
		t.Error("a stopped server answers")
	}
	before := s.Addr()
	s.Restart()
	if s.Addr() != before {
		t.Errorf("address changed from %s to %s", before, s.Addr())
	}
	if got := do(t, s.Addr(), "EXISTS k"); got != ":0" {
		t.Errorf("data outlived the restart: %s", got)
	}
	s.Restart() // of a running one
	if err := ping(s.Addr()); err != nil {
		t.Errorf("after a second restart: %v", err)
	}
	if want := "redis://" + before + "/0"; s.URL() != want {
		t.Errorf("URL %s, want %s", s.URL(), want)
	}
}

func TestTakenPort(t *testing.T) {
	t.Parallel()
	s := Start(t)
	program, err := find(exec.LookPath)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := launch(t.Context(), program, s.Addr(), t.TempDir()); !errors.Is(err, errPortTaken) {
		t.Fatalf("got %v, want errPortTaken", err)
	}
}

func TestEndsWithItsOwner(t *testing.T) {
	t.Parallel()
	s := Start(t) // finds a free port
	s.Stop()
	dir, err := os.MkdirTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	owner := exec.CommandContext(t.Context(), os.Args[0])
	owner.Env = append(os.Environ(), "REDISTEST_BE_OWNER="+s.Addr(), "REDISTEST_DIR="+dir)
	out, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if err := ping(s.Addr()); err != nil {
		t.Fatalf("before the kill: %v", err)
	}
	if err := owner.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = owner.Wait()
	deadline := time.Now().Add(10 * time.Second)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := os.Stat(dir)
		if errors.Is(err, os.ErrNotExist) && ping(s.Addr()) != nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after the owner's kill: folder %v, ping %v", err, ping(s.Addr()))
		}
		<-tick.C
	}
}

func TestNotInstalled(t *testing.T) {
	t.Parallel()
	missing := func(string) (string, error) { return "", exec.ErrNotFound }
	if _, err := find(missing); !errors.Is(err, ErrNotInstalled) || !strings.Contains(err.Error(), "apt-get install redis-server") {
		t.Errorf("error %v does not say what to install", err)
	}
	valkey := func(name string) (string, error) {
		if name == "valkey-server" {
			return "/usr/bin/valkey-server", nil
		}
		return "", exec.ErrNotFound
	}
	if path, err := find(valkey); err != nil || path != "/usr/bin/valkey-server" {
		t.Errorf("got %q, %v", path, err)
	}
}
