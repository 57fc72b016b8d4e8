package approvals

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdpoint/holdpoint/approvals/rules"
	"github.com/holdpoint/holdpoint/approvals/seal"
)

// Directory brings the mirror of people and groups up to date. It fails closed: an error means that nothing was confirmed.
type Directory interface {
	Fresh(ctx context.Context, tenant string, groups, users []string, maxAge time.Duration) error
}

// Options are what a process gives the core. The pools may be one and the same.
type Options struct {
	Clicks    *pgxpool.Pool // decisions and commands
	Intake    *pgxpool.Pool // agents
	Work      *pgxpool.Pool // relay, claims, outcomes, sweeps
	Sealer    *seal.Sealer
	Directory Directory // nil: nothing can be refreshed, so what is stale holds
	Metrics   Metrics   // nil: none
	Log       *slog.Logger
	// Woke is told what a commit promised, right after it; it must not block. nil: the relay's poll finds it.
	Woke func([]OutboxItem)
}

// Service is the core: every transition of every approval goes through it.
type Service struct {
	clicks, intake, work *pgxpool.Pool
	sealer               *seal.Sealer
	directory            Directory
	metrics              Metrics
	log                  *slog.Logger
	woke                 func([]OutboxItem)

	tenants  recall[revisionKey, *rules.Tenant] // revisions are immutable
	active   recall[string, int64]              // tenant → the last seen active revision, a hint that every transaction checks
	teams    recall[string, string]             // Slack team → tenant, the same kind of hint
	keys     keyCache
	rates    limiters
	turns    *turns
	round    round
	refusals coalescing
}

// New makes a core.
func New(o Options) *Service {
	s := &Service{
		clicks: o.Clicks, intake: o.Intake, work: o.Work, sealer: o.Sealer, directory: o.Directory,
		metrics: o.Metrics, log: o.Log, woke: o.Woke, turns: newTurns(),
	}
	if s.metrics == nil {
		s.metrics = noMetrics{}
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.woke == nil {
		s.woke = func([]OutboxItem) {}
	}
	return s
}

// recall is what the process remembers; safe for concurrent use.
type recall[K comparable, V any] struct{ m sync.Map }

func (r *recall[K, V]) Store(key K, value V) { r.m.Store(key, value) }

func (r *recall[K, V]) Load(key K) (V, bool) {
	v, _ := r.m.Load(key)
	value, ok := v.(V)
	return value, ok
}

type revisionKey struct {
	tenant   string
	revision int64
}

var (
	sqlActive   = statement(`SELECT revision FROM config_active WHERE tenant_id = $1`)
	sqlRevision = statement(`SELECT body FROM config_revision WHERE tenant_id = $1 AND revision = $2`)
)

// querier is a pool, a connection or a transaction.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// tenantAt gives the compiled configuration of a revision. A body that no longer compiles is an error: nothing is decided or
// executed under a policy that cannot be read (I4).
func (s *Service) tenantAt(ctx context.Context, q querier, tenant string, revision int64) (*rules.Tenant, error) {
	k := revisionKey{tenant, revision}
	if t, ok := s.tenants.Load(k); ok {
		return t, nil
	}
	var body []byte
	if err := q.QueryRow(ctx, sqlRevision, tenant, revision).Scan(&body); err != nil {
		return nil, fmt.Errorf("read configuration revision %d: %w", revision, err)
	}
	t, err := rules.Compile(tenant, body)
	if err != nil {
		return nil, fmt.Errorf("configuration revision %d: %w", revision, err)
	}
	s.tenants.Store(k, t)
	return t, nil
}

// activeTenant gives the active configuration as last seen; the transaction that uses it must read config_active again.
func (s *Service) activeTenant(ctx context.Context, q querier, tenant string, reload bool) (*rules.Tenant, int64, error) {
	if !reload {
		if r, ok := s.active.Load(tenant); ok {
			t, err := s.tenantAt(ctx, q, tenant, r)
			return t, r, err
		}
	}
	var revision int64
	if err := q.QueryRow(ctx, sqlActive, tenant).Scan(&revision); err != nil {
		if errors.Is(err, pgx.ErrNoRows) {
			return nil, 0, ErrNoConfig
		}
		return nil, 0, unavailable(err)
	}
	s.active.Store(tenant, revision)
	t, err := s.tenantAt(ctx, q, tenant, revision)
	return t, revision, err
}

// ErrNoConfig says that the tenant has no configuration: nothing is taken, decided or executed.
var ErrNoConfig = errors.New("the tenant has no configuration; run `holdpoint config apply`")

// OutboxItem is one promise of a commit. Subject is an approval's id for `card` and `execute`, a pause's for `resume`.
type OutboxItem struct {
	ID      uuid.UUID
	Kind    string
	Subject uuid.UUID
}

// The outbox's kinds.
const (
	OutboxCard    = "card"    // make the card match the row
	OutboxExecute = "execute" // claim and run, or take over
	OutboxResume  = "resume"  // tell the agent
)
