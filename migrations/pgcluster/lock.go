//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package pgcluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// The two locks of a folder. flock belongs to the open file, so a child that
// inherits the file holds the lock until it ends, however it ends.
const (
	ownerLock  = "owner.lock"  // held by the process that called Start
	serverLock = "server.lock" // held by the server's processes alone
)

const pollEvery = 10 * time.Millisecond

// tryLock opens (making it where create is true) and locks a file, or says that
// someone else holds it.
func tryLock(path string, create bool) (f *os.File, held bool, err error) {
	flags := os.O_RDWR | syscall.O_NOFOLLOW | syscall.O_CLOEXEC
	if create {
		flags |= os.O_CREATE
	}
	f, err = os.OpenFile(path, flags, 0o600)
	if err != nil {
		return nil, false, err
	}
	err = flock(f, syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return f, false, nil
	}
	_ = f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, true, nil
	}
	return nil, false, fmt.Errorf("lock %s: %w", path, err)
}

func flock(f *os.File, how int) error {
	for {
		if err := syscall.Flock(int(f.Fd()), how); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// waitLock tries until the lock is got, ctx ends, or patience is over: then
// held is true.
func waitLock(ctx context.Context, path string, patience time.Duration) (f *os.File, held bool, err error) {
	deadline := time.Now().Add(patience)
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		f, held, err = tryLock(path, true)
		if !held || err != nil {
			return f, held, err
		}
		if time.Now().After(deadline) {
			return nil, true, nil
		}
		select {
		case <-ctx.Done():
			return nil, true, ctx.Err()
		case <-tick.C:
		}
	}
}

// locks are the two locks of one folder, both held.
type locks struct {
	dir           string
	owner, server *os.File
}

// lockDir takes both locks of a folder, stopping a server there whose owner is
// gone. A living owner is ErrInUse.
func lockDir(ctx context.Context, dir, data string) (*locks, error) {
	// A little patience: a fork in flight shares our files until its exec.
	owner, held, err := waitLock(ctx, filepath.Join(dir, ownerLock), 300*time.Millisecond)
	if err != nil {
		return nil, err
	}
	if held {
		return nil, fmt.Errorf("%w: %s is owned by process %s", ErrInUse, dir, ownerPID(dir))
	}
	if err := writePID(owner); err != nil {
		_ = owner.Close()
		return nil, err
	}
	server, err := evict(ctx, dir, data, 10*time.Second)
	if err != nil {
		_ = owner.Close()
		return nil, err
	}
	return &locks{dir: dir, owner: owner, server: server}, nil
}

// evict takes server.lock: at once where no server lives, else after the one
// that lost its owner has ended. Its watchdog is stopping it; where that was
// killed too we ask the server ourselves after half of the patience.
func evict(ctx context.Context, dir, data string, patience time.Duration) (*os.File, error) {
	path := filepath.Join(dir, serverLock)
	for _, sig := range []syscall.Signal{0, syscall.SIGINT, syscall.SIGQUIT} {
		if sig != 0 {
			// The lock is held, so the process of postmaster.pid lives and is ours.
			if pid := postmasterPID(data); pid > 1 {
				_ = syscall.Kill(pid, sig) // it may have just ended: then the lock is free
			}
		}
		f, held, err := waitLock(ctx, path, patience/2)
		if err != nil || !held {
			return f, err
		}
	}
	return nil, fmt.Errorf("%w: a PostgreSQL whose owner is gone does not end (process %d)", ErrInUse, postmasterPID(data))
}

// postmasterPID reads the first line of a cluster's postmaster.pid; 0 if there
// is none.
func postmasterPID(data string) int {
	text, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil {
		return 0
	}
	return pid
}

func writePID(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

func ownerPID(dir string) string {
	f, err := os.Open(filepath.Join(dir, ownerLock))
	if err != nil {
		return "unknown"
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, 32))
	if err != nil || len(text) == 0 {
		return "unknown"
	}
	return strings.TrimSpace(string(text))
}

// handOver closes our copy of server.lock once the server has inherited it.
func (l *locks) handOver() {
	if l.server != nil {
		_ = l.server.Close()
		l.server = nil
	}
}

func (l *locks) release() {
	l.handOver()
	_ = l.owner.Close()
}
