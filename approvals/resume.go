package approvals

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdpoint/holdpoint/approvals/rules"
	"github.com/holdpoint/holdpoint/approvals/seal"
)

// Delivery is one try to tell a run. Body is the same on every try.
type Delivery struct {
	Send      bool // false: nothing is to be sent now
	Pull      bool // the agent fetches it
	Tenant    *rules.Tenant
	Agent     string
	RunID     string
	URL       string
	Secret    rules.Ref
	WebhookID string
	Body      []byte
	Attempt   int
}

// DeliveryResult is what came of a try.
type DeliveryResult struct {
	Delivered     bool   // 2xx
	Accepted      bool   // 202: again later unless acknowledged
	Stopped       bool   // 410
	AgentRevision string // what resumed, where the answer names it
	Error         string // in our own words
}

const (
	deliveryHold  = 20 * time.Second // a try that died is repeated after this
	acceptedAgain = 5 * time.Minute
	deliverFor    = 24 * time.Hour
)

var (
	// Takes the delivery: no other worker tries for deliveryHold. Returns no row when nothing is due. A call that the agent ran ahead
	// and that became uncertain holds the first telling until it is reconciled.
	sqlTakeResume = statement(`UPDATE run_pause SET attempts = attempts + 1, next_try_at = clock_timestamp() + $2::interval, sending_until = clock_timestamp() + interval '40 seconds' -- longer than building and sending may take
		WHERE pause_id = $1 AND closed_at IS NOT NULL AND superseded_at IS NULL AND stopped_at IS NULL AND next_try_at <= clock_timestamp()
			AND (told_at IS NOT NULL OR NOT EXISTS (SELECT 1 FROM run_call n JOIN approval_request r ON r.approval_id = n.approval_id WHERE n.pause_id = $1 AND r.status = 'uncertain'))
		RETURNING tenant_id, agent, run_id, app_state_version, attempts`)
	sqlReadMessage = statement(`SELECT sealed FROM resume_message WHERE pause_id = $1`)
	sqlKeepMessage = statement(`INSERT INTO resume_message (pause_id, kind, sealed) VALUES ($1, $2, $3) ON CONFLICT (pause_id) DO NOTHING`)
	sqlParkResume  = statement(`UPDATE run_pause SET next_try_at = NULL, sending_until = NULL WHERE pause_id = $1`)
	sqlToldPause   = statement(`UPDATE run_pause SET told_at = coalesce(told_at, clock_timestamp()), told_revision = coalesce(nullif($2, ''), told_revision), next_try_at = NULL, dead_at = NULL, sending_until = NULL
		WHERE pause_id = $1 RETURNING tenant_id`)
	sqlAttempts  = statement(`SELECT attempts FROM run_pause WHERE pause_id = $1`)
	sqlStopPause = statement(`UPDATE run_pause SET stopped_at = clock_timestamp(), next_try_at = NULL, sending_until = NULL WHERE pause_id = $1 AND told_at IS NULL RETURNING tenant_id`)
	// Plans the next try, or gives up for good; $4: the agent accepted it, and may have acknowledged it meanwhile. A pause that was
	// superseded or stopped is left alone.
	sqlFailPause = statement(`UPDATE run_pause SET sending_until = NULL, dead_at = CASE WHEN told_at IS NULL AND clock_timestamp() > closed_at + $3::interval THEN clock_timestamp() END,
			next_try_at = CASE WHEN clock_timestamp() > closed_at + $3::interval OR $4 AND told_at IS NOT NULL THEN NULL ELSE clock_timestamp() + $2::interval END
		WHERE pause_id = $1 AND superseded_at IS NULL AND stopped_at IS NULL RETURNING tenant_id, dead_at IS NOT NULL`)
)

