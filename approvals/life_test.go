package approvals

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"
)

// The rarer events of a life, what is compared after each, and its end.

func (l *life) sweeps() {
	times := map[*modelled]passed{}
	for _, c := range l.calls {
		x, soon := l.times(c)
		if soon {
			return
		}
		times[c] = x
	}
	if _, err := l.s.Sweep(l.ctx, 1000); err != nil {
		l.fail("sweep: %v", err)
	}
	l.say("a sweep")
	for c, x := range times {
		l.around.sweep(c, x)
	}
}

func (l *life) reconciles() {
	c := l.any()
	by := rapid.SampledFrom([]Actor{SlackActor(root), SlackActor(second)}).Draw(l.t, "admin")
	l.reconcileAs(c, by)
}

// reconcileAs tells the truth about what happened.
func (l *life) reconcileAs(c *modelled, by Actor) {
	happened := c.op.landed > 0
	_, err := l.s.Reconcile(l.ctx, ReconcileRequest{Tenant: "acme", By: by, Surface: SurfaceCommand, ID: c.id, Happened: happened, Evidence: "seen"})
	want := c.reconcile(by, happened)
	l.say("%s reconciles %s as %v: %v", by, c.id, happened, err)
	if !errors.Is(err, want) || want == nil && err != nil {
		l.fail("reconcile %s: %v, the oracle says %v", c.id, err, want)
	}
}

func (l *life) revokes() {
	c := l.any()
	if _, err := l.s.Revoke(l.ctx, RevokeRequest{Tenant: "acme", By: SlackActor(root), Surface: SurfaceCommand, Select: Selector{ID: c.id}, Reason: "stop"}); err != nil {
		l.fail("revoke: %v", err)
	}
	l.say("%s is revoked", c.id)
	c.stop(ReasonRevokedByAdmin)
}

func (l *life) withdraws() {
	c := l.any()
	if _, err := l.s.Withdraw(l.ctx, l.key, c.id, "no"); err != nil {
		l.fail("withdraw: %v", err)
	}
	l.say("%s is withdrawn", c.id)
	c.stop(ReasonWithdrawn)
}

func (l *life) blocks() {
	user := rapid.SampledFrom([]string{alice, dave, erin, bob, req}).Draw(l.t, "blocked")
	l.setBlocked(user, !l.blocked[user])
}

func (l *life) setBlocked(user string, on bool) {
	if _, err := l.s.Block(l.ctx, BlockRequest{Tenant: "acme", By: SlackActor(root), Surface: SurfaceCommand, UserID: user, Reason: "x", Blocked: on}); err != nil {
		l.fail("block: %v", err)
	}
	l.say("%s blocked: %v", user, on)
	if l.blocked[user] = on; on {
		for _, c := range l.calls {
			l.around.block(c, user)
		}
	}
}

func (l *life) suspends() { l.setSuspended(!l.around.suspended) }

func (l *life) setSuspended(on bool) {
	if _, err := l.s.Suspend(l.ctx, SuspendRequest{Tenant: "acme", By: SlackActor(root), Surface: SurfaceCommand, Scope: "tenant", Reason: "x", Active: on}); err != nil {
		l.fail("suspend: %v", err)
	}
	l.say("suspended: %v", on)
	l.around.suspended = on
}

func (l *life) roles() { l.setRoleless(!l.around.roleless) }

func (l *life) setRoleless(on bool) {
	members := groups["S0ENG"]
	if on {
		members = without("S0ENG", req)
	}
	l.group("S0ENG", members...)
	l.say("the requester is without the role: %v", on)
	l.around.roleless = on
}

func (l *life) configures() {
	s := l.around.settings
	waits := func(tool string) bool { // changes what waits for it, if anything does
		return slices.ContainsFunc(l.calls, func(c *modelled) bool { return c.tool == tool && !c.status.Terminal() })
	}
	switch n := rapid.IntRange(0, 2).Draw(l.t, "setting"); {
	case waits("send_mail") || n == 0:
		s.retitled = !s.retitled
	case waits("issue_refund") || n == 1:
		s.stricter = !s.stricter
	default:
		s.frozen = !s.frozen
	}
	l.configure(s)
}

