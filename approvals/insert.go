package approvals

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// insertion is a new approval with all that commits with it.
type insertion struct {
	row     requestRow
	payload []byte
	channel string
	macKey  []byte
	actor   Actor
	surface Surface
	outbox  []string
	detail  any
	items   []OutboxItem
}

// sqlInsert makes one pending approval: the row, its sealed arguments, its place in approval_open and in the pause, its card, its
// audit row and the outbox. $1 is the parent of an edit: then nothing happens unless the parent was just edited into this child
// (the swap before it in the same transaction may have missed its deadline).
var sqlInsert = statement(`
WITH ok AS (
	SELECT 1 WHERE $1::uuid IS NULL OR EXISTS (SELECT 1 FROM approval_request p WHERE p.approval_id = $1 AND p.status = 'edited' AND p.child_id = $2)
), req AS (
	INSERT INTO approval_request (approval_id, parent_id, tenant_id, agent, api_key_id, run_id, pause_id, call_path, agent_path, tool_call_id, lineage_id,
		replaces_id, tool_name, tool_kind, tool_revision, executor, arguments_digest, unreadable, digest, operation_key, target, target_version,
		operator_scope, rule, rule_why, config_revision, requester, app_state_version, sdk_format, sdk_version, sdk_schema_version, agent_revision,
		state_blob_uri, snapshot, editors, edit_diff, card_id, decide_by, execute_within, expires_at, status, created_at)
	SELECT $2::uuid, $1::uuid, $3::text, $4::text, $5::text, $6::text, $7::uuid, $8::text[], $9::text[], $10::text, $11::uuid,
		$12::uuid, $13::text, $14::text, $15::text, $16::text, $17::text, $18::text, $19::text, $20::text, $21::text, $22::text,
		$23::json, $24::text, $25::text, $26::bigint, $27::text, $28::text, $29::text, $30::text, $31::text, $32::text,
		$33::text, $34::json, $35::text[], $36::text, $37::uuid, $38::timestamptz, $39::interval, $38::timestamptz, 'pending', $48::timestamptz FROM ok
	RETURNING approval_id
), pay AS (
	INSERT INTO approval_payload (approval_id, arguments) SELECT approval_id, $40::bytea FROM req
), open AS (
	INSERT INTO approval_open (approval_id, tenant_id, run_id, wait, due_at) SELECT approval_id, $3::text, $6::text, 'decision', $38::timestamptz FROM req
), named AS (
	INSERT INTO run_call (tenant_id, pause_id, call_path, tool_call_id, approval_id) SELECT $3::text, $7::uuid, $8::text[], $10::text, approval_id FROM req
	ON CONFLICT (tenant_id, pause_id, call_path, tool_call_id) DO UPDATE SET approval_id = excluded.approval_id
), shown AS (
	INSERT INTO card (card_id, tenant_id, approval_id, pause_id, channel, mac_key) SELECT $37::uuid, $3::text, approval_id, $7::uuid, $41::text, $42::bytea FROM req
), aud AS (
	INSERT INTO audit_event (tenant_id, approval_id, pause_id, kind, to_status, actor, surface, detail)
	SELECT $3::text, approval_id, $7::uuid, 'approval.requested', 'pending', $43::text, $44::text, $45::json FROM req
	RETURNING event_id, tenant_id
), unsealed AS (
	INSERT INTO audit_unsealed (event_id, tenant_id) SELECT event_id, tenant_id FROM aud
)
INSERT INTO outbox (outbox_id, kind, subject_id) SELECT x.id, x.kind, req.approval_id FROM req, unnest($46::uuid[], $47::text[]) AS x (id, kind)`)

// queue adds the insertion to a batch.
func (n *insertion) queue(b *pgx.Batch) { n.queueChild(b, ID{}) }

// queueChild adds it as the child of an edited parent.
func (n *insertion) queueChild(b *pgx.Batch, parent ID) {
	r := &n.row
	scope, err := json.Marshal(r.scope)
	if err != nil {
		panic(fmt.Sprintf("scope of %s: %v", r.id, err)) // strings, numbers and booleans only
	}
	if n.detail == nil {
		n.detail = struct{}{}
	}
	detail, err := json.Marshal(n.detail)
	if err != nil {
		panic(fmt.Sprintf("audit detail of %s: %v", r.id, err))
	}
	ids := make([]uuid.UUID, len(n.outbox))
	n.items = n.items[:0]
	for i, kind := range n.outbox {
		ids[i] = newV7()
		n.items = append(n.items, OutboxItem{ID: ids[i], Kind: kind, Subject: uuid.UUID(r.id)})
	}
	b.Queue(sqlInsert, parent, r.id, r.tenant, r.agent, r.apiKeyID, r.runID, r.pauseID, list(r.callPath), list(r.agentPath), r.toolCallID, r.lineageID,
		r.replacesID, r.tool, r.toolKind, r.toolRevision, r.executor, r.argumentsDigest, r.unreadable, r.digest, r.operationKey, r.target, r.targetVersion,
		scope, r.rule, r.ruleWhy, r.configRevision, r.requester, r.appStateVersion, r.sdkFormat, r.sdkVersion, r.sdkSchema, r.agentRevision,
		r.stateURI, r.snapshot, list(r.editors), r.editDiff, r.cardID, r.decideBy, r.executeWithin, n.payload, n.channel, n.macKey,
		string(n.actor), string(n.surface), detail, ids, n.outbox, r.createdAt)
}

// list is never NULL in an array column.
func list(l []string) []string {
	if l == nil {
		return []string{}
	}
	return l
}

// earlier is the earlier of two times.
func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
