package approvals

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Violation is a row that must not exist: a defect, or somebody at work in the database. It is paged, never repaired silently.
type Violation struct {
	Kind string // fit for a metric's label
	ID   string
}

// safetyQueries give no row over a database that only the core wrote. $1 is the oldest approval to look at, so that a periodic look
// stays cheap however many approvals there are. Retries that are proven free of effect do not count as dispatches.
var safetyQueries = []struct{ kind, sql string }{
	{"effect_without_approval", statement(`SELECT l.lineage_id::text FROM idempotency_ledger l LEFT JOIN approval_request r ON r.approval_id = l.approval_id AND r.lineage_id = l.lineage_id
		WHERE l.lineage_id >= $1 AND (r.approval_id IS NULL OR l.operation_key <> r.operation_key)`)},
	{"two_effects", statement(`SELECT lineage_id::text FROM approval_request WHERE approval_id >= $1 AND status IN ('executing', 'completed', 'uncertain') GROUP BY 1 HAVING count(*) > 1`)},
	{"status_and_ledger", statement(`SELECT r.approval_id::text FROM approval_request r LEFT JOIN idempotency_ledger l USING (approval_id)
		WHERE r.approval_id >= $1 AND CASE r.status WHEN 'approved' THEN coalesce(l.state, 'failed_retryable') <> 'failed_retryable' WHEN 'executing' THEN coalesce(l.state, '') <> 'executing'
			WHEN 'completed' THEN coalesce(l.state, '') <> 'succeeded' WHEN 'failed' THEN coalesce(l.state, '') <> 'failed_terminal' WHEN 'uncertain' THEN coalesce(l.state, '') <> 'uncertain'
			ELSE coalesce(l.state, 'failed_terminal') <> 'failed_terminal' END`)},
	{"vote_for_another_digest", statement(`SELECT d.approval_id::text FROM approval_decision d JOIN approval_request r USING (approval_id) WHERE d.approval_id >= $1 AND d.digest <> r.digest`)},
	{"no_quorum", statement(`SELECT r.approval_id::text FROM approval_request r WHERE r.approval_id >= $1
		AND EXISTS (SELECT 1 FROM audit_event e WHERE e.approval_id = r.approval_id AND e.to_status = 'approved' AND e.from_status = 'pending')
		AND (SELECT count(*) FROM approval_decision d WHERE d.approval_id = r.approval_id AND d.decision = 'approve') < (r.operator_scope ->> 'quorum')::int`)},
	{"late_vote", statement(`SELECT d.approval_id::text FROM approval_decision d JOIN approval_request r USING (approval_id) WHERE d.approval_id >= $1 AND d.decided_at >= r.decide_by AND d.reviewer LIKE 'slack:%'`)},
	{"success_without_result", statement(`SELECT r.approval_id::text FROM approval_request r JOIN approval_payload p USING (approval_id)
		WHERE r.approval_id >= $1 AND r.status IN ('completed', 'responded') AND p.result IS NULL`)},
	{"told_too_early", statement(`SELECT m.pause_id::text FROM resume_message m JOIN run_call n USING (pause_id) JOIN approval_request r USING (approval_id) JOIN run_pause p ON p.pause_id = m.pause_id
		WHERE r.approval_id >= $1 AND p.superseded_at IS NULL AND NOT r.settled`)},
	{"pause_miscounted", statement(`SELECT p.pause_id::text FROM run_pause p WHERE p.pause_id >= $1 AND p.superseded_at IS NULL
		AND p.open_calls <> (SELECT count(*) FROM run_call n JOIN approval_request r USING (approval_id) WHERE n.tenant_id = p.tenant_id AND n.pause_id = p.pause_id AND NOT r.settled)`)},
	{"crosses_tenants", statement(`SELECT r.approval_id::text FROM approval_request r JOIN card c ON c.card_id = r.card_id JOIN run_pause p ON p.pause_id = r.pause_id JOIN api_key k ON k.id = r.api_key_id
		WHERE r.approval_id >= $1 AND (c.tenant_id <> r.tenant_id OR p.tenant_id <> r.tenant_id OR p.agent <> r.agent OR k.tenant_id <> r.tenant_id)`)},
	{"version_without_audit", statement(`SELECT r.approval_id::text FROM approval_request r WHERE r.approval_id >= $1
		AND r.version <> (SELECT count(*) FROM audit_event e WHERE e.approval_id = r.approval_id AND e.to_status IS NOT NULL)`)},
}

// Violations looks for what must never be among the approvals made within a time; 0 looks at all. Each query sees one snapshot.
func (s *Service) Violations(ctx context.Context, within time.Duration) ([]Violation, error) {
	var oldest uuid.UUID
	if within > 0 {
		var now time.Time
		if err := s.work.QueryRow(ctx, sqlClock).Scan(&now); err != nil {
			return nil, unavailable(err)
		}
		oldest = firstV7(now.Add(-within))
	}
	var out []Violation
	for _, q := range safetyQueries {
		rows, err := s.work.Query(ctx, q.sql, oldest)
		if err != nil {
			return out, fmt.Errorf("%s: %w", q.kind, unavailable(err))
		}
		ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return out, fmt.Errorf("%s: %w", q.kind, unavailable(err))
		}
		for _, id := range ids {
			out = append(out, Violation{Kind: q.kind, ID: id})
		}
	}
	return out, nil
}

// firstV7 is the smallest UUIDv7 of a time (RFC 9562: 48 bits of Unix milliseconds first).
func firstV7(t time.Time) uuid.UUID {
	var id uuid.UUID
	ms := t.UnixMilli()
	for i := range 6 {
		id[i] = byte(ms >> (8 * (5 - i)))
	}
	id[6] = 0x70
	return id
}
