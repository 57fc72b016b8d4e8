package approvals

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdpoint/holdpoint/approvals/rules"
)

var (
	sqlNewActive      = statement(`INSERT INTO config_active (tenant_id, revision) VALUES ($1, 0) ON CONFLICT (tenant_id) DO NOTHING`)
	sqlInsertRevision = statement(`INSERT INTO config_revision (tenant_id, revision, body, author) VALUES ($1, $2, $3, $4)`)
	sqlSetActive      = statement(`UPDATE config_active SET revision = $2 WHERE tenant_id = $1`)
	sqlOpenOf         = statement(`SELECT approval_id FROM approval_open WHERE tenant_id = $1 ORDER BY approval_id`)
)

// Applied is what `config apply` did to one tenant.
type Applied struct {
	Tenant   string
	Revision int64
	Changed  bool
	Ended    []View // waiting approvals that the new configuration cannot carry: migration_required
}

// Apply makes a configuration the active one of each tenant that it names; other tenants stay. It is the one way in. The revision,
// its activation and the audit row commit together, under config_active FOR UPDATE: every decision and claim sees the one before
// or the one after, whole. Then the approvals that wait are held against it, each in a transaction of its own.
func (s *Service) Apply(ctx context.Context, cfg *rules.Config, author Actor) ([]Applied, error) {
	var out []Applied
	if err := s.oneTeamEach(ctx, cfg); err != nil {
		return nil, err
	}
	for _, name := range cfg.Names() {
		a, err := s.applyTenant(ctx, cfg.Tenants[name], author)
		if err != nil {
			return out, fmt.Errorf("tenant %s: %w", name, err)
		}
		if a.Changed {
			if a.Ended, err = s.migrate(ctx, name); err != nil {
				return out, fmt.Errorf("tenant %s: revision %d is active; its waiting approvals were not all checked: %w", name, a.Revision, err)
			}
		}
		out = append(out, a)
	}
	return out, nil
}

// oneTeamEach refuses two tenants in one Slack workspace: a click or a command could then not say whose it is.
func (s *Service) oneTeamEach(ctx context.Context, cfg *rules.Config) error {
	owner := map[string]string{}
	for _, name := range cfg.Names() {
		team := cfg.Tenants[name].Slack.Team
		if other, taken := owner[team]; taken {
			return refuse(CodeInvalidRequest, "the tenants %s and %s name the same Slack workspace %s; a workspace belongs to one tenant", other, name, team)
		}
		owner[team] = name
	}
	return s.eachTenant(ctx, s.clicks, func(name string, revision int64) error {
		if cfg.Tenants[name] != nil {
			return nil
		}
		t, err := s.tenantAt(ctx, s.clicks, name, revision)
		if err != nil {
			return nil //nolint:nilerr // a configuration that cannot be read claims nothing
		}
		if other, taken := owner[t.Slack.Team]; taken {
			return refuse(CodeInvalidRequest, "the tenant %s, which is active, names the same Slack workspace as %s; a workspace belongs to one tenant", name, other)
		}
		return nil
	})
}

func (s *Service) applyTenant(ctx context.Context, t *rules.Tenant, author Actor) (Applied, error) {
	out := Applied{Tenant: t.Name}
	err := pgx.BeginFunc(ctx, s.clicks, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, sqlLockLine, t.Name); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, sqlNewActive, t.Name); err != nil {
			return err
		}
		var now int64
		if err := tx.QueryRow(ctx, sqlLockActive, t.Name).Scan(&now); err != nil {
			return err
		}
		if now > 0 {
			var body []byte
			if err := tx.QueryRow(ctx, sqlRevision, t.Name, now).Scan(&body); err != nil {
				return err
			}
			if string(body) == string(t.Body()) {
				out.Revision = now
				return nil
			}
		}
		out.Revision, out.Changed = now+1, true
		if _, err := tx.Exec(ctx, sqlInsertRevision, t.Name, out.Revision, t.Body(), string(author)); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, sqlSetActive, t.Name, out.Revision); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, sqlRingHeld, t.Name); err != nil { // a window may have opened: the next sweep looks
			return err
		}
		return audit(ctx, tx, t.Name, ID{}, uuid.UUID{}, "config.applied", author, SurfaceCLI, map[string]any{"revision": out.Revision, "from": now})
	})
	if err == nil {
		s.active.Store(t.Name, out.Revision)
	}
	return out, unavailable(err)
}

// migrate ends the waiting approvals whose version or tool the active configuration no longer has.
func (s *Service) migrate(ctx context.Context, tenant string) ([]View, error) {
	ids, err := s.openOf(ctx, tenant)
	if err != nil {
		return nil, err
	}
	var out []View
	for _, id := range ids {
		v, done, err := s.transition(ctx, s.clicks, id, want{}, func(f *facts) (*swap, error) {
			if f.req.status != Pending && f.req.status != Approved {
				return nil, nil
			}
			_, no := f.registered(executionCheck{})
			if no == nil || no.end != MigrationRequired {
				return nil, nil
			}
			w := f.req.moves(MigrationRequired, "approval.migration_required", System, SurfaceSystem)
			w.reason, w.settle, w.outbox, w.ledger = no.reason, true, []string{OutboxCard}, f.giveUp(no.reason)
			return w, nil
		})
		if err != nil && !errors.Is(err, ErrNotFound) {
			return out, err
		}
		if done {
			out = append(out, v)
		}
	}
	return out, nil
}

func (s *Service) openOf(ctx context.Context, tenant string) ([]ID, error) {
	rows, err := s.clicks.Query(ctx, sqlOpenOf, tenant)
	if err != nil {
		return nil, unavailable(err)
	}
	return pgx.CollectRows(rows, pgx.RowTo[ID])
}

// ActiveTenant gives the active configuration and its revision.
func (s *Service) ActiveTenant(ctx context.Context, tenant string) (*rules.Tenant, int64, error) {
	return s.activeTenant(ctx, s.clicks, tenant, true)
}

// Tenants names the tenants that have a configuration.
func (s *Service) Tenants(ctx context.Context) ([]string, error) {
	var out []string
	err := s.eachTenant(ctx, s.clicks, func(name string, _ int64) error { out = append(out, name); return nil })
	return out, err
}
