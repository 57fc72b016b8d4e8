package main

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/approvals/invariants"
	"github.com/holdpoint/holdpoint/approvals/seal"
	"github.com/holdpoint/holdpoint/bot"
	"github.com/holdpoint/holdpoint/bot/slacksim"
	"github.com/holdpoint/holdpoint/migrations/pgtest"
	"github.com/holdpoint/holdpoint/worker"
	"github.com/holdpoint/holdpoint/worker/redistest"
)

// patience bounds every wait of a test: what never comes fails, and does not hang.
const patience = 40 * time.Second

const (
	room        = "C0APPROVALS"
	testToken   = "xoxb-test-bot-token"
	testSigning = "test-signing-secret-7f1c"
)

// world is what Holdpoint meets: a database, a Redis, a Slack with people in it, a tool, an agent; and its files.
type world struct {
	t      *testing.T
	ctx    context.Context
	dsn    string
	redis  *redistest.Server
	sim    *slacksim.Sim
	tool   *target
	agent  *listener
	logs   *journal
	dir    string
	keyset string
	config string // a file
	base   string // of Holdpoint, as Slack and the agent reach it
	key    string
	db     *pgxpool.Pool
}

func newWorld(t *testing.T) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	w := &world{t: t, ctx: ctx, dsn: pgtest.New(t), redis: redistest.Start(t), tool: newTarget(t), agent: newListener(t), logs: &journal{}, dir: t.TempDir()}
	w.sim = slacksim.New(slacksim.Options{BotToken: testToken, SigningSecret: testSigning, Unlimited: true, AckTimeout: 15 * time.Second})
	if _, err := w.sim.Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.sim.Close() })
	people(w.sim)
	w.keyset = filepath.Join(w.dir, "keyset.json")
	w.must(seal.Generate(w.keyset))
	secret := filepath.Join(w.dir, "webhook-secret")
	w.must(os.WriteFile(secret, []byte(hookSecret), 0o600))
	text, err := os.ReadFile("testdata/holdpoint.yaml")
	w.must(err)
	w.config = filepath.Join(w.dir, "holdpoint.yaml")
	w.must(os.WriteFile(w.config, []byte(strings.NewReplacer("{{TOOL}}", w.tool.url, "{{AGENT}}", w.agent.url, "{{SECRET}}", secret).Replace(string(text))), 0o600))
	w.db, err = approvals.OpenPool(ctx, w.dsn, approvals.PoolOptions{Name: "test", Max: 4})
	w.must(err)
	w.ends(w.db)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the log:\n%s", w.logs)
		}
		w.silent("the log", w.logs.String())
	})
	return w
}

// ends lets every story end with the product's own safety queries, over all that it left in the database.
func (w *world) ends(db *pgxpool.Pool) {
	w.t.Cleanup(func() {
		defer db.Close()
		sealer, err := seal.Open(w.keyset)
		w.must(err)
		core := approvals.New(approvals.Options{Clicks: db, Intake: db, Work: db, Sealer: sealer})
		found, err := core.Violations(context.WithoutCancel(w.ctx), 0)
		w.must(err)
		wrong, err := invariants.Broken(context.WithoutCancel(w.ctx), db)
		w.must(err)
		for _, what := range wrong {
			w.t.Error(what)
		}
		for _, v := range found {
			w.t.Errorf("invariant broken: %s: %s", v.Kind, v.ID)
		}
	})
}

// people fills the workspace with those that matter.
func people(sim *slacksim.Sim) {
	sim.AddChannel(slacksim.Channel{ID: room, Name: "approvals"})
	sim.AddChannel(slacksim.Channel{ID: "C0OTHER", Name: "other"})
	for _, u := range []slacksim.User{
		{ID: "U0ALICE", Name: "alice"},
		{ID: "U0BOB", Name: "bob"},
		{ID: "U0CAROL", Name: "carol"},
		{ID: "U0DAVE", Name: "dave"},
		{ID: "U0REQ", Name: "rita"},
		{ID: "U0MALLORY", Name: "mallory"},
		{ID: "U0ROOT", Name: "root", Admin: true},
	} {
		sim.AddUser(u)
	}
	sim.AddGroup(slacksim.Group{ID: "S0RELEASE", Name: "Release managers", Handle: "release-managers", Members: []string{"U0ALICE", "U0BOB"}})
	sim.AddGroup(slacksim.Group{ID: "S0FINANCE", Name: "Finance", Handle: "finance", Members: []string{"U0CAROL", "U0DAVE"}})
}

// silent fails when a text holds what must never leave (I24): keys, secrets, arguments, what a state says.
func (w *world) silent(where, text string) {
	w.t.Helper()
	for what, value := range map[string]string{
		"the agent's key": w.key, "the bot's token": testToken, "the signing secret": testSigning, "the webhook's key": hookSecret,
		"an argument": "2026.07.24", "another argument": "ORD-18472", "a redacted argument": canary, "the state": "$schemaVersion", "a secret of the state": "FAKE-SECRET",
	} {
		if value != "" && strings.Contains(text, value) {
			w.t.Errorf("%s has %s in it", where, what)
		}
	}
}

// canary is the value of a redacted argument.
const canary = "tok-canary-9b1f0c"

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) slackFlags() slackFlags {
	return slackFlags{SlackBotToken: testToken, SlackSigningSecret: testSigning, SlackAppID: "A0HOLDPOINT", SlackAPIURL: w.sim.URL() + "/api/"}
}

