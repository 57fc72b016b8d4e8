package approvals

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

var sqlRedeliver = statement(`WITH p AS (
		UPDATE run_pause SET next_try_at = clock_timestamp(), stopped_at = NULL, dead_at = NULL, trying_since = NULL, attempts = least(attempts, 1), -- a repeat, with a new back-off
			again_at = CASE WHEN told_at IS NOT NULL THEN clock_timestamp() END
		WHERE pause_id = $2 AND closed_at IS NOT NULL AND superseded_at IS NULL AND (told_at IS NOT NULL OR NOT EXISTS (
			SELECT 1 FROM run_pause q WHERE q.tenant_id = run_pause.tenant_id AND q.agent = run_pause.agent AND q.run_id = run_pause.run_id AND q.pause > run_pause.pause))
		RETURNING pause_id)
	INSERT INTO outbox (outbox_id, kind, subject_id) SELECT $1, 'resume', p.pause_id FROM p`)

// Redeliver asks for the resume of an approval's run to be delivered again. Nothing can change what is resumed.
func (s *Service) Redeliver(ctx context.Context, key Key, id ID) error {
	v, _, err := s.own(ctx, key, id)
	if err != nil {
		return err
	}
	pause := uuid.MustParse(v.PauseID)
	if err := s.over(ctx, key, pause); err != nil {
		return err
	}
	return s.redrive(ctx, pause)
}

func (s *Service) redrive(ctx context.Context, pause uuid.UUID) error {
	box := newV7()
	tag, err := s.clicks.Exec(ctx, sqlRedeliver, box, pause)
	if err != nil {
		return unavailable(err)
	}
	if tag.RowsAffected() == 0 {
		return refuse(CodeConflict, "there is nothing to deliver: some of its calls are not settled, or the run went on with a later intake")
	}
	s.woke([]OutboxItem{{ID: box, Kind: OutboxResume, Subject: pause}})
	return nil
}

// DeadLetter is a run that could not be told for 24 h, or whose agent said to stop.
type DeadLetter struct {
	PauseID, RunID, Agent string
	Pause, Attempts       int
	DeadAt                *time.Time
	StoppedAt             *time.Time
}

var sqlDeadLetters = statement(`SELECT pause_id::text, run_id, agent, pause, attempts, dead_at, stopped_at FROM run_pause
	WHERE tenant_id = $1 AND (dead_at IS NOT NULL OR stopped_at IS NOT NULL) AND told_at IS NULL ORDER BY pause_id`)

// DeadLetters lists what was given up on.
func (s *Service) DeadLetters(ctx context.Context, tenant string) ([]DeadLetter, error) {
	rows, err := s.clicks.Query(ctx, sqlDeadLetters, tenant)
	if err != nil {
		return nil, unavailable(err)
	}
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (d DeadLetter, err error) {
		return d, row.Scan(&d.PauseID, &d.RunID, &d.Agent, &d.Pause, &d.Attempts, &d.DeadAt, &d.StoppedAt)
	})
	return out, unavailable(err)
}

// Redrive delivers a dead letter again.
func (s *Service) Redrive(ctx context.Context, tenant, pauseID string) error {
	id, err := uuid.Parse(pauseID)
	if err != nil {
		return ErrNotFound
	}
	var known bool
	err = s.clicks.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM run_pause WHERE pause_id = $1 AND tenant_id = $2)`, id, tenant).Scan(&known)
	if err != nil {
		return unavailable(err)
	}
	if !known {
		return ErrNotFound
	}
	return s.redrive(ctx, id)
}
