//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package pgcluster

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A Cluster is a running server.
type Cluster struct {
	run    *runDir
	kept   *locks // of Options.Dir, nil for temporary data
	cmd    *exec.Cmd
	dog    *watchdog
	dogErr error // of its dismissal; read after reaped is closed
	opts   Options
	clean  bool // shut down with a checkpoint, since someone will read the data
	reaped chan struct{}
	reap   sync.Once
	stop   sync.Once
	err    error         // of Stop
	asked  chan struct{} // closed when Stop begins
}

// live keeps the clusters that were started and not stopped: a caller may keep
// the DSN alone, and with the Cluster the garbage collector would close the
// locks and the watchdog's pipe.
var live sync.Map // *Cluster → struct{}

// Start runs a server and returns when it answers. Ending ctx later does
// nothing to it: Stop ends it, and so does the end of this process.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	began := time.Now()
	who, err := serverUser()
	if err != nil {
		return nil, err
	}
	base, err := runBase(who, o.Superfast && o.Dir == "")
	if err != nil {
		return nil, err
	}
	for _, dir := range slices.Compact(bases(true)) {
		sweep(ctx, dir, who)
	}

	var c *Cluster
	if o.Dir == "" {
		c, err = startTemporary(ctx, o, who, base)
	} else {
		c, err = startKept(ctx, o, who, base)
	}
	if err != nil {
		return nil, fmt.Errorf("start PostgreSQL: %w", err)
	}
	live.Store(c, struct{}{})
	o.log().Info("PostgreSQL is up", "pid", c.cmd.Process.Pid, "took", time.Since(began).Round(time.Millisecond), "kept", o.Dir != "")
	return c, nil
}

func startTemporary(ctx context.Context, o Options, who runner, base string) (*Cluster, error) {
	in, err := o.install(0)
	if err != nil {
		return nil, err
	}
	tpl := templates{dir: o.templateDir(), in: in, who: who}
	for try := 0; ; try++ {
		run, err := newRunDir(ctx, base, who)
		if err != nil {
			return nil, err
		}
		data := filepath.Join(run.path, "data")
		err = tpl.fill(ctx, data, o)
		if err == nil {
			var c *Cluster
			if c, err = launch(ctx, in, who, run, nil, data, o); err == nil {
				return c, nil
			}
		}
		err = errors.Join(err, run.remove())
		// A damaged template would fail every start: make it anew, once.
		if try == 1 || ctx.Err() != nil || !errors.Is(err, ErrExited) {
			return nil, err
		}
		if err := tpl.forget(o); err != nil {
			return nil, err
		}
	}
}

func startKept(ctx context.Context, o Options, who runner, base string) (_ *Cluster, err error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // the server's user must get through; the data in it are 0700
		return nil, err
	}
	if err := who.reaches(dir); err != nil {
		return nil, err
	}
	data := filepath.Join(dir, "postgres")
	kept, err := lockDir(ctx, dir, data)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			kept.release()
		}
	}()
	major, err := dataMajor(data)
	if err != nil {
		return nil, err
	}
	in, err := o.install(major)
	if err != nil {
		return nil, err
	}
	if major == 0 {
		if err := makeKept(ctx, o, in, who, data); err != nil {
			return nil, err
		}
	}
	// We hold server.lock: no server lives, so a postmaster.pid is a crash's.
	// Left there, it stops the start if its number is in use by another process.
	if err := os.Remove(filepath.Join(data, "postmaster.pid")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	run, err := newRunDir(ctx, base, who)
	if err != nil {
		return nil, err
	}
	c, err := launch(ctx, in, who, run, kept, data, o)
	if err != nil {
		return nil, errors.Join(err, run.remove())
	}
	c.clean = true
	return c, nil
}

// makeKept makes the data folder under another name first: a crash in between
// leaves no half-made cluster under the final one.
func makeKept(ctx context.Context, o Options, in install, who runner, data string) error {
	part := data + ".part"
	if err := os.RemoveAll(part); err != nil {
		return err
	}
	tpl := templates{dir: o.templateDir(), in: in, who: who}
	if err := tpl.fill(ctx, part, o); err != nil {
		return err
	}
	if !o.Superfast {
		cmd := who.command(ctx, "/", filepath.Join(in.dir, "initdb"), "--sync-only", "-D", part)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("initdb --sync-only: %w: %s", err, lastLines(string(out)))
		}
	}
	return os.Rename(part, data)
}

