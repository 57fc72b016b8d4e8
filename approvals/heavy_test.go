package approvals

import (
	"context"
	"strings"
	"testing"
	"time"
)

// Large intakes are read a few at a time: one that waits for its turn has changed nothing, can be given up, and holds up no small one.
func TestLargeIntakesTakeTurns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	for range cap(w.s.turns) {
		w.s.turns <- struct{}{} // other large intakes are being read
	}
	large := w.intake(call("a", "ask_user", `{"question":"Which?","more":%q}`, strings.Repeat("x ", light)))
	gone, leave := context.WithCancel(w.ctx)
	waits := make(chan error, 1)
	go func() {
		_, err := w.s.Submit(gone, w.key, large)
		waits <- err
	}()
	w.propose("ask_user", question) // a small one passes
	select {
	case err := <-waits:
		t.Fatalf("a large one did not wait: %v", err)
	default:
	}
	leave()
	if err := <-waits; !isErr(err, ErrUnavailable) {
		t.Fatalf("given up: %v", err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := w.s.Submit(w.ctx, w.key, large)
		done <- err
	}()
	<-w.s.turns
	select {
	case err := <-done:
		w.must(err)
	case <-time.After(20 * time.Second):
		t.Fatal("its turn never came")
	}
	if n := one[int](w, `SELECT count(*) FROM approval_request`); n != 2 {
		t.Fatalf("%d approvals", n)
	}
	for range cap(w.s.turns) - 1 {
		<-w.s.turns
	}
}
