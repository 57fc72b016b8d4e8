//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package pgcluster

import (
	"context"
	"errors"
	"fmt"
)

// A Cluster is a running server; on this system there is none.
type Cluster struct{}

var errSystem = fmt.Errorf("a private PostgreSQL needs Linux, macOS or a BSD (%w): name a server with --database-url", errors.ErrUnsupported)

// Start fails: file locks, sockets and the watchdog are those of Unix.
func Start(context.Context, Options) (*Cluster, error) { return nil, errSystem }

// DSN is empty.
func (*Cluster) DSN() string { return "" }

// Wait fails at once.
func (*Cluster) Wait() error { return errSystem }

// Stop does nothing.
func (*Cluster) Stop() error { return nil }