// dataMajor is the version that wrote a data folder, 0 where there is none yet.
func dataMajor(data string) (int, error) {
	text, err := os.ReadFile(filepath.Join(data, "PG_VERSION"))
	if errors.Is(err, os.ErrNotExist) {
		if _, err := os.Stat(data); err == nil {
			return 0, fmt.Errorf("%s is there but is not a PostgreSQL data folder", data)
		}
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	major, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fmt.Errorf("%w: its PG_VERSION is no number", ErrVersion)
	}
	return major, nil
}

func (o Options) install(major int) (install, error) {
	if o.Binaries == "" {
		return find(major)
	}
	in, err := probe(o.Binaries)
	if err != nil {
		return install{}, fmt.Errorf("%w in %s: %w", ErrNoBinaries, o.Binaries, err)
	}
	if major == 0 && in.major < MinMajor || major != 0 && in.major != major {
		return choose([]install{in}, major)
	}
	return in, nil
}

// templateDir is the cache's folder, made where it is missing; "" (no cache)
// where that fails or others could write there.
func (o Options) templateDir() string {
	dir := o.CacheDir
	if dir == "" {
		var err error
		if dir, err = CacheDir(); err != nil {
			return ""
		}
	}
	dir = filepath.Join(dir, "templates")
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // downloaded binaries lie beside it, for the server's user
		return ""
	}
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() || info.Mode().Perm()&0o022 != 0 {
		return ""
	}
	if uid, _ := ids(info); uid != os.Geteuid() {
		return ""
	}
	return dir
}

// DSN names the server's database "holdpoint" as a URL, as pgx and psql take it.
func (c *Cluster) DSN() string { return c.dsn(Database) }

func (c *Cluster) dsn(database string) string {
	u := url.URL{Scheme: "postgres", User: url.User(Role), Path: "/" + database}
	q := url.Values{"host": {c.run.path}, "port": {port}, "sslmode": {"disable"}}
	u.RawQuery = q.Encode()
	return u.String()
}

// Wait returns when the server has ended: nil after Stop, else ErrExited with
// the log's last lines.
func (c *Cluster) Wait() error {
	c.collect()
	<-c.reaped
	select {
	case <-c.asked:
		return nil
	default:
		return fmt.Errorf("%w: %s", ErrExited, c.logTail())
	}
}

// collect waits for the process in the background, once. It starts with the
// first call that needs it: a test's cluster leaves no goroutine behind.
func (c *Cluster) collect() {
	c.reap.Do(func() {
		go func() {
			_ = c.cmd.Wait() // an immediate shutdown's exit status says nothing
			// From here the process's number may be given to another one.
			if c.dog != nil {
				c.dogErr = c.dog.dismiss()
			}
			close(c.reaped)
		}()
	})
}

// Stop ends the server and removes what Start made, but for Options.Dir. Open
// connections are cut. Later calls return the first one's outcome.
func (c *Cluster) Stop() error {
	c.stop.Do(func() {
		close(c.asked)
		c.err = c.shutdown()
		live.Delete(c)
	})
	return c.err
}

func (c *Cluster) shutdown() error {
	c.collect()
	// SIGINT: checkpoint, then end. SIGQUIT: end now; the data are thrown away.
	signals := []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGKILL}
	if !c.clean {
		signals = signals[1:]
	}
	ended := false
	for _, sig := range signals {
		if err := c.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("stop PostgreSQL: %w", err)
		}
		timer := time.NewTimer(30 * time.Second)
		select {
		case <-c.reaped:
			ended = true
		case <-timer.C:
		}
		timer.Stop()
		if ended {
			break
		}
	}
	if !ended {
		return fmt.Errorf("stop PostgreSQL: process %d does not end", c.cmd.Process.Pid)
	}
	err := errors.Join(c.run.remove(), c.dogErr)
	if c.kept != nil {
		c.kept.release()
	}
	c.opts.log().Info("PostgreSQL is down", "pid", c.cmd.Process.Pid)
	return err
}
