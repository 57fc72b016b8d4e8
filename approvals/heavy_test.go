package approvals

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/holdpoint/holdpoint/approvals/canon"
)

// Large intakes are read a few at a time: one that waits for its turn has changed nothing, can be given up, and holds up no small one.
func TestLargeIntakesTakeTurns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	for range cap(w.s.turns.shared) {
		w.s.turns.shared <- struct{}{} // other large intakes are being read
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
	<-w.s.turns.shared
	select {
	case err := <-done:
		w.must(err)
	case <-time.After(20 * time.Second):
		t.Fatal("its turn never came")
	}
	if n := one[int](w, `SELECT count(*) FROM approval_request`); n != 2 {
		t.Fatalf("%d approvals", n)
	}
	for range cap(w.s.turns.shared) - 1 {
		<-w.s.turns.shared
	}
}

// A key that sends many large intakes has one turn; another key's gets the next one.
func TestOneKeysIntakesQueueBehindEachOther(t *testing.T) {
	t.Parallel()
	turns := newTurns()
	turns.shared = make(chan struct{}, 2)
	run := func(key string, started, release chan struct{}) chan error {
		done := make(chan error, 1)
		go func() {
			done <- turns.do(t.Context(), key, light+1, func() { started <- struct{}{}; <-release })
		}()
		return done
	}
	mine, yours, release := make(chan struct{}, 8), make(chan struct{}, 1), make(chan struct{})
	var all []chan error
	for range 8 {
		all = append(all, run("busy", mine, release))
	}
	<-mine
	for joined := 0; joined < 8; runtime.Gosched() {
		turns.mu.Lock()
		joined = turns.keys["busy"].in
		turns.mu.Unlock()
	}
	all = append(all, run("other", yours, release))
	select {
	case <-yours:
	case <-time.After(20 * time.Second):
		t.Fatal("another key's turn never came")
	}
	if len(mine) != 0 {
		t.Fatal("one key has two turns")
	}
	close(release)
	for _, done := range all {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	if len(turns.keys) != 0 {
		t.Fatalf("%d keys are remembered", len(turns.keys))
	}
}

// Who has left is read no further, however much there is to read.
func TestAReadEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.withStates()
	tenant, _, err := w.s.activeTenant(w.ctx, w.s.intake, "acme", true)
	w.must(err)
	in := w.intake(call("call_a", "send_mail", mail))
	in.Format, in.State = "opaque", []byte(`{"key":"ghp_0123456789abcdefghijABCDEFGHIJ012345"}`)
	if _, err := w.s.read(w.ctx, tenant, w.key, &in); err == nil {
		t.Fatal("the state holds a credential")
	}
	gone, leave := context.WithCancel(w.ctx)
	leave()
	if _, err := w.s.read(gone, tenant, w.key, &in); !isErr(err, ErrUnavailable) {
		t.Fatalf("read for nobody: %v", err)
	}
	if _, err := takeSnapshot(gone, tenant.Tools["send_mail"], canon.Read([]byte(mail)), ""); !isErr(err, context.Canceled) {
		t.Fatalf("a snapshot for nobody: %v", err)
	}
}
