package approvals

import (
	"errors"
	"fmt"
	"time"
)

// Code is a refusal's stable name, as in the problem+json of the contract.
type Code string

// The contract's codes.
const (
	CodeUnauthorized       Code = "unauthorized"
	CodeInvalidRequest     Code = "invalid_request"
	CodeUnknownTool        Code = "unknown_tool"
	CodeToolNotAllowed     Code = "tool_not_allowed"
	CodeNoRule             Code = "no_rule"
	CodeRuleError          Code = "rule_error"
	CodeSchemaMismatch     Code = "schema_mismatch"
	CodeNoQuorumPossible   Code = "no_quorum_possible"
	CodeRequesterRequired  Code = "requester_required"
	CodeUnknownRequester   Code = "unknown_requester"
	CodeVersionUnsupported Code = "version_unsupported"
	CodeIntakeClosed       Code = "intake_closed"
	CodeStateMismatch      Code = "state_mismatch"
	CodeStandingApproval   Code = "standing_approval_in_state"
	CodeSecretInState      Code = "secret_in_state"
	CodeStateTooLarge      Code = "state_too_large"
	CodeTooManyOpen        Code = "too_many_open"
	CodeDifferentArguments Code = "different_arguments"
	CodeNotFound           Code = "not_found"
	CodeConflict           Code = "conflict"
	CodeNotExecutable      Code = "not_executable"
	CodeRateLimited        Code = "rate_limited"
	CodeForbidden          Code = "forbidden" // 403 at claim only: authority is gone; Reason says why
)

// Codes lists every code of a refusal.
var Codes = []Code{
	CodeUnauthorized, CodeInvalidRequest, CodeUnknownTool, CodeToolNotAllowed, CodeNoRule, CodeRuleError,
	CodeSchemaMismatch, CodeNoQuorumPossible, CodeRequesterRequired, CodeUnknownRequester, CodeVersionUnsupported, CodeIntakeClosed,
	CodeStateMismatch, CodeStandingApproval, CodeSecretInState, CodeStateTooLarge, CodeTooManyOpen, CodeDifferentArguments,
	CodeNotFound, CodeConflict, CodeNotExecutable, CodeRateLimited, CodeForbidden,
}

// Refusal is a clear no to an agent: what is wrong and what to do next, without any argument, state or secret.
type Refusal struct {
	Code       Code
	Detail     string        // a sentence that says what to do
	Pointer    string        // JSON pointer to the offending place, when there is one
	Suggest    string        // YAML to paste, when a setting is missing
	State      string        // not_executable: the ledger's state, the status, or `held`
	Reason     Reason        // forbidden: the reason code
	RetryAfter time.Duration // rate_limited: when to come back
	TooLarge   bool          // a limit of size was passed
}

func (r *Refusal) Error() string { return string(r.Code) + ": " + r.Detail }

func refuse(code Code, format string, args ...any) *Refusal {
	return &Refusal{Code: code, Detail: fmt.Sprintf(format, args...)}
}

// Reason is a reason code: why an approval ended or is held without an effect. Each has its own sentence on the card.
type Reason string

// The contract's reason codes.
const (
	ReasonRequesterInactive   Reason = "requester_inactive"
	ReasonRequesterLostRole   Reason = "requester_lost_role"
	ReasonAgentNotAllowed     Reason = "agent_not_allowed"
	ReasonReviewerLost        Reason = "reviewer_lost_authority"
	ReasonPolicyChanged       Reason = "policy_changed"
	ReasonDigestMismatch      Reason = "digest_mismatch"
	ReasonVersionUnregistered Reason = "version_unregistered"
	ReasonToolChanged         Reason = "tool_changed"
	ReasonTargetChanged       Reason = "target_changed"
	ReasonWindowClosed        Reason = "window_closed"
	ReasonPaused              Reason = "paused"
	ReasonAuthorityUnreadable Reason = "authority_unreadable"
	ReasonSuperseded          Reason = "superseded"
	ReasonWithdrawn           Reason = "withdrawn"
	ReasonRevokedByAdmin      Reason = "revoked_by_admin"
	ReasonDecideExpired       Reason = "decide_expired"
	ReasonExecuteExpired      Reason = "execute_expired"
	ReasonNoEffect            Reason = "no_effect"
	ReasonRetriesSpent        Reason = "retries_spent"
)

// Reasons lists every reason code of the contract.
var Reasons = []Reason{
	ReasonRequesterInactive, ReasonRequesterLostRole, ReasonAgentNotAllowed, ReasonReviewerLost, ReasonPolicyChanged, ReasonDigestMismatch,
	ReasonVersionUnregistered, ReasonToolChanged, ReasonTargetChanged, ReasonWindowClosed, ReasonPaused, ReasonAuthorityUnreadable, ReasonSuperseded,
	ReasonWithdrawn, ReasonRevokedByAdmin, ReasonDecideExpired, ReasonExecuteExpired, ReasonNoEffect, ReasonRetriesSpent,
}

// Sentinels of the core. Each edge turns them into one answer; anything else is logged once inside and is "internal" outside.
var (
	ErrNotFound    = errors.New("no such approval")                                         // also for another tenant's or another agent's id (I22)
	ErrUnavailable = errors.New("the database did not answer in time")                      // nothing is known to have changed: try again
	ErrStale       = errors.New("the lease is over: another holder has the operation now")  // I16: a stale holder's write changed 0 rows
	ErrCorrupt     = errors.New("a stored row does not match its digest or cannot be read") // fail closed
	ErrNotAdmin    = errors.New("only an admin of the tenant may do that")
	// ErrUncheckable says that people or groups are not mirrored well enough to tell whether somebody is an admin: nothing was done (I4).
	ErrUncheckable = errors.New("whether this person is an admin cannot be checked yet")
)
