package approvals

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
)

// Two siblings decided at once close their pause once, every time (the design's trap: 298 of 300 lost).
func TestSiblingsClosePauseOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	n := 300
	if testing.Short() {
		n = 30
	}
	for range n {
		p := w.submit(w.intake(call("a", "ask_user", question), call("b", "ask_user", question)))
		answer := func(rq *DecideRequest) { rq.Answer = "yes" }
		w.together(w.click(p.Approvals[0].ApprovalID, alice, Respond, answer), w.click(p.Approvals[1].ApprovalID, alice, Reject))
		if rows := w.outbox(OutboxResume, uuid.MustParse(p.Approvals[0].PauseID)); rows != 1 {
			t.Fatalf("the pause closed %d times", rows)
		}
	}
}

// The message is built once and is the same on every try, whoever tries; told means never again.
func TestDeliveryIsOneMessage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	v := w.propose("ask_user", question)
	w.decide(v.ApprovalID, alice, Reject)
	pause := w.pauseOf(v.ApprovalID)
	first, ok := w.told(pause)
	if !ok || first.delivery.Attempt != 1 || !first.delivery.Send || first.delivery.URL != "http://127.0.0.1:9/resume" || first.delivery.WebhookID != WebhookID(pause) {
		t.Fatalf("first try: %s", first.delivery)
	}
	// A worker that died with it: after a while the next one has the same bytes.
	w.pass(deliveryHold)
	again, ok := w.told(pause)
	if !ok || again.delivery.Attempt != 2 || string(again.raw) != string(first.raw) || again.delivery.WebhookID != first.delivery.WebhookID {
		t.Fatal("the second try is another message")
	}
	// Refused: backed off from 5 s.
	w.must(w.s.RecordDelivery(w.ctx, pause, DeliveryResult{Error: "503"}))
	if wait := one[float64](w, `SELECT extract(epoch FROM next_try_at - clock_timestamp()) FROM run_pause`); wait < 7 || wait > 12.1 {
		t.Fatalf("backed off for %.1f s after two tries", wait)
	}
	w.pass(15 * time.Second)
	if rep := w.sweep(); rep.Resumes != 0 {
		t.Fatal("rung for although its own ring is still in the outbox")
	}
	w.drain()
	if rep := w.sweep(); rep.Resumes != 1 || w.outbox(OutboxResume, pause) != 1 {
		t.Fatalf("L5: swept %+v", rep)
	}
	// Accepted: again in five minutes unless acknowledged.
	if _, ok := w.told(pause); !ok {
		t.Fatal("not tried")
	}
	w.must(w.s.RecordDelivery(w.ctx, pause, DeliveryResult{Accepted: true}))
	if wait := one[float64](w, `SELECT extract(epoch FROM next_try_at - clock_timestamp()) FROM run_pause`); wait < 290 || wait > 300 {
		t.Fatalf("accepted: again in %.0f s", wait)
	}
	w.must(w.s.AckResume(w.ctx, w.key, v.RunID, 1, "git:2"))
	w.must(w.s.AckResume(w.ctx, w.key, v.RunID, 1, "git:3"))
	if rev := one[string](w, `SELECT told_revision FROM run_pause WHERE told_at IS NOT NULL AND next_try_at IS NULL`); rev != "git:3" {
		t.Fatalf("told to %q", rev)
	}
	if err := w.s.AckResume(w.ctx, w.key, v.RunID, 2, ""); !isErr(err, ErrNotFound) {
		t.Fatalf("acknowledged a pause that is not there: %v", err)
	}
	// Asked for again: the same bytes. A 202 to that is no more final than one to the first telling.
	w.must(w.s.Redeliver(w.ctx, w.key, v.ApprovalID))
	redelivered, ok := w.told(pause)
	if !ok || string(redelivered.raw) != string(first.raw) {
		t.Fatal("redelivered as another message")
	}
	w.must(w.s.RecordDelivery(w.ctx, pause, DeliveryResult{Accepted: true}))
	if wait := one[float64](w, `SELECT extract(epoch FROM next_try_at - clock_timestamp()) FROM run_pause WHERE told_at IS NOT NULL`); wait < 290 || wait > 300 {
		t.Fatalf("a redelivery that was accepted: again in %.0f s", wait)
	}
	w.must(w.s.AckResume(w.ctx, w.key, v.RunID, 1, ""))
	// An answer that was slower than the acknowledgement plans nothing.
	w.must(w.s.RecordDelivery(w.ctx, pause, DeliveryResult{Accepted: true}))
	if n := one[int](w, `SELECT count(*) FROM run_pause WHERE told_at IS NOT NULL AND next_try_at IS NULL`); n != 1 {
		t.Fatal("a redelivery that was acknowledged is repeated")
	}
	if events, err := w.s.Events(w.ctx, w.key, v.ApprovalID); err != nil || !has(events, "run.told") || !has(events, "run.not_told") || !has(events, "run.accepted") {
		t.Fatalf("trail: %v", err)
	}
}

func has(events []Event, kind string) bool {
	for _, e := range events {
		if e.Kind == kind {
			return true
		}
	}
	return false
}

