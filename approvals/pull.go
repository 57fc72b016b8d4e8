package approvals

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdpoint/holdpoint/approvals/seal"
)

var (
	sqlPull = statement(`SELECT p.pause_id, p.pause, m.sealed FROM run_pause p JOIN resume_message m ON m.pause_id = p.pause_id
		WHERE p.tenant_id = $1 AND p.agent = $2 AND p.run_id = $3 AND p.superseded_at IS NULL AND p.stopped_at IS NULL AND (p.told_at IS NULL OR p.again_at IS NOT NULL) ORDER BY p.pause LIMIT 1`)
	sqlAckPause = statement(`SELECT p.pause_id FROM run_pause p JOIN resume_message m ON m.pause_id = p.pause_id
		WHERE p.tenant_id = $1 AND p.agent = $2 AND p.run_id = $3 AND p.pause = $4 AND p.superseded_at IS NULL`)
	// Whether the key is alive, and whether the run has a pause all of whose calls it covers.
	sqlRunKnown = statement(`SELECT k.revoked_at IS NULL, EXISTS (SELECT 1 FROM run_pause p WHERE p.tenant_id = $1 AND p.agent = $2 AND p.run_id = $3
			AND (k.tools IS NULL OR NOT EXISTS (SELECT 1 FROM run_call n JOIN approval_request r ON r.approval_id = n.approval_id
				WHERE n.tenant_id = p.tenant_id AND n.pause_id = p.pause_id AND NOT r.tool_name = ANY (k.tools))))
		FROM api_key k WHERE k.id = $4`)
)

// PullResume gives the webhook's body of the run's oldest pause that is settled and not acknowledged, or asked for again; ok is false when there is none
// within wait. An unknown run is ErrNotFound, and so is one whose calls the key does not all cover.
func (s *Service) PullResume(ctx context.Context, key Key, runID string, wait time.Duration) (body []byte, pause int, ok bool, err error) {
	var live, known bool
	if err := noRows(s.intake.QueryRow(ctx, sqlRunKnown, key.Tenant, key.Agent, runID, key.ID).Scan(&live, &known)); err != nil {
		return nil, 0, false, unavailable(err)
	}
	switch {
	case !live:
		return nil, 0, false, revokedKey()
	case !known:
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
			if err := s.over(ctx, key, id); err != nil { // asked as late as can be: a wait may have outlasted the key
				return nil, 0, false, err
			}
			body, err = s.opened(column, seal.MessageAAD(key.Tenant, id.String()))
			return body, pause, err == nil, err
		}
		if !errors.Is(err, pgx.ErrNoRows) {
			return nil, 0, false, unavailable(err)
		}
		select {
		case <-ctx.Done():
			return nil, 0, false, ctx.Err()
		case <-over: // the wait may have outlasted the key
			live := false
			if err := noRows(s.intake.QueryRow(ctx, sqlKeyLive, key.ID).Scan(&live)); err != nil {
				return nil, 0, false, unavailable(err)
			}
			if !live {
				return nil, 0, false, revokedKey()
			}
			return nil, 0, false, nil
		case <-tick.C:
		}
	}
}

// AckResume records that the run has been told. Acknowledging twice is fine.
func (s *Service) AckResume(ctx context.Context, key Key, runID string, pause int, agentRevision string) error {
	var id uuid.UUID
	err := s.intake.QueryRow(ctx, sqlAckPause, key.Tenant, key.Agent, runID, pause).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		return ErrNotFound
	}
	if err != nil {
		return unavailable(err)
	}
	if err := s.over(ctx, key, id); err != nil {
		return err
	}
	return s.RecordDelivery(ctx, id, DeliveryResult{Delivered: true, AgentRevision: agentRevision})
}
