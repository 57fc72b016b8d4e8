package approvals

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

var sqlAudit = statement(`WITH e AS (
	INSERT INTO audit_event (tenant_id, approval_id, pause_id, kind, actor, surface, detail) VALUES ($1, $2, $3, $4, $5, $6, $7)
	RETURNING event_id, tenant_id)
INSERT INTO audit_unsealed (event_id, tenant_id) SELECT event_id, tenant_id FROM e`)

// audit records an event that is no transition, inside the transaction of what it tells (I25).
func audit(ctx context.Context, tx pgx.Tx, tenant string, id ID, pause uuid.UUID, kind string, by Actor, surface Surface, detail any) error {
	body, err := json.Marshal(detail)
	if err != nil {
		return fmt.Errorf("audit detail: %w", err)
	}
	var p *uuid.UUID
	if pause != (uuid.UUID{}) {
		p = &pause
	}
	_, err = tx.Exec(ctx, sqlAudit, tenant, id, p, kind, string(by), string(surface), body)
	return err
}

var sqlBlockedNow = statement(`SELECT EXISTS (SELECT 1 FROM blocked_user b WHERE b.tenant_id = $1 AND b.user_id = $2 AND b.active)`)

// administer runs a change of an authority: config_active FOR UPDATE first, so that no decision or claim in flight misses it, then
// the change and its audit row. It never touches a request: transitions that follow are transactions of their own, after it, so
// that nobody waits for a request while holding the configuration. A Slack person who is blocked changes nothing: ErrNotAdmin.
func (s *Service) administer(ctx context.Context, tenant string, by Actor, surface Surface, kind string, detail any, change func(context.Context, pgx.Tx) error) error {
	err := pgx.BeginFunc(ctx, s.clicks, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, sqlLockLine, tenant); err != nil {
			return err
		}
		var revision int64
		err := tx.QueryRow(ctx, sqlLockActive, tenant).Scan(&revision)
		if errors.Is(err, pgx.ErrNoRows) {
			return ErrNoConfig
		}
		if err != nil {
			return err
		}
		if user := slackUser(string(by)); user != "" { // blocked since they were found to be an admin
			var blocked bool
			if err := tx.QueryRow(ctx, sqlBlockedNow, tenant, user).Scan(&blocked); err != nil {
				return err
			}
			if blocked {
				return ErrNotAdmin
			}
		}
		if err := change(ctx, tx); err != nil {
			return err
		}
		return audit(ctx, tx, tenant, ID{}, uuid.UUID{}, kind, by, surface, detail)
	})
	return unavailable(err)
}

// Admin authorises a person as an admin of the tenant, from the mirrored directory: fail closed. Admins stop and reconcile; they
// do not approve as admins. ErrNotAdmin says that they are none, ErrUncheckable that the mirror can't tell.
func (s *Service) Admin(ctx context.Context, tenant string, by Reviewer) (Actor, error) {
	p, err := s.Standing(ctx, tenant, by)
	if err != nil {
		return "", err
	}
	switch {
	case p.Admin:
		return SlackActor(by.UserID), nil
	case p.Unread:
		return "", ErrUncheckable
	}
	return "", ErrNotAdmin
}

var sqlTenants = statement(`SELECT a.tenant_id, a.revision FROM config_active a ORDER BY a.tenant_id`)

// eachTenant gives every tenant's active configuration. One that cannot be read is an error of its own, and stops nobody else.
func (s *Service) eachTenant(ctx context.Context, q interface {
	querier
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}, do func(name string, revision int64) error,
) error {
	rows, err := q.Query(ctx, sqlTenants)
	if err != nil {
		return unavailable(err)
	}
	type active struct {
		name     string
		revision int64
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (a active, err error) { return a, row.Scan(&a.name, &a.revision) })
	if err != nil {
		return unavailable(err)
	}
	var errs []error
	for _, a := range list {
		errs = append(errs, do(a.name, a.revision))
	}
	return errors.Join(errs...)
}

// ErrNoTenant says that no tenant's configuration names the Slack workspace.
var ErrNoTenant = errors.New("no tenant is connected to this Slack workspace")

// TenantOfTeam finds the tenant of a Slack workspace.
func (s *Service) TenantOfTeam(ctx context.Context, team string) (string, error) {
	if t, ok := s.teams.Load(team); ok {
		if cfg, _, err := s.activeTenant(ctx, s.clicks, t, false); err == nil && cfg.Slack.Team == team {
			return t, nil
		}
	}
	found := ""
	err := s.eachTenant(ctx, s.clicks, func(name string, revision int64) error {
		t, err := s.tenantAt(ctx, s.clicks, name, revision)
		if err == nil && t.Slack.Team == team {
			found = name
		}
		return err
	})
	if found == "" {
		return "", errors.Join(ErrNoTenant, err)
	}
	s.teams.Store(team, found)
	return found, nil
}
