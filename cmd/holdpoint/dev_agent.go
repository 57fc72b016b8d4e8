package main

import (
	"bytes"
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/bot/slacksim"
)

const demoAgentName = "demo-agent"

// The demo's runs are real paused states of an SDK (@openai/agents), with ids of their own for each run.
var (
	//go:embed demo/deploy.json
	deployState string
	//go:embed demo/deploy-and-refund.json
	bothState string
)

// scenario is a run that the demo agent can start.
type scenario struct{ id, label, state, question string }

var scenarios = []scenario{
	{id: "deploy", label: "Start a run: deploy a release", state: deployState},
	{id: "both", label: "Start a run: deploy and refund (two people)", state: bothState},
	{id: "ask", label: "Start a run: ask a person", question: "The customer wants the refund in store credit. Is that fine?"},
}

// demoAgent is an agent service: it hands paused runs in and resumes them when it is told.
type demoAgent struct {
	base       string
	key        string
	secretFile string
	secret     string
	changed    func()
	client     *http.Client
	starts     chan string
	state      *demoState
}

// demoRun is one run, as the panel shows it.
type demoRun struct {
	ID     string `json:"id"`
	Status string `json:"status"`
	Tone   string `json:"tone"`
}

func newDemoAgent(base, secretFile string, state *demoState, changed func()) *demoAgent {
	return &demoAgent{
		base: base, secretFile: secretFile, changed: changed, client: &http.Client{Timeout: 30 * time.Second},
		starts: make(chan string, 16), state: state,
	}
}

// makeKey gives the agent its key: that of an earlier start while it is good, else a new one.
func (a *demoAgent) makeKey(ctx context.Context, core *approvals.Service, by approvals.Actor) (err error) {
	a.state.do(func(k *demoKept) bool { a.key = k.Key; return false })
	if a.key != "" {
		var no *approvals.Refusal
		if _, err = core.Authenticate(ctx, a.key); !errors.As(err, &no) {
			return err
		}
	}
	if a.key, _, err = core.CreateKey(ctx, demoTenant, demoAgentName, nil, by); err != nil {
		return err
	}
	a.state.do(func(k *demoKept) bool { k.Key = a.key; return true })
	return nil
}

// makeSecret writes the webhook's secret where the configuration refers to it, or finds the one of an earlier start.
func (a *demoAgent) makeSecret() (string, error) {
	if b, err := os.ReadFile(a.secretFile); err == nil {
		a.secret = strings.TrimSpace(string(b))
		return a.secretFile, nil
	}
	var b [24]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	a.secret = "whsec_" + base64.StdEncoding.EncodeToString(b[:])
	return a.secretFile, os.WriteFile(a.secretFile, []byte(a.secret), 0o600)
}

// start queues a run; the page's button returns at once.
func (a *demoAgent) start(id string) error {
	select {
	case a.starts <- id:
		return nil
	default:
		return errors.New("many runs are starting already")
	}
}

// run starts one run by itself, unless an earlier start did, then one for each request.
func (a *demoAgent) run(ctx context.Context) error {
	a.state.do(func(k *demoKept) bool {
		if !k.Started {
			a.starts <- scenarios[0].id
		}
		return false
	})
	for {
		select {
		case <-ctx.Done():
			return nil
		case id := <-a.starts:
			a.propose(ctx, id)
		}
	}
}