// ResumeFor takes the delivery of a pause that is due. The message is built and sealed by the first try; a kill anywhere before the
// answer is recorded sends the same bytes with the same id again.
func (s *Service) ResumeFor(ctx context.Context, pause uuid.UUID) (Delivery, error) {
	d := Delivery{WebhookID: WebhookID(pause)}
	var tenant, version string
	err := s.work.QueryRow(ctx, sqlTakeResume, pause, deliveryHold).Scan(&tenant, &d.Agent, &d.RunID, &version, &d.Attempt)
	if errors.Is(err, pgx.ErrNoRows) {
		return Delivery{}, nil
	}
	if err != nil {
		return Delivery{}, unavailable(err)
	}
	if err := s.prepareDelivery(ctx, &d, pause, tenant, version); err != nil {
		if !errors.Is(err, ErrUnavailable) { // it won't build the next time either: back off, and give up like on a deaf agent
			err = errors.Join(err, s.RecordDelivery(ctx, pause, DeliveryResult{Error: "the message could not be built"}))
		}
		return Delivery{}, err
	}
	if d.Pull {
		_, err = s.work.Exec(ctx, sqlParkResume, pause)
	}
	return d, unavailable(err)
}

func (s *Service) prepareDelivery(ctx context.Context, d *Delivery, pause uuid.UUID, tenant, version string) error {
	cfg, revision, err := s.activeTenant(ctx, s.work, tenant, true)
	if err != nil {
		return err
	}
	if d.Body, err = s.message(ctx, cfg, pause); err != nil {
		return err
	}
	v, err := s.versionOf(ctx, cfg, revision, pause, d.Agent, version)
	if err != nil {
		return err
	}
	d.Tenant, d.Pull, d.URL, d.Secret = cfg, v.Resume.Pull, v.Resume.URL, v.Resume.Secret
	d.Send = !d.Pull
	return nil
}

var sqlPauseRevision = statement(`SELECT max(config_revision) FROM approval_request WHERE pause_id = $1`)

// versionOf finds how a run is told: as the active configuration says; where the version is gone from it, as it said when the run
// was paused, so that a run is told even of its own version's removal.
func (s *Service) versionOf(ctx context.Context, cfg *rules.Tenant, revision int64, pause uuid.UUID, agent, version string) (*rules.Version, error) {
	if a := cfg.Agents[agent]; a != nil {
		if v, ok := a.Version(version); ok {
			return v, nil
		}
	}
	var made int64
	if err := s.work.QueryRow(ctx, sqlPauseRevision, pause).Scan(&made); err != nil {
		return nil, unavailable(err)
	}
	old, err := s.tenantAt(ctx, s.work, cfg.Name, made)
	if err != nil {
		return nil, err
	}
	if a := old.Agents[agent]; a != nil {
		if v, ok := a.Version(version); ok {
			return v, nil
		}
	}
	return nil, fmt.Errorf("%w: no registered version tells the run of pause %s (revision %d)", ErrCorrupt, pause, revision)
}

// message gives the pause's one message, building it the first time.
func (s *Service) message(ctx context.Context, cfg *rules.Tenant, pause uuid.UUID) ([]byte, error) {
	aad := seal.MessageAAD(cfg.Name, pause.String())
	var column []byte
	err := s.work.QueryRow(ctx, sqlReadMessage, pause).Scan(&column)
	if errors.Is(err, pgx.ErrNoRows) {
		kind, body, err := s.build(ctx, cfg, pause)
		if err != nil {
			return nil, err
		}
		box, err := s.sealed(body, aad)
		if err != nil {
			return nil, err
		}
		if _, err := s.work.Exec(ctx, sqlKeepMessage, pause, kind, box); err != nil {
			return nil, unavailable(err)
		}
		err = s.work.QueryRow(ctx, sqlReadMessage, pause).Scan(&column) // another worker may have been first: its message is the one
		if err != nil {
			return nil, unavailable(err)
		}
	} else if err != nil {
		return nil, unavailable(err)
	}
	body, err := s.opened(column, aad)
	if err != nil {
		return nil, fmt.Errorf("%w: resume message of %s", ErrCorrupt, pause)
	}
	return body, nil
}

