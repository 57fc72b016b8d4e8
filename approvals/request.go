package approvals

import (
	"encoding/json"
	"time"
)

// Key is an authenticated agent's API key: who calls the intake. It is never trusted beyond the door: every transaction reads it again.
type Key struct {
	ID     string
	Tenant string
	Agent  string
	Tools  []string // nil: all the agent's tools
}

// Intake is one paused run as an agent sends it (contract, POST /v1/approvals).
type Intake struct {
	RunID           string
	PauseKey        string // by which an agent without a state tells its turns apart
	AgentRevision   string
	AppStateVersion string
	Requester       string // "slack:U…" or empty; the agent's word
	Format          string // `none` when there is no state
	SDKVersion      string
	State           []byte // the SDK's JSON, byte for byte; nil for `none`
	Calls           []CallInput
	CallsGiven      bool // calls was in the request: it must then agree with the state
}

// CallInput is one waiting tool call. Arguments is the raw JSON text as the SDK gives it.
type CallInput struct {
	ToolCallID    string
	Tool          string
	Arguments     []byte
	AgentPath     []string
	CallPath      []string
	Reason        string        // the agent's words; shown as unverified
	ExpiresIn     time.Duration // only shortens decide_within; 0 is absent
	TargetVersion string
}

// Pause is the answer to an intake.
type Pause struct {
	RunID     string `json:"run_id"`
	Pause     int    `json:"pause"`
	Approvals []View `json:"approvals"`
	Repeat    bool   `json:"-"` // the same intake was here before
}

// Scope is what a rule asked for when the approval was made (approval_request.operator_scope). Decide and claim use it together
// with the current rule: the stricter of the two holds.
type Scope struct {
	Users            []string `json:"users,omitempty"`
	Groups           []string `json:"groups,omitempty"`
	Quorum           int      `json:"quorum"`
	ExcludeRequester bool     `json:"exclude_requester"`
	ExcludeEditor    bool     `json:"exclude_editor"`
	Decisions        []string `json:"decisions"`
	Risk             string   `json:"risk,omitempty"`
	Auto             bool     `json:"auto,omitempty"`          // decided by the rule itself (do: allow | deny)
	SecondPerson     bool     `json:"second_person,omitempty"` // an uncertain outcome needs two people who say the same
}

// Snapshot is what the reviewer sees: redacted, immutable, part of the digest. Arguments keep their numbers as sent.
type Snapshot struct {
	Title     string          `json:"title"`
	Arguments json.RawMessage `json:"arguments,omitempty"` // the redacted object; absent when unreadable
	Raw       string          `json:"raw,omitempty"`       // unreadable arguments, detected secrets masked
	Redacted  []string        `json:"redacted,omitempty"`  // JSON pointers whose value is hidden
	Reason    string          `json:"reason,omitempty"`    // the agent's words, unverified
	Links     []SnapshotLink  `json:"links,omitempty"`
}

// SnapshotLink is a link of the tool's configuration with the arguments' values in it.
type SnapshotLink struct {
	Text string `json:"text"`
	URL  string `json:"url"`
}

// Vote is one reviewer's decision. It is immutable, and one a person.
type Vote struct {
	By       string    `json:"by"` // slack:U… or rule:NAME
	At       time.Time `json:"at"`
	Decision string    `json:"decision"`
	Reason   string    `json:"reason,omitempty"`
	Void     bool      `json:"void,omitempty"` // the person was blocked after it: it counts for nothing, also when the block is lifted
	Digest   string    `json:"-"`
}

// Approves says whether the vote counts for an approval.
func (v Vote) Approves() bool { return v.Decision == string(Approve) && !v.Void }

// Approving is how many votes count for the approval as proposed.
func (v View) Approving() int {
	n := 0
	for _, vote := range v.Votes {
		if vote.Approves() {
			n++
		}
	}
	return n
}

