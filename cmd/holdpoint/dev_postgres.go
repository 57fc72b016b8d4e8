package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/holdpoint/holdpoint/migrations"
	"github.com/holdpoint/holdpoint/migrations/pgcluster"
)

// postgres gives the database: the caller's, or a private server from this machine's binaries.
func (d *dev) postgres(ctx context.Context) (string, error) {
	if d.cmd.DatabaseURL != "" {
		return d.cmd.DatabaseURL, migrations.Up(ctx, d.cmd.DatabaseURL)
	}
	key, err := schemaKey()
	if err != nil {
		return "", err
	}
	o := pgcluster.Options{Dir: d.cmd.Data, Prepare: migrations.Up, PrepareKey: key}
	cluster, err := pgcluster.Start(ctx, o)
	if errors.Is(err, pgcluster.ErrNoBinaries) {
		if !d.offerDownload(err) {
			return "", err
		}
		if o.Binaries, err = d.download(ctx); err != nil {
			return "", err
		}
		cluster, err = pgcluster.Start(ctx, o)
	}
	if err != nil {
		return "", err
	}
	d.undo = append(d.undo, func() {
		if err := cluster.Stop(); err != nil {
			d.log.Warn("Postgres did not stop cleanly", "error", err)
		}
	})
	return cluster.DSN(), migrations.Up(ctx, cluster.DSN())
}

// schemaKey changes whenever a migration does, so that a cached cluster is never of another schema.
func schemaKey() (string, error) {
	h := sha256.New()
	err := fs.WalkDir(migrations.Files(), ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := fs.ReadFile(migrations.Files(), path)
		h.Write([]byte(path))
		h.Write(data)
		return err
	})
	return hex.EncodeToString(h.Sum(nil)[:12]), err
}

// offerDownload asks a person, or takes --download for a yes.
func (d *dev) offerDownload(why error) bool {
	if d.cmd.Download {
		return true
	}
	info, err := os.Stdin.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false // nobody to ask: the error says what to install
	}
	_, _ = fmt.Fprintf(d.io.err, "%v\n\nDownload Postgres (about 20 MB) into the cache folder instead? [y/N] ", why)
	line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
	return strings.EqualFold(strings.TrimSpace(line), "y")
}

func (d *dev) download(ctx context.Context) (string, error) {
	dir, err := pgcluster.Download(ctx, func(done, total int64) {
		const width = 30
		if total <= 0 {
			_, _ = fmt.Fprintf(d.io.err, "\r  downloading Postgres: %d MB", done>>20)
			return
		}
		n := int(done * width / total)
		_, _ = fmt.Fprintf(d.io.err, "\r  downloading Postgres [%s%s] %3d%%", strings.Repeat("#", n), strings.Repeat(".", width-n), done*100/total)
	})
	_, _ = fmt.Fprintln(d.io.err)
	return dir, err
}
