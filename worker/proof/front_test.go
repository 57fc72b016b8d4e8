package proof

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/approvals/rules"
	"github.com/holdpoint/holdpoint/approvals/seal"
	"github.com/holdpoint/holdpoint/bot"
	"github.com/holdpoint/holdpoint/bot/intake"
	"github.com/holdpoint/holdpoint/interactions"
	"github.com/holdpoint/holdpoint/worker"
)

// part is a serve or a worker inside of this process, for tests that kill others or that need the race detector. It is put
// together like the commands do it.
type part struct {
	core *approvals.Service
	end  func() // drains, once
}

func (w *world) open(name string, n int32) *pgxpool.Pool {
	w.t.Helper()
	pool, err := approvals.OpenPool(context.WithoutCancel(w.ctx), w.processDSN, approvals.PoolOptions{Name: name, Max: n})
	w.must(err)
	return pool
}

// late breaks the ring between core and directory.
type late struct{ *bot.Directory }

// lockCards is the product's lock of a card over all processes (cmd/holdpoint): the same key, so that parts and processes respect
// each other.
func lockCards(pool *pgxpool.Pool) bot.Locker {
	return func(ctx context.Context, id approvals.ID) (func(), error) {
		tx, err := pool.Begin(ctx)
		if err != nil {
			return nil, err
		}
		unlock := func() {
			end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
			defer cancel()
			_ = tx.Rollback(end) // nothing was written
		}
		_, err = tx.Exec(ctx, `SET LOCAL idle_in_transaction_session_timeout = '30s'`)
		if err == nil {
			_, err = tx.Exec(ctx, `SELECT pg_advisory_xact_lock(1751543908, hashtext($1))`, id.String())
		}
		if err != nil {
			unlock()
			return nil, err
		}
		return unlock, nil
	}
}

// assemble makes a core with its directory and its doorbell.
func (w *world) assemble(name string, conns int32, every time.Duration) (core *approvals.Service, client *bot.Client, cards *bot.Syncer, directory *bot.Directory, closeAll func()) {
	w.t.Helper()
	pool := w.open(name, conns)
	sealer, err := seal.Open(w.keyset)
	w.must(err)
	client, err = bot.NewClient(bot.ClientOptions{Token: botToken, APIURL: w.sim.URL() + "/api/"})
	w.must(err)
	r, err := worker.OpenRedis(w.processRedis)
	w.must(err)
	bell := worker.NewDoorbell(r, nil, w.logger(name))
	ring := &late{}
	core = approvals.New(approvals.Options{Clicks: pool, Intake: pool, Work: pool, Sealer: sealer, Directory: ring, Log: w.logger(name), Woke: bell.Ring})
	directory = bot.NewDirectory(core, client, bot.DirectoryOptions{Log: w.logger(name), Every: every})
	ring.Directory = directory
	locks := w.open(name+" cards", 4)
	cards = bot.NewSyncer(core, client, bot.SyncOptions{Log: w.logger(name), Lock: lockCards(locks)})
	return core, client, cards, directory, func() {
		locks.Close()
		bell.Close()
		_ = r.Close()
		client.Close()
		pool.Close()
	}
}

// front is a serve in this process.
func (w *world) front() *part {
	w.t.Helper()
	core, client, cards, directory, closeAll := w.assemble("serve", 8, 4*time.Minute)
	slack, err := interactions.New(core, interactions.Options{
		SigningSecrets: [][]byte{[]byte(signingSecret)}, AppID: "A0HOLDPOINT", Slack: client,
		Cards: cards, Directory: directory, Log: w.logger("serve"),
	})
	w.must(err)
	drain := make(chan struct{})
	mux := http.NewServeMux()
	mux.Handle("/slack/", slack)
	mux.Handle("/", intake.New(core, intake.Options{Log: w.logger("serve"), Drain: drain}))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	w.must(err)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	ctx, stop := context.WithCancel(context.WithoutCancel(w.ctx))
	var all sync.WaitGroup
	all.Go(func() { _ = server.Serve(l) })
	all.Go(func() { _ = directory.Run(ctx) })
	w.base = "http://" + l.Addr().String()
	w.sim.SetCallbackURL(w.base)
	p := &part{core: core, end: sync.OnceFunc(func() {
		close(drain)
		stop()
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
		defer cancel()
		if err := server.Shutdown(end); err != nil {
			w.t.Errorf("serve does not drain: %v", err)
		}
		if err := slack.Done(end); err != nil {
			w.t.Errorf("Slack's side does not drain: %v", err)
		}
		all.Wait()
		closeAll()
	})}
	w.t.Cleanup(p.end)
	return p
}

// hands is a worker in this process.
func (w *world) hands(o worker.Options) *part {
	w.t.Helper()
	core, _, cards, directory, closeAll := w.assemble("worker", 6, 40*time.Second)
	r, err := worker.OpenRedis(w.processRedis)
	w.must(err)
	o.Log, o.Secrets = w.logger("worker"), rules.Secrets{Sole: true}
	run := worker.New(core, cards, r, o)
	ctx, stop := context.WithCancel(context.WithoutCancel(w.ctx))
	var all sync.WaitGroup
	all.Go(func() {
		if err := run.Run(ctx); err != nil {
			w.t.Errorf("a worker ended with %v", err)
		}
	})
	all.Go(func() { _ = directory.Run(ctx) })
	p := &part{core: core, end: sync.OnceFunc(func() {
		stop()
		all.Wait()
		_ = r.Close()
		closeAll()
	})}
	w.t.Cleanup(p.end)
	return p
}
