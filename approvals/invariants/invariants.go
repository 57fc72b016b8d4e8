// Package invariants holds the invariants of the database as SQL. Tests of every package end with it, whatever their story was; a
// running worker asks the cheaper part of it that is in the core (approvals.Service.Violations). Only tests import it.
package invariants

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Query is one invariant, by its name on the invariants page.
type Query struct{ Name, SQL string }

// Database is a pool or a transaction.
type Database interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Find gives the ids of what breaks this one.
func (q Query) Find(ctx context.Context, db Database) ([]string, error) {
	rows, err := db.Query(ctx, q.SQL)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", q.Name, err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", q.Name, err)
	}
	return ids, nil
}

// Broken gives what is wrong in a database, an invariant a line; nil when all hold.
func Broken(ctx context.Context, db Database) (out []string, err error) {
	if _, err := db.Exec(ctx, `ANALYZE`); err != nil { // rows came without anybody counting them
		return nil, err
	}
	for _, q := range Queries {
		ids, err := q.Find(ctx, db)
		if err != nil {
			return nil, err
		}
		if len(ids) > 0 {
			out = append(out, fmt.Sprintf("violated: %s: %v", q.Name, ids))
		}
	}
	return out, nil
}

// Queries give no row over any database that only the core wrote, however the story went. Each row is the id of what is wrong.
var Queries = []Query{
	{"I1 one approval an effect", `SELECT l.lineage_id::text FROM idempotency_ledger l LEFT JOIN approval_request r ON r.approval_id = l.approval_id AND r.lineage_id = l.lineage_id
		WHERE r.approval_id IS NULL`},
	{"I1 one effect a lineage", `SELECT lineage_id::text FROM approval_request WHERE status IN ('executing', 'completed', 'uncertain') GROUP BY 1 HAVING count(*) > 1`},
	{"I1 the operation key is the row's", `SELECT l.lineage_id::text FROM idempotency_ledger l JOIN approval_request r USING (approval_id) WHERE l.operation_key <> r.operation_key`},
	{"I2 status and ledger agree", `SELECT r.approval_id::text || ' ' || r.status || ' ' || coalesce(l.state, '-') FROM approval_request r LEFT JOIN idempotency_ledger l USING (approval_id)
		WHERE CASE r.status WHEN 'approved' THEN coalesce(l.state, 'failed_retryable') <> 'failed_retryable' WHEN 'executing' THEN coalesce(l.state, '') <> 'executing'
			WHEN 'completed' THEN coalesce(l.state, '') <> 'succeeded' WHEN 'failed' THEN coalesce(l.state, '') <> 'failed_terminal' WHEN 'uncertain' THEN coalesce(l.state, '') <> 'uncertain'
			ELSE coalesce(l.state, 'failed_terminal') <> 'failed_terminal' END`},
	{"I2 no effect is proven", `SELECT l.lineage_id::text FROM idempotency_ledger l JOIN approval_request r USING (approval_id)
		WHERE l.maybe_effect AND (l.state IN ('failed_retryable', 'succeeded') OR r.status IN ('approved', 'expired', 'revoked', 'migration_required'))`},
	{"I6 votes are for the digest", `SELECT d.approval_id::text FROM approval_decision d JOIN approval_request r USING (approval_id) WHERE d.digest <> r.digest`},
	{"I6 one final decision", `SELECT approval_id::text FROM approval_decision WHERE decision <> 'approve' GROUP BY 1 HAVING count(*) > 1`},
	{"I6 the final decision is the status", `SELECT r.approval_id::text FROM approval_decision d JOIN approval_request r USING (approval_id)
		WHERE d.decision = 'reject' AND r.status <> 'rejected' OR d.decision = 'edit' AND r.status <> 'edited' OR d.decision = 'respond' AND r.status <> 'responded'`},
	{"I6 a quorum stands behind what was approved", `SELECT r.approval_id::text FROM approval_request r
		WHERE EXISTS (SELECT 1 FROM audit_event e WHERE e.approval_id = r.approval_id AND e.to_status = 'approved' AND e.from_status = 'pending')
			AND (SELECT count(*) FROM approval_decision d WHERE d.approval_id = r.approval_id AND d.decision = 'approve') < (r.operator_scope ->> 'quorum')::int`},
	{"I6 votes are counted", `SELECT r.approval_id::text FROM approval_request r WHERE r.votes <> (SELECT count(*) FROM approval_decision d WHERE d.approval_id = r.approval_id AND d.decision = 'approve')`},
	{"I7 no vote at or after decide_by", `SELECT d.approval_id::text FROM approval_decision d JOIN approval_request r USING (approval_id) WHERE d.decided_at >= r.decide_by AND d.reviewer LIKE 'slack:%'`},
	{"I9 the audit is a chain", `SELECT approval_id::text FROM (SELECT approval_id, from_status, lag(to_status) OVER (PARTITION BY approval_id ORDER BY event_id) AS before
		FROM audit_event WHERE to_status IS NOT NULL) e WHERE from_status IS DISTINCT FROM before`},
	{"I9 the audit ends at the row", `SELECT r.approval_id::text FROM approval_request r WHERE r.status <> (SELECT e.to_status FROM audit_event e
		WHERE e.approval_id = r.approval_id AND e.to_status IS NOT NULL ORDER BY e.event_id DESC LIMIT 1)`},
	{"I10 an edit has its child", `SELECT p.approval_id::text FROM approval_request p LEFT JOIN approval_request c ON c.approval_id = p.child_id AND c.parent_id = p.approval_id
		WHERE p.status = 'edited' AND (c.approval_id IS NULL OR c.lineage_id <> p.lineage_id OR c.digest = p.digest OR c.arguments_digest = p.arguments_digest
			OR c.tool_name <> p.tool_name OR c.decide_by > p.decide_by OR c.call_path <> p.call_path OR c.tool_call_id <> p.tool_call_id)`},
	{"I10 a child has its parent", `SELECT c.approval_id::text FROM approval_request c LEFT JOIN approval_request p ON p.approval_id = c.parent_id
		WHERE c.parent_id IS NOT NULL AND (p.status IS DISTINCT FROM 'edited' OR p.child_id IS DISTINCT FROM c.approval_id)`},
	{"I13 an opaque tool is dispatched once", `SELECT r.approval_id::text FROM approval_request r WHERE r.tool_name IN ('send_mail', 'run_script', 'send') AND
		(SELECT count(*) FILTER (WHERE e.kind = 'execution.claimed') - count(*) FILTER (WHERE e.kind = 'execution.retry') FROM audit_event e WHERE e.approval_id = r.approval_id) > 1`},
	{"I16 the epoch counts the claims", `SELECT l.lineage_id::text FROM idempotency_ledger l LEFT JOIN (SELECT r.lineage_id, count(*) AS n FROM audit_event e JOIN approval_request r USING (approval_id)
		WHERE e.kind = 'execution.claimed' GROUP BY 1) c USING (lineage_id) WHERE l.epoch <> coalesce(c.n, 0)`},
	{"I20 a result is stored with its success", `SELECT r.approval_id::text FROM approval_request r JOIN approval_payload p USING (approval_id) WHERE (r.status IN ('completed', 'responded')) <> (p.result IS NOT NULL)`},
	{"I20 nothing is told before its calls are settled", `SELECT m.pause_id::text FROM resume_message m JOIN run_call n USING (pause_id) JOIN approval_request r USING (approval_id) JOIN run_pause p ON p.pause_id = m.pause_id
		WHERE p.superseded_at IS NULL AND NOT r.settled`},
	{"I20 told with a message", `SELECT p.pause_id::text FROM run_pause p LEFT JOIN resume_message m USING (pause_id) WHERE p.told_at IS NOT NULL AND m.pause_id IS NULL`},
	{"I22 nothing crosses tenants", `SELECT r.approval_id::text FROM approval_request r LEFT JOIN approval_open o USING (approval_id) JOIN card c ON c.card_id = r.card_id JOIN run_pause p ON p.pause_id = r.pause_id
		LEFT JOIN run_state_blob b ON b.blob_id = p.blob_id JOIN api_key k ON k.id = r.api_key_id
		WHERE o.tenant_id <> r.tenant_id OR c.tenant_id <> r.tenant_id OR p.tenant_id <> r.tenant_id OR p.agent <> r.agent OR p.run_id <> r.run_id OR b.tenant_id <> r.tenant_id OR k.tenant_id <> r.tenant_id`},
	{"I22 the audit is the tenant's", `SELECT e.event_id::text FROM audit_event e JOIN approval_request r USING (approval_id) WHERE e.tenant_id <> r.tenant_id`},
	{"I25 a version is an audit row", `SELECT r.approval_id::text || ' v' || r.version FROM approval_request r
		WHERE r.version <> (SELECT count(*) FROM audit_event e WHERE e.approval_id = r.approval_id AND e.to_status IS NOT NULL)`},
	{"I26 every event is sealed or waits for it", `SELECT e.event_id::text FROM audit_event e LEFT JOIN audit_unsealed u USING (event_id) LEFT JOIN audit_seal s ON s.event_id = e.event_id
		WHERE u.event_id IS NULL AND s.event_id IS NULL`},
	{"open is what is not over", `SELECT coalesce(r.approval_id, o.approval_id)::text || ' ' || coalesce(r.status, '-') || ' ' || coalesce(o.wait, '-') FROM approval_request r FULL JOIN approval_open o USING (approval_id)
		WHERE CASE WHEN r.status = 'pending' THEN coalesce(o.wait, '') <> 'decision' WHEN r.status = 'approved' THEN coalesce(o.wait, '') NOT IN ('execution', 'agent', 'retry', 'held')
			WHEN r.status = 'executing' THEN coalesce(o.wait, '') <> 'lease' WHEN r.status = 'uncertain' THEN coalesce(o.wait, '') <> 'evidence' ELSE o.wait IS NOT NULL END`},
	{"held is shown while it is waited for", `SELECT o.approval_id::text FROM approval_open o JOIN approval_request r USING (approval_id) WHERE o.wait = 'held' AND r.held IS NULL OR r.held IS NOT NULL AND o.wait NOT IN ('held', 'agent', 'lease')`},
	{"settled is terminal, or the agent's", `SELECT r.approval_id::text || ' ' || r.status FROM approval_request r JOIN run_pause p USING (pause_id) WHERE r.settled <> (
			r.status IN ('rejected', 'responded', 'expired', 'revoked', 'migration_required', 'completed', 'failed')
			OR r.executor = 'agent' AND r.status IN ('approved', 'executing', 'uncertain')) AND r.reason_code IS DISTINCT FROM 'superseded'`},
	{"a pause counts its calls", `SELECT p.pause_id::text || ' says ' || p.open_calls FROM run_pause p WHERE p.superseded_at IS NULL
		AND p.open_calls <> (SELECT count(*) FROM run_call n JOIN approval_request r USING (approval_id) WHERE n.pause_id = p.pause_id AND NOT r.settled)`},
	{"a pause closes at zero", `SELECT p.pause_id::text FROM run_pause p WHERE (p.closed_at IS NOT NULL) <> (p.open_calls = 0)`},
	{"a call is named once", `SELECT n.approval_id::text FROM run_call n JOIN approval_request r USING (approval_id) JOIN run_pause p ON p.pause_id = n.pause_id
		WHERE p.superseded_at IS NULL AND (r.status = 'edited' OR r.pause_id <> n.pause_id)`},
	{"what was superseded is not told", `SELECT pause_id::text FROM run_pause WHERE superseded_at IS NOT NULL AND next_try_at IS NOT NULL`},
	{"an outbox row has a subject", `SELECT o.outbox_id::text FROM outbox o WHERE NOT EXISTS (SELECT 1 FROM approval_request WHERE approval_id = o.subject_id) AND NOT EXISTS (SELECT 1 FROM run_pause WHERE pause_id = o.subject_id)`},
	{"I5 nobody decides their own call", `SELECT d.approval_id::text FROM approval_decision d JOIN approval_request r USING (approval_id)
		WHERE d.reviewer = r.requester AND (r.operator_scope ->> 'exclude_requester')::boolean`},
	{"I5 people decide, or the rule", `SELECT approval_id::text FROM approval_decision WHERE reviewer NOT LIKE 'slack:%' AND reviewer NOT LIKE 'rule:%'`},
	{"I9 what is over stays as it is", `SELECT e.approval_id::text FROM audit_event e WHERE e.to_status IS NOT NULL AND EXISTS (SELECT 1 FROM audit_event o WHERE o.approval_id = e.approval_id AND o.event_id < e.event_id
		AND o.to_status IN ('rejected', 'responded', 'edited', 'expired', 'revoked', 'migration_required', 'completed', 'failed'))`},
	{"I10 an editor does not approve", `WITH RECURSIVE line AS (SELECT approval_id, approval_id AS child FROM approval_request UNION ALL SELECT r.parent_id, l.child FROM line l JOIN approval_request r USING (approval_id) WHERE r.parent_id IS NOT NULL)
		SELECT d.approval_id::text FROM line l JOIN approval_decision e ON e.approval_id = l.approval_id AND e.decision = 'edit' JOIN approval_decision d ON d.approval_id = l.child AND d.reviewer = e.reviewer AND d.decision = 'approve'
			JOIN approval_request r ON r.approval_id = l.child WHERE l.approval_id <> l.child AND (r.operator_scope ->> 'exclude_editor')::boolean`},
	{"I11 each call has its own authority", `SELECT r.approval_id::text FROM approval_request r WHERE r.status IN ('approved', 'executing', 'completed', 'uncertain')
		AND NOT EXISTS (SELECT 1 FROM approval_decision d WHERE d.approval_id = r.approval_id AND d.decision = 'approve') AND NOT coalesce((r.operator_scope ->> 'auto')::boolean, false)`},
	{"I18 what is uncertain is not sent again", `SELECT e.approval_id::text FROM audit_event e WHERE e.kind = 'execution.claimed' AND NOT coalesce((e.detail ->> 'lookup')::boolean, false)
		AND EXISTS (SELECT 1 FROM audit_event o WHERE o.approval_id = e.approval_id AND o.event_id < e.event_id AND o.to_status = 'uncertain')`},
	{"I21 a call is proposed once in its pause", `SELECT min(approval_id::text) FROM approval_request WHERE parent_id IS NULL GROUP BY tenant_id, pause_id, call_path, tool_call_id HAVING count(*) > 1`},
}
