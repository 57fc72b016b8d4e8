package approvals

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Switch is a switch that is thrown: nothing under it starts.
type Switch struct {
	Scope  string // tenant, agent, tool
	Name   string // empty for the tenant
	By     string // as audited
	At     time.Time
	Reason string
}

// Covers says whether an approval is under the switch.
func (p Switch) Covers(v View) bool {
	switch p.Scope {
	case "tenant":
		return true
	case "agent":
		return p.Name == v.Agent
	case "tool":
		return p.Name == v.Tool
	}
	return false
}

// String names what is paused, and why.
func (p Switch) String() string {
	what := p.Scope
	if p.Name != "" {
		what += " " + p.Name
	}
	return what + ": " + p.Reason
}

var sqlPauses = statement(`SELECT scope, name, by, at, reason FROM suspension WHERE tenant_id = $1 AND active ORDER BY scope = 'tenant' DESC, at, name`)

// Switches lists the switches of a tenant that are thrown, the widest and the oldest first.
func (s *Service) Switches(ctx context.Context, tenant string) ([]Switch, error) {
	rows, err := s.clicks.Query(ctx, sqlPauses, tenant)
	if err != nil {
		return nil, unavailable(err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (p Switch, err error) {
		return p, row.Scan(&p.Scope, &p.Name, &p.By, &p.At, &p.Reason)
	})
	return list, unavailable(err)
}

// The cards of what waits for people under a switch are taken for unpainted and rung for: each ask is a lower number, so
// that a paint of before it does not pass for one of after it (SaveShown).
var sqlRepaintUnder = statement(`WITH stale AS (
	UPDATE card c SET shown_version = least(c.shown_version, 0) - 1 FROM approval_open o JOIN approval_request r ON r.approval_id = o.approval_id
	WHERE o.tenant_id = $1 AND r.status = 'pending' AND c.card_id = r.card_id
		AND ($2 = 'tenant' OR $2 = 'agent' AND r.agent = $3 OR $2 = 'tool' AND r.tool_name = $3)
	RETURNING r.approval_id
), rung AS (
	INSERT INTO outbox (outbox_id, kind, subject_id) SELECT gen_random_uuid(), 'card', s.approval_id FROM stale s
)
SELECT approval_id FROM stale`)

// RepaintUnder asks for the cards of what is pending under a switch to be painted anew, after it was thrown or lifted (L6). It
// returns which those are.
func (s *Service) RepaintUnder(ctx context.Context, tenant, scope, name string) ([]ID, error) {
	rows, err := s.clicks.Query(ctx, sqlRepaintUnder, tenant, scope, name)
	if err != nil {
		return nil, unavailable(err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[ID])
	return ids, unavailable(err)
}
