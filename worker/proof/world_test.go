package proof

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/approvals/rules"
	"github.com/holdpoint/holdpoint/approvals/seal"
	"github.com/holdpoint/holdpoint/bot"
	"github.com/holdpoint/holdpoint/bot/slacksim"
	"github.com/holdpoint/holdpoint/migrations/pgtest"
	"github.com/holdpoint/holdpoint/worker/redistest"
)

const (
	room          = "C0APPROVALS"
	botToken      = "xoxb-proof-bot-token"
	signingSecret = "proof-signing-secret-41d0"
	hookSecret    = "whsec_aG9sZHBvaW50LXByb29mLWFnZW50LWtleS0wMTIzNDU2Nw=="
	canary        = "canary-8d1f60" // stands in a redacted argument of every call
)

// patience bounds a test: what never comes fails, and does not hang.
const patience = 4 * time.Minute

// world is all that the product meets, and what the checker reads.
type world struct {
	t       testing.TB
	ctx     context.Context
	dir     string
	dsn     string
	redis   *redistest.Server
	sim     *slacksim.Sim
	sinkLog string
	sinkURL string
	keyset  string
	key     string
	db      *pgxpool.Pool
	core    *approvals.Service // the test's own: setting up, looking, reconciling
	client  *bot.Client
	mirror  *bot.Directory
	cards   *bot.Syncer
	base    string // of a serve, as Slack and the agent reach it
	log     transcript

	processDSN, processRedis string // as processes reach them
	toolURL                  string // as the configuration names the tools

	mu        sync.Mutex
	processes []*process
	repeats   bool // webhooks may rightly have been sent again after a 2xx
	lease     time.Duration
}

// newWorld makes a database, a Redis, a Slack with people, a sink, and a configuration that is applied. change may put something
// before the tools.
func newWorld(t testing.TB, change ...func(*world)) *world {
	t.Helper()
	return newWorldFor(t, patience, change...)
}

func newWorldFor(t testing.TB, patience time.Duration, change ...func(*world)) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	w := &world{t: t, ctx: ctx, dsn: pgtest.New(t), redis: redistest.Start(t), dir: t.TempDir(), lease: shortLease}
	w.sinkLog = filepath.Join(w.dir, "sink.jsonl")
	w.sinkURL = w.startSink()
	w.processDSN, w.processRedis, w.toolURL = w.dsn, w.redis.URL(), w.sinkURL
	for _, c := range change {
		c(w)
	}
	w.slack()
	w.keyset = filepath.Join(w.dir, "keyset.json")
	w.must(seal.Generate(w.keyset))
	sealer, err := seal.Open(w.keyset)
	w.must(err)
	w.db, err = approvals.OpenPool(ctx, w.dsn, approvals.PoolOptions{Name: "proof", Max: 6})
	w.must(err)
	t.Cleanup(w.db.Close)
	w.core = approvals.New(approvals.Options{Clicks: w.db, Intake: w.db, Work: w.db, Sealer: sealer, Log: w.logger("test")})
	w.client, err = bot.NewClient(bot.ClientOptions{Token: botToken, APIURL: w.sim.URL() + "/api/"})
	w.must(err)
	t.Cleanup(w.client.Close)
	w.mirror = bot.NewDirectory(w.core, w.client, bot.DirectoryOptions{Log: w.logger("test")})
	w.cards = bot.NewSyncer(w.core, w.client, bot.SyncOptions{Log: w.logger("test"), Lock: lockCards(w.db)})
	w.configure()
	t.Cleanup(func() {
		if t.Failed() {
			w.history()
			w.tell()
		}
	})
	return w
}

// tell shows what the processes said.
func (w *world) tell() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.processes {
		w.t.Logf("%s (%s) said:\n%s", p.name, p.cmd.ProcessState, tail(p.log.String()))
	}
	if to := os.Getenv("HOLDPOINT_PROOF_LOG"); to != "" {
		w.must(os.WriteFile(to, []byte(w.log.String()), 0o600))
	}
	w.t.Logf("this process said:\n%s", tail(w.log.String()))
}

