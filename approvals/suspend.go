package approvals

import (
	"context"
	"encoding/hex"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// SuspendRequest throws or lifts the kill switch over a tenant, an agent or a tool: nothing new executes; intake and decisions go on.
type SuspendRequest struct {
	Tenant  string
	By      Actor
	Surface Surface
	Scope   string // tenant, agent, tool
	Name    string // empty for tenant
	Reason  string
	Active  bool
	// Listed, where it is set, is what a person was shown before they lifted the switch (Suspension.Listed): exactly that starts, or nothing
	// changes and ErrListChanged asks for another look.
	Listed string
}

// ErrListChanged says that lifting a switch would start other calls than the person was shown, or that it was thrown again since. Nothing
// was changed.
var ErrListChanged = errors.New("what would start has changed since it was listed; nothing was changed: look again")

// Suspension is what a switch meets: what is executing right now, and what was approved and would start when it is lifted.
type Suspension struct {
	InFlight   []View
	WouldStart []View
	Waiting    []ID   // for people; their cards are painted anew. Only from Suspend
	Listed     string // names the throw of the switch and exactly WouldStart
}

var (
	sqlSuspend = statement(`INSERT INTO suspension (tenant_id, scope, name, active, reason, by) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (tenant_id, scope, name) DO UPDATE SET active = excluded.active, reason = excluded.reason, by = excluded.by, at = clock_timestamp()`)
	sqlUnderSwitch = statement(`SELECT ` + listColumns + ` FROM approval_open o JOIN approval_request r ON r.approval_id = o.approval_id
		WHERE o.tenant_id = $1 AND r.status = $2 AND ($3 = 'tenant' OR $3 = 'agent' AND r.agent = $4 OR $3 = 'tool' AND r.tool_name = $4) ORDER BY r.approval_id`)
	sqlIDsUnderSwitch = statement(`SELECT r.approval_id FROM approval_open o JOIN approval_request r ON r.approval_id = o.approval_id
		WHERE o.tenant_id = $1 AND r.status = $2 AND ($3 = 'tenant' OR $3 = 'agent' AND r.agent = $4 OR $3 = 'tool' AND r.tool_name = $4) ORDER BY r.approval_id`)
	sqlThrownAt = statement(`SELECT s.at FROM suspension s WHERE s.tenant_id = $1 AND s.scope = $2 AND s.name = $3 AND s.active`)
	sqlRingHeld = statement(`UPDATE approval_open o SET due_at = clock_timestamp() WHERE o.tenant_id = $1 AND o.wait = 'held'`)
)

// Reach lists what a switch stands over, and writes nothing: what unpausing would start is shown before it is asked for.
func (s *Service) Reach(ctx context.Context, tenant, scope, name string) (Suspension, error) {
	var out Suspension
	var err error
	if out.InFlight, err = s.views(ctx, sqlUnderSwitch, tenant, string(Executing), scope, name); err != nil {
		return out, err
	}
	if out.WouldStart, err = s.views(ctx, sqlUnderSwitch, tenant, string(Approved), scope, name); err != nil {
		return out, err
	}
	ids := make([]ID, len(out.WouldStart))
	for i, v := range out.WouldStart {
		ids[i] = v.ApprovalID
	}
	out.Listed, err = listed(ctx, s.clicks, tenant, scope, name, ids)
	return out, unavailable(err)
}

// listed is the digest over one throw of a switch and what lifting it would start.
func listed(ctx context.Context, q querier, tenant, scope, name string, ids []ID) (string, error) {
	var at time.Time
	if err := noRows(q.QueryRow(ctx, sqlThrownAt, tenant, scope, name).Scan(&at)); err != nil {
		return "", err
	}
	f := newFields("holdpoint switch v1")
	for _, s := range []string{tenant, scope, name, at.UTC().Format(time.RFC3339Nano)} {
		f.text(s)
	}
	for _, id := range ids {
		f.text(id.String())
	}
	return hex.EncodeToString(f.h.Sum(nil)[:16]), nil
}

// unchanged holds what was listed against what is, under the lock that every decision and claim waits for.
func (rq SuspendRequest) unchanged(ctx context.Context, tx pgx.Tx) error {
	if rq.Active || rq.Listed == "" {
		return nil
	}
	rows, err := tx.Query(ctx, sqlIDsUnderSwitch, rq.Tenant, string(Approved), rq.Scope, rq.Name)
	if err != nil {
		return err
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[ID])
	if err != nil {
		return err
	}
	now, err := listed(ctx, tx, rq.Tenant, rq.Scope, rq.Name, ids)
	if err == nil && now != rq.Listed {
		err = ErrListChanged
	}
	return err
}

// Suspend commits the switch under config_active FOR UPDATE: a claim sees it, or was committed before it and is listed as in flight. The
// cards of what waits for people are promised anew in the same transaction: a kill after it loses none of them (L6).
func (s *Service) Suspend(ctx context.Context, rq SuspendRequest) (Suspension, error) {
	t, _, err := s.activeTenant(ctx, s.clicks, rq.Tenant, true)
	if err != nil {
		return Suspension{}, err
	}
	switch rq.Scope {
	case "tenant":
		rq.Name = ""
	case "agent": // a switch over what is gone from the configuration can still be lifted
		if rq.Active && t.Agents[rq.Name] == nil {
			return Suspension{}, refuse(CodeInvalidRequest, "there is no agent %q in the configuration; it has %s", rq.Name, strings.Join(slices.Sorted(maps.Keys(t.Agents)), ", "))
		}
	case "tool":
		if rq.Active && t.Tools[rq.Name] == nil {
			return Suspension{}, refuse(CodeInvalidRequest, "there is no tool %q in the configuration; it has %s", rq.Name, strings.Join(slices.Sorted(maps.Keys(t.Tools)), ", "))
		}
	default:
		return Suspension{}, refuse(CodeInvalidRequest, "pause a tenant, an agent or a tool")
	}
	if rq.Reason = said(rq.Reason); rq.Reason == "" {
		return Suspension{}, refuse(CodeInvalidRequest, "say why: the reason is audited and shown on the cards")
	}
	kind := "execution.suspended"
	if !rq.Active {
		kind = "execution.unsuspended"
	}
	var cards []OutboxItem
	err = s.administer(ctx, rq.Tenant, rq.By, rq.Surface, kind, map[string]any{"scope": rq.Scope, "name": rq.Name, "reason": rq.Reason}, func(ctx context.Context, tx pgx.Tx) error {
		if err := rq.unchanged(ctx, tx); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, sqlSuspend, rq.Tenant, rq.Scope, rq.Name, rq.Active, rq.Reason, string(rq.By)); err != nil {
			return err
		}
		var err error
		if cards, err = repaint(ctx, tx, sqlRepaintUnder, rq.Tenant, rq.Scope, rq.Name); err != nil || rq.Active {
			return err
		}
		_, err = tx.Exec(ctx, sqlRingHeld, rq.Tenant) // what was held is looked at by the next sweep
		return err
	})
	if err != nil {
		return Suspension{}, err
	}
	s.woke(cards)
	out, err := s.Reach(ctx, rq.Tenant, rq.Scope, rq.Name)
	for _, c := range cards {
		out.Waiting = append(out.Waiting, ID(c.Subject))
	}
	return out, err
}

