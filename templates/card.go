package templates

import (
	"time"

	"github.com/slack-go/slack"
)

// Card is everything a card shows: a plain copy of one approval request and its operation. People are Slack user ids
// ("U0ANA" or "slack:U0ANA"), "rule:NAME", "agent:NAME" or "" for Holdpoint itself. Zero times are not shown. Every
// string but ApprovalID, ShortDigest, Status, Ledger and the codes is taken for hostile.
type Card struct {
	ApprovalID  string // apr_…
	ShortDigest string // a prefix of the proposal's digest
	ParentID    string // the approval that an edit replaced by this one
	ChildID     string // the approval that an edit replaced this one by
	EditDiff    string // with a ParentID: the unified diff of what reviewers see of the two
	EditHidden  bool   // with a ParentID: nothing that reviewers see was changed

	Tool          string
	ToolKind      string // "effect" or "question"
	Executor      string // "http" or "agent"; a question has none
	Title         string // verb, object, magnitude: the rendered title of the tool
	Target        string
	TargetVersion string
	Agent         string   // the key's: the one name that is proven
	AgentPath     []string // the agent's word: names inside of the run, outermost first
	Requester     string   // the agent's word
	AppVersion    string
	Reason        string // the agent's words, unverified

	Arguments  []byte   // the redacted snapshot, JSON with numbers as sent; nil once erased
	Redacted   []string // JSON pointers into Arguments whose values are markers, not what was sent
	Unreadable string   // why the arguments can't be read; Arguments is then masked raw text
	Links      []Link

	Rule         string
	RuleRevision int64
	Risk         string // low, medium, high or ""

	Status     string // of the contract
	Held       string // the reason code while an approved call is held
	HeldSince  time.Time
	HeldBy     string    // who paused it; while pending: what is approved now won't start yet
	HeldDetail string    // what is paused and why, or why it can't be checked
	HeldUntil  time.Time // the window's next opening, where that is what it waits for

	Quorum    int
	Votes     int
	VotesBy   []string
	Editors   []string // all of the lineage, the last one last
	DecideBy  time.Time
	ExecuteBy time.Time

	DecidedBy  string
	DecidedAt  time.Time
	RevokedBy  string
	RevokedAt  time.Time
	ReasonCode string // of the contract
	Message    string // the words given with a rejection or a revocation

	Ledger      string // the operation's state, or ""
	Attempt     int    // the latest, from 1
	MaxAttempts int
	NextTry     time.Time
	Duration    time.Duration // of the attempt that ended it
	Receipt     string        // scanned for secrets and short
	Error       string        // redacted

	Decisions []string          // what may be decided: approve, reject, edit, respond
	Values    map[string]string // action id → signed value; an action without one is not offered
	Mention   []string          // users and groups that [UncertainThread] mentions
}

// Link is a configured link with its address filled in.
type Link struct{ Text, URL string }

// Statuses of an approval and decisions, by the contract's names.
const (
	StatusPending           = "pending"
	StatusApproved          = "approved"
	StatusRejected          = "rejected"
	StatusEdited            = "edited"
	StatusResponded         = "responded"
	StatusExpired           = "expired"
	StatusRevoked           = "revoked"
	StatusMigrationRequired = "migration_required"
	StatusExecuting         = "executing"
	StatusCompleted         = "completed"
	StatusFailed            = "failed"
	StatusUncertain         = "uncertain"

	DecisionApprove = "approve"
	DecisionReject  = "reject"
	DecisionEdit    = "edit"
	DecisionRespond = "respond"

	kindQuestion    = "question"
	executorAgent   = "agent"
	riskHigh        = "high"
	ledgerRetryable = "failed_retryable"
)

// Message is one Slack message. Send Blocks also when empty, as `[]`: an update without them keeps the old buttons.
type Message struct {
	Text      string        // a whole sentence, mrkdwn, for phones and screen readers; never a secret
	Blocks    []slack.Block // never nil; empty in a Plain message
	Plain     bool          // post with `mrkdwn: false`
	Truncated bool          // something of the proposal is cut, so Approve is inside Details
}

// MaxCard is the most characters of JSON that the blocks of a message may have. Slack refuses somewhere between
// 11,300 and 13,300 with msg_blocks_too_long and does not say how it counts (bolt-js#2509, #2867); the JSON is more
// than any way of counting finds.
const MaxCard = 10_000

// Render makes the card. It is deterministic and always within Slack's limits; what does not fit is cut.
func Render(c Card) Message {
	for _, percent := range []int{100, 70, 50, 35, 25, 15, 8, 3} {
		m := &measure{percent: percent}
		blocks := cardBlocks(c, m)
		if size(blocks) <= MaxCard && Check(blocks) == nil {
			return Message{Text: summary(c), Blocks: blocks, Truncated: m.isCut()}
		}
	}
	return Fallback(c) // nothing known leads here; were it to, a plain card is better than none
}

// cardBlocks lays the card out. The buttons come last, because what they offer depends on whether anything was cut.
func cardBlocks(c Card, m *measure) []slack.Block {
	blocks := []slack.Block{
		header("title", headline(c, m)),
		richText("status", lines(statusLines(c)...)),
		richText("fields", lines(fieldLines(c, m)...)),
	}
	blocks = append(blocks, editBlocks(c, m)...)
	blocks = append(blocks, argumentBlocks(c, m)...)
	blocks = append(blocks, reasonBlocks(c, m)...)
	blocks = append(blocks, linkBlocks(c, m)...)
	if m.rtl {
		blocks = append(blocks, contextLine("direction", "↔️ There are right-to-left letters here: the order on the screen may not be the order of the text"))
	}
	if m.isCut() {
		note := "✂️ " + m.hiddenNote() + ": open Details"
		if offered(c, DecisionApprove) {
			note += " to see all of it and approve"
		}
		blocks = append(blocks, contextLine("cut", note))
	}
	if actions := actionBlock(c, m.isCut()); actions != nil {
		blocks = append(blocks, actions)
	}
	return append(blocks, footer(c))
}

// headline is the title: what happens, to what, how much.
func headline(c Card, m *measure) string {
	title := c.Title
	if title == "" {
		title = c.Tool
	}
	if c.Unreadable != "" {
		title = "Unreadable call of " + c.Tool
	}
	return orDash(m.show(title, maxHeader))
}

// summary is the card as a sentence: the state first, so that no title can pass for one, then the title and the rest
// of the status, without arguments.
func summary(c Card) string {
	title := c.Title
	if title == "" || c.Unreadable != "" {
		title = c.Tool
	}
	status := statusLines(c)[0].parts
	return compose(status[0], ": ", quoted(title), status[1:], " (", code(c.ApprovalID), ")").Mrkdwn()
}

func orDash(s string) string {
	if s == "" {
		return "—"
	}
	return s
}
