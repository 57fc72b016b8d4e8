package pgtest

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"

	"github.com/holdpoint/holdpoint/migrations"
	"github.com/holdpoint/holdpoint/migrations/pgcluster"
)

func query[T any](t testing.TB, dsn, sql string, args ...any) (value T) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if err := conn.QueryRow(t.Context(), sql, args...).Scan(&value); err != nil {
		t.Fatal(err)
	}
	return value
}

func databases(t testing.TB, dsn, like string) int {
	t.Helper()
	return query[int](t, dsn, "SELECT count(*) FROM pg_database WHERE datname LIKE $1", like)
}

func TestNewIsMigratedAndAlone(t *testing.T) {
	t.Parallel()
	a, b := New(t), New(t)
	for _, dsn := range []string{a, b} {
		states, err := migrations.Status(t.Context(), dsn)
		if err != nil || len(states) == 0 {
			t.Fatalf("%d migrations, %v", len(states), err)
		}
		for _, s := range states {
			if !s.Applied {
				t.Errorf("migration %d is not applied", s.Version)
			}
		}
	}
	pool := Pool(t)
	if _, err := pool.Exec(t.Context(), "CREATE TABLE mine ()"); err != nil {
		t.Fatal(err)
	}
	if got := query[bool](t, a, "SELECT to_regclass('mine') IS NULL"); !got {
		t.Error("another test's table is seen")
	}
	if got := query[string](t, a, "SELECT current_database()"); !strings.Contains(got, "newismigrated") {
		t.Errorf("the database %s does not say whose it is", got)
	}
}

func TestEmpty(t *testing.T) {
	t.Parallel()
	if n := query[int](t, Empty(t), "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace"); n != 0 {
		t.Errorf("%d relations, want none", n)
	}
}

func TestDroppedWhileInUse(t *testing.T) {
	t.Parallel()
	var name string
	t.Run("a test that leaves a connection open", func(t *testing.T) {
		dsn := New(t)
		name = query[string](t, dsn, "SELECT current_database()")
		conn, err := pgx.Connect(context.Background(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(t.Context(), "BEGIN"); err != nil {
			t.Fatal(err)
		}
	})
	s, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	if n := databases(t, s.admin, name); n != 0 {
		t.Errorf("%s is still there", name)
	}
}

// A server that several test binaries share, by a role that is no superuser.
func TestNamedServer(t *testing.T) {
	t.Parallel()
	c, err := pgcluster.Start(t.Context(), pgcluster.Options{Superfast: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	root := &server{admin: c.DSN()}
	if err := root.exec(t.Context(), "CREATE ROLE tester LOGIN CREATEDB"); err != nil {
		t.Fatal(err)
	}
	// What a killed test binary left: a template that was being made.
	key, err := fingerprint(migrations.Files())
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(c.DSN())
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User("tester")
	tester := &server{admin: u.String()}
	if err := tester.exec(t.Context(), "CREATE DATABASE holdpoint_template_"+key+"_building"); err != nil {
		t.Fatal(err)
	}

	const binaries = 4
	servers, errs := make([]*server, binaries), make([]error, binaries)
	var wg sync.WaitGroup
	for i := range binaries {
		wg.Go(func() { servers[i], errs[i] = newServer(t.Context(), u.String()) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if n := databases(t, c.DSN(), "holdpoint_template%"); n != 1 {
		t.Errorf("%d templates, want 1", n)
	}
	s := servers[0]
	if err := s.exec(t.Context(), s.createSQL("clone", s.template)); err != nil {
		t.Fatal(err)
	}
	if got := query[bool](t, withDatabase(s.admin, "clone"), "SELECT to_regclass('approval_request') IS NOT NULL"); !got {
		t.Error("the clone has no schema")
	}
	// Nobody can connect to a template, or cloning it would fail meanwhile.
	conn, err := pgx.Connect(t.Context(), withDatabase(c.DSN(), s.template))
	if err == nil {
		t.Error("connected to the template", conn.Close(t.Context()))
	}
}

func TestFailuresAreTold(t *testing.T) {
	t.Parallel()
	_, err := newServer(t.Context(), "postgres://nobody:s3cret@127.0.0.1:1/none?sslmode=disable&connect_timeout=2")
	if err == nil || !strings.Contains(err.Error(), "connect") || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("got %v; want a failure to connect, without the password", err)
	}
}

func TestFingerprint(t *testing.T) {
	t.Parallel()
	sum := func(files fstest.MapFS) string {
		s, err := fingerprint(files)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	one := sum(fstest.MapFS{"1.sql": {Data: []byte("a")}, "2.sql": {Data: []byte("b")}})
	for name, other := range map[string]fstest.MapFS{
		"another text": {"1.sql": {Data: []byte("a")}, "2.sql": {Data: []byte("c")}},
		"another name": {"1.sql": {Data: []byte("a")}, "3.sql": {Data: []byte("b")}},
		"one file":     {"1.sql": {Data: []byte("a")}},
		"moved bytes":  {"1.sql": {Data: []byte("ab")}, "2.sql": {}},
	} {
		if sum(other) == one {
			t.Errorf("%s: the same fingerprint", name)
		}
	}
	if again := sum(fstest.MapFS{"1.sql": {Data: []byte("a")}, "2.sql": {Data: []byte("b")}}); again != one {
		t.Error("the same files, another fingerprint")
	}
}

func TestWithDatabase(t *testing.T) {
	t.Parallel()
	for _, dsn := range []string{
		"postgres://u:p@h:1/db?sslmode=disable", "postgresql:///db?host=/run/pg&port=1&user=u", "host=h port=1 user=u dbname=db", "host=h user=u",
	} {
		cfg, err := pgx.ParseConfig(withDatabase(dsn, "other"))
		if err != nil || cfg.Database != "other" {
			t.Errorf("%s: database %v, %v", dsn, cfg, err)
			continue
		}
		if before, err := pgx.ParseConfig(dsn); err != nil || before.Host != cfg.Host || before.Port != cfg.Port || before.User != cfg.User {
			t.Errorf("%s: now %s:%d as %s (%v)", dsn, cfg.Host, cfg.Port, cfg.User, err)
		}
	}
}

func BenchmarkClone(b *testing.B) {
	s, err := shared()
	if err != nil {
		b.Fatal(err)
	}
	for _, private := range []bool{true, false} {
		s := &server{admin: s.admin, template: s.template, private: private}
		name := databaseName(b.Name())
		sql := s.createSQL(name, s.template)
		b.Run(sql[strings.LastIndex(sql, " ")+1:], func(b *testing.B) {
			for b.Loop() {
				if err := s.exec(b.Context(), sql); err != nil {
					b.Fatal(err)
				}
				if err := s.exec(b.Context(), "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
