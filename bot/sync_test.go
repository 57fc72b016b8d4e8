package bot

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/bot/slacksim"
	"github.com/holdpoint/holdpoint/templates"
)

func hasButton(m slacksim.Message, action string) bool { return slices.Contains(m.Actions(), action) }

// L1, L6: a card is posted once, follows its row, and loses its buttons with the decision.
func TestCardFollowsItsRow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.request()
	s := w.syncer(SyncOptions{})
	must(t, s.Sync(t.Context(), id))
	m := w.one(t)
	if !hasButton(m, templates.ActionApprove) || !strings.Contains(m.PlainText(), "Waiting for approval") {
		t.Fatalf("the card of a pending request: %s", m.PlainText())
	}
	if !strings.Contains(m.PlainText(), id.String()) {
		t.Error("the approval's id is not on the card")
	}
	if p := m.Metadata.EventPayload; m.Metadata.EventType != "holdpoint_card" || p["card"] != w.store.card(id).Card.ID.String() || p["mac"] == "" {
		t.Errorf("metadata %+v", m.Metadata)
	}
	must(t, s.Sync(t.Context(), id))
	if n := w.Calls("chat.update") + w.Calls("chat.postMessage"); n != 1 {
		t.Errorf("a second run made %d calls", n-1)
	}
	w.store.change(id, approve("U0ALICE"))
	must(t, s.Sync(t.Context(), id))
	m = w.one(t)
	if hasButton(m, templates.ActionApprove) || hasButton(m, templates.ActionReject) || !strings.Contains(m.PlainText(), "Approved") {
		t.Fatalf("the card of an approved request: %v %s", m.Actions(), m.PlainText())
	}
	if f := w.store.card(id); f.Card.ShownVersion != f.Version {
		t.Errorf("shown %d of %d", f.Card.ShownVersion, f.Version)
	}
}

// The crash matrix: Slack has the post, the answer or the save is lost; there is still one card.
func TestLostPostIsFoundAgain(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*world){
		"answer": func(w *world) { w.Fault("chat.postMessage", slacksim.LoseAnswer{}, 1) },
		"save":   func(w *world) { w.store.broken = true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			id := w.request()
			s := w.syncer(SyncOptions{})
			lose(w)
			if err := s.Sync(t.Context(), id); err == nil {
				t.Fatal("the loss went unnoticed")
			}
			if w.store.card(id).Card.MessageTS != "" {
				t.Fatal("a place was saved that nobody knows")
			}
			// Another app quotes our metadata; without our MAC and our bot it is not ours.
			w.store.change(id, approve("U0ALICE")) // decided meanwhile: the found card is repainted
			must(t, s.Sync(t.Context(), id))
			m := w.one(t)
			if w.Calls("chat.postMessage") != 1 || hasButton(m, templates.ActionApprove) {
				t.Fatalf("%d posts, buttons %v", w.Calls("chat.postMessage"), m.Actions())
			}
			if w.store.card(id).Card.MessageTS != m.TS {
				t.Error("the card's place was not saved")
			}
		})
	}
}

func TestPostThatNeverArrivedIsMadeAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.request()
	s := w.syncer(SyncOptions{})
	w.Fault("chat.postMessage", slacksim.Drop{}, 1)
	err := s.Sync(t.Context(), id)
	if ClassOf(err) != ClassAmbiguous || w.Calls("chat.postMessage") != 1 {
		t.Fatalf("%v after %d posts: an ambiguous post must not be repeated blindly", err, w.Calls("chat.postMessage"))
	}
	must(t, s.Sync(t.Context(), id))
	w.one(t)
	if w.Calls("conversations.history") == 0 {
		t.Error("posted again without looking")
	}
}

// L6: while a slow update is under way the row moves on; whoever painted last paints the truth, and no button comes back.
func TestLateUpdateNeverRestoresButtons(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.request()
	s := w.syncer(SyncOptions{})
	must(t, s.Sync(t.Context(), id))
	w.store.change(id, func(f *approvals.CardFacts) { f.Quorum = 2 }) // still pending: a repaint with buttons
	w.store.mu.Lock()
	w.store.after = func() { w.store.change(id, approve("U0ALICE")) } // decided after the row was read
	w.store.mu.Unlock()
	must(t, s.Sync(t.Context(), id))
	if m := w.one(t); hasButton(m, templates.ActionApprove) || w.store.card(id).Card.ShownVersion != 3 {
		t.Fatalf("buttons %v, shown %d", m.Actions(), w.store.card(id).Card.ShownVersion)
	}
}

