package approvals

import (
	"slices"
	"testing"

	"github.com/google/uuid"
)

// What is paused can be read, covers what it says, and asks for the cards under it to be painted anew; lifted, it is gone (L6).
func TestSwitches(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	deploy, mail := w.propose("deploy_release", production), w.propose("send_mail", mail)
	for _, v := range []View{deploy, mail} {
		w.must(w.s.SavePost(w.ctx, v.ApprovalID, "C0", "1.1", v.Version, false, ""))
	}
	shown := func(v View) int64 {
		f, err := w.s.CardFacts(w.ctx, v.ApprovalID)
		w.must(err)
		return f.Card.ShownVersion
	}
	throw := func(scope, name string, on bool) []ID {
		met, err := w.s.Suspend(w.ctx, SuspendRequest{Tenant: "acme", By: SlackActor(root), Surface: SurfaceCommand, Scope: scope, Name: name, Reason: "incident", Active: on})
		w.must(err)
		return met.Waiting
	}
	if list, err := w.s.Switches(w.ctx, "acme"); err != nil || len(list) != 0 {
		t.Fatalf("%v %v", list, err)
	}
	// Promised in the transaction of the switch itself (L6, I25).
	if ids := throw("tool", "send_mail", true); !slices.Equal(ids, []ID{mail.ApprovalID}) || shown(mail) >= 0 || shown(deploy) != deploy.Version || w.outbox(OutboxCard, uuid.UUID(mail.ApprovalID)) == 0 {
		t.Fatalf("repaints %v; shown %d and %d", ids, shown(mail), shown(deploy))
	}
	if ids := throw("tenant", "", true); len(ids) != 2 {
		t.Fatalf("the tenant's: %v", ids)
	}
	list, err := w.s.Switches(w.ctx, "acme")
	if err != nil || len(list) != 2 || list[0].Scope != "tenant" || list[1].String() != "tool send_mail: incident" || list[1].By != "slack:"+root || list[1].At.IsZero() {
		t.Fatalf("%+v %v", list, err)
	}
	if !list[0].Covers(deploy) || list[1].Covers(deploy) || !list[1].Covers(mail) || (Switch{Scope: "agent", Name: "nobody"}).Covers(mail) {
		t.Error("a switch covers the wrong requests")
	}
	throw("tenant", "", false)
	if list, err = w.s.Switches(w.ctx, "acme"); err != nil || len(list) != 1 || list[0].Scope != "tool" {
		t.Fatalf("%+v %v", list, err)
	}
}

// A repaint that is asked for while a card is being posted or painted is not lost: the picture is from before it.
func TestARepaintAskedForMeanwhileIsKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	id := w.propose("issue_refund", bigRefund).ApprovalID
	w.decide(id, dave, Approve)
	facts := func() CardFacts {
		t.Helper()
		f, err := w.s.CardFacts(w.ctx, id)
		w.must(err)
		return f
	}
	asks := map[string]func(){
		"a block": func() { w.must(w.block(dave)) },
		"a switch": func() {
			_, err := w.s.Suspend(w.ctx, SuspendRequest{Tenant: "acme", By: SlackActor(root), Surface: SurfaceCommand, Scope: "tenant", Reason: "incident", Active: true})
			w.must(err)
		},
	}
	for _, what := range []string{"a block", "a switch"} {
		w.exec(`UPDATE card SET message_ts = NULL, shown_version = 0`)
		f := facts()
		asks[what]()
		w.must(w.s.SavePost(w.ctx, id, f.Card.Channel, "1753350000.000100", f.Version, false, ""))
		if f = facts(); f.Card.ShownVersion >= f.Version {
			t.Errorf("%s during the post is lost", what)
		}
		for _, before := range []string{"a shown card", "one that is to be painted already"} {
			f = facts()
			asks[what]()
			w.must(w.s.SaveShown(w.ctx, id, f.Card.ShownVersion, f.Version))
			if f = facts(); f.Card.ShownVersion >= f.Version {
				t.Errorf("%s during a paint of %s is lost", what, before)
			}
			if before == "a shown card" {
				asks[what]()
			}
		}
		w.shown(id)
		if f = facts(); f.Card.ShownVersion != f.Version {
			t.Errorf("after %s it is never shown: %d of %d", what, f.Card.ShownVersion, f.Version)
		}
	}
}
