package approvals

import (
	"encoding/json"
	"testing"
	"time"
)

// An uncertain queryable operation is asked about, later and later; only a lookup past timeout + settle is believed.
func TestUncertainIsLookedUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	w.change("settle: 1m", "settle: 10m")
	id := w.approved("book_flight")
	w.dies(id)
	w.pass(11 * time.Minute)
	look := w.claimAny(id)
	w.record(look, OutcomeUnknown) // the lookup found nothing out
	v := w.want(id, Uncertain, "")
	look = w.claimAny(id)
	if !look.LookupFirst || look.Lease.Epoch != 2 {
		t.Fatalf("asked with %s", look)
	}
	if got := w.row(id); got.Version != v.Version {
		t.Fatal("asking repaints the card")
	}
	if due := one[float64](w, `SELECT extract(epoch FROM due_at - clock_timestamp()) FROM approval_open`); due < 5*60 || due > 3600 {
		t.Fatalf("asked again in %.0f s", due)
	}
	w.record(look, OutcomeUnknown)
	if got := w.row(id); got.Version != v.Version {
		t.Fatal("nothing new, and the row changed")
	}
	w.record(look, OutcomeAbsent)
	w.want(id, Failed, ReasonNoEffect)

	// Uncertain before the attempt can no longer arrive: not asked yet.
	w.people()
	id = w.approved("book_flight")
	c := w.dies(id)
	w.exec(`UPDATE approval_request SET target_version = 'x' WHERE approval_id = $1`, id) // makes the takeover doubt
	w.exec(`UPDATE idempotency_ledger SET claimed_at = clock_timestamp() - interval '1 hour' WHERE approval_id = $1`, id)
	w.refused(id, string(Uncertain))
	w.exec(`UPDATE approval_request SET target_version = '' WHERE approval_id = $1`, id)
	w.exec(`UPDATE idempotency_ledger SET claimed_at = clock_timestamp() - interval '9 minutes' WHERE approval_id = $1`, id)
	w.refused(id, string(Uncertain))
	// I13, I17: the attempt may have begun to leave SendWithin after its claim; timeout + settle count from there.
	w.exec(`UPDATE idempotency_ledger SET claimed_at = clock_timestamp() - interval '10 minutes 13 seconds' WHERE approval_id = $1`, id)
	w.refused(id, string(Uncertain))
	w.exec(`UPDATE idempotency_ledger SET claimed_at = clock_timestamp() - interval '10 minutes 16 seconds' WHERE approval_id = $1`, id)
	if look := w.claimAny(id); !look.LookupFirst {
		t.Fatalf("not asked: %s", look)
	}
	w.record(c, OutcomeSucceeded)
	w.want(id, Completed, "")
}

// A lease is renewed under its fence for an hour from the claim; results that are no JSON are still told.
func TestLeaseAndResult(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	id := w.approved("send_mail")
	c := w.claim(id)
	until, err := w.s.RenewLease(w.ctx, c.Lease, 5*time.Minute)
	w.must(err)
	if !until.After(c.LeaseExpiresAt) || !one[time.Time](w, `SELECT due_at FROM approval_open`).Equal(until) {
		t.Fatalf("renewed until %s", until)
	}
	w.exec(`UPDATE idempotency_ledger SET claimed_at = clock_timestamp() - interval '61 minutes'`)
	if _, err := w.s.RenewLease(w.ctx, c.Lease, time.Minute); !isErr(err, ErrStale) {
		t.Fatalf("renewed after an hour: %v", err)
	}
	forged := c.Lease
	forged.Epoch++
	if _, err := w.s.Record(w.ctx, forged, Outcome{Class: OutcomeSucceeded}); !isErr(err, ErrStale) {
		t.Fatalf("another epoch: %v", err)
	}
	for output, want := range map[string]string{"": "null", "plain text": `"plain text"`, `{"a":1}`: `{"a":1}`, "\xff": "\"\uFFFD\"", `{"a":`: `"{\"a\":"`} {
		id := w.approved("send_mail")
		_, err := w.s.Record(w.ctx, w.claim(id).Lease, Outcome{Class: OutcomeSucceeded, Output: json.RawMessage(output)})
		w.must(err)
		v, err := w.s.Get(w.ctx, w.key, id)
		w.must(err)
		if string(v.Result) != want {
			t.Errorf("%q is stored as %s", output, v.Result)
		}
		if m, ok := w.told(w.pauseOf(id)); !ok || string(m.Data.Decisions[0].Result) != want {
			t.Errorf("%q is told as %s", output, m.raw)
		}
	}
	// The same outcome again, after a lost answer, changes nothing and is no error.
	for class, status := range map[OutcomeClass]Status{OutcomeSucceeded: Completed, OutcomeRefused: Failed, OutcomeUnsent: Approved, OutcomeUnknown: Uncertain} {
		id := w.approved("send_mail")
		c := w.claim(id)
		w.record(c, class)
		v := w.want(id, status, w.row(id).ReasonCode)
		if again := w.record(c, class); again.Version != v.Version || again.Status != status {
			t.Errorf("%s again: %s, was %s", class, again, v)
		}
	}
	if _, err := w.s.Record(w.ctx, c.Lease, Outcome{Class: "guess"}); err == nil {
		t.Error("an outcome of no class is recorded")
	}
}

// Racing workers: one of twenty claims runs (I13).
func TestOneClaimOfMany(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	for range 5 {
		id := w.approved("send_mail")
		ran := make(chan Claim, 20)
		for range cap(ran) {
			go func() {
				c, err := w.s.Claim(w.ctx, id, ClaimOptions{})
				if err != nil {
					t.Error(err)
				}
				ran <- c
			}()
		}
		n := 0
		for range cap(ran) {
			if c := <-ran; c.Go {
				n++
			}
		}
		if n != 1 {
			t.Fatalf("%d of 20 claims ran", n)
		}
	}
}

// To ask whether it happened takes no authority: the key is revoked after the crash, and the evidence is still found. What did not
// happen does not happen any more (I3, I18).
func TestALookupNeedsNoAuthority(t *testing.T) {
	t.Parallel()
	for class, want := range map[OutcomeClass]Status{OutcomeSucceeded: Completed, OutcomeAbsent: Revoked, OutcomeUnknown: Uncertain} {
		w := newWorld(t)
		id := w.approved("book_flight")
		w.dies(id)
		w.must(w.s.RevokeKey(w.ctx, w.key.ID, OperatorActor("test")))
		w.pass(11 * time.Minute)
		look := w.claimAny(id)
		if look.Go || !look.LookupFirst {
			t.Fatalf("not asked: %s", look)
		}
		w.record(look, class)
		if got := w.claimAny(id); got.Go {
			t.Fatalf("sent without authority: %s", got)
		}
		v := w.row(id)
		if v.Status != want {
			t.Fatalf("after a lookup that is %v: %s %s", class, v.Status, v.ReasonCode)
		}
		w.check()
	}
}