// Given up after 24 h, stopped by the agent, and brought back by an operator.
func TestDeadLetters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	for what, end := range map[string]DeliveryResult{"refused": {Error: "503"}, "accepted for ever": {Accepted: true}} {
		v := w.propose("ask_user", question)
		w.refusal(w.s.Redeliver(w.ctx, w.key, v.ApprovalID), CodeConflict)
		w.decide(v.ApprovalID, alice, Reject)
		pause := w.pauseOf(v.ApprovalID)
		if _, ok := w.told(pause); !ok {
			t.Fatal("not tried")
		}
		w.must(w.s.RecordDelivery(w.ctx, pause, end))
		w.pass(25 * time.Hour)
		if _, ok := w.told(pause); !ok {
			t.Fatal("not tried again")
		}
		w.must(w.s.RecordDelivery(w.ctx, pause, end))
		letters, err := w.s.DeadLetters(w.ctx, "acme")
		w.must(err)
		if len(letters) != 1 || letters[0].RunID != v.RunID || letters[0].DeadAt == nil {
			t.Fatalf("%s: %d dead letters", what, len(letters))
		}
		if n, err := w.s.Undelivered(w.ctx); err != nil || n != (Undelivered{Unheard: 1}) {
			t.Fatalf("%s: counted %+v, %v", what, n, err)
		}
		if _, ok := w.told(pause); ok {
			t.Fatal("a dead letter is tried by itself")
		}
		if err := w.s.Redrive(w.ctx, "globex", letters[0].PauseID); !isErr(err, ErrNotFound) {
			t.Fatalf("I22: redriven by another tenant: %v", err)
		}
		w.must(w.s.Redrive(w.ctx, "acme", letters[0].PauseID))
		if _, ok := w.told(pause); !ok {
			t.Fatal("not redriven")
		}
		w.must(w.s.RecordDelivery(w.ctx, pause, DeliveryResult{Delivered: true}))
		if letters, err = w.s.DeadLetters(w.ctx, "acme"); err != nil || len(letters) != 0 {
			t.Fatalf("%d dead letters, %v", len(letters), err)
		}
	}
	// 410: the agent wants no more of it.
	v := w.propose("ask_user", question)
	w.decide(v.ApprovalID, alice, Reject)
	pause := w.pauseOf(v.ApprovalID)
	w.told(pause)
	w.must(w.s.RecordDelivery(w.ctx, pause, DeliveryResult{Stopped: true}))
	w.must(w.s.RecordDelivery(w.ctx, pause, DeliveryResult{Error: "a try that was slower"}))
	w.pass(time.Hour)
	w.drain()
	if rep := w.sweep(); rep.Resumes != 0 {
		t.Fatal("rung for although it was stopped")
	}
	if letters, err := w.s.DeadLetters(w.ctx, "acme"); err != nil || len(letters) != 1 || letters[0].StoppedAt == nil {
		t.Fatalf("%d letters, %v", len(letters), err)
	}
	if n, err := w.s.Undelivered(w.ctx); err != nil || n != (Undelivered{Stopped: 1}) {
		t.Fatalf("counted %+v, %v", n, err)
	}
	// Its run went on since: resuming the old turn would be wrong.
	next := w.intake(call("b", "ask_user", question))
	next.RunID = v.RunID
	if p := w.submit(next); p.Pause != 2 {
		t.Fatalf("pause %d", p.Pause)
	}
	if n, err := w.s.Undelivered(w.ctx); err != nil || n != (Undelivered{}) {
		t.Fatalf("nobody's to redrive any more, and counted %+v, %v", n, err)
	}
	w.refusal(w.s.Redeliver(w.ctx, w.key, v.ApprovalID), CodeConflict)
}

// A run whose message can't be built backs off and ends as a dead letter, too (L5).
func TestUnbuildableMessage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.propose("send_mail", mail)
	w.approve(v.ApprovalID)
	w.done(v.ApprovalID)
	w.exec(`UPDATE approval_payload SET result = substr(result, 1, 20) WHERE approval_id = $1`, v.ApprovalID)
	pause := w.pauseOf(v.ApprovalID)
	if _, err := w.s.ResumeFor(w.ctx, pause); !isErr(err, ErrCorrupt) {
		t.Fatalf("built from a broken result: %v", err)
	}
	if n := one[int](w, `SELECT count(*) FROM audit_event WHERE pause_id = $1 AND kind = 'run.not_told'`, pause); n != 1 {
		t.Fatal("the failure is not recorded")
	}
	w.pass(25 * time.Hour)
	if _, err := w.s.ResumeFor(w.ctx, pause); !isErr(err, ErrCorrupt) {
		t.Fatal(err)
	}
	if letters, err := w.s.DeadLetters(w.ctx, "acme"); err != nil || len(letters) != 1 {
		t.Fatalf("%d letters, %v", len(letters), err)
	}
}

