package approvals

import (
	"strings"
	"testing"

	"github.com/google/uuid"
)

// A block voids the votes from before it for good: lifting it revives none of them, and gives nobody a second one.
func TestABlockVoidsVotesForGood(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	v := w.propose("issue_refund", bigRefund)
	w.decide(v.ApprovalID, dave, Approve)
	w.post(v.ApprovalID)
	w.shown(v.ApprovalID)
	w.drain()
	w.must(w.block(dave))
	f, err := w.s.CardFacts(w.ctx, v.ApprovalID)
	w.must(err)
	if f.Card.ShownVersion >= f.Version || w.outbox(OutboxCard, uuid.UUID(v.ApprovalID)) != 1 || f.Approving() != 0 || len(f.Votes) != 1 || !f.Votes[0].Void {
		t.Fatalf("the card stays: shown v%d of v%d, %d outbox rows, %d votes count of %+v", f.Card.ShownVersion, f.Version, w.outbox(OutboxCard, uuid.UUID(v.ApprovalID)), f.Approving(), f.Votes)
	}
	w.unblock(dave)
	if got := w.row(v.ApprovalID); got.Approving() != 0 || len(got.Votes) != 1 {
		t.Fatalf("lifting the block revives %d votes", got.Approving())
	}
	open, err := w.s.Open(w.ctx, "acme", 10)
	w.must(err)
	if len(open) != 1 || open[0].Approving() != 0 {
		t.Fatalf("the list counts %d", open[0].Approving())
	}
	w.denied(v.ApprovalID, dave, Approve, DenyVoteVoid)
	w.denied(v.ApprovalID, dave, Reject, DenyVoteVoid)
	if r := w.decide(v.ApprovalID, erin, Approve); r.View.Status != Pending || r.View.Approving() != 1 {
		t.Fatalf("after one vote that counts: %s with %d", r.View, r.View.Approving())
	}
	w.decide(v.ApprovalID, frank, Approve)
	w.want(v.ApprovalID, Approved, "")
	w.agentClaim(v.ApprovalID, "1")

	// What dave decides after the block was lifted counts, until the next one.
	v = w.propose("issue_refund", bigRefund)
	w.decide(v.ApprovalID, dave, Approve)
	if got := w.row(v.ApprovalID); got.Approving() != 1 {
		t.Fatalf("a vote from after the block: %d", got.Approving())
	}
	w.must(w.block(dave))
	w.unblock(dave)
	if got := w.row(v.ApprovalID); got.Approving() != 0 {
		t.Fatalf("a second block voids nothing: %d", got.Approving())
	}

	// Also when the block's own revocations never ran: the claim counts what the database says.
	v = w.propose("issue_refund", bigRefund)
	w.decide(v.ApprovalID, erin, Approve)
	w.decide(v.ApprovalID, frank, Approve)
	w.exec(`INSERT INTO blocked_user (tenant_id, user_id, active, reason, by) VALUES ('acme', $1, false, 'x', 'x')`, frank)
	if r := w.agentRefused(v.ApprovalID, CodeForbidden); r.Reason == "" {
		t.Fatal("claimed with a void vote")
	}
}

// An id that is none must not look like a kill switch that was thrown.
func TestAPersonIsNamedByTheirID(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	before := w.dump()
	for _, bad := range []string{"", "@alice", "alice", "u0alice", "<@U0ALICE>", "slack:U0ALICE", "U", "U0 ALICE", "S0RELEASE", "U0ALICE\n", strings.Repeat("U", 30)} {
		_, err := w.s.Block(w.ctx, BlockRequest{Tenant: "acme", By: OperatorActor("ops"), Surface: SurfaceCLI, UserID: bad, Reason: "why", Blocked: true})
		w.refusal(err, CodeInvalidRequest)
		_, err = w.s.Block(w.ctx, BlockRequest{Tenant: "acme", By: OperatorActor("ops"), Surface: SurfaceCLI, UserID: bad, Reason: "why"})
		w.refusal(err, CodeInvalidRequest)
		if bad == "" {
			continue
		}
		_, err = w.s.Revoke(w.ctx, RevokeRequest{Tenant: "acme", By: OperatorActor("ops"), Surface: SurfaceCLI, Select: Selector{DecidedBy: bad}, Reason: "why"})
		w.refusal(err, CodeInvalidRequest)
	}
	if w.dump() != before {
		t.Fatal("a refused id changed something")
	}
	for user, want := range map[string]bool{alice: true, "U0STRANGE": false} {
		w.must(w.block(user))
		if known, err := w.s.Mirrored(w.ctx, "acme", user); err != nil || known != want {
			t.Errorf("%s is mirrored: %v, %v", user, known, err)
		}
	}
	// Blocked before anybody heard of them: it counts when they turn up.
	w.must(w.s.SaveUsers(w.ctx, "acme", []DirectoryUser{person1("U0STRANGE")}))
	w.group("S0RELEASE", append([]string{"U0STRANGE"}, groups["S0RELEASE"]...)...)
	w.denied(w.propose("deploy_release", production).ApprovalID, "U0STRANGE", Approve, DenyBlocked)
}

