package approvals

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Selector names what an admin stops. Exactly one field is set.
type Selector struct {
	ID        ID
	Run       string
	Agent     string
	Tool      string
	DecidedBy string // a Slack user: everything not yet executed that this person decided
}

// named counts the fields that are set. None of them would stop everything.
func (s Selector) named() int {
	n := 0
	for _, set := range []bool{!s.ID.IsZero(), s.Run != "", s.Agent != "", s.Tool != "", s.DecidedBy != ""} {
		if set {
			n++
		}
	}
	return n
}

// RevokeRequest stops approvals. By is an authorised admin (Admin) or an operator with database access.
type RevokeRequest struct {
	Tenant  string
	By      Actor
	Surface Surface
	Select  Selector
	Reason  string
}

var sqlSelect = statement(`SELECT r.approval_id FROM approval_open o JOIN approval_request r ON r.approval_id = o.approval_id
	WHERE o.tenant_id = $1 AND ($2::uuid IS NULL OR r.approval_id = $2) AND ($3 = '' OR r.run_id = $3) AND ($4 = '' OR r.agent = $4) AND ($5 = '' OR r.tool_name = $5)
		AND ($6 = '' OR EXISTS (SELECT 1 FROM approval_decision d WHERE d.approval_id = r.approval_id AND d.reviewer = 'slack:' || $6))
	ORDER BY r.approval_id`)

// Revoke withdraws what has not been executed, each approval in a transaction of its own. The claim is the linearisation point:
// what is executing is only flagged (its outcome is still recorded, a retry is forbidden). It returns the approvals as they are
// now, also those that it could not stop any more. Naming one approval of another tenant is ErrNotFound.
func (s *Service) Revoke(ctx context.Context, rq RevokeRequest) ([]View, error) {
	if rq.Reason = said(rq.Reason); rq.Reason == "" {
		return nil, refuse(CodeInvalidRequest, "say why: the reason is audited and shown on the card")
	}
	if n := rq.Select.named(); n != 1 {
		return nil, fmt.Errorf("name one approval, run, agent, tool or person to stop, not %d", n)
	}
	if rq.Select.DecidedBy != "" {
		if err := personID(rq.Select.DecidedBy); err != nil {
			return nil, err
		}
	}
	ids, err := s.selected(ctx, rq.Tenant, rq.Select)
	if err != nil {
		return nil, err
	}
	if !rq.Select.ID.IsZero() {
		if v, err := s.Lookup(ctx, rq.Tenant, rq.Select.ID); err != nil || len(ids) == 0 {
			return []View{v}, err
		}
	}
	if len(ids) == 0 {
		if err := s.known(ctx, rq.Tenant, rq.Select); err != nil {
			return nil, err
		}
	}
	var out []View
	for _, id := range ids {
		v, err := s.revokeOne(ctx, id, rq.By, rq.Surface, ReasonRevokedByAdmin, rq.Reason)
		if err != nil {
			return out, fmt.Errorf("after %d of %d: %w", len(out), len(ids), err)
		}
		out = append(out, v)
	}
	return out, nil
}

// known refuses an agent or a tool of which nothing is open and which the configuration doesn't have: it is a typing error, and must not
// look like a revocation that met nothing. What is gone from the configuration can still be revoked while something of it is open.
func (s *Service) known(ctx context.Context, tenant string, sel Selector) error {
	t, _, err := s.activeTenant(ctx, s.clicks, tenant, true)
	switch {
	case err != nil:
		return err
	case sel.Agent != "" && t.Agents[sel.Agent] == nil:
		return refuse(CodeInvalidRequest, "there is no agent %q in the configuration; it has %s", sel.Agent, strings.Join(slices.Sorted(maps.Keys(t.Agents)), ", "))
	case sel.Tool != "" && t.Tools[sel.Tool] == nil:
		return refuse(CodeInvalidRequest, "there is no tool %q in the configuration; it has %s", sel.Tool, strings.Join(slices.Sorted(maps.Keys(t.Tools)), ", "))
	}
	return nil
}

func (s *Service) selected(ctx context.Context, tenant string, sel Selector) ([]ID, error) {
	rows, err := s.clicks.Query(ctx, sqlSelect, tenant, sel.ID, sel.Run, sel.Agent, sel.Tool, sel.DecidedBy)
	if err != nil {
		return nil, unavailable(err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[ID])
	return ids, unavailable(err)
}

func (s *Service) revokeOne(ctx context.Context, id ID, by Actor, surface Surface, why Reason, words string) (View, error) {
	v, _, err := s.transition(ctx, s.clicks, id, want{}, func(f *facts) (*swap, error) { return f.revoke(by, surface, why, words), nil })
	return v, err
}

// revoke ends what is not claimed; what is claimed is flagged once.
func (f *facts) revoke(by Actor, surface Surface, why Reason, words string) *swap {
	r := f.req
	switch {
	case r.status == Pending || r.status == Approved:
		w := r.moves(Revoked, "approval.revoked", by, surface)
		w.reason, w.revoked, w.message, w.settle, w.outbox = why, by, words, true, []string{OutboxCard}
		w.ledger = f.giveUp(why)
		w.detail = map[string]any{"reason": why, "words": words}
		return w
	case r.status == Executing && r.revokedAt == nil:
		w := r.moves(Executing, "approval.revoked_late", by, surface)
		w.revoked, w.outbox, w.wait, w.due = by, []string{OutboxCard}, waitLease, f.now
		if f.ledger != nil && f.ledger.leaseExpiresAt != nil {
			w.due = *f.ledger.leaseExpiresAt
		}
		w.detail = map[string]any{"reason": why, "words": words}
		return w
	}
	return nil
}

// Withdraw takes back one of the agent's own approvals.
func (s *Service) Withdraw(ctx context.Context, key Key, id ID, reason string) (View, error) {
	v, _, err := s.transition(ctx, s.intake, id, want{key: key.ID}, func(f *facts) (*swap, error) {
		if err := f.caller(key); err != nil {
			return nil, err
		}
		return f.revoke(AgentActor(key.Agent), SurfaceAPI, ReasonWithdrawn, line(reason)), nil
	})
	if err != nil {
		return View{}, err
	}
	return v, nil
}