// repaint runs a statement that takes cards for unpainted, and gives the outbox rows which promise to paint them.
func repaint(ctx context.Context, tx pgx.Tx, sql string, args ...any) ([]OutboxItem, error) {
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (o OutboxItem, err error) {
		o.Kind = OutboxCard
		return o, row.Scan(&o.ID, &o.Subject)
	})
}

// BlockRequest takes a person's authority away at once, or gives it back. It beats configuration and Slack.
type BlockRequest struct {
	Tenant  string
	By      Actor
	Surface Surface
	UserID  string
	Reason  string
	Blocked bool
}

var (
	sqlBlock = statement(`INSERT INTO blocked_user (tenant_id, user_id, reason, by) VALUES ($1, $2, $3, $4)
		ON CONFLICT (tenant_id, user_id) DO UPDATE SET active = true, reason = excluded.reason, by = excluded.by, at = clock_timestamp()`)
	// Keeps the time of the block: votes from before it stay void.
	sqlUnblock = statement(`UPDATE blocked_user SET active = false, reason = $3, by = $4 WHERE tenant_id = $1 AND user_id = $2 AND active`)
	// Cards that show a vote which has just become void: taken for unpainted, and promised to be painted anew.
	sqlRepaintVoted = statement(`WITH touched AS (
		SELECT r.approval_id, r.card_id FROM approval_open o JOIN approval_request r ON r.approval_id = o.approval_id
			JOIN approval_decision d ON d.approval_id = r.approval_id AND d.reviewer = 'slack:' || $2::text
		WHERE o.tenant_id = $1 AND r.status = 'pending'
	), unpainted AS (
		UPDATE card c SET shown_version = least(c.shown_version, 0) - 1 FROM touched t WHERE c.card_id = t.card_id -- each ask is a lower number: see SaveShown
	)
	INSERT INTO outbox (outbox_id, kind, subject_id) SELECT gen_random_uuid(), 'card', t.approval_id FROM touched t RETURNING outbox_id, subject_id`)
	// Cards of what waits for people under a switch, in the same way.
	sqlRepaintUnder = statement(`WITH touched AS (
		SELECT r.approval_id, r.card_id FROM approval_open o JOIN approval_request r ON r.approval_id = o.approval_id
		WHERE o.tenant_id = $1 AND r.status = 'pending' AND ($2 = 'tenant' OR $2 = 'agent' AND r.agent = $3 OR $2 = 'tool' AND r.tool_name = $3)
	), unpainted AS (
		UPDATE card c SET shown_version = least(c.shown_version, 0) - 1 FROM touched t WHERE c.card_id = t.card_id
	)
	INSERT INTO outbox (outbox_id, kind, subject_id) SELECT gen_random_uuid(), 'card', t.approval_id FROM touched t RETURNING outbox_id, subject_id`)
	// What the person's word still carries: votes on what waits or is approved, and calls that they are behind.
	sqlCarriedBy = statement(`SELECT r.approval_id FROM approval_open o JOIN approval_request r ON r.approval_id = o.approval_id
		WHERE o.tenant_id = $1 AND r.status IN ('pending', 'approved') AND (r.requester = 'slack:' || $2
			OR r.status = 'approved' AND EXISTS (SELECT 1 FROM approval_decision d WHERE d.approval_id = r.approval_id AND d.reviewer = 'slack:' || $2 AND d.decision = 'approve'))
		ORDER BY r.approval_id`)
)

