package approvals

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdpoint/holdpoint/approvals/crashpoint"
	"github.com/holdpoint/holdpoint/approvals/rules"
)

// The facts of an intake, in one round trip. The run's advisory lock comes first and alone: two intakes of one run are one after
// the other, so a repeat always finds what the first one made. Then the requests of a pause that is not told yet (locked, in id
// order, for carry-over), then the FOR SHARE rows, then what is judged.
var (
	sqlLockRun    = statement(`SELECT pg_advisory_xact_lock($1)`)
	sqlLockUntold = statement(`SELECT ` + requestColumns + `, n.approval_id IS NOT NULL
		FROM run_pause p JOIN approval_request r ON r.pause_id = p.pause_id
		LEFT JOIN run_call n ON n.tenant_id = r.tenant_id AND n.pause_id = r.pause_id AND n.approval_id = r.approval_id
		WHERE p.tenant_id = $1 AND p.agent = $2 AND p.run_id = $3 AND p.intake_key <> $4
			AND p.told_at IS NULL AND p.superseded_at IS NULL AND p.stopped_at IS NULL
			AND NOT EXISTS (SELECT 1 FROM run_pause q WHERE q.tenant_id = $1 AND q.agent = $2 AND q.run_id = $3 AND q.intake_key = $4)
		ORDER BY r.approval_id FOR UPDATE OF r`)
	// The operations of those requests, after their locks: a claim that was quicker is seen.
	sqlLockUntoldLedgers = statement(`SELECT ` + ledgerColumns + ` FROM idempotency_ledger l WHERE l.lineage_id IN (
			SELECT r.lineage_id FROM run_pause p JOIN approval_request r ON r.pause_id = p.pause_id
			WHERE p.tenant_id = $1 AND p.agent = $2 AND p.run_id = $3 AND p.told_at IS NULL AND p.superseded_at IS NULL AND p.stopped_at IS NULL)
		ORDER BY l.lineage_id FOR UPDATE`)
	sqlShareLineOf   = statement(`SELECT pg_advisory_xact_lock_shared(hashtextextended($1, 7))`)
	sqlShareActiveOf = statement(`SELECT revision FROM config_active WHERE tenant_id = $1 FOR SHARE`)
	sqlShareUsersOf  = statement(`SELECT u.user_id, u.team_id, u.name, u.deleted, u.restricted, u.ultra_restricted, u.bot, u.invited, u.stranger, u.synced_at
		FROM slack_user u WHERE u.tenant_id = $1 AND u.user_id = ANY ($2) ORDER BY u.user_id FOR SHARE`)
	// The groups that $2 are in, and those that conditions ask for.
	sqlShareGroupsOf = statement(`SELECT g.group_id FROM slack_group g WHERE g.tenant_id = $1 AND (g.group_id = ANY ($3) OR g.group_id IN (
		SELECT m.group_id FROM slack_group_member m WHERE m.tenant_id = $1 AND m.user_id = ANY ($2))) ORDER BY g.group_id FOR SHARE`)
	sqlReadGroupsOf = statement(`SELECT g.group_id, g.handle, g.enabled, g.synced_at FROM slack_group g WHERE g.tenant_id = $1`)
	// Who could decide: the requester's memberships, and everybody in the groups that the rules name, up to a number beyond any quorum.
	sqlReadMembersOf = statement(`SELECT m.group_id, m.user_id FROM slack_group_member m WHERE m.tenant_id = $1 AND m.user_id = ANY ($2)
		UNION SELECT g.id, l.user_id FROM unnest($3::text[]) AS g (id) CROSS JOIN LATERAL (
			SELECT m.user_id FROM slack_group_member m JOIN slack_user u ON u.tenant_id = m.tenant_id AND u.user_id = m.user_id
			WHERE m.tenant_id = $1 AND m.group_id = g.id AND u.team_id = $4 AND NOT (u.deleted OR u.restricted OR u.ultra_restricted OR u.bot OR u.invited OR u.stranger) LIMIT 120) l`)
	// Of the reviewers named one by one: those that are known to count for nothing.
	sqlReadUnfit = statement(`SELECT u.user_id FROM slack_user u WHERE u.tenant_id = $1 AND u.user_id = ANY ($2)
		AND (u.team_id <> $3 OR u.deleted OR u.restricted OR u.ultra_restricted OR u.bot OR u.invited OR u.stranger)`)
	sqlReadDoor = statement(`SELECT 'block', b.user_id FROM blocked_user b WHERE b.active AND b.tenant_id = $1
		UNION ALL SELECT 'key', k.id FROM api_key k WHERE k.id = $2 AND k.tenant_id = $1 AND k.agent = $3 AND k.revoked_at IS NULL`)
	sqlReadRepeat = statement(`SELECT p.pause_id, p.pause FROM run_pause p WHERE p.tenant_id = $1 AND p.agent = $2 AND p.run_id = $3 AND p.intake_key = $4`)
	sqlReadRun    = statement(`SELECT coalesce((SELECT max(p.pause) FROM run_pause p WHERE p.tenant_id = $1 AND p.agent = $2 AND p.run_id = $3), 0),
		(SELECT count(*) FROM approval_open o JOIN approval_request r ON r.approval_id = o.approval_id WHERE o.tenant_id = $1 AND o.run_id = $3 AND r.agent = $2)`)
	// What the run may propose afresh, newest first, but what a proposal has replaced already.
	sqlReadReplaced = statement(`SELECT r.approval_id, r.call_path, r.tool_call_id, r.tool_name, r.target FROM approval_request r
		WHERE r.tenant_id = $1 AND r.agent = $2 AND r.run_id = $3 AND r.status = 'migration_required'
			AND NOT EXISTS (SELECT 1 FROM approval_request n WHERE n.tenant_id = $1 AND n.agent = $2 AND n.run_id = $3 AND n.replaces_id = r.approval_id)
		ORDER BY r.approval_id DESC LIMIT 500`)
)

