package bot

import (
	"errors"
	"testing"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/bot/slacksim"
)

func TestCardThatCannotBeChanged(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, code string
		status     approvals.Status
		cards      int // after the run, the dead one included
	}{
		{"deleted while pending", "message_not_found", approvals.Pending, 2},
		{"deleted and over", "message_not_found", approvals.Expired, 1},
		{"frozen with old buttons", "edit_window_closed", approvals.Expired, 2},
		{"not ours any more", "cant_update_message", approvals.Approved, 2},
		{"the channel is archived and it is over", "is_inactive", approvals.Completed, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			id := w.request()
			s := w.syncer(SyncOptions{})
			must(t, s.Sync(t.Context(), id))
			old := w.one(t)
			w.store.change(id, end(c.status))
			w.Fault("chat.update", slacksim.Error{Code: c.code}, 1)
			must(t, s.Sync(t.Context(), id))
			all := w.cards()
			if len(all) != c.cards {
				t.Fatalf("%d cards, want %d", len(all), c.cards)
			}
			f := w.store.card(id)
			if f.Card.ShownVersion != f.Version || (c.cards == 2) != (f.Card.MessageTS != old.TS) {
				t.Errorf("stored %+v", f.Card)
			}
			must(t, s.Sync(t.Context(), id))
			if len(w.cards()) != c.cards {
				t.Error("every run posts another one")
			}
		})
	}
}

// A crash between the successor's post and its save: the next run finds the successor, not the dead card.
func TestSuccessorIsFoundAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.request()
	s := w.syncer(SyncOptions{})
	must(t, s.Sync(t.Context(), id))
	w.store.change(id, approve("U0ALICE"))
	w.Fault("chat.update", slacksim.Error{Code: "cant_update_message"}, 2)
	w.store.broken = true
	if err := s.Sync(t.Context(), id); !errors.Is(err, approvals.ErrUnavailable) {
		t.Fatalf("%v", err)
	}
	must(t, s.Sync(t.Context(), id))
	all := w.cards()
	if len(all) != 2 || w.store.card(id).Card.MessageTS != all[1].TS {
		t.Fatalf("%d cards, stored %s", len(all), w.store.card(id).Card.MessageTS)
	}
}
