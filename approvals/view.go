package approvals

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

// show applies a committed move to the view from before it, without another round trip; its times are those of the lock.
func (w *swap) show(v *View, version int64) {
	at := v.Now
	v.Status, v.Version = w.to, version
	if v.Held != w.held {
		v.Held, v.HeldSince = w.held, nil
		if w.held != "" {
			v.HeldSince = &at
		}
	}
	if w.reason != "" {
		v.ReasonCode = w.reason
	}
	if w.message != "" {
		v.Message = w.message
	}
	if w.receipt != "" {
		v.Receipt = w.receipt
	}
	if w.decided != "" {
		v.DecidedBy, v.DecidedAt = string(w.decided), &at
	}
	if w.revoked != "" && v.RevokedAt == nil {
		v.RevokedBy, v.RevokedAt = string(w.revoked), &at
	}
	if w.expires != nil {
		v.ExpiresAt = *w.expires
	}
	if !w.child.IsZero() {
		v.ChildID = &w.child
	}
	if w.to == Executing && v.StartedAt == nil {
		v.StartedAt = &at
	}
	if w.to.Terminal() {
		v.EndedAt = &at
	}
	if w.ledger != nil && v.Ledger != nil {
		l := *v.Ledger
		l.State, l.NextTryAt, l.MaybeEffect, l.Error = w.ledger.to, w.ledger.nextTry, w.ledger.maybeEffect, ""
		if w.ledger.errorText != nil {
			l.Error = *w.ledger.errorText
		}
		v.Ledger = &l
	}
}
