package intake

import (
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdpoint/holdpoint/approvals"
)

// Stand-ins for the core's types in the document: huma can't know which values they take.
type (
	idWord     struct{}
	statusWord struct{}
	ledgerWord struct{}
	reasonWord struct{}
	codeWord   struct{}
)

func (idWord) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Pattern: "^apr_[0-7][0-9a-hjkmnp-tv-z]{25}$", Examples: []any{"apr_01k0q3w8f7e5v9c2n4m6s8t0ya"}}
}

func (statusWord) Schema(huma.Registry) *huma.Schema { s := statusSchema(); return &s }

func (ledgerWord) Schema(huma.Registry) *huma.Schema { return enum(approvals.LedgerStates) }

func (reasonWord) Schema(huma.Registry) *huma.Schema { return enum(approvals.Reasons) }

func (codeWord) Schema(huma.Registry) *huma.Schema {
	codes := make([]approvals.Code, len(meanings))
	for i, m := range meanings {
		codes[i] = m.code
	}
	return enum(codes)
}

func statusSchema() huma.Schema { return *enum(approvals.Statuses) }

func enum[T ~string](values []T) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeString}
	for _, v := range values {
		s.Enum = append(s.Enum, string(v))
	}
	return s
}

func (rawJSON) Schema(huma.Registry) *huma.Schema { return &huma.Schema{} }

func (argumentsText) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{OneOf: []*huma.Schema{
		{Type: huma.TypeString, Examples: []any{`{"release":"2026.07.24","environment":"production"}`}},
		{Type: huma.TypeObject, AdditionalProperties: true},
	}}
}

// resumeMessage is the webhook's body as the document shows it (contract "Resume"). The server passes the stored bytes on and never
// builds one.
type resumeMessage struct {
	Type      string     `json:"type" enum:"run.resume,run.blocked" doc:"run.resume: go on. run.blocked: the state is withheld; the calls and their outcomes are here all the same."`
	Timestamp time.Time  `json:"timestamp" doc:"When the message was made."`
	Data      resumeData `json:"data" doc:"The pause that ended."`
}

type resumeData struct {
	Run       resumeRun        `json:"run" doc:"Which run, and which of its pauses."`
	State     *resumeState     `json:"state,omitempty" doc:"run.resume: the state as it was handed in."`
	Decisions []resumeDecision `json:"decisions" doc:"Every call of the pause, with its outcome and result."`
}

type resumeRun struct {
	ID              string `json:"id" doc:"Your name for the run."`
	Pause           int    `json:"pause" doc:"For the acknowledgement."`
	Agent           string `json:"agent" doc:"The key's agent."`
	AgentRevision   string `json:"agent_revision" doc:"As handed in."`
	AppStateVersion string `json:"app_state_version" doc:"As handed in."`
}

type resumeState struct {
	Format        string  `json:"format" doc:"As handed in."`
	SchemaVersion string  `json:"schema_version,omitempty" doc:"As read from the state."`
	Value         rawJSON `json:"value,omitempty" doc:"The state."`
}

type resumeDecision struct {
	ApprovalID      approvals.ID     `json:"approval_id" doc:"The approval."`
	ToolCallID      string           `json:"tool_call_id" doc:"The SDK's id of the call."`
	AgentPath       []string         `json:"agent_path" doc:"The agents' names, outermost first."`
	Tool            string           `json:"tool" doc:"The tool."`
	Decision        string           `json:"decision" enum:"approve,reject,respond" doc:"What to tell the SDK."`
	Edited          bool             `json:"edited" doc:"The arguments are a reviewer's, not the agent's."`
	Arguments       string           `json:"arguments" doc:"Exactly the approved bytes."`
	ArgumentsDigest string           `json:"arguments_digest" doc:"Over the RFC 8785 form of the arguments."`
	OperationKey    string           `json:"operation_key" doc:"The idempotency key of the effect."`
	ExecutedBy      string           `json:"executed_by" doc:"worker or agent."`
	Outcome         string           `json:"outcome" enum:"succeeded,failed,not_run,pending_agent" doc:"pending_agent: yours to run now, under a claim."`
	Result          rawJSON          `json:"result" doc:"What the tool returned, or the answer to a question."`
	Error           *string          `json:"error" doc:"Why it failed."`
	ReasonCode      *string          `json:"reason_code" doc:"Why it was not run."`
	Message         *string          `json:"message" doc:"For the model: a rejection's reason, or what an edit changed."`
	Votes           []approvals.Vote `json:"votes" doc:"Who decided."`
}

