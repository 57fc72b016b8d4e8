package bot

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/templates"
)

// CardStore is what the card job needs of the core.
type CardStore interface {
	CardFacts(ctx context.Context, id approvals.ID) (approvals.CardFacts, error)
	// StartPost records that a post may be on its way; it keeps the first time.
	StartPost(ctx context.Context, id approvals.ID) error
	// SavePost stores where the card is and which version it shows (0: unknown). failure is why only a plain card could be posted.
	SavePost(ctx context.Context, id approvals.ID, channel, ts string, shown int64, plain bool, failure string) error
	// SaveShown stores which version the card shows, if the stored one is still the one read; a lower one than stored changes nothing.
	SaveShown(ctx context.Context, id approvals.ID, read, shown int64) error
}

// Locker makes runs for one card serial. The default is in this process; give one over all processes (an advisory lock)
// where several workers run, so that a slow worker's picture can't land after a newer one.
type Locker func(ctx context.Context, id approvals.ID) (unlock func(), err error)

// SyncOptions configure a Syncer. The zero value works.
type SyncOptions struct {
	Lock Locker
	Log  *slog.Logger
	// Fallback counts cards that had to be posted plain, by Slack's code; an operator is to be told.
	Fallback func(code string)
}

// Syncer makes cards match their rows.
type Syncer struct {
	store    CardStore
	client   *Client
	lock     Locker
	log      *slog.Logger
	fallback func(string)
}

// NewSyncer makes the card job.
func NewSyncer(store CardStore, client *Client, o SyncOptions) *Syncer {
	s := &Syncer{store: store, client: client, lock: o.Lock, log: o.Log, fallback: o.Fallback}
	if s.lock == nil {
		s.lock = newKeyLock().lock
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.fallback == nil {
		s.fallback = func(string) {}
	}
	return s
}

// ErrMoving says that the row changed faster than its card could follow; the job is to be run again.
var ErrMoving = errors.New("the row keeps changing: run the card job again")

// rounds bounds one run; a row moves a handful of times in its life.
const rounds = 6

// Sync makes the card of an approval match its row. It is safe to run at any time, any number of times, from any process.
// An error means that the card may lag; run it again. ClassRateLimited errors say when.
func (s *Syncer) Sync(ctx context.Context, id approvals.ID) error { return s.run(ctx, id, false, "") }

// Repaint is Sync, but paints even when the card should already be right: somebody pressed a button that ought to be gone.
func (s *Syncer) Repaint(ctx context.Context, id approvals.ID) error {
	return s.run(ctx, id, true, "")
}

// SyncVia is Sync, but makes its first change through the response_url of a click, which costs no rate limit; whatever
// goes wrong with that falls back to chat.update.
func (s *Syncer) SyncVia(ctx context.Context, id approvals.ID, responseURL string) error {
	return s.run(ctx, id, false, responseURL)
}

func (s *Syncer) run(ctx context.Context, id approvals.ID, force bool, via string) error {
	unlock, err := s.lock(ctx, id)
	if err != nil {
		return fmt.Errorf("lock the card of %s: %w", id, err)
	}
	defer unlock()
	painted := int64(0) // what this run put into Slack last
	for range rounds {
		f, err := s.store.CardFacts(ctx, id)
		if errors.Is(err, approvals.ErrNotFound) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the card of %s: %w", id, err)
		}
		// A picture that this run painted and that is not the row's any more is painted over, whatever shown_version says:
		// without a lock over all processes, ours may have landed after a newer one.
		stale := f.Card.ShownVersion < f.Version || (painted != 0 && painted != f.Version)
		switch {
		case f.Card.MessageTS == "":
			if !wanted(f) {
				return nil
			}
			var none bool
			if painted, none, err = s.first(ctx, f); none {
				return err
			}
		case stale || force:
			painted, err = s.paint(ctx, f, via)
			via, force = "", false
		default:
			if err = s.attend(ctx, f); ClassOf(err) != ClassCard {
				return err
			}
			painted, err = s.replace(ctx, f, err) // there is no message to reply to
		}
		if err != nil {
			return err
		}
	}
	return ErrMoving
}

