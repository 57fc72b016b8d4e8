package approvals

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdpoint/holdpoint/approvals/seal"
)

// One approval with its pause, votes and operation, without locks.
var (
	sqlReadRequest = statement(`SELECT ` + requestColumns + `, p.pause, p.told_at FROM approval_request r JOIN run_pause p ON p.pause_id = r.pause_id WHERE r.approval_id = $1`)
	sqlReadLedger  = statement(`SELECT ` + ledgerColumns + ` FROM idempotency_ledger l WHERE l.lineage_id = (SELECT lineage_id FROM approval_request WHERE approval_id = $1) AND l.approval_id = $1`)
	sqlReadEvents  = statement(`SELECT at, kind, coalesce(from_status, ''), coalesce(to_status, ''), actor, surface, detail FROM audit_event WHERE approval_id = $1
		UNION ALL SELECT e.at, e.kind, '', '', e.actor, e.surface, e.detail FROM audit_event e
			WHERE e.approval_id IS NULL AND e.pause_id = (SELECT pause_id FROM approval_request WHERE approval_id = $1)
		ORDER BY 1, 2`)
	sqlReadVersion = statement(`SELECT r.version, r.child_id FROM approval_request r WHERE r.approval_id = $1`)
)

// look reads one approval as it is now, with its result sealed.
func (s *Service) look(ctx context.Context, pool *pgxpool.Pool, id ID) (v View, result []byte, err error) {
	b := &pgx.Batch{}
	var row *requestRow
	f := &facts{}
	b.Queue(sqlReadRequest, id).QueryRow(func(r pgx.Row) (err error) {
		row, err = scanRequest(r, &v.Pause, &v.ToldAt)
		return err
	})
	b.Queue(sqlReadVotes, id).Query(f.scanVotes)
	b.Queue(sqlReadLedger, id).QueryRow(func(r pgx.Row) (err error) { f.ledger, err = scanLedger(r); return noRows(err) })
	b.Queue(sqlReadPayload, id).QueryRow(func(r pgx.Row) error { return r.Scan(&f.payload, &f.result) })
	b.Queue(sqlClock).QueryRow(func(r pgx.Row) error { return r.Scan(&f.now) })
	if err := pool.SendBatch(ctx, b).Close(); err != nil {
		if errors.Is(err, pgx.ErrNoRows) {
			return View{}, nil, ErrNotFound
		}
		return View{}, nil, unavailable(err)
	}
	f.req = row
	pause, told := v.Pause, v.ToldAt
	v = f.view()
	v.Pause, v.ToldAt = pause, told
	if v.Votes == nil {
		v.Votes = []Vote{}
	}
	return v, f.result, nil
}

// own reads an approval of the key's agent; anybody else's is not found (I22).
func (s *Service) own(ctx context.Context, key Key, id ID) (View, []byte, error) {
	v, result, err := s.look(ctx, s.intake, id)
	if err == nil && (v.Tenant != key.Tenant || v.Agent != key.Agent) {
		return View{}, nil, ErrNotFound
	}
	return v, result, err
}

// Get gives the agent one of its approvals, with the result where there is one.
func (s *Service) Get(ctx context.Context, key Key, id ID) (View, error) {
	v, sealedResult, err := s.own(ctx, key, id)
	if err != nil || sealedResult == nil {
		return v, err
	}
	v.Result, err = s.opened(sealedResult, seal.ResultAAD(v.Tenant, id.String()))
	if err != nil {
		return View{}, fmt.Errorf("%w: result of %s", ErrCorrupt, id)
	}
	return v, nil
}

// watchEvery is how often a waiting reader looks again. It reads one indexed row.
const watchEvery = 200 * time.Millisecond

// Watch is Get that waits until the row is newer than since, or the wait is over. followChild goes on to what an edit made of it.
func (s *Service) Watch(ctx context.Context, key Key, id ID, since int64, wait time.Duration, followChild bool) (View, error) {
	if _, _, err := s.own(ctx, key, id); err != nil {
		return View{}, err
	}
	over := time.After(wait)
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		var version int64
		var child ID
		if err := s.intake.QueryRow(ctx, sqlReadVersion, id).Scan(&version, &child); err != nil {
			return View{}, unavailable(err)
		}
		if followChild && !child.IsZero() {
			id, since = child, 0
			continue
		}
		if version > since || wait <= 0 {
			return s.Get(ctx, key, id)
		}
		select {
		case <-ctx.Done():
			return View{}, ctx.Err()
		case <-over:
			return s.Get(ctx, key, id)
		case <-tick.C:
		}
	}
}

// ListFilter narrows a list. Cursor is what the page before returned.
type ListFilter struct {
	RunID  string
	Status Status
	Limit  int
	Cursor string
}

var sqlList = statement(`SELECT ` + requestColumns + `, p.pause, p.told_at FROM approval_request r JOIN run_pause p ON p.pause_id = r.pause_id
	WHERE r.tenant_id = $1 AND r.agent = $2 AND ($3 = '' OR r.run_id = $3) AND ($4 = '' OR r.status = $4) AND r.approval_id < $5
	ORDER BY r.approval_id DESC LIMIT $6`)

