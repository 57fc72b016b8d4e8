package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/approvals/rules"
	"github.com/holdpoint/holdpoint/approvals/seal"
	"github.com/holdpoint/holdpoint/bot"
	"github.com/holdpoint/holdpoint/bot/slacksim"
	"github.com/holdpoint/holdpoint/worker"
)

//go:embed demo/holdpoint.yaml
var demoConfig string

// devCmd is `holdpoint dev`: everything in one process, on embedded defaults. It is the product's own code; only the Slack API's
// address, Redis and the data's place differ from production.
type devCmd struct {
	logFlags
	Config      string `help:"Your own configuration instead of the demo's." placeholder:"FILE_OR_DIR"`
	Listen      string `default:"127.0.0.1:8080" help:"Address of the API; the simulator takes the next port."`
	DatabaseURL string `help:"Your Postgres instead of a private one." placeholder:"URL"`
	Data        string `help:"Keep the data here for the next start." placeholder:"DIR"`
	Download    bool   `help:"Download Postgres when this machine has none, without asking."`
}

// dev is one running `holdpoint dev`.
type dev struct {
	cmd    devCmd
	io     streams
	log    *slog.Logger
	dir    string // keyset, secrets, data
	base   string // http://HOST:PORT of the API
	dsn    string
	sim    *slacksim.Sim
	simURL string
	core   atomic.Pointer[approvals.Service] // the page asks from its start on
	agent  atomic.Pointer[demoAgent]         // nil while there is none to run
	tool   *demoTool
	empty  emptyQueues
	undo   []func()
}

func (c devCmd) Run(ctx context.Context, io streams) (err error) {
	if os.Getenv("HOLDPOINT_LOG_FORMAT") == "" {
		c.LogFormat = "text"
	}
	if os.Getenv("HOLDPOINT_LOG_LEVEL") == "" {
		c.LogLevel = "warn"
	}
	d := &dev{cmd: c, io: io, log: c.logger(io.err)}
	defer func() {
		for i := len(d.undo) - 1; i >= 0; i-- {
			d.undo[i]()
		}
	}()
	began := time.Now()
	if err := d.folder(); err != nil {
		return err
	}
	dsn, err := d.postgres(ctx)
	if err != nil {
		return err
	}
	d.dsn = withoutPassword(dsn)
	redis, err := d.redis(ctx)
	if err != nil {
		return err
	}
	api, err := d.listen()
	if err != nil {
		return err
	}
	s, w, err := d.product(ctx, dsn, redis)
	if err != nil {
		return err
	}
	if err := d.configure(ctx, s.core); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return s.run(ctx, api) })
	g.Go(func() error { return w.run(ctx) })
	if d.cmd.Data != "" {
		g.Go(func() error { d.repost(ctx, s.core, w.reposter()); return nil })
	}
	if agent := d.agent.Load(); agent != nil {
		g.Go(func() error { return agent.run(ctx) })
	}
	d.banner(time.Since(began))
	return g.Wait()
}

// folder makes the place of the keyset and of the data: the given one, or a temporary one that goes at the end.
func (d *dev) folder() error {
	if d.cmd.Data != "" {
		dir, err := filepath.Abs(d.cmd.Data)
		if err != nil {
			return err
		}
		d.dir = dir
		return os.MkdirAll(dir, 0o755) //nolint:gosec // Postgres, as another user, must reach its folder in it; secrets are 0600
	}
	dir, remove, err := tempFolder(os.TempDir())
	if err != nil {
		return err
	}
	d.dir = dir
	d.undo = append(d.undo, remove)
	return nil
}

// listen binds the API's address; when the default one is taken, any free port does.
func (d *dev) listen() (net.Listener, error) {
	l, err := net.Listen("tcp", d.cmd.Listen) //nolint:noctx // bound once, closed by the server
	if err != nil && d.cmd.Listen == "127.0.0.1:8080" && d.cmd.Data == "" {
		l, err = net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // bound once, closed by the server
	}
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w (choose another with --listen)", d.cmd.Listen, err)
	}
	d.base = "http://" + l.Addr().String()
	return l, nil
}

