package approvals

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/time/rate"
)

// An agent's key is `hp_` and 32 random bytes in base 32. Only its SHA-256 is stored: the key has full entropy, so a slow hash would
// buy nothing. Look-up is by the hash, which leaks nothing about the key in time.
const keyPrefix = "hp_"

var keyEncoding = base32.StdEncoding.WithPadding(base32.NoPadding)

var sqlKeyByHash = statement(`SELECT id, tenant_id, agent, tools FROM api_key WHERE hash = $1 AND revoked_at IS NULL`)

// keyCache remembers keys that were good a moment ago, so that authentication costs no round trip. It only says whose key it is and
// for which tools, which never changes: whatever writes, or gives anything out, reads the key's row again, so that a revocation
// counts at once.
type keyCache struct {
	mu   sync.Mutex
	seen map[[sha256.Size]byte]cachedKey
}

type cachedKey struct {
	key Key
	at  time.Time
}

const (
	keyCacheFor = 10 * time.Second
	keyCacheMax = 4096
)

func (c *keyCache) get(h [sha256.Size]byte) (Key, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k, ok := c.seen[h]
	return k.key, ok && time.Since(k.at) < keyCacheFor
}

func (c *keyCache) put(h [sha256.Size]byte, k Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil || len(c.seen) >= keyCacheMax {
		c.seen = map[[sha256.Size]byte]cachedKey{}
	}
	c.seen[h] = cachedKey{k, time.Now()}
}

// covers says whether a key may be used for a tool.
func (k Key) covers(tool string) bool { return k.Tools == nil || slices.Contains(k.Tools, tool) }

// narrow refuses a tool that the agent may use and this key may not: no setting is missing but a key.
func (k Key) narrow(tool string) *Refusal {
	return refuse(CodeToolNotAllowed, "this key is limited to other tools; use one that covers %q: holdpoint keys create --tenant %s --agent %s --tools %s",
		tool, k.Tenant, k.Agent, strings.Join(append(slices.Clone(k.Tools), tool), ","))
}

// caller holds the key that calls against the request: another tenant's, another agent's or another tool's is not there (I22).
func (f *facts) caller(key Key) error {
	switch {
	case f.req.tenant != key.Tenant || f.req.agent != key.Agent || !key.covers(f.req.tool):
		return ErrNotFound
	case !f.callerLive:
		return revokedKey()
	case !f.callerCovers:
		return ErrNotFound
	}
	return nil
}

func revokedKey() *Refusal {
	return refuse(CodeUnauthorized, "this key was revoked; ask for a new one")
}

var (
	// Whether a key is alive and covers every call of a pause; no row for a key that is not there.
	sqlKeyOverPause = statement(`SELECT k.revoked_at IS NULL, NOT EXISTS (SELECT 1 FROM run_call n JOIN approval_request r ON r.approval_id = n.approval_id
			WHERE n.tenant_id = k.tenant_id AND n.pause_id = $2 AND NOT r.tool_name = ANY (k.tools))
		FROM api_key k WHERE k.id = $1`)
	sqlKeyLive = statement(`SELECT k.revoked_at IS NULL FROM api_key k WHERE k.id = $1`)
)

// over says whether the key may have a pause told, or acknowledge it: it must cover all of the pause's calls, each of which is in
// the message.
func (s *Service) over(ctx context.Context, key Key, pause uuid.UUID) error {
	var live, covers bool
	err := s.intake.QueryRow(ctx, sqlKeyOverPause, key.ID, pause).Scan(&live, &covers)
	switch {
	case noRows(err) != nil:
		return unavailable(err)
	case !live:
		return revokedKey()
	case !covers:
		return ErrNotFound
	}
	return nil
}

// Authenticate finds the agent behind a bearer key. A wrong or revoked key is a Refusal, and says nothing about which it was.
func (s *Service) Authenticate(ctx context.Context, bearer string) (Key, error) {
	no := refuse(CodeUnauthorized, "send Authorization: Bearer hp_… with a key of `holdpoint keys create`")
	body, ok := strings.CutPrefix(bearer, keyPrefix)
	if !ok || len(body) != keyEncoding.EncodedLen(32) {
		return Key{}, no
	}
	h := sha256.Sum256([]byte(bearer))
	if k, ok := s.keys.get(h); ok {
		return k, nil
	}
	var k Key
	err := s.intake.QueryRow(ctx, sqlKeyByHash, h[:]).Scan(&k.ID, &k.Tenant, &k.Agent, &k.Tools)
	if errors.Is(err, pgx.ErrNoRows) {
		return Key{}, no
	}
	if err != nil {
		return Key{}, unavailable(err)
	}
	s.keys.put(h, k)
	return k, nil
}

