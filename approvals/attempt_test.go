package approvals

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/holdpoint/holdpoint/approvals/rules"
)

// attempt is what the tool does with a call: it lands or not, and its holder learns of it or not.
func (l *life) attempt(c *modelled, lease Lease, lookup bool) *try {
	fate := rapid.SampledFrom([]string{"ok", "ok", "refused", "unsent", "lost", "lost, landed"}).Draw(l.t, "fate")
	t := &try{call: c, lease: lease, lookup: lookup, report: OutcomeUnknown}
	keyed := c.kind().retry == rules.Idempotent && c.op.landed > 0
	switch {
	case lookup && fate == "lost":
	case lookup && c.op.landed > 0:
		t.report = OutcomeSucceeded
	case lookup:
		t.report = OutcomeAbsent
	case fate == "unsent":
		t.report = OutcomeUnsent
	case keyed: // the tool knows the key and answers as it did; the answer may get lost again
		if fate == "ok" || fate == "refused" {
			t.report = OutcomeSucceeded
		}
	case fate == "refused":
		t.report = OutcomeRefused
	case fate == "ok":
		t.report, c.op.landed = OutcomeSucceeded, c.op.landed+1
	case fate == "lost, landed":
		c.op.landed++
	}
	l.say("  lookup %v, %s: it will say %s; landed %d", lookup, fate, t.report, c.op.landed)
	if c.op.landed > 1 {
		l.fail("I13: %s had its effect %d times", c.tool, c.op.landed)
	}
	return t
}

// reports is a holder that says what it knows: at once, late, twice, or after somebody else took over.
func (l *life) reports() {
	if len(l.tries) == 0 {
		return
	}
	t := l.tries[len(l.tries)-1]
	if rapid.IntRange(0, 3).Draw(l.t, "an older one") == 0 {
		t = l.tries[rapid.IntRange(0, len(l.tries)-1).Draw(l.t, "try")]
	}
	l.report(t)
}

func (l *life) report(t *try) {
	x, soon := l.times(t.call)
	if soon {
		return
	}
	_, err := l.s.Record(l.ctx, t.lease, Outcome{Class: t.report, Output: json.RawMessage(`"done"`), Error: "as it was"})
	want := l.around.record(t.call, int(t.lease.Epoch), t.report, x)
	l.say("%s reports %s under epoch %d: %v", t.call.id, t.report, t.lease.Epoch, err)
	l.seen.add("stale", err != nil)
	if (err == nil) != want || err != nil && !errors.Is(err, ErrStale) {
		l.fail("%s under epoch %d: %v, the oracle says it counts: %v", t.report, t.lease.Epoch, err, want)
	}
}

func (l *life) jumps() {
	d := rapid.SampledFrom([]time.Duration{7 * time.Second, 7 * time.Second, 75 * time.Second, 75 * time.Second, 75 * time.Second, 6 * time.Minute, 6 * time.Minute, 16 * time.Minute, 2 * time.Hour, 25 * time.Hour}).Draw(l.t, "jump")
	l.say("%s pass", d)
	l.passRun(l.run, d)
}

// passRun is pass for one run alone.
func (w *world) passRun(run string, d time.Duration) {
	w.t.Helper()
	w.must(pgx.BeginFunc(w.ctx, w.db, func(tx pgx.Tx) error {
		b := &pgx.Batch{}
		b.Queue(`SET LOCAL session_replication_role = replica`)
		b.Queue(`UPDATE idempotency_ledger SET lease_expires_at = lease_expires_at - $2::interval, claimed_at = claimed_at - $2::interval, first_sent_at = first_sent_at - $2::interval, next_try_at = next_try_at - $2::interval
			WHERE approval_id IN (SELECT approval_id FROM approval_request WHERE tenant_id = 'acme' AND agent = 'release-agent' AND run_id = $1)`, run, d)
		b.Queue(`UPDATE approval_decision SET decided_at = decided_at - $2::interval WHERE approval_id IN (SELECT approval_id FROM approval_request WHERE tenant_id = 'acme' AND agent = 'release-agent' AND run_id = $1)`, run, d)
		b.Queue(`UPDATE approval_request SET decide_by = decide_by - $2::interval, expires_at = expires_at - $2::interval, decided_at = decided_at - $2::interval
			WHERE tenant_id = 'acme' AND agent = 'release-agent' AND run_id = $1`, run, d)
		b.Queue(`UPDATE approval_open SET due_at = due_at - $2::interval WHERE tenant_id = 'acme' AND run_id = $1`, run, d)
		b.Queue(`UPDATE blocked_user SET at = at - $1::interval WHERE tenant_id = 'acme'`, d) // votes stay before or after it
		return tx.SendBatch(w.ctx, b).Close()
	}))
}
