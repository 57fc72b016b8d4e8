package approvals

import "github.com/google/uuid"

// view is the row as it may be told. Pause and Result are filled by whoever needs them.
func (f *facts) view() View {
	v := f.req.view()
	v.Votes = f.votes
	v.Now = f.now
	if f.ledger != nil {
		v.Ledger = f.ledger.view()
	}
	return v
}

func (r *requestRow) view() View {
	v := View{
		ApprovalID: r.id, Tenant: r.tenant, Agent: r.agent, RunID: r.runID, PauseID: r.pauseID.String(), ToolCallID: r.toolCallID,
		CallPath: r.callPath, AgentPath: r.agentPath, Tool: r.tool, Kind: r.toolKind, Executor: r.executor, ToolRevision: r.toolRevision,
		Target: r.target, TargetVersion: r.targetVersion, Status: r.status, ReasonCode: Reason(r.reason), Message: r.message,
		Held: Reason(r.held), HeldSince: r.heldSince, ArgumentsDigest: r.argumentsDigest, Digest: r.digest, OperationKey: r.operationKey,
		Unreadable: r.unreadable, Rule: r.rule, RuleWhy: r.ruleWhy, ConfigRevision: r.configRevision, Scope: r.scope, Quorum: r.scope.Quorum,
		Votes: []Vote{}, Snapshot: r.snapshot, Requester: r.requester, AppStateVersion: r.appStateVersion, AgentRevision: r.agentRevision,
		SDKFormat: r.sdkFormat, CreatedAt: r.createdAt, DecideBy: r.decideBy, ExpiresAt: r.expiresAt, DecidedBy: r.decidedBy,
		DecidedAt: r.decidedAt, RevokedBy: r.revokedBy, RevokedAt: r.revokedAt, StartedAt: r.startedAt, EndedAt: r.endedAt,
		Receipt: r.receipt, Editors: r.editors, EditDiff: r.editDiff, Version: r.version,
		ParentID: optional(r.parentID), ChildID: optional(r.childID), ReplacesID: optional(r.replacesID),
	}
	return v
}

func (l *ledgerRow) view() *LedgerView {
	return &LedgerView{State: l.state, Attempts: l.attempts, Epoch: l.epoch, NextTryAt: l.nextTryAt, MaybeEffect: l.maybeEffect, Reused: l.reused, Error: l.errorText}
}

func optional(id ID) *ID {
	if id.IsZero() {
		return nil
	}
	return &id
}

func (r *requestRow) subject() uuid.UUID { return uuid.UUID(r.id) }