// product is Holdpoint in this process, assembled by the same functions as the commands.
type product struct {
	*world
	fronts []string // addresses of the serve instances
	mirror *bot.Directory
	ends   []func() // of the workers that run

	orphans map[string]bool // tasks that a killed worker left in Redis as active, until Asynq finds that out
	next    atomic.Int64
	core    *approvals.Service // an operator's: configuration and keys
}

// start brings up serve and worker instances on one database and one Redis.
func start(t *testing.T, serves, workers int) *product {
	t.Helper()
	p := &product{world: newWorld(t)}
	p.core = approvals.New(approvals.Options{Clicks: p.db, Intake: p.db, Work: p.db})
	p.apply(p.config)
	var err error
	p.key, _, err = p.core.CreateKey(p.ctx, "acme", "release-agent", nil, approvals.OperatorActor("test"))
	p.must(err)
	for range serves {
		p.serve()
	}
	p.balance()
	if serves > 0 {
		everybody := []string{"U0ALICE", "U0BOB", "U0CAROL", "U0DAVE", "U0REQ", "U0ROOT", "U0MALLORY"}
		p.must(p.mirror.Fresh(p.ctx, "acme", []string{"S0RELEASE", "S0FINANCE"}, everybody, time.Minute))
	}
	for range workers {
		p.work()
	}
	return p
}

// one is start with one of each, which is what most stories need.
func one(t *testing.T) *product {
	t.Helper()
	t.Parallel()
	return start(t, 1, 1)
}

func (p *product) apply(path string) {
	p.t.Helper()
	cfg, err := readConfig(path)
	p.must(err)
	_, err = p.core.Apply(p.ctx, cfg, approvals.OperatorActor("test"))
	p.must(err)
}

// serve runs one more `holdpoint serve`.
func (p *product) serve() {
	p.t.Helper()
	log := p.logger("serve")
	pools, err := openPools(p.ctx, p.dsn, clickConns, intakeConns, 0)
	p.must(err)
	own := pools
	pools.work = pools.clicks
	s, err := newServer(p.ctx, serveCmd{sealFlags: sealFlags{Keyset: p.keyset}, slackFlags: p.slackFlags(), RedisURL: p.redis.URL()}, pools, log)
	p.must(err)
	p.mirror = s.directory
	l, err := net.Listen("tcp", "127.0.0.1:0")
	p.must(err)
	p.fronts = append(p.fronts, "http://"+l.Addr().String())
	p.background(func(ctx context.Context) error { return s.run(ctx, l) }, func() {
		s.close()
		own.close()
	})
}

// work runs one more `holdpoint worker`.
func (p *product) work() {
	p.t.Helper()
	pools, err := openPools(p.ctx, p.dsn, 0, 0, workConns)
	p.must(err)
	own := pools
	pools.clicks, pools.intake = pools.work, pools.work
	r, err := worker.OpenRedis(p.redis.URL())
	p.must(err)
	o := worker.Options{Log: p.logger("worker"), SlowCheck: 10 * time.Millisecond, SweepEvery: 200 * time.Millisecond}
	w, err := newWorking(workerCmd{sealFlags: sealFlags{Keyset: p.keyset}, slackFlags: p.slackFlags()}, pools, r, o, newRegistry())
	p.must(err)
	p.ends = append(p.ends, p.background(w.run, func() {
		w.close()
		_ = r.Close()
		own.close()
	}))
}

// stopWork ends the workers as SIGTERM does.
func (p *product) stopWork() {
	for _, end := range p.ends {
		end()
	}
	p.ends = nil
}

func (p *product) logger(process string) *slog.Logger {
	return slog.New(slog.NewJSONHandler(p.logs, &slog.HandlerOptions{Level: slog.LevelDebug})).With("process", process)
}

// background runs something until it is ended, by the test's end at the latest; it drains as on SIGTERM.
func (p *product) background(run func(context.Context) error, after func()) (end func()) {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	end = sync.OnceFunc(func() {
		stop()
		if err := <-ended; err != nil {
			p.t.Errorf("ended with %v", err)
		}
		after()
	})
	p.t.Cleanup(end)
	return end
}

// balance puts one address before all serve instances, which take turns.
func (p *product) balance() {
	if len(p.fronts) == 0 {
		return
	}
	p.base = p.fronts[0]
	if len(p.fronts) > 1 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		p.must(err)
		proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
			to, err := url.Parse(p.fronts[int(p.next.Add(1))%len(p.fronts)])
			if err == nil { // it is an address of our own
				r.SetURL(to)
			}
		}}
		srv := &http.Server{Handler: proxy, ReadHeaderTimeout: patience}
		go func() { _ = srv.Serve(l) }()
		p.t.Cleanup(func() { _ = srv.Close() })
		p.base = "http://" + l.Addr().String()
	}
	p.sim.SetCallbackURL(p.base)
}

// number reads one number from the database.
func (w *world) number(sql string, args ...any) (n int) {
	w.t.Helper()
	w.must(w.db.QueryRow(w.ctx, sql, args...).Scan(&n))
	return n
}

// eventually asks again until ok, for what nothing announces.
func (w *world) eventually(what string, ok func() (seen string, done bool)) {
	w.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		seen, done := ok()
		if done {
			return
		}
		select {
		case <-tick.C:
		case <-w.ctx.Done():
			w.t.Fatalf("waited in vain until %s; last seen: %s", what, seen)
		}
	}
}
