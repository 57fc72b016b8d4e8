package proof

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// process is a real one of the product, or the sink.
type process struct {
	w     *world
	name  string
	cmd   *exec.Cmd
	dog   *exec.Cmd
	leash io.WriteCloser
	log   transcript
	ended chan struct{}
	end   sync.Once
}

// transcript is what a process wrote.
type transcript struct {
	mu sync.Mutex
	b  strings.Builder
}

func (t *transcript) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.Write(p)
}

func (t *transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.String()
}

// watchdog kills a process that the test's own end, however sudden, would leave behind.
const watchdog = `trap '' HUP INT TERM
if read -r word && [ "$word" = done ]; then exit 0; fi
kill -s KILL "$1" 2>/dev/null`

// spawn starts a program; it ends with the test at the latest.
func (w *world) spawn(name string, built func() (string, error), args []string, env ...string) *process {
	w.t.Helper()
	program, err := built()
	w.must(err)
	p := &process{w: w, name: name, cmd: exec.Command(program, args...), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stderr, p.cmd.Dir = &p.log, w.dir
	if name != "sink" {
		p.cmd.Stdout = &p.log
		w.start(p)
	}
	return p
}

func (w *world) start(p *process) {
	w.t.Helper()
	w.must(p.cmd.Start())
	p.dog = exec.Command("/bin/sh", "-c", watchdog, "holdpoint-proof-watchdog", strconv.Itoa(p.cmd.Process.Pid))
	var err error
	p.leash, err = p.dog.StdinPipe()
	w.must(err)
	w.must(p.dog.Start())
	go func() {
		_ = p.cmd.Wait() // how it ended is in ProcessState
		close(p.ended)
	}()
	w.mu.Lock()
	w.processes = append(w.processes, p)
	w.mu.Unlock()
	w.t.Cleanup(p.kill)
}

// kill is kill -9; it returns when the process is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // an ended one is ended
	p.gone()
}

// gone waits for the end and lets the watchdog go.
func (p *process) gone() {
	<-p.ended
	p.end.Do(func() {
		_, _ = io.WriteString(p.leash, "done\n")
		_ = p.leash.Close()
		_ = p.dog.Wait()
	})
}

// stop is SIGTERM, and the drain that follows it.
func (p *process) stop() {
	p.w.t.Helper()
	p.signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-p.w.ctx.Done():
		p.w.t.Fatalf("%s does not end; it said:\n%s", p.name, p.log.String())
	}
	p.gone()
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		p.w.t.Errorf("%s ended with %d; it said:\n%s", p.name, code, p.log.String())
	}
}

func (p *process) signal(s syscall.Signal) {
	p.w.t.Helper()
	p.w.must(p.cmd.Process.Signal(s))
}

// crashes waits until the process has killed itself at the point: by SIGKILL, and after it said so.
func (p *process) crashes(point string) {
	p.w.t.Helper()
	select {
	case <-p.ended:
	case <-p.w.ctx.Done():
		p.w.t.Fatalf("%s never came to %s; it said:\n%s", p.name, point, p.log.String())
	}
	p.gone()
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || status.Signal() != syscall.SIGKILL || !strings.Contains(p.log.String(), "crash point "+point+"\n") {
		p.w.t.Fatalf("%s ended with %s, not at %s; it said:\n%s", p.name, p.cmd.ProcessState, point, p.log.String())
	}
}

// says waits for a text among what the process wrote.
func (p *process) says(text string) {
	p.w.t.Helper()
	p.w.eventually(p.name+" says "+text, func() (string, bool) {
		select {
		case <-p.ended:
			p.w.t.Fatalf("%s ended; it said:\n%s", p.name, p.log.String())
		default:
		}
		said := p.log.String()
		return said, strings.Contains(said, text)
	})
}

var address = regexp.MustCompile(`"msg":"serving"[^\n]*"address":"([^"]+)"`)

// serve starts `holdpoint serve` and points Slack and the agent at it.
func (w *world) serve(env ...string) *process {
	w.t.Helper()
	p := w.spawn("serve", product, []string{"serve", "--listen", "127.0.0.1:0"}, w.environment(env)...)
	p.says(`"msg":"serving"`)
	m := address.FindStringSubmatch(p.log.String())
	if m == nil {
		w.t.Fatalf("serve does not say where: %s", p.log.String())
	}
	w.base = "http://" + m[1]
	w.sim.SetCallbackURL(w.base)
	return p
}

// work starts `holdpoint worker`. Its lease is short, so that what dies is found soon.
func (w *world) work(env ...string) *process {
	w.t.Helper()
	p := w.spawn("worker", product, []string{"worker"}, w.environment(append([]string{"HOLDPOINT_LEASE=" + shortLease.String(), "HOLDPOINT_SWEEP_EVERY=500ms", "HOLDPOINT_EXECUTE_CHECK=50ms"}, env...))...)
	return p
}

const shortLease = 4 * time.Second

func (w *world) environment(more []string) []string {
	return append([]string{
		"HOLDPOINT_DATABASE_URL=" + w.processDSN, "HOLDPOINT_REDIS_URL=" + w.processRedis, "HOLDPOINT_KEYSET=" + w.keyset,
		"SLACK_BOT_TOKEN=" + botToken, "SLACK_SIGNING_SECRET=" + signingSecret, "SLACK_APP_ID=A0HOLDPOINT", "HOLDPOINT_SLACK_API_URL=" + w.sim.URL() + "/api/",
		"HOLDPOINT_LOG_LEVEL=debug",
	}, more...)
}

// startSink starts the world that effects happen in.
func (w *world) startSink() string {
	w.t.Helper()
	p := w.spawn("sink", outside, []string{"-log", w.sinkLog})
	out, err := p.cmd.StdoutPipe()
	w.must(err)
	in, err := p.cmd.StdinPipe()
	w.must(err)
	w.t.Cleanup(func() { _ = in.Close() })
	w.start(p)
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		w.t.Fatal(err)
	}
	if url = strings.TrimSpace(url); url == "" {
		w.t.Fatalf("the sink does not say where: %s", p.log.String())
	}
	return url
}
