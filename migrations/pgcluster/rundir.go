//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package pgcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

const (
	runPrefix  = "holdpoint-pg-"
	port       = "5432" // part of the socket's name only
	socketName = ".s.PGSQL." + port

	// maxSocket is the longest path that fits a sockaddr_un everywhere (104
	// bytes with the final NUL on the BSDs and macOS, 108 on Linux).
	maxSocket = 103
)

// A runDir is the folder of one running server: socket, log, locks and, when
// nothing is kept, the data.
type runDir struct {
	path  string
	locks *locks
}

// newRunDir makes and locks a folder in base.
func newRunDir(ctx context.Context, base string, who runner) (*runDir, error) {
	for try := 0; ; try++ {
		path, err := os.MkdirTemp(base, runPrefix)
		if err != nil {
			return nil, err
		}
		l, err := lockDir(ctx, path, filepath.Join(path, "data"))
		if err == nil {
			err = who.own(path)
		}
		if err == nil {
			// A sweeper may have removed the folder before we held its lock.
			if _, err = os.Stat(filepath.Join(path, ownerLock)); err == nil {
				return &runDir{path: path, locks: l}, nil
			}
		}
		if l != nil {
			l.release()
		}
		_ = os.RemoveAll(path)
		if try == 4 || ctx.Err() != nil {
			return nil, fmt.Errorf("make a folder in %s: %w", base, err)
		}
	}
}

// remove deletes the folder; nothing may run in it any more.
func (r *runDir) remove() error {
	err := os.RemoveAll(r.path)
	r.locks.release()
	return err
}

// bases lists the folders that run folders may lie in, in the order of choice.
// A server without durability is in memory where that has room.
func bases(superfast bool) []string {
	dirs := []string{os.TempDir(), "/tmp", "/var/tmp"}
	if mem := memoryBase(); mem != "" && superfast {
		dirs = slices.Insert(dirs, 0, mem)
	}
	return dirs
}

// runBase picks the folder for a run folder: short enough for a socket's path,
// and one that the server's user can enter.
func runBase(who runner, superfast bool) (string, error) {
	var errs []error
	for _, dir := range bases(superfast) {
		if len(dir)+len("/")+len(runPrefix)+len("1234567890/")+len(socketName) > maxSocket {
			errs = append(errs, fmt.Errorf("%s is too long for a socket's path", dir))
			continue
		}
		if err := who.reaches(dir); err != nil {
			errs = append(errs, err)
			continue
		}
		return dir, nil
	}
	return "", fmt.Errorf("no folder for a temporary PostgreSQL: %w", errors.Join(errs...))
}

// sweep removes what killed owners left behind in base. A folder whose owner
// lives is not touched, nor is one that isn't ours.
func sweep(ctx context.Context, base string, who runner) {
	dirs, _ := filepath.Glob(filepath.Join(base, runPrefix+"*")) // the only error is a bad pattern
	for _, dir := range dirs {
		sweepOne(ctx, dir, who)
	}
}

func sweepOne(ctx context.Context, dir string, who runner) {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() {
		return
	}
	if uid, _ := ids(info); uid != os.Geteuid() && uid != who.uid {
		return
	}
	owner, held, err := tryLock(filepath.Join(dir, ownerLock), false)
	if held {
		return
	}
	if err != nil {
		// Not locked yet, or half removed: leave it while it may be coming up.
		if errors.Is(err, os.ErrNotExist) && time.Since(info.ModTime()) > time.Minute {
			_ = os.RemoveAll(dir)
		}
		return
	}
	defer func() { _ = owner.Close() }()
	data := filepath.Join(dir, "data")
	if postmasterPID(data) == 0 {
		// The data are kept elsewhere, or there are none. If a server still
		// runs on them, the next Start on that folder ends it.
		server, held, err := tryLock(filepath.Join(dir, serverLock), true)
		if held || err != nil {
			return
		}
		defer func() { _ = server.Close() }()
	} else {
		server, err := evict(ctx, dir, data, 2*time.Second)
		if err != nil {
			return
		}
		defer func() { _ = server.Close() }()
	}
	_ = os.RemoveAll(dir)
}
