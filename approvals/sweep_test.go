package approvals

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// L2, L3, L4: what is due is found again by Postgres alone, however often the doorbell was lost.
func TestSweepFindsWhatIsDue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	pending, lost := w.propose("deploy_release", production), w.propose("deploy_release", production)
	w.decide(lost.ApprovalID, alice, Approve)
	w.drain() // dispatched, and forgotten by Redis
	if rep := w.sweep(); rep.Rung != 0 || rep.Expired != 0 {
		t.Fatalf("swept too early: %+v", rep)
	}
	w.pass(ringAgain)
	if rep := w.sweep(); rep.Rung != 1 || w.outbox(OutboxExecute, uuid.UUID(lost.ApprovalID)) != 1 {
		t.Fatalf("L3: swept %+v", rep)
	}
	if rep := w.sweep(); rep.Rung != 0 {
		t.Fatal("rung twice at once")
	}
	w.pass(4 * time.Hour)
	if rep := w.sweep(); rep.Expired != 2 {
		t.Fatalf("L2: swept %+v", rep)
	}
	w.want(pending.ApprovalID, Expired, ReasonDecideExpired)
	w.want(lost.ApprovalID, Expired, ReasonExecuteExpired)
	// A holder that died.
	w.people()
	id := w.approved("deploy_release")
	w.claim(id)
	w.drain()
	w.pass(time.Minute) // 30 s timeout and the margin
	if rep := w.sweep(); rep.Rung != 1 {
		t.Fatalf("L4: swept %+v", rep)
	}
}

// One approval that cannot be swept does not keep the others waiting, also when it is first in a short list.
func TestSweepGoesOnAfterAFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bad, good := w.propose("deploy_release", production), w.propose("deploy_release", production)
	w.overdue(good.ApprovalID)
	w.overdue(bad.ApprovalID)
	w.exec(`UPDATE approval_open SET due_at = due_at - interval '1 hour' WHERE approval_id = $1`, bad.ApprovalID)
	w.exec(`UPDATE approval_request SET operator_scope = '"broken"' WHERE approval_id = $1`, bad.ApprovalID)
	if _, err := w.s.Sweep(w.ctx, 1); !isErr(err, ErrCorrupt) {
		t.Fatalf("swept a broken row: %v", err)
	}
	if rep, err := w.s.Sweep(w.ctx, 1); err != nil || rep.Expired != 1 {
		t.Fatalf("the next sweep: %+v %v", rep, err)
	}
	w.want(good.ApprovalID, Expired, ReasonDecideExpired)
}

// L6: a card that does not show its row is rung for, while it is open and after its end.
func TestSweepFindsCards(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	v, quiet := w.propose("deploy_release", production), w.propose("deploy_release", staging)
	w.drain()
	if rep := w.sweep(); rep.Cards != 0 {
		t.Fatalf("swept too early: %+v", rep)
	}
	w.pass(2 * ringAgain)
	if rep := w.sweep(); rep.Cards != 1 || w.outbox(OutboxCard, uuid.UUID(v.ApprovalID)) != 1 || w.outbox(OutboxCard, uuid.UUID(quiet.ApprovalID)) != 0 {
		t.Fatalf("a card that was never posted: %+v", rep)
	}
	w.drain()
	w.post(v.ApprovalID)
	if rep := w.sweep(); rep.Cards != 0 {
		t.Fatalf("a card that shows its row: %+v", rep)
	}
	w.decide(v.ApprovalID, alice, Reject)
	w.drain() // the last repaint is dispatched, and forgotten
	w.pass(2 * ringAgain)
	if rep := w.sweep(); rep.Cards != 1 {
		t.Fatalf("an ended card: %+v", rep)
	}
	w.drain()
	w.shown(v.ApprovalID)
	w.must(w.s.SaveShown(w.ctx, v.ApprovalID, w.row(v.ApprovalID).Version, 1)) // a late update changes nothing
	w.pass(ringAgain)
	if rep := w.sweep(); rep.Cards != 0 {
		t.Fatalf("a card that shows the end: %+v", rep)
	}
}

// Two relays at once share the outbox: every row is dispatched, by one of them, and what is not given back stays.
func TestRelaysShareTheOutbox(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range 40 {
		w.propose("ask_user", question)
	}
	holds, second := make(chan []OutboxItem), make(chan struct{})
	var first []OutboxItem
	var wg sync.WaitGroup
	wg.Go(func() {
		n, more, err := w.s.Relay(w.ctx, 15, func(_ context.Context, items []OutboxItem) []uuid.UUID {
			holds <- items
			<-second // the other relay works while this one's rows are locked
			return []uuid.UUID{items[0].ID, items[1].ID}
		})
		if n != 2 || !more || err != nil {
			t.Errorf("relayed %d, more %v, %v", n, more, err)
		}
	})
	first = <-holds
	var other []OutboxItem
	_, more, err := w.s.Relay(w.ctx, 100, func(_ context.Context, items []OutboxItem) (ids []uuid.UUID) {
		other = items
		for _, i := range items {
			ids = append(ids, i.ID)
		}
		return ids
	})
	w.must(err)
	close(second)
	wg.Wait()
	if len(first) != 15 || len(other) != 25 || more {
		t.Fatalf("%d and %d rows, more %v", len(first), len(other), more)
	}
	for _, i := range other {
		if slices.Contains(first, i) {
			t.Fatal("both relays had a row")
		}
	}
	if rest := w.drain(); len(rest) != 13 {
		t.Fatalf("%d rows stayed, want the 13 that were not given back", len(rest))
	}
	if rest := w.drain(); len(rest) != 0 {
		t.Fatal("the outbox is not empty")
	}
}

