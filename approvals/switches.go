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
