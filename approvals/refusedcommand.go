package approvals

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// RefusedCommand is something that a person asked for and may not: a command, a form, a look, a button of the home tab. Why is a
// word for the audit and the metric: a DenialKind, or RefusedNotAdmin, RefusedStranger or a Code.
type RefusedCommand struct {
	Tenant  string // empty: of no tenant; then it is only counted
	By      Actor
	Surface Surface
	Verb    string // what was asked for, of a fixed set of words
	Why     string
}

// Reasons of refused commands that are no DenialKind.
const (
	RefusedNotAdmin = "not_admin"
	RefusedStranger = "stranger" // of a workspace that is no tenant's
)

// refusedOnce is for how long the same person's same command is audited once: who keeps trying can't fill the trail.
const refusedOnce = time.Minute

// coalescing remembers the refusals that this process has audited lately, so that a flood does not reach the database.
type coalescing struct {
	mu   sync.Mutex
	seen map[string]time.Time
}

// first says whether a key was not seen within refusedOnce.
func (c *coalescing) first(key string, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at, ok := c.seen[key]; ok && now.Sub(at) < refusedOnce {
		return false
	}
	for k, at := range c.seen {
		if now.Sub(at) >= refusedOnce {
			delete(c.seen, k)
		}
	}
	if c.seen == nil {
		c.seen = map[string]time.Time{}
	}
	c.seen[key] = now
	return true
}

func (c *coalescing) forget(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.seen, key)
}

var (
	// Alone and first: two processes that refuse the same at once are one after the other, and the second sees the row of the first.
	sqlLockRefusal = statement(`SELECT pg_advisory_xact_lock(hashtextextended($1, 11))`)
	// Only the newest events are looked through, by their ids; $7 is a little before the minute begins.
	sqlAuditRefused = statement(`WITH e AS (
		INSERT INTO audit_event (tenant_id, kind, actor, surface, detail)
		SELECT $1::text, 'command.refused', $2::text, $3::text, $4::json
		WHERE NOT EXISTS (SELECT 1 FROM audit_event a WHERE a.event_id >= $7 AND a.tenant_id = $1 AND a.kind = 'command.refused' AND a.actor = $2
			AND a.detail ->> 'verb' = $5 AND a.at > clock_timestamp() - $6::interval)
		RETURNING event_id, tenant_id)
	INSERT INTO audit_unsealed (event_id, tenant_id) SELECT event_id, tenant_id FROM e`)
)

// RefusedCommand counts a refusal and audits it: the same person's same command once a minute, whichever process refuses it.
func (s *Service) RefusedCommand(ctx context.Context, r RefusedCommand) error {
	s.metrics.Refused(r.Why)
	if r.Tenant == "" {
		return nil
	}
	key := strings.Join([]string{r.Tenant, string(r.By), r.Verb}, "\x00")
	now := time.Now()
	if !s.refusals.first(key, now) {
		return nil
	}
	detail, err := json.Marshal(map[string]string{"verb": r.Verb, "why": r.Why})
	if err != nil {
		return fmt.Errorf("audit detail: %w", err)
	}
	err = pgx.BeginFunc(ctx, s.clicks, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, sqlLockRefusal, strings.ReplaceAll(key, "\x00", "\n")); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, sqlAuditRefused, r.Tenant, string(r.By), string(r.Surface), detail, r.Verb, refusedOnce, firstV7(now.Add(-2*refusedOnce)))
		return err
	})
	if err != nil {
		s.refusals.forget(key)
	}
	return unavailable(err)
}
