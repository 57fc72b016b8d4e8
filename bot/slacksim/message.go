package slacksim

import (
	"context"
	"encoding/json"
	"strings"
)

// Metadata is a message's machine-readable side. Numbers come back as float64, whatever was sent.
type Metadata struct {
	EventType    string         `json:"event_type"`
	EventPayload map[string]any `json:"event_payload"`
}

// Message is a stored message, after Slack's changes to it. Values handed out are copies.
type Message struct {
	Channel   string
	TS        string
	ThreadTS  string // set on replies
	User      string // author
	Bot       bool
	Text      string
	Blocks    json.RawMessage // an array, or nil
	Metadata  *Metadata
	EditedTS  string
	Deleted   bool
	Ephemeral bool
	To        string // who sees an ephemeral message
	Rev       int64  // grows with every change
	Updates   int    // how many edits this message had
}

// Messages lists what is in a channel, oldest first, with replies and without deleted and ephemeral messages.
func (s *Sim) Messages(channel string) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list(func(m *Message) bool { return m.Channel == channel && !m.Ephemeral })
}

// Message finds one message of a channel.
func (s *Sim) Message(channel, ts string) (Message, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.find(channel, ts); m != nil {
		return *m, true
	}
	return Message{}, false
}

// Ephemerals lists what only this person sees, oldest first, over all channels.
func (s *Sim) Ephemerals(user string) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list(func(m *Message) bool { return m.Ephemeral && m.To == user })
}

func (s *Sim) list(want func(*Message) bool) []Message {
	var out []Message
	for _, m := range s.messages {
		if !m.Deleted && want(m) {
			out = append(out, *m)
		}
	}
	return out
}

// WaitMessage returns the first message of a channel for which pred is true, now or later; a nil pred takes any. It
// wakes on changes, so it also sees a message become what pred wants.
func (s *Sim) WaitMessage(ctx context.Context, channel string, pred func(Message) bool) (Message, error) {
	return s.waitFor(ctx, func(m *Message) bool { return m.Channel == channel && !m.Ephemeral && (pred == nil || pred(*m)) })
}

// WaitEphemeral is WaitMessage for what only one person sees.
func (s *Sim) WaitEphemeral(ctx context.Context, user string, pred func(Message) bool) (Message, error) {
	return s.waitFor(ctx, func(m *Message) bool { return m.Ephemeral && m.To == user && (pred == nil || pred(*m)) })
}

func (s *Sim) waitFor(ctx context.Context, want func(*Message) bool) (found Message, err error) {
	err = s.wait(ctx, func() bool {
		for _, m := range s.messages {
			if !m.Deleted && want(m) {
				found = *m
				return true
			}
		}
		return false
	})
	return found, err
}

// find returns a message that is still there. Held: mu.
func (s *Sim) find(channel, ts string) *Message {
	if m := s.byTS[channel+" "+ts]; m != nil && !m.Deleted {
		return m
	}
	return nil
}

// add stores a message under a new timestamp. Held: mu.
func (s *Sim) add(m Message) *Message {
	m.TS = s.nextTS()
	s.messages = append(s.messages, &m)
	s.byTS[m.Channel+" "+m.TS] = &m
	if m.ThreadTS != "" {
		root := m.Channel + " " + m.ThreadTS
		s.threads[root] = append(s.threads[root], &m)
	}
	s.touch()
	m.Rev = s.revision
	return &m
}

// wire is the message as history, replies and interaction payloads show it. Held: mu.
func (s *Sim) wire(m *Message, metadata bool) map[string]any {
	w := map[string]any{"type": "message", "user": m.User, "ts": m.TS, "text": m.Text, "team": s.opts.Team}
	if m.Bot {
		w["bot_id"], w["app_id"] = s.opts.BotID, s.opts.AppID
		w["bot_profile"] = map[string]any{"id": s.opts.BotID, "app_id": s.opts.AppID, "name": s.opts.AppName, "deleted": false, "team_id": s.opts.Team}
	}
	if m.Blocks != nil {
		w["blocks"] = m.Blocks
	}
	if m.EditedTS != "" {
		w["edited"] = map[string]any{"user": m.User, "ts": m.EditedTS}
	}
	if metadata && m.Metadata != nil {
		w["metadata"] = m.Metadata
	}
	replies, last := 0, ""
	for _, r := range s.threads[m.Channel+" "+m.TS] {
		if !r.Deleted && !r.Ephemeral {
			replies, last = replies+1, r.TS
		}
	}
	switch {
	case m.ThreadTS != "":
		w["thread_ts"] = m.ThreadTS
	case replies > 0:
		w["thread_ts"], w["reply_count"], w["latest_reply"] = m.TS, replies, last
	}
	return w
}

// Element is an interactive element or block field as sent, found in a message or view.
type Element struct {
	BlockID string
	Raw     map[string]any
}

// String returns a string field of the element ("value", "style", "type"), or "".
func (e Element) String(field string) string {
	v, _ := e.Raw[field].(string)
	return v
}

// Label is the text on the element, without emoji conversion.
func (e Element) Label() string {
	t, _ := e.Raw["text"].(map[string]any)
	v, _ := t["text"].(string)
	return unescape(v)
}

// Action finds the first interactive element with an action id.
func (m Message) Action(actionID string) (Element, bool) {
	return findAction(m.Blocks, "", actionID)
}

// Actions lists the action ids that the message shows, in order.
func (m Message) Actions() []string {
	var ids []string
	eachElement(m.Blocks, func(e Element) bool {
		ids = append(ids, e.String("action_id"))
		return true
	})
	return ids
}

// PlainText is everything that a person reads in the message, one line a text object: the blocks' texts, or Text
// where there are no blocks. Escapes are resolved; emoji stay colon codes.
func (m Message) PlainText() string {
	if m.Blocks == nil {
		return unescape(m.Text)
	}
	return plainText(m.Blocks)
}

func plainText(blocks json.RawMessage) string {
	var lines []string
	var walk func(v any, line *strings.Builder)
	walk = func(v any, line *strings.Builder) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				walk(e, line)
			}
		case map[string]any:
			switch v["type"] {
			case "rich_text_section", "rich_text_preformatted", "rich_text_quote":
				var b strings.Builder
				walk(v["elements"], &b)
				lines = append(lines, b.String())
				return
			}
			if line != nil {
				line.WriteString(richPiece(v))
				return
			}
			if t, ok := v["text"].(string); ok {
				lines = append(lines, unescape(t))
			}
			for _, k := range []string{"label", "hint", "text", "fields", "elements", "accessory", "element", "options", "description"} {
				if _, isText := v[k].(string); !isText {
					walk(v[k], nil)
				}
			}
		}
	}
	walk(decode(blocks), nil)
	return strings.Join(lines, "\n")
}

func richPiece(e map[string]any) string {
	str := func(k string) string { v, _ := e[k].(string); return v }
	switch str("type") {
	case "user":
		return "@" + str("user_id")
	case "usergroup":
		return "@" + str("usergroup_id")
	case "channel":
		return "#" + str("channel_id")
	case "emoji":
		return ":" + str("name") + ":"
	case "link":
		if str("text") == "" {
			return str("url")
		}
	case "date":
		return str("fallback")
	case "broadcast":
		return "@" + str("range")
	}
	return str("text")
}
