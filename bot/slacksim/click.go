package slacksim

import (
	"context"
	"fmt"
	"net/url"
	"sync"
)

// ClickOptions says more about a click; the zero value is an ordinary one.
type ClickOptions struct {
	BlockID string // where several blocks repeat the action id
	Option  string // the value chosen in an overflow, select or radio group
	User    string // the person chosen in a users_select
	Date    string // the day chosen in a datepicker, YYYY-MM-DD
	Options []string
	Tamper  Tamper
}

// Click presses an interactive element of a message, as a person who sees it. It answers once the app has.
func (s *Sim) Click(ctx context.Context, userID, channel, ts, actionID string, opts ClickOptions) (Response, error) {
	payload, err := s.messageAction(userID, channel, ts, actionID, opts)
	if err != nil {
		return Response{}, err
	}
	return s.interact(ctx, payload, opts.Tamper)
}

// ClickOverflow chooses an option, by its value, from an overflow menu.
func (s *Sim) ClickOverflow(ctx context.Context, userID, channel, ts, actionID, value string) (Response, error) {
	return s.Click(ctx, userID, channel, ts, actionID, ClickOptions{Option: value})
}

// ClickTwice delivers one click twice at the same time, as a redelivery or a double-click does; both answers return.
func (s *Sim) ClickTwice(ctx context.Context, userID, channel, ts, actionID string, opts ClickOptions) ([2]Response, error) {
	var out [2]Response
	payload, err := s.messageAction(userID, channel, ts, actionID, opts)
	if err != nil {
		return out, err
	}
	var errs [2]error
	var both sync.WaitGroup
	body := interactionBody(payload, opts.Tamper)
	for i := range out {
		both.Go(func() {
			out[i], errs[i] = s.deliver(ctx, InteractionsPath, formType, body, nil, opts.Tamper)
		})
	}
	both.Wait()
	if errs[0] != nil {
		return out, errs[0]
	}
	return out, errs[1]
}

const formType = "application/x-www-form-urlencoded"

func interactionBody(payload map[string]any, t Tamper) []byte {
	if t.Payload != nil {
		t.Payload(payload)
	}
	return []byte(url.Values{"payload": {string(encode(payload))}}.Encode())
}

func (s *Sim) interact(ctx context.Context, payload map[string]any, t Tamper) (Response, error) {
	return s.deliver(ctx, InteractionsPath, formType, interactionBody(payload, t), nil, t)
}

// messageAction builds the block_actions payload of a click on a message.
func (s *Sim) messageAction(userID, channel, ts, actionID string, opts ClickOptions) (map[string]any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.user(userID)
	if u == nil {
		return nil, fmt.Errorf("%w: %s", ErrNoUser, userID)
	}
	m := s.find(channel, ts)
	c := s.channel(channel)
	if m == nil || c == nil || m.Ephemeral && m.To != u.ID || !s.sees(c, u) {
		return nil, ErrNoMessage
	}
	e, ok := findAction(m.Blocks, opts.BlockID, actionID)
	if !ok {
		return nil, fmt.Errorf("%w: %s", ErrNoAction, actionID)
	}
	action, err := s.action(e, opts)
	if err != nil {
		return nil, err
	}
	p := s.interaction("block_actions", u)
	container := map[string]any{"type": "message", "message_ts": m.TS, "channel_id": c.ID, "is_ephemeral": m.Ephemeral}
	if m.ThreadTS != "" {
		container["thread_ts"] = m.ThreadTS
	}
	p["container"] = container
	p["channel"] = map[string]any{"id": c.ID, "name": channelName(c)}
	p["trigger_id"] = s.newTrigger(u.ID, nil)
	p["response_url"] = s.newAnswerURL(c.ID, u.ID, m)
	p["state"] = map[string]any{"values": map[string]any{}}
	p["actions"] = []any{action}
	if !m.Ephemeral {
		p["message"] = s.wire(m, false)
	}
	return p, nil
}

// interaction is what all interaction payloads share. Held: mu.
func (s *Sim) interaction(kind string, u *User) map[string]any {
	return map[string]any{
		"type": kind, "token": "deprecated", "api_app_id": s.opts.AppID, "enterprise": nil, "is_enterprise_install": false,
		"team": map[string]any{"id": s.opts.Team, "domain": s.opts.TeamDomain},
		"user": map[string]any{"id": u.ID, "username": u.Name, "name": u.Name, "team_id": u.TeamID},
	}
}

func channelName(c *Channel) string {
	if c.dmWith != "" {
		return "directmessage"
	}
	return c.Name
}

// action is one entry of a payload's actions: what the client reports of an element. Held: mu.
func (s *Sim) action(e Element, opts ClickOptions) (map[string]any, error) {
	a := map[string]any{"type": e.Raw["type"], "action_id": e.Raw["action_id"], "block_id": e.BlockID, "action_ts": s.nextTS()}
	switch e.String("type") {
	case "button":
		a["text"] = e.Raw["text"]
		for _, k := range []string{"value", "style", "url"} {
			if v, ok := e.Raw[k]; ok {
				a[k] = v
			}
		}
		return a, nil
	}
	fields, err := s.chosen(e, opts)
	for k, v := range fields {
		a[k] = v
	}
	return a, err
}

// chosen is the part of an action or of a view's state that says what was picked. Held: mu.
func (s *Sim) chosen(e Element, opts ClickOptions) (map[string]any, error) {
	pick := func(value string) (map[string]any, error) {
		o, ok := option(e.Raw, value)
		if !ok {
			return nil, fmt.Errorf("%w: %q", ErrNoOption, value)
		}
		return o, nil
	}
	person := func(id string) error {
		if s.user(id) == nil {
			return fmt.Errorf("%w: %s", ErrNoUser, id)
		}
		return nil
	}
	switch e.String("type") {
	case "overflow", "static_select", "radio_buttons":
		o, err := pick(opts.Option)
		return map[string]any{"selected_option": o}, err
	case "checkboxes":
		list := []any{}
		for _, v := range opts.Options {
			o, err := pick(v)
			if err != nil {
				return nil, err
			}
			list = append(list, o)
		}
		return map[string]any{"selected_options": list}, nil
	case "users_select":
		return map[string]any{"selected_user": opts.User}, person(opts.User)
	case "multi_users_select":
		for _, id := range opts.Options {
			if err := person(id); err != nil {
				return nil, err
			}
		}
		return map[string]any{"selected_users": orEmpty(opts.Options)}, nil
	case "datepicker":
		return map[string]any{"selected_date": opts.Date}, nil
	}
	return nil, fmt.Errorf("%w: %s", ErrNoAction, e.String("type"))
}