// intakeFacts are what an intake's transaction has locked and read.
type intakeFacts struct {
	facts
	untold   []untold
	repeat   uuid.UUID
	pause    int // of the repeat
	last     int // the run's newest pause
	open     int // calls of the run that are not over
	replaced []ended
	unfit    map[string]bool // named reviewers who count for nothing
}

// ended is an approval that its run may propose afresh.
type ended struct {
	id                   ID
	path                 []string
	callID, tool, target string
}

// untold is an approval of a pause that has not been told yet.
type untold struct {
	req    *requestRow
	ledger *ledgerRow
	named  bool // the call's current approval (not an edited parent)
}

func (s *Service) beginIntake(ctx context.Context, c *pgx.Conn, d *draft, tenant *rules.Tenant) (*intakeFacts, error) {
	named, groups := reviewersOf(tenant)
	f := &intakeFacts{unfit: map[string]bool{}}
	f.users, f.groups, f.members, f.blocked = map[string]person{}, map[string]group{}, map[membership]bool{}, map[string]bool{}
	f.stops = map[string]bool{}
	k, in := d.key, d.in
	people := []string{}
	if u := slackUser(in.Requester); u != "" {
		people = append(people, u)
	}
	b := &pgx.Batch{}
	b.Queue(sqlBegin)
	b.Queue(sqlLockRun, lockKey(k.Tenant, k.Agent, in.RunID))
	b.Queue(sqlLockUntold, k.Tenant, k.Agent, in.RunID, d.intake).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var u untold
			var err error
			if u.req, err = scanRequest(rows, &u.named); err != nil {
				return err
			}
			f.untold = append(f.untold, u)
		}
		return rows.Err()
	})
	b.Queue(sqlLockUntoldLedgers, k.Tenant, k.Agent, in.RunID).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			l, err := scanLedger(rows)
			if err != nil {
				return err
			}
			for i := range f.untold {
				if f.untold[i].req.id == l.approvalID {
					f.untold[i].ledger = l
				}
			}
		}
		return rows.Err()
	})
	b.Queue(sqlShareLineOf, k.Tenant)
	b.Queue(sqlShareActiveOf, k.Tenant).QueryRow(func(row pgx.Row) error { return row.Scan(&f.revision) })
	b.Queue(sqlShareUsersOf, k.Tenant, people).Query(f.scanUsers)
	b.Queue(sqlShareGroupsOf, k.Tenant, people, list(conditionGroups(tenant))).Query(f.scanLocked)
	b.Queue(sqlReadGroupsOf, k.Tenant).Query(f.scanGroups)
	b.Queue(sqlReadMembersOf, k.Tenant, people, list(groups), tenant.Slack.Team).Query(f.scanMembers)
	b.Queue(sqlReadUnfit, k.Tenant, list(named), tenant.Slack.Team).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var id string
			if err := rows.Scan(&id); err != nil {
				return err
			}
			f.unfit[id] = true
		}
		return rows.Err()
	})
	b.Queue(sqlReadDoor, k.Tenant, k.ID, k.Agent).Query(f.scanStops)
	b.Queue(sqlReadRepeat, k.Tenant, k.Agent, in.RunID, d.intake).QueryRow(func(row pgx.Row) error { return noRows(row.Scan(&f.repeat, &f.pause)) })
	b.Queue(sqlReadRun, k.Tenant, k.Agent, in.RunID).QueryRow(func(row pgx.Row) error { return row.Scan(&f.last, &f.open) })
	b.Queue(sqlReadReplaced, k.Tenant, k.Agent, in.RunID).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var e ended
			if err := rows.Scan(&e.id, &e.path, &e.callID, &e.tool, &e.target); err != nil {
				return err
			}
			f.replaced = append(f.replaced, e)
		}
		return rows.Err()
	})
	b.Queue(sqlClock).QueryRow(func(row pgx.Row) error { return row.Scan(&f.now) })
	if err := c.SendBatch(ctx, b).Close(); err != nil {
		if errors.Is(err, pgx.ErrNoRows) && f.revision == 0 {
			return nil, ErrNoConfig
		}
		return nil, unavailable(err)
	}
	return f, nil
}

