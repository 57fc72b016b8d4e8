package slacksim

import (
	"encoding/base64"
	"slices"
	"strings"
)

// history lists a channel's own messages, newest first; replies are in threads, ephemerals nowhere.
func (s *Sim) history(a args) (reply, *failure) {
	c, bad := s.target(a.str("channel"), false)
	if bad != nil {
		return nil, bad
	}
	var found []*Message
	for _, m := range slices.Backward(s.messages) {
		if m.Channel == c.ID && m.ThreadTS == "" && !m.Ephemeral && !m.Deleted && inRange(m.TS, a) {
			found = append(found, m)
		}
	}
	return s.page(found, a, 100)
}

// replies lists a thread, oldest first, its root included. Asked for a reply, it gives that reply's thread.
func (s *Sim) replies(a args) (reply, *failure) {
	c, bad := s.target(a.str("channel"), false)
	if bad != nil {
		return nil, bad
	}
	root := s.find(c.ID, a.str("ts"))
	if root == nil || root.Ephemeral {
		return nil, fail("thread_not_found")
	}
	ts := root.TS
	if root.ThreadTS != "" {
		ts = root.ThreadTS
	}
	var found []*Message
	for _, m := range s.messages {
		if m.Channel == c.ID && !m.Ephemeral && !m.Deleted && (m.TS == ts || m.ThreadTS == ts && inRange(m.TS, a)) {
			found = append(found, m)
		}
	}
	return s.page(found, a, 1000)
}

// inRange compares timestamps as text: same length for the next two centuries.
func inRange(ts string, a args) bool {
	oldest, latest := normalTS(a.str("oldest")), normalTS(a.str("latest"))
	if a.boolean("inclusive") && (ts == oldest || ts == latest) {
		return true
	}
	return (oldest == "" || ts > oldest) && (latest == "" || ts < latest)
}

// normalTS pads what callers may shorten ("1700000000", "0").
func normalTS(ts string) string {
	if ts == "" {
		return ""
	}
	sec, frac, _ := strings.Cut(ts, ".")
	return strings.Repeat("0", max(0, 10-len(sec))) + sec + "." + frac + strings.Repeat("0", max(0, 6-len(frac)))
}

func (s *Sim) page(found []*Message, a args, most int) (reply, *failure) {
	start, bad := readCursor(a)
	if bad != nil {
		return nil, bad
	}
	at := 0
	if start != "" {
		at = slices.IndexFunc(found, func(m *Message) bool { return m.TS == start })
		if at < 0 {
			return nil, fail("invalid_cursor")
		}
	}
	found = found[at:]
	limit := a.number("limit", 100, 1, min(most, 999))
	out := reply{"has_more": len(found) > limit}
	if len(found) > limit {
		out["response_metadata"] = reply{"next_cursor": cursor(found[limit].TS)}
		found = found[:limit]
	}
	list := make([]any, 0, len(found))
	for _, m := range found {
		list = append(list, s.wire(m, a.boolean("include_all_metadata")))
	}
	out["messages"] = list
	return out, nil
}

// A cursor names the first thing of the next page; it is opaque to callers, as Slack's are.
func cursor(next string) string { return base64.StdEncoding.EncodeToString([]byte("next:" + next)) }

func readCursor(a args) (string, *failure) {
	c := a.str("cursor")
	if c == "" {
		return "", nil
	}
	raw, err := base64.StdEncoding.DecodeString(c)
	next, ok := strings.CutPrefix(string(raw), "next:")
	if err != nil || !ok {
		return "", fail("invalid_cursor")
	}
	return next, nil
}

func (s *Sim) conversationInfo(a args) (reply, *failure) {
	c := s.channel(a.str("channel"))
	if c == nil || c.Private && c.NoBot {
		return nil, fail("channel_not_found")
	}
	return reply{"channel": s.wireChannel(c)}, nil
}

func (s *Sim) wireChannel(c *Channel) reply {
	if c.dmWith != "" {
		return reply{"id": c.ID, "is_im": true, "user": c.dmWith, "is_archived": c.Archived, "is_open": true}
	}
	return reply{
		"id": c.ID, "name": c.Name, "name_normalized": c.Name, "is_channel": !c.Private, "is_group": c.Private, "is_private": c.Private,
		"is_im": false, "is_archived": c.Archived, "is_member": !c.NoBot, "is_ext_shared": c.Shared, "is_shared": c.Shared,
		"topic": reply{"value": c.Topic, "creator": "", "last_set": 0}, "context_team_id": s.opts.Team,
	}
}

func (s *Sim) openConversation(a args) (reply, *failure) {
	if id := a.str("channel"); id != "" {
		c := s.channel(id)
		if c == nil || c.dmWith == "" {
			return nil, fail("channel_not_found")
		}
		return reply{"channel": s.wireChannel(c), "already_open": true, "no_op": true}, nil
	}
	ids := strings.Split(a.str("users"), ",")
	if len(ids) != 1 || ids[0] == "" {
		return nil, fail("users_list_not_supplied") // group messages are not simulated
	}
	u := s.user(ids[0])
	switch {
	case u == nil:
		return nil, fail("user_not_found")
	case u.Deleted:
		return nil, fail("user_disabled")
	case u.IsBot:
		return nil, fail("cannot_dm_bot")
	}
	c := s.direct(u.ID)
	s.touch()
	if a.boolean("return_im") {
		return reply{"channel": s.wireChannel(c)}, nil
	}
	return reply{"channel": reply{"id": c.ID}}, nil
}
