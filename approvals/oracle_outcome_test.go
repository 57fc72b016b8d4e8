package approvals

import (
	"slices"

	"github.com/holdpoint/holdpoint/approvals/rules"
)

// record is an outcome under the lease of an epoch; false: the lease is stale.
func (a *around) record(c *modelled, epoch int, class OutcomeClass, x passed) bool {
	op, k := c.op, c.kind()
	if op.epoch != epoch || op.state == "" {
		return false
	}
	if c.status != Executing && c.status != Uncertain || class == OutcomeUnknown && c.status == Uncertain {
		return slices.Contains(map[OutcomeClass][]Status{
			OutcomeSucceeded: {Completed}, OutcomeRefused: {Failed}, OutcomeUnknown: {Uncertain},
			OutcomeUnsent: {Failed, Approved}, OutcomeAbsent: {Failed, Approved},
		}[class], c.status)
	}
	fails := func(why Reason) {
		c.ends(Failed, why)
		op.state, op.maybe = FailedTerminal, false
	}
	again := func() {
		switch {
		case c.late != "":
			fails(c.late)
		case x.deadline:
			fails(ReasonExecuteExpired)
		case op.attempts >= maxAttempts:
			fails(ReasonRetriesSpent)
		default:
			c.status, c.held, op.state, op.maybe = Approved, "", FailedRetryable, false
		}
	}
	doubts := class == OutcomeUnknown || class == OutcomeUnsent && (op.maybe || c.status == Uncertain)
	switch {
	case class == OutcomeSucceeded:
		c.ends(Completed, "")
		op.state, op.maybe = Succeeded, false
	case class == OutcomeAbsent && c.status == Uncertain:
		fails(ReasonNoEffect)
	case class == OutcomeAbsent:
		again()
	case class == OutcomeRefused && (op.maybe || c.status == Uncertain):
		c.doubted()
	case class == OutcomeRefused:
		fails(ReasonNoEffect)
	case !doubts:
		again()
	case c.status == Uncertain || a.changed(c) || k.retry == rules.Opaque || k.retry == rules.Idempotent && c.spent(x) || k.retry == rules.Queryable && x.settled:
		c.doubted()
	default:
		c.held, op.maybe = "", true // sent again under its key, or asked about
	}
	return true
}

// sweep is what the sweeper does with a call that is due.
func (a *around) sweep(c *modelled, x passed) {
	switch {
	case !x.due:
	case c.status == Pending && x.deadline:
		c.ends(Expired, ReasonDecideExpired)
	case c.status == Approved && x.deadline:
		c.ends(Expired, ReasonExecuteExpired)
	case c.status == Executing && c.kind().agent && x.lease && (c.kind().retry == rules.Opaque || c.spent(x)):
		c.doubted()
	}
}

// stop is a revocation by an admin or the agent.
func (c *modelled) stop(why Reason) {
	switch {
	case c.status == Pending || c.status == Approved:
		c.ends(Revoked, why)
	case c.status == Executing && c.late == "":
		c.late, c.held = why, ""
	}
}

// block takes a person's authority away.
func (a *around) block(c *modelled, user string) {
	if slices.Contains(c.votes, user) {
		c.void = append(c.void, user)
	}
	switch waits := c.status == Pending || c.status == Approved; {
	case waits && user == req:
		c.ends(Revoked, ReasonRequesterInactive)
	case c.status == Approved && slices.Contains(c.votes, user):
		c.ends(Revoked, ReasonReviewerLost)
	}
}

// reconcile is a person's word on an uncertain call; the error is the core's.
func (c *modelled) reconcile(by Actor, happened bool) error {
	if c.status != Uncertain {
		return ErrNotUncertain
	}
	if c.kind().second {
		agreed := false
		for other, said := range c.testified {
			agreed = agreed || other != by && said == happened
		}
		if !agreed {
			if c.testified == nil {
				c.testified = map[Actor]bool{}
			}
			c.testified[by] = happened
			return ErrSecondPerson
		}
	}
	if happened {
		c.ends(Completed, "")
		c.op.state, c.op.maybe = Succeeded, false
	} else {
		c.ends(Failed, ReasonNoEffect)
		c.op.state, c.op.maybe = FailedTerminal, false
	}
	return nil
}
