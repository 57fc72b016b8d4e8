package approvals

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdpoint/holdpoint/approvals/rules"
)

// DirectoryTarget is what of a tenant's workspace must be mirrored: everyone and every group that the active configuration names.
type DirectoryTarget struct {
	Tenant, Team  string
	Users, Groups []string
	OldestSync    time.Time // of the named groups; zero: one was never read
}

// DirectoryUser is one person as Slack has them.
type DirectoryUser struct {
	UserID, TeamID, Name                                         string
	Deleted, Restricted, UltraRestricted, Bot, Invited, Stranger bool
	UpdatedAt                                                    int64 // Slack's `updated`, Unix seconds; 0: unknown
	// AskedAt is when Slack was asked, on the database's clock (Clock), before the call: an answer is as old as its question. The zero
	// time is now.
	AskedAt time.Time
}

// DirectoryGroup is one user group with all its members.
type DirectoryGroup struct {
	GroupID, Handle string
	Enabled         bool
	Members         []string
	UpdatedAt       int64     // Slack's date_update, Unix seconds; 0: unknown
	AskedAt         time.Time // as for people
}

var (
	sqlOldestSync = statement(`SELECT coalesce(min(coalesce(g.synced_at, 'epoch')), 'epoch') FROM unnest($2::text[]) AS n (id) LEFT JOIN slack_group g ON g.tenant_id = $1 AND g.group_id = n.id`)
	sqlSaveUser   = statement(`INSERT INTO slack_user (tenant_id, user_id, team_id, name, deleted, restricted, ultra_restricted, bot, invited, stranger, changed, synced_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, least($12::timestamptz, clock_timestamp()))
		ON CONFLICT (tenant_id, user_id) DO UPDATE SET team_id = excluded.team_id, name = excluded.name, deleted = excluded.deleted, restricted = excluded.restricted,
			ultra_restricted = excluded.ultra_restricted, bot = excluded.bot, invited = excluded.invited, stranger = excluded.stranger,
			changed = greatest(excluded.changed, slack_user.changed), synced_at = excluded.synced_at
		WHERE (excluded.changed = 0 OR excluded.changed >= slack_user.changed) -- an older answer must not bring anybody back,
			AND (excluded.changed > slack_user.changed OR excluded.synced_at >= slack_user.synced_at)`)  // and neither must an older question
	sqlMakeGroup = statement(`INSERT INTO slack_group (tenant_id, group_id, handle, enabled, version, synced_at) VALUES ($1, $2, $3, false, 0, 'epoch') ON CONFLICT (tenant_id, group_id) DO NOTHING`)
	// Waits for every decision and claim that relies on the group (they hold it FOR SHARE); later ones wait for this.
	sqlLockGroup  = statement(`SELECT changed, synced_at > $3 FROM slack_group WHERE tenant_id = $1 AND group_id = $2 FOR UPDATE`)
	sqlLeaveGroup = statement(`DELETE FROM slack_group_member WHERE tenant_id = $1 AND group_id = $2 AND NOT user_id = ANY ($3)`)
	sqlJoinGroup  = statement(`INSERT INTO slack_group_member (tenant_id, group_id, user_id) SELECT $1, $2, unnest($3::text[]) ON CONFLICT DO NOTHING`)
	sqlFreshGroup = statement(`UPDATE slack_group SET handle = $3, enabled = $4, version = version + 1, changed = greatest(changed, $5), synced_at = least($6::timestamptz, clock_timestamp()) WHERE tenant_id = $1 AND group_id = $2`)
)

// DirectoryTargets lists what to mirror, for every tenant.
func (s *Service) DirectoryTargets(ctx context.Context) ([]DirectoryTarget, error) {
	var out []DirectoryTarget
	err := s.eachTenant(ctx, s.work, func(name string, revision int64) error {
		t, err := s.tenantAt(ctx, s.work, name, revision)
		if err != nil {
			return err
		}
		d := DirectoryTarget{Tenant: name, Team: t.Slack.Team}
		add := func(r rules.Reviewers) {
			d.Users, d.Groups = append(d.Users, r.Users...), append(d.Groups, r.Groups...)
		}
		add(t.Admins)
		d.Groups = append(d.Groups, conditionGroups(t)...)
		for _, r := range t.Rules {
			add(r.Reviewers)
			if r.Requesters != nil {
				add(*r.Requesters)
			}
		}
		slices.Sort(d.Users)
		slices.Sort(d.Groups)
		d.Users, d.Groups = slices.Compact(d.Users), slices.Compact(d.Groups)
		if err := s.work.QueryRow(ctx, sqlOldestSync, name, list(d.Groups)).Scan(&d.OldestSync); err != nil {
			return unavailable(err)
		}
		out = append(out, d)
		return nil
	})
	if len(out) > 0 && err != nil {
		s.log.ErrorContext(ctx, "a tenant's configuration cannot be read; nothing of it is decided or executed", "error", err)
		return out, nil
	}
	return out, err
}

