package approvals

import (
	"slices"

	"github.com/holdpoint/holdpoint/approvals/rules"
)

// The oracle is the invariants page's two tables once more, as plain Go over plain values: what must become of a call when
// something happens to it. It knows no database and no clock; what has passed of a call's times it is told.

// kind is how a tool of the stories behaves.
type kind struct {
	arguments, edited string // edited has a %d
	agent, question   bool
	retry             rules.Retry
	reviewers         []string
	quorum            int
	excludes          bool // requester and editor
	role              bool // its rule asks for the requester's role
	second            bool // two people reconcile
}

var kinds = map[string]kind{
	"deploy_release": {production, `{"release":"edit-%d","environment":"production","token":"[redacted]"}`, false, false, rules.Idempotent, []string{alice, bob, carol, req, blocked}, 1, true, true, false},
	"send_mail":      {mail, `{"to":"edit-%d@example.com"}`, false, false, rules.Opaque, []string{alice, bob}, 1, false, false, false},
	"book_flight":    {flight, `{"flight":"LH%d"}`, false, false, rules.Queryable, []string{alice}, 1, false, false, true},
	"issue_refund":   {bigRefund, `{"order":"ORD-18472","amount":9%d,"currency":"USD"}`, true, false, rules.Idempotent, []string{dave, erin, frank}, 2, true, false, false},
	"run_script":     {script, `{"name":"edit-%d"}`, true, false, rules.Opaque, []string{alice}, 1, false, false, false},
	"ask_user":       {question, `{"question":"edit-%d"}`, false, true, "", []string{alice}, 1, false, false, false},
}

// settings are what of the configuration a schedule changes.
type settings struct {
	retitled bool // the mail tool has another revision
	stricter bool // refunds ask for three
	frozen   bool // a rule denies flights
}

// around is the rest of the world.
type around struct {
	settings
	revision  int
	suspended bool
	roleless  bool // the requester is not in the role's group
	blocked   map[string]bool
}

// passed says which times of a call are over.
type passed struct {
	deadline, lease, backoff, retention, settled, due bool
}

// modelled is one approval; op is shared by its lineage.
type modelled struct {
	id        ID
	tool      string
	status    Status
	reason    Reason
	held      Reason
	votes     []string
	void      []string // of votes: blocked since
	editors   []string
	quorum    int
	made      settings
	revision  int
	late      Reason // revoked while it ran: why it may not be tried again
	byRule    bool
	settled   bool
	testified map[Actor]bool // who said last that it happened, where two must
	op        *operation
}

// operation is the lineage's ledger row, and what really happened at the tool.
type operation struct {
	state           LedgerState // empty: no row
	epoch, attempts int
	maybe           bool
	landed          int
}

func (c *modelled) kind() kind { return kinds[c.tool] }

func (a *around) quorum(tool string) int {
	if tool == "issue_refund" && a.stricter {
		return 3
	}
	return kinds[tool].quorum
}

func (a *around) denies(tool string) bool { return tool == "book_flight" && a.frozen }

func (a *around) changed(c *modelled) bool {
	return c.tool == "send_mail" && c.made.retitled != a.retitled
}

// fresh is a call as the intake makes it.
func (a *around) fresh(id ID, tool string) *modelled {
	c := &modelled{id: id, tool: tool, status: Pending, quorum: a.quorum(tool), made: a.settings, revision: a.revision, op: &operation{}}
	if a.denies(tool) {
		c.status, c.settled, c.byRule, c.quorum = Rejected, true, true, 1
	}
	return c
}

// ends makes a call terminal without an effect.
func (c *modelled) ends(to Status, why Reason) {
	c.status, c.reason, c.held, c.settled = to, why, "", true
	if c.op.state == FailedRetryable {
		c.op.state = FailedTerminal
	}
}

// counted are the votes of people who were not blocked after them.
func (a *around) counted(c *modelled) (out []string) {
	for _, v := range c.votes {
		if !slices.Contains(c.void, v) {
			out = append(out, v)
		}
	}
	return out
}

