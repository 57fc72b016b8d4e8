// Package pgcluster runs a private PostgreSQL server from the binaries that are
// installed on this machine: for `holdpoint dev` and for tests.
//
// What always holds:
//
//   - Nothing listens on the network. Clients come in through a Unix socket in
//     a folder that only the server's user (and root) can enter.
//   - The server never outlives its owner: a watchdog holds one end of a pipe
//     and stops the server when the owner is gone, kill -9 included. Should the
//     watchdog be killed as well, the next Start cleans up.
//   - Who lives is told by file locks, which the kernel drops with the process,
//     never by a process id that may have been given to another process: the
//     owner holds owner.lock, the server's processes inherit server.lock.
//   - One owner a data folder: a second Start is refused with [ErrInUse].
//   - The server's environment is a clean one and its log is terse, so that no
//     token and no value of a row reaches either.
//
// PostgreSQL refuses to run as root; there the server's processes run as the
// user "postgres" or, where there is none, "nobody".
package pgcluster

import (
	"context"
	"errors"
	"log/slog"
)

// MinMajor is the oldest major version of PostgreSQL that Holdpoint runs on.
const MinMajor = 15

// Role and Database are what [Cluster.DSN] names; the role is a superuser.
const (
	Role     = "holdpoint"
	Database = "holdpoint"
)

var (
	// ErrNoBinaries says that no usable PostgreSQL is installed; its text, as
	// Find and Start return it, says what to install.
	ErrNoBinaries = errors.New("no usable PostgreSQL binaries")
	// ErrInUse says that another process owns the data folder.
	ErrInUse = errors.New("data folder is in use")
	// ErrVersion says that the data folder was written by a major version of
	// PostgreSQL that is not installed.
	ErrVersion = errors.New("data folder is of another PostgreSQL version")
	// ErrExited says that the server ended without having been asked to.
	ErrExited = errors.New("PostgreSQL ended by itself")
	// ErrDownload says that the binaries could not be fetched.
	ErrDownload = errors.New("PostgreSQL could not be downloaded")
)

// Options say what kind of cluster Start makes. The zero value is a durable
// server on temporary data.
type Options struct {
	// Dir keeps the data between starts (in Dir/postgres). Empty: a temporary
	// folder that goes with the server.
	Dir string
	// Log gets one line a start and a stop; nil is silent.
	Log *slog.Logger
	// Superfast trades durability for speed (fsync off and the like). For
	// tests: a crash of the machine may corrupt the data.
	Superfast bool
	// Binaries is the folder of postgres and initdb; empty means Find.
	Binaries string
	// CacheDir keeps initialised clusters to copy from; empty means CacheDir().
	CacheDir string
	// MaxConnections is the server's limit; 0 means 100.
	MaxConnections int
	// Settings are further settings of the server, by their names in
	// postgresql.conf; they win over this package's own.
	Settings map[string]string
	// Prepare runs once on a new cluster, whose copy is kept in the cache under
	// PrepareKey and is what later starts with the same key begin with. The
	// data folder of Options.Dir is prepared when it is made, never again.
	// Without a key it is not called.
	Prepare func(ctx context.Context, dsn string) error
	// PrepareKey names everything that Prepare's outcome depends on.
	PrepareKey string
}

func (o Options) log() *slog.Logger {
	if o.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return o.Log
}
