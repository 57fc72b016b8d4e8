package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/bot"
	"github.com/holdpoint/holdpoint/bot/intake"
	"github.com/holdpoint/holdpoint/interactions"
	"github.com/holdpoint/holdpoint/worker"
)

// serveCmd is `holdpoint serve`: the agents' API and Slack's callbacks. Any number may run.
type serveCmd struct {
	databaseFlags
	sealFlags
	slackFlags
	logFlags
	RedisURL      string `env:"HOLDPOINT_REDIS_URL" help:"Redis URL. A decision does not need it: it only rings the worker sooner." placeholder:"URL"`
	Listen        string `env:"HOLDPOINT_LISTEN" default:"127.0.0.1:8080" help:"Address of the API and of Slack's callbacks."`
	MetricsListen string `env:"HOLDPOINT_METRICS_LISTEN" help:"Address of /metrics alone; default: with the API." placeholder:"ADDR"`
}

// Run serves until the context ends, then drains.
func (c serveCmd) Run(ctx context.Context, io streams) error {
	if err := c.missing(); err != nil {
		return err
	}
	dsn, err := c.dsn()
	if err != nil {
		return err
	}
	log := c.logger(io.err).With("process", "serve")
	pools, err := openPools(ctx, dsn, clickConns, intakeConns, 0)
	if err != nil {
		return err
	}
	defer pools.close()
	pools.work = pools.intake // agents' claims and reports, the directory's mirror: nothing of theirs queues before a click
	if err := ready(ctx, pools.clicks); err != nil {
		return err
	}
	s, err := newServer(ctx, c, pools, log)
	if err != nil {
		return err
	}
	defer s.close()
	listener, err := net.Listen("tcp", c.Listen) //nolint:noctx // bound once, closed by the server
	if err != nil {
		return fmt.Errorf("listen on %s: %w", c.Listen, err)
	}
	log.Info("serving", "address", listener.Addr().String())
	return s.run(ctx, listener)
}

// server is one serve process: its handlers and what runs beside them.
type server struct {
	core      *approvals.Service
	handler   http.Handler
	slack     *interactions.Handler
	directory *bot.Directory
	socket    func(context.Context) error
	drain     chan struct{}
	closers   []func()
	registry  *prometheus.Registry
	metricsAt string
	log       *slog.Logger
}

func newServer(ctx context.Context, c serveCmd, pools corePools, log *slog.Logger) (*server, error) {
	sealer, err := c.openSealer()
	if err != nil {
		return nil, err
	}
	s := &server{drain: make(chan struct{}), registry: newRegistry(), metricsAt: c.MetricsListen, log: log}
	metrics := newCoreMetrics(s.registry)
	client, err := bot.NewClient(bot.ClientOptions{Token: c.SlackBotToken, APIURL: c.SlackAPIURL, Observe: metrics.slackCall})
	if err != nil {
		return nil, err
	}
	s.closers = append(s.closers, client.Close)
	ringing := worker.NewMetrics(s.registry) // without Redis, too: both processes have the contract's names, at zero where nothing counts them
	o := approvals.Options{Clicks: pools.clicks, Intake: pools.intake, Work: pools.work, Sealer: sealer, Metrics: metrics, Log: log}
	if c.RedisURL != "" {
		r, err := worker.OpenRedis(c.RedisURL)
		if err != nil {
			return nil, err
		}
		bell := worker.NewDoorbell(r, ringing, log)
		o.Woke = bell.Ring
		s.closers = append(s.closers, func() { _ = r.Close() }, bell.Close)
	}
	// The directory writes through the core and the core asks the directory: the second is told of the first when both exist.
	lateDirectory := &directoryOf{}
	o.Directory = lateDirectory
	s.core = approvals.New(o)
	s.directory = bot.NewDirectory(s.core, client, bot.DirectoryOptions{Log: log})
	lateDirectory.Directory = s.directory
	s.slack, err = interactions.New(s.core, interactions.Options{
		SigningSecrets: c.signingSecrets(), AppID: c.appID(), Slack: client, Cards: bot.NewSyncer(s.core, client, bot.SyncOptions{Log: log, Lock: cardLock(pools.cards)}),
		Directory: s.directory, Log: log,
	})
	if err != nil {
		return nil, err
	}
	if c.SlackAppToken != "" {
		s.socket = func(ctx context.Context) error {
			return s.slack.Socket(ctx, interactions.SocketOptions{AppToken: c.SlackAppToken, APIURL: c.SlackAPIURL})
		}
	}
	s.handler = s.routes(ctx, pools)
	return s, nil
}

