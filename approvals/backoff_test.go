package approvals

import (
	"strings"
	"testing"
	"time"
)

// Back-offs double to a cap, spread by a fifth either way, so that what failed together does not come back together.
func TestBackoffsAreSpreadAndCapped(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		of   func(int) time.Duration
		last time.Duration
	}{"of an operation": {backoff, 5 * time.Minute}, "of a delivery": {deliveryBackoff, time.Hour}} {
		base := 5 * time.Second
		for attempt := range 1_000 {
			if attempt > 1 {
				base = min(2*base, c.last)
			}
			low, high, seen := time.Duration(1<<62), time.Duration(0), map[time.Duration]bool{}
			for range 50 {
				d := c.of(attempt)
				low, high = min(low, d), max(high, d)
				seen[d] = true
			}
			if low < base-base/5 || high > base+base/5 {
				t.Fatalf("%s, attempt %d: %s to %s around %s", name, attempt, low, high, base)
			}
			if len(seen) < 40 || high-low < base/20 {
				t.Fatalf("%s, attempt %d: %d waits between %s and %s are no spread", name, attempt, len(seen), low, high)
			}
		}
		if base != c.last {
			t.Errorf("%s never reached its cap", name)
		}
	}
}

// An agent that never answers is tried after waits that grow to an hour, for 24 h, and then is a dead letter.
func TestDeliveryEndsAfterADay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	v := w.propose("ask_user", question)
	w.decide(v.ApprovalID, alice, Reject)
	pause := w.pauseOf(v.ApprovalID)
	var total, longest time.Duration
	tries := 0
	for {
		if _, ok := w.told(pause); !ok {
			t.Fatalf("after %s and %d tries nothing is sent, and it is no dead letter", total, tries)
		}
		tries++
		w.must(w.s.RecordDelivery(w.ctx, pause, DeliveryResult{Error: "503"}))
		dead, err := w.s.DeadLetters(w.ctx, "acme")
		w.must(err)
		if len(dead) == 1 {
			break
		}
		seconds := one[float64](w, `SELECT extract(epoch FROM next_try_at - clock_timestamp())::float8 FROM run_pause WHERE pause_id = $1`, pause)
		wait := time.Duration(seconds * float64(time.Second))
		if base := min(5*time.Second<<min(tries-1, 20), time.Hour); wait > base+base/5 || wait < base-base/5-5*time.Second {
			t.Fatalf("try %d waits %s, around %s", tries, wait, base)
		}
		total, longest = total+wait, max(longest, wait)
		w.pass(wait + time.Second)
	}
	if total < 24*time.Hour-2*time.Hour || total > 24*time.Hour+2*time.Hour || longest < 48*time.Minute {
		t.Errorf("gave up after %s and %d tries, of which the longest wait was %s", total, tries, longest)
	}
	if _, ok := w.told(pause); ok {
		t.Error("a dead letter is sent")
	}
	if n := one[int](w, `SELECT count(*) FROM audit_event WHERE pause_id = $1 AND kind = 'run.dead_lettered'`, pause); n != 1 {
		t.Errorf("%d rows say so", n)
	}
}

// A version that takes no new intakes is drained: what waits is decided, executed and told.
func TestClosedIntakeDrains(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	worker := w.propose("send_mail", mail)
	mine := w.propose("run_script", script)
	edited := w.propose("send_mail", mail)
	w.change("release-agent/v1:\n", "release-agent/v1:\n            intake: closed\n")
	_, err := w.s.Submit(w.ctx, w.key, w.intake(call("a", "send_mail", mail)))
	w.refusal(err, CodeIntakeClosed)

	for _, v := range []View{worker, mine, edited} {
		w.want(v.ApprovalID, Pending, "")
	}
	w.approve(worker.ApprovalID)
	w.done(worker.ApprovalID)
	w.approve(mine.ApprovalID)
	child := w.decide(edited.ApprovalID, alice, Edit, with(`{"to":"b@example.com"}`)).Child
	w.decide(child.ApprovalID, bob, Approve)
	w.done(child.ApprovalID)

	for id, outcome := range map[ID]string{worker.ApprovalID: "succeeded", mine.ApprovalID: "pending_agent", child.ApprovalID: "succeeded"} {
		m, ok := w.told(w.pauseOf(id))
		if !ok || m.Type != RunResume || len(m.Data.Decisions) != 1 || m.Data.Decisions[0].Outcome != outcome || m.Data.Decisions[0].Decision != "approve" {
			t.Errorf("%s: told %v, %s", id, ok, m.raw)
		}
		w.must(w.s.RecordDelivery(w.ctx, w.pauseOf(id), DeliveryResult{Delivered: true}))
	}
	a := w.agentClaim(mine.ApprovalID, "1")
	_, err = w.s.Complete(w.ctx, w.key, mine.ApprovalID, a.LeaseToken, a.Epoch, []byte(`{"ok":true}`))
	w.must(err)
	w.want(mine.ApprovalID, Completed, "")
}