// A worker without the lock of others: its picture lands after theirs although the stored version is already newer.
func TestOwnStalePictureIsPaintedOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.request()
	unlocked := func(context.Context, approvals.ID) (func(), error) { return func() {}, nil }
	slow, fast := w.syncer(SyncOptions{Lock: unlocked}), w.syncer(SyncOptions{Lock: unlocked})
	must(t, slow.Sync(t.Context(), id))
	w.store.change(id, func(f *approvals.CardFacts) { f.Quorum = 2 })
	w.store.mu.Lock()
	w.store.after = func() { // slow has read the row; all of this happens before it paints
		w.store.change(id, approve("U0ALICE"))
		if err := fast.Sync(context.Background(), id); err != nil {
			t.Error(err)
		}
	}
	w.store.mu.Unlock()
	must(t, slow.Sync(t.Context(), id))
	if m := w.one(t); hasButton(m, templates.ActionApprove) {
		t.Fatal("a late update brought the buttons back")
	}
}

func TestConcurrentRunsMakeOneCard(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.request()
	s := w.syncer(SyncOptions{})
	var wg sync.WaitGroup
	for range 12 {
		wg.Go(func() {
			if err := s.Sync(t.Context(), id); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	w.one(t)
}

// A refused card is shown plain and surfaced, never swallowed, and never decides from the channel.
func TestRefusedBlocksBecomeAPlainCard(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"invalid_blocks", "msg_blocks_too_long"} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			id := w.request()
			var log bytes.Buffer
			var counted []string
			s := w.syncer(SyncOptions{Log: slog.New(slog.NewJSONHandler(&log, nil)), Fallback: func(c string) { counted = append(counted, c) }})
			w.Fault("chat.postMessage", slacksim.Error{Code: code}, 1)
			must(t, s.Sync(t.Context(), id))
			m := w.one(t)
			if len(m.Actions()) != 0 || !strings.Contains(m.Text, "/approvals show "+id.String()) {
				t.Fatalf("the plain card: %s", m.Text)
			}
			if !slices.Equal(counted, []string{code}) || !strings.Contains(w.store.fail, code) || !strings.Contains(log.String(), code) {
				t.Errorf("not surfaced: %v %q %s", counted, w.store.fail, log.String())
			}
			if strings.Contains(log.String(), "2026.07.24") {
				t.Error("an argument is in the log (I24)")
			}
			if !w.store.card(id).Card.Plain {
				t.Error("not stored as plain")
			}
			w.store.change(id, approve("U0ALICE"))
			must(t, s.Sync(t.Context(), id))
			if m := w.one(t); !strings.Contains(m.Text, "Approved") {
				t.Errorf("the plain card does not follow: %s", m.Text)
			}
		})
	}
}

func TestUpdateThatIsRefusedTakesTheButtonsAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.request()
	s := w.syncer(SyncOptions{})
	must(t, s.Sync(t.Context(), id))
	w.store.change(id, approve("U0ALICE"))
	w.Fault("chat.update", slacksim.Error{Code: "msg_blocks_too_long"}, 1)
	must(t, s.Sync(t.Context(), id))
	if m := w.one(t); len(m.Actions()) != 0 || !w.store.card(id).Card.Plain {
		t.Fatalf("buttons %v", m.Actions())
	}
}

// L7: an uncertain operation calls the admins in the thread, once for each attempt.
func TestUncertainCallsTheAdminsOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.request()
	s := w.syncer(SyncOptions{})
	w.store.change(id, func(f *approvals.CardFacts) {
		f.Status, f.Ledger = approvals.Uncertain, &approvals.LedgerView{State: approvals.Unknown, Epoch: 1, Attempts: 1}
	})
	w.Fault("chat.postMessage", slacksim.RateLimited{RetryAfter: 1e9}, 1)
	for range 3 {
		must(t, s.Sync(t.Context(), id))
	}
	thread := func() (out []slacksim.Message) {
		for _, m := range w.Messages(channel) {
			if m.ThreadTS != "" {
				out = append(out, m)
			}
		}
		return out
	}
	calls := thread()
	if len(calls) != 1 || !strings.Contains(calls[0].PlainText(), "@U0ROOT") || !strings.Contains(calls[0].PlainText(), "@S0ADMINS") {
		t.Fatalf("%d calls: %+v", len(calls), calls)
	}
	if m := w.one(t); !hasButton(m, templates.ActionReconcileYes) || !hasButton(m, templates.ActionReconcileNo) {
		t.Errorf("buttons %v", m.Actions())
	}
	w.store.change(id, func(f *approvals.CardFacts) {
		f.Ledger = &approvals.LedgerView{State: approvals.Unknown, Epoch: 2, Attempts: 2}
	})
	must(t, s.Sync(t.Context(), id))
	if len(thread()) != 2 {
		t.Error("a second attempt that ended unknown calls nobody")
	}
	w.store.change(id, end(approvals.Completed))
	must(t, s.Sync(t.Context(), id))
	if len(thread()) != 2 || hasButton(w.one(t), templates.ActionReconcileYes) {
		t.Error("a settled operation still calls")
	}
}

