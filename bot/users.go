package bot

import (
	"context"

	"github.com/slack-go/slack"

	"github.com/holdpoint/holdpoint/approvals"
)

// User fetches one person.
func (c *Client) User(ctx context.Context, id string) (approvals.DirectoryUser, error) {
	var got *slack.User
	err := c.do(ctx, call{method: "users.info", repeat: true}, func(ctx context.Context) (err error) {
		got, err = c.api.GetUserInfoContext(ctx, id, slack.GetUserInfoOptionIncludeLocale(false))
		return err
	})
	if err != nil {
		return approvals.DirectoryUser{}, err
	}
	if got.ID != id {
		return approvals.DirectoryUser{}, &APIError{Method: "users.info", Code: "other_user", Class: ClassRefused}
	}
	return directoryUser(got), nil
}

// Users fetches everybody of a workspace, page by page. It is all or nothing: a page that fails fails the whole.
func (c *Client) Users(ctx context.Context, team string) ([]approvals.DirectoryUser, error) {
	var out []approvals.DirectoryUser
	pages := c.api.GetUsersPaginated(slack.GetUsersOptionLimit(500), slack.GetUsersOptionTeamID(team), slack.GetUsersOptionIncludeLocale(false))
	for {
		done := false
		err := c.do(ctx, call{method: "users.list", repeat: true}, func(ctx context.Context) error {
			next, err := pages.Next(ctx)
			if pages.Done(err) {
				done = true
				return nil
			}
			if err == nil {
				pages = next
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		if done {
			return out, nil
		}
		for i := range pages.Users {
			out = append(out, directoryUser(&pages.Users[i]))
		}
	}
}

// directoryUser keeps what decides whether somebody may act. Slackbot is a bot that Slack does not mark as one; a workflow's
// or a connector's account is no person either.
func directoryUser(u *slack.User) approvals.DirectoryUser {
	name := u.Profile.DisplayName
	if name == "" {
		name = u.RealName
	}
	if name == "" {
		name = u.Name
	}
	return approvals.DirectoryUser{
		UserID: u.ID, TeamID: u.TeamID, Name: name, Deleted: u.Deleted,
		Restricted: u.IsRestricted, UltraRestricted: u.IsUltraRestricted,
		Bot:     u.IsBot || u.IsWorkflowBot || u.IsConnectorBot || u.ID == "USLACKBOT",
		Invited: u.IsInvitedUser, Stranger: u.IsStranger, UpdatedAt: int64(u.Updated),
	}
}

// Groups fetches a workspace's enabled user groups with their members. A group that is not in the answer is disabled or gone.
// UpdatedAt tells a late answer from a newer one: Slack moves date_update, whole seconds, with every change of a group, of its
// members, and when it is disabled or enabled (docs.slack.dev: subteam_members_changed, usergroups.disable, usergroups.enable).
func (c *Client) Groups(ctx context.Context, team string) (map[string]approvals.DirectoryGroup, error) {
	got, err := c.groups(ctx, team, false)
	if err != nil {
		return nil, err
	}
	out := make(map[string]approvals.DirectoryGroup, len(got))
	for _, g := range got {
		if g.DateDelete == 0 {
			out[g.ID] = approvals.DirectoryGroup{GroupID: g.ID, Handle: g.Handle, Enabled: true, Members: g.Users, UpdatedAt: int64(g.DateUpdate)}
		}
	}
	return out, nil
}

// Disabled fetches when a workspace's disabled groups were disabled, in Unix seconds. It only dates what Groups left out: whether
// a group counts, Groups alone says.
func (c *Client) Disabled(ctx context.Context, team string) (map[string]int64, error) {
	got, err := c.groups(ctx, team, true)
	if err != nil {
		return nil, err
	}
	out := map[string]int64{}
	for _, g := range got {
		if g.DateDelete != 0 {
			out[g.ID] = int64(max(g.DateUpdate, g.DateDelete))
		}
	}
	return out, nil
}

// groups lists the enabled groups with their members, or all groups without.
func (c *Client) groups(ctx context.Context, team string, disabled bool) (got []slack.UserGroup, err error) {
	err = c.do(ctx, call{method: "usergroups.list", repeat: true}, func(ctx context.Context) (err error) {
		got, err = c.api.GetUserGroupsContext(ctx, slack.GetUserGroupsOptionIncludeUsers(!disabled), slack.GetUserGroupsOptionIncludeDisabled(disabled), slack.GetUserGroupsOptionTeamID(team))
		return err
	})
	return got, err
}