// decide is a reviewer's decision: how it is denied, or "".
func (a *around) decide(c *modelled, user string, verb Verb, x passed) DenialKind {
	k := c.kind()
	reviewers := k.reviewers
	if c.byRule && a.frozen {
		reviewers = nil
	}
	offered := []Verb{Approve, Reject, Edit}
	if k.question {
		offered = []Verb{Respond, Reject}
	}
	switch {
	case a.blocked[user]:
		return DenyBlocked
	case !slices.Contains(reviewers, user):
		return DenyNotReviewer
	case c.status != Pending:
		return DenyDecided
	case x.deadline:
		return DenyExpired
	case a.denies(c.tool) && verb != Reject:
		return DenyPolicy
	case !slices.Contains(offered, verb):
		return DenyVerb
	case k.excludes && user == req:
		return DenyRequester
	case k.excludes && verb == Approve && slices.Contains(c.editors, user):
		return DenyEditor
	case slices.Contains(c.void, user):
		return DenyVoteVoid
	case slices.Contains(c.votes, user):
		return DenyAlreadyVoted
	}
	switch verb {
	case Approve:
		c.votes = append(c.votes, user)
		if len(a.counted(c)) >= max(c.quorum, a.quorum(c.tool)) {
			c.status, c.settled = Approved, k.agent
		}
	case Reject:
		c.ends(Rejected, "")
	case Respond:
		c.ends(Responded, "")
	case Edit:
		left := 0
		for _, u := range k.reviewers {
			own := u == req || u == user || slices.Contains(c.editors, u)
			if !a.blocked[u] && (!k.excludes || !own) {
				left++
			}
		}
		if left < a.quorum(c.tool) {
			return DenyPolicy
		}
		c.status = Edited
	}
	return ""
}

// child is what an edit of c made.
func (a *around) child(c *modelled, id ID, editor string) *modelled {
	return &modelled{
		id: id, tool: c.tool, status: Pending, editors: append(slices.Clone(c.editors), editor), quorum: a.quorum(c.tool),
		made: a.settings, revision: a.revision, op: c.op,
	}
}

// verdictOf is what revalidation must find.
func (a *around) verdictOf(c *modelled, x passed) (end Status, why Reason, hold bool) {
	k, counted := c.kind(), a.counted(c)
	switch {
	case x.deadline:
		return Expired, ReasonExecuteExpired, false
	case a.changed(c):
		return MigrationRequired, ReasonToolChanged, false
	case a.blocked[req]:
		return Revoked, ReasonRequesterInactive, false
	case a.denies(c.tool):
		return Revoked, ReasonPolicyChanged, false
	case k.role && a.roleless:
		return Revoked, ReasonRequesterLostRole, false
	case len(counted) == 0:
		return Revoked, ReasonReviewerLost, false
	case len(counted) < max(c.quorum, a.quorum(c.tool)):
		return Revoked, ReasonPolicyChanged, false
	case a.suspended:
		return "", ReasonPaused, true
	}
	return "", "", false
}

// granted is what a claim gives.
type granted struct{ run, lookup bool }

// claim is a claim by the worker or the agent.
func (a *around) claim(c *modelled, agent bool, x passed) granted {
	k, op := c.kind(), c.op
	switch c.status {
	case Approved:
		if k.agent != agent || op.state == FailedRetryable && !x.backoff {
			return granted{}
		}
		end, why, hold := a.verdictOf(c, x)
		switch {
		case end != "":
			c.ends(end, why)
		case hold:
			c.held = why
		default:
			c.starts(false)
			return granted{run: true}
		}
	case Executing:
		if k.agent == agent && x.lease {
			return a.takeover(c, x)
		}
	case Uncertain:
		return granted{lookup: !agent && k.retry == rules.Queryable && x.settled}
	}
	return granted{}
}

func (c *modelled) starts(lookup bool) {
	op := c.op
	op.maybe = op.maybe || op.state == Running
	op.epoch++
	if !lookup {
		op.attempts++
	}
	op.state, c.status, c.held = Running, Executing, ""
}

func (a *around) takeover(c *modelled, x passed) granted {
	switch k := c.kind(); {
	case a.changed(c) || k.retry == rules.Opaque:
		c.doubted()
	case k.retry == rules.Queryable:
		if !x.settled {
			return granted{}
		}
		c.starts(true)
		return granted{lookup: true}
	case c.spent(x):
		c.doubted()
	default:
		end, why, hold := a.verdictOf(c, x)
		switch {
		case end != "":
			c.doubted()
		case hold:
			c.held = why
		default:
			c.starts(false)
			return granted{run: true}
		}
	}
	return granted{}
}

func (c *modelled) spent(x passed) bool {
	return c.late != "" || x.deadline || c.op.attempts >= maxAttempts || x.retention
}

func (c *modelled) doubted() {
	c.status, c.held, c.op.state, c.op.maybe = Uncertain, "", Unknown, true
}
