package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/approvals/seal"
	"github.com/holdpoint/holdpoint/bot"
	"github.com/holdpoint/holdpoint/worker"
)

// checkCmd is the doctor. Each line is ok, warn or fail, with the fix; a fail makes the exit code 1.
type checkCmd struct {
	databaseFlags
	sealFlags
	slackFlags
	RedisURL string `env:"HOLDPOINT_REDIS_URL" help:"Redis URL." placeholder:"URL"`
}

// doctor writes findings.
type doctor struct {
	io     streams
	failed bool
}

func (d *doctor) ok(what, detail string) {
	_, _ = fmt.Fprintf(d.io.out, "ok    %-14s %s\n", what, detail)
}

func (d *doctor) warn(what, detail string) {
	_, _ = fmt.Fprintf(d.io.out, "warn  %-14s %s\n", what, detail)
}

func (d *doctor) fail(what, detail string) {
	d.failed = true
	_, _ = fmt.Fprintf(d.io.out, "fail  %-14s %s\n", what, detail)
}

// Run looks at everything that serve and worker need, in the order in which they need it.
func (c checkCmd) Run(ctx context.Context, io streams) error {
	d := &doctor{io: io}
	sealer := c.keyset(d)
	c.redis(ctx, d)
	client := c.slack(ctx, d)
	c.database(ctx, d, client, sealer)
	if d.failed {
		return errFailed
	}
	return nil
}

// keyset gives the sealer, nil where there is none that works.
func (c checkCmd) keyset(d *doctor) *seal.Sealer {
	sealer, err := c.openSealer()
	if err == nil {
		err = sealer.Check()
	}
	if err != nil {
		d.fail("keyset", err.Error())
		return nil
	}
	d.ok("keyset", "seals and opens")
	return sealer
}

// opens holds the keyset against what the database has: another keyset that works fails every decision.
func opens(ctx context.Context, d *doctor, core *approvals.Service) {
	held, err := core.CheckKeyset(ctx)
	switch {
	case errors.Is(err, approvals.ErrOtherKeyset):
		d.fail("keyset", "doesn't open what this database holds; HOLDPOINT_KEYSET must be the keyset that serve and worker sealed with, or one rotated from it")
	case err != nil:
		d.fail("keyset", "whether it opens what the database holds cannot be said: "+err.Error())
	case held:
		d.ok("keyset", "opens what this database holds")
	}
}

func (c checkCmd) redis(ctx context.Context, d *doctor) {
	if c.RedisURL == "" {
		d.fail("redis", "set HOLDPOINT_REDIS_URL; the worker needs it")
		return
	}
	r, err := worker.OpenRedis(c.RedisURL)
	if err != nil {
		d.fail("redis", err.Error())
		return
	}
	defer func() { _ = r.Close() }()
	if err := r.Ping(ctx).Err(); err != nil {
		d.fail("redis", "does not answer; check HOLDPOINT_REDIS_URL")
		return
	}
	policy, err := r.ConfigGet(ctx, "maxmemory-policy").Result()
	switch {
	case err != nil:
		d.warn("redis", "answers; its eviction policy cannot be read: make sure that it is noeviction")
	case policy["maxmemory-policy"] != "noeviction":
		d.warn("redis", "evicts keys ("+policy["maxmemory-policy"]+"); nothing is lost, but approved calls start late: set maxmemory-policy noeviction")
	default:
		d.ok("redis", "answers, evicts nothing")
	}
}

func (c checkCmd) database(ctx context.Context, d *doctor, client *bot.Client, sealer *seal.Sealer) {
	dsn, err := c.dsn()
	if err != nil {
		d.fail("database", err.Error())
		return
	}
	pool, err := approvals.OpenPool(ctx, dsn, approvals.PoolOptions{Name: "check", Max: shellConns})
	if err != nil {
		d.fail("database", err.Error())
		return
	}
	defer pool.Close()
	if err := ready(ctx, pool); err != nil {
		d.fail("database", err.Error())
		return
	}
	d.ok("database", "answers, schema is current")
	skew(ctx, d, pool)
	core := approvals.New(approvals.Options{Clicks: pool, Intake: pool, Work: pool, Sealer: sealer})
	if sealer != nil {
		opens(ctx, d, core)
	}
	names, err := core.Tenants(ctx)
	if err != nil || len(names) == 0 {
		d.fail("configuration", "there is none; run `holdpoint config apply`")
		return
	}
	for _, name := range names {
		c.tenant(ctx, d, core, client, name, len(names) == 1)
	}
}

// skew compares this machine's clock with the database's: deadlines use the database's, signatures of Slack this one's.
func skew(ctx context.Context, d *doctor, pool *pgxpool.Pool) {
	var now time.Time
	before := time.Now()
	if err := pool.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&now); err != nil {
		d.fail("clock", "the database's clock cannot be read")
		return
	}
	judgeSkew(d, now.Sub(before.Add(time.Since(before)/2)).Abs())
}

func judgeSkew(d *doctor, off time.Duration) {
	switch {
	case off > time.Minute:
		d.fail("clock", fmt.Sprintf("differs from the database's by %s; Slack's signatures are valid for 5 min: run NTP", off.Round(time.Second)))
	case off > 2*time.Second:
		d.warn("clock", fmt.Sprintf("differs from the database's by %s", off.Round(time.Millisecond)))
	default:
		d.ok("clock", "agrees with the database's")
	}
}
