package approvals

import (
	"context"
	"maps"
	"slices"
	"strings"

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
}

// Suspension is what a switch meets: what is executing right now, and what was approved and would start when it is lifted.
type Suspension struct {
	InFlight   []View
	WouldStart []View
}

var (
	sqlSuspend = statement(`INSERT INTO suspension (tenant_id, scope, name, active, reason, by) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (tenant_id, scope, name) DO UPDATE SET active = excluded.active, reason = excluded.reason, by = excluded.by, at = clock_timestamp()`)
	sqlUnderSwitch = statement(`SELECT ` + requestColumns + ` FROM approval_open o JOIN approval_request r ON r.approval_id = o.approval_id
		WHERE o.tenant_id = $1 AND r.status = $2 AND ($3 = 'tenant' OR $3 = 'agent' AND r.agent = $4 OR $3 = 'tool' AND r.tool_name = $4) ORDER BY r.approval_id`)
	sqlRingHeld = statement(`UPDATE approval_open o SET due_at = clock_timestamp() WHERE o.tenant_id = $1 AND o.wait = 'held'`)
)

// Reach lists what a switch stands over, and writes nothing: what unpausing would start is shown before it is asked for.
func (s *Service) Reach(ctx context.Context, tenant, scope, name string) (Suspension, error) {
	var out Suspension
	var err error
	if out.InFlight, err = s.views(ctx, sqlUnderSwitch, tenant, string(Executing), scope, name); err != nil {
		return out, err
	}
	out.WouldStart, err = s.views(ctx, sqlUnderSwitch, tenant, string(Approved), scope, name)
	return out, err
}

// Suspend commits the switch under config_active FOR UPDATE: a claim sees it, or was committed before it and is listed as in flight.
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
	if strings.TrimSpace(rq.Reason) == "" {
		return Suspension{}, refuse(CodeInvalidRequest, "say why: the reason is audited and shown on the cards")
	}
	kind := "execution.suspended"
	if !rq.Active {
		kind = "execution.unsuspended"
	}
	err = s.administer(ctx, rq.Tenant, rq.By, rq.Surface, kind, map[string]any{"scope": rq.Scope, "name": rq.Name, "reason": rq.Reason}, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, sqlSuspend, rq.Tenant, rq.Scope, rq.Name, rq.Active, rq.Reason, string(rq.By)); err != nil || rq.Active {
			return err
		}
		_, err := tx.Exec(ctx, sqlRingHeld, rq.Tenant) // what was held is looked at by the next sweep
		return err
	})
	if err != nil {
		return Suspension{}, err
	}
	return s.Reach(ctx, rq.Tenant, rq.Scope, rq.Name)
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
	sqlBlock   = statement(`INSERT INTO blocked_user (tenant_id, user_id, reason, by) VALUES ($1, $2, $3, $4) ON CONFLICT (tenant_id, user_id) DO UPDATE SET reason = excluded.reason, by = excluded.by, at = clock_timestamp()`)
	sqlUnblock = statement(`DELETE FROM blocked_user WHERE tenant_id = $1 AND user_id = $2`)
	// What the person's word still carries: votes on what waits or is approved, and calls that they are behind.
	sqlCarriedBy = statement(`SELECT r.approval_id FROM approval_open o JOIN approval_request r ON r.approval_id = o.approval_id
		WHERE o.tenant_id = $1 AND r.status IN ('pending', 'approved') AND (r.requester = 'slack:' || $2
			OR r.status = 'approved' AND EXISTS (SELECT 1 FROM approval_decision d WHERE d.approval_id = r.approval_id AND d.reviewer = 'slack:' || $2 AND d.decision = 'approve'))
		ORDER BY r.approval_id`)
)

// Block commits the block first (no decision or claim can pass it any more), then revokes what the person asked for and what was
// approved with their vote. Votes on what still waits stay as rows and do not count. It returns what it revoked.
func (s *Service) Block(ctx context.Context, rq BlockRequest) ([]View, error) {
	if strings.TrimSpace(rq.Reason) == "" {
		return nil, refuse(CodeInvalidRequest, "say why: the reason is audited")
	}
	kind := "person.blocked"
	if !rq.Blocked {
		kind = "person.unblocked"
	}
	err := s.administer(ctx, rq.Tenant, rq.By, rq.Surface, kind, map[string]any{"user": rq.UserID, "reason": rq.Reason}, func(ctx context.Context, tx pgx.Tx) (err error) {
		if rq.Blocked {
			_, err = tx.Exec(ctx, sqlBlock, rq.Tenant, rq.UserID, rq.Reason, string(rq.By))
		} else {
			_, err = tx.Exec(ctx, sqlUnblock, rq.Tenant, rq.UserID)
		}
		return err
	})
	if err != nil || !rq.Blocked {
		return nil, err
	}
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
			return f.revoke(rq.By, rq.Surface, why, ""), nil
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