// propose runs the agent to its pause and hands it in. An intake that is not taken is sent again: the same one is safe to repeat.
func (a *demoAgent) propose(ctx context.Context, scenarioID string) {
	var s scenario
	for _, c := range scenarios {
		if c.id == scenarioID {
			s = c
		}
	}
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	suffix := hex.EncodeToString(b[:])
	run := "run_" + suffix
	a.set(run, "starting", "")
	body, err := s.intake(run, suffix)
	if err != nil {
		a.set(run, "could not be written: "+err.Error(), "bad")
		return
	}
	for wait := 200 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		status, answer := a.post(ctx, body)
		if status == http.StatusCreated || status == http.StatusOK {
			a.set(run, "paused, waiting for people", "warn")
			a.state.do(func(k *demoKept) bool { k.Started = true; return true })
			return
		}
		a.set(run, fmt.Sprintf("not taken yet (%d %s)", status, answer), "bad")
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// intake is the request's body: the SDK's state as it is, or calls alone for an agent that keeps its own.
func (s scenario) intake(runID, suffix string) ([]byte, error) {
	run := map[string]any{"id": runID, "agent_revision": "git:demo", "app_state_version": "demo-agent/v1", "requester": "slack:U0REQ"}
	body := map[string]any{"run": run}
	if s.state != "" {
		text := strings.NewReplacer("call_deploy_1", "call_deploy_"+suffix, "call_refund_1", "call_refund_"+suffix).Replace(s.state)
		run["state"] = map[string]any{"format": "openai-agents-js", "sdk_version": "0.20.0", "value": json.RawMessage(text)}
		return json.Marshal(body)
	}
	body["calls"] = []map[string]any{{
		"tool_call_id": "call_ask_" + suffix, "tool": "ask_user", "arguments": map[string]any{"question": s.question}, "reason": "the policy does not say",
	}}
	return json.Marshal(body)
}

func (a *demoAgent) post(ctx context.Context, body []byte) (int, string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.base+"/v1/approvals", bytes.NewReader(body))
	if err != nil {
		return 0, "no request"
	}
	req.Header.Set("Authorization", "Bearer "+a.key)
	req.Header.Set("Content-Type", "application/json")
	resp, err := a.client.Do(req)
	if err != nil {
		return 0, "no answer"
	}
	defer func() { _ = resp.Body.Close() }()
	var p struct{ Code, Detail string }
	_ = json.NewDecoder(io.LimitReader(resp.Body, 64<<10)).Decode(&p)
	return resp.StatusCode, strings.TrimSpace(p.Code + " " + p.Detail)
}

// keepRuns and keepSeen are how much of the past is kept.
const (
	keepRuns = 50
	keepSeen = 500
)

func (a *demoAgent) set(id, status, tone string) {
	a.state.do(func(k *demoKept) bool { k.set(id, status, tone); return true })
	a.changed()
}

func (k *demoKept) set(id, status, tone string) {
	for i := range k.Runs {
		if k.Runs[i].ID == id {
			k.Runs[i] = demoRun{id, status, tone}
			return
		}
	}
	k.Runs = append(k.Runs, demoRun{id, status, tone})
	k.Runs = k.Runs[max(0, len(k.Runs)-keepRuns):]
}

// items are the runs as the panel shows them, the newest first.
func (a *demoAgent) items() (out []slacksim.PanelItem) {
	a.state.do(func(k *demoKept) bool {
		for i := len(k.Runs) - 1; i >= 0 && len(out) < 8; i-- {
			out = append(out, slacksim.PanelItem{Label: k.Runs[i].ID, Value: k.Runs[i].Status, Tone: k.Runs[i].Tone})
		}
		return false
	})
	return out
}

// ServeHTTP is the agent's webhook: the run goes on here. The signature is verified before anything is read.
func (a *demoAgent) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 32<<20))
	if err != nil {
		http.Error(w, "the body could not be read", http.StatusBadRequest)
		return
	}
	hook, err := standardwebhooks.NewWebhook(a.secret)
	if err != nil || hook.Verify(body, r.Header) != nil {
		http.Error(w, "the signature is wrong", http.StatusUnauthorized)
		return
	}
	var m struct {
		Type string
		Data struct {
			Run       struct{ ID string }
			Decisions []struct{ Tool, Decision, Outcome string }
		}
	}
	if err := json.Unmarshal(body, &m); err != nil {
		http.Error(w, "not a resume message", http.StatusBadRequest)
		return
	}
	a.resume(r.Header.Get(standardwebhooks.HeaderWebhookID), m.Data.Run.ID, m.Type, func() []string {
		words := make([]string, 0, len(m.Data.Decisions))
		for _, d := range m.Data.Decisions {
			words = append(words, d.Tool+": "+d.Decision+", "+d.Outcome)
		}
		return words
	}())
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(`{"agent_revision":"git:demo"}`))
}

// resume goes on with a run, once: a repeat of its message is acknowledged and changes nothing.
func (a *demoAgent) resume(webhookID, runID, kind string, words []string) {
	verb, tone := "resumed ✔ ", "good"
	if kind != "run.resume" {
		verb, tone = "stopped: ", "warn"
	}
	a.state.do(func(k *demoKept) bool {
		if slices.Contains(k.Seen, webhookID) {
			return false
		}
		k.Seen = append(k.Seen, webhookID)
		k.Seen = k.Seen[max(0, len(k.Seen)-keepSeen):]
		k.set(runID, verb+strings.Join(words, "; "), tone)
		return true
	})
	a.changed()
}
