package slacksim

const viewBytes = 250 << 10

var viewKinds = map[string]check{
	"modal": object(shape{
		"type": typeName, "title": must(plain(24)), "submit": may(plain(24)), "close": may(plain(24)), "blocks": must(viewBlocks),
		"private_metadata": may(str(0, 3000)), "callback_id": may(str(0, 255)), "external_id": may(str(0, 255)),
		"clear_on_close": may(boolean), "notify_on_close": may(boolean),
	}),
	"home": object(shape{
		"type": typeName, "blocks": must(viewBlocks), "private_metadata": may(str(0, 3000)), "callback_id": may(str(0, 255)), "external_id": may(str(0, 255)),
	}),
}

func viewBlocks(c *checker, at string, v any) { list(1, 100, c.block)(c, at, v) }

// checkView validates a view of the wanted type and returns it as Slack stores it. Faults in a view are
// invalid_arguments, whatever they are; only its size has an error of its own.
func checkView(raw []byte, kind string) (map[string]any, *failure) {
	if len(raw) > viewBytes {
		return nil, fail("view_too_large")
	}
	v, err := parseStrict(raw)
	view, ok := v.(map[string]any)
	if err != nil || !ok {
		return nil, fail("invalid_arguments", "[ERROR] failed to parse the view [json-pointer:/view]")
	}
	c := newChecker(SurfaceModal)
	if kind == "home" {
		c.surface = SurfaceHome
	}
	if view["type"] != kind {
		c.complain("/view/type", "must be %s", kind)
	} else {
		choose(viewKinds)(c, "/view", v)
	}
	if c.inputs > 0 && kind == "modal" && view["submit"] == nil {
		c.complain("/view", "missing required field: submit, as the view has input blocks")
	}
	if len(c.messages) > 0 {
		return nil, fail("invalid_arguments", c.messages...)
	}
	blocks, _ := view["blocks"].([]any) // validated: a list
	delete(view, "blocks")
	storeTexts(view)
	view["blocks"] = storeBlocks(blocks)
	return view, nil
}

// ValidateView gives Slack's complaints about a view ("modal" or "home"), without opening anything; none is nil.
func ValidateView(raw []byte, kind string) []string {
	_, bad := checkView(raw, kind)
	return complaints(bad)
}