// Block commits the block first (no decision or claim can pass it any more), then revokes what the person asked for and what was
// approved with their vote. Votes on what still waits stay as rows and do not count, also when the block is lifted; their cards are
// painted anew, and the trail tells of each (vote.voided). Nobody blocks themselves from Slack. It returns what it revoked. Somebody who is not mirrored is blocked all the same (Mirrored tells).
func (s *Service) Block(ctx context.Context, rq BlockRequest) ([]View, error) {
	if err := personID(rq.UserID); err != nil {
		return nil, err
	}
	if rq.Reason = said(rq.Reason); rq.Reason == "" {
		return nil, refuse(CodeInvalidRequest, "say why: the reason is audited")
	}
	if rq.Blocked && slackUser(string(rq.By)) == rq.UserID { // the last admin would leave nobody who can lift it
		return nil, refuse(CodeInvalidRequest, "nobody blocks themselves from Slack; use `holdpoint block` from a shell")
	}
	kind := "person.blocked"
	if !rq.Blocked {
		kind = "person.unblocked"
	}
	var cards []OutboxItem
	err := s.administer(ctx, rq.Tenant, rq.By, rq.Surface, kind, map[string]any{"user": rq.UserID, "reason": rq.Reason}, func(ctx context.Context, tx pgx.Tx) error {
		if !rq.Blocked {
			lifted, err := tx.Exec(ctx, sqlUnblock, rq.Tenant, rq.UserID, rq.Reason, string(rq.By))
			if err == nil && lifted.RowsAffected() == 0 {
				return refuse(CodeConflict, "%s is not blocked", rq.UserID)
			}
			return err
		}
		if err := rq.void(ctx, tx); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, sqlBlock, rq.Tenant, rq.UserID, rq.Reason, string(rq.By)); err != nil {
			return err
		}
		var err error
		cards, err = repaint(ctx, tx, sqlRepaintVoted, rq.Tenant, rq.UserID)
		return err
	})
	if err != nil || !rq.Blocked {
		return nil, err
	}
	s.woke(cards)
	rows, err := s.clicks.Query(ctx, sqlCarriedBy, rq.Tenant, rq.UserID)
	if err != nil {
		return nil, unavailable(err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[ID])
	if err != nil {
		return nil, unavailable(err)
	}
	var out []View
	for _, id := range ids {
		v, done, err := s.transition(ctx, s.clicks, id, want{}, func(f *facts) (*swap, error) {
			why := ReasonReviewerLost
			if f.req.requester == string(SlackActor(rq.UserID)) {
				why = ReasonRequesterInactive
			}
			if f.req.status != Pending && f.req.status != Approved {
				return nil, nil
			}
			w := f.revoke(rq.By, rq.Surface, why, "")
			w.detail = map[string]any{"reason": why, "words": rq.Reason} // for people: the model is not told why somebody was blocked
			return w, nil
		})
		if err != nil {
			return out, err
		}
		if done {
			out = append(out, v)
		}
	}
	return out, nil
}