// wanted says whether a row without a message is to get one. What a rule decides by itself stays silent until it is held or
// uncertain. What ended before it could be shown asks nobody for anything; but a post of it may have landed, so it is looked for.
func wanted(f approvals.CardFacts) bool {
	switch {
	case f.Status.Terminal():
		return f.Card.PostStarted != nil
	case f.Scope.Auto:
		return f.Held != "" || f.Status == approvals.Uncertain || f.Card.PostStarted != nil
	}
	return true
}

// first puts the card into Slack and returns the version it shows, 0 when that is unknown; none says that there is to be no
// card now.
//
// A crash after StartPost and before SavePost is the crash matrix's row "Slack post → message ts saved": the next run finds
// PostStarted set and looks the card up by its metadata before it posts again.
func (s *Syncer) first(ctx context.Context, f approvals.CardFacts) (shown int64, none bool, err error) {
	if f.Card.PostStarted == nil {
		if err := s.store.StartPost(ctx, f.ApprovalID); err != nil {
			return 0, true, fmt.Errorf("start the card of %s: %w", f.ApprovalID, err)
		}
	} else {
		ts, ok, err := s.client.FindMessage(ctx, Search{Channel: f.Card.Channel, Since: f.Card.PostStarted.Add(-clockSkew), Mark: cardMark(f)})
		if err != nil {
			return 0, true, fmt.Errorf("look for the card of %s: %w", f.ApprovalID, err)
		}
		if ok {
			return 0, false, s.save(ctx, f, f.Card.Channel, ts, 0, f.Card.Plain, "")
		}
		if f.Status.Terminal() {
			return 0, true, nil
		}
	}
	shown, err = s.post(ctx, f)
	return shown, false, err
}

// clockSkew is how far the database's clock may be ahead of Slack's.
const clockSkew = 2 * time.Minute

// post sends a new message, a plain one when Slack refuses the blocks, and saves where it is.
func (s *Syncer) post(ctx context.Context, f approvals.CardFacts) (int64, error) {
	m, failure := s.render(f)
	channel, ts, err := s.client.Post(ctx, f.Card.Channel, "", m, cardMark(f))
	if ClassOf(err) == ClassContent && !m.Plain {
		failure = s.refused(f, err)
		m = templates.Fallback(CardOf(f))
		channel, ts, err = s.client.Post(ctx, f.Card.Channel, "", m, cardMark(f))
	}
	if err != nil {
		return 0, fmt.Errorf("post the card of %s: %w", f.ApprovalID, err)
	}
	s.log.Info("a card was posted", f.LogIDs(), "status", string(f.Status), "version", f.Version)
	return f.Version, s.save(ctx, f, channel, ts, f.Version, m.Plain, failure)
}

func (s *Syncer) save(ctx context.Context, f approvals.CardFacts, channel, ts string, shown int64, plain bool, failure string) error {
	// The post happened; the caller's end must not lose where.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := s.store.SavePost(ctx, f.ApprovalID, channel, ts, shown, plain, failure); err != nil {
		return fmt.Errorf("save the card of %s: %w", f.ApprovalID, err)
	}
	return nil
}

// render makes the message, plain where it is known or found that Slack won't take the blocks.
func (s *Syncer) render(f approvals.CardFacts) (m templates.Message, failure string) {
	c := CardOf(f)
	if f.Card.Plain {
		return templates.Fallback(c), ""
	}
	m = templates.Render(c)
	if err := templates.Check(m.Blocks); err != nil {
		return templates.Fallback(c), s.refused(f, err)
	}
	return m, ""
}

// refused surfaces that a full card can't be shown: in the log, in the metric and, by what it returns, in the row.
func (s *Syncer) refused(f approvals.CardFacts, err error) string {
	code, why := "check", "the blocks are beyond Slack's limits"
	var e *APIError
	if errors.As(err, &e) {
		code, why = e.Code, e.Error()
	}
	s.fallback(code)
	s.log.Warn("a plain card is shown instead of the full one", f.LogIDs(), "error", why)
	return why
}

