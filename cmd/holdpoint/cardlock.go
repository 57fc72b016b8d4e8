package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/bot"
)

// cardConns is how many cards a process works on at a time; each holds a connection that does nothing meanwhile.
const cardConns = 4

const (
	// Long enough for the calls to Slack under one lock; a process that is stopped in it frees the card after that.
	sqlHoldCard = `SET LOCAL idle_in_transaction_session_timeout = '30s'`
	// Waits lock_timeout (2 s); two numbers are a key space of their own, apart from the core's locks.
	sqlLockCard = `SELECT pg_advisory_xact_lock(1751543908, hashtext($1))`
	unlockWait  = 2 * time.Second
)

var errCardBusy = errors.New("another process works on this card")

// cardLock makes runs for one card serial over all processes. Without it the serve process that took an edit and the worker that heard
// of it both post the child's card, and one of the two stays for ever, with buttons that belong to no card. It waits no longer than
// lock_timeout: the job comes back by itself. Losing the connection loses the lock, and then the card job's own repainting is what is
// left; a kill frees it.
func cardLock(pool *pgxpool.Pool) bot.Locker {
	return func(ctx context.Context, id approvals.ID) (func(), error) {
		tx, err := pool.Begin(ctx)
		if err != nil {
			return nil, fmt.Errorf("lock a card: %w", approvals.ErrUnavailable)
		}
		unlock := func() {
			end, cancel := context.WithTimeout(context.WithoutCancel(ctx), unlockWait)
			defer cancel()
			_ = tx.Rollback(end) // nothing was written; a connection that fails here is closed, which unlocks as well
		}
		if _, err = tx.Exec(ctx, sqlHoldCard); err == nil {
			_, err = tx.Exec(ctx, sqlLockCard, id.String())
		}
		if err != nil {
			unlock()
			return nil, errCardBusy
		}
		return unlock, nil
	}
}
