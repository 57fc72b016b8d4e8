package approvals

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Who may decide (I4, I5): being in a list is not enough, and who is not in it learns whom to ask.
func TestWhoMayDecide(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	_, err := w.s.Block(w.ctx, BlockRequest{Tenant: "acme", By: SlackActor(root), Surface: SurfaceCommand, UserID: blocked, Reason: "left", Blocked: true})
	w.must(err)
	v := w.propose("deploy_release", production)
	for user, want := range map[string]DenialKind{
		req: DenyRequester, root: DenyNotReviewer, dave: DenyNotReviewer, guest: DenyIneligible, ultra: DenyIneligible, ext: DenyIneligible,
		robot: DenyIneligible, gone: DenyIneligible, invited: DenyIneligible, other: DenyIneligible, blocked: DenyBlocked, nobody: DenyUncheckable,
	} {
		r := w.denied(v.ApprovalID, user, Approve, want)
		if want == DenyNotReviewer && (len(r.Denial.Needs) != 2 || len(r.Denial.NeedHandles) != 1 || r.Denial.NeedHandles[0] != "release") {
			t.Errorf("%s is told to ask %v %v", user, r.Denial.Needs, r.Denial.NeedHandles)
		}
	}
	w.denied(v.ApprovalID, alice, Approve, DenyIneligible, func(rq *DecideRequest) { rq.By.TeamID = "T0ELSE" })
	w.denied(v.ApprovalID, req, Reject, DenyRequester)
	if n := one[int](w, `SELECT count(*) FROM audit_event WHERE kind = 'decision.refused'`); n != 14 {
		t.Errorf("%d refusals are audited, want 14", n)
	}
	w.decide(v.ApprovalID, carol, Approve)
}

// A button decides only from the message that it was made for, and only for the digest that it shows.
func TestButtonIsBound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	v, twin := w.propose("deploy_release", production), w.propose("deploy_release", production)
	fresh := w.propose("deploy_release", production)
	for what, change := range map[string]func(*DecideRequest){
		"another channel":      func(rq *DecideRequest) { rq.Channel = "C0ELSE" },
		"another message":      func(rq *DecideRequest) { rq.MessageTS = "1.1" },
		"no message":           func(rq *DecideRequest) { rq.MessageTS = "" },
		"another card's MAC":   func(rq *DecideRequest) { rq.Button.ID = twin.ApprovalID },
		"no MAC":               func(rq *DecideRequest) { rq.Button.mac = nil },
		"another digest":       func(rq *DecideRequest) { rq.Button.DigestPrefix = "000000000000" },
		"another version":      func(rq *DecideRequest) { rq.Button.Version++ },
		"a MAC of no key":      func(rq *DecideRequest) { rq.Button.mac = rq.Button.sum(nil, rq.Channel) },
		"a MAC of a short key": func(rq *DecideRequest) { rq.Button.mac = rq.Button.sum([]byte("short"), rq.Channel) },
	} {
		t.Run(what, func(*testing.T) {
			w.post(twin.ApprovalID)
			w.denied(v.ApprovalID, alice, Approve, DenyTampered, change)
		})
	}
	// Made for this card, but for a digest that is not the row's.
	w.denied(v.ApprovalID, alice, Approve, DenyChanged, func(rq *DecideRequest) {
		c := w.post(v.ApprovalID)
		b, err := ParseButton(EncodeButton(c.MACKey, c.Channel, v.ApprovalID, "sha256-proposal-v1:0123456789abcdef", 1))
		w.must(err)
		rq.Button = b
	})
	// Before the message's ts was saved.
	c, err := w.s.CardFacts(w.ctx, fresh.ApprovalID)
	w.must(err)
	b, err := ParseButton(EncodeButton(c.Card.MACKey, c.Card.Channel, fresh.ApprovalID, fresh.Digest, 1))
	w.must(err)
	r, err := w.s.Decide(w.ctx, DecideRequest{DecisionID: NewDecisionID(), Button: b, Channel: c.Card.Channel, MessageTS: "1.2", Verb: Approve, By: Reviewer{alice, team}, Surface: SurfaceCard})
	w.must(err)
	if r.Denial == nil || r.Denial.Kind != DenyNotYet {
		t.Fatalf("before the card is saved: %+v", r.Denial)
	}
	// An older version of the same digest decides: the version only orders repaints.
	w.exec(`UPDATE approval_request SET version = 7 WHERE approval_id = $1`, v.ApprovalID)
	w.decide(v.ApprovalID, alice, Approve, func(rq *DecideRequest) {
		c := w.post(v.ApprovalID)
		if rq.Button, err = ParseButton(EncodeButton(c.MACKey, c.Channel, v.ApprovalID, v.Digest, 1)); err != nil {
			t.Fatal(err)
		}
	})
	w.exec(`UPDATE approval_request SET version = 2 WHERE approval_id = $1`, v.ApprovalID)
}

func TestUnknownApprovalIsNotFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b, err := ParseButton(EncodeButton(make([]byte, 32), "C0", NewID(), "abc", 1))
	w.must(err)
	if _, err := w.s.Decide(w.ctx, DecideRequest{DecisionID: NewDecisionID(), Button: b, Verb: Approve, By: Reviewer{alice, team}}); !isErr(err, ErrNotFound) {
		t.Fatalf("got %v", err)
	}
}

// Two votes of two: one vote a person (I6), and nothing starts before the second.
func TestQuorum(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	v := w.propose("issue_refund", bigRefund)
	r := w.decide(v.ApprovalID, dave, Approve)
	if r.View.Status != Pending || len(r.View.Votes) != 1 || r.View.DecidedBy != "" {
		t.Fatalf("after one of two: %s", r.View)
	}
	w.denied(v.ApprovalID, dave, Approve, DenyAlreadyVoted)
	w.denied(v.ApprovalID, dave, Reject, DenyAlreadyVoted)
	w.agentRefused(v.ApprovalID, CodeNotExecutable)
	r = w.decide(v.ApprovalID, erin, Approve)
	if r.View.Status != Approved || r.View.DecidedBy != "slack:"+erin {
		t.Fatalf("after two of two: %s", r.View)
	}
	// The first rejection ends it, whoever voted before.
	v = w.propose("issue_refund", bigRefund)
	w.decide(v.ApprovalID, dave, Approve)
	w.decide(v.ApprovalID, erin, Reject)
	w.want(v.ApprovalID, Rejected, "")
}

// The quorum is the larger of the request's and the current one; a vote of a person who was blocked meanwhile does not count.
func TestQuorumAgainstTheCurrentRule(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	v := w.propose("issue_refund", bigRefund)
	w.decide(v.ApprovalID, dave, Approve)
	w.change("groups: [S0FINANCE]}, quorum: 2", "groups: [S0FINANCE]}, quorum: 1")
	if r := w.decide(v.ApprovalID, erin, Approve); r.View.Status != Approved {
		t.Fatalf("two of two under a laxer rule: %s", r.View)
	}
	v = w.propose("issue_refund", bigRefund)
	w.change("groups: [S0FINANCE]}, quorum: 2", "groups: [S0FINANCE]}, quorum: 3")
	w.decide(v.ApprovalID, dave, Approve)
	_, err := w.s.Block(w.ctx, BlockRequest{Tenant: "acme", By: SlackActor(root), Surface: SurfaceCommand, UserID: dave, Reason: "left", Blocked: true})
	w.must(err)
	w.change()
	v = w.propose("issue_refund", bigRefund)
	w.unblock(dave)
	w.decide(v.ApprovalID, dave, Approve)
	w.must(w.block(dave))
	if r := w.decide(v.ApprovalID, erin, Approve); r.View.Status != Pending {
		t.Fatalf("a blocked person's vote counts: %s", r.View)
	}
	w.decide(v.ApprovalID, frank, Approve)
	// The blocked vote stays as a row and stands in nobody's way: two good votes carry the claim.
	if a := w.agentClaim(v.ApprovalID, "a"); a.State != "executing" {
		t.Fatalf("claim with two good votes: %s", a)
	}
}

func (w *world) block(user string) error {
	_, err := w.s.Block(w.ctx, BlockRequest{Tenant: "acme", By: SlackActor(root), Surface: SurfaceCommand, UserID: user, Reason: "left", Blocked: true})
	return err
}

func (w *world) unblock(user string) {
	w.t.Helper()
	_, err := w.s.Block(w.ctx, BlockRequest{Tenant: "acme", By: SlackActor(root), Surface: SurfaceCommand, UserID: user, Reason: "back", Blocked: false})
	w.must(err)
}

