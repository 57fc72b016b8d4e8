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
		Invited: u.IsInvitedUser, Stranger: u.IsStranger,
	}
}

// Groups fetches a workspace's enabled user groups with their members. A group that is not in the answer is disabled or gone.
func (c *Client) Groups(ctx context.Context, team string) (map[string]approvals.DirectoryGroup, error) {
	var got []slack.UserGroup
	err := c.do(ctx, call{method: "usergroups.list", repeat: true}, func(ctx context.Context) (err error) {
		got, err = c.api.GetUserGroupsContext(ctx, slack.GetUserGroupsOptionIncludeUsers(true), slack.GetUserGroupsOptionIncludeDisabled(false), slack.GetUserGroupsOptionTeamID(team))
		return err
	})
	if err != nil {
		return nil, err
	}
	out := make(map[string]approvals.DirectoryGroup, len(got))
	for _, g := range got {
		if g.DateDelete == 0 {
			out[g.ID] = approvals.DirectoryGroup{GroupID: g.ID, Handle: g.Handle, Enabled: true, Members: g.Users}
		}
	}
	return out, nil
}
