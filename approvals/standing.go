package approvals

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdpoint/holdpoint/approvals/rules"
)

// Standing is what a person counts for in a tenant right now, from the mirrored directory.
type Standing struct {
	User   string
	Groups []string   // Slack ids of the mirrored, readable groups that they are in
	Names  []string   // those groups' handles
	Admin  bool       // stops and reconciles; does not approve as an admin
	Unread bool       // they may be an admin: the mirror of them or of an admins' group can't tell
	Denial DenialKind // why they don't count at all; empty: a full, active member of the workspace, not blocked
}

// Standing reads a person's standing. It fails closed: what cannot be read is a Denial.
func (s *Service) Standing(ctx context.Context, tenant string, by Reviewer) (Standing, error) {
	f, err := s.people(ctx, s.clicks, tenant, by.UserID)
	if err != nil {
		return Standing{}, err
	}
	out := Standing{User: by.UserID, Denial: f.eligible(by.UserID, decideAge), Groups: f.groupsOf(by.UserID)}
	out.Names = f.handles(out.Groups)
	if by.TeamID != f.tenant.Slack.Team {
		out.Denial = DenyIneligible
	}
	if out.Denial == "" || out.Denial == DenyUncheckable {
		g, known := f.granted(by.UserID, f.tenant.Admins, decideAge)
		out.Admin = out.Denial == "" && g != nil
		out.Unread = !out.Admin && (g != nil || !known) // whoever is in no list needs no look-up to be told so
	}
	return out, nil
}

// MayDecide says whether the person is among those whom the request asks, as the view has it (Present): for lists, not for decisions.
func (p Standing) MayDecide(v View) bool {
	who := v.asks()
	if p.Denial != "" || v.Status != Pending || who.ExcludeRequester && v.Requester == "slack:"+p.User ||
		who.ExcludeEditor && slices.Contains(v.Editors, "slack:"+p.User) {
		return false
	}
	_, ok := rules.Reviewers{Users: who.Users, Groups: who.Groups}.Permits(p.User, p.Groups)
	return ok && !slices.ContainsFunc(v.Votes, func(vote Vote) bool { return vote.By == "slack:"+p.User })
}

// people reads what of the directory decides about some people, in one consistent batch.
func (s *Service) people(ctx context.Context, pool *pgxpool.Pool, tenant string, users ...string) (*facts, error) {
	f := &facts{users: map[string]person{}, groups: map[string]group{}, members: map[membership]bool{}, blocked: map[string]bool{}, stops: map[string]bool{}}
	t, revision, err := s.activeTenant(ctx, pool, tenant, true)
	if err != nil {
		return nil, err
	}
	f.tenant, f.revision = t, revision
	asked := list(conditionGroups(t))
	b := &pgx.Batch{}
	b.Queue(sqlBegin)
	b.Queue(sqlShareUsersOf, tenant, users).Query(f.scanUsers)
	b.Queue(sqlShareGroupsOf, tenant, users, asked).Query(f.scanLocked)
	b.Queue(sqlReadGroupsOf, tenant).Query(f.scanGroups)
	b.Queue(sqlReadMembersOf, tenant, users, []string{}, t.Slack.Team).Query(f.scanMembers)
	b.Queue(sqlReadDoor, tenant, "", "").Query(f.scanStops)
	b.Queue(sqlClock).QueryRow(func(row pgx.Row) error { return row.Scan(&f.now) })
	b.Queue(sqlCommit)
	return f, unavailable(pool.SendBatch(ctx, b).Close())
}
