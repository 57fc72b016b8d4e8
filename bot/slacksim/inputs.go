package slacksim

import (
	"time"
)

// The element tables. Source: https://docs.slack.dev/reference/block-kit/block-elements.

var (
	actionID    = may(uniqueAction)
	placeholder = may(plain(150))
	confirm     = may(confirmation)
	focus       = may(focusOnLoad)
)

var (
	button = object(shape{
		"type": typeName, "text": must(plain(75)), "action_id": actionID, "url": may(link(3000)), "value": may(str(1, 2000)),
		"style": may(oneOf("primary", "danger")), "confirm": confirm, "accessibility_label": may(words(1, 75)),
	})
	overflow = object(shape{
		"type": typeName, "action_id": actionID, "options": must(list(1, 5, choice(plain(75), true))), "confirm": confirm,
	}, distinct)
	staticSelect = object(shape{
		"type": typeName, "action_id": actionID, "placeholder": placeholder, "options": may(list(1, 100, choice(plain(75), false))),
		"option_groups":  may(list(1, 100, object(shape{"label": must(plain(75)), "options": must(list(1, 100, choice(plain(75), false)))}))),
		"initial_option": may(choice(plain(75), false)), "confirm": confirm, "focus_on_load": focus,
	}, oneSource, distinct, initialIsOffered)
	radioButtons = object(shape{
		"type": typeName, "action_id": actionID, "options": must(list(1, 10, choice(text(75), false))), "initial_option": may(choice(text(75), false)),
		"confirm": confirm, "focus_on_load": focus,
	}, distinct, initialIsOffered)
	checkboxes = object(shape{
		"type": typeName, "action_id": actionID, "options": must(list(1, 10, choice(text(75), false))), "initial_options": may(list(1, 10, choice(text(75), false))),
		"confirm": confirm, "focus_on_load": focus,
	}, distinct, initialIsOffered)
	usersSelect = object(shape{
		"type": typeName, "action_id": actionID, "placeholder": placeholder, "initial_user": may(ident("UW")), "confirm": confirm, "focus_on_load": focus,
	})
	multiUsersSelect = object(shape{
		"type": typeName, "action_id": actionID, "placeholder": placeholder, "initial_users": may(list(1, 1000, ident("UW"))),
		"max_selected_items": may(integer(1, 1000)), "confirm": confirm, "focus_on_load": focus,
	})
	datePicker = object(shape{
		"type": typeName, "action_id": actionID, "placeholder": placeholder, "initial_date": may(date), "confirm": confirm, "focus_on_load": focus,
	})
	plainTextInput = object(shape{
		"type": typeName, "action_id": actionID, "placeholder": placeholder, "initial_value": may(str(0, 3000)), "multiline": may(boolean),
		"min_length": may(integer(0, 3000)), "max_length": may(integer(1, 3000)), "focus_on_load": focus,
		"dispatch_action_config": may(object(shape{"trigger_actions_on": must(list(1, 2, oneOf("on_enter_pressed", "on_character_entered")))})),
	}, lengthsFit)
	imageElement = object(shape{"type": typeName, "image_url": must(link(3000)), "alt_text": must(words(1, 2000))})
)

// Which elements go where.
var (
	actionKinds = map[string]check{
		"button": button, "overflow": overflow, "static_select": staticSelect, "radio_buttons": radioButtons, "checkboxes": checkboxes,
		"users_select": usersSelect, "datepicker": datePicker,
	}
	accessories = map[string]check{
		"button": button, "overflow": overflow, "static_select": staticSelect, "radio_buttons": radioButtons, "checkboxes": checkboxes,
		"users_select": usersSelect, "multi_users_select": multiUsersSelect, "datepicker": datePicker, "image": imageElement,
	}
	inputKinds = map[string]check{
		"plain_text_input": plainTextInput, "static_select": staticSelect, "radio_buttons": radioButtons, "checkboxes": checkboxes,
		"users_select": usersSelect, "multi_users_select": multiUsersSelect, "datepicker": datePicker,
	}
	contextKinds = map[string]check{
		"image":      imageElement,
		"plain_text": plain(3000),
		"mrkdwn":     object(shape{"type": typeName, "text": must(words(1, 3000)), "verbatim": may(boolean)}),
	}
)

// uniqueAction: an action_id is its block's own; other blocks may repeat it.
func uniqueAction(c *checker, at string, v any) {
	str(1, 255)(c, at, v)
	id, _ := v.(string)
	if c.actions[id] {
		c.complain(at, "`action_id` %q already exists in this block", id)
	}
	c.actions[id] = true
}

// focusOnLoad: one element of a view may have it.
func focusOnLoad(c *checker, at string, v any) {
	boolean(c, at, v)
	if v == true {
		c.focused++
		if c.focused > 1 {
			c.complain(at, "only one element can have focus_on_load set to true")
		}
	}
}

func oneSource(c *checker, at string, o map[string]any) {
	if (o["options"] == nil) == (o["option_groups"] == nil) {
		c.complain(at, "must provide exactly one of options and option_groups")
	}
}

// initialIsOffered: an initial option repeats one of the options, text and all.
func initialIsOffered(c *checker, at string, o map[string]any) {
	var initial []any
	if one := o["initial_option"]; one != nil {
		initial = append(initial, one)
	}
	many, _ := o["initial_options"].([]any)
	for _, want := range append(initial, many...) {
		w, _ := want.(map[string]any)
		offered := false
		for _, have := range options(o) {
			offered = offered || string(encode(have)) == string(encode(w))
		}
		if !offered {
			c.complain(at, "initial options must match one of the options")
			return
		}
	}
}

// lengthsFit: min_length ≤ max_length, and the initial value within both.
func lengthsFit(c *checker, at string, o map[string]any) {
	low, high := lengthBounds(o)
	if low > high {
		c.complain(at, "min_length must not be greater than max_length")
	}
	if initial, _ := o["initial_value"].(string); utf16Len(initial) > high {
		c.complain(at+"/initial_value", "must be less than %d characters", high+1)
	}
}

// lengthBounds are the lengths that a plain_text_input accepts.
func lengthBounds(o map[string]any) (low, high int) {
	high = 3000
	if n, ok := number(o["min_length"]); ok {
		low = n
	}
	if n, ok := number(o["max_length"]); ok {
		high = n
	}
	return low, high
}

func date(c *checker, at string, v any) {
	s, _ := v.(string)
	if _, err := time.Parse(time.DateOnly, s); err != nil {
		c.complain(at, "must be a date in the format YYYY-MM-DD")
	}
}