// KeyRow is a key as operators see it: never the key itself.
type KeyRow struct {
	ID, Tenant, Agent, CreatedBy string
	Tools                        []string
	CreatedAt                    time.Time
	RevokedAt                    *time.Time
}

var (
	sqlLockLine   = statement(`SELECT pg_advisory_xact_lock(hashtextextended($1, 7))`)
	sqlLockActive = statement(`SELECT revision FROM config_active WHERE tenant_id = $1 FOR UPDATE`)
	sqlInsertKey  = statement(`INSERT INTO api_key (id, tenant_id, agent, tools, hash, created_by) VALUES ($1, $2, $3, $4, $5, $6)`)
	sqlListKeys   = statement(`SELECT id, tenant_id, agent, tools, created_by, created_at, revoked_at FROM api_key ORDER BY created_at`)
	sqlRevokeKey  = statement(`UPDATE api_key SET revoked_at = clock_timestamp() WHERE id = $1 AND revoked_at IS NULL RETURNING agent`)
	sqlKeyTenant  = statement(`SELECT tenant_id FROM api_key WHERE id = $1`)
)

// CreateKey makes a key for an agent of the active configuration and returns it once. tools nil covers all the agent's tools.
func (s *Service) CreateKey(ctx context.Context, tenant, agent string, tools []string, by Actor) (key, id string, err error) {
	t, _, err := s.activeTenant(ctx, s.clicks, tenant, true)
	if err != nil {
		return "", "", err
	}
	a, ok := t.Agents[agent]
	if !ok {
		return "", "", fmt.Errorf("the agent %q is not in the configuration of %q; apply it first", agent, tenant)
	}
	for _, tool := range tools {
		if !a.Allows(tool) {
			return "", "", fmt.Errorf("the agent %q is not allowed the tool %q", agent, tool)
		}
	}
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	key = keyPrefix + strings.ToLower(keyEncoding.EncodeToString(b[:]))
	h := sha256.Sum256([]byte(key))
	id = "key_" + strings.ToLower(keyEncoding.EncodeToString(h[:8]))
	err = s.administer(ctx, tenant, by, SurfaceCLI, "key.created", map[string]any{"key": id, "agent": agent, "tools": tools}, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, sqlInsertKey, id, tenant, agent, tools, h[:], string(by))
		return err
	})
	return key, id, err
}

// Keys lists all keys.
func (s *Service) Keys(ctx context.Context) ([]KeyRow, error) {
	rows, err := s.clicks.Query(ctx, sqlListKeys)
	if err != nil {
		return nil, unavailable(err)
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (k KeyRow, err error) {
		return k, row.Scan(&k.ID, &k.Tenant, &k.Agent, &k.Tools, &k.CreatedBy, &k.CreatedAt, &k.RevokedAt)
	})
}

// RevokeKey ends a key. What it proposed and was not claimed yet is revoked at its claim (agent_not_allowed).
func (s *Service) RevokeKey(ctx context.Context, id string, by Actor) error {
	var tenant string
	if err := s.clicks.QueryRow(ctx, sqlKeyTenant, id).Scan(&tenant); err != nil {
		if errors.Is(err, pgx.ErrNoRows) {
			return fmt.Errorf("no key %q; see `holdpoint keys list`", id)
		}
		return unavailable(err)
	}
	return s.administer(ctx, tenant, by, SurfaceCLI, "key.revoked", map[string]any{"key": id}, func(ctx context.Context, tx pgx.Tx) error {
		var agent string
		err := tx.QueryRow(ctx, sqlRevokeKey, id).Scan(&agent)
		if errors.Is(err, pgx.ErrNoRows) {
			return refuse(CodeConflict, "the key %q is revoked already", id)
		}
		return err
	})
}

// limiters are the keys' rates, in this process. Limits are the tenant's per_minute, as a bucket of that size.
type limiters struct {
	mu sync.Mutex
	of map[string]*rate.Limiter
}

func (l *limiters) allow(key string, perMinute int) (time.Duration, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil || len(l.of) > keyCacheMax {
		l.of = map[string]*rate.Limiter{}
	}
	per := rate.Limit(float64(perMinute) / 60)
	r, ok := l.of[key]
	if !ok {
		r = rate.NewLimiter(per, perMinute)
		l.of[key] = r
	}
	if r.Limit() != per {
		r.SetLimit(per)
		r.SetBurst(perMinute)
	}
	if r.Allow() {
		return 0, true
	}
	return time.Duration(float64(time.Second) / float64(per)), false
}
