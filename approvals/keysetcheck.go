package approvals

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/holdpoint/holdpoint/approvals/seal"
)

// ErrOtherKeyset says that the keyset is not the one that this database's values were sealed with.
var ErrOtherKeyset = errors.New("the keyset doesn't open what this database holds")

var sqlNewestSealed = statement(`SELECT r.tenant_id, r.approval_id, p.arguments FROM approval_request r JOIN approval_payload p ON p.approval_id = r.approval_id
	ORDER BY r.approval_id DESC LIMIT 1`)

// CheckKeyset opens the newest sealed value of the database and tells nothing of it. held is false where the database has none yet;
// ErrOtherKeyset where the keyset can't open it. A keyset that only seals and opens its own would pass any other check, and fail every
// decision.
func (s *Service) CheckKeyset(ctx context.Context) (held bool, err error) {
	var tenant string
	var id ID
	var column []byte
	err = s.clicks.QueryRow(ctx, sqlNewestSealed).Scan(&tenant, &id, &column)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return false, nil
	case err != nil:
		return false, unavailable(err)
	}
	_, err = s.opened(column, seal.ArgumentsAAD(tenant, id.String()))
	switch {
	case errors.Is(err, ErrUnavailable):
		return true, err
	case err != nil:
		return true, ErrOtherKeyset
	}
	return true, nil
}
