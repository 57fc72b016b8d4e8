package slacksim

import (
	"encoding/json"
	"strings"
)

const (
	textStored   = 40_000 // chat.postMessage cuts longer text
	textUpdated  = 4_000  // chat.update refuses longer text (msg_too_long)
	metadataSize = 8_192
)

// content is the checked and changed body of a message.
type content struct {
	text      string
	blocks    json.RawMessage // nil: none
	hasBlocks bool            // the argument was there, perhaps as []
	metadata  *Metadata
	hasMeta   bool
}

// readContent checks text, blocks and metadata as chat.postMessage does.
func readContent(a args) (content, *failure) {
	c := content{text: mutateText(a.str("text"))}
	if a.has("attachments") && strings.TrimSpace(a.str("attachments")) != "[]" && a.str("attachments") != "" {
		return c, fail("invalid_attachments", "[ERROR] the simulator takes no attachments [json-pointer:/attachments]")
	}
	if a.has("blocks") && len(a.raw("blocks")) > 0 {
		c.hasBlocks = true
		blocks, bad := checkMessage(a.raw("blocks"), utf16Len(a.str("text")))
		if bad != nil {
			return c, bad
		}
		if len(blocks) > 0 {
			c.blocks = encode(blocks)
		}
	}
	if a.has("metadata") && len(a.raw("metadata")) > 0 {
		c.hasMeta = true
		m, bad := readMetadata(a.raw("metadata"))
		if bad != nil {
			return c, bad
		}
		c.metadata = m
	}
	return c, nil
}

// readMetadata decodes numbers as float64 on purpose: big integers do not survive Slack either.
func readMetadata(raw []byte) (*Metadata, *failure) {
	if len(raw) > metadataSize {
		return nil, fail("metadata_too_large")
	}
	var m struct {
		EventType    *string         `json:"event_type"`
		EventPayload *map[string]any `json:"event_payload"`
	}
	if json.Unmarshal(raw, &m) != nil {
		return nil, fail("invalid_metadata_format")
	}
	if m.EventType == nil && m.EventPayload == nil {
		return nil, nil // {} clears it
	}
	if m.EventType == nil || *m.EventType == "" || utf16Len(*m.EventType) > 255 || m.EventPayload == nil {
		return nil, fail("invalid_metadata_schema")
	}
	return &Metadata{EventType: *m.EventType, EventPayload: *m.EventPayload}, nil
}

// target resolves the channel argument of a posting method, which may also be a person (their direct message) or a
// #name. Held: mu.
func (s *Sim) target(id string, posting bool) (*Channel, *failure) {
	c := s.channel(id)
	if posting && c == nil {
		if u := s.user(id); u != nil && !u.Deleted {
			return s.direct(id), nil
		}
		for _, ch := range s.channels {
			if ch.Name != "" && ch.Name == strings.TrimPrefix(id, "#") {
				c = ch
			}
		}
	}
	switch {
	case c == nil:
		return nil, fail("channel_not_found")
	case c.Private && c.NoBot:
		return nil, fail("channel_not_found")
	case posting && c.Archived:
		return nil, fail("is_archived")
	case c.NoBot:
		return nil, fail("not_in_channel")
	}
	return c, nil
}

func (s *Sim) postMessage(a args) (reply, *failure) {
	c, bad := s.target(a.str("channel"), true)
	if bad != nil {
		return nil, bad
	}
	body, bad := readContent(a)
	switch {
	case bad != nil:
		return nil, bad
	case body.text == "" && body.blocks == nil:
		return nil, fail("no_text")
	}
	thread := a.str("thread_ts")
	if thread != "" {
		parent := s.find(c.ID, thread)
		if parent == nil || parent.Ephemeral {
			return nil, fail("thread_not_found")
		}
		if parent.ThreadTS != "" { // Slack files a reply to a reply under the thread
			thread = parent.ThreadTS
		}
	}
	m := s.add(Message{
		Channel: c.ID, ThreadTS: thread, User: s.opts.BotUserID, Bot: true,
		Text: cut(body.text, textStored), Blocks: body.blocks, Metadata: body.metadata,
	})
	return reply{"channel": c.ID, "ts": m.TS, "message": s.wire(m, true)}, nil
}

func (s *Sim) postEphemeral(a args) (reply, *failure) {
	c, bad := s.target(a.str("channel"), false)
	if bad != nil {
		return nil, bad
	}
	u := s.user(a.str("user"))
	if u == nil || u.Deleted || !s.sees(c, u) {
		return nil, fail("user_not_in_channel")
	}
	body, bad := readContent(a)
	switch {
	case bad != nil:
		return nil, bad
	case body.text == "" && body.blocks == nil:
		return nil, fail("no_text")
	}
	m := s.add(Message{
		Channel: c.ID, ThreadTS: a.str("thread_ts"), User: s.opts.BotUserID, Bot: true,
		Text: cut(body.text, textStored), Blocks: body.blocks, Ephemeral: true, To: u.ID,
	})
	return reply{"message_ts": m.TS}, nil
}

// own finds a message that the app may change. Held: mu.
func (s *Sim) own(a args, refused string) (*Channel, *Message, *failure) {
	c, bad := s.target(a.str("channel"), false)
	if bad != nil {
		return nil, nil, bad
	}
	m := s.find(c.ID, a.str("ts"))
	switch {
	case m == nil || m.Ephemeral:
		return nil, nil, fail("message_not_found")
	case !m.Bot:
		return nil, nil, fail(refused)
	case c.Archived:
		return nil, nil, fail("is_inactive")
	}
	return c, m, nil
}

// updateMessage keeps the old blocks and metadata where the call leaves them out. Slack's pages have said both that
// blocks then stay and that a text replaces them, and both were seen (slackapi/python-slack-sdk#523); of the two,
// staying is what hurts, so that is what an app gets here: an update that must remove buttons has to send blocks.
func (s *Sim) updateMessage(a args) (reply, *failure) {
	c, m, bad := s.own(a, "cant_update_message")
	if bad != nil {
		return nil, bad
	}
	if utf16Len(a.str("text")) > textUpdated {
		return nil, fail("msg_too_long")
	}
	body, bad := readContent(a)
	switch {
	case bad != nil:
		return nil, bad
	case body.text == "" && body.blocks == nil:
		return nil, fail("no_text")
	}
	s.change(m, body)
	return reply{"channel": c.ID, "ts": m.TS, "text": m.Text, "message": s.wire(m, true)}, nil
}

// change applies an edit to a stored message. Held: mu.
func (s *Sim) change(m *Message, body content) {
	m.Text = body.text
	if body.hasBlocks {
		m.Blocks = body.blocks
	}
	if body.hasMeta {
		m.Metadata = body.metadata
	}
	m.EditedTS = s.nextTS()
	m.Updates++
	s.touch()
	m.Rev = s.revision
}

func (s *Sim) deleteMessage(a args) (reply, *failure) {
	c, m, bad := s.own(a, "cant_delete_message")
	if bad != nil {
		return nil, bad
	}
	m.Deleted = true
	s.touch()
	return reply{"channel": c.ID, "ts": m.TS}, nil
}

func (s *Sim) permalink(a args) (reply, *failure) {
	c, bad := s.target(a.str("channel"), false)
	if bad != nil {
		return nil, bad
	}
	m := s.find(c.ID, a.str("message_ts"))
	if m == nil {
		return nil, fail("message_not_found")
	}
	link := "https://" + s.opts.TeamDomain + ".slack.com/archives/" + c.ID + "/p" + strings.ReplaceAll(m.TS, ".", "")
	return reply{"channel": c.ID, "permalink": link}, nil
}