// LedgerView is the operation's place in the ledger.
type LedgerView struct {
	State       LedgerState `json:"state"`
	Attempts    int         `json:"attempts"`
	Epoch       int64       `json:"epoch"`
	NextTryAt   *time.Time  `json:"next_try_at,omitempty"`
	MaybeEffect bool        `json:"maybe_effect,omitempty"`
	Reused      int         `json:"reused,omitempty"`
	Error       string      `json:"error,omitempty"` // redacted
}

// View is one approval as it is told to agents, cards and commands. It holds no sealed value but Result, which only
// the approval's own agent is given.
type View struct {
	ApprovalID      ID              `json:"approval_id"`
	Tenant          string          `json:"-"`
	Agent           string          `json:"agent"`
	RunID           string          `json:"run_id"`
	Pause           int             `json:"pause"`
	PauseID         string          `json:"-"`
	ToolCallID      string          `json:"tool_call_id"`
	CallPath        []string        `json:"call_path"`
	AgentPath       []string        `json:"agent_path"`
	Tool            string          `json:"tool"`
	Kind            string          `json:"kind"`
	Executor        string          `json:"executor"`
	ToolRevision    string          `json:"tool_revision"`
	Target          string          `json:"target"`
	TargetVersion   string          `json:"target_version,omitempty"`
	Status          Status          `json:"status"`
	ReasonCode      Reason          `json:"reason_code,omitempty"`
	Message         string          `json:"message,omitempty"`
	Held            Reason          `json:"held,omitempty"`
	HeldSince       *time.Time      `json:"held_since,omitempty"`
	ArgumentsDigest string          `json:"arguments_digest"`
	Digest          string          `json:"digest"`
	OperationKey    string          `json:"operation_key"`
	Unreadable      string          `json:"unreadable,omitempty"`
	Rule            string          `json:"rule"`
	RuleWhy         string          `json:"rule_why"`
	ConfigRevision  int64           `json:"config_revision"`
	Scope           Scope           `json:"reviewers"`
	Quorum          int             `json:"quorum"`
	Votes           []Vote          `json:"votes"`
	Snapshot        json.RawMessage `json:"snapshot"`
	Requester       string          `json:"requester,omitempty"`
	AppStateVersion string          `json:"app_state_version"`
	AgentRevision   string          `json:"agent_revision,omitempty"`
	SDKFormat       string          `json:"state_format"`
	CreatedAt       time.Time       `json:"created_at"`
	DecideBy        time.Time       `json:"decide_by"`
	ExpiresAt       time.Time       `json:"expires_at"` // the deadline in force: decide_by, then execute_by
	DecidedBy       string          `json:"decided_by,omitempty"`
	DecidedAt       *time.Time      `json:"decided_at,omitempty"`
	RevokedBy       string          `json:"revoked_by,omitempty"`
	RevokedAt       *time.Time      `json:"revoked_at,omitempty"`
	StartedAt       *time.Time      `json:"started_at,omitempty"`
	EndedAt         *time.Time      `json:"ended_at,omitempty"`
	Receipt         string          `json:"receipt,omitempty"` // a short scanned line of the tool's answer, fit for Slack
	Editors         []string        `json:"editors,omitempty"`
	EditDiff        string          `json:"edit_diff,omitempty"`
	ParentID        *ID             `json:"parent_id"`
	ChildID         *ID             `json:"child_id"`
	ReplacesID      *ID             `json:"replaces_id,omitempty"`
	Ledger          *LedgerView     `json:"ledger,omitempty"`
	Result          json.RawMessage `json:"result,omitempty"`
	ToldAt          *time.Time      `json:"told_at,omitempty"`
	Version         int64           `json:"version"`
	Present         *Present        `json:"present,omitempty"` // whom it asks now, where that is looked up: Get, lists for people, cards, Details
	Now             time.Time       `json:"-"`                 // the database's clock when the row was read
}

// Event is one audit row of an approval, oldest first.
type Event struct {
	At      time.Time       `json:"at"`
	Kind    string          `json:"kind"`
	From    Status          `json:"from,omitempty"`
	To      Status          `json:"to,omitempty"`
	Actor   string          `json:"actor"`
	Surface string          `json:"surface"`
	Detail  json.RawMessage `json:"detail,omitempty"`
}
