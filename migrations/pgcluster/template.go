//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package pgcluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// templateFormat changes when templates are made differently.
const templateFormat = "1"

// Templates beyond the newest keepTemplates go when unused for keepFor.
const (
	keepTemplates = 6
	keepFor       = time.Hour
)

// A templates is the cache of initialised clusters: initdb takes about 0.5 s,
// a copy of its outcome 0.04 s.
type templates struct {
	dir string // empty: no cache
	in  install
	who runner
}

func (t templates) key(o Options, prepared bool) string {
	h := sha256.New()
	for _, part := range []string{templateFormat, t.in.version, t.in.dir, Role, Database} {
		_, _ = fmt.Fprintf(h, "%d:%s", len(part), part) // a hash never fails
	}
	if prepared {
		_, _ = fmt.Fprintf(h, "prepared %s", o.PrepareKey)
	}
	return hex.EncodeToString(h.Sum(nil))[:24]
}

// fill makes a cluster in data, which must not exist: a copy of the template,
// which is built where the cache lacks it.
func (t templates) fill(ctx context.Context, data string, o Options) error {
	return t.fillStage(ctx, data, o, o.Prepare != nil && o.PrepareKey != "")
}

// fillStage does fill's work for the prepared cluster or the plain one that it
// is built from.
func (t templates) fillStage(ctx context.Context, data string, o Options, prepared bool) error {
	if t.dir == "" {
		return t.build(ctx, data, o, prepared)
	}
	key := t.key(o, prepared)
	master := filepath.Join(t.dir, key)
	if err := copyTree(master, data, t.who, false); err == nil {
		now := time.Now()
		_ = os.Chtimes(master, now, now) // what prune goes by
		return nil
	}
	// Absent, or another process removed it under us: make it, one builder at a time.
	lock, held, err := waitLock(ctx, filepath.Join(t.dir, key+".lock"), 2*time.Minute)
	if err != nil || held {
		return errors.Join(fmt.Errorf("wait for another process to build the template cluster"), err)
	}
	defer func() { _ = lock.Close() }()
	if err := os.RemoveAll(data); err != nil {
		return err
	}
	if err := copyTree(master, data, t.who, false); err == nil {
		return nil
	}
	if err := errors.Join(os.RemoveAll(data), os.RemoveAll(master)); err != nil {
		return err
	}
	if err := t.build(ctx, data, o, prepared); err != nil {
		return err
	}
	// A crash before the rename leaves a .part that prune removes; the copy is
	// synced, so that what bears the final name is whole.
	part := fmt.Sprintf("%s.%d.part", master, os.Getpid())
	if err := copyTree(data, part, runner{}, true); err != nil {
		return errors.Join(err, os.RemoveAll(part))
	}
	if err := os.Rename(part, master); err != nil {
		return errors.Join(err, os.RemoveAll(part))
	}
	t.prune(key)
	return nil
}

// forget drops the template that a start has just failed on.
func (t templates) forget(o Options) error {
	if t.dir == "" {
		return nil
	}
	return errors.Join(
		os.RemoveAll(filepath.Join(t.dir, t.key(o, true))),
		os.RemoveAll(filepath.Join(t.dir, t.key(o, false))))
}

// build makes a cluster in data from nothing, in a run folder of its own.
func (t templates) build(ctx context.Context, data string, o Options, prepared bool) error {
	if prepared {
		if err := t.fillStage(ctx, data, o, false); err != nil {
			return err
		}
	} else if err := t.initdb(ctx, data); err != nil {
		return err
	}
	base, err := runBase(t.who, true)
	if err != nil {
		return err
	}
	run, err := newRunDir(ctx, base, t.who)
	if err != nil {
		return err
	}
	c, err := launch(ctx, t.in, t.who, run, nil, data, Options{Superfast: true})
	if err != nil {
		return errors.Join(err, run.remove())
	}
	c.clean = true // a template must have been shut down, or each copy would recover
	if prepared {
		err = o.Prepare(ctx, c.DSN())
	} else {
		err = createDatabase(ctx, c.dsn("postgres"))
	}
	return errors.Join(err, c.Stop())
}

func createDatabase(ctx context.Context, dsn string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "CREATE DATABASE "+Database)
	return errors.Join(err, conn.Close(ctx))
}

// initdb runs PostgreSQL's initdb as the server's user. Trust is safe: the only
// way in is the socket in a folder of mode 0700.
func (t templates) initdb(ctx context.Context, data string) error {
	if err := os.Mkdir(data, 0o700); err != nil {
		return err
	}
	if err := t.who.own(data); err != nil {
		return err
	}
	cmd := t.who.command(ctx, filepath.Dir(data), filepath.Join(t.in.dir, "initdb"), "-D", data, "-U", Role,
		"--auth-local=trust", "--auth-host=reject", "--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, lastLines(string(out)))
	}
	return nil
}

// prune keeps the cache small: a template of each migration ever tried adds up.
// What was used within keepFor stays, whatever its number.
func (t templates) prune(current string) {
	entries, err := os.ReadDir(t.dir)
	if err != nil {
		return
	}
	kept := 1 // current
	var old []fs.FileInfo
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !e.IsDir() || e.Name() == current {
			continue
		}
		part := strings.HasSuffix(e.Name(), ".part")
		switch {
		case time.Since(info.ModTime()) >= keepFor && part: // its builder was killed
			_ = os.RemoveAll(filepath.Join(t.dir, e.Name()))
		case part:
		case time.Since(info.ModTime()) >= keepFor:
			old = append(old, info)
		default:
			kept++
		}
	}
	slices.SortFunc(old, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	for _, info := range old[min(len(old), max(0, keepTemplates-kept)):] {
		_ = os.RemoveAll(filepath.Join(t.dir, info.Name()))
	}
}
