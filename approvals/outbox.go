package approvals

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

var (
	// Locks up to $1 rows that are due and that no other relay holds, oldest first.
	sqlTakeOutbox = statement(`SELECT outbox_id, kind, subject_id FROM outbox WHERE not_before <= clock_timestamp() ORDER BY outbox_id LIMIT $1 FOR UPDATE SKIP LOCKED`)
	sqlDropOutbox = statement(`DELETE FROM outbox WHERE outbox_id = ANY ($1)`)
)

// Relay locks up to limit outbox rows, hands them to dispatch and deletes those that it gives back, in one transaction. A kill
// between the dispatch and the commit dispatches them again: tasks carry the row's id, and Postgres decides what they may do (I28).
// more says that there were as many as limit.
func (s *Service) Relay(ctx context.Context, limit int, dispatch func(context.Context, []OutboxItem) []uuid.UUID) (n int, more bool, err error) {
	err = pgx.BeginFunc(ctx, s.work, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, sqlTakeOutbox, limit)
		if err != nil {
			return err
		}
		items, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (i OutboxItem, err error) { return i, row.Scan(&i.ID, &i.Kind, &i.Subject) })
		if err != nil || len(items) == 0 {
			return err
		}
		more = len(items) == limit
		done := dispatch(ctx, items)
		n = len(done)
		if n == 0 {
			return nil
		}
		_, err = tx.Exec(ctx, sqlDropOutbox, done)
		return err
	})
	return n, more, unavailable(err)
}

// Dispatched deletes rows that a doorbell has delivered right after their commit, so that the relay has nothing left to do.
func (s *Service) Dispatched(ctx context.Context, ids []uuid.UUID) error {
	_, err := s.work.Exec(ctx, sqlDropOutbox, ids)
	return unavailable(err)
}

var sqlSeenNew = statement(`INSERT INTO slack_seen (signature) VALUES ($1) ON CONFLICT (signature) DO NOTHING`)

// Seen notes the signature of a Slack request and says whether any process saw it within the window. It is written beside a
// decision, never in its way: a replayed click finds its own vote and changes nothing.
func (s *Service) Seen(ctx context.Context, signature []byte) (replayed bool, err error) {
	tag, err := s.clicks.Exec(ctx, sqlSeenNew, signature)
	if err != nil {
		return false, unavailable(err)
	}
	return tag.RowsAffected() == 0, nil
}

// Ping says whether the database answers.
func (s *Service) Ping(ctx context.Context) error {
	return unavailable(s.clicks.Ping(ctx))
}