func (l *life) configure(s settings) {
	var pairs []string
	if s.retitled {
		pairs = append(pairs, "Mail {{.to}}", "Write to {{.to}}")
	}
	if s.stricter {
		pairs = append(pairs, "groups: [S0FINANCE]}, quorum: 2", "groups: [S0FINANCE]}, quorum: 3")
	}
	if s.frozen {
		pairs = append(pairs, "- {name: flights, ", "- {name: frozen, when: 'tool == \"book_flight\"', do: deny, message: \"Frozen.\"}\n      - {name: flights, ")
	}
	l.change(pairs...)
	l.say("configured: %+v", s)
	l.around.settings = s
	l.around.revision++
	for _, c := range l.calls {
		if l.around.changed(c) && (c.status == Pending || c.status == Approved) {
			c.ends(MigrationRequired, ReasonToolChanged)
		}
	}
}

// repeats sends the latest intake again (I21).
func (l *life) repeats() {
	p, err := l.s.Submit(l.ctx, l.key, l.in)
	if err != nil || !p.Repeat || p.Pause != l.pause || len(p.Approvals) != len(l.in.Calls) {
		l.fail("I21: the same intake again: %v, repeat %v, pause %d of %d, %d calls", err, p.Repeat, p.Pause, l.pause, len(p.Approvals))
	}
	for _, v := range p.Approvals {
		if c := l.current[v.ToolCallID]; c == nil || c.id != v.ApprovalID {
			l.fail("I21: the same intake gives %s for %s", v.ApprovalID, v.ToolCallID)
		}
	}
}

// proposesAgain is another intake of the run, with some of its calls: they are carried over, the rest is superseded.
func (l *life) proposesAgain() {
	next := l.in
	next.PauseKey = fmt.Sprintf("turn %d", len(l.history))
	next.Calls = nil
	begun := false
	var dropped []*modelled
	for _, in := range l.in.Calls {
		c := l.current[in.ToolCallID]
		if c.status == MigrationRequired {
			return // would be a fresh proposal: TestMigrationRequired
		}
		if rapid.Bool().Draw(l.t, "carried") {
			next.Calls = append(next.Calls, in)
			continue
		}
		dropped = append(dropped, c)
		begun = begun || c.status == Executing || c.status == Uncertain || c.status == Completed
	}
	if len(next.Calls) == 0 {
		return
	}
	p, err := l.s.Submit(l.ctx, l.key, next)
	l.say("proposed again with %d of %d calls: %v", len(next.Calls), len(l.in.Calls), err)
	var r *Refusal
	if begun {
		if !errors.As(err, &r) || r.Code != CodeConflict {
			l.fail("an intake that leaves out what has begun: %v", err)
		}
		return
	}
	if err != nil || p.Repeat || p.Pause != l.pause+1 {
		l.fail("another intake: %v, repeat %v, pause %d after %d", err, p.Repeat, p.Pause, l.pause)
	}
	for _, c := range dropped {
		if c.status == Pending || c.status == Approved {
			settled := c.settled
			c.ends(Revoked, ReasonSuperseded)
			c.settled = settled // its pause tells nobody
		}
	}
	l.in, l.pause = next, p.Pause
}

