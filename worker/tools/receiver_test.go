package tools_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/holdpoint/holdpoint/approvals/canon"
	"github.com/holdpoint/holdpoint/approvals/rules"
	"github.com/holdpoint/holdpoint/worker/tools"
)

// receiver is the far side of a tool: it counts the requests that arrived whole, each of
// which is one effect, and then misbehaves as told on the bare connection.
type receiver struct {
	net.Listener
	mu       sync.Mutex
	requests []received
	conns    int
	closing  chan struct{}
	serving  sync.WaitGroup
}

type received struct {
	*http.Request
	body string
}

// receive serves each connection with answer, after one whole request was read from it. A nil
// answer closes connections before anything is read.
func receive(t *testing.T, answer func(conn net.Conn, gone <-chan struct{}), config *tls.Config) *receiver {
	t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &receiver{Listener: l, closing: make(chan struct{})}
	r.serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			r.serving.Go(func() { r.serve(conn, answer, config) })
		}
	})
	t.Cleanup(func() {
		close(r.closing)
		_ = l.Close()
		r.serving.Wait()
	})
	return r
}

func (r *receiver) serve(conn net.Conn, answer func(net.Conn, <-chan struct{}), config *tls.Config) {
	defer func() { _ = conn.Close() }()
	r.mu.Lock()
	r.conns++
	r.mu.Unlock()
	if answer == nil {
		return
	}
	if config != nil {
		conn = tls.Server(conn, config)
	}
	done := make(chan struct{})
	defer close(done)
	go func() { // a hanging answer ends with the test
		select {
		case <-r.closing:
			_ = conn.Close()
		case <-done:
		}
	}()
	req, err := http.ReadRequest(bufio.NewReader(conn))
	if err != nil {
		return
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	r.mu.Lock()
	r.requests = append(r.requests, received{Request: req, body: string(body)})
	r.mu.Unlock()
	answer(conn, r.closing)
}

func (r *receiver) url() string { return "http://" + r.Addr().String() }

// effects is how many requests arrived whole.
func (r *receiver) effects() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.requests)
}

func (r *receiver) connections() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.conns
}

func (r *receiver) only(t *testing.T) received {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.requests) != 1 {
		t.Fatalf("%d requests arrived, want 1", len(r.requests))
	}
	return r.requests[0]
}

// says answers with a fixed text.
func says(text string) func(net.Conn, <-chan struct{}) {
	return func(conn net.Conn, _ <-chan struct{}) { _, _ = io.WriteString(conn, text) }
}

// status answers with a status and a JSON body.
func status(code int, body string, headers ...string) func(net.Conn, <-chan struct{}) {
	return says(fmt.Sprintf("HTTP/1.1 %d Their Own Words\r\nContent-Length: %d\r\n%s\r\n%s", code, len(body), strings.Join(append(headers, ""), "\r\n"), body))
}

// hangs says nothing for as long as the test runs.
func hangs(_ net.Conn, gone <-chan struct{}) { <-gone }

// resets breaks the connection with a RST.
func resets(conn net.Conn, _ <-chan struct{}) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
}

const arguments = `{"release":"2026.07.24","environment":"production","token":"hidden-value-1","amount": 5.00}`

// config is a tenant with one tool; spec is the tool's settings from `retry:` on.
func config(t *testing.T, spec string) *rules.Tenant {
	t.Helper()
	text := `
egress: {allow: [127.0.0.0/8, "::1/128", 10.1.0.0/16]}
tenants:
  acme:
    slack: {team: T0ACME, channel: C0APPROVALS}
    admins: {users: [U0ROOT]}
    rules: [{name: all, when: "true", reviewers: {users: [U0ALICE]}, decide_within: 1h, execute_within: 1h}]
    tools:
      deploy:
        kind: effect
        title: Deploy
        schema: {type: object, required: [release, environment], properties: {release: {type: string}, environment: {type: string}, token: {type: string}, amount: {type: number}}}
        redact: [/token]
` + indent(spec) + `
    agents: {agent: {tools: [deploy], versions: {v1: {states: [{format: none}], resume: pull}}}}
`
	parsed, err := rules.Parse([]rules.File{{Name: "test.yaml", Data: []byte(text)}})
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return parsed.Tenants["acme"]
}

func indent(spec string) string {
	return "        " + strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n        ")
}

// call is a first attempt of the tenant's tool.
func call(tenant *rules.Tenant) tools.Call {
	return tools.Call{
		Tool: tenant.Tools["deploy"], Tenant: tenant, OperationKey: "op-key-1", Arguments: canon.Read([]byte(arguments)),
		TargetVersion: "etag-17", FirstAttempt: true, Settled: true,
	}
}

func executor() *tools.Executor {
	env := map[string]string{"DEPLOY_AUTH": "Bearer header-secret-1"}
	return &tools.Executor{Secrets: rules.Secrets{Sole: true, LookupEnv: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}}
}

// classes are the ways in which a tool may be configured; each is tried on each misbehaviour.
var classes = map[string]string{
	"keyed": `
retry: idempotent
http: {method: %s, url: "%s/releases", key_header: Idempotency-Key, key_retention: 24h, timeout: %s}`,
	"unkeyed": `
retry: opaque
http: {method: %s, url: "%s/releases", timeout: %s}`,
}

func class(t *testing.T, name, method, url, timeout string) *rules.Tenant {
	t.Helper()
	return config(t, fmt.Sprintf(classes[name], method, url, timeout))
}