// I24: what people type as a reason reaches the trail, the card and the model with credentials masked, whatever they do.
func TestReasonsAreMasked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	const leak = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
	why := "see " + leak + " in the ticket"
	rejected, revoked := w.propose("send_mail", mail), w.propose("send_mail", mail)
	w.decide(rejected.ApprovalID, alice, Reject, func(rq *DecideRequest) { rq.Reason = why })
	voted := w.propose("send_mail", mail)
	w.decide(voted.ApprovalID, alice, Approve, func(rq *DecideRequest) { rq.Reason = why })
	_, err := w.s.Revoke(w.ctx, RevokeRequest{Tenant: "acme", By: SlackActor(root), Surface: SurfaceCommand, Select: Selector{ID: revoked.ApprovalID}, Reason: why})
	w.must(err)
	for _, on := range []bool{true, false} {
		_, err = w.s.Suspend(w.ctx, SuspendRequest{Tenant: "acme", By: SlackActor(root), Surface: SurfaceCommand, Scope: "tenant", Reason: why, Active: on})
		w.must(err)
		_, err = w.s.Block(w.ctx, BlockRequest{Tenant: "acme", By: SlackActor(root), Surface: SurfaceCommand, UserID: dave, Reason: why, Blocked: on})
		w.must(err)
	}
	withdrawn := w.propose("send_mail", mail)
	_, err = w.s.Withdraw(w.ctx, w.key, withdrawn.ApprovalID, why)
	w.must(err)
	uncertain := w.reach(Uncertain).id
	_, err = w.s.Reconcile(w.ctx, ReconcileRequest{Tenant: "acme", By: SlackActor(root), Surface: SurfaceCommand, ID: uncertain, Happened: true, Evidence: why})
	w.must(err)
	for _, v := range []View{rejected, revoked} {
		if got := w.row(v.ApprovalID); !strings.Contains(got.Message, "in the ticket") || strings.Contains(got.Message, leak) {
			t.Errorf("%s says %q", got, got.Message)
		}
		if m, ok := w.told(w.pauseOf(v.ApprovalID)); !ok || strings.Contains(string(m.raw), leak) {
			t.Error("the model is told a credential")
		}
	}
	for _, table := range []string{"approval_request", "approval_decision", "audit_event", "suspension", "blocked_user"} {
		n := one[int](w, `SELECT count(*) FROM `+table+` x WHERE x::text LIKE '%in the ticket%'`)
		if leaked := one[int](w, `SELECT count(*) FROM `+table+` x WHERE x::text LIKE '%`+leak+`%'`); leaked != 0 || n == 0 {
			t.Errorf("%s: %d rows with the words, %d with the credential", table, n, leaked)
		}
	}
}

// Lifting a switch starts exactly what was listed, or asks again.
func TestUnpauseStartsWhatWasListed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	throw := func(on bool, listed string) error {
		_, err := w.s.Suspend(w.ctx, SuspendRequest{Tenant: "acme", By: SlackActor(root), Surface: SurfaceCommand, Scope: "tool", Name: "send_mail", Reason: "why", Active: on, Listed: listed})
		return err
	}
	reach := func() Suspension {
		t.Helper()
		out, err := w.s.Reach(w.ctx, "acme", "tool", "send_mail")
		w.must(err)
		return out
	}
	w.must(throw(true, ""))
	a := w.approved("send_mail")
	shown := reach()
	if len(shown.WouldStart) != 1 || shown.Listed == "" || reach().Listed != shown.Listed {
		t.Fatalf("%d listed as %q", len(shown.WouldStart), shown.Listed)
	}
	still := func(what string) {
		t.Helper()
		if err := throw(false, shown.Listed); !isErr(err, ErrListChanged) {
			t.Fatalf("%s: %v", what, err)
		}
		w.refused(a, "held")
	}
	b := w.approved("send_mail")
	still("one more was approved")
	shown = reach()
	w.revoke(Selector{ID: b})
	still("one of them was revoked")
	shown = reach()
	w.must(throw(true, ""))
	still("it was thrown again")
	shown = reach()
	w.must(throw(false, shown.Listed))
	w.done(a)
	if err := throw(false, shown.Listed); !isErr(err, ErrListChanged) {
		t.Fatalf("the same button again: %v", err)
	}
}

