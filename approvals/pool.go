package approvals

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// statements are all the SQL texts of the package. They are prepared when a connection opens, because a cold batch costs twice
// the round trips; a test prepares each against the migrated schema.
var statements []string

// statement registers a SQL text for preparation.
func statement(sql string) string {
	statements = append(statements, sql)
	return sql
}

var (
	sqlBegin  = statement(`BEGIN`)
	sqlCommit = statement(`COMMIT`)
)

// PoolOptions shape one of a process's pools. Clicks, intake and work have a small pool each, so that a burst of one can't
// delay another; more connections than 2–4 a database core hurt.
type PoolOptions struct {
	Name   string // application_name in pg_stat_activity
	Max    int32
	Tracer pgx.QueryTracer // counts round trips in tests; nil otherwise
}

// OpenPool opens a pool whose connections have Holdpoint's settings: lock_timeout 2 s, an idle transaction ends after 2 s (a
// stopped process frees its locks), statements prepared.
func OpenPool(ctx context.Context, dsn string, o PoolOptions) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("the database URL cannot be read") // pgx's own error may repeat the password
	}
	cfg.MaxConns = o.Max
	cfg.ConnConfig.Tracer = o.Tracer
	p := cfg.ConnConfig.RuntimeParams
	p["application_name"] = "holdpoint " + o.Name
	p["lock_timeout"] = "2s"
	p["idle_in_transaction_session_timeout"] = "2s"
	p["statement_timeout"] = "15s"
	p["timezone"] = "UTC"
	p["jit"] = "off"
	cfg.AfterConnect = prepareAll
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open pool %s: %w", o.Name, err)
	}
	return pool, nil
}

// prepareAll pipelines nothing: a connection lives long, and a statement that does not fit the schema must name itself. A schema
// that is missing altogether is not an error here: `readyz` and `migrate` say that better.
func prepareAll(ctx context.Context, c *pgx.Conn) error {
	var ready bool
	if err := c.QueryRow(ctx, `SELECT to_regclass('approval_request') IS NOT NULL`).Scan(&ready); err != nil || !ready {
		return err
	}
	for _, sql := range statements {
		if _, err := c.Prepare(ctx, sql, sql); err != nil {
			return fmt.Errorf("prepare %.60q: %w", sql, err)
		}
	}
	return nil
}
