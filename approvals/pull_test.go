package approvals

import (
	"errors"
	"slices"
	"testing"
)

// A run that is asked for again while its delivery is being parked is delivered again at once, not a day later or never.
func TestParkingKeepsAnotherAsk(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	v := w.proposeAs(w.pull, "pull/v1", "run_script", script)
	w.decide(v.ApprovalID, alice, Reject)
	pause := w.pauseOf(v.ApprovalID)
	_, err := w.s.ResumeFor(w.ctx, pause)
	w.must(err)
	w.exec(`UPDATE run_pause SET sending_until = clock_timestamp() + interval '40 seconds' WHERE pause_id = $1`, pause) // it is being built again
	w.must(w.s.Redeliver(w.ctx, w.pull, v.ApprovalID))
	w.must(w.s.park(w.ctx, pause, "acme"))
	if !one[bool](w, `SELECT next_try_at <= clock_timestamp() AND dead_at IS NULL AND sending_until IS NULL FROM run_pause WHERE pause_id = $1`, pause) {
		t.Fatal("what was asked for is lost")
	}
}

// A key that is revoked during a long poll is told so at its end.
func TestALongPollOutlastsNoKey(t *testing.T) {
	t.Parallel()
	asked := &tripCounter{}
	w := newWorldWith(t, Options{}, asked)
	defer w.check()
	v := w.proposeAs(w.pull, "pull/v1", "run_script", script)
	polled := make(chan error, 1)
	go func() {
		_, _, _, err := w.s.PullResume(w.ctx, w.pull, v.RunID, 10*watchEvery)
		polled <- err
	}()
	w.until("the poll has looked", func() bool {
		asked.mu.Lock()
		defer asked.mu.Unlock()
		return slices.Contains(asked.alone, sqlPull)
	})
	w.must(w.s.RevokeKey(w.ctx, w.pull.ID, OperatorActor("test")))
	var no *Refusal
	if err := <-polled; !errors.As(err, &no) || no.Code != revokedKey().Code {
		t.Fatalf("at its end: %v", err)
	}
}
