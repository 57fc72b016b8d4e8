package approvals

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdpoint/holdpoint/approvals/rules"
)

// The facts of an intake, in one round trip. The run's advisory lock comes first and alone: two intakes of one run are one after
// the other, so a repeat always finds what the first one made. Then the requests of a pause that is not told yet (locked, in id
// order, for carry-over), then the FOR SHARE rows, then what is judged.
var (
	sqlLockRun    = statement(`SELECT pg_advisory_xact_lock($1)`)
	sqlLockUntold = statement(`SELECT ` + requestColumns + `, l.state, n.approval_id IS NOT NULL
		FROM run_pause p JOIN approval_request r ON r.pause_id = p.pause_id LEFT JOIN idempotency_ledger l ON l.lineage_id = r.lineage_id
		LEFT JOIN run_call n ON n.tenant_id = r.tenant_id AND n.pause_id = r.pause_id AND n.approval_id = r.approval_id
		WHERE p.tenant_id = $1 AND p.agent = $2 AND p.run_id = $3 AND p.intake_key <> $4
			AND p.told_at IS NULL AND p.superseded_at IS NULL AND p.stopped_at IS NULL
			AND NOT EXISTS (SELECT 1 FROM run_pause q WHERE q.tenant_id = $1 AND q.agent = $2 AND q.run_id = $3 AND q.intake_key = $4)
		ORDER BY r.approval_id FOR UPDATE OF r`)
	sqlShareActiveOf = statement(`SELECT revision FROM config_active WHERE tenant_id = $1 FOR SHARE`)
	sqlShareUsersOf  = statement(`SELECT u.user_id, u.team_id, u.name, u.deleted, u.restricted, u.ultra_restricted, u.bot, u.invited, u.stranger, u.synced_at
		FROM slack_user u WHERE u.tenant_id = $1 AND u.user_id = ANY ($2) ORDER BY u.user_id FOR SHARE`)
	sqlShareGroupsOf = statement(`SELECT g.group_id FROM slack_group g WHERE g.tenant_id = $1 AND g.group_id IN (
		SELECT m.group_id FROM slack_group_member m WHERE m.tenant_id = $1 AND m.user_id = ANY ($2)) ORDER BY g.group_id FOR SHARE`)
	sqlReadGroupsOf = statement(`SELECT g.group_id, g.handle, g.enabled, g.synced_at FROM slack_group g WHERE g.tenant_id = $1`)
	// Who could decide: the requester's memberships, and everybody in the groups that the rules name, up to a number beyond any quorum.
	sqlReadMembersOf = statement(`SELECT m.group_id, m.user_id FROM slack_group_member m WHERE m.tenant_id = $1 AND m.user_id = ANY ($2)
		UNION (SELECT m.group_id, m.user_id FROM slack_group_member m JOIN slack_user u ON u.tenant_id = m.tenant_id AND u.user_id = m.user_id
			WHERE m.tenant_id = $1 AND m.group_id = ANY ($3) AND NOT (u.deleted OR u.restricted OR u.ultra_restricted OR u.bot OR u.invited OR u.stranger) LIMIT 1000)`)
	sqlReadDoor = statement(`SELECT 'block', b.user_id FROM blocked_user b WHERE b.tenant_id = $1
		UNION ALL SELECT 'key', k.id FROM api_key k WHERE k.id = $2 AND k.tenant_id = $1 AND k.agent = $3 AND k.revoked_at IS NULL`)
	sqlReadRepeat = statement(`SELECT p.pause_id, p.pause FROM run_pause p WHERE p.tenant_id = $1 AND p.agent = $2 AND p.run_id = $3 AND p.intake_key = $4`)
	sqlReadRun    = statement(`SELECT coalesce((SELECT max(p.pause) FROM run_pause p WHERE p.tenant_id = $1 AND p.agent = $2 AND p.run_id = $3), 0),
		(SELECT count(*) FROM approval_open o WHERE o.tenant_id = $1 AND o.run_id = $3)`)
	sqlReadReplaced = statement(`SELECT DISTINCT ON (r.tool_name) r.tool_name, r.approval_id FROM approval_request r
		WHERE r.tenant_id = $1 AND r.agent = $2 AND r.run_id = $3 AND r.status = 'migration_required' ORDER BY r.tool_name, r.approval_id DESC`)
)

