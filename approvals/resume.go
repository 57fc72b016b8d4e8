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
	Calls     []DeliveryCall // what Body tells of, for logs
}

// DeliveryCall names one call of a message.
type DeliveryCall struct {
	Approval                 ID
	ToolCallID, OperationKey string
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
	sqlTakeResume = statement(`UPDATE run_pause SET attempts = attempts + 1, trying_since = coalesce(trying_since, clock_timestamp()), next_try_at = clock_timestamp() + $2::interval,
			sending_until = clock_timestamp() + interval '40 seconds' -- longer than building and sending may take
		WHERE pause_id = $1 AND closed_at IS NOT NULL AND superseded_at IS NULL AND stopped_at IS NULL AND next_try_at <= clock_timestamp()
			AND (told_at IS NOT NULL OR NOT EXISTS (SELECT 1 FROM run_call n JOIN approval_request r ON r.approval_id = n.approval_id WHERE n.pause_id = $1 AND r.status = 'uncertain'))
		RETURNING tenant_id, agent, run_id, app_state_version, attempts`)
	sqlReadMessage = statement(`SELECT sealed FROM resume_message WHERE pause_id = $1`)
	sqlKeepMessage = statement(`INSERT INTO resume_message (pause_id, kind, sealed) VALUES ($1, $2, $3) ON CONFLICT (pause_id) DO NOTHING`)
	// The agent fetches it: looked at again when the time for that is over, and then given up like on a deaf one. It can still be
	// fetched after that. Without trying_since it was asked for anew meanwhile, and that effort is left as it is.
	sqlParkResume = statement(`UPDATE run_pause SET sending_until = NULL,
			dead_at = CASE WHEN trying_since IS NULL THEN dead_at WHEN told_at IS NULL AND clock_timestamp() >= trying_since + $2::interval THEN clock_timestamp() END,
			next_try_at = CASE WHEN trying_since IS NULL THEN next_try_at WHEN clock_timestamp() < trying_since + $2::interval THEN trying_since + $2::interval END
		WHERE pause_id = $1 AND superseded_at IS NULL AND stopped_at IS NULL AND (told_at IS NULL OR again_at IS NOT NULL) RETURNING dead_at IS NOT NULL`)
	sqlToldPause = statement(`UPDATE run_pause SET told_at = coalesce(told_at, clock_timestamp()), told_revision = coalesce(nullif($2, ''), told_revision), next_try_at = NULL, again_at = NULL, dead_at = NULL, sending_until = NULL
		WHERE pause_id = $1 RETURNING tenant_id`)
	sqlAttempts  = statement(`SELECT attempts FROM run_pause WHERE pause_id = $1`)
	sqlStopPause = statement(`UPDATE run_pause SET stopped_at = clock_timestamp(), next_try_at = NULL, again_at = NULL, sending_until = NULL WHERE pause_id = $1 AND superseded_at IS NULL RETURNING tenant_id`)
	// Plans the next try, or gives up for good; $4: the agent accepted it, and may have acknowledged it meanwhile. A pause that was
	// superseded or stopped is left alone. An effort lasts for $3 from its first try on, not from the pause's close: a worker that
	// was away for a weekend, an uncertain call or a dead letter that is driven again must not leave a single try.
	sqlFailPause = statement(`UPDATE run_pause SET sending_until = NULL, dead_at = CASE WHEN told_at IS NULL AND clock_timestamp() > trying_since + $3::interval THEN clock_timestamp() END,
			next_try_at = CASE WHEN clock_timestamp() > trying_since + $3::interval OR $4 AND told_at IS NOT NULL AND again_at IS NULL THEN NULL ELSE clock_timestamp() + $2::interval END
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
		err = s.park(ctx, pause, tenant)
	}
	return d, unavailable(err)
}

// park leaves a delivery for the agent to fetch, and gives it up when nobody has for as long as a webhook is tried.
func (s *Service) park(ctx context.Context, pause uuid.UUID, tenant string) error {
	return pgx.BeginFunc(ctx, s.work, func(tx pgx.Tx) error {
		var dead bool
		err := tx.QueryRow(ctx, sqlParkResume, pause, deliverFor).Scan(&dead)
		if errors.Is(err, pgx.ErrNoRows) || err == nil && !dead {
			return nil // acknowledged, stopped or superseded meanwhile; or parked
		}
		if err != nil {
			return err
		}
		s.log.ErrorContext(ctx, "a run's resume was not fetched for 24 h; see `holdpoint deadletters`", "pause", pause)
		return audit(ctx, tx, tenant, ID{}, pause, "run.dead_lettered", System, SurfaceSystem, map[string]any{"error": "nobody fetched it"})
	})
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
	rows, err := s.work.Query(ctx, sqlDeliveryCalls, tenant, pause)
	if err != nil {
		return unavailable(err)
	}
	d.Calls, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (c DeliveryCall, err error) {
		return c, row.Scan(&c.Approval, &c.ToolCallID, &c.OperationKey)
	})
	return unavailable(err)
}

var sqlDeliveryCalls = statement(`SELECT r.approval_id, r.tool_call_id, r.operation_key FROM run_call n JOIN approval_request r ON r.approval_id = n.approval_id
	WHERE n.tenant_id = $1 AND n.pause_id = $2 ORDER BY r.lineage_id`)

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

// rawJSON is JSON text that a message carries as it is.
type rawJSON = json.RawMessage