// directoryOf breaks the ring between the core and the directory.
type directoryOf struct{ *bot.Directory }

func (s *server) routes(ctx context.Context, pools corePools) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/slack/", s.slack)
	mux.Handle("/", intake.New(s.core, intake.Options{Log: s.log, Drain: s.drain, MaxBody: s.bodyLimit(ctx)}))
	mux.Handle("GET /healthz", bodyless(http.HandlerFunc(alive)))
	mux.Handle("GET /readyz", bodyless(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answerReady(w, ready(r.Context(), pools.clicks)) })))
	if s.metricsAt == "" {
		mux.Handle("GET /metrics", bodyless(metricsHandler(s.registry)))
	}
	return mux
}

// bodyLimit leaves room around the largest state that a tenant allows (limits.state_bytes) when this process starts. 0: the default.
func (s *server) bodyLimit(ctx context.Context) int64 {
	const room = 8 << 20
	names, err := s.core.Tenants(ctx)
	if err != nil {
		return 0
	}
	var limit int64
	for _, name := range names {
		if t, _, err := s.core.ActiveTenant(ctx, name); err == nil {
			limit = max(limit, t.Limits.StateBytes+room)
		}
	}
	return limit
}

// bodyless serves a route that reads no body; a request that announces one is told so and hung up on, so that it cannot hold a
// connection by sending it slowly.
func bodyless(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			w.Header().Set("Connection", "close")
			_ = http.NewResponseController(w).SetReadDeadline(time.Now())
			http.Error(w, "this route takes no body", http.StatusBadRequest)
			return
		}
		h.ServeHTTP(w, r)
	})
}

func alive(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) }

func answerReady(w http.ResponseWriter, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	_, _ = w.Write([]byte("ready\n"))
}

func (s *server) close() {
	for i := len(s.closers) - 1; i >= 0; i-- {
		s.closers[i]()
	}
}

const drainFor = 20 * time.Second

// untilDone runs a loop whose error counts only while nobody has ended it.
func untilDone(ctx context.Context, loop func(context.Context) error) error {
	if err := loop(ctx); ctx.Err() == nil {
		return err
	}
	return nil
}

// run serves until ctx ends: then no new connection is taken, long polls end with what is known, requests under way and what follows
// answers are given drainFor.
func (s *server) run(ctx context.Context, listener net.Listener) error {
	g, ctx := errgroup.WithContext(ctx)
	serveHTTP(ctx, g, s.handler, listener, s.drain)
	if s.metricsAt != "" {
		mux := http.NewServeMux()
		mux.Handle("GET /metrics", metricsHandler(s.registry))
		l, err := net.Listen("tcp", s.metricsAt) //nolint:noctx // bound once, closed by the server
		if err != nil {
			return fmt.Errorf("listen on %s: %w", s.metricsAt, err)
		}
		serveHTTP(ctx, g, mux, l, nil)
	}
	if s.socket != nil {
		g.Go(func() error { return untilDone(ctx, s.socket) })
	}
	// Slack's events name people; which of them matter, a serve process learns by mirroring too.
	g.Go(func() error { return untilDone(ctx, s.directory.Run) })
	err := g.Wait()
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainFor)
	defer cancel()
	return errors.Join(err, s.slack.Done(end))
}

// serveHTTP runs a server in g until ctx ends, then drains it. drain, when given, is closed first.
func serveHTTP(ctx context.Context, g *errgroup.Group, h http.Handler, l net.Listener, drain chan struct{}) {
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10}
	g.Go(func() error {
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	g.Go(func() error {
		<-ctx.Done()
		if drain != nil {
			close(drain)
		}
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainFor)
		defer cancel()
		return srv.Shutdown(end)
	})
}
