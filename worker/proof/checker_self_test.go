package proof

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/bot/slacksim"
)

// The checker sees faults: evidence of a good run, spoilt in one place, and the invariant that it must then name.
func TestCheckerSeesFaults(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.front()
	run := map[string]*call{}
	for class, tool := range classes {
		c := &call{op: "seen-" + class, tool: tool, plan: "ok"}
		w.propose(c)
		_, err := w.approve("U0ALICE", w.posted(c.id))
		w.must(err)
		run[class] = c
	}
	no := &call{op: "seen-rejected", tool: "pay", plan: "ok"}
	w.propose(no)
	_, err := w.reject("U0BOB", w.posted(no.id))
	w.must(err)
	doubtful := &call{op: "seen-doubtful", tool: "send", plan: "after"}
	w.propose(doubtful)
	_, err = w.approve("U0ALICE", w.posted(doubtful.id))
	w.must(err)
	w.work()
	for _, c := range run {
		w.becomes(c.id, approvals.Completed)
	}
	w.becomes(doubtful.id, approvals.Uncertain)
	w.attended()
	w.settled()
	good := w.gather()
	if wrong := good.faults(); len(wrong) != 0 {
		t.Fatalf("a good run is called broken: %q", wrong)
	}
	of := func(e *evidence, op string) *row {
		return &e.rows[slices.IndexFunc(e.rows, func(r row) bool { return r.op() == op })]
	}
	lineOf := func(e *evidence, kind, op string) *line {
		return &e.log[slices.IndexFunc(e.log, func(l line) bool { return l.Kind == kind && l.Op == op })]
	}
	again := func(e *evidence, kind, op string) { e.log = append(e.log, *lineOf(e, kind, op)) }
	const pay, book, send, reject = "seen-idempotent", "seen-queryable", "seen-opaque", "seen-rejected"
	for _, c := range []struct {
		want  string
		spoil func(*evidence)
	}{
		{"two_effects", func(e *evidence) {
			e.violations = append(e.violations, approvals.Violation{Kind: "two_effects", ID: "x"})
		}},
		{"I27 the card of " + pay, func(e *evidence) {
			m := e.messages[of(e, pay).CardTS]
			m.Blocks = []byte(strings.Replace(string(m.Blocks), `Done`, `Dome`, 1))
			e.messages[of(e, pay).CardTS] = m
		}},
		{"I18 what is uncertain", func(e *evidence) { e.queries = []string{"violated: I18 what is uncertain is not sent again: [x]"} }},
		{"I26", func(e *evidence) { e.broken = "seal 3 is missing" }},
		{"I24 an argument", func(e *evidence) { e.said["worker"] += canary }},
		{"I24 the webhook's key", func(e *evidence) { e.said["worker"] += hookSecret }},
		{"I13 " + pay, func(e *evidence) { again(e, "effect", pay) }},
		{"I13 " + book, func(e *evidence) { again(e, "effect", book) }},
		{"I13 " + send, func(e *evidence) { again(e, "request", send); of(e, send).Claims = 2 }},
		{"I2 I15 " + pay, func(e *evidence) { again(e, "request", pay) }},
		{"I2 I15 " + reject, func(e *evidence) { l := *lineOf(e, "request", pay); l.Op = reject; e.log = append(e.log, l) }},
		{"I2 a request for", func(e *evidence) { l := *lineOf(e, "request", pay); l.Op = "nobody's"; e.log = append(e.log, l) }},
		{"I1 " + pay, func(e *evidence) { l := lineOf(e, "request", pay); l.Body = strings.Replace(l.Body, `"ok"`, `"OK"`, 1) }},
		{"I14 " + pay, func(e *evidence) { lineOf(e, "request", pay).Key = "op_another" }},
		{"I15 " + pay, func(e *evidence) { l := lineOf(e, "request", pay); l.At = l.At.Add(-time.Hour) }},
		{"I17 " + pay, func(e *evidence) { of(e, pay).Status = "failed" }},
		{"I17 " + pay, func(e *evidence) { lineOf(e, "effect", pay).Op = "elsewhere" }},
		{"I2 " + pay + " was claimed before", func(e *evidence) { of(e, pay).ApprovedAt = nil }},
		{"I2 " + pay + " was claimed past its deadline", func(e *evidence) { of(e, pay).Overdue = true }},
		{"I9 " + pay, func(e *evidence) { r := of(e, pay); late := r.EndedAt.Add(time.Second); r.LastClaim = &late }},
		{"I16 " + pay, func(e *evidence) { of(e, pay).Epoch = 3 }},
		{"L2 " + reject, func(e *evidence) { of(e, reject).Late = true }},
		{"L3 L4 " + pay, func(e *evidence) { of(e, pay).Slow = true }},
		{"L5 " + pay + " is settled", func(e *evidence) { of(e, pay).ToldAt = nil }},
		{"L5 " + pay + " is settled", func(e *evidence) { lineOf(e, "hook", "run-"+pay).Step = "5xx" }},
		{"L5 " + pay + " was told under another id", func(e *evidence) { lineOf(e, "hook", "run-"+pay).Key = "msg_other" }},
		{"L5 " + pay + " was told before", func(e *evidence) { l := lineOf(e, "hook", "run-"+pay); l.At = l.At.Add(-time.Hour) }},
		{pay + " was told under a wrong signature", func(e *evidence) { l := lineOf(e, "hook", "run-"+pay); l.Body += " " }},
		{pay + " was told 2 times", func(e *evidence) { again(e, "hook", "run-"+pay) }},
		{"I20 " + pay, func(e *evidence) { of(e, pay).Status = "failed" }},
		{"L6 the card of " + pay, func(e *evidence) { of(e, pay).Shown-- }},
		{"L6 the card of " + pay, func(e *evidence) { of(e, pay).Status = "failed" }},
		{"L6 " + pay + " has 2 cards", func(e *evidence) { e.copies[of(e, pay).Card]++ }},
		{"L6 " + pay + " has 0 cards", func(e *evidence) { delete(e.messages, of(e, pay).CardTS); delete(e.copies, of(e, pay).Card) }},
		{"L6 the card of " + pay + " still offers", func(e *evidence) {
			m := e.messages[of(e, pay).CardTS]
			m.Blocks = []byte(strings.Replace(string(m.Blocks), `"hp_details"`, `"hp_approve"`, 1))
			e.messages[of(e, pay).CardTS] = m
		}},
		{"L7 nobody was called", func(e *evidence) { e.threads = map[string]int{} }},
	} {
		e := good
		e.rows, e.log, e.violations = slices.Clone(good.rows), slices.Clone(good.log), slices.Clone(good.violations)
		e.messages, e.copies, e.said = clone(good.messages), clone(good.copies), clone(good.said)
		c.spoil(&e)
		if wrong := e.faults(); !slices.ContainsFunc(wrong, func(s string) bool { return strings.Contains(s, c.want) }) {
			t.Errorf("%q is not seen; seen: %q", c.want, wrong)
		}
	}
	w.reconcile(doubtful)
	w.settled()
	w.check()
}

func clone[V string | int | slacksim.Message](m map[string]V) map[string]V {
	out := make(map[string]V, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}