// RecordDelivery writes what became of a try and plans the next: back-off from 5 s, for 24 h, then dead-lettered.
func (s *Service) RecordDelivery(ctx context.Context, pause uuid.UUID, r DeliveryResult) error {
	var attempts int
	err := pgx.BeginFunc(ctx, s.work, func(tx pgx.Tx) (err error) {
		var tenant string
		detail := map[string]any{}
		var kind string
		switch {
		case r.Delivered:
			kind, detail["agent_revision"] = "run.told", r.AgentRevision
			err = tx.QueryRow(ctx, sqlToldPause, pause, r.AgentRevision).Scan(&tenant)
		case r.Stopped:
			kind = "run.stopped"
			err = tx.QueryRow(ctx, sqlStopPause, pause).Scan(&tenant)
		default:
			var dead bool
			if err := tx.QueryRow(ctx, sqlAttempts, pause).Scan(&attempts); err != nil {
				return noRows(err)
			}
			kind, detail["attempt"] = "run.accepted", attempts
			again := acceptedAgain
			if !r.Accepted {
				kind, detail["error"], again = "run.not_told", r.Error, deliveryBackoff(attempts)
			}
			err = tx.QueryRow(ctx, sqlFailPause, pause, again, deliverFor, r.Accepted).Scan(&tenant, &dead)
			if dead {
				kind = "run.dead_lettered"
				s.log.ErrorContext(ctx, "a run could not be told for 24 h; see `holdpoint deadletters`", "pause", pause)
			}
		}
		if err != nil {
			return noRows(err)
		}
		return audit(ctx, tx, tenant, ID{}, pause, kind, System, SurfaceSystem, detail)
	})
	return unavailable(err)
}

// deliveryBackoff: 5 s, doubled each time up to an hour, ± 20 %.
func deliveryBackoff(attempts int) time.Duration {
	d := min(5*time.Second<<min(max(attempts-1, 0), 10), time.Hour)
	return d + time.Duration((rand.Float64()-0.5)*0.4*float64(d)) //nolint:gosec // jitter
}

var sqlRedeliver = statement(`WITH p AS (
		UPDATE run_pause SET next_try_at = clock_timestamp(), stopped_at = NULL, dead_at = NULL
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
	return s.redrive(ctx, uuid.MustParse(v.PauseID))
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

var (
	sqlPull = statement(`SELECT p.pause_id, p.pause, m.sealed FROM run_pause p JOIN resume_message m ON m.pause_id = p.pause_id
		WHERE p.tenant_id = $1 AND p.agent = $2 AND p.run_id = $3 AND p.superseded_at IS NULL AND p.stopped_at IS NULL AND p.told_at IS NULL ORDER BY p.pause LIMIT 1`)
	sqlAckPause = statement(`SELECT p.pause_id FROM run_pause p JOIN resume_message m ON m.pause_id = p.pause_id
		WHERE p.tenant_id = $1 AND p.agent = $2 AND p.run_id = $3 AND p.pause = $4 AND p.superseded_at IS NULL`)
	sqlRunKnown = statement(`SELECT EXISTS (SELECT 1 FROM run_pause WHERE tenant_id = $1 AND agent = $2 AND run_id = $3)`)
)

// PullResume gives the webhook's body of the run's oldest pause that is settled and not acknowledged; ok is false when there is none
// within wait. An unknown run is ErrNotFound.
func (s *Service) PullResume(ctx context.Context, key Key, runID string, wait time.Duration) (body []byte, pause int, ok bool, err error) {
	var known bool
	if err := s.clicks.QueryRow(ctx, sqlRunKnown, key.Tenant, key.Agent, runID).Scan(&known); err != nil {
		return nil, 0, false, unavailable(err)
	}
	if !known {
		return nil, 0, false, ErrNotFound
	}
	over := time.After(wait)
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		var id uuid.UUID
		var column []byte
		err := s.intake.QueryRow(ctx, sqlPull, key.Tenant, key.Agent, runID).Scan(&id, &pause, &column)
		if err == nil {
			body, err = s.opened(column, seal.MessageAAD(key.Tenant, id.String()))
			return body, pause, err == nil, err
		}
		if !errors.Is(err, pgx.ErrNoRows) {
			return nil, 0, false, unavailable(err)
		}
		select {
		case <-ctx.Done():
			return nil, 0, false, ctx.Err()
		case <-over:
			return nil, 0, false, nil
		case <-tick.C:
		}
	}
}

// AckResume records that the run has been told. Acknowledging twice is fine.
func (s *Service) AckResume(ctx context.Context, key Key, runID string, pause int, agentRevision string) error {
	var id uuid.UUID
	err := s.clicks.QueryRow(ctx, sqlAckPause, key.Tenant, key.Agent, runID, pause).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		return ErrNotFound
	}
	if err != nil {
		return unavailable(err)
	}
	return s.RecordDelivery(ctx, id, DeliveryResult{Delivered: true, AgentRevision: agentRevision})
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

// rawJSON is JSON text that a message carries as it is.
type rawJSON = json.RawMessage