func TestWhoGetsACard(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(*approvals.CardFacts)
		cards  int
	}{
		{"a rule's own approval", func(f *approvals.CardFacts) { f.Scope.Auto, f.Status = true, approvals.Approved }, 0},
		{"a rule's rejection", func(f *approvals.CardFacts) { f.Scope.Auto, f.Status = true, approvals.Rejected }, 0},
		{"a rule's approval, done", func(f *approvals.CardFacts) { f.Scope.Auto, f.Status = true, approvals.Completed }, 0},
		{"a rule's approval, held", func(f *approvals.CardFacts) {
			f.Scope.Auto, f.Status, f.Held = true, approvals.Approved, approvals.ReasonPaused
		}, 1},
		{"a rule's approval, uncertain", func(f *approvals.CardFacts) { f.Scope.Auto, f.Status = true, approvals.Uncertain }, 1},
		{"over before it was shown", end(approvals.Revoked), 0},
		{"a person's, waiting", func(*approvals.CardFacts) {}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			id := w.request()
			w.store.change(id, c.change)
			must(t, w.syncer(SyncOptions{}).Sync(t.Context(), id))
			if n := len(w.cards()); n != c.cards {
				t.Errorf("%d cards, want %d", n, c.cards)
			}
		})
	}
}

func TestUnknownApprovalNeedsNoCard(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	must(t, w.syncer(SyncOptions{}).Sync(t.Context(), approvals.NewID()))
}

func TestRepaintHealsAZombie(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.request()
	s := w.syncer(SyncOptions{})
	must(t, s.Sync(t.Context(), id))
	w.store.change(id, approve("U0ALICE"))
	must(t, w.store.SaveShown(t.Context(), id, 1, 2)) // the row believes that it is shown
	must(t, s.Sync(t.Context(), id))
	if !hasButton(w.one(t), templates.ActionApprove) {
		t.Fatal("the test's premise is wrong")
	}
	must(t, s.Repaint(t.Context(), id))
	if hasButton(w.one(t), templates.ActionApprove) {
		t.Error("the zombie lives")
	}
}

// A repaint that is asked for while the card is being painted is done by the same run.
type askedMeanwhile struct {
	*store
	ask func()
}

func (s askedMeanwhile) SaveShown(ctx context.Context, id approvals.ID, read, shown int64) error {
	s.ask()
	return s.store.SaveShown(ctx, id, read, shown)
}

func TestRepaintAskedForDuringAPaint(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.request()
	must(t, w.syncer(SyncOptions{}).Sync(t.Context(), id))
	w.store.change(id, approve("U0ALICE"))
	var once sync.Once
	s := NewSyncer(askedMeanwhile{w.store, func() {
		once.Do(func() {
			w.store.mu.Lock()
			defer w.store.mu.Unlock()
			w.store.rows[id].Card.ShownVersion = -1
		})
	}}, w.client, SyncOptions{})
	must(t, s.Sync(t.Context(), id))
	if n := w.Calls("chat.update"); n != 2 {
		t.Errorf("%d paints", n)
	}
	if f := w.store.card(id); f.Card.ShownVersion != f.Version {
		t.Errorf("shown %d of %d", f.Card.ShownVersion, f.Version)
	}
}

func TestChannelThatTakesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.request()
	w.AddChannel(slacksim.Channel{ID: channel, Name: "approvals", Archived: true})
	err := w.syncer(SyncOptions{}).Sync(t.Context(), id)
	if ClassOf(err) != ClassChannel || w.seen.of("chat.postMessage", ClassChannel) != 1 {
		t.Fatalf("%v", err)
	}
}

// Runs for one card wait for each other; runs for another don't, and nothing is kept of a lock that nobody holds.
func TestRunsForOneCardAreSerial(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id, other := w.request(), w.request()
	s := w.syncer(SyncOptions{})
	unlock, err := s.lock(t.Context(), id)
	must(t, err)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Sync(over, id); !errors.Is(err, context.Canceled) || w.store.card(id).Card.PostStarted != nil {
		t.Errorf("%v: it ran beside another", err)
	}
	must(t, s.Sync(t.Context(), other))
	waiting := make(chan error, 1)
	go func() { waiting <- s.Sync(t.Context(), id) }()
	unlock()
	must(t, <-waiting)
	l := newKeyLock()
	first, err := l.lock(t.Context(), id)
	must(t, err)
	if _, err := l.lock(over, id); err == nil {
		t.Error("two hold it")
	}
	first()
	if len(l.held) != 0 {
		t.Errorf("%d kept", len(l.held))
	}
}
