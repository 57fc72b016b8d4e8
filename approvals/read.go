package approvals

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
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
	v, f, err := s.lookAs(ctx, pool, id, "")
	return v, f.result, err
}

// lookAs is look, with what the calling key may.
func (s *Service) lookAs(ctx context.Context, pool *pgxpool.Pool, id ID, key string) (v View, f *facts, err error) {
	b := &pgx.Batch{}
	var row *requestRow
	f = &facts{}
	b.Queue(sqlReadRequest, id).QueryRow(func(r pgx.Row) (err error) {
		row, err = scanRequest(r, &v.Pause, &v.ToldAt)
		return err
	})
	b.Queue(sqlReadVotes, id).Query(f.scanVotes)
	b.Queue(sqlReadLedger, id).QueryRow(func(r pgx.Row) (err error) { f.ledger, err = scanLedger(r); return noRows(err) })
	b.Queue(sqlReadPayload, id).QueryRow(func(r pgx.Row) error { return r.Scan(&f.payload, &f.result) })
	if key != "" {
		b.Queue(sqlReadCaller, id, key).QueryRow(f.scanCaller)
	}
	b.Queue(sqlClock).QueryRow(func(r pgx.Row) error { return r.Scan(&f.now) })
	if err := pool.SendBatch(ctx, b).Close(); err != nil {
		if errors.Is(err, pgx.ErrNoRows) {
			return View{}, f, ErrNotFound
		}
		return View{}, f, unavailable(err)
	}
	f.req = row
	pause, told := v.Pause, v.ToldAt
	v = f.view()
	v.Pause, v.ToldAt = pause, told
	if v.Votes == nil {
		v.Votes = []Vote{}
	}
	return v, f, nil
}

// own reads an approval of the key's agent and tools; anybody else's is not found (I22).
func (s *Service) own(ctx context.Context, key Key, id ID) (View, *facts, error) {
	v, f, err := s.lookAs(ctx, s.intake, id, key.ID)
	if err == nil {
		err = f.caller(key)
	}
	if err != nil {
		return View{}, nil, err
	}
	return v, f, nil
}

// Get gives the agent one of its approvals, with the result where there is one.
func (s *Service) Get(ctx context.Context, key Key, id ID) (View, error) {
	v, f, err := s.own(ctx, key, id)
	if err != nil {
		return v, err
	}
	if _, revision, err := s.activeTenant(ctx, s.intake, v.Tenant, false); err == nil && v.Status == Pending && revision != v.ConfigRevision {
		views := []View{v} // the rule may ask other people now
		s.stands(ctx, s.intake, v.Tenant, []*requestRow{f.req}, views)
		v = views[0]
	}
	if f.result == nil {
		return v, nil
	}
	v.Result, err = s.opened(f.result, seal.ResultAAD(v.Tenant, id.String()))
	if err != nil {
		return View{}, fmt.Errorf("%w: result of %s", ErrCorrupt, id)
	}
	return v, nil
}

// watchEvery is how often a waiting reader looks again. It reads one indexed row.
const watchEvery = 200 * time.Millisecond

// Watch is Get that waits until the row is newer than since, or the wait is over. With followChild an approval that was edited answers
// with the newest of its children, at once: since is a version of the approval that is asked for, and its child is newer than any. The
// answer's own id is the one to ask for next.
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

// pageBytes is how much of what agents and tools made one page may hold; the approval that crosses it is the page's last.
const pageBytes = 4 << 20

// One page: at most $6 rows, and of those as many as fit. Returns, with each, how many rows there were to choose from.
var sqlList = statement(`WITH page AS (
		SELECT x.approval_id, sum(x.size) OVER (ORDER BY x.approval_id DESC) - x.size AS before FROM (
			SELECT r.approval_id, coalesce(octet_length(r.snapshot::text), 0) + octet_length(r.edit_diff) + coalesce(octet_length(r.message), 0) AS size
			FROM approval_request r
			WHERE r.tenant_id = $1 AND r.agent = $2 AND ($3 = '' OR r.run_id = $3) AND ($4 = '' OR r.status = $4) AND r.approval_id < $5
				AND ($7::text[] IS NULL OR r.tool_name = ANY ($7))
			ORDER BY r.approval_id DESC LIMIT $6) x)
	SELECT ` + requestColumns + `, p.pause, p.told_at, (SELECT count(*) FROM page)
	FROM page JOIN approval_request r ON r.approval_id = page.approval_id JOIN run_pause p ON p.pause_id = r.pause_id
	WHERE page.before < $8 ORDER BY r.approval_id DESC`)