// Approvals that wait or are approved with a vote of $2 which counts until now.
var sqlCountingVotes = statement(`SELECT r.approval_id, r.pause_id FROM approval_open o JOIN approval_request r ON r.approval_id = o.approval_id
		JOIN approval_decision d ON d.approval_id = r.approval_id AND d.reviewer = 'slack:' || $2::text AND d.decision = 'approve'
	WHERE o.tenant_id = $1 AND r.status IN ('pending', 'approved') AND NOT ` + voidVote + ` ORDER BY r.approval_id`)

// void tells the trail of each vote that a block is about to void, under the lock that every vote waits for.
func (rq BlockRequest) void(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, sqlCountingVotes, rq.Tenant, rq.UserID)
	if err != nil {
		return err
	}
	type vote struct {
		ID    ID
		Pause uuid.UUID
	}
	votes, err := pgx.CollectRows(rows, pgx.RowToStructByPos[vote])
	if err != nil {
		return err
	}
	for _, v := range votes {
		detail := map[string]any{"reviewer": SlackActor(rq.UserID), "user": rq.UserID, "reason": rq.Reason}
		if err := audit(ctx, tx, rq.Tenant, v.ID, v.Pause, "vote.voided", rq.By, rq.Surface, detail); err != nil {
			return err
		}
	}
	return nil
}

var sqlMirrored = statement(`SELECT EXISTS (SELECT 1 FROM slack_user WHERE tenant_id = $1 AND user_id = $2)`)

// Mirrored says whether a person is in the tenant's mirror of Slack: an id that is not may be a typing error.
func (s *Service) Mirrored(ctx context.Context, tenant, user string) (known bool, err error) {
	err = s.clicks.QueryRow(ctx, sqlMirrored, tenant, user).Scan(&known)
	return known, unavailable(err)
}
