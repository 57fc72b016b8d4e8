package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/approvals/rules"
	"github.com/holdpoint/holdpoint/approvals/seal"
	"github.com/holdpoint/holdpoint/migrations"
)

// Connections per pool: 2–4 a database core is what Postgres does best with, and a burst of one kind must not delay another.
const (
	clickConns  = 6
	intakeConns = 6 // agents' claims and reads too
	workConns   = 8
	shellConns  = 2
)

// corePools are a process's pools; those that it does not need are nil. cards is only locked with.
type corePools struct {
	clicks, intake, work, cards *pgxpool.Pool
}

func (p corePools) close() {
	for _, pool := range []*pgxpool.Pool{p.clicks, p.intake, p.work, p.cards} {
		if pool != nil {
			pool.Close()
		}
	}
}

func openPools(ctx context.Context, dsn string, clicks, intake, work int32) (p corePools, err error) {
	open := func(name string, most int32) *pgxpool.Pool {
		if most == 0 || err != nil {
			return nil
		}
		var pool *pgxpool.Pool
		pool, err = approvals.OpenPool(ctx, dsn, approvals.PoolOptions{Name: name, Max: most})
		return pool
	}
	p.clicks, p.intake, p.work, p.cards = open("clicks", clicks), open("intake", intake), open("work", work), open("cards", cardConns)
	if err != nil {
		p.close()
		return corePools{}, err
	}
	return p, nil
}

// openSealer opens the keyset.
func (f sealFlags) openSealer() (*seal.Sealer, error) {
	if f.Keyset == "" {
		return nil, errors.New("no keyset: set HOLDPOINT_KEYSET to a file made with `holdpoint keys keyset --out FILE`")
	}
	return seal.Open(f.Keyset)
}

// shell is the core for a command that an operator types: one small pool, no Redis (the relay finds what it promised). Commands that
// open or seal nothing need no keyset.
func shell(ctx context.Context, db databaseFlags, keys sealFlags, io streams) (*approvals.Service, func(), error) {
	dsn, err := db.dsn()
	if err != nil {
		return nil, nil, err
	}
	var sealer *seal.Sealer
	if keys.Keyset != "" {
		if sealer, err = keys.openSealer(); err != nil {
			return nil, nil, err
		}
	}
	pool, err := approvals.OpenPool(ctx, dsn, approvals.PoolOptions{Name: "shell", Max: shellConns})
	if err != nil {
		return nil, nil, err
	}
	if err := ready(ctx, pool); err != nil {
		pool.Close()
		return nil, nil, err
	}
	s := approvals.New(approvals.Options{Clicks: pool, Intake: pool, Work: pool, Sealer: sealer, Log: slog.New(slog.NewTextHandler(io.err, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	return s, pool.Close, nil
}

// ready says whether Postgres answers and has this binary's schema; it is all that `readyz` of serve means.
func ready(ctx context.Context, pool *pgxpool.Pool) error {
	var version int64
	err := pool.QueryRow(ctx, `SELECT coalesce(max(version_id) FILTER (WHERE is_applied), 0) FROM goose_db_version`).Scan(&version)
	if err != nil {
		if pingErr := pool.Ping(ctx); pingErr != nil {
			return errors.New("the database does not answer; check HOLDPOINT_DATABASE_URL")
		}
		return migrations.ErrSchema
	}
	if version != migrations.Version {
		return fmt.Errorf("%w (it is at %d, this binary needs %d)", migrations.ErrSchema, version, migrations.Version)
	}
	return nil
}

// secretsFor resolves references at the moment of their use. `env:` and `file:` work while one tenant exists, in the database.
type secretsFor struct {
	dir  string
	core *approvals.Service

	mu   sync.Mutex
	sole bool
	at   time.Time
}

const soleFor = 5 * time.Second

// Resolve implements rules.RefResolver.
func (s *secretsFor) Resolve(tenant string, ref rules.Ref) (string, error) {
	return rules.Secrets{Dir: s.dir, Sole: s.alone()}.Resolve(tenant, ref)
}

func (s *secretsFor) alone() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.at) > soleFor {
		ctx, cancel := context.WithTimeout(context.Background(), soleFor)
		defer cancel()
		names, err := s.core.Tenants(ctx)
		s.sole, s.at = err == nil && len(names) == 1, time.Now()
	}
	return s.sole
}
