package intake

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/holdpoint/holdpoint/approvals"
)

// The bodies that this API reads and writes. Their tags are the limits (limits.go) and the OpenAPI document (document.go) alike.

type intakeBody struct {
	Run   runBody    `json:"run" doc:"The paused run."`
	Calls []callBody `json:"calls,omitempty" maxItems:"64" doc:"The waiting tool calls. May be left out when the state's format is one that Holdpoint reads; given both, they must agree."`
}

type runBody struct {
	ID              string     `json:"id" minLength:"1" maxLength:"256" example:"run_42" doc:"Your name for the run. It belongs to the key's agent. At most 256 bytes, no control characters."`
	PauseKey        string     `json:"pause_key,omitempty" maxLength:"256" doc:"By which an agent without a state tells the turns of a run apart."`
	AgentRevision   string     `json:"agent_revision,omitempty" maxLength:"256" example:"git:1f0c2d9" doc:"What is deployed; audited, never decided by."`
	AppStateVersion string     `json:"app_state_version" minLength:"1" maxLength:"256" example:"release-agent/v1" doc:"The agent's version as the configuration registers it under agents.*.versions."`
	Requester       string     `json:"requester,omitempty" maxLength:"256" example:"slack:U0REQ" doc:"Who asked the agent, as slack:U…; your word, and shown as such."`
	State           *stateBody `json:"state,omitempty" doc:"The SDK's state. Left out when the agent keeps it itself."`
}

type stateBody struct {
	Format     string  `json:"format" minLength:"1" maxLength:"64" example:"openai-agents-python" doc:"openai-agents-python, openai-agents-js, another format that the agent's version lists, opaque, or none."`
	SDKVersion string  `json:"sdk_version,omitempty" maxLength:"64" example:"0.19.3" doc:"The version of the SDK that wrote the state."`
	Value      rawJSON `json:"value,omitempty" doc:"The state as the SDK gave it, kept byte for byte. Absent for the format none."`
}

type callBody struct {
	ToolCallID    string        `json:"tool_call_id" minLength:"1" maxLength:"256" example:"call_1" doc:"The SDK's id of the call."`
	Tool          string        `json:"tool" minLength:"1" maxLength:"256" example:"deploy_release" doc:"The tool's name in the tenant's configuration."`
	Arguments     argumentsText `json:"arguments" doc:"The raw JSON text as the SDK gives it, in a string; a JSON object is taken too. Kept byte for byte; what can't be read unambiguously can only be rejected. At most 1 MiB."`
	CallPath      []string      `json:"call_path,omitempty" maxItems:"16" minLength:"1" maxLength:"256" doc:"The outer tool-call ids of a nested call, outermost first. Part of the call's identity."`
	AgentPath     []string      `json:"agent_path,omitempty" maxItems:"16" minLength:"1" maxLength:"256" doc:"The agents' names, outermost first. Shown to the reviewer."`
	Reason        string        `json:"reason,omitempty" maxLength:"4000" prose:"true" doc:"Why, in the agent's words; shown as unverified."`
	ExpiresIn     string        `json:"expires_in,omitempty" maxLength:"32" example:"2h" doc:"A Go duration above zero. Only shortens the rule's decide_within."`
	TargetVersion string        `json:"target_version,omitempty" maxLength:"1024" example:"etag-17" doc:"The version of the target that the agent saw."`
}

type revokeBody struct {
	Reason string `json:"reason,omitempty" maxLength:"4000" prose:"true" doc:"Why the agent withdraws the call."`
}

// nothingBody takes no name at all: what is resumed is what was stored and decided.
type nothingBody struct{}

type ackBody struct {
	Pause         int    `json:"pause" minimum:"1" doc:"The number of the pause whose message was taken."`
	AgentRevision string `json:"agent_revision,omitempty" maxLength:"256" doc:"The revision that resumed the run; audited."`
}

type claimBody struct {
	AttemptID       string `json:"attempt_id,omitempty" maxLength:"256" doc:"Your name for this attempt: the same one gets the same lease back."`
	AgentRevision   string `json:"agent_revision,omitempty" maxLength:"256" doc:"The revision that runs now."`
	AppStateVersion string `json:"app_state_version,omitempty" maxLength:"256" doc:"The application version that runs now; another one than the approval's is refused."`
}

// leaseBody is the fence of I16: who writes under a lease must name it.
type leaseBody struct {
	LeaseToken string `json:"lease_token" minLength:"1" maxLength:"256" doc:"As the claim gave it."`
	Epoch      int64  `json:"epoch" minimum:"1" doc:"As the claim gave it."`
}