// What is refused for a missing setting says what to paste; a key that is too narrow is no setting.
func TestSuggestionsSayWhatIsMissing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	narrow, _ := w.narrowKey("release-agent", "ask_user", "send_mail")
	_, err := w.s.Submit(w.ctx, narrow, w.intake(call("a", "run_script", script)))
	r := w.refusal(err, CodeToolNotAllowed)
	if want := "holdpoint keys create --tenant acme --agent release-agent --tools ask_user,send_mail,run_script"; r.Suggest != "" || !strings.Contains(r.Detail, want) {
		t.Errorf("a narrow key: %q, and suggests %q", r.Detail, r.Suggest)
	}
	w.change("book_flight, run_script, drop_table", "book_flight, drop_table")
	_, err = w.s.Submit(w.ctx, w.key, w.intake(call("a", "run_script", script)))
	if r = w.refusal(err, CodeToolNotAllowed); !strings.Contains(r.Suggest, `"drop_table", "ask_user", "run_script"]`) {
		t.Errorf("a tool that the agent may not use suggests %q", r.Suggest)
	}
	w.change("      release-agent:\n", "      another-agent:\n")
	_, err = w.s.Submit(w.ctx, w.key, w.intake(call("a", "run_script", script), call("b", "send_mail", mail), call("c", "send_mail", mail)))
	r = w.refusal(err, CodeToolNotAllowed)
	for _, line := range []string{"\"release-agent\":\n", "tools: [\"run_script\", \"send_mail\"]\n", "\"release-agent/v1\":\n", "states: [{format: none}]"} {
		if !strings.Contains(r.Suggest, line) {
			t.Errorf("an agent that is not there suggests no %q:\n%s", line, r.Suggest)
		}
	}
}

// No attempt that may have arrived, no retention to count: a retry after a proven no-effect has a whole one again (I19).
func TestARetryWithoutEffectHasAWholeRetention(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	id := w.approved("deploy_release")
	for range 2 {
		c := w.claim(id)
		w.exec(`UPDATE idempotency_ledger SET first_sent_at = clock_timestamp() - interval '25 hours' WHERE approval_id = $1`, id)
		w.record(c, OutcomeNoEffect)
		w.exec(`UPDATE idempotency_ledger SET next_try_at = clock_timestamp() WHERE approval_id = $1`, id)
	}
	c := w.claim(id)
	if left := c.LeaseExpiresAt.Sub(one[time.Time](w, `SELECT clock_timestamp()`)); left < 10*time.Second {
		t.Fatalf("a lease of %s", left)
	}
	if until, err := w.s.RenewLease(w.ctx, c.Lease, time.Minute); err != nil || !until.After(c.LeaseExpiresAt) {
		t.Fatalf("renewed until %s: %v", until, err)
	}
	first := one[time.Time](w, `SELECT first_sent_at FROM idempotency_ledger WHERE approval_id = $1`, id)
	w.record(c, OutcomeUnknown) // this one may have arrived: its time stays
	if again := one[time.Time](w, `SELECT first_sent_at FROM idempotency_ledger WHERE approval_id = $1`, id); !again.Equal(first) {
		t.Fatal("the retention begins anew after an attempt that may have arrived")
	}
}
