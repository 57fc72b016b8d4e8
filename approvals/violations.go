package approvals

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Violation is a row that must not exist: a defect, or somebody at work in the database. It is paged, never repaired silently.
type Violation struct {
	Kind string // fit for a metric's label
	ID   string
}

// looked are the approvals that one look is about: those made in [$1, $2), and, where $3 is given, those that an audit event since
// $3 is about and those that are not over. So a look at what changed lately sees it whatever its age, and costs by what changed, not
// by how many approvals there are.
const looked = `WITH look AS (
	SELECT approval_id FROM approval_request WHERE approval_id >= $1 AND approval_id < $2
	UNION SELECT approval_id FROM audit_event WHERE event_id >= $3::uuid AND approval_id IS NOT NULL
	UNION SELECT approval_id FROM approval_open WHERE $3::uuid IS NOT NULL
), req AS (SELECT r.* FROM look JOIN approval_request r USING (approval_id)) `

// safetyQueries give no row over a database that only the core wrote. Retries that are proven free of effect do not count as
// dispatches. Those of one lineage are found through their run, which has an index.
var safetyQueries = []struct{ kind, sql string }{
	{"effect_without_approval", statement(looked + `, lines AS (SELECT lineage_id FROM req UNION SELECT lineage_id FROM idempotency_ledger WHERE lineage_id >= $1 AND lineage_id < $2)
		SELECT l.lineage_id::text FROM lines JOIN idempotency_ledger l USING (lineage_id) LEFT JOIN approval_request r ON r.approval_id = l.approval_id AND r.lineage_id = l.lineage_id
		WHERE r.approval_id IS NULL OR l.operation_key <> r.operation_key`)},
	{"two_effects", statement(looked + `SELECT r.lineage_id::text FROM (SELECT DISTINCT tenant_id, agent, run_id, lineage_id FROM req) q
		JOIN approval_request r ON r.tenant_id = q.tenant_id AND r.agent = q.agent AND r.run_id = q.run_id AND r.lineage_id = q.lineage_id
		WHERE r.status IN ('executing', 'completed', 'uncertain') GROUP BY 1 HAVING count(*) > 1`)},
	{"status_and_ledger", statement(looked + `SELECT r.approval_id::text FROM req r LEFT JOIN idempotency_ledger l ON l.lineage_id = r.lineage_id AND l.approval_id = r.approval_id
		WHERE CASE r.status WHEN 'approved' THEN coalesce(l.state, 'failed_retryable') <> 'failed_retryable' WHEN 'executing' THEN coalesce(l.state, '') <> 'executing'
			WHEN 'completed' THEN coalesce(l.state, '') <> 'succeeded' WHEN 'failed' THEN coalesce(l.state, '') <> 'failed_terminal' WHEN 'uncertain' THEN coalesce(l.state, '') <> 'uncertain'
			ELSE coalesce(l.state, 'failed_terminal') <> 'failed_terminal' END`)},
	{"vote_for_another_digest", statement(looked + `SELECT d.approval_id::text FROM approval_decision d JOIN req r USING (approval_id) WHERE d.digest <> r.digest`)},
	{"no_quorum", statement(looked + `SELECT r.approval_id::text FROM req r
		WHERE EXISTS (SELECT 1 FROM audit_event e WHERE e.approval_id = r.approval_id AND e.to_status = 'approved' AND e.from_status = 'pending')
		AND (SELECT count(*) FROM approval_decision d WHERE d.approval_id = r.approval_id AND d.decision = 'approve') < (r.operator_scope ->> 'quorum')::int`)},
	{"late_vote", statement(looked + `SELECT d.approval_id::text FROM approval_decision d JOIN req r USING (approval_id) WHERE d.decided_at >= r.decide_by AND d.reviewer LIKE 'slack:%'`)},
	{"success_without_result", statement(looked + `SELECT r.approval_id::text FROM req r JOIN approval_payload p USING (approval_id)
		WHERE r.status IN ('completed', 'responded') AND p.result IS NULL`)},
	{"told_too_early", statement(looked + `SELECT m.pause_id::text FROM req r JOIN run_call n ON n.tenant_id = r.tenant_id AND n.pause_id = r.pause_id AND n.approval_id = r.approval_id
		JOIN resume_message m ON m.pause_id = r.pause_id JOIN run_pause p ON p.pause_id = r.pause_id WHERE p.superseded_at IS NULL AND NOT r.settled`)},
	{"pause_miscounted", statement(looked + `, pauses AS (SELECT pause_id FROM req UNION SELECT pause_id FROM run_pause WHERE pause_id >= $1 AND pause_id < $2)
		SELECT p.pause_id::text FROM pauses JOIN run_pause p USING (pause_id) WHERE p.superseded_at IS NULL
		AND p.open_calls <> (SELECT count(*) FROM run_call n JOIN approval_request r USING (approval_id) WHERE n.tenant_id = p.tenant_id AND n.pause_id = p.pause_id AND NOT r.settled)`)},
	{"crosses_tenants", statement(looked + `SELECT r.approval_id::text FROM req r JOIN card c ON c.card_id = r.card_id JOIN run_pause p ON p.pause_id = r.pause_id JOIN api_key k ON k.id = r.api_key_id
		WHERE c.tenant_id <> r.tenant_id OR p.tenant_id <> r.tenant_id OR p.agent <> r.agent OR k.tenant_id <> r.tenant_id`)},
	{"version_without_audit", statement(looked + `SELECT r.approval_id::text FROM req r
		WHERE r.version <> (SELECT count(*) FROM audit_event e WHERE e.approval_id = r.approval_id AND e.to_status IS NOT NULL)`)},
}