// A press is held to the stored card by the core wherever one leads: a form, Details, a reconciliation.
func TestFormsAreBound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	id, twin := w.reach(Uncertain).id, w.propose("send_mail", mail).ApprovalID
	press := func(of ID, change func(*Press)) *Press {
		rq := w.click(of, root, Approve)
		p := &Press{Button: rq.Button, Channel: rq.Channel, MessageTS: rq.MessageTS}
		if change != nil {
			change(p)
		}
		return p
	}
	f, err := w.s.CardFacts(w.ctx, id)
	w.must(err)
	reconcile := func(p *Press) error {
		_, err := w.s.Reconcile(w.ctx, ReconcileRequest{Tenant: "acme", By: SlackActor(root), Surface: SurfaceModal, ID: id, Happened: true, Evidence: "seen", Press: p})
		return err
	}
	for what, p := range map[string]*Press{
		"another card's":  press(twin, nil),
		"another channel": press(id, func(p *Press) { p.Channel = "C0ELSE" }),
		"another message": press(id, func(p *Press) { p.MessageTS = "1.1" }),
		"another id":      press(id, func(p *Press) { p.Button.ID = twin }),
		"another version": press(id, func(p *Press) { p.Button.Version++ }),
		"another digest":  press(id, func(p *Press) { p.Button.DigestPrefix = "000000000000" }),
		"no MAC":          press(id, func(p *Press) { p.Button.mac = nil }),
		"a MAC of no key": press(id, func(p *Press) { p.Button.mac = p.Button.sum(nil, p.Channel) }),
		"an older digest's": press(id, func(p *Press) {
			b, err := ParseButton(EncodeButton(f.Card.MACKey, f.Card.Channel, id, "sha256-proposal-v1:0123456789abcdef", 1))
			w.must(err)
			p.Button = b
		}),
		"made for another channel": press(id, func(p *Press) {
			p.Channel = "C0ELSE"
			p.Button.mac = p.Button.sum(f.Card.MACKey, p.Channel)
		}),
	} {
		f, err := w.s.CardFacts(w.ctx, id)
		w.must(err)
		before := w.dump()
		if f.Bound(*p) == "" {
			t.Errorf("a form opens for %s", what)
		}
		if err := reconcile(p); !isErr(err, ErrTampered) || w.dump() != before {
			t.Errorf("reconciled by %s: %v", what, err)
		}
	}
	if f, err = w.s.CardFacts(w.ctx, id); err != nil || f.Bound(*press(id, nil)) != "" {
		t.Fatalf("its own press: %v, %v", f.Bound(*press(id, nil)), err)
	}
	w.must(reconcile(press(id, nil)))
	w.want(id, Completed, "")
}

// Two people are two Slack people: a shell lends nobody a second voice.
func TestSecondPersonIsAnotherPerson(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	w.change("users: [U0ROOT], groups: [S0ADMINS]", "users: [U0ROOT, U0BLOCKED], groups: [S0ADMINS]",
		"decide_within: 4h, execute_within: 15m, risk: high", "decide_within: 4h, execute_within: 15m, reconcile: {second_person: true}")
	w.must(w.block(blocked))
	id := w.reach(Uncertain).id
	say := func(by Actor, person string, want error) {
		t.Helper()
		before := w.row(id)
		_, err := w.s.Reconcile(w.ctx, ReconcileRequest{Tenant: "acme", By: by, Person: person, Surface: SurfaceCLI, ID: id, Happened: true, Evidence: "seen"})
		if want == nil {
			w.refusal(err, CodeInvalidRequest)
		} else if !isErr(err, want) {
			t.Fatalf("%s as %q: %v, want %v", by, person, err, want)
		}
		if after := w.row(id); after.Status != Uncertain || after.Version != before.Version && !isErr(want, ErrSecondPerson) {
			t.Fatalf("%s as %q: %s", by, person, after)
		}
	}
	ops, dba := OperatorActor("ops"), OperatorActor("dba")
	say(ops, "", nil)              // opens nothing
	say(ops, "@root", nil)         // no id
	say(ops, alice, ErrNotAdmin)   // none who may
	say(ops, blocked, ErrNotAdmin) // a blocked admin
	say(SlackActor(root), "", ErrSecondPerson)
	say(ops, "", nil)                              // completes nothing
	say(ops, root, ErrSecondPerson)                // the same human by another way
	say(SlackActor(root), second, ErrSecondPerson) // Slack says who they are
	_, err := w.s.Reconcile(w.ctx, ReconcileRequest{Tenant: "acme", By: ops, Person: second, Surface: SurfaceCLI, ID: id, Happened: true, Evidence: "seen"})
	w.must(err)
	w.want(id, Completed, "")

	// One operator is one voice, whomever they name; two operators who name two admins are two.
	id = w.reach(Uncertain).id
	say(ops, root, ErrSecondPerson)
	say(ops, second, ErrSecondPerson)
	_, err = w.s.Reconcile(w.ctx, ReconcileRequest{Tenant: "acme", By: dba, Person: root, Surface: SurfaceCLI, ID: id, Happened: true, Evidence: "seen"})
	w.must(err)
	w.want(id, Completed, "")
	id = w.reach(Uncertain).id
	w.age(decideAge + 1)
	say(ops, root, ErrUncheckable) // a mirror that is too old names no admin
}