// Pulling instead of a webhook.
func TestPull(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	v := w.proposeAs(w.pull, "pull/v1", "run_script", script)
	if _, _, ok, err := w.s.PullResume(w.ctx, w.pull, v.RunID, 0); ok || err != nil {
		t.Fatalf("pulled before its end: %v %v", ok, err)
	}
	type got struct {
		body  []byte
		pause int
		ok    bool
		err   error
	}
	pulled := make(chan got, 1)
	go func() {
		body, pause, ok, err := w.s.PullResume(context.WithoutCancel(w.ctx), w.pull, v.RunID, 30*time.Second)
		pulled <- got{body, pause, ok, err}
	}()
	w.decide(v.ApprovalID, alice, Reject)
	d, err := w.s.ResumeFor(w.ctx, w.pauseOf(v.ApprovalID))
	w.must(err)
	if d.Send || !d.Pull {
		t.Fatal("a pulled run is sent")
	}
	g := <-pulled
	if g.err != nil || !g.ok || g.pause != 1 || string(g.body) != string(d.Body) {
		t.Fatalf("pulled %v, pause %d, %v", g.ok, g.pause, g.err)
	}
	w.drain()
	w.pass(time.Hour)
	if rep := w.sweep(); rep.Resumes != 0 {
		t.Fatal("a parked delivery is rung for")
	}
	w.must(w.s.AckResume(w.ctx, w.pull, v.RunID, 1, ""))
	if _, _, ok, err := w.s.PullResume(w.ctx, w.pull, v.RunID, 0); ok || err != nil {
		t.Fatalf("pulled after its acknowledgement: %v %v", ok, err)
	}
	if _, _, _, err := w.s.PullResume(w.ctx, w.pull, "run_unknown", 0); !isErr(err, ErrNotFound) {
		t.Fatalf("an unknown run: %v", err)
	}
}

// Nobody fetches it: given up like on a deaf agent, listed, and still there for whoever comes later (L5). What was told is told again
// when it is asked for, until that is acknowledged, too.
func TestPulledByNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	v := w.proposeAs(w.pull, "pull/v1", "run_script", script)
	w.decide(v.ApprovalID, alice, Reject)
	pause := w.pauseOf(v.ApprovalID)
	pulls := func(want bool) {
		t.Helper()
		if _, _, ok, err := w.s.PullResume(w.ctx, w.pull, v.RunID, 0); ok != want || err != nil {
			t.Fatalf("pulled: %v %v", ok, err)
		}
	}
	letters := func(want int) {
		t.Helper()
		if got, err := w.s.DeadLetters(w.ctx, "acme"); err != nil || len(got) != want {
			t.Fatalf("%d dead letters, want %d: %v", len(got), want, err)
		}
	}
	w.told(pause)
	letters(0)
	w.drain()
	w.pass(25 * time.Hour)
	if rep := w.sweep(); rep.Resumes != 1 {
		t.Fatal("nobody looks whether it was fetched")
	}
	w.told(pause)
	letters(1)
	pulls(true)
	w.must(w.s.AckResume(w.ctx, w.pull, v.RunID, 1, ""))
	letters(0)
	pulls(false)
	w.must(w.s.Redeliver(w.ctx, w.pull, v.ApprovalID))
	pulls(true)
	w.told(pause)
	pulls(true)
	w.must(w.s.AckResume(w.ctx, w.pull, v.RunID, 1, ""))
	pulls(false)
	w.pass(25 * time.Hour)
	w.drain()
	if rep := w.sweep(); rep.Resumes != 0 {
		t.Fatal("rung for after its acknowledgement")
	}
}

// An effort to tell lasts 24 h from its own first try: after a weekend without workers, and again after a dead letter is redriven.
func TestEachEffortLastsADay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	v := w.propose("ask_user", question)
	w.decide(v.ApprovalID, alice, Reject)
	pause := w.pauseOf(v.ApprovalID)
	deaf := func(dead int) {
		t.Helper()
		if _, ok := w.told(pause); !ok {
			t.Fatal("not tried")
		}
		w.must(w.s.RecordDelivery(w.ctx, pause, DeliveryResult{Error: "503"}))
		if got, err := w.s.DeadLetters(w.ctx, "acme"); err != nil || len(got) != dead {
			t.Fatalf("%d dead letters, want %d: %v", len(got), dead, err)
		}
	}
	w.pass(60 * time.Hour)
	for range 2 {
		deaf(0)
		w.pass(23 * time.Hour)
		deaf(0)
		w.pass(2 * time.Hour)
		deaf(1)
		w.must(w.s.Redrive(w.ctx, "acme", pause.String()))
	}
	w.told(pause)
	w.must(w.s.RecordDelivery(w.ctx, pause, DeliveryResult{Delivered: true}))
	// Asked for again, an agent may say 410 now, too: it is left in peace.
	w.must(w.s.Redeliver(w.ctx, w.key, v.ApprovalID))
	if _, ok := w.told(pause); !ok {
		t.Fatal("not told again")
	}
	w.must(w.s.RecordDelivery(w.ctx, pause, DeliveryResult{Stopped: true}))
	w.drain()
	w.pass(time.Hour)
	if rep := w.sweep(); rep.Resumes != 0 {
		t.Fatal("told again after its 410")
	}
	if _, ok := w.told(pause); ok {
		t.Fatal("told again after its 410")
	}
}
