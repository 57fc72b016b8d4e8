package slacksim

import (
	"encoding/json"
	"fmt"
	"time"
)

// viewState is view.state.values: what stands in a view's inputs. With complete, it refuses what Slack's client would
// not send. Held: mu.
func (s *Sim) viewState(v *View, values Values, complete bool) (map[string]any, error) {
	state := map[string]any{}
	list, _ := decode(v.Blocks).([]any)
	known := map[string]bool{}
	for _, b := range list {
		block, _ := b.(map[string]any)
		id, _ := block["block_id"].(string)
		elements, _ := block["elements"].([]any)
		for _, raw := range append(elements, block["element"], block["accessory"]) {
			m, _ := raw.(map[string]any)
			e := Element{BlockID: id, Raw: m}
			action := e.String("action_id")
			if action == "" || e.String("type") == "button" || e.String("type") == "overflow" {
				continue
			}
			given, filled := values[id+"/"+action]
			if !filled {
				given, filled = values[action]
			}
			if !filled {
				given = initial(m)
			}
			known[action], known[id+"/"+action] = true, true
			value, empty, err := s.inputValue(e, given)
			if err != nil {
				return nil, err
			}
			if empty && complete && block["type"] == "input" && block["optional"] != true {
				return nil, fmt.Errorf("%w: %s is required", ErrInvalidInput, action)
			}
			inBlock, ok := state[id].(map[string]any)
			if !ok {
				inBlock = map[string]any{}
				state[id] = inBlock
			}
			inBlock[action] = value
		}
	}
	for action := range values {
		if !known[action] {
			return nil, fmt.Errorf("%w: the view has no input %s", ErrInvalidInput, action)
		}
	}
	return state, nil
}

// initial is the value that an input starts with, in the form of Values.
func initial(e map[string]any) any {
	one := func(v any) any {
		o, _ := v.(map[string]any)
		return o["value"]
	}
	if text, ok := e["initial_value"].(string); ok {
		return text
	}
	switch {
	case e["initial_option"] != nil:
		return one(e["initial_option"])
	case e["initial_user"] != nil:
		return e["initial_user"]
	case e["initial_date"] != nil:
		return e["initial_date"]
	}
	var many []string
	for _, k := range []string{"initial_options", "initial_users"} {
		list, _ := e[k].([]any)
		for _, v := range list {
			if id, ok := v.(string); ok {
				many = append(many, id)
			} else if id, ok := one(v).(string); ok {
				many = append(many, id)
			}
		}
	}
	if many == nil {
		return nil
	}
	return many
}

// inputValue is one entry of the state, and whether it is empty. Text comes back with its emoji changed to codes.
func (s *Sim) inputValue(e Element, given any) (value map[string]any, empty bool, err error) {
	kind := e.String("type")
	out := map[string]any{"type": kind}
	word, isWord := given.(string)
	var words []string
	switch g := given.(type) {
	case []string:
		words = g
	case []any: // from JSON
		for _, x := range g {
			w, _ := x.(string)
			words = append(words, w)
		}
	case nil, string:
	default:
		return nil, false, fmt.Errorf("%w: %s takes text or a list", ErrInvalidInput, e.String("action_id"))
	}
	empty = word == "" && len(words) == 0
	switch kind {
	case "plain_text_input":
		out["value"] = nil
		if isWord && word != "" {
			low, high := lengthBounds(e.Raw)
			if n := utf16Len(word); n < low || n > high {
				return nil, false, fmt.Errorf("%w: %s must have %d to %d characters", ErrInvalidInput, e.String("action_id"), low, high)
			}
			out["value"] = emojiCodes().Replace(word)
		}
		return out, empty, nil
	case "multi_users_select":
		if high, ok := number(e.Raw["max_selected_items"]); ok && len(words) > high {
			return nil, false, fmt.Errorf("%w: %s takes at most %d", ErrInvalidInput, e.String("action_id"), high)
		}
	case "datepicker":
		if _, bad := time.Parse(time.DateOnly, word); word != "" && bad != nil {
			return nil, false, fmt.Errorf("%w: %s takes a day", ErrInvalidInput, e.String("action_id"))
		}
	}
	if empty {
		for _, k := range emptyField[kind] {
			out[k] = nil
		}
		if kind == "checkboxes" || kind == "multi_users_select" {
			out[emptyField[kind][0]] = []any{}
		}
		return out, true, nil
	}
	fields, err := s.chosen(e, ClickOptions{Option: word, User: word, Date: word, Options: words})
	if err != nil {
		return nil, false, fmt.Errorf("%w: %s: %w", ErrInvalidInput, e.String("action_id"), err)
	}
	for k, v := range fields {
		out[k] = v
	}
	return out, false, nil
}

var emptyField = map[string][]string{
	"static_select": {"selected_option"}, "radio_buttons": {"selected_option"}, "checkboxes": {"selected_options"},
	"users_select": {"selected_user"}, "multi_users_select": {"selected_users"}, "datepicker": {"selected_date"},
}

func number(v any) (int, bool) {
	n, ok := v.(json.Number)
	i, err := n.Int64()
	return int(i), ok && err == nil
}
