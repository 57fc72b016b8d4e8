package approvals

import (
	"time"

	"github.com/google/uuid"
)

// Verb is what a reviewer does. Each has its own meaning and its own transition (seeds).
type Verb string

// The four decisions of the seeds.
const (
	Approve Verb = "approve" // the call as proposed
	Edit    Verb = "edit"    // other arguments: a new proposal with a new digest
	Reject  Verb = "reject"  // ends the call; the reason reaches the model
	Respond Verb = "respond" // answers a question; no effect is executed
)

// Surface is where a decision or an action came from; it is audited.
type Surface string

// The surfaces.
const (
	SurfaceCard    Surface = "card"
	SurfaceModal   Surface = "modal"
	SurfaceCommand Surface = "command"
	SurfaceHome    Surface = "home"
	SurfaceCLI     Surface = "cli"
	SurfaceAPI     Surface = "api"
	SurfaceSystem  Surface = "system"
)

// Reviewer is the person behind a Slack callback: the payload's user.id and user.team_id, never a name and never the payload's team.
type Reviewer struct {
	UserID string
	TeamID string
}

// DecideRequest is one click or one submitted modal.
type DecideRequest struct {
	DecisionID uuid.UUID // made by the caller before the first try: an ambiguous commit is read back by it, never run again
	Button     Button    // as parsed from the button's value (or the modal's private metadata)
	Channel    string    // the container's channel and message; both must be the stored card's
	MessageTS  string
	Verb       Verb
	By         Reviewer
	Surface    Surface
	Reason     string // reject: for the model; the last words of the reviewer otherwise
	Arguments  []byte // edit: the edited form of the *redacted* arguments; hidden values that were not touched keep their sealed value
	Answer     string // respond
}

// Ruling is what became of a decision. A refusal changed nothing and tells the truth (I8).
type Ruling struct {
	Applied bool    // the decision was recorded (a vote, or the final one)
	Denial  *Denial // why it was not
	View    View    // the row as it is now
	Child   *View   // edit: the new request
}

// DenialKind says why a decision was not taken; `interactions` turns each into one sentence for the clicker alone.
type DenialKind string

// The kinds of denial.
const (
	DenyNotReviewer   DenialKind = "not_reviewer"   // needs the rule's people; Have lists the clicker's groups
	DenyIneligible    DenialKind = "ineligible"     // guest, external, bot, deactivated, invited or another workspace
	DenyBlocked       DenialKind = "blocked"        // an admin blocked this person
	DenyRequester     DenialKind = "is_requester"   // a requester doesn't decide on their own call
	DenyEditor        DenialKind = "is_editor"      // an editor doesn't approve their own edit
	DenyAlreadyVoted  DenialKind = "already_voted"  // one vote a person
	DenyVoteVoid      DenialKind = "vote_void"      // one vote a person, and a block voided this one: a lifted block gives no second
	DenyDecided       DenialKind = "decided"        // somebody was faster, or it ended; View has who and when
	DenyExpired       DenialKind = "expired"        // at or after decide_by
	DenyChanged       DenialKind = "changed"        // the digest on the card is not the row's: the card is repainted
	DenyTampered      DenialKind = "tampered"       // the button's MAC, channel or message is wrong
	DenyNotYet        DenialKind = "not_yet"        // the card's message is not saved yet: one moment
	DenyUncheckable   DenialKind = "uncheckable"    // the directory has not synced this person or group recently enough
	DenyVerb          DenialKind = "verb"           // the rule or the state does not offer this decision
	DenyEditInvalid   DenialKind = "edit_invalid"   // the edited arguments; Detail and Pointer say where
	DenyEditUnchanged DenialKind = "edit_unchanged" // nothing was edited
	DenyEditNoRule    DenialKind = "edit_no_rule"   // no rule covers the edited arguments
	DenyPolicy        DenialKind = "policy"         // the current configuration no longer takes this decision
	DenyReason        DenialKind = "reason_missing" // reject without a reason, respond without an answer
)

// DenialKinds lists every kind of denial.
var DenialKinds = []DenialKind{
	DenyNotReviewer, DenyIneligible, DenyBlocked, DenyRequester, DenyEditor, DenyAlreadyVoted,
	DenyVoteVoid, DenyDecided, DenyExpired, DenyChanged, DenyTampered, DenyNotYet,
	DenyUncheckable, DenyVerb, DenyEditInvalid, DenyEditUnchanged, DenyEditNoRule, DenyPolicy, DenyReason,
}

// Denial is why, with what a person needs to go on. No argument value is in it.
type Denial struct {
	Kind        DenialKind
	Needs       []string // not_reviewer: who may, as Slack ids (U… and S…)
	Have        []string // not_reviewer: the clicker's own groups, as handles
	NeedHandles []string // handles of the groups among Needs, where known
	Detail      string
	Pointer     string
	At          time.Time // the database's clock at the refusal
}

// Actor is who does an administrative or automatic act, as audited: `slack:U…`, `agent:NAME`, `operator:NAME`, `system`, `rule:NAME`.
type Actor string

// System is Holdpoint itself.
const System Actor = "system"

// SlackActor names a person.
func SlackActor(userID string) Actor { return Actor("slack:" + userID) }

// AgentActor names an agent.
func AgentActor(agent string) Actor { return Actor("agent:" + agent) }

// OperatorActor names whoever has a shell with database access.
func OperatorActor(name string) Actor { return Actor("operator:" + name) }

// RuleActor names a rule that decides by itself.
func RuleActor(rule string) Actor { return Actor("rule:" + rule) }