// Two last votes at once: exactly one approval, never stuck (the trap of the invariants page), 100 times.
func TestTwoLastVotesAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	n := 100
	if testing.Short() {
		n = 20
	}
	for range n {
		v := w.propose("issue_refund", bigRefund)
		w.decide(v.ApprovalID, dave, Approve)
		rulings := w.together(w.click(v.ApprovalID, erin, Approve), w.click(v.ApprovalID, frank, Approve))
		w.want(v.ApprovalID, Approved, "")
		if a, b := rulings[0].Applied, rulings[1].Applied; a == b {
			t.Fatalf("of two last votes %v and %v counted", a, b)
		}
	}
}

// Opposite decisions at once: one wins, the other is told who did (I8).
func TestOppositeDecisionsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	for i := range 20 {
		v := w.propose("deploy_release", production)
		clicks := []DecideRequest{w.click(v.ApprovalID, alice, Approve), w.click(v.ApprovalID, bob, Reject), w.click(v.ApprovalID, carol, Edit, with(`{"release":"x","environment":"production","token":"[redacted]"}`))}
		won := ""
		for j, r := range w.together(clicks...) {
			if r.Applied {
				won += fmt.Sprint(j)
			} else if r.Denial.Kind != DenyDecided || r.View.DecidedBy == "" {
				t.Fatalf("round %d: the loser is told %+v, decided by %q", i, r.Denial, r.View.DecidedBy)
			}
		}
		if len(won) != 1 {
			t.Fatalf("round %d: won %q", i, won)
		}
	}
}

// together sends clicks at the same time.
func (w *world) together(clicks ...DecideRequest) []Ruling {
	w.t.Helper()
	out, errs := make([]Ruling, len(clicks)), make([]error, len(clicks))
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range clicks {
		wg.Go(func() {
			<-start
			out[i], errs[i] = w.s.Decide(w.ctx, clicks[i])
		})
	}
	close(start)
	wg.Wait()
	for _, err := range errs {
		w.must(err)
	}
	return out
}

// I7: a statement that waited for a lock over the deadline decides nothing.
func TestNoDecisionAfterWaitingOverTheDeadline(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	v := w.propose("deploy_release", production)
	click := w.click(v.ApprovalID, alice, Approve)
	type answer struct {
		r   Ruling
		err error
	}
	got := make(chan answer, 1)
	w.must(pgx.BeginFunc(w.ctx, w.db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(w.ctx, `SET LOCAL session_replication_role = replica`); err != nil {
			return err
		}
		if _, err := tx.Exec(w.ctx, sqlLockRequest, v.ApprovalID); err != nil {
			return err
		}
		go func() {
			r, err := w.s.Decide(context.WithoutCancel(w.ctx), click)
			got <- answer{r, err}
		}()
		w.until("the click waits for the row", func() bool { return w.waiting() == 1 })
		// While it waits, time passes: the deadline is now.
		_, err := tx.Exec(w.ctx, `UPDATE approval_request SET decide_by = clock_timestamp(), expires_at = clock_timestamp() WHERE approval_id = $1`, v.ApprovalID)
		return err
	}))
	a := <-got
	w.must(a.err)
	if a.r.Applied || a.r.Denial.Kind != DenyExpired {
		t.Fatalf("decided after the deadline: %+v", a.r.Denial)
	}
	w.due(v.ApprovalID)
	if rep := w.sweep(); rep.Expired != 1 {
		t.Fatalf("L2: swept %+v", rep)
	}
	w.want(v.ApprovalID, Expired, ReasonDecideExpired)
	w.denied(v.ApprovalID, bob, Approve, DenyDecided)
}