// memberDocs explains members of the core's types, by schema and member.
var memberDocs = map[string]string{
	"Pause.run_id":               "Your name for the run.",
	"Pause.pause":                "Which pause of the run this is, from 1.",
	"Pause.approvals":            "One for each waiting call.",
	"Approval.approval_id":       "Its id; it stands on the card in Slack too.",
	"Approval.agent":             "The key's agent.",
	"Approval.present":           "Whom it asks under the configuration that is active now; only while it is pending and the configuration is another than at its intake.",
	"Present.known":              "false: it can't be told right now; the rest is what the approval was made with.",
	"Present.config_revision":    "The active revision.",
	"Present.rule":               "Empty: no rule takes the call any more; it can only be rejected.",
	"Present.users":              "Whose vote counts.",
	"Present.groups":             "Whose members' votes count.",
	"Present.quorum":             "How many approvals it needs now: the stricter of then and now.",
	"Present.exclude_requester":  "Whether the requester's vote is excluded.",
	"Present.exclude_editor":     "Whether an editor's vote is excluded.",
	"Approval.run_id":            "Your name for the run.",
	"Approval.pause":             "Which pause of the run it belongs to, from 1.",
	"Approval.tool_call_id":      "The SDK's id of the call.",
	"Approval.call_path":         "The outer tool-call ids, outermost first; with tool_call_id the call's identity.",
	"Approval.agent_path":        "The agents' names, outermost first.",
	"Approval.tool":              "The tool's name.",
	"Approval.kind":              "effect or question.",
	"Approval.executor":          "Who runs it: worker, agent, or nobody for a question.",
	"Approval.tool_revision":     "The hash of the tool's configuration.",
	"Approval.target":            "What is acted on, as the configuration derives it.",
	"Approval.target_version":    "The target's version that the agent saw.",
	"Approval.status":            "Where it stands.",
	"Approval.reason_code":       "Why it ended without an effect.",
	"Approval.message":           "For the model.",
	"Approval.held":              "Approved, but not executed yet, and why.",
	"Approval.held_since":        "Since when it is held.",
	"Approval.arguments_digest":  "SHA-256 over the RFC 8785 form of the arguments; sha256-raw-v1 when they are unreadable.",
	"Approval.digest":            "What the human approves.",
	"Approval.operation_key":     "The idempotency key of the effect.",
	"Approval.unreadable":        "Why the arguments can't be read unambiguously; then only a rejection is possible.",
	"Approval.rule":              "The rule that matched.",
	"Approval.rule_why":          "Why it matched.",
	"Approval.config_revision":   "The configuration's revision then.",
	"Approval.reviewers":         "Who may decide, and what.",
	"Approval.quorum":            "How many approvals it needs.",
	"Approval.votes":             "The counted decisions.",
	"Approval.snapshot":          "What the reviewer sees.",
	"Approval.requester":         "Who asked the agent, by the agent's word.",
	"Approval.app_state_version": "The agent's version, as handed in.",
	"Approval.agent_revision":    "What was deployed, as handed in.",
	"Approval.state_format":      "The state's format; none without a state.",
	"Approval.created_at":        "When it was handed in.",
	"Approval.decide_by":         "No decision counts from then on.",
	"Approval.expires_at":        "The deadline in force: to decide, then to execute.",
	"Approval.decided_by":        "Whose decision ended the waiting.",
	"Approval.decided_at":        "When.",
	"Approval.revoked_by":        "Who withdrew it.",
	"Approval.revoked_at":        "When. With the status executing: the effect had begun, and will not be retried.",
	"Approval.started_at":        "When the execution began.",
	"Approval.ended_at":          "When it ended.",
	"Approval.receipt":           "A short line of the tool's answer.",
	"Approval.editors":           "Who edited the arguments.",
	"Approval.edit_diff":         "What the edit changed, redacted.",
	"Approval.parent_id":         "The approval that was edited into this one.",
	"Approval.child_id":          "The approval that an edit replaced this one by.",
	"Approval.replaces_id":       "The earlier proposal that this one takes the place of.",
	"Approval.ledger":            "The operation's place in the ledger; absent until it is claimed.",
	"Approval.result":            "What the tool returned, or the answer to a question.",
	"Approval.told_at":           "When the run was told.",
	"Approval.version":           "Grows with every change; for since.",
	"Snapshot.title":             "The tool's title, filled in.",
	"Snapshot.arguments":         "The redacted arguments.",
	"Snapshot.raw":               "Unreadable arguments, detected secrets masked.",
	"Snapshot.redacted":          "JSON pointers to what is hidden.",
	"Snapshot.reason":            "The agent's words, unverified.",
	"Snapshot.links":             "The tool's links.",
}
