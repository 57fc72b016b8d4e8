package slacksim

import (
	"encoding/json"
	"slices"
)

const stackDepth = 3

// View is a modal or home tab as it stands.
type View struct {
	ID         string
	User       string
	Type       string // modal or home
	CallbackID string
	Hash       string
	Blocks     json.RawMessage
	Rev        int64
	raw        map[string]any
	previous   *View
	errors     map[string]string // by block: the answer to the last submission
}

// Title is the modal's title, escapes resolved.
func (v View) Title() string {
	t, _ := v.raw["title"].(map[string]any)
	s, _ := t["text"].(string)
	return unescape(s)
}

// PrivateMetadata is what the app stored with the view.
func (v View) PrivateMetadata() string {
	s, _ := v.raw["private_metadata"].(string)
	return s
}

// PlainText is everything that a person reads in the view, one line a text object.
func (v View) PlainText() string { return v.Title() + "\n" + plainText(v.Blocks) }

// Action finds the first interactive element or input with an action id.
func (v View) Action(actionID string) (Element, bool) { return findAction(v.Blocks, "", actionID) }

// Errors are what the app said about the last submission, by block id.
func (v View) Errors() map[string]string { return v.errors }

// Views lists the modals that a person has open, the one on top last.
func (s *Sim) Views(user string) []View {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []View
	for _, v := range s.views {
		if v.User == user {
			out = append(out, *v)
		}
	}
	return out
}

// Home is a person's published home tab.
func (s *Sim) Home(user string) (View, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v := s.homes[user]; v != nil {
		return *v, true
	}
	return View{}, false
}

// top is the modal that a person sees. Held: mu.
func (s *Sim) top(user string) *View {
	for _, v := range slices.Backward(s.views) {
		if v.User == user {
			return v
		}
	}
	return nil
}

func (s *Sim) depth(user string) int {
	n := 0
	for _, v := range s.views {
		if v.User == user {
			n++
		}
	}
	return n
}

// set gives a view its content, a new hash and a new revision. Held: mu.
func (s *Sim) set(v *View, raw map[string]any) {
	v.raw = raw
	v.Type, _ = raw["type"].(string)
	v.CallbackID, _ = raw["callback_id"].(string)
	v.Blocks = encode(raw["blocks"])
	v.Hash = s.nextTS() + "." + secretID()[:8]
	v.errors = nil
	s.touch()
	v.Rev = s.revision
}

// show puts a new modal on top of a person's stack. Held: mu.
func (s *Sim) show(user string, raw map[string]any, previous *View) *View {
	v := &View{ID: s.nextID("V"), User: user, previous: previous}
	s.set(v, raw)
	s.views = append(s.views, v)
	return v
}

// wireView is a view as the Web API and payloads show it. Held: mu.
func (s *Sim) wireView(v *View, state any) map[string]any {
	w := map[string]any{
		"id": v.ID, "team_id": s.opts.Team, "type": v.Type, "blocks": v.Blocks, "hash": v.Hash, "callback_id": v.CallbackID, "bot_id": s.opts.BotID,
		"app_id": s.opts.AppID, "app_installed_team_id": s.opts.Team, "private_metadata": v.PrivateMetadata(), "external_id": "",
		"state": map[string]any{"values": map[string]any{}}, "root_view_id": v.ID, "previous_view_id": nil,
		"title": nil, "submit": nil, "close": nil, "clear_on_close": false, "notify_on_close": false,
	}
	if state != nil {
		w["state"] = map[string]any{"values": state}
	}
	for _, k := range []string{"title", "submit", "close", "external_id", "clear_on_close", "notify_on_close"} {
		if x, ok := v.raw[k]; ok {
			w[k] = x
		}
	}
	for p := v.previous; p != nil; p = p.previous {
		if v.previous == p {
			w["previous_view_id"] = p.ID
		}
		w["root_view_id"] = p.ID
	}
	return w
}

func (s *Sim) openView(a args) (reply, *failure) {
	t, bad := s.redeem(a.str("trigger_id"))
	if bad != nil {
		return nil, bad
	}
	raw, bad := s.readView(a, "modal", nil)
	if bad != nil {
		return nil, bad
	}
	if t.view != nil && t.view.Type == "modal" || s.top(t.user) != nil {
		// views.open over an open modal starts a new stack.
		s.views = slices.DeleteFunc(s.views, func(v *View) bool { return v.User == t.user })
	}
	return reply{"view": s.wireView(s.show(t.user, raw, nil), nil)}, nil
}

func (s *Sim) pushView(a args) (reply, *failure) {
	t, bad := s.redeem(a.str("trigger_id"))
	if bad != nil {
		return nil, bad
	}
	raw, bad := s.readView(a, "modal", nil)
	if bad != nil {
		return nil, bad
	}
	below := s.top(t.user)
	switch {
	case t.view == nil || below == nil:
		return nil, fail("not_found") // a push needs a trigger from an open modal
	case s.depth(t.user) >= stackDepth:
		return nil, fail("push_limit_reached")
	}
	return reply{"view": s.wireView(s.show(t.user, raw, below), nil)}, nil
}

func (s *Sim) updateView(a args) (reply, *failure) {
	var v *View
	for _, open := range s.views {
		external, _ := open.raw["external_id"].(string)
		if open.ID == a.str("view_id") || external != "" && external == a.str("external_id") {
			v = open
		}
	}
	if v == nil {
		return nil, fail("not_found")
	}
	raw, bad := s.readView(a, "modal", v)
	switch {
	case bad != nil:
		return nil, bad
	case a.str("hash") != "" && a.str("hash") != v.Hash:
		return nil, fail("hash_conflict")
	}
	s.set(v, raw)
	return reply{"view": s.wireView(v, nil)}, nil
}

func (s *Sim) publishView(a args) (reply, *failure) {
	u := s.user(a.str("user_id"))
	if u == nil || u.Deleted {
		return nil, fail("invalid_arguments", "[ERROR] invalid user_id [json-pointer:/user_id]")
	}
	raw, bad := s.readView(a, "home", nil)
	if bad != nil {
		return nil, bad
	}
	v := s.homes[u.ID]
	if v == nil {
		v = &View{ID: s.nextID("V"), User: u.ID}
	} else if a.str("hash") != "" && a.str("hash") != v.Hash {
		return nil, fail("hash_conflict")
	}
	s.set(v, raw)
	s.homes[u.ID] = v
	return reply{"view": s.wireView(v, nil)}, nil
}

// readView checks the view argument; an external_id is the workspace's own. Held: mu.
func (s *Sim) readView(a args, kind string, self *View) (map[string]any, *failure) {
	raw, bad := checkView(a.raw("view"), kind)
	if bad != nil {
		return nil, bad
	}
	if id, _ := raw["external_id"].(string); id != "" {
		for _, v := range s.views {
			if v != self && v.raw["external_id"] == id {
				return nil, fail("duplicate_external_id")
			}
		}
	}
	return raw, nil
}
