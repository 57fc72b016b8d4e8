package approvals

import (
	"slices"
	"testing"
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
	throw := func(scope, name string, on bool) {
		_, err := w.s.Suspend(w.ctx, SuspendRequest{Tenant: "acme", By: SlackActor(root), Surface: SurfaceCommand, Scope: scope, Name: name, Reason: "incident", Active: on})
		w.must(err)
	}
	if list, err := w.s.Switches(w.ctx, "acme"); err != nil || len(list) != 0 {
		t.Fatalf("%v %v", list, err)
	}
	throw("tool", "send_mail", true)
	throw("tenant", "", true)
	list, err := w.s.Switches(w.ctx, "acme")
	if err != nil || len(list) != 2 || list[0].Scope != "tenant" || list[1].String() != "tool send_mail: incident" || list[1].By != "slack:"+root || list[1].At.IsZero() {
		t.Fatalf("%+v %v", list, err)
	}
	if !list[0].Covers(deploy) || list[1].Covers(deploy) || !list[1].Covers(mail) || (Switch{Scope: "agent", Name: "nobody"}).Covers(mail) {
		t.Error("a switch covers the wrong requests")
	}
	ids, err := w.s.RepaintUnder(w.ctx, "acme", "tool", "send_mail")
	if err != nil || !slices.Equal(ids, []ID{mail.ApprovalID}) || shown(mail) != 0 || shown(deploy) != deploy.Version {
		t.Fatalf("repaints %v, %v; shown %d and %d", ids, err, shown(mail), shown(deploy))
	}
	if ids, err = w.s.RepaintUnder(w.ctx, "acme", "tenant", ""); err != nil || len(ids) != 2 {
		t.Fatalf("the tenant's: %v %v", ids, err)
	}
	if ids, err = w.s.RepaintUnder(w.ctx, "other", "tenant", ""); err != nil || len(ids) != 0 { // I22
		t.Fatalf("another tenant's: %v %v", ids, err)
	}
	throw("tenant", "", false)
	if list, err = w.s.Switches(w.ctx, "acme"); err != nil || len(list) != 1 || list[0].Scope != "tool" {
		t.Fatalf("%+v %v", list, err)
	}
}
