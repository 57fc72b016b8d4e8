package slacksim

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// User is a person or bot as users.info shows them.
type User struct {
	ID                string `json:"id"`
	Name              string `json:"name"`
	RealName          string `json:"real_name"`
	TeamID            string `json:"team_id"`
	TZ                string `json:"tz,omitempty"`
	Deleted           bool   `json:"deleted"`
	Admin             bool   `json:"is_admin"`
	Owner             bool   `json:"is_owner"`
	IsBot             bool   `json:"is_bot"`
	IsRestricted      bool   `json:"is_restricted"`
	IsUltraRestricted bool   `json:"is_ultra_restricted"`
	IsStranger        bool   `json:"is_stranger"`
	IsInvited         bool   `json:"is_invited_user"`
	IsAppUser         bool   `json:"is_app_user"`
	IsWorkflowBot     bool   `json:"is_workflow_bot"`
	EnterpriseID      string `json:"-"`
}

// Group is a user group (an @handle). A Disabled group is invisible unless a call asks for disabled ones.
type Group struct {
	ID       string
	Name     string
	Handle   string
	Members  []string
	Disabled bool
	updated  int64
}

// Channel is a conversation. The bot is in it unless NoBot is set.
type Channel struct {
	ID       string
	Name     string
	Topic    string
	Private  bool
	Archived bool
	Shared   bool // Slack Connect: people of other workspaces are in it
	NoBot    bool
	Members  []string // for a private channel; everybody is in a public one
	dmWith   string   // the other person, when this is a direct message with the bot
}

// AddUser adds a person, or replaces the one with that id. TeamID defaults to the workspace's.
func (s *Sim) AddUser(u User) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u.TeamID == "" {
		u.TeamID = s.opts.Team
	}
	if u.Name == "" {
		u.Name = strings.ToLower(u.ID)
	}
	if u.RealName == "" {
		u.RealName = u.Name
	}
	defer s.touch()
	for i, old := range s.users {
		if old.ID == u.ID {
			s.users[i] = &u
			return
		}
	}
	s.users = append(s.users, &u)
}

// AddGroup adds a user group, or replaces the one with that id.
func (s *Sim) AddGroup(g Group) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g.Name == "" {
		g.Name = g.Handle
	}
	g.Members = slices.Clone(g.Members)
	g.updated = s.opts.Now().Unix()
	defer s.touch()
	for i, old := range s.groups {
		if old.ID == g.ID {
			s.groups[i] = &g
			return
		}
	}
	s.groups = append(s.groups, &g)
}

// AddChannel adds a channel, or replaces the one with that id.
func (s *Sim) AddChannel(c Channel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.Name = strings.TrimPrefix(c.Name, "#")
	defer s.touch()
	for i, old := range s.channels {
		if old.ID == c.ID {
			s.channels[i] = &c
			return
		}
	}
	s.channels = append(s.channels, &c)
}

// SetGroupMembers replaces a group's members. With emit, the app is told by subteam_members_changed, as Slack tells
// it; without, the change is silent, as it is when an event gets lost.
func (s *Sim) SetGroupMembers(ctx context.Context, group string, members []string, emit bool) error {
	s.mu.Lock()
	g := s.group(group)
	if g == nil {
		s.mu.Unlock()
		return fmt.Errorf("slacksim: no such group %q", group)
	}
	var added, removed []string
	for _, m := range members {
		if !slices.Contains(g.Members, m) {
			added = append(added, m)
		}
	}
	for _, m := range g.Members {
		if !slices.Contains(members, m) {
			removed = append(removed, m)
		}
	}
	before := g.updated
	g.Members = slices.Clone(members)
	g.updated = s.opts.Now().Unix()
	event := map[string]any{
		"type": "subteam_members_changed", "subteam_id": g.ID, "team_id": s.opts.Team,
		"date_previous_update": before, "date_update": g.updated,
		"added_users": orEmpty(added), "added_users_count": len(added),
		"removed_users": orEmpty(removed), "removed_users_count": len(removed),
	}
	s.touch()
	s.mu.Unlock()
	if !emit {
		return nil
	}
	_, err := s.Event(ctx, event)
	return err
}

func orEmpty(l []string) []string {
	if l == nil {
		return []string{}
	}
	return l
}

// The finders below are called with mu held.

// UserName is what a person is called, or "".
func (s *Sim) UserName(id string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u := s.user(id); u != nil {
		return u.Name
	}
	return ""
}

func (s *Sim) user(id string) *User {
	for _, u := range s.users {
		if u.ID == id {
			return u
		}
	}
	return nil
}

func (s *Sim) group(id string) *Group {
	for _, g := range s.groups {
		if g.ID == id {
			return g
		}
	}
	return nil
}

func (s *Sim) channel(id string) *Channel {
	for _, c := range s.channels {
		if c.ID == id {
			return c
		}
	}
	return nil
}

// direct finds or opens the bot's direct message with a person.
func (s *Sim) direct(user string) *Channel {
	for _, c := range s.channels {
		if c.dmWith == user {
			return c
		}
	}
	c := &Channel{ID: s.nextID("D"), dmWith: user, Private: true, Members: []string{user}}
	s.channels = append(s.channels, c)
	return c
}

// sees says whether a person is in a conversation. People of other workspaces are only in shared ones.
func (s *Sim) sees(c *Channel, u *User) bool {
	switch {
	case c.dmWith != "":
		return c.dmWith == u.ID
	case slices.Contains(c.Members, u.ID):
		return true
	case c.Private:
		return false
	}
	return u.TeamID == s.opts.Team || c.Shared
}