type completeBody struct {
	LeaseToken string  `json:"lease_token" minLength:"1" maxLength:"256" doc:"As the claim gave it."`
	Epoch      int64   `json:"epoch" minimum:"1" doc:"As the claim gave it."`
	Result     rawJSON `json:"result,omitempty" doc:"What the tool returned, any JSON; kept byte for byte. At most 1 MiB."`
}

type failBody struct {
	LeaseToken string `json:"lease_token" minLength:"1" maxLength:"256" doc:"As the claim gave it."`
	Epoch      int64  `json:"epoch" minimum:"1" doc:"As the claim gave it."`
	Retryable  bool   `json:"retryable,omitempty" doc:"Nothing happened, and trying again may help."`
	Uncertain  bool   `json:"uncertain,omitempty" doc:"It may have happened. Outweighs retryable: an uncertain call is never repeated by itself."`
	Error      string `json:"error,omitempty" maxLength:"4000" prose:"true" doc:"What went wrong, for people and the model; secrets are masked."`
}

type pageAnswer struct {
	Approvals  []approvals.View `json:"approvals" doc:"One page, newest first."`
	NextCursor *string          `json:"next_cursor" doc:"For the next page; null on the last one."`
}

type eventsAnswer struct {
	ApprovalID approvals.ID `json:"approval_id" doc:"The approval."`
	Events     []event      `json:"events" doc:"Its audit trail, oldest first."`
}

// event is one of the trail, with what happened in the words that people read in Slack.
type event struct {
	approvals.Event

	Text string `json:"text" doc:"What happened, in a sentence, as Slack shows it. Words may change; programs read kind."`
}

type redeliverAnswer struct {
	ApprovalID approvals.ID `json:"approval_id" doc:"The approval whose pause is told again."`
	Accepted   bool         `json:"accepted" doc:"Always true: the delivery is queued."`
}

type claimAnswer struct {
	State          string          `json:"state" enum:"executing,succeeded,responded" doc:"executing: yours to run now, under the lease. succeeded: it has happened, whoever did it; take the result. responded: a question's answer."`
	LeaseToken     string          `json:"lease_token,omitempty" doc:"executing: fences renew, complete and fail."`
	Epoch          int64           `json:"epoch,omitempty" doc:"executing: fences renew, complete and fail."`
	OperationKey   string          `json:"operation_key,omitempty" doc:"executing: the idempotency key to send downstream."`
	Arguments      *string         `json:"arguments,omitempty" doc:"executing, succeeded: exactly the approved bytes. Run these, not your own."`
	LeaseExpiresAt *time.Time      `json:"lease_expires_at,omitempty" doc:"executing: renew before."`
	Result         json.RawMessage `json:"result,omitempty" doc:"succeeded, responded: the stored result."`
}

type renewAnswer struct {
	Epoch          int64     `json:"epoch" doc:"Unchanged: a renewal is not a new claim."`
	LeaseExpiresAt time.Time `json:"lease_expires_at" doc:"The lease's new end."`
}

// rawJSON is any JSON value, byte for byte; text is nil when the name was absent, "null" when it was null.
type rawJSON struct{ text []byte }

func (rawJSON) verbatim() {}

// Format keeps the content out of anything printed.
func (rawJSON) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "[withheld]") }

// UnmarshalJSONFrom copies one value.
func (r *rawJSON) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	v, err := dec.ReadValue()
	r.text = bytes.Clone(v)
	return err
}

// absent says that there is nothing to keep: no value, or null.
func (r rawJSON) absent() bool { return r.text == nil || string(r.text) == "null" }

// argumentsText is a call's arguments: what stands in the string, or the object's own bytes. text is nil when absent or null; an
// empty string is not nil.
type argumentsText struct{ text []byte }

func (argumentsText) verbatim() {}

// Format keeps the content out of anything printed.
func (argumentsText) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "[withheld]") }

// UnmarshalJSONFrom takes the text out of a string, or an object as it stands.
func (a *argumentsText) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	v, err := dec.ReadValue()
	switch {
	case err != nil:
		return err
	case v.Kind() == '"':
		a.text, err = jsontext.AppendUnquote(make([]byte, 0, len(v)), v)
	case v.Kind() == '{':
		a.text = bytes.Clone(v)
	}
	return err
}

// decode reads a body that is for T: the gate first, then the decoder, then the limits. It gives the problem, or nil.
func decode[T any](body []byte, into *T) *Problem {
	if p := check(body, typeOf[T]()); p != nil {
		return p
	}
	if err := jsonv2.Unmarshal(body, into, jsonv2.RejectUnknownMembers(true), jsontext.AllowDuplicateNames(true)); err != nil {
		return invalid("", "The body can't be read.") // the gate let through what the decoder doesn't take: no known case
	}
	return limits(into)
}
