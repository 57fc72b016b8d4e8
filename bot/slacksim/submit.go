package slacksim

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Values are a view's inputs by action id, or by "block_id/action_id" where blocks repeat it: a string for text,
// options, people and days; []string for checkboxes and several people. An input that is left out keeps its initial
// value.
type Values map[string]any

// WaitView waits until a person sees a modal for which pred is true; nil takes any.
func (s *Sim) WaitView(ctx context.Context, user string, pred func(View) bool) (found View, err error) {
	err = s.wait(ctx, func() bool {
		v := s.top(user)
		if v == nil || pred != nil && !pred(*v) {
			return false
		}
		found = *v
		return true
	})
	return found, err
}

// WaitNoView waits until a person has no modal open.
func (s *Sim) WaitNoView(ctx context.Context, user string) error {
	return s.wait(ctx, func() bool { return s.top(user) == nil })
}

// SubmitResult is what came of a submission.
type SubmitResult struct {
	Response
	Action string            // "", clear, errors, update or push
	Errors map[string]string // by block id
}

// Submit presses the submit button of the modal that the person sees, which must be view. Inputs that Slack's client
// would stop (missing, too long, an option that is not offered) give ErrInvalidInput and are not sent. The app's answer
// is carried out: an empty body closes the view, errors keep it.
func (s *Sim) Submit(ctx context.Context, user string, view View, values Values) (SubmitResult, error) {
	return s.SubmitTampered(ctx, user, view, values, Tamper{})
}

// SubmitTampered is Submit with changes on the way.
func (s *Sim) SubmitTampered(ctx context.Context, user string, view View, values Values, t Tamper) (SubmitResult, error) {
	s.mu.Lock()
	u, v := s.user(user), s.top(user)
	if u == nil || v == nil || v.ID != view.ID {
		s.mu.Unlock()
		return SubmitResult{}, ErrNoView
	}
	if v.raw["submit"] == nil {
		s.mu.Unlock()
		return SubmitResult{}, fmt.Errorf("%w: the view has no submit button", ErrNoView)
	}
	state, err := s.viewState(v, values, true)
	if err != nil {
		s.mu.Unlock()
		return SubmitResult{}, err
	}
	p := s.interaction("view_submission", u)
	p["view"] = s.wireView(v, state)
	p["trigger_id"] = s.newTrigger(u.ID, v)
	p["response_urls"] = []any{}
	s.mu.Unlock()

	resp, err := s.interact(ctx, p, t)
	if err != nil {
		return SubmitResult{Response: resp}, err
	}
	return s.afterSubmit(v, resp)
}

// afterSubmit carries out a response_action.
func (s *Sim) afterSubmit(v *View, resp Response) (SubmitResult, error) {
	out := SubmitResult{Response: resp}
	var body struct {
		Action string            `json:"response_action"`
		Errors map[string]string `json:"errors"`
		View   json.RawMessage   `json:"view"`
	}
	if text := strings.TrimSpace(string(resp.Body)); text != "" {
		if err := json.Unmarshal(resp.Body, &body); err != nil {
			return out, fmt.Errorf("slacksim: the answer to the submission is neither empty nor JSON")
		}
	}
	out.Action, out.Errors = body.Action, body.Errors
	s.mu.Lock()
	defer s.mu.Unlock()
	switch body.Action {
	case "":
		s.views = slices.DeleteFunc(s.views, func(x *View) bool { return x == v })
	case "clear":
		s.views = slices.DeleteFunc(s.views, func(x *View) bool { return x.User == v.User })
	case "errors":
		for block := range body.Errors {
			if !hasInput(v.Blocks, block) {
				return out, fmt.Errorf("slacksim: errors for %q, which is no input block of the view", block)
			}
		}
		if len(body.Errors) == 0 {
			return out, fmt.Errorf("slacksim: response_action errors without errors")
		}
		v.errors = body.Errors
		s.touch()
		v.Rev = s.revision
	case "update", "push":
		raw, bad := checkView(body.View, "modal")
		if bad != nil {
			return out, fmt.Errorf("slacksim: the view in the answer was refused: %s: %s", bad.code, strings.Join(bad.messages, "; "))
		}
		if body.Action == "update" {
			s.set(v, raw)
		} else {
			if s.depth(v.User) >= stackDepth {
				return out, fmt.Errorf("slacksim: the view in the answer was refused: push_limit_reached")
			}
			s.show(v.User, raw, v)
		}
	default:
		return out, fmt.Errorf("slacksim: unknown response_action %q", body.Action)
	}
	s.touch()
	return out, nil
}

func hasInput(blocks json.RawMessage, id string) bool {
	list, _ := decode(blocks).([]any)
	for _, b := range list {
		if m, _ := b.(map[string]any); m["type"] == "input" && m["block_id"] == id {
			return true
		}
	}
	return false
}

// CloseView dismisses the modal on top, or with all of them every one; the app hears of it when the view asked for
// view_closed.
func (s *Sim) CloseView(ctx context.Context, user string, all bool) error {
	s.mu.Lock()
	u, v := s.user(user), s.top(user)
	if u == nil || v == nil {
		s.mu.Unlock()
		return ErrNoView
	}
	if v.raw["clear_on_close"] == true {
		all = true
	}
	s.views = slices.DeleteFunc(s.views, func(x *View) bool { return x == v || all && x.User == user })
	s.touch()
	p := s.interaction("view_closed", u)
	p["view"], p["is_cleared"] = s.wireView(v, nil), all
	s.mu.Unlock()
	if v.raw["notify_on_close"] != true {
		return nil
	}
	_, err := s.interact(ctx, p, Tamper{})
	return err
}

// ClickView presses an interactive element of the modal or home tab that a person sees.
func (s *Sim) ClickView(ctx context.Context, user, viewID, actionID string, values Values, opts ClickOptions) (Response, error) {
	s.mu.Lock()
	u, v := s.user(user), s.top(user)
	if h := s.homes[user]; h != nil && h.ID == viewID {
		v = h
	}
	if u == nil || v == nil || v.ID != viewID {
		s.mu.Unlock()
		return Response{}, ErrNoView
	}
	p, err := s.viewAction(u, v, actionID, values, opts)
	s.mu.Unlock()
	if err != nil {
		return Response{}, err
	}
	return s.interact(ctx, p, opts.Tamper)
}

// viewAction builds the block_actions payload of a click in a view. Held: mu.
func (s *Sim) viewAction(u *User, v *View, actionID string, values Values, opts ClickOptions) (map[string]any, error) {
	e, ok := findAction(v.Blocks, opts.BlockID, actionID)
	if !ok {
		return nil, fmt.Errorf("%w: %s", ErrNoAction, actionID)
	}
	action, err := s.action(e, opts)
	if err != nil {
		return nil, err
	}
	state, err := s.viewState(v, values, false)
	if err != nil {
		return nil, err
	}
	p := s.interaction("block_actions", u)
	p["container"] = map[string]any{"type": "view", "view_id": v.ID}
	p["trigger_id"] = s.newTrigger(u.ID, v)
	p["view"] = s.wireView(v, state)
	p["actions"] = []any{action}
	return p, nil
}
