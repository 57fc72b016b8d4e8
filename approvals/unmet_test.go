package approvals

import (
	"strings"
	"testing"
)

// A stop that meets nothing because of a typing error is refused, with what there is; it never looks like one that was thrown.
func TestStopOfWhatIsNotThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	by := OperatorActor("test")
	for _, c := range []struct {
		sel  Selector
		want string
	}{
		{Selector{Agent: "nope"}, `there is no agent "nope" in the configuration; it has `},
		{Selector{Tool: "nope"}, `there is no tool "nope" in the configuration; it has `},
	} {
		if _, err := w.s.Revoke(w.ctx, RevokeRequest{Tenant: "acme", By: by, Select: c.sel, Reason: "x"}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.sel, err)
		}
	}
	for _, sel := range []Selector{{Agent: "release-agent"}, {Tool: "deploy_release"}, {Run: "nope"}} {
		if views, err := w.s.Revoke(w.ctx, RevokeRequest{Tenant: "acme", By: by, Select: sel, Reason: "x"}); err != nil || len(views) != 0 {
			t.Errorf("%+v: %v %v", sel, views, err)
		}
	}
	block := func(on bool) error {
		_, err := w.s.Block(w.ctx, BlockRequest{Tenant: "acme", By: by, UserID: "U0ALICE", Reason: "x", Blocked: on})
		return err
	}
	const not = "U0ALICE is not blocked"
	if err := block(false); err == nil || !strings.Contains(err.Error(), not) {
		t.Errorf("unblocked, and never blocked: %v", err)
	}
	w.must(block(true))
	w.must(block(false))
	if err := block(false); err == nil || !strings.Contains(err.Error(), not) {
		t.Errorf("unblocked twice: %v", err)
	}
}
