//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package pgcluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// readyWithin covers the recovery of a kept data folder after a crash.
const readyWithin = time.Minute

// launch runs the server on data. On an error nothing of it runs any more; the
// caller removes the folders.
func launch(ctx context.Context, in install, who runner, run *runDir, kept *locks, data string, o Options) (*Cluster, error) {
	logFile, err := os.OpenFile(filepath.Join(run.path, "postgres.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = logFile.Close() }() // the server has its own copy

	// No context: the server lives on when Start's ends.
	cmd := who.command(context.WithoutCancel(ctx), run.path, filepath.Join(in.dir, "postgres"), arguments(run.path, data, o)...)
	cmd.Stdout, cmd.Stderr = logFile, logFile
	cmd.ExtraFiles = []*os.File{run.locks.server}
	if kept != nil {
		cmd.ExtraFiles = append(cmd.ExtraFiles, kept.server)
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &Cluster{run: run, kept: kept, cmd: cmd, opts: o, reaped: make(chan struct{}), asked: make(chan struct{})}
	// A kill -9 between the fork above and the watchdog's leaves the server
	// running; the next Start's sweep ends it.
	run.locks.handOver()
	if kept != nil {
		kept.handOver()
	}
	stopBy := "INT"
	if o.Superfast && o.Dir == "" {
		stopBy = "QUIT"
	}
	c.dog, err = newWatchdog(context.WithoutCancel(ctx), stopBy, cmd.Process.Pid, run.path, data)
	if err == nil {
		err = c.ready(ctx)
	}
	if err != nil {
		_ = cmd.Process.Kill() // it may have ended; its children follow it
		c.collect()
		<-c.reaped
		return nil, errors.Join(err, c.dogErr)
	}
	return c, nil
}

// arguments are the server's settings, on the command line so that data
// folders stay as initdb made them.
func arguments(run, data string, o Options) []string {
	set := map[string]string{
		"listen_addresses":        "",
		"unix_socket_directories": run,
		"unix_socket_permissions": "0700",
		"port":                    port,
		"max_connections":         "100",
		"timezone":                "UTC",
		"log_timezone":            "UTC",
		"logging_collector":       "off",
		"log_destination":         "stderr",
		// No row's value and no statement in the log: DETAIL and STATEMENT lines
		// are left out, whatever fails.
		"log_error_verbosity":     "terse",
		"log_min_error_statement": "panic",
	}
	if o.MaxConnections > 0 {
		set["max_connections"] = strconv.Itoa(o.MaxConnections)
	}
	if o.Superfast {
		maps.Copy(set, map[string]string{
			"fsync":              "off",
			"synchronous_commit": "off",
			"full_page_writes":   "off",
			"wal_level":          "minimal",
			"max_wal_senders":    "0",
			"checkpoint_timeout": "1h",
			// It would connect to a template database just when it is cloned.
			"autovacuum": "off",
		})
	}
	maps.Copy(set, o.Settings)
	args := []string{"-D", data}
	for _, name := range slices.Sorted(maps.Keys(set)) {
		args = append(args, "-c", name+"="+set[name])
	}
	return args
}

// ready waits until the server answers a query, or has ended.
func (c *Cluster) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	socket := filepath.Join(c.run.path, socketName)
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		if _, err := os.Stat(socket); err == nil && c.answers(ctx) {
			return nil
		}
		// The lock is free when no process of the server is left.
		if f, held, err := tryLock(filepath.Join(c.run.path, serverLock), true); err == nil && !held {
			_ = f.Close()
			return fmt.Errorf("%w: %s", ErrExited, c.logTail())
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not ready: %w: %s", ctx.Err(), c.logTail())
		case <-tick.C:
		}
	}
}

func (c *Cluster) answers(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, c.dsn("postgres"))
	if err != nil {
		return false
	}
	return errors.Join(conn.Ping(ctx), conn.Close(ctx)) == nil
}

// logTail is the end of the server's log, for an error's text.
func (c *Cluster) logTail() string {
	text, err := os.ReadFile(filepath.Join(c.run.path, "postgres.log"))
	if err != nil {
		return "its log is gone"
	}
	return lastLines(string(text))
}

// lastLines joins the last four lines of a text into one.
func lastLines(text string) string {
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' })
	if len(lines) > 4 {
		lines = lines[len(lines)-4:]
	}
	return strings.Join(lines, " / ")
}

// A watchdog is a shell that reads from a pipe whose other end we hold: end of
// file means that we are gone, and it stops the server and removes the folder.
type watchdog struct {
	cmd  *exec.Cmd
	pipe *os.File
}

// The server's process number can't be another process's: as long as we live
// and have not dismissed the watchdog the server is not reaped, and when we die
// the number is used at once. The server's end shows in postmaster.pid, which it
// removes last: as a zombie that nobody reaps it would seem to live.
const watchdogScript = `trap '' HUP INT TERM
if read -r word && [ "$word" = done ]; then exit 0; fi
kill -s "$1" "$2" 2>/dev/null
n=0
while [ -e "$4" ] && kill -0 "$2" 2>/dev/null; do
	n=$((n + 1))
	if [ "$n" -gt 300 ]; then kill -s KILL "$2" 2>/dev/null; break; fi
	sleep 0.1
done
rm -rf -- "$3"
`

func newWatchdog(ctx context.Context, signal string, pid int, dir, data string) (*watchdog, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	self := runner{uid: os.Geteuid(), gid: os.Getegid()} // must be able to signal and to remove
	cmd := self.command(ctx, "/", "/bin/sh", "-c", watchdogScript, "holdpoint-postgres-watchdog", signal, strconv.Itoa(pid), dir, filepath.Join(data, "postmaster.pid"))
	cmd.Stdin = r
	if err := errors.Join(cmd.Start(), r.Close()); err != nil {
		return nil, errors.Join(fmt.Errorf("start the watchdog: %w", err), w.Close())
	}
	return &watchdog{cmd: cmd, pipe: w}, nil
}

// dismiss ends the watchdog without its bite.
func (d *watchdog) dismiss() error {
	_, werr := io.WriteString(d.pipe, "done\n")
	return errors.Join(werr, d.pipe.Close(), d.cmd.Wait())
}
