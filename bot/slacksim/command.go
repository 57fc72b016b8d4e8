package slacksim

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// Command runs a slash command as a person. Mentions in text are sent escaped ("@ana" → "<@U0ANA|ana>"), as an app gets
// them when the command has escaping on. What the app answers directly is shown to the person.
func (s *Sim) Command(ctx context.Context, userID, channel, command, text string) (Response, error) {
	return s.CommandTampered(ctx, userID, channel, command, text, Tamper{})
}

// CommandTampered is Command with changes on the way; Tamper.Payload sees the form's fields as strings.
func (s *Sim) CommandTampered(ctx context.Context, userID, channel, command, text string, t Tamper) (Response, error) {
	s.mu.Lock()
	u, c := s.user(userID), s.channel(channel)
	switch {
	case u == nil:
		s.mu.Unlock()
		return Response{}, fmt.Errorf("%w: %s", ErrNoUser, userID)
	case c == nil || !s.sees(c, u):
		s.mu.Unlock()
		return Response{}, fmt.Errorf("%w: %s", ErrNoChannel, channel)
	}
	back := &answerURL{channel: c.ID, user: u.ID}
	fields := map[string]any{
		"token": "deprecated", "team_id": u.TeamID, "team_domain": s.opts.TeamDomain, "channel_id": c.ID, "channel_name": channelName(c),
		"user_id": u.ID, "user_name": u.Name, "command": command, "text": s.escapeMentions(strings.TrimSpace(text)),
		"api_app_id": s.opts.AppID, "is_enterprise_install": "false",
		"response_url": s.newAnswerURL(c.ID, u.ID, nil), "trigger_id": s.newTrigger(u.ID, nil),
	}
	s.mu.Unlock()
	if t.Payload != nil {
		t.Payload(fields)
	}
	form := url.Values{}
	for k, v := range fields {
		form.Set(k, fmt.Sprint(v))
	}
	resp, err := s.deliver(ctx, CommandsPath, formType, []byte(form.Encode()), nil, t)
	if err != nil {
		return resp, err
	}
	return resp, s.showAnswer(back, resp)
}

// showAnswer turns the acknowledgement's body into a message: JSON as for a response_url, or plain text.
func (s *Sim) showAnswer(back *answerURL, resp Response) error {
	body := bytes.TrimSpace(resp.Body)
	if len(body) == 0 {
		return nil
	}
	a := args{}
	if json.Unmarshal(body, &a.object) != nil || a.object == nil {
		a = args{object: map[string]json.RawMessage{"text": encode(string(body))}}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if bad := s.answerAs(back, a); bad != nil {
		return fmt.Errorf("slacksim: the answer to the command was refused: %s: %s", bad.code, strings.Join(bad.messages, "; "))
	}
	return nil
}

var mention = regexp.MustCompile(`([@#])([\p{L}\p{N}._-]+)`)

// escapeMentions resolves @person, @group and #channel, and escapes & < >. Unknown names stay text. Held: mu.
func (s *Sim) escapeMentions(text string) string {
	return mention.ReplaceAllStringFunc(escaper.Replace(text), func(m string) string {
		name := m[1:]
		if m[0] == '#' {
			for _, c := range s.channels {
				if c.Name != "" && c.Name == name {
					return "<#" + c.ID + "|" + c.Name + ">"
				}
			}
			return m
		}
		for _, u := range s.users {
			if u.Name == name {
				return "<@" + u.ID + "|" + u.Name + ">"
			}
		}
		for _, g := range s.groups {
			if g.Handle == name {
				return "<!subteam^" + g.ID + "|@" + g.Handle + ">"
			}
		}
		return m
	})
}

// Say posts a message as a person, in a channel they are in; thread may name a message to reply to.
func (s *Sim) Say(userID, channel, thread, text string) (Message, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, c := s.user(userID), s.channel(channel)
	switch {
	case u == nil:
		return Message{}, fmt.Errorf("%w: %s", ErrNoUser, userID)
	case c == nil || !s.sees(c, u):
		return Message{}, fmt.Errorf("%w: %s", ErrNoChannel, channel)
	}
	if thread != "" {
		parent := s.find(c.ID, thread)
		if parent == nil {
			return Message{}, ErrNoMessage
		}
		if parent.ThreadTS != "" {
			thread = parent.ThreadTS
		}
	}
	return *s.add(Message{Channel: c.ID, ThreadTS: thread, User: u.ID, Text: mutateText(s.escapeMentions(text))}), nil
}
