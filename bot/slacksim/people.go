package slacksim

import (
	"encoding/json"
	"slices"
)

func (s *Sim) wireUser(u *User) reply {
	raw, _ := json.Marshal(u) // plain fields: cannot fail
	var w reply
	_ = json.Unmarshal(raw, &w)
	w["is_primary_owner"] = false
	w["is_email_confirmed"] = true
	w["updated"] = s.opts.Now().Unix()
	w["profile"] = reply{"real_name": u.RealName, "display_name": u.Name, "team": u.TeamID}
	if u.EnterpriseID != "" {
		w["enterprise_user"] = reply{"id": u.ID, "enterprise_id": u.EnterpriseID, "is_admin": u.Admin, "is_owner": u.Owner, "teams": []string{u.TeamID}}
	}
	return w
}

func (s *Sim) userInfo(a args) (reply, *failure) {
	u := s.user(a.str("user"))
	if u == nil {
		return nil, fail("user_not_found")
	}
	return reply{"user": s.wireUser(u)}, nil
}

// userList pages through everybody, deleted people and the bot included, as Slack does.
func (s *Sim) userList(a args) (reply, *failure) {
	start, bad := readCursor(a)
	if bad != nil {
		return nil, bad
	}
	at := 0
	if start != "" {
		at = slices.IndexFunc(s.users, func(u *User) bool { return u.ID == start })
		if at < 0 {
			return nil, fail("invalid_cursor")
		}
	}
	found := s.users[at:]
	next := ""
	if limit := a.number("limit", len(found)+1, 1, 1000); len(found) > limit {
		next = cursor(found[limit].ID)
		found = found[:limit]
	}
	members := make([]any, 0, len(found))
	for _, u := range found {
		members = append(members, s.wireUser(u))
	}
	return reply{"members": members, "cache_ts": s.opts.Now().Unix(), "response_metadata": reply{"next_cursor": next}}, nil
}

func (s *Sim) groupList(a args) (reply, *failure) {
	list := []any{}
	for _, g := range s.groups {
		if g.Disabled && !a.boolean("include_disabled") {
			continue
		}
		w := reply{
			"id": g.ID, "team_id": s.opts.Team, "is_usergroup": true, "name": g.Name, "handle": g.Handle, "description": "",
			"is_external": false, "date_create": g.updated, "date_update": g.updated, "date_delete": 0, "auto_type": nil,
			"created_by": s.opts.BotUserID, "updated_by": s.opts.BotUserID, "deleted_by": nil,
			"prefs": reply{"channels": []string{}, "groups": []string{}},
		}
		if g.Disabled {
			w["date_delete"] = g.updated
		}
		if a.boolean("include_users") {
			w["users"] = orEmpty(g.Members)
		}
		if a.boolean("include_count") {
			w["user_count"] = len(g.Members)
		}
		list = append(list, w)
	}
	return reply{"usergroups": list}, nil
}

// groupUsers answers for a disabled group only when include_disabled asks for it. Deleted people stay listed: Slack
// drops them late, and a caller must not rely on it.
func (s *Sim) groupUsers(a args) (reply, *failure) {
	g := s.group(a.str("usergroup"))
	if g == nil || g.Disabled && !a.boolean("include_disabled") {
		return nil, fail("no_such_subteam")
	}
	return reply{"users": orEmpty(g.Members)}, nil
}