// How long ago each of the people was read who are named, $2, or members of a group, $3; NULL: never.
var sqlPeopleAges = statement(`SELECT n.id, extract(epoch FROM clock_timestamp() - u.synced_at)::float8
	FROM (SELECT unnest($2::text[]) UNION SELECT m.user_id FROM slack_group_member m WHERE m.tenant_id = $1 AND m.group_id = ANY ($3)) AS n (id)
	LEFT JOIN slack_user u ON u.tenant_id = $1 AND u.user_id = n.id`)

// NeverRead is the age of a person who is not mirrored yet.
const NeverRead = time.Duration(math.MaxInt64)

// PeopleAges says, on the database's clock, how long ago any process read each of the named people and the groups' mirrored members.
func (s *Service) PeopleAges(ctx context.Context, tenant string, users, groups []string) (map[string]time.Duration, error) {
	rows, err := s.work.Query(ctx, sqlPeopleAges, tenant, list(users), list(groups)) //nolint:rowserrcheck // ForEachRow asks for it
	if err != nil {
		return nil, unavailable(err)
	}
	out := map[string]time.Duration{}
	var id string
	var seconds *float64
	_, err = pgx.ForEachRow(rows, []any{&id, &seconds}, func() error {
		out[id] = NeverRead
		if seconds != nil {
			out[id] = time.Duration(*seconds * float64(time.Second))
		}
		return nil
	})
	return out, unavailable(err)
}

// Clock is the database's time: read before Slack is asked, it is what the answer is as old as.
func (s *Service) Clock(ctx context.Context) (time.Time, error) {
	var now time.Time
	err := s.work.QueryRow(ctx, sqlClock).Scan(&now)
	return now, unavailable(err)
}

// asked is NULL for now.
func asked(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}

// SaveUsers mirrors people. Each row's lock waits for the decisions that rely on it.
func (s *Service) SaveUsers(ctx context.Context, tenant string, users []DirectoryUser) error {
	users = slices.Clone(users)
	slices.SortFunc(users, func(a, b DirectoryUser) int { // one order for everybody, so that two syncs cannot deadlock
		switch {
		case a.UserID < b.UserID:
			return -1
		case a.UserID > b.UserID:
			return 1
		}
		return 0
	})
	var errs []error
	for chunk := range slices.Chunk(users, 200) {
		b := &pgx.Batch{}
		for _, u := range chunk {
			b.Queue(sqlSaveUser, tenant, u.UserID, u.TeamID, u.Name, u.Deleted, u.Restricted, u.UltraRestricted, u.Bot, u.Invited, u.Stranger, u.UpdatedAt, asked(u.AskedAt))
		}
		errs = append(errs, s.work.SendBatch(ctx, b).Close())
	}
	return unavailable(errors.Join(errs...))
}

// SaveGroup mirrors one group, whole, in one transaction under its lock: a removal is either before a decision, which then does not
// count it, or after it.
func (s *Service) SaveGroup(ctx context.Context, tenant string, g DirectoryGroup) error {
	members := list(g.Members)
	if !g.Enabled {
		members = []string{}
	}
	err := pgx.BeginFunc(ctx, s.work, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, sqlMakeGroup, tenant, g.GroupID, g.Handle); err != nil {
			return err
		}
		var changed int64
		var later *bool // what is mirrored was asked for after this
		if err := tx.QueryRow(ctx, sqlLockGroup, tenant, g.GroupID, asked(g.AskedAt)).Scan(&changed, &later); err != nil {
			return err
		}
		if g.Enabled && g.UpdatedAt != 0 && g.UpdatedAt < changed {
			return nil // an answer older than what is mirrored: it must not bring a removed person back
		}
		if later != nil && *later && g.UpdatedAt <= changed {
			return nil // an older question, whose answer is not known to be newer: dates are whole seconds
		}
		b := &pgx.Batch{}
		b.Queue(sqlLeaveGroup, tenant, g.GroupID, members)
		b.Queue(sqlJoinGroup, tenant, g.GroupID, members)
		b.Queue(sqlFreshGroup, tenant, g.GroupID, g.Handle, g.Enabled, g.UpdatedAt, asked(g.AskedAt))
		return tx.SendBatch(ctx, b).Close()
	})
	return unavailable(err)
}
