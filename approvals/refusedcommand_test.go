package approvals

import (
	"sync"
	"testing"
)

// A refused command is counted each time and audited once a minute for each person and verb, whichever process refuses it.
func TestRefusedCommandsAreAudited(t *testing.T) {
	t.Parallel()
	c := newCounted()
	w := newWorldWith(t, Options{Metrics: c}, nil)
	other := New(Options{Clicks: w.db, Intake: w.db, Work: w.db, Metrics: c}) // a second process on the same database
	refuse := func(s *Service, user, verb string) {
		t.Helper()
		w.must(s.RefusedCommand(w.ctx, RefusedCommand{Tenant: "acme", By: SlackActor(user), Surface: SurfaceCommand, Verb: verb, Why: RefusedNotAdmin}))
	}
	rows := func() int {
		return one[int](w, `SELECT count(*) FROM audit_event WHERE kind = 'command.refused' AND tenant_id = 'acme'`)
	}
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() { refuse([]*Service{w.s, other}[i%2], bob, "pause") })
	}
	wg.Wait()
	if n := rows(); n != 1 {
		t.Fatalf("a flood left %d rows", n)
	}
	refuse(w.s, bob, "revoke")
	refuse(w.s, carol, "pause")
	if n := rows(); n != 3 {
		t.Errorf("%d rows for three", n)
	}
	if n := one[int](w, `SELECT count(*) FROM audit_event e JOIN audit_unsealed u USING (event_id) WHERE e.kind = 'command.refused' AND e.actor = 'slack:U0BOB'
		AND e.surface = 'command' AND e.detail ->> 'verb' = 'pause' AND e.detail ->> 'why' = 'not_admin'`); n != 1 {
		t.Errorf("%d rows that say who, what and why", n)
	}
	// A minute later it is news again; a process that remembers nothing asks the database.
	third := New(Options{Clicks: w.db, Intake: w.db, Work: w.db, Metrics: c})
	refuse(third, bob, "pause")
	if n := rows(); n != 3 {
		t.Fatalf("within the minute: %d rows", n)
	}
	w.pass(refusedOnce)
	fourth := New(Options{Clicks: w.db, Intake: w.db, Work: w.db, Metrics: c})
	refuse(fourth, bob, "pause")
	if n := rows(); n != 4 {
		t.Errorf("a minute later: %d rows", n)
	}
	w.must(w.s.RefusedCommand(w.ctx, RefusedCommand{By: SlackActor(bob), Verb: "list", Why: RefusedStranger}))
	if a, s := c.of("refused not_admin"), c.of("refused stranger"); a != 44 || s != 1 {
		t.Errorf("counted %d and %d", a, s)
	}
	if _, err := w.s.SealAudit(w.ctx, 1000); err != nil {
		t.Fatal(err)
	}
}