// intakeFacts are what an intake's transaction has locked and read.
type intakeFacts struct {
	facts
	untold   []untold
	repeat   uuid.UUID
	pause    int // of the repeat
	last     int // the run's newest pause
	open     int // calls of the run that are not over
	replaced map[string]ID
}

// untold is an approval of a pause that has not been told yet.
type untold struct {
	req    *requestRow
	ledger LedgerState
	named  bool // the call's current approval (not an edited parent)
}

func (s *Service) beginIntake(ctx context.Context, c *pgx.Conn, d *draft, groups []string) (*intakeFacts, error) {
	f := &intakeFacts{replaced: map[string]ID{}}
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
			var state *string
			var err error
			if u.req, err = scanRequest(rows, &state, &u.named); err != nil {
				return err
			}
			if state != nil {
				u.ledger = LedgerState(*state)
			}
			f.untold = append(f.untold, u)
		}
		return rows.Err()
	})
	b.Queue(sqlShareActiveOf, k.Tenant).QueryRow(func(row pgx.Row) error { return row.Scan(&f.revision) })
	b.Queue(sqlShareUsersOf, k.Tenant, people).Query(f.scanUsers)
	b.Queue(sqlShareGroupsOf, k.Tenant, people).Query(f.scanLocked)
	b.Queue(sqlReadGroupsOf, k.Tenant).Query(f.scanGroups)
	b.Queue(sqlReadMembersOf, k.Tenant, people, list(groups)).Query(f.scanMembers)
	b.Queue(sqlReadDoor, k.Tenant, k.ID, k.Agent).Query(f.scanStops)
	b.Queue(sqlReadRepeat, k.Tenant, k.Agent, in.RunID, d.intake).QueryRow(func(row pgx.Row) error { return noRows(row.Scan(&f.repeat, &f.pause)) })
	b.Queue(sqlReadRun, k.Tenant, k.Agent, in.RunID).QueryRow(func(row pgx.Row) error { return row.Scan(&f.last, &f.open) })
	b.Queue(sqlReadReplaced, k.Tenant, k.Agent, in.RunID).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var tool string
			var id ID
			if err := rows.Scan(&tool, &id); err != nil {
				return err
			}
			f.replaced[tool] = id
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
	f, err := s.beginIntake(ctx, c.Conn(), d, reviewerGroups(tenant))
	if err != nil {
		return Pause{}, err
	}
	rollback := func() { _, _ = c.Exec(context.WithoutCancel(ctx), "ROLLBACK") } // a failure closes the connection, which rolls back too
	if !f.keyLive {
		rollback()
		return Pause{}, refuse(CodeUnauthorized, "this key was revoked; ask for a new one")
	}
	if f.repeat != (uuid.UUID{}) {
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
	if err := finish(ctx, c.Conn(), b); err != nil {
		var pg *pgconn.PgError
		if errors.As(err, &pg) && pg.Code == "23502" && pg.ColumnName == "open_calls" {
			return Pause{}, errMoved
		}
		return Pause{}, unavailableUnlessAmbiguous(err)
	}
	return s.answer(ctx, c.Conn(), f, w)
}

