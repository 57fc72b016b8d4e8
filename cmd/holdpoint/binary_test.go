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
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestMain gives the binaries of the process tests a folder that goes at the end.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "holdpoint-binary-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	binaries = dir
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

var binaries string

// Each binary is built once: the one that is released, and the one that can be told where to crash.
var (
	plainBinary = sync.OnceValues(func() (string, error) { return build("holdpoint") })
	crashBinary = sync.OnceValues(func() (string, error) { return build("holdpoint-crash", "-tags", "crashpoints") })
)

// built builds before the clock of a test runs.
func built(t *testing.T, binary func() (string, error)) {
	t.Helper()
	if _, err := binary(); err != nil {
		t.Fatal(err)
	}
}

func build(name string, flags ...string) (string, error) {
	path := filepath.Join(binaries, name)
	out, err := exec.CommandContext(context.Background(), "go", append(append([]string{"build", "-o", path}, flags...), ".")...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
}

// program is a built binary with the environment that it is run in.
type program struct {
	w    *world
	path string
	env  []string
}

// program gives a binary, set up for the world as an operator would do it: by the environment.
func (w *world) program(binary func() (string, error)) *program {
	w.t.Helper()
	path, err := binary()
	w.must(err)
	return &program{w: w, path: path, env: []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + w.dir, "TMPDIR=" + os.TempDir(),
		"HOLDPOINT_DATABASE_URL=" + w.dsn, "HOLDPOINT_REDIS_URL=" + w.redis.URL(), "HOLDPOINT_KEYSET=" + w.keyset,
		"HOLDPOINT_SLACK_API_URL=" + w.sim.URL() + "/api/", "SLACK_BOT_TOKEN=" + testToken, "SLACK_SIGNING_SECRET=" + testSigning, "SLACK_APP_ID=A0HOLDPOINT",
		"HOLDPOINT_LEASE=1s", "HOLDPOINT_SWEEP_EVERY=200ms",
	}}
}

// with adds to the environment.
func (g *program) with(env ...string) *program {
	c := *g
	c.env = append(g.env[:len(g.env):len(g.env)], env...)
	return &c
}

// result is what a command that ended said.
type result struct {
	code     int
	out, err string
}

// run runs a command to its end.
func (g *program) run(args ...string) result {
	g.w.t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(g.w.ctx, g.path, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.Dir = g.env, &out, &errs, g.w.dir
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		g.w.t.Fatalf("%v: %v", args, err)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// ok is run for a command that must work; it gives what it printed.
func (g *program) ok(args ...string) string {
	g.w.t.Helper()
	r := g.run(args...)
	if r.code != 0 {
		g.w.t.Fatalf("holdpoint %s: exit %d\n%s%s", strings.Join(args, " "), r.code, r.out, r.err)
	}
	return r.out
}

// process is a command that goes on. Its log is the world's, and its own.
type process struct {
	w     *world
	cmd   *exec.Cmd
	log   *journal
	out   *journal
	ended chan struct{}
}

// start begins a command; the test's end kills what is left of it.
func (g *program) start(args ...string) *process {
	g.w.t.Helper()
	p := &process{w: g.w, log: &journal{}, out: &journal{}, ended: make(chan struct{})}
	p.cmd = exec.CommandContext(context.Background(), g.path, args...)
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr, p.cmd.Dir = g.env, p.out, &both{p.log, g.w.logs}, g.w.dir
	g.w.must(p.cmd.Start())
	go func() {
		_ = p.cmd.Wait() // how it ended is in ProcessState
		close(p.ended)
	}()
	g.w.t.Cleanup(func() {
		_ = p.cmd.Process.Signal(syscall.SIGCONT)
		_ = p.cmd.Process.Kill()
		<-p.ended
	})
	return p
}

// both writes to two journals.
type both [2]*journal

func (b *both) Write(p []byte) (int, error) {
	_, _ = b[0].Write(p) // never fails
	return b[1].Write(p)
}

// serve starts a serve process and gives it the world's callbacks, unless another one has them.
func (g *program) serve() (*process, string) {
	g.w.t.Helper()
	p := g.start("serve", "--listen", "127.0.0.1:0")
	p.says(`"msg":"serving"`)
	var address string
	for line := range strings.Lines(p.log.String()) {
		var l struct{ Msg, Address string }
		if json.Unmarshal([]byte(line), &l) == nil && l.Msg == "serving" {
			address = "http://" + l.Address
		}
	}
	if g.w.base == "" {
		g.w.base = address
		g.w.sim.SetCallbackURL(address)
	}
	return p, address
}

// worker starts a worker process.
func (g *program) worker() *process {
	g.w.t.Helper()
	p := g.start("worker")
	p.says(`"msg":"working"`)
	return p
}

// says waits for a text in the process's log.
func (p *process) says(text string) {
	p.w.t.Helper()
	done := make(chan error, 1)
	go func() { done <- p.log.says(p.w.ctx, text) }()
	select {
	case err := <-done:
		if err != nil {
			p.w.t.Fatalf("%v did not say %q", p.cmd.Args[1:], text)
		}
	case <-p.ended:
		if !strings.Contains(p.log.String(), text) {
			p.w.t.Fatalf("%v ended (%s) and did not say %q", p.cmd.Args[1:], p.cmd.ProcessState, text)
		}
	}
}

func (p *process) signal(s syscall.Signal) {
	p.w.t.Helper()
	p.w.must(p.cmd.Process.Signal(s))
}

// end waits for the process's end and gives its exit code, -1 after a signal.
func (p *process) end() int {
	p.w.t.Helper()
	select {
	case <-p.ended:
	case <-p.w.ctx.Done():
		p.w.t.Fatalf("%v does not end", p.cmd.Args[1:])
	}
	return p.cmd.ProcessState.ExitCode()
}

// killed waits until the process ended as by kill -9.
func (p *process) killed() {
	p.w.t.Helper()
	p.end()
	if s, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !s.Signaled() || s.Signal() != syscall.SIGKILL {
		p.w.t.Fatalf("%v ended with %s, not by kill -9", p.cmd.Args[1:], p.cmd.ProcessState)
	}
}

// within fails when something takes longer than d, in real time.
func (w *world) within(d time.Duration, what string, f func()) {
	w.t.Helper()
	began := time.Now()
	f()
	if took := time.Since(began); took > d {
		w.t.Errorf("%s took %s, more than %s", what, took, d)
	}
}
