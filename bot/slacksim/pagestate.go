package slacksim

import (
	"context"
	"errors"
	"slices"
	"strings"
)

// pageMessages is how much of a channel the page gets: plenty to read, little to send.
const pageMessages = 300

// pageState is everything that the page shows to one person. An unknown person gets the first one. Held: mu.
func (s *Sim) pageState(as string) map[string]any {
	me := s.user(as)
	users, groups, channels := []any{}, []any{}, []any{}
	for _, u := range s.users {
		if u.ID == s.opts.BotUserID {
			continue
		}
		if me == nil || me.ID == s.opts.BotUserID {
			me = u
		}
		users = append(users, s.pageUser(u))
	}
	for _, g := range s.groups {
		groups = append(groups, map[string]any{"id": g.ID, "handle": g.Handle, "members": orEmpty(g.Members), "disabled": g.Disabled})
	}
	state := map[string]any{
		"revision": s.revision, "team": map[string]any{"id": s.opts.Team, "name": s.opts.TeamName},
		"app":   map[string]any{"id": s.opts.AppID, "name": s.opts.AppName, "user": s.opts.BotUserID},
		"users": users, "groups": groups, "me": "", "views": []any{}, "home": nil,
	}
	if me != nil {
		state["me"] = me.ID
		for _, c := range s.channels {
			if s.sees(c, me) {
				channels = append(channels, s.pageChannel(c, me))
			}
		}
		views := []any{}
		for _, v := range s.views {
			if v.User == me.ID {
				views = append(views, pageView(v))
			}
		}
		state["views"] = views
		if v := s.homes[me.ID]; v != nil {
			state["home"] = pageView(v)
		}
	}
	state["channels"] = channels
	return state
}

func (s *Sim) pageUser(u *User) map[string]any {
	handles := []string{}
	for _, g := range s.groups {
		if !g.Disabled && slices.Contains(g.Members, u.ID) {
			handles = append(handles, g.Handle)
		}
	}
	var marks []string
	for mark, on := range map[string]bool{
		"deactivated": u.Deleted, "admin": u.Admin, "bot": u.IsBot, "guest": u.IsRestricted || u.IsUltraRestricted,
		"invited": u.IsInvited, "external": u.TeamID != s.opts.Team || u.IsStranger,
	} {
		if on {
			marks = append(marks, mark)
		}
	}
	slices.Sort(marks)
	return map[string]any{"id": u.ID, "name": u.Name, "real_name": u.RealName, "groups": handles, "marks": orEmpty(marks)}
}

func (s *Sim) pageChannel(c *Channel, me *User) map[string]any {
	messages := []any{}
	for _, m := range slices.Backward(s.messages) {
		if m.Channel != c.ID || m.Deleted || m.Ephemeral && m.To != me.ID {
			continue
		}
		if len(messages) == pageMessages {
			break
		}
		w := map[string]any{"ts": m.TS, "user": m.User, "bot": m.Bot, "text": m.Text, "rev": m.Rev, "ephemeral": m.Ephemeral, "thread_ts": m.ThreadTS, "edited": m.EditedTS != ""}
		if m.Blocks != nil {
			w["blocks"] = m.Blocks
		}
		messages = append(messages, w)
	}
	slices.Reverse(messages)
	kind, name := "channel", c.Name
	if c.dmWith != "" {
		kind, name = "im", s.opts.AppName
	}
	return map[string]any{"id": c.ID, "name": name, "kind": kind, "private": c.Private, "archived": c.Archived, "shared": c.Shared, "topic": c.Topic, "messages": messages}
}

func pageView(v *View) map[string]any {
	errs := v.errors
	if errs == nil {
		errs = map[string]string{}
	}
	return map[string]any{
		"id": v.ID, "rev": v.Rev, "title": v.raw["title"], "submit": v.raw["submit"], "close": v.raw["close"], "blocks": v.Blocks, "errors": errs,
	}
}

// sayOrCommand: what starts with a slash goes to the app, anything else is a message.
func (s *Sim) sayOrCommand(ctx context.Context, a act) error {
	text := strings.TrimSpace(a.Text)
	if text == "" {
		return errors.New("slacksim: nothing to send")
	}
	if !strings.HasPrefix(text, "/") {
		_, err := s.Say(a.As, a.Channel, a.TS, text)
		return err
	}
	command, rest, _ := strings.Cut(text, " ")
	_, err := s.Command(ctx, a.As, a.Channel, command, rest)
	return err
}

// homeOpened is the event of a person who opens the app's home tab, which also opens their direct message.
func (s *Sim) homeOpened(user string) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	event := map[string]any{"type": "app_home_opened", "user": user, "tab": "home"}
	if s.user(user) != nil {
		event["channel"] = s.direct(user).ID
	}
	if v := s.homes[user]; v != nil {
		event["view"] = s.wireView(v, nil)
	}
	return event
}

// OpenHome is a person who opens the app's home tab; the app is told by app_home_opened.
func (s *Sim) OpenHome(ctx context.Context, user string) (Response, error) {
	return s.Event(ctx, s.homeOpened(user))
}