// answer tells a fresh pause from what was just written; only an intake that carried older calls over reads them again.
func (s *Service) answer(ctx context.Context, c *pgx.Conn, f *intakeFacts, w *composed) (Pause, error) {
	w.wake(s)
	if len(w.carried) > 0 || len(w.decided) > 0 {
		return s.readPause(ctx, c, w.pauseID)
	}
	p := Pause{RunID: w.d.in.RunID, Pause: w.number}
	for _, n := range w.fresh {
		v := n.row.view()
		v.Pause, v.Now, v.CreatedAt, v.Version, v.Status = w.number, f.now, f.now, 1, Pending
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

// reviewerGroups are all the groups that a rule of the tenant may ask.
func reviewerGroups(t *rules.Tenant) []string {
	var out []string
	for _, r := range t.Rules {
		out = append(out, r.Reviewers.Groups...)
	}
	return append(out, t.Admins.Groups...)
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

// ruled is a call with the rule that covers it.
type ruled struct {
	match  rules.Match
	decide time.Time
}

// cover finds the rule of one call and checks what only the rule can ask: a requester, a reachable quorum.
func (s *Service) cover(f *intakeFacts, d *draft, i int, p prepared) (ruled, error) {
	c := &d.calls[i]
	no := func(r *Refusal) (ruled, error) {
		r.Pointer = fmt.Sprintf("/calls/%d", i)
		return ruled{}, r
	}
	var out ruled
	if !c.args.Readable() {
		out.match = rules.Match{Rule: f.tenant.Unreadable(), Index: -1, Why: "the arguments cannot be read: " + c.args.Unreadable}
	} else {
		in := rules.Input{
			Tool: p.tool.Name, Args: c.args.Value, Target: p.target,
			Agent: rules.AgentInput{Name: d.key.Agent, Path: c.in.AgentPath, Version: d.in.AppStateVersion},
		}
		if d.in.Requester != "" {
			in.Requester = rules.RequesterInput{ID: d.in.Requester, Groups: f.groupsOf(slackUser(d.in.Requester))}
		}
		m, err := f.tenant.Match(in)
		switch {
		case errors.Is(err, rules.ErrNoRule):
			r := refuse(CodeNoRule, "no rule covers this call of %q, so nobody could approve it", p.tool.Name)
			r.Suggest = f.tenant.SuggestRule(p.tool.Name)
			return no(r)
		case err != nil:
			return no(refuse(CodeRuleError, "%s", err))
		}
		out.match = m
	}
	rule := out.match.Rule
	if rule.NeedsRequester() && d.in.Requester == "" {
		return no(refuse(CodeRequesterRequired, "the rule %q needs to know who is behind the call: send run.requester", rule.Name))
	}
	if err := f.requester(d, rule); err != nil {
		return ruled{}, err
	}
	if rule.Do == rules.Ask {
		if err := f.reachable(d, rule); err != nil {
			return ruled{}, err
		}
		within := rule.DecideWithin
		if c.in.ExpiresIn > 0 {
			within = min(within, c.in.ExpiresIn)
		}
		out.decide = f.now.Add(within)
	} else {
		out.decide = f.now.Add(max(rule.ExecuteWithin, time.Minute))
	}
	return out, nil
}

// requester holds the person behind the call against the mirror and the rule.
func (f *intakeFacts) requester(d *draft, rule *rules.Rule) error {
	if d.in.Requester == "" {
		return nil
	}
	user := slackUser(d.in.Requester)
	unknown := refuse(CodeUnknownRequester, "run.requester must be slack:U… of an active person of the tenant's workspace")
	unknown.Pointer = "/run/requester"
	if user == "" {
		return unknown
	}
	p, ok := f.users[user]
	if !ok || f.now.Sub(p.syncedAt) > decideAge {
		return &staleDirectory{users: []string{user}, refusal: unknown}
	}
	if p.deleted || p.bot || p.invited || p.team != f.tenant.Slack.Team || f.blocked[user] {
		return unknown
	}
	if rule.Requesters == nil {
		return nil
	}
	g, known := f.granted(user, *rule.Requesters, decideAge)
	switch {
	case g == nil && !known:
		r := refuse(CodeUnknownRequester, "the groups of the rule %q cannot be read right now; send the intake again", rule.Name)
		return &staleDirectory{groups: rule.Requesters.Groups, users: []string{user}, refusal: r}
	case g == nil:
		r := refuse(CodeToolNotAllowed, "the rule %q does not let this requester be behind the call", rule.Name)
		r.Pointer = "/run/requester"
		return r
	}
	return nil
}

// reachable says whether enough people could ever vote. An empty list denies (I4).
func (f *intakeFacts) reachable(d *draft, rule *rules.Rule) error {
	could := map[string]bool{}
	for _, u := range rule.Reviewers.Users {
		could[u] = true
	}
	for m := range f.members {
		for _, g := range rule.Reviewers.Groups {
			if m.group == g && f.groups[g].enabled {
				could[m.user] = true
			}
		}
	}
	for u := range f.blocked {
		delete(could, u)
	}
	if rule.ExcludeRequester {
		delete(could, slackUser(d.in.Requester))
	}
	if len(could) >= rule.Quorum {
		return nil
	}
	r := refuse(CodeNoQuorumPossible, "the rule %q needs %d votes and only %d people could cast one", rule.Name, rule.Quorum, len(could))
	for _, g := range rule.Reviewers.Groups {
		if row, ok := f.groups[g]; !ok || f.now.Sub(row.syncedAt) > decideAge {
			return &staleDirectory{groups: rule.Reviewers.Groups, refusal: r}
		}
	}
	return r
}

func newMACKey() []byte {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails (crypto/rand)
	return b
}
