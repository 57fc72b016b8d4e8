package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/approvals/rules"
	"github.com/holdpoint/holdpoint/worker/tools"
)

// Core is what a worker needs of *approvals.Service.
type Core interface {
	Outbox
	Ledger
	Resumes
	Sweeps
}

var _ Core = (*approvals.Service)(nil)

// Options are a worker's settings; zero fields take the defaults given.
type Options struct {
	Log     *slog.Logger      // nil: silent
	Metrics *Metrics          // nil: counted nowhere
	Secrets rules.RefResolver // for tools' headers and webhooks' keys
	Egress  tools.Egress
	Tool    tools.Tool       // nil: a tools.Executor with Secrets and Egress
	Now     func() time.Time // of a webhook's timestamp; nil: time.Now

	Concurrency      int           // executions at a time; 32
	SlowConcurrency  int           // cards and resumes at a time; 16, three quarters of them cards at most
	Lease            time.Duration // of an execution, renewed while it runs; 30 s
	ExecuteCheck     time.Duration // between looks for executions, on average; 3 ms
	SlowCheck        time.Duration // between looks for cards and resumes; 50 ms
	PollOutbox       time.Duration // the relay's backstop; 50 ms
	SweepEvery       time.Duration // ± an eighth; 5 s
	ShutdownTimeout  time.Duration // for tasks under way, then they are cut off; 20 s
	NoRelay, NoSweep bool          // for a process that only executes, and for tests
}

func (o *Options) fill() {
	durations := []struct {
		field *time.Duration
		value time.Duration
	}{
		{&o.Lease, 30 * time.Second},
		{&o.ExecuteCheck, 3 * time.Millisecond},
		{&o.SlowCheck, 50 * time.Millisecond},
		{&o.PollOutbox, 50 * time.Millisecond},
		{&o.SweepEvery, 5 * time.Second},
		{&o.ShutdownTimeout, 20 * time.Second},
	}
	for _, d := range durations {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	if o.Concurrency <= 0 {
		o.Concurrency = 32
	}
	if o.SlowConcurrency <= 0 {
		o.SlowConcurrency = 16
	}
	if o.Metrics == nil {
		o.Metrics = NewMetrics(nil)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Tool == nil {
		o.Tool = &tools.Executor{Secrets: o.Secrets, Egress: o.Egress}
	}
	o.Log = logOr(o.Log)
}

// Worker carries out what the core's commits promised. Make one with [New].
type Worker struct {
	o       Options
	redis   redis.UniversalClient
	handler *handler
	relay   *relay
	sweeper *sweeper
	hard    context.CancelFunc
	words   time.Duration // lastWords
}

// New makes a worker on a Redis from [OpenRedis]. It connects nowhere yet.
func New(core Core, cards Cards, r redis.UniversalClient, o Options) *Worker {
	o.fill()
	base, hard := context.WithCancel(context.Background())
	log := o.Log.With("component", "worker")
	return &Worker{
		o: o, redis: r, hard: hard, words: lastWords,
		relay:   &relay{outbox: core, queue: newQueue(r, o.Metrics), poll: o.PollOutbox, log: log, metrics: o.Metrics},
		sweeper: &sweeper{core: core, every: o.SweepEvery, log: log, metrics: o.Metrics},
		handler: &handler{
			execute: &executor{core: core, tool: o.Tool, holder: holder(), lease: o.Lease, log: log, metrics: o.Metrics},
			courier: &courier{core: core, secrets: o.Secrets, egress: o.Egress, now: o.Now, log: log, metrics: o.Metrics},
			cards:   cards, cardSem: make(chan struct{}, max(o.SlowConcurrency*3/4, 1)),
			base: base, running: newInflight(), log: log, metrics: o.Metrics,
		},
	}
}

// holder names this process in the ledger, for people who read it.
func holder() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s/%d/%s", host, os.Getpid(), uuid.NewString()[:8])
}

// lastWords is how long outcomes may still be recorded after the hard stop.
const lastWords = 5 * time.Second

// ErrCutOff says that tasks were still running when the worker had to end. Nothing is lost:
// their leases run out, and others take over.
var ErrCutOff = errors.New("the worker ended with tasks under way")

// Run works until the context ends, then drains: nothing new is begun, what is under way
// has ShutdownTimeout to finish, then its context ends and its outcome is recorded. Redis
// may be away at any time, also at the start. Run may be called once; it returns
// [ErrCutOff] or nil.
func (w *Worker) Run(ctx context.Context) error {
	defer w.hard()
	servers := []*asynq.Server{
		w.server(map[string]int{"execute": 1}, w.o.Concurrency, w.o.ExecuteCheck),
		w.server(map[string]int{"resume": 1, "card": 1}, w.o.SlowConcurrency, w.o.SlowCheck),
	}
	for _, s := range servers {
		if err := s.Start(w.handler); err != nil {
			return fmt.Errorf("start the task server: %w", err)
		}
	}
	var loops sync.WaitGroup
	if !w.o.NoRelay {
		loops.Go(func() { w.relay.run(ctx) })
	}
	if !w.o.NoSweep {
		loops.Go(func() { w.sweeper.run(ctx) })
	}
	w.o.Log.Info("worker runs", "concurrency", w.o.Concurrency, "lease", w.o.Lease)
	<-ctx.Done()
	return w.drain(servers, &loops)
}

// drain ends everything that Run began.
func (w *Worker) drain(servers []*asynq.Server, loops *sync.WaitGroup) error {
	w.o.Log.Info("worker drains", "for", w.o.ShutdownTimeout)
	stop := time.AfterFunc(w.o.ShutdownTimeout, w.hard)
	defer stop.Stop()
	last := time.NewTimer(w.o.ShutdownTimeout + w.words)
	defer last.Stop()
	var down sync.WaitGroup
	for _, s := range servers {
		down.Go(s.Shutdown) // gives tasks back to Redis that outlast the timeout
	}
	quiet := w.handler.running.close()
	down.Wait()
	loops.Wait()
	select {
	case <-quiet:
		w.o.Log.Info("worker ended")
		return nil
	case <-last.C:
		return ErrCutOff
	}
}

func (w *Worker) server(served map[string]int, concurrency int, check time.Duration) *asynq.Server {
	queues := make(map[string]int, len(served))
	for name, weight := range served {
		queues[kinds[name].queue] = weight
	}
	return asynq.NewServerFromRedisClient(w.redis, asynq.Config{
		Concurrency: concurrency, Queues: queues, TaskCheckInterval: check, DelayedTaskCheckInterval: time.Second,
		RetryDelayFunc: retryDelay, IsFailure: isFailure, ShutdownTimeout: w.o.ShutdownTimeout,
		BaseContext: func() context.Context { return w.handler.base },
		Logger:      asynqLog{w.o.Log.With("component", "asynq")}, LogLevel: asynq.InfoLevel,
	})
}

// inflight counts handlers under way: Asynq stops counting those whose task it lost.
type inflight struct {
	mu     sync.Mutex
	n      int
	closed bool
	quiet  chan struct{}
}

func newInflight() *inflight { return &inflight{quiet: make(chan struct{})} }

// enter begins a handling; false after close.
func (f *inflight) enter() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return false
	}
	f.n++
	return true
}

func (f *inflight) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n--
	if f.closed && f.n == 0 {
		close(f.quiet)
	}
}

// close lets nothing more begin; the channel closes when all has ended.
func (f *inflight) close() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	if f.n == 0 {
		close(f.quiet)
	}
	return f.quiet
}
