// Package redistest runs a real Redis for a test.
//
// What always holds: each test has a server of its own (started in about
// 20 ms), on a loopback port that stays the same over Stop and Restart; nothing
// is written to disk, so a stopped Redis has forgotten everything, as after
// FLUSHALL (invariants L3 and I28 are tested with that); the server does not
// outlive the test, nor a test binary that is killed. No test is skipped for
// want of Redis: it fails and says what to install.
//
// Only tests import this package.
package redistest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	// Ports are taken from below the range that systems use for outgoing
	// connections (Linux: from 32768), so that no client takes a stopped
	// server's port before it is restarted.
	firstPort, ports = 20000, 12000

	startWithin = 20 * time.Second
	pollEvery   = 5 * time.Millisecond
)

// ErrNotInstalled says that there is no redis-server on PATH.
var ErrNotInstalled = errors.New("no redis-server on PATH: install it with `apt-get install redis-server` or `brew install redis`")

var errPortTaken = errors.New("port is taken")

// A Server is one test's Redis. Its methods may be called from any goroutine.
type Server struct {
	t    testing.TB
	addr string
	dir  string

	mu  sync.Mutex
	run *process // nil while stopped
}

// New starts a server for the test and returns its address, host:port.
func New(t testing.TB) string {
	t.Helper()
	return Start(t).Addr()
}

// Start starts a server for the test, which ends with it.
func Start(t testing.TB) *Server {
	t.Helper()
	program, err := find(exec.LookPath)
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	s := &Server{t: t, dir: t.TempDir()}
	t.Cleanup(s.Stop) // runs before TempDir's own cleanup
	for range 50 {
		s.addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(firstPort+rand.IntN(ports)))
		s.run, err = launch(t.Context(), program, s.addr, s.dir)
		if !errors.Is(err, errPortTaken) {
			break
		}
	}
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	return s
}

// Addr is the server's host:port.
func (s *Server) Addr() string { return s.addr }

// URL is the server's database 0, as HOLDPOINT_REDIS_URL takes it.
func (s *Server) URL() string { return "redis://" + s.addr + "/0" }

// Stop kills the server, as a crash would: connections break, data are gone.
// Stopping a stopped server does nothing.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop()
}

func (s *Server) stop() {
	if s.run == nil {
		return
	}
	if err := s.run.kill(); err != nil {
		s.t.Errorf("redistest: stop: %v", err)
	}
	s.run = nil
}

// Restart brings an empty server up at the same address, killing the one that
// runs.
func (s *Server) Restart() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop()
	program, err := find(exec.LookPath)
	if err == nil {
		s.run, err = launch(s.t.Context(), program, s.addr, s.dir)
	}
	if err != nil {
		s.t.Errorf("redistest: restart: %v", err) // not Fatal: callable from any goroutine
	}
}

// find returns the server's program: Redis, or Valkey, which speaks the same.
func find(look func(string) (string, error)) (string, error) {
	for _, name := range []string{"redis-server", "valkey-server"} {
		if path, err := look(name); err == nil {
			return path, nil
		}
	}
	return "", ErrNotInstalled
}

// A process is one run of the server and the shell that kills it when this
// process is gone (the shell sees the end of the file that we hold).
type process struct {
	cmd, dog *exec.Cmd
	pipe     *os.File
	ended    chan struct{}
}

const watchdogScript = `trap '' HUP INT TERM
if read -r word && [ "$word" = done ]; then exit 0; fi
kill -s KILL "$1" 2>/dev/null
rm -rf -- "$2"
`

func launch(ctx context.Context, program, addr, dir string) (*process, error) {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	logPath := filepath.Join(dir, "redis.log")
	logFile, err := os.Create(logPath)
	if err != nil {
		return nil, err
	}
	defer func() { _ = logFile.Close() }() // the server has its own copy
	ctx = context.WithoutCancel(ctx)       // Stop ends it, not the test's context
	p := &process{ended: make(chan struct{})}
	p.cmd = exec.CommandContext(ctx, program, "--bind", "127.0.0.1", "--port", port, "--dir", dir,
		"--save", "", "--appendonly", "no", "--daemonize", "no", "--databases", "16")
	p.cmd.Stdout, p.cmd.Stderr = logFile, logFile
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = p.cmd.Wait() // killed: the status says nothing
		close(p.ended)
	}()
	err = p.watch(ctx, dir)
	if err == nil {
		err = p.ready(addr, logPath)
	}
	if err != nil {
		return nil, errors.Join(err, p.kill())
	}
	return p, nil
}

func (p *process) watch(ctx context.Context, dir string) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	p.dog = exec.CommandContext(ctx, "/bin/sh", "-c", watchdogScript, "holdpoint-redis-watchdog", strconv.Itoa(p.cmd.Process.Pid), dir)
	p.dog.Stdin = r
	if err := errors.Join(p.dog.Start(), r.Close()); err != nil {
		p.dog = nil
		return errors.Join(err, w.Close())
	}
	p.pipe = w
	return nil
}

// ready returns when the server answers PING, or has ended.
func (p *process) ready(addr, logPath string) error {
	timeout := time.NewTimer(startWithin)
	defer timeout.Stop()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		select {
		case <-p.ended:
			text, err := os.ReadFile(logPath)
			if strings.Contains(string(text), "Address already in use") {
				return errPortTaken
			}
			return errors.Join(fmt.Errorf("redis-server ended: %s", text), err)
		case <-timeout.C:
			return errors.New("redis-server does not answer")
		case <-tick.C:
			// The answer must be our server's: with a taken port another one would
			// answer while ours is ending.
			if text, err := os.ReadFile(logPath); err != nil || !strings.Contains(strings.ToLower(string(text)), "ready to accept connections") {
				continue
			}
			if ping(addr) == nil {
				return nil
			}
		}
	}
}

func ping(addr string) (err error) {
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(context.Background(), "tcp", addr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	if _, err := io.WriteString(conn, "PING\r\n"); err != nil {
		return err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return err
	}
	if !strings.HasPrefix(line, "+PONG") {
		return errors.New("not Redis")
	}
	return nil
}

// kill ends the server and then the watchdog, so that the server's number is
// not another process's when the watchdog could use it.
func (p *process) kill() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.ended
	if p.dog == nil {
		return nil
	}
	_, err := io.WriteString(p.pipe, "done\n")
	return errors.Join(err, p.pipe.Close(), p.dog.Wait())
}