// The swap carries the deadline itself: it passes between the two batches of one decision, under the decision's own lock (I7).
func TestDeadlineBetweenTheBatches(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	v := w.propose("deploy_release", production)
	rq := w.click(v.ApprovalID, alice, Approve)
	c, err := w.s.clicks.Acquire(w.ctx)
	w.must(err)
	defer c.Release()
	f, err := w.s.begin(w.ctx, c.Conn(), v.ApprovalID, want{people: []string{alice}, payload: true})
	w.must(err)
	j, err := w.s.judge(f, rq)
	w.must(err)
	b := &pgx.Batch{}
	var done swapped
	b.Queue(`SET LOCAL session_replication_role = replica`)
	b.Queue(`UPDATE approval_request SET expires_at = clock_timestamp() WHERE approval_id = $1`, v.ApprovalID)
	b.Queue(`SET LOCAL session_replication_role = origin`)
	w.must(j.swap.queue(b, &done))
	w.must(finish(w.ctx, c.Conn(), b))
	if done.hit {
		t.Fatal("the swap passed its own deadline")
	}
	if v := w.row(v.ApprovalID); v.Status != Pending || len(v.Votes) != 0 {
		t.Fatalf("a missed swap wrote %s with %d votes", v, len(v.Votes))
	}
}

// A revocation of a group's membership waits for the decision that relies on it, or is seen by it: the lock of the design's trap.
func TestMembershipIsLockedUnderADecision(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	v := w.propose("deploy_release", production)
	rq := w.click(v.ApprovalID, bob, Approve)
	c, err := w.s.clicks.Acquire(w.ctx)
	w.must(err)
	defer c.Release()
	f, err := w.s.begin(w.ctx, c.Conn(), v.ApprovalID, want{people: []string{bob}, payload: true})
	w.must(err)
	removed := make(chan error, 1)
	go func() {
		removed <- w.s.SaveGroup(context.WithoutCancel(w.ctx), "acme", DirectoryGroup{GroupID: "S0RELEASE", Handle: "release", Enabled: true, Members: without("S0RELEASE", bob)})
	}()
	w.until("the removal waits for the decision", func() bool { return w.waiting() == 1 })
	j, err := w.s.judge(f, rq)
	w.must(err)
	b := &pgx.Batch{}
	var done swapped
	w.must(j.swap.queue(b, &done))
	w.must(finish(w.ctx, c.Conn(), b))
	w.must(<-removed)
	if !done.hit {
		t.Fatal("the decision that came first did not count")
	}
	// The removal came after it, and the claim sees that.
	w.refused(v.ApprovalID, string(Revoked))
	w.want(v.ApprovalID, Revoked, ReasonReviewerLost)
	// The other order: removed first, the click finds it.
	v = w.propose("deploy_release", production)
	w.denied(v.ApprovalID, bob, Approve, DenyNotReviewer)
}

// What the mirror does not know well enough counts as unreadable (I4).
func TestStaleMirrorDecidesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	v := w.propose("deploy_release", production)
	w.age(decideAge + 1)
	w.denied(v.ApprovalID, bob, Approve, DenyUncheckable)
	w.people()
	w.decide(v.ApprovalID, bob, Approve)
	// A group that was never synced is no "not in it".
	w.change("groups: [S0RELEASE]}, requesters", "groups: [S0NEVER]}, requesters")
	v = w.propose("deploy_release", production)
	w.denied(v.ApprovalID, bob, Approve, DenyUncheckable)
	w.decide(v.ApprovalID, alice, Approve)
	// A disabled group grants nothing.
	w.change()
	w.must(w.s.SaveGroup(w.ctx, "acme", DirectoryGroup{GroupID: "S0RELEASE", Handle: "release", Enabled: false, Members: groups["S0RELEASE"]}))
	v = w.propose("deploy_release", production)
	w.denied(v.ApprovalID, bob, Approve, DenyNotReviewer)
}

// An ambiguous commit is read back by the decision's id and never run again (I17).
func TestAmbiguousDecisionIsReadBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	v := w.propose("deploy_release", production)
	rq := w.click(v.ApprovalID, alice, Approve)
	if _, err := w.s.decidedBy(w.ctx, rq); !isErr(err, ErrUnavailable) {
		t.Fatalf("a decision that was not committed: %v", err)
	}
	r, err := w.s.Decide(w.ctx, rq)
	w.must(err)
	again, err := w.s.decidedBy(w.ctx, rq)
	w.must(err)
	if !again.Applied || again.View.Version != r.View.Version || again.View.Status != Approved {
		t.Fatalf("read back %v %s", again.Applied, again.View)
	}
	// The same request again is one vote.
	if r, err = w.s.Decide(w.ctx, rq); err != nil || r.Applied || r.Denial.Kind != DenyDecided {
		t.Fatalf("the same decision twice: %v %+v", err, r.Denial)
	}
}