// A relay that dies dispatched nothing for good: the rows stay.
func TestRelayThatDies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.propose("ask_user", question)
	ctx, cancel := context.WithCancel(w.ctx)
	_, _, err := w.s.Relay(ctx, 10, func(_ context.Context, items []OutboxItem) []uuid.UUID {
		cancel()
		return []uuid.UUID{items[0].ID}
	})
	if !isErr(err, ErrUnavailable) {
		t.Fatalf("relayed under a cancelled context: %v", err)
	}
	if rest := w.drain(); len(rest) != 1 {
		t.Fatalf("%d rows", len(rest))
	}
}

// What is promised is told to the process right after the commit, with the ids of the rows.
func TestWoken(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var told []OutboxItem
	w := newWorldWith(t, Options{Woke: func(items []OutboxItem) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, items...)
	}}, nil)
	v := w.propose("deploy_release", production)
	w.decide(v.ApprovalID, alice, Approve)
	w.done(v.ApprovalID)
	rows, err := w.db.Query(w.ctx, `SELECT outbox_id, kind, subject_id FROM outbox ORDER BY outbox_id`)
	w.must(err)
	stored, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (i OutboxItem, err error) { return i, row.Scan(&i.ID, &i.Kind, &i.Subject) })
	w.must(err)
	slices.SortFunc(told, func(a, b OutboxItem) int { return slices.Compare(a.ID[:], b.ID[:]) })
	if !slices.Equal(told, stored) || len(told) != 6 {
		t.Fatalf("woken for\n%v\nstored\n%v", told, stored)
	}
	w.must(w.s.Dispatched(w.ctx, []uuid.UUID{told[0].ID}))
	if rest := w.drain(); len(rest) != 5 {
		t.Fatalf("%d rows stay", len(rest))
	}
	if again, err := w.s.Seen(w.ctx, []byte("signature")); again || err != nil {
		t.Fatalf("seen at first: %v %v", again, err)
	}
	if again, err := w.s.Seen(w.ctx, []byte("signature")); !again || err != nil {
		t.Fatalf("a replay: %v %v", again, err)
	}
	w.must(w.s.Ping(w.ctx))
}

// L1, L6: a sweep looks at a bounded part of what is open, goes round, and so comes to every card; what changed lately it finds at once.
func TestSweepGoesRound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.propose("deploy_release", production)
	w.drain()
	const parts = 3
	w.exec(`CREATE TABLE more AS SELECT gen_random_uuid() AS id FROM generate_series(1, $1)`, parts*openPart-openPart/2)
	w.exec(`INSERT INTO approval_request SELECT (x).* FROM (SELECT jsonb_populate_record(r, jsonb_build_object('approval_id', id, 'lineage_id', id, 'card_id', id)) AS x FROM approval_request r, more OFFSET 0) y`)
	w.exec(`INSERT INTO approval_open SELECT m.id, o.tenant_id, o.run_id, o.wait, o.due_at FROM approval_open o, more m`)
	w.exec(`INSERT INTO card (card_id, tenant_id, approval_id, pause_id, channel, message_ts, mac_key, shown_version) SELECT m.id, c.tenant_id, m.id, c.pause_id, c.channel, '1', c.mac_key, 1 FROM card c, more m`)
	w.exec(`UPDATE card SET message_ts = '1', shown_version = 1`)
	w.pass(2 * time.Hour) // no event is recent
	last := one[ID](w, `SELECT approval_id FROM approval_open ORDER BY approval_id DESC LIMIT 1`)
	w.exec(`UPDATE card SET shown_version = 0 WHERE approval_id = $1`, last)
	for round := range 2 {
		for part := range parts {
			rep := w.sweep()
			if want := part == parts-1; (rep.Cards == 1) != want || want && w.outbox(OutboxCard, uuid.UUID(last)) != 1 {
				t.Fatalf("round %d, part %d: %+v", round, part, rep)
			}
		}
		w.drain()
	}
	// One of the first part, just looked past: its change is recent.
	w.sweep()
	w.decide(v.ApprovalID, alice, Edit, with(editedProduction))
	w.drain()
	w.pass(2 * ringAgain)
	w.exec(`UPDATE card SET shown_version = 1 WHERE approval_id = $1`, last)
	if rep := w.sweep(); rep.Cards != 2 { // the edited one, and its child
		t.Fatalf("what changed lately: %+v", rep)
	}
}
