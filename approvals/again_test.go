package approvals

import "testing"

// A fresh proposal links to the one that it proposes again: the same call, else the same tool on the same target; and each is linked once.
func TestWhatAFreshProposalReplaces(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	order := func(id, order string) CallInput {
		return call(id, "issue_refund", `{"order":%q,"amount":742.18,"currency":"USD"}`, order)
	}
	nested := order("a", "ORD-3")
	nested.CallPath = []string{"outer"}
	in := w.intake(order("a", "ORD-1"), order("b", "ORD-2"), nested, call("m", "send_mail", mail))
	old := w.submit(in).Approvals
	pairs := []string{`"Refund {{.amount}}`, `"Pay back {{.amount}}`, `"Mail {{.to}}"`, `"Write to {{.to}}"`}
	w.change(pairs...)
	for _, v := range old {
		w.want(v.ApprovalID, MigrationRequired, ReasonToolChanged)
	}
	again := func(key string, calls ...CallInput) []View {
		t.Helper()
		next := w.intake(calls...)
		next.RunID, next.PauseKey = in.RunID, key
		return w.submit(next).Approvals
	}
	replaced := func(what string, got View, want *View) {
		t.Helper()
		switch {
		case want == nil && got.ReplacesID != nil:
			t.Errorf("%s replaces %s", what, got.ReplacesID)
		case want != nil && (got.ReplacesID == nil || *got.ReplacesID != want.ApprovalID):
			t.Errorf("%s replaces %v, want %s", what, got.ReplacesID, want.ApprovalID)
		}
	}
	// The first call has a new id and the second one's target; the second has its own id: it is not robbed of what is its own.
	got := again("1", order("x", "ORD-2"), order("b", "ORD-2"), order("y", "ORD-1"), order("z", "ORD-9"))
	replaced("another call on the second's target", got[0], nil)
	replaced("the second call", got[1], &old[1])
	replaced("a new call on the first's target", got[2], &old[0])
	replaced("a call on a new target", got[3], nil)
	nested.Arguments = order("", "ORD-8").Arguments // the same call with other arguments
	got = again("2", order("b2", "ORD-2"), order("y2", "ORD-1"), nested, call("n", "send_mail", mail))
	replaced("proposed for the third time", got[0], nil)
	replaced("proposed for the third time", got[1], nil)
	replaced("the call of the same path and id", got[2], &old[2])
	replaced("the same tool on the same target", got[3], &old[3])
}
