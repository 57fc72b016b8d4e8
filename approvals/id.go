package approvals

import (
	"database/sql/driver"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"
	"go.jetify.com/typeid"
)

// ID names an approval: a UUIDv7, written `apr_` and 26 characters of base 32 (the TypeID specification) everywhere outside Postgres.
type ID uuid.UUID

const idPrefix = "apr"

// NewID makes an id whose order follows time, so that a new row lands at the end of its index.
func NewID() ID { return ID(newV7()) }

// ParseID reads `apr_…`. Anything else is an error that does not repeat the input.
func ParseID(s string) (ID, error) {
	t, err := typeid.FromString(s)
	if err != nil || t.Prefix() != idPrefix {
		return ID{}, fmt.Errorf("not an approval id: want %q and 26 characters", idPrefix+"_")
	}
	u, err := uuid.FromBytes(t.UUIDBytes())
	if err != nil {
		return ID{}, fmt.Errorf("not an approval id")
	}
	return ID(u), nil
}

// String is the outside form; the zero id is the empty string.
func (id ID) String() string {
	if id.IsZero() {
		return ""
	}
	t, err := typeid.FromUUIDBytesWithPrefix(idPrefix, id[:])
	if err != nil {
		return uuid.UUID(id).String()
	}
	return t.String()
}

// IsZero says that no approval is named.
func (id ID) IsZero() bool { return id == ID{} }

// MarshalText is String.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText is ParseID; the empty text is the zero id.
func (id *ID) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		*id = ID{}
		return nil
	}
	v, err := ParseID(string(b))
	if err == nil {
		*id = v
	}
	return err
}

// UUIDValue lets pgx send the id as a uuid; the zero id is NULL.
func (id ID) UUIDValue() (pgtype.UUID, error) {
	return pgtype.UUID{Bytes: id, Valid: !id.IsZero()}, nil
}

// ScanUUID lets pgx read a uuid; NULL is the zero id.
func (id *ID) ScanUUID(v pgtype.UUID) error {
	*id = ID{}
	if v.Valid {
		*id = ID(v.Bytes)
	}
	return nil
}

// Value is for database/sql callers.
func (id ID) Value() (driver.Value, error) {
	if id.IsZero() {
		return nil, nil
	}
	return uuid.UUID(id).String(), nil
}

// newV7 is a time-ordered uuid. The random source of this process failing is not survivable.
func newV7() uuid.UUID { return uuid.Must(uuid.NewV7()) }
