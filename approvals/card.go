package approvals

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Card is where an approval's message is, and how far it follows the row.
type Card struct {
	ID           uuid.UUID
	Channel      string
	MessageTS    string
	ShownVersion int64 // 0: unknown; below: to be painted anew
	MACKey       []byte
	PostStarted  *time.Time
	Plain        bool // Slack refused the blocks: a plain message stands in
	Failure      string
}

// CardFacts is everything that a card shows.
type CardFacts struct {
	View
	Card        Card
	Admins      []string   // Slack ids to mention: users U…, groups S…
	HeldBy      string     // who paused it; also of what waits for people: approving it is allowed, and whoever does should know that it won't start now
	HeldDetail  string     // what is paused, and their reason
	HeldUntil   *time.Time // the window's next opening
	MaxAttempts int
	Handles     map[string]string // of the tenant's groups, by id
}

var (
	sqlCardRow = statement(`SELECT card_id, channel, coalesce(message_ts, ''), shown_version, mac_key, post_started, plain, coalesce(failure, '') FROM card WHERE card_id = (SELECT card_id FROM approval_request WHERE approval_id = $1)`)
	sqlHeldBy  = statement(`SELECT s.scope, s.name, s.by, s.at, s.reason FROM suspension s JOIN approval_request r ON r.approval_id = $1 AND s.tenant_id = r.tenant_id
		WHERE s.active AND (s.scope = 'tenant' OR s.scope = 'agent' AND s.name = r.agent OR s.scope = 'tool' AND s.name = r.tool_name) ORDER BY s.scope = 'tenant' DESC, s.at LIMIT 1`)
	sqlHandles   = statement(`SELECT group_id, handle FROM slack_group WHERE tenant_id = (SELECT tenant_id FROM approval_request WHERE approval_id = $1)`)
	sqlStartPost = statement(`UPDATE card SET post_started = coalesce(post_started, clock_timestamp()) WHERE card_id = (SELECT card_id FROM approval_request WHERE approval_id = $1)`)
	// Below zero, a repaint was asked for (sqlRepaintVoted, sqlRepaintUnder), and this picture may be from before it: then it is shown as 0, unknown.
	sqlSavePost  = statement(`UPDATE card SET channel = $2, message_ts = $3, shown_version = CASE WHEN shown_version < 0 THEN 0 ELSE $4 END, plain = $5, failure = nullif($6, '') WHERE card_id = (SELECT card_id FROM approval_request WHERE approval_id = $1)`)
	sqlSaveShown = statement(`UPDATE card SET shown_version = greatest(shown_version, $2) WHERE card_id = (SELECT card_id FROM approval_request WHERE approval_id = $1) AND shown_version = $3`)
)

// CardFacts reads an approval with its card.
func (s *Service) CardFacts(ctx context.Context, id ID) (CardFacts, error) {
	v, f, err := s.lookAs(ctx, s.clicks, id, "")
	if err != nil {
		return CardFacts{}, err
	}
	out := CardFacts{View: v, MaxAttempts: maxAttempts, Handles: map[string]string{}}
	b := &pgx.Batch{}
	b.Queue(sqlHandles, id).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var id, handle string
			if err := rows.Scan(&id, &handle); err != nil {
				return err
			}
			out.Handles[id] = handle
		}
		return rows.Err()
	})
	b.Queue(sqlCardRow, id).QueryRow(func(row pgx.Row) error {
		c := &out.Card
		return row.Scan(&c.ID, &c.Channel, &c.MessageTS, &c.ShownVersion, &c.MACKey, &c.PostStarted, &c.Plain, &c.Failure)
	})
	if v.Held == ReasonPaused || v.Status == Pending {
		b.Queue(sqlHeldBy, id).QueryRow(func(row pgx.Row) error {
			var p Switch
			err := row.Scan(&p.Scope, &p.Name, &p.By, &p.At, &p.Reason)
			if err == nil {
				out.HeldBy, out.HeldDetail = p.By, p.String()
			}
			return noRows(err)
		})
	}
	if err := s.clicks.SendBatch(ctx, b).Close(); err != nil {
		if errors.Is(err, pgx.ErrNoRows) {
			return out, ErrNotFound
		}
		return out, unavailable(err)
	}
	t, revision, err := s.activeTenant(ctx, s.clicks, v.Tenant, false)
	if err == nil && v.Status == Pending && revision != v.ConfigRevision { // the rule may ask for more votes than the row says
		views := []View{out.View}
		s.stands(ctx, s.clicks, v.Tenant, []*requestRow{f.req}, views)
		out.View = views[0]
	}
	if err == nil {
		out.Admins = append(append(out.Admins, t.Admins.Groups...), t.Admins.Users...)
		if rule, ok := t.Rule(v.Rule); ok && v.Held == ReasonWindowClosed && rule.Window != nil {
			opens := rule.Window.NextOpening(v.Now)
			out.HeldUntil = &opens
		}
	}
	return out, nil
}

// Bound holds a press to the card, as Decide does, before a form or Details shows anything for it: the MAC, the channel, the message and
// the digest that the person saw. Empty means that it is this card's.
func (f CardFacts) Bound(p Press) DenialKind {
	if p.Button.ID != f.ApprovalID {
		return DenyTampered
	}
	if d := p.Button.bound(f.Card.MACKey, f.Card.Channel, f.Card.MessageTS, p.Channel, p.MessageTS); d != "" {
		return d
	}
	if p.Button.DigestPrefix != f.ShortDigest() {
		return DenyChanged
	}
	return ""
}

// StartPost records that a post may be on its way; it keeps the first time. A crash after it makes the next run look the message up
// before it posts again.
func (s *Service) StartPost(ctx context.Context, id ID) error {
	_, err := s.clicks.Exec(ctx, sqlStartPost, id)
	return unavailable(err)
}

// SavePost stores where the card is and which version it shows (0: unknown). failure says why only a plain card could be posted.
func (s *Service) SavePost(ctx context.Context, id ID, channel, ts string, shown int64, plain bool, failure string) error {
	_, err := s.clicks.Exec(ctx, sqlSavePost, id, channel, ts, shown, plain, failure)
	return unavailable(err)
}

// SaveShown stores which version the card shows, where the stored one is still what was read before it was painted: a repaint that was
// asked for meanwhile is not lost. A lower one than stored changes nothing.
func (s *Service) SaveShown(ctx context.Context, id ID, read, shown int64) error {
	_, err := s.clicks.Exec(ctx, sqlSaveShown, id, shown, read)
	return unavailable(err)
}