// product assembles what `serve` and `worker` run, against the simulator.
func (d *dev) product(ctx context.Context, dsn, redisURL string) (*server, *working, error) {
	keyset := filepath.Join(d.dir, "keyset.json")
	if _, err := os.Stat(keyset); errors.Is(err, os.ErrNotExist) {
		if err := seal.Generate(keyset); err != nil {
			return nil, nil, err
		}
	}
	if err := d.simulator(); err != nil {
		return nil, nil, err
	}
	keys := sealFlags{Keyset: keyset, Secrets: filepath.Join(d.dir, "secrets")}
	slackTo := slackFlags{SlackBotToken: simToken, SlackSigningSecret: simSecret, SlackAppID: simApp, SlackAPIURL: d.simURL + "/api/"}
	pools, err := openPools(ctx, dsn, clickConns, intakeConns, workConns)
	if err != nil {
		return nil, nil, err
	}
	d.undo = append(d.undo, pools.close)
	s, err := newServer(ctx, serveCmd{sealFlags: keys, slackFlags: slackTo, RedisURL: redisURL}, pools, d.log)
	if err != nil {
		return nil, nil, err
	}
	d.undo = append(d.undo, s.close)
	d.core.Store(s.core)
	r, err := worker.OpenRedis(redisURL)
	if err != nil {
		return nil, nil, err
	}
	d.undo = append(d.undo, func() { _ = r.Close() })
	r.AddHook(d.empty)
	w, err := newWorking(workerCmd{sealFlags: keys, slackFlags: slackTo}, pools, r,
		worker.Options{Log: d.log, ExecuteCheck: 10 * time.Millisecond, SweepEvery: 2 * time.Second}, newRegistry())
	if err != nil {
		return nil, nil, err
	}
	d.undo = append(d.undo, w.close)
	mux := http.NewServeMux()
	mux.Handle("/", s.handler)
	mux.Handle("GET /metrics/worker", metricsHandler(w.registry))
	s.handler = mux
	if d.cmd.Config == "" {
		state, err := openDemoState(d.cmd.Data, d.log)
		if err != nil {
			return nil, nil, err
		}
		d.tool = newDemoTool(state, d.sim.Refresh)
		mux.Handle("/demo/", d.tool)
		agent := newDemoAgent(d.base, filepath.Join(d.dir, "webhook-secret"), state, d.sim.Refresh)
		d.agent.Store(agent)
		mux.Handle("POST /demo/resume", agent)
	}
	return s, w, nil
}

// configure applies the configuration and gives the demo agent its key.
func (d *dev) configure(ctx context.Context, core *approvals.Service) error {
	by := approvals.OperatorActor("dev")
	if d.cmd.Config != "" {
		cfg, err := readConfig(d.cmd.Config)
		if err != nil {
			return problems(d.io, err)
		}
		_, err = core.Apply(ctx, cfg, operator()) // somebody's own, which a later start without --config keeps
		return err
	}
	kept, err := d.keeps(ctx, core, by)
	if err != nil {
		return err
	}
	agent := d.agent.Load()
	secret, err := agent.makeSecret()
	if err != nil {
		return err
	}
	if kept != nil {
		if kept.Agents[demoAgentName] == nil {
			d.agent.Store(nil) // this configuration has other agents, so that the demo's has nothing to do
			return nil
		}
		return agent.makeKey(ctx, core, by)
	}
	text := strings.NewReplacer("{{BASE}}", d.base, "{{SECRET}}", secret).Replace(demoConfig)
	cfg, err := rules.Parse([]rules.File{{Name: "demo/holdpoint.yaml", Data: []byte(text)}})
	if err != nil {
		return problems(d.io, err)
	}
	if _, err := core.Apply(ctx, cfg, by); err != nil {
		return err
	}
	return agent.makeKey(ctx, core, by)
}

