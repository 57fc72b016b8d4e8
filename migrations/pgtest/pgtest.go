// Package pgtest gives a test its own database with Holdpoint's schema, cloned
// from a template that was migrated once.
//
// What always holds: a test sees an empty schema that no other test touches,
// however many packages run at once; the server is real; no test is skipped
// for want of one, it fails and says what to install.
//
// The server is the one that HOLDPOINT_TEST_DATABASE_URL names (its role needs
// CREATEDB) or, without it, a private one for this test binary that starts from
// a cached, migrated copy and ends with the binary (see package pgcluster). It
// runs without fsync: measure durability elsewhere. The first clone of a test binary takes about
// 0.3 s, each further one 0.02 s.
//
// Only tests import this package.
package pgtest

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdpoint/holdpoint/migrations"
	"github.com/holdpoint/holdpoint/migrations/pgcluster"
)

// URLVariable names the server to use instead of a private one.
const URLVariable = "HOLDPOINT_TEST_DATABASE_URL"

// PoolSize is the most connections that a Pool opens: enough for the races that
// tests stage.
const PoolSize = 16

// setUp bounds the making of the server and of one database.
const setUp = 3 * time.Minute

// New returns the DSN of a fresh, migrated database that only this test uses.
// It is dropped, open connections or not, when the test ends.
func New(t testing.TB) string {
	t.Helper()
	return create(t, func(s *server) string { return s.template })
}

// Empty returns the DSN of a database without any schema: for tests of the
// migrations themselves.
func Empty(t testing.TB) string {
	t.Helper()
	return create(t, func(*server) string { return "template0" })
}

// Pool returns a pool of up to PoolSize connections on a database as New makes
// it; both go when the test ends.
func Pool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(New(t))
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	cfg.MaxConns = PoolSize
	pool, err := pgxpool.NewWithConfig(context.Background(), cfg)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func create(t testing.TB, template func(*server) string) string {
	t.Helper()
	s, err := shared()
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	name := databaseName(t.Name())
	ctx, cancel := context.WithTimeout(context.Background(), setUp)
	defer cancel()
	if err := s.exec(ctx, s.createSQL(name, template(s))); err != nil {
		t.Fatalf("pgtest: create database: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), setUp)
		defer cancel()
		if err := s.exec(ctx, "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			t.Errorf("pgtest: drop database: %v", err)
		}
	})
	return withDatabase(s.admin, name)
}

var notName = regexp.MustCompile(`[^a-z0-9]+`)

// databaseName is unique on a server that other test binaries may share, and
// says whose it is in pg_stat_activity.
func databaseName(test string) string {
	plain := notName.ReplaceAllString(strings.ToLower(test), "_")
	if len(plain) > 36 {
		plain = plain[:36]
	}
	var unique [8]byte
	_, _ = rand.Read(unique[:]) // never fails (crypto/rand)
	return "t_" + plain + "_" + hex.EncodeToString(unique[:])
}

// A server holds the template database.
type server struct {
	admin    string // DSN of a database that is always there
	template string
	private  bool
}

// shared is the server of this test binary.
var shared = sync.OnceValues(func() (*server, error) {
	ctx, cancel := context.WithTimeout(context.Background(), setUp)
	defer cancel()
	return newServer(ctx, os.Getenv(URLVariable))
})

// newServer takes the server at url, or starts a private one, and makes the
// template database there.
func newServer(ctx context.Context, url string) (*server, error) {
	key, err := fingerprint(migrations.Files())
	if err != nil {
		return nil, err
	}
	s := &server{admin: url, template: "holdpoint_template_" + key}
	if s.admin == "" {
		s.private = true
		// Nobody stops it: its watchdog does when this process is gone.
		c, err := pgcluster.Start(ctx, pgcluster.Options{
			Superfast:      true,
			MaxConnections: 400,
			PrepareKey:     "pgtest " + key,
			Prepare: func(ctx context.Context, dsn string) error {
				return (&server{admin: dsn, template: s.template, private: true}).migrate(ctx)
			},
		})
		if err != nil {
			return nil, err
		}
		s.admin = c.DSN()
	}
	return s, s.migrate(ctx)
}

// fingerprint names the migrations: a hash of their files' names and bytes.
func fingerprint(files fs.FS) (string, error) {
	h := sha256.New()
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, name)
		_, _ = fmt.Fprintf(h, "%d:%s%d:%s", len(name), name, len(text), text) // a hash never fails
		return err
	})
	return hex.EncodeToString(h.Sum(nil))[:16], err
}

// migrate makes the template database where it is missing. An advisory lock
// lets one test binary do it; the rename at the end makes it appear whole.
func (s *server) migrate(ctx context.Context) (err error) {
	conn, err := pgx.Connect(ctx, s.admin)
	if err != nil {
		return fmt.Errorf("connect to the test server: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	const lock = 0x686f6c64706f696e // "holdpoin"; the session's end releases it
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", int64(lock)); err != nil {
		return err
	}
	var there bool
	if err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", s.template).Scan(&there); err != nil || there {
		return err
	}
	building := s.template + "_building"
	if _, err := conn.Exec(ctx, "DROP DATABASE IF EXISTS "+building+" WITH (FORCE)"); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, s.createSQL(building, "template0")); err != nil {
		return err
	}
	if err := migrations.Up(ctx, withDatabase(s.admin, building)); err != nil {
		return fmt.Errorf("migrate the template: %w", err)
	}
	// A clone fails while anyone is connected to its template.
	if _, err := conn.Exec(ctx, "ALTER DATABASE "+building+" ALLOW_CONNECTIONS false"); err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "ALTER DATABASE "+building+" RENAME TO "+s.template)
	return err
}

// createSQL clones by copying files on our own server, in about half of the
// time that WAL_LOG takes (BenchmarkClone). Elsewhere its two checkpoints, with
// fsync on, would cost more than that saves.
func (s *server) createSQL(name, template string) string {
	strategy := "WAL_LOG"
	if s.private {
		strategy = "FILE_COPY"
	}
	return "CREATE DATABASE " + name + " TEMPLATE " + template + " STRATEGY " + strategy
}

func (s *server) exec(ctx context.Context, sql string) error {
	conn, err := pgx.Connect(ctx, s.admin)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, sql)
	return errors.Join(err, conn.Close(ctx))
}

// withDatabase names another database in a DSN of either form.
func withDatabase(dsn, name string) string {
	if !strings.Contains(dsn, "://") {
		return dsn + " dbname=" + name // the last one counts
	}
	u, err := url.Parse(dsn)
	if err != nil {
		return dsn // pgx has taken it as it is; can't happen then
	}
	u.Path = "/" + name
	return u.String()
}