// ViolationKinds lists the kinds that Violations may find.
func ViolationKinds() []string {
	out := make([]string, len(safetyQueries))
	for i, q := range safetyQueries {
		out[i] = q.kind
	}
	return out
}

// lookAtOnce is how many approvals a look at all of them takes in one statement, so that none runs for long.
const lookAtOnce = 20_000

// The first approval beyond the next $2 from $1 on; no row when there are not that many.
var sqlLookStep = statement(`SELECT approval_id FROM approval_request WHERE approval_id >= $1 ORDER BY approval_id OFFSET $2 LIMIT 1`)

// Violations looks for what must never be: among the approvals, of whatever age, that changed within a time, that were made in it, or
// that are not over; 0 looks at all there are, a part at a time. Each query sees one snapshot.
func (s *Service) Violations(ctx context.Context, within time.Duration) ([]Violation, error) {
	if within > 0 {
		var now time.Time
		if err := s.work.QueryRow(ctx, sqlClock).Scan(&now); err != nil {
			return nil, unavailable(err)
		}
		since := firstV7(now.Add(-within))
		return s.violations(ctx, nil, since, uuid.Max, &since)
	}
	return s.violationsOfAll(ctx, lookAtOnce)
}

func (s *Service) violationsOfAll(ctx context.Context, atOnce int) (out []Violation, err error) {
	for from := (uuid.UUID{}); ; {
		to := uuid.Max
		err := s.work.QueryRow(ctx, sqlLookStep, from, atOnce).Scan(&to)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return out, unavailable(err)
		}
		if out, err = s.violations(ctx, out, from, to, nil); err != nil || to == uuid.Max {
			return out, err
		}
		from = to
	}
}

// violations adds what is not known yet: one lineage or pause may be seen from approvals in two parts.
func (s *Service) violations(ctx context.Context, known []Violation, from, to uuid.UUID, since *uuid.UUID) ([]Violation, error) {
	for _, q := range safetyQueries {
		rows, err := s.work.Query(ctx, q.sql, from, to, since)
		if err != nil {
			return known, fmt.Errorf("%s: %w", q.kind, unavailable(err))
		}
		ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return known, fmt.Errorf("%s: %w", q.kind, unavailable(err))
		}
		for _, id := range ids {
			if v := (Violation{Kind: q.kind, ID: id}); !slices.Contains(known, v) {
				known = append(known, v)
			}
		}
	}
	return known, nil
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