// compare holds every row of the run to the model, and every status to what really happened (I2).
func (l *life) compare() {
	l.t.Helper()
	for _, c := range l.calls {
		v := l.row(c.id)
		var settled, late bool
		l.must(l.db.QueryRow(l.ctx, `SELECT settled, revoked_at IS NOT NULL AND status <> 'revoked' FROM approval_request WHERE approval_id = $1`, c.id).Scan(&settled, &late))
		got := fmt.Sprintf("%s %q held %q, %d votes, settled %v, revoked late %v", v.Status, v.ReasonCode, v.Held, countApproves(v), settled, late)
		want := fmt.Sprintf("%s %q held %q, %d votes, settled %v, revoked late %v", c.status, c.reason, c.held, len(c.votes), c.settled, c.late != "")
		if v.Ledger != nil {
			got += fmt.Sprintf(", %s epoch %d attempts %d maybe %v", v.Ledger.State, v.Ledger.Epoch, v.Ledger.Attempts, v.Ledger.MaybeEffect)
		}
		if c.op.state != "" && c.status != Edited {
			want += fmt.Sprintf(", %s epoch %d attempts %d maybe %v", c.op.state, c.op.epoch, c.op.attempts, c.op.maybe)
		}
		if got != want {
			l.fail("%s %s is\n%s; the oracle says\n%s", c.tool, c.id, got, want)
		}
		l.seen.add(string(c.status), true)
		l.seen.add("held", c.held != "")
		l.seen.add("revoked late", c.late != "")
		l.seen.add("voted", c.status == Pending && len(c.votes) > 0)
		l.seen.add("superseded", c.reason == ReasonSuperseded)
		switch c.status {
		case Executing, Uncertain, Edited:
		case Completed:
			if c.op.landed != 1 {
				l.fail("I13: %s is completed and landed %d times", c.id, c.op.landed)
			}
		default:
			if c.op.landed != 0 {
				l.fail("I2: %s is %s and landed", c.id, c.status)
			}
		}
	}
}

func countApproves(v View) (n int) {
	for _, vote := range v.Votes {
		if vote.Decision == string(Approve) && vote.By[:5] != "rule:" {
			n++
		}
	}
	return n
}

// finish brings the world back to normal and every call to an end, so that the run is told, once.
func (l *life) finish() {
	for user, on := range l.blocked {
		if on {
			l.setBlocked(user, false)
		}
	}
	if l.around.suspended {
		l.setSuspended(false)
	}
	if l.around.roleless {
		l.setRoleless(false)
	}
	if l.around.settings != (settings{}) {
		l.configure(settings{})
	}
	for _, c := range l.calls {
		if c.status == Pending || c.status == Approved {
			l.stopped(c)
		}
		for i := len(l.tries) - 1; i >= 0 && c.status == Executing; i-- {
			if l.tries[i].call == c {
				l.report(l.tries[i])
			}
		}
		if c.status == Approved {
			l.stopped(c)
		}
		if c.status == Executing { // nobody knows, and the retention of its key ends
			l.passRun(l.run, 49*time.Hour)
			agent := c.kind().agent
			x, _ := l.times(c)
			want := l.around.claim(c, agent, x)
			if agent {
				_, _ = l.s.ClaimForAgent(l.ctx, l.key, c.id, AgentClaim{})
			} else if got := l.claimAny(c.id); got.LookupFirst != want.lookup || got.Go != want.run {
				l.fail("at the end: %s, the oracle says %+v", got, want)
			} else if got.LookupFirst {
				l.report(&try{call: c, lease: got.Lease, report: map[bool]OutcomeClass{true: OutcomeSucceeded, false: OutcomeAbsent}[c.op.landed > 0]})
			}
		}
		if c.status == Uncertain {
			l.reconcileAs(c, SlackActor(root))
			if c.status == Uncertain {
				l.reconcileAs(c, SlackActor(second))
			}
		}
		if !c.status.Terminal() {
			l.fail("%s ends as %s", c.id, c.status)
		}
	}
	l.compare()
	told := 0
	for n := 1; n <= l.pause; n++ {
		m, ok := l.told(l.pauseID("release-agent", l.run, n))
		if !ok {
			continue
		}
		told++
		if n != l.pause || len(m.Data.Decisions) != len(l.in.Calls) {
			l.fail("pause %d of %d is told with %d calls", n, l.pause, len(m.Data.Decisions))
		}
		for _, d := range m.Data.Decisions {
			c := l.current[d.ToolCallID]
			if (d.Outcome == "succeeded") != (c.status == Completed || c.status == Responded) || d.ApprovalID != c.id.String() {
				l.fail("%s is told as %s %s", c.id, d.Decision, d.Outcome)
			}
		}
	}
	if told != 1 {
		l.fail("L5: told %d times", told)
	}
}

func (l *life) stopped(c *modelled) {
	l.revoke(Selector{ID: c.id})
	c.stop(ReasonRevokedByAdmin)
}