// List gives the agent's approvals, newest first, and the cursor of the next page.
func (s *Service) List(ctx context.Context, key Key, filter ListFilter) (views []View, next string, err error) {
	limit := filter.Limit
	if limit < 1 || limit > 200 {
		limit = 50
	}
	before := ID(uuid.Max)
	if filter.Cursor != "" {
		b, err := base64.RawURLEncoding.DecodeString(filter.Cursor)
		if err != nil || len(b) != len(before) {
			return nil, "", refuse(CodeInvalidRequest, "the cursor is not one that a list returned")
		}
		before = ID(b)
	}
	rows, err := s.intake.Query(ctx, sqlList, key.Tenant, key.Agent, filter.RunID, string(filter.Status), before, limit+1)
	if err != nil {
		return nil, "", unavailable(err)
	}
	views, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (View, error) {
		var pause int
		var told *time.Time
		r, err := scanRequest(row, &pause, &told)
		if err != nil {
			return View{}, err
		}
		v := r.view()
		v.Pause, v.ToldAt = pause, told
		return v, nil
	})
	if err != nil {
		return nil, "", unavailable(err)
	}
	if len(views) > limit {
		views = views[:limit]
		last := views[limit-1].ApprovalID
		next = base64.RawURLEncoding.EncodeToString(last[:])
	}
	return views, next, nil
}

// Events is the audit trail of one of the agent's approvals, oldest first.
func (s *Service) Events(ctx context.Context, key Key, id ID) ([]Event, error) {
	if _, _, err := s.own(ctx, key, id); err != nil {
		return nil, err
	}
	return s.events(ctx, id)
}

func (s *Service) events(ctx context.Context, id ID) ([]Event, error) {
	rows, err := s.clicks.Query(ctx, sqlReadEvents, id)
	if err != nil {
		return nil, unavailable(err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (e Event, err error) {
		var detail []byte
		err = row.Scan(&e.At, &e.Kind, &e.From, &e.To, &e.Actor, &e.Surface, &detail)
		e.Detail = detail
		return e, err
	})
	return list, unavailable(err)
}

// Lookup gives any approval of a tenant, for its people and operators; without its result.
func (s *Service) Lookup(ctx context.Context, tenant string, id ID) (View, error) {
	v, _, err := s.look(ctx, s.clicks, id)
	if err == nil && v.Tenant != tenant {
		return View{}, ErrNotFound
	}
	return v, err
}

// Explanation is what Details shows: the rule as written, why it matched, who may decide, who has voted, what happened.
type Explanation struct {
	View     View
	RuleText string
	RuleNow  string // the rule that would cover it under the active configuration; empty: none
	Revision int64  // the active one
	Users    []string
	Groups   []string
	Events   []Event
}

// Explain tells how an approval stands and who may decide it, under the configuration that is active now.
func (s *Service) Explain(ctx context.Context, tenant string, id ID) (Explanation, error) {
	v, err := s.Lookup(ctx, tenant, id)
	if err != nil {
		return Explanation{}, err
	}
	out := Explanation{View: v, Users: v.Scope.Users, Groups: v.Scope.Groups}
	if made, err := s.tenantAt(ctx, s.clicks, tenant, v.ConfigRevision); err == nil {
		if rule, ok := made.Rule(v.Rule); ok {
			out.RuleText = rule.Text
		}
	}
	if now, revision, err := s.activeTenant(ctx, s.clicks, tenant, true); err == nil {
		out.Revision = revision
		if rule, ok := now.Rule(v.Rule); ok {
			out.RuleNow, out.Users, out.Groups = rule.Name, rule.Reviewers.Users, rule.Reviewers.Groups
		}
	}
	out.Events, err = s.events(ctx, id)
	return out, err
}

var sqlOpenViews = statement(`SELECT ` + requestColumns + ` FROM approval_open o JOIN approval_request r ON r.approval_id = o.approval_id
	WHERE o.tenant_id = $1 ORDER BY o.approval_id DESC LIMIT $2`)

var sqlVotesOf = statement(`SELECT approval_id, reviewer, decision, digest, reason, decided_at FROM approval_decision WHERE approval_id = ANY ($1) ORDER BY decided_at, reviewer`)

// Open lists the tenant's approvals that are not over, newest first, with their votes.
func (s *Service) Open(ctx context.Context, tenant string, limit int) ([]View, error) {
	views, err := s.views(ctx, sqlOpenViews, tenant, limit)
	if err != nil || len(views) == 0 {
		return views, err
	}
	at := map[ID]int{}
	ids := make([]ID, len(views))
	for i, v := range views {
		at[v.ApprovalID], ids[i] = i, v.ApprovalID
	}
	rows, err := s.clicks.Query(ctx, sqlVotesOf, ids)
	if err != nil {
		return nil, unavailable(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id ID
		var v Vote
		if err := rows.Scan(&id, &v.By, &v.Decision, &v.Digest, &v.Reason, &v.At); err != nil {
			return nil, unavailable(err)
		}
		views[at[id]].Votes = append(views[at[id]].Votes, v)
	}
	return views, unavailable(rows.Err())
}

func (s *Service) views(ctx context.Context, sql string, args ...any) ([]View, error) {
	rows, err := s.clicks.Query(ctx, sql, args...)
	if err != nil {
		return nil, unavailable(err)
	}
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (View, error) {
		r, err := scanRequest(row)
		if err != nil {
			return View{}, err
		}
		return r.view(), nil
	})
	return out, unavailable(err)
}
