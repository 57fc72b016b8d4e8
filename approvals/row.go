package approvals

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// requestRow is one row of approval_request.
type requestRow struct {
	id, lineageID, parentID, childID, replacesID ID
	pauseID, cardID                              uuid.UUID
	tenant, agent, apiKeyID, runID               string
	callPath, agentPath, editors                 []string
	toolCallID, tool, toolKind, toolRevision     string
	executor, argumentsDigest, unreadable        string
	digest, operationKey, target, targetVersion  string
	scope                                        Scope
	rule, ruleWhy, requester                     string
	configRevision                               int64
	appStateVersion, sdkFormat, sdkVersion       string
	sdkSchema, agentRevision                     string
	stateURI                                     *string
	snapshot                                     []byte
	editDiff                                     string
	createdAt, decideBy, expiresAt               time.Time
	executeWithin                                time.Duration
	status                                       Status
	version                                      int64
	votes                                        int
	reason, message, held, decidedBy, revokedBy  string
	heldSince, decidedAt, revokedAt              *time.Time
	startedAt, endedAt                           *time.Time
	receipt                                      string
	evidence                                     []byte
	settled                                      bool
}

const requestColumns = `r.approval_id, r.lineage_id, r.parent_id, r.child_id, r.replaces_id, r.pause_id, r.card_id, r.tenant_id, r.agent, r.api_key_id,
	r.run_id, r.call_path, r.agent_path, r.editors, r.tool_call_id, r.tool_name, r.tool_kind, r.tool_revision, r.executor, r.arguments_digest,
	r.unreadable, r.digest, r.operation_key, r.target, r.target_version, r.operator_scope, r.rule, r.rule_why, r.requester, r.config_revision,
	r.app_state_version, r.sdk_format, r.sdk_version, r.sdk_schema_version, r.agent_revision, r.state_blob_uri, r.snapshot, r.edit_diff,
	r.created_at, r.decide_by, r.expires_at, r.execute_within, r.status, r.version, r.votes, coalesce(r.reason_code, ''), coalesce(r.message, ''),
	coalesce(r.held, ''), coalesce(r.decided_by, ''), coalesce(r.revoked_by, ''), r.held_since, r.decided_at, r.revoked_at, r.started_at, r.ended_at,
	coalesce(r.receipt, ''), r.evidence, r.settled`

func (r *requestRow) targets(scope *[]byte) []any {
	return []any{
		&r.id, &r.lineageID, &r.parentID, &r.childID, &r.replacesID, &r.pauseID, &r.cardID, &r.tenant, &r.agent, &r.apiKeyID,
		&r.runID, &r.callPath, &r.agentPath, &r.editors, &r.toolCallID, &r.tool, &r.toolKind, &r.toolRevision, &r.executor, &r.argumentsDigest,
		&r.unreadable, &r.digest, &r.operationKey, &r.target, &r.targetVersion, scope, &r.rule, &r.ruleWhy, &r.requester, &r.configRevision,
		&r.appStateVersion, &r.sdkFormat, &r.sdkVersion, &r.sdkSchema, &r.agentRevision, &r.stateURI, &r.snapshot, &r.editDiff,
		&r.createdAt, &r.decideBy, &r.expiresAt, &r.executeWithin, &r.status, &r.version, &r.votes, &r.reason, &r.message,
		&r.held, &r.decidedBy, &r.revokedBy, &r.heldSince, &r.decidedAt, &r.revokedAt, &r.startedAt, &r.endedAt,
		&r.receipt, &r.evidence, &r.settled,
	}
}

func scanRequest(row pgx.Row, more ...any) (*requestRow, error) {
	var r requestRow
	var scope []byte
	if err := row.Scan(append(r.targets(&scope), more...)...); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(scope, &r.scope); err != nil {
		return nil, fmt.Errorf("%w: operator_scope of %s", ErrCorrupt, r.id)
	}
	return &r, nil
}

// ledgerRow is one row of idempotency_ledger.
type ledgerRow struct {
	lineageID, approvalID  ID
	operationKey, holder   string
	state                  LedgerState
	epoch                  int64
	token                  uuid.UUID
	attemptID              string
	attempts               int
	leaseExpiresAt         *time.Time
	claimedAt              time.Time
	firstSentAt, nextTryAt *time.Time
	maybeEffect            bool
	reused                 int
	errorText              string
}

const ledgerColumns = `l.lineage_id, l.approval_id, l.operation_key, l.holder, l.state, l.epoch, l.token, l.attempt_id, l.attempts, l.lease_expires_at,
	l.claimed_at, l.first_sent_at, l.next_try_at, l.maybe_effect, l.reused, coalesce(l.error, '')`

func scanLedger(row pgx.Row) (*ledgerRow, error) {
	var l ledgerRow
	err := row.Scan(&l.lineageID, &l.approvalID, &l.operationKey, &l.holder, &l.state, &l.epoch, &l.token, &l.attemptID, &l.attempts,
		&l.leaseExpiresAt, &l.claimedAt, &l.firstSentAt, &l.nextTryAt, &l.maybeEffect, &l.reused, &l.errorText)
	if err != nil {
		return nil, err
	}
	return &l, nil
}

// leaseOver says whether the holder's time has passed on the database's clock.
func (l *ledgerRow) leaseOver(now time.Time) bool {
	return l.leaseExpiresAt == nil || !now.Before(*l.leaseExpiresAt)
}
