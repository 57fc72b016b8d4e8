package approvals

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

var sqlActiveAuthor = statement(`SELECT r.author FROM config_active a JOIN config_revision r ON r.tenant_id = a.tenant_id AND r.revision = a.revision WHERE a.tenant_id = $1`)

// ActiveAuthor says who made the active configuration of a tenant; ErrNoConfig where there is none.
func (s *Service) ActiveAuthor(ctx context.Context, tenant string) (Actor, error) {
	var by Actor
	err := s.clicks.QueryRow(ctx, sqlActiveAuthor, tenant).Scan(&by)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", ErrNoConfig
	}
	return by, unavailable(err)
}