// paint changes the message to show the row, and returns the version that it shows now.
func (s *Syncer) paint(ctx context.Context, f approvals.CardFacts, via string) (int64, error) {
	m, failure := s.render(f)
	var err error
	if via == "" || m.Plain || s.client.Respond(ctx, via, m, true) != nil {
		err = s.client.Update(ctx, f.Card.Channel, f.Card.MessageTS, m)
	}
	if ClassOf(err) == ClassContent && !m.Plain {
		failure = s.refused(f, err)
		m = templates.Fallback(CardOf(f))
		err = s.client.Update(ctx, f.Card.Channel, f.Card.MessageTS, m)
	}
	switch {
	case ClassOf(err) == ClassCard:
		return s.replace(ctx, f, err)
	case err != nil:
		return 0, fmt.Errorf("update the card of %s: %w", f.ApprovalID, err)
	}
	s.log.Info("a card was updated", f.LogIDs(), "status", string(f.Status), "version", f.Version)
	switch {
	case m.Plain && !f.Card.Plain:
		return f.Version, s.save(ctx, f, f.Card.Channel, f.Card.MessageTS, f.Version, true, failure)
	}
	return f.Version, s.shown(ctx, f)
}

func (s *Syncer) shown(ctx context.Context, f approvals.CardFacts) error {
	if err := s.store.SaveShown(ctx, f.ApprovalID, f.Card.ShownVersion, f.Version); err != nil {
		return fmt.Errorf("save the card of %s: %w", f.ApprovalID, err)
	}
	return nil
}

// replace deals with a message that can never be changed again. A deleted one is missed only while a person has something
// to do with it; one that still stands there with old buttons gets a successor that tells the truth. The successor is looked
// for first: an earlier run may have posted it and died.
func (s *Syncer) replace(ctx context.Context, f approvals.CardFacts, cause error) (int64, error) {
	var e *APIError
	gone := errors.As(cause, &e) && (e.Code == "message_not_found" || e.Code == "is_inactive")
	if gone && f.Status.Terminal() {
		return f.Version, s.shown(ctx, f)
	}
	s.log.Warn("a card can't be updated and is posted anew", f.LogIDs(), "error", cause.Error())
	ts, ok, err := s.client.FindMessage(ctx, Search{Channel: f.Card.Channel, After: f.Card.MessageTS, Mark: cardMark(f)})
	if err != nil {
		return 0, fmt.Errorf("look for the card of %s: %w", f.ApprovalID, err)
	}
	if ok {
		return 0, s.save(ctx, f, f.Card.Channel, ts, 0, f.Card.Plain, "")
	}
	return s.post(ctx, f)
}

// attend calls the admins to an uncertain operation, once for each attempt (L7): updating a card notifies nobody. Whether it
// was done is read from the thread, so that a crash in between repeats nothing.
func (s *Syncer) attend(ctx context.Context, f approvals.CardFacts) error {
	if f.Status != approvals.Uncertain || f.Card.MessageTS == "" {
		return nil
	}
	mark := uncertainMark(f)
	_, ok, err := s.client.FindMessage(ctx, Search{Channel: f.Card.Channel, Thread: f.Card.MessageTS, After: f.Card.MessageTS, Mark: mark})
	if err == nil && !ok {
		_, _, err = s.client.Post(ctx, f.Card.Channel, f.Card.MessageTS, templates.UncertainThread(CardOf(f)), mark)
	}
	if err != nil {
		return fmt.Errorf("call the admins to %s: %w", f.ApprovalID, err)
	}
	return nil
}

// cardMark is the metadata by which a card is found again. Its MAC, under the card's own key, keeps another app's message
// from being taken for ours.
func cardMark(f approvals.CardFacts) Metadata {
	return mark(f, "holdpoint_card", "")
}

func uncertainMark(f approvals.CardFacts) Metadata {
	epoch := int64(0)
	if f.Ledger != nil {
		epoch = f.Ledger.Epoch
	}
	return mark(f, "holdpoint_uncertain", fmt.Sprintf("%d", epoch))
}

func mark(f approvals.CardFacts, event, of string) Metadata {
	card := f.Card.ID.String()
	m := hmac.New(sha256.New, f.Card.MACKey)
	m.Write([]byte(event + "\x00" + card + "\x00" + of))
	payload := map[string]string{"card": card, "mac": hex.EncodeToString(m.Sum(nil)[:16])}
	if of != "" {
		payload["of"] = of
	}
	return Metadata{EventType: event, Payload: payload}
}
