package approvals

import (
	"fmt"
	"sync"
	"testing"
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