// history shows what became of every approval, from the audit, in seconds since its start.
func (w *world) history() {
	rows, err := w.db.Query(context.WithoutCancel(w.ctx), `SELECT format('%s %s %s %s %s', coalesce(e.approval_id, e.pause_id), round(extract(epoch FROM e.at - min(e.at) OVER ())::numeric, 3), e.kind, coalesce(e.to_status, ''), e.detail)
		FROM audit_event e WHERE coalesce(e.approval_id, e.pause_id) IS NOT NULL ORDER BY e.event_id LIMIT 200`)
	if err != nil {
		w.t.Logf("the audit can't be read: %v", err)
		return
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	w.t.Logf("the audit (%v):\n%s", err, strings.Join(lines, "\n"))
}

func tail(s string) string {
	const most = 6000
	if len(s) > most {
		return "…" + s[len(s)-most:]
	}
	return s
}

func (w *world) slack() {
	w.sim = slacksim.New(slacksim.Options{BotToken: botToken, SigningSecret: signingSecret, Unlimited: true, AckTimeout: 15 * time.Second})
	_, err := w.sim.Listen("127.0.0.1:0")
	w.must(err)
	w.t.Cleanup(func() { _ = w.sim.Close() })
	w.sim.AddChannel(slacksim.Channel{ID: room, Name: "approvals"})
	for _, u := range everybody {
		w.sim.AddUser(slacksim.User{ID: u, Name: strings.ToLower(u[2:]), Admin: u == "U0ROOT"})
	}
	w.sim.AddGroup(slacksim.Group{ID: "S0RELEASE", Name: "Release", Handle: "release", Members: []string{"U0ALICE", "U0BOB"}})
	w.sim.AddGroup(slacksim.Group{ID: "S0FINANCE", Name: "Finance", Handle: "finance", Members: []string{"U0CAROL", "U0DAVE"}})
	w.sim.AddGroup(slacksim.Group{ID: "S0ENG", Name: "Engineering", Handle: "eng", Members: []string{"U0REQ"}})
}

var everybody = []string{"U0ALICE", "U0BOB", "U0CAROL", "U0DAVE", "U0REQ", "U0ROOT", "U0MALLORY"}

// configure applies the tenant's configuration, makes the agent's key and reads the people.
func (w *world) configure() {
	secret := filepath.Join(w.dir, "webhook-secret")
	w.must(os.WriteFile(secret, []byte(hookSecret), 0o600))
	text, err := os.ReadFile("testdata/holdpoint.yaml")
	w.must(err)
	said := strings.NewReplacer("{{SINK}}", w.toolURL, "{{AGENT}}", w.sinkURL, "{{SECRET}}", secret).Replace(string(text))
	cfg, err := rules.Parse([]rules.File{{Name: "holdpoint.yaml", Data: []byte(said)}})
	w.must(err)
	_, err = w.core.Apply(w.ctx, cfg, approvals.OperatorActor("proof"))
	w.must(err)
	w.key, _, err = w.core.CreateKey(w.ctx, "acme", "proof-agent", nil, approvals.OperatorActor("proof"))
	w.must(err)
	w.must(w.mirror.Fresh(w.ctx, "acme", []string{"S0RELEASE", "S0FINANCE", "S0ENG"}, everybody, time.Minute))
}

func (w *world) logger(process string) *slog.Logger {
	return slog.New(slog.NewJSONHandler(&w.log, &slog.HandlerOptions{Level: slog.LevelDebug})).With("process", process)
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// eventually asks again until done, for what nothing announces.
func (w *world) eventually(what string, look func() (seen string, done bool)) {
	w.t.Helper()
	if err := w.until(look); err != "" {
		w.t.Fatalf("waited in vain until %s; last seen: %s", what, err)
	}
}

// until is eventually for goroutines: it gives what was last seen when the time is over.
func (w *world) until(look func() (seen string, done bool)) string {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		seen, done := look()
		if done {
			return ""
		}
		select {
		case <-tick.C:
		case <-w.ctx.Done():
			return seen + " (" + w.ctx.Err().Error() + ")"
		}
	}
}

// value reads one value from the database.
func value[T any](w *world, sql string, args ...any) (v T) {
	w.t.Helper()
	if err := w.db.QueryRow(w.ctx, sql, args...).Scan(&v); err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			w.t.Fatal("the test's time is over")
		}
		w.t.Fatalf("%s: %v", sql, err)
	}
	return v
}
