package slacksim

import (
	"bytes"
	"encoding/json"
)

// decode reads JSON that was validated before, keeping numbers as sent; anything else gives nil.
func decode(raw []byte) any {
	if len(raw) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil
	}
	return v
}

// encode writes a decoded value without HTML escaping; what was decoded always encodes.
func encode(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// eachElement calls f for every interactive element of a block list, in order, until it returns false.
func eachElement(blocks json.RawMessage, f func(Element) bool) {
	list, _ := decode(blocks).([]any)
	for _, b := range list {
		block, _ := b.(map[string]any)
		id, _ := block["block_id"].(string)
		elements, _ := block["elements"].([]any)
		elements = append(elements, block["accessory"], block["element"])
		for _, e := range elements {
			m, _ := e.(map[string]any)
			if _, ok := m["action_id"].(string); ok && !f(Element{BlockID: id, Raw: m}) {
				return
			}
		}
	}
}

// findAction finds an element by its action id and, when given, its block.
func findAction(blocks json.RawMessage, blockID, actionID string) (found Element, ok bool) {
	eachElement(blocks, func(e Element) bool {
		if e.String("action_id") == actionID && (blockID == "" || e.BlockID == blockID) {
			found, ok = e, true
		}
		return !ok
	})
	return found, ok
}

// options lists an element's options, those of its groups included.
func options(e map[string]any) []map[string]any {
	var out []map[string]any
	add := func(v any) {
		list, _ := v.([]any)
		for _, o := range list {
			if m, ok := o.(map[string]any); ok {
				out = append(out, m)
			}
		}
	}
	add(e["options"])
	groups, _ := e["option_groups"].([]any)
	for _, g := range groups {
		if m, ok := g.(map[string]any); ok {
			add(m["options"])
		}
	}
	return out
}

func option(e map[string]any, value string) (map[string]any, bool) {
	for _, o := range options(e) {
		if o["value"] == value {
			return o, true
		}
	}
	return nil, false
}