// submitOnce runs the transaction of one intake.
func (s *Service) submitOnce(ctx context.Context, tenant *rules.Tenant, revision int64, d *draft, plan []prepared) (Pause, error) {
	c, err := s.intake.Acquire(ctx)
	if err != nil {
		return Pause{}, unavailable(err)
	}
	defer c.Release()
	f, err := s.beginIntake(ctx, c.Conn(), d, tenant)
	if err != nil {
		return Pause{}, err
	}
	rollback := func() { _, _ = c.Exec(context.WithoutCancel(ctx), "ROLLBACK") } // a failure closes the connection, which rolls back too
	if !f.keyLive {
		rollback()
		return Pause{}, revokedKey()
	}
	if f.repeat != (uuid.UUID{}) {
		if no := d.uncovered(); no != nil {
			rollback()
			return Pause{}, no
		}
		p, err := s.readPause(ctx, c.Conn(), f.repeat)
		rollback()
		p.Repeat = true
		return p, err
	}
	if f.revision != revision {
		rollback()
		return Pause{}, errMoved
	}
	f.tenant = tenant
	b := &pgx.Batch{}
	w, err := s.compose(f, d, plan)
	if err != nil {
		rollback()
		return Pause{}, err
	}
	if err := w.queue(b); err != nil {
		rollback()
		return Pause{}, err
	}
	crashpoint.At("intake.begun")
	if err := finish(ctx, c.Conn(), b); err != nil {
		var pg *pgconn.PgError
		if errors.As(err, &pg) && pg.Code == "23502" && pg.ColumnName == "open_calls" {
			return Pause{}, errMoved
		}
		return Pause{}, unavailableUnlessAmbiguous(err)
	}
	crashpoint.At("intake.committed")
	return s.answer(ctx, c.Conn(), f, w)
}

// answer tells a fresh pause from what was just written; only an intake that carried older calls over reads them again.
func (s *Service) answer(ctx context.Context, c *pgx.Conn, f *intakeFacts, w *composed) (Pause, error) {
	w.wake(ctx, s, f.now)
	if len(w.carried) > 0 || len(w.decided) > 0 {
		return s.readPause(ctx, c, w.pauseID)
	}
	p := Pause{RunID: w.d.in.RunID, Pause: w.number}
	for _, n := range w.fresh {
		v := n.row.view()
		v.Pause, v.Now = w.number, f.now
		p.Approvals = append(p.Approvals, v)
	}
	return p, nil
}

var sqlPauseViews = statement(`SELECT ` + requestColumns + `, p.pause FROM run_call n JOIN approval_request r ON r.approval_id = n.approval_id
	JOIN run_pause p ON p.pause_id = n.pause_id WHERE n.pause_id = $1 ORDER BY r.lineage_id`)

// readPause gives a pause as it is now, its calls in the order of the intake (their ids follow it).
func (s *Service) readPause(ctx context.Context, c *pgx.Conn, pause uuid.UUID) (Pause, error) {
	rows, err := c.Query(ctx, sqlPauseViews, pause)
	if err != nil {
		return Pause{}, unavailable(err)
	}
	defer rows.Close()
	var p Pause
	for rows.Next() {
		r, err := scanRequest(rows, &p.Pause)
		if err != nil {
			return Pause{}, err
		}
		p.RunID = r.runID
		v := r.view()
		v.Pause = p.Pause
		p.Approvals = append(p.Approvals, v)
	}
	return p, unavailable(rows.Err())
}

// reviewersOf are all the people and groups that a rule of the tenant may ask.
func reviewersOf(t *rules.Tenant) (users, groups []string) {
	for _, r := range t.Rules {
		users, groups = append(users, r.Reviewers.Users...), append(groups, r.Reviewers.Groups...)
	}
	return append(users, t.Admins.Users...), append(groups, t.Admins.Groups...)
}

func unavailableUnlessAmbiguous(err error) error {
	if errors.Is(err, errAmbiguous) {
		return err
	}
	if errors.Is(err, errRolledBack) {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return unavailable(err)
}
