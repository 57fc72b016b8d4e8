// Package migrations holds Holdpoint's Postgres schema as embedded SQL, applied in order by goose.
//
// Invariant: the triggers in these files refuse what the approvals package must never do (a transition outside the table, a changed
// proposal, an edited vote), so that a defect above them fails loudly instead of executing.
package migrations

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	_ "github.com/jackc/pgx/v5/stdlib" // the "pgx" driver for database/sql, which goose speaks
	"github.com/pressly/goose/v3"
)

//go:embed *.sql
var files embed.FS

// Files returns the embedded SQL files, so that a test database can be keyed by their content.
func Files() fs.FS { return files }

// Version is the newest schema version this binary knows. A process whose database is older or newer is not ready.
const Version int64 = 1

// ErrSchema says that the database's schema is not the one this binary was built for.
var ErrSchema = errors.New("the database schema is not at this version; run `holdpoint migrate up`")

// State is one migration and whether it is applied.
type State struct {
	Version int64
	Name    string
	Applied bool
}

func provider(dsn string) (*goose.Provider, *sql.DB, error) {
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		return nil, nil, fmt.Errorf("open database: %w", err)
	}
	p, err := goose.NewProvider(goose.DialectPostgres, db, files)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("read migrations: %w", err), db.Close())
	}
	return p, db, nil
}

// Up applies every migration that is missing. dsn is a Postgres URL or key/value string.
func Up(ctx context.Context, dsn string) (err error) {
	p, db, err := provider(dsn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("migrate up: %w", err)
	}
	return nil
}

// Down takes back the newest applied migration.
func Down(ctx context.Context, dsn string) (err error) {
	p, db, err := provider(dsn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if _, err := p.Down(ctx); err != nil {
		return fmt.Errorf("migrate down: %w", err)
	}
	return nil
}

// Status lists the known migrations in order.
func Status(ctx context.Context, dsn string) (states []State, err error) {
	p, db, err := provider(dsn)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	list, err := p.Status(ctx)
	if err != nil {
		return nil, fmt.Errorf("migrate status: %w", err)
	}
	for _, s := range list {
		states = append(states, State{Version: s.Source.Version, Name: s.Source.Path, Applied: s.State == goose.StateApplied})
	}
	return states, nil
}
