package approvals

import (
	"testing"

	"github.com/holdpoint/holdpoint/migrations/pgtest"
)

// Every SQL text of the package is valid against the migrated schema.
func TestStatementsPrepare(t *testing.T) {
	t.Parallel()
	pool, err := OpenPool(t.Context(), pgtest.New(t), PoolOptions{Name: "statements", Max: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if err := pool.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
}
