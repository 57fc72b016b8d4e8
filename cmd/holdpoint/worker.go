package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/bot"
	"github.com/holdpoint/holdpoint/worker"
)

// workerCmd is `holdpoint worker`: outbox relay, Asynq server, sweepers, the directory's mirror. Any number may run.
type workerCmd struct {
	databaseFlags
	sealFlags
	slackFlags
	logFlags
	RedisURL      string `env:"HOLDPOINT_REDIS_URL" help:"Redis URL." placeholder:"URL"`
	MetricsListen string `env:"HOLDPOINT_METRICS_LISTEN" help:"Address of /metrics, /healthz and /readyz." placeholder:"ADDR"`
	// Hidden, since the defaults are right: a shorter lease finds a dead worker sooner and takes over from a slow one wrongly
	// sooner, too. Takeover is always safe; it costs a request under the same key. Tests of crashes use both.
	Lease      time.Duration `env:"HOLDPOINT_LEASE" default:"30s" hidden:"" help:"How long an execution's lease lasts unless it is renewed."`
	Check      time.Duration `name:"execute-check" env:"HOLDPOINT_EXECUTE_CHECK" default:"3ms" hidden:"" help:"How often this process asks Redis for executions."`
	SweepEvery time.Duration `env:"HOLDPOINT_SWEEP_EVERY" default:"5s" hidden:"" help:"How often this process looks for what is due."`
}

// directoryEvery keeps the mirror younger than the 60 s that a claim accepts, so that claims rarely wait for Slack.
const directoryEvery = 40 * time.Second

// Run works until the context ends, then drains.
func (c workerCmd) Run(ctx context.Context, io streams) error {
	switch {
	case c.RedisURL == "":
		return errors.New("no Redis: set --redis-url or HOLDPOINT_REDIS_URL to a Redis URL (redis://HOST:PORT)")
	case c.SlackBotToken == "":
		return errors.New("no Slack: set SLACK_BOT_TOKEN to the bot token (xoxb-…)")
	}
	dsn, err := c.dsn()
	if err != nil {
		return err
	}
	log := c.logger(io.err).With("process", "worker")
	pools, err := openPools(ctx, dsn, 0, 0, workConns)
	if err != nil {
		return err
	}
	defer pools.close()
	pools.clicks, pools.intake = pools.work, pools.work
	if err := ready(ctx, pools.work); err != nil {
		return err
	}
	r, err := worker.OpenRedis(c.RedisURL)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	w, err := newWorking(c, pools, r, worker.Options{Log: log, Lease: c.Lease, ExecuteCheck: c.Check, SweepEvery: c.SweepEvery}, newRegistry())
	if err != nil {
		return err
	}
	defer w.close()
	g, ctx := errgroup.WithContext(ctx)
	if c.MetricsListen != "" {
		l, err := net.Listen("tcp", c.MetricsListen) //nolint:noctx // bound once, closed by the server
		if err != nil {
			return fmt.Errorf("listen on %s: %w", c.MetricsListen, err)
		}
		serveHTTP(ctx, g, w.probes(pools), l, nil)
		log = log.With("metrics", l.Addr().String())
	}
	g.Go(func() error { return w.run(ctx) })
	log.Info("working")
	return g.Wait()
}

// working is one worker process.
type working struct {
	core      *approvals.Service
	worker    *worker.Worker
	directory *bot.Directory
	client    *bot.Client
	cards     *bot.Syncer
	reposter  func() *bot.Syncer // for `dev`
	bell      *worker.Doorbell
	redis     redis.UniversalClient
	registry  *prometheus.Registry
	running   atomic.Bool
	log       *slog.Logger
	metrics   *coreMetrics
}

func newWorking(c workerCmd, pools corePools, r redis.UniversalClient, o worker.Options, registry *prometheus.Registry) (*working, error) {
	sealer, err := c.openSealer()
	if err != nil {
		return nil, err
	}
	metrics := newCoreMetrics(registry)
	client, err := bot.NewClient(bot.ClientOptions{Token: c.SlackBotToken, APIURL: c.SlackAPIURL, Observe: metrics.slackCall})
	if err != nil {
		return nil, err
	}
	w := &working{client: client, redis: r, registry: registry, log: o.Log, metrics: metrics}
	o.Metrics = worker.NewMetrics(registry)
	w.bell = worker.NewDoorbell(r, o.Metrics, o.Log)
	late := &directoryOf{}
	w.core = approvals.New(approvals.Options{
		Clicks: pools.clicks, Intake: pools.intake, Work: pools.work, Sealer: sealer, Directory: late, Metrics: metrics, Log: o.Log, Woke: w.bell.Ring,
	})
	w.directory = bot.NewDirectory(w.core, client, bot.DirectoryOptions{Log: o.Log, Every: directoryEvery})
	late.Directory = w.directory
	o.Secrets = &secretsFor{dir: c.Secrets, core: w.core}
	lock := cardLock(pools.cards)
	// That a card is gone and posted anew is worth a warning, but not where the whole Slack is a new one.
	w.reposter = func() *bot.Syncer { return bot.NewSyncer(w.core, client, bot.SyncOptions{Lock: lock}) }
	w.cards = bot.NewSyncer(w.core, client, bot.SyncOptions{Log: o.Log, Lock: lock, Fallback: func(string) { metrics.refused.WithLabelValues(refusedCard).Inc() }})
	w.worker = worker.New(w.core, limitedCards{w.cards}, r, o)
	return w, nil
}

// limitedCards tells the worker's queue when Slack wants to be asked again.
type limitedCards struct{ cards *bot.Syncer }

func (l limitedCards) Sync(ctx context.Context, id approvals.ID) error {
	err := l.cards.Sync(ctx, id)
	if after := bot.RetryAfter(err); after > 0 {
		return notNow{err, after}
	}
	return err
}

// notNow is an error that says when to come back.
type notNow struct {
	error
	after time.Duration
}

func (n notNow) RetryAfter() time.Duration { return n.after }
func (n notNow) Unwrap() error             { return n.error }

// run runs the worker and the directory until ctx ends.
func (w *working) run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	w.running.Store(true)
	defer w.running.Store(false)
	g.Go(func() error { return w.worker.Run(ctx) })
	g.Go(func() error { return untilDone(ctx, w.directory.Run) })
	g.Go(func() error { return newSafetyWatch(w.core, w.metrics, w.log).run(ctx) })
	return g.Wait()
}

func (w *working) close() {
	w.bell.Close()
	w.client.Close()
}

// probes are the worker's: alive while it runs, ready while Postgres and Redis answer. Nothing is lost without Redis, and a decision
// does not need it, but a worker that hears no ring executes nothing, tells no run and posts no card: it is not ready to work. It
// stays alive: it goes on sweeping, and what waits in the outbox moves when Redis is back.
func (w *working) probes(pools corePools) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metricsHandler(w.registry))
	mux.HandleFunc("GET /healthz", func(rw http.ResponseWriter, _ *http.Request) {
		if !w.running.Load() {
			http.Error(rw, "not running", http.StatusServiceUnavailable)
			return
		}
		_, _ = rw.Write([]byte("ok\n"))
	})
	mux.HandleFunc("GET /readyz", func(rw http.ResponseWriter, r *http.Request) {
		err := ready(r.Context(), pools.work)
		if err == nil {
			if w.redis.Ping(r.Context()).Err() != nil {
				err = errors.New("the Redis server does not answer; what is approved waits in the outbox")
			}
		}
		answerReady(rw, err)
	})
	return mux
}