// List gives the agent's approvals that the key covers, newest first, and the cursor of the next page. A page may be shorter than its
// limit: it ends after pageBytes.
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
	live, found := false, 0
	b := &pgx.Batch{}
	b.Queue(sqlKeyLive, key.ID).QueryRow(func(row pgx.Row) error { return noRows(row.Scan(&live)) })
	b.Queue(sqlList, key.Tenant, key.Agent, filter.RunID, string(filter.Status), before, limit+1, key.Tools, pageBytes).Query(func(rows pgx.Rows) (err error) {
		views, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (View, error) {
			var pause int
			var told *time.Time
			r, err := scanRequest(row, &pause, &told, &found)
			if err != nil {
				return View{}, err
			}
			v := r.view()
			v.Pause, v.ToldAt = pause, told
			return v, nil
		})
		return err
	})
	if err := s.intake.SendBatch(ctx, b).Close(); err != nil {
		return nil, "", unavailable(err)
	}
	if !live {
		return nil, "", revokedKey()
	}
	if found > limit || found > len(views) {
		views = views[:min(len(views), limit)]
		last := views[len(views)-1].ApprovalID
		next = base64.RawURLEncoding.EncodeToString(last[:])
	}
	return views, next, nil
}

// Events is the audit trail of one of the agent's approvals, oldest first.
func (s *Service) Events(ctx context.Context, key Key, id ID) ([]Event, error) {
	if _, _, err := s.own(ctx, key, id); err != nil {
		return nil, err
	}
	return s.events(ctx, s.intake, id)
}

func (s *Service) events(ctx context.Context, pool *pgxpool.Pool, id ID) ([]Event, error) {
	rows, err := pool.Query(ctx, sqlReadEvents, id)
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

// Explanation is what Details shows: the rule as written, why it matched, who may decide, who has voted, what happened. Present is
// how it stands under the configuration that is active now.
type Explanation struct {
	View     View
	RuleText string
	Present
	Events []Event
}

// Explain tells how an approval stands and who may decide it, under the configuration that is active now.
func (s *Service) Explain(ctx context.Context, tenant string, id ID) (Explanation, error) {
	v, f, err := s.lookAs(ctx, s.clicks, id, "")
	if err == nil && v.Tenant != tenant {
		err = ErrNotFound
	}
	if err != nil {
		return Explanation{}, err
	}
	views := []View{v}
	s.stands(ctx, s.clicks, tenant, []*requestRow{f.req}, views)
	out := Explanation{View: views[0], Present: views[0].asks()}
	if made, err := s.tenantAt(ctx, s.clicks, tenant, v.ConfigRevision); err == nil {
		if rule, ok := made.Rule(v.Rule); ok {
			out.RuleText = rule.Text
		}
	}
	out.Events, err = s.events(ctx, s.clicks, id)
	return out, err
}

// listColumns are requestColumns for lists without pages: where arguments are large, the title stands for what was proposed.
var listColumns = strings.NewReplacer(
	"r.snapshot,", "CASE WHEN octet_length(r.snapshot::text) > 8192 THEN json_build_object('title', r.snapshot -> 'title') ELSE r.snapshot END,",
	"r.edit_diff,", "CASE WHEN octet_length(r.edit_diff) > 8192 THEN '' ELSE r.edit_diff END,",
).Replace(requestColumns)

var sqlOpenViews = statement(`SELECT ` + listColumns + ` FROM approval_open o JOIN approval_request r ON r.approval_id = o.approval_id
	WHERE o.tenant_id = $1 ORDER BY o.approval_id DESC LIMIT $2`)

var sqlVotesOf = statement(`SELECT d.approval_id, d.reviewer, d.decision, d.digest, d.reason, d.decided_at, ` + voidVote + ` FROM approval_decision d
	WHERE d.approval_id = ANY ($1) ORDER BY d.decided_at, d.reviewer`)

// Open lists the tenant's approvals that are not over, newest first, with their votes and whom they ask now. Of large arguments only the
// title is given.
func (s *Service) Open(ctx context.Context, tenant string, limit int) ([]View, error) {
	found, err := s.clicks.Query(ctx, sqlOpenViews, tenant, limit)
	if err != nil {
		return nil, unavailable(err)
	}
	open, err := scanRequests(found)
	if err != nil || len(open) == 0 {
		return nil, unavailable(err)
	}
	var views []View
	var pending []*requestRow
	for _, r := range open {
		views = append(views, r.view())
		if r.status == Pending {
			pending = append(pending, r)
		}
	}
	s.stands(ctx, s.clicks, tenant, pending, views)
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
		if err := rows.Scan(&id, &v.By, &v.Decision, &v.Digest, &v.Reason, &v.At, &v.Void); err != nil {
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
