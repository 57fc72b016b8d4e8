package approvals

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
)

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
	// The person alone is fresh: the group decides, and is as old as it is.
	w.exec(`UPDATE slack_group SET synced_at = synced_at - $1::interval`, decideAge+1)
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
	// What is read back tells all that the first answer would have: the votes of a quorum, an edit's child.
	for verb, c := range map[Verb]struct {
		tool, arguments, user string
		change                func(*DecideRequest)
	}{
		Approve: {"issue_refund", bigRefund, dave, func(*DecideRequest) {}},
		Edit:    {"issue_refund", bigRefund, erin, func(rq *DecideRequest) { rq.Arguments = []byte(`{"order":"ORD-18472","amount":99,"currency":"USD"}`) }},
		Reject:  {"send_mail", mail, alice, func(rq *DecideRequest) { rq.Reason = "no" }},
	} {
		v := w.propose(c.tool, c.arguments)
		rq := w.click(v.ApprovalID, c.user, verb, c.change)
		first, err := w.s.Decide(w.ctx, rq)
		w.must(err)
		back, err := w.s.decidedBy(w.ctx, rq)
		w.must(err)
		told := func(r Ruling) string {
			var votes []string
			for _, v := range r.View.Votes {
				votes = append(votes, v.By+" "+v.Decision+" "+v.Reason)
			}
			child := "none"
			if r.Child != nil {
				child = r.Child.ApprovalID.String() + " " + r.Child.Digest
			}
			return fmt.Sprint(r.Applied, r.View.ApprovalID, r.View.Status, r.View.Version, votes, child, r.View.DecidedBy, r.View.Now.IsZero())
		}
		if told(first) != told(back) || len(first.View.Votes) != 1 || (first.Child != nil) != (verb == Edit) {
			t.Errorf("%s: told %s\nread back %s", verb, told(first), told(back))
		}
	}
	// The same request again is one vote.
	if r, err = w.s.Decide(w.ctx, rq); err != nil || r.Applied || r.Denial.Kind != DenyDecided {
		t.Fatalf("the same decision twice: %v %+v", err, r.Denial)
	}
}

// The claim's swap carries the deadline itself, and no reservation stays behind when it misses (I2, I7).
func TestDeadlineBetweenTheBatchesOfAClaim(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	id := w.approved("send_mail")
	w.people()
	w.exec(`UPDATE approval_request SET expires_at = clock_timestamp() + interval '2 seconds' WHERE approval_id = $1`, id)
	between := 0
	pool := w.open("claim", 1, &interrupted{between: func() {
		between++
		w.until("the deadline has passed", func() bool {
			return one[bool](w, `SELECT clock_timestamp() > expires_at FROM approval_request WHERE approval_id = $1`, id)
		})
	}})
	c, err := New(Options{Clicks: pool, Intake: pool, Work: pool, Sealer: w.s.sealer, Directory: w.dir}).Claim(w.ctx, id, ClaimOptions{Holder: "worker-1"})
	w.must(err)
	if c.Go || c.Why != "moved" || between != 1 {
		t.Fatalf("claimed after the deadline: %s", c)
	}
	if n := one[int](w, `SELECT count(*) FROM idempotency_ledger`); n != 0 || w.row(id).Status != Approved {
		t.Fatalf("%d ledger rows stay behind, it is %s", n, w.row(id).Status)
	}
	w.due(id)
	w.sweep()
	w.want(id, Expired, ReasonExecuteExpired)
}