// demoTenant is the one that the demo's configuration has.
const demoTenant = "acme"

// keeps gives the active configuration where somebody else than dev made it: the demo's rules never replace what a person applied, as
// held calls would run under them. It is nil where the demo's own is to be applied.
func (d *dev) keeps(ctx context.Context, core *approvals.Service, dev approvals.Actor) (*rules.Tenant, error) {
	author, err := core.ActiveAuthor(ctx, demoTenant)
	if errors.Is(err, approvals.ErrNoConfig) || err == nil && author == dev {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	t, revision, err := core.ActiveTenant(ctx, demoTenant)
	if err != nil {
		return nil, err
	}
	_, err = fmt.Fprintf(d.io.out, "\n  keeps revision %d of %s; --config FILE replaces it\n", revision, demoTenant)
	return t, err
}

// repost brings back the cards of what is not over, oldest first: the simulator of the earlier start is gone, and its messages with
// it. The card job finds that out by itself once it is asked to paint.
func (d *dev) repost(ctx context.Context, core *approvals.Service, cards *bot.Syncer) {
	const most = 100
	names, err := core.Tenants(ctx)
	for i := 0; i < len(names) && err == nil; i++ {
		var open []approvals.View
		open, err = core.Open(ctx, names[i], most)
		for _, v := range slices.Backward(open) {
			err = errors.Join(err, patiently(ctx, func() error { return cards.Repaint(ctx, v.ApprovalID) }))
		}
	}
	if err != nil && ctx.Err() == nil {
		d.log.Warn("not every kept card could be posted again; /approvals list has them all", "error", err)
	}
}

// patiently does something again for as long as Slack asks for time.
func patiently(ctx context.Context, do func() error) error {
	for {
		err := do()
		after := bot.RetryAfter(err)
		if after <= 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(after):
		}
	}
}

// withoutPassword is a database's URL fit for a screen.
func withoutPassword(dsn string) string {
	u, err := url.Parse(dsn)
	if err != nil {
		return "as --database-url says"
	}
	return u.Redacted()
}

// banner says where everything is, and that this is no place for production.
func (d *dev) banner(took time.Duration) {
	rows := [][2]string{
		{"Slack (simulated)", d.simURL + "/"},
		{"API", d.base + "/v1/approvals"},
		{"API reference", d.base + "/docs"},
		{"Metrics", d.base + "/metrics  and  /metrics/worker"},
		{"Postgres", d.dsn},
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n  Holdpoint is ready (%.1f s). Open the first address, and click Approve.\n\n", took.Seconds())
	for _, r := range rows {
		fmt.Fprintf(&b, "  %-18s %s\n", r[0], r[1])
	}
	agent := d.agent.Load()
	if agent != nil {
		fmt.Fprintf(&b, "\n  An agent's key, to try the API with:\n  export HOLDPOINT_API=%s HOLDPOINT_KEY=%s\n", d.base, agent.key)
	}
	kept := "  The data goes when this ends (Ctrl-C); --data DIR keeps it."
	switch {
	case d.cmd.DatabaseURL != "":
		kept = "  The data stays in your database."
	case d.cmd.Data != "":
		kept = "  The data is kept in " + d.dir + "."
	}
	if agent == nil {
		kept = "  A key for one of your agents:  go run ./cmd/holdpoint keys create --database-url URL --tenant T --agent A\n" + kept
	}
	b.WriteString(`
  ┌──────────────────────────────────────────────────────────────────┐
  │ Not for production: simulated Slack, in-process Redis, no TLS.   │
  │ The README says how to connect a real workspace.                 │
  └──────────────────────────────────────────────────────────────────┘
` + kept + "\n\n")
	_, _ = fmt.Fprint(d.io.out, b.String())
}
