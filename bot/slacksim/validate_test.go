package slacksim_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/holdpoint/holdpoint/bot/slacksim"
)

func x(n int) string { return strings.Repeat("x", n) }

// times joins n copies of what f makes.
func times(n int, f func(i int) string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = f(i)
	}
	return strings.Join(parts, ",")
}

func plainText(n int) string { return fmt.Sprintf(`{"type":"plain_text","text":"%s"}`, x(n)) }
func mrkdwn(n int) string    { return fmt.Sprintf(`{"type":"mrkdwn","text":"%s"}`, x(n)) }
func opt(text, value int) string {
	return fmt.Sprintf(`{"text":%s,"value":"%s"}`, plainText(text), x(value))
}

func inActions(element string) string {
	return fmt.Sprintf(`[{"type":"actions","elements":[%s]}]`, element)
}

func btn(fields string) string {
	return inActions(`{"type":"button","text":{"type":"plain_text","text":"Go"}` + fields + `}`)
}

func confirm(title, text, yes, no int) string {
	return btn(fmt.Sprintf(`,"confirm":{"title":%s,"text":%s,"confirm":%s,"deny":%s}`, plainText(title), mrkdwn(text), plainText(yes), plainText(no)))
}

func values(n int) string {
	return times(n, func(i int) string {
		return fmt.Sprintf(`{"text":{"type":"plain_text","text":"o%d"},"value":"v%d"}`, i, i)
	})
}

func inInput(element string) string {
	return fmt.Sprintf(`[{"type":"input","label":{"type":"plain_text","text":"L"},"element":%s}]`, element)
}

// Each limit: what is exactly at it passes, one more is refused with Slack's error and a pointer to the place.
func TestLimits(t *testing.T) {
	t.Parallel()
	image := func(url, alt int) string {
		return fmt.Sprintf(`[{"type":"image","image_url":"https://%s","alt_text":"%s"}]`, x(url-8), x(alt))
	}
	for name, c := range map[string]struct {
		make  func(n int) string
		limit int
		at    string
	}{
		"blocks":        {func(n int) string { return "[" + times(n, func(int) string { return `{"type":"divider"}` }) + "]" }, 50, "/blocks"},
		"block_id":      {func(n int) string { return `[{"type":"divider","block_id":"` + x(n) + `"}]` }, 255, "/blocks/0/block_id"},
		"header":        {func(n int) string { return `[{"type":"header","text":` + plainText(n) + `}]` }, 150, "/blocks/0/text/text"},
		"section text":  {func(n int) string { return `[{"type":"section","text":` + mrkdwn(n) + `}]` }, 3000, "/blocks/0/text/text"},
		"section field": {func(n int) string { return `[{"type":"section","fields":[` + mrkdwn(n) + `]}]` }, 2000, "/blocks/0/fields/0/text"},
		"section fields": {func(n int) string {
			return `[{"type":"section","fields":[` + times(n, func(int) string { return mrkdwn(1) }) + `]}]`
		}, 10, "/blocks/0/fields"},
		"context elements": {func(n int) string {
			return `[{"type":"context","elements":[` + times(n, func(int) string { return mrkdwn(1) }) + `]}]`
		}, 10, "/blocks/0/elements"},
		"actions elements": {func(n int) string {
			return inActions(times(n, func(i int) string {
				return fmt.Sprintf(`{"type":"button","action_id":"a%d","text":%s}`, i, plainText(2))
			}))
		}, 25, "/blocks/0/elements"},
		"button text":      {func(n int) string { return inActions(`{"type":"button","text":` + plainText(n) + `}`) }, 75, "/blocks/0/elements/0/text/text"},
		"button value":     {func(n int) string { return btn(`,"value":"` + x(n) + `"`) }, 2000, "/blocks/0/elements/0/value"},
		"button url":       {func(n int) string { return btn(`,"url":"https://` + x(n-8) + `"`) }, 3000, "/blocks/0/elements/0/url"},
		"button label":     {func(n int) string { return btn(`,"accessibility_label":"` + x(n) + `"`) }, 75, "/blocks/0/elements/0/accessibility_label"},
		"action_id":        {func(n int) string { return btn(`,"action_id":"` + x(n) + `"`) }, 255, "/blocks/0/elements/0/action_id"},
		"confirm title":    {func(n int) string { return confirm(n, 1, 1, 1) }, 100, "/blocks/0/elements/0/confirm/title/text"},
		"confirm text":     {func(n int) string { return confirm(1, n, 1, 1) }, 300, "/blocks/0/elements/0/confirm/text/text"},
		"confirm yes":      {func(n int) string { return confirm(1, 1, n, 1) }, 30, "/blocks/0/elements/0/confirm/confirm/text"},
		"confirm no":       {func(n int) string { return confirm(1, 1, 1, n) }, 30, "/blocks/0/elements/0/confirm/deny/text"},
		"overflow options": {func(n int) string { return inActions(`{"type":"overflow","options":[` + values(n) + `]}`) }, 5, "/blocks/0/elements/0/options"},
		"option text":      {func(n int) string { return inActions(`{"type":"overflow","options":[` + opt(n, 1) + `]}`) }, 75, "/blocks/0/elements/0/options/0/text/text"},
		"option value":     {func(n int) string { return inActions(`{"type":"overflow","options":[` + opt(1, n) + `]}`) }, 75, "/blocks/0/elements/0/options/0/value"},
		"select options":   {func(n int) string { return inActions(`{"type":"static_select","options":[` + values(n) + `]}`) }, 100, "/blocks/0/elements/0/options"},
		"select placeholder": {func(n int) string {
			return inActions(`{"type":"static_select","options":[` + values(1) + `],"placeholder":` + plainText(n) + `}`)
		}, 150, "/blocks/0/elements/0/placeholder/text"},
		"radio options":      {func(n int) string { return inActions(`{"type":"radio_buttons","options":[` + values(n) + `]}`) }, 10, "/blocks/0/elements/0/options"},
		"checkboxes options": {func(n int) string { return inActions(`{"type":"checkboxes","options":[` + values(n) + `]}`) }, 10, "/blocks/0/elements/0/options"},
		"input label": {func(n int) string {
			return `[{"type":"input","label":` + plainText(n) + `,"element":{"type":"plain_text_input"}}]`
		}, 2000, "/blocks/0/label/text"},
		"input hint": {func(n int) string {
			return `[{"type":"input","label":` + plainText(1) + `,"hint":` + plainText(n) + `,"element":{"type":"plain_text_input"}}]`
		}, 2000, "/blocks/0/hint/text"},
		"input initial value": {func(n int) string { return inInput(`{"type":"plain_text_input","initial_value":"` + x(n) + `"}`) }, 3000, "/blocks/0/element/initial_value"},
		"input max_length":    {func(n int) string { return inInput(fmt.Sprintf(`{"type":"plain_text_input","max_length":%d}`, n)) }, 3000, "/blocks/0/element/max_length"},
		"image url":           {func(n int) string { return image(n, 1) }, 3000, "/blocks/0/image_url"},
		"image alt":           {func(n int) string { return image(20, n) }, 2000, "/blocks/0/alt_text"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := slacksim.ValidateBlocks(slacksim.SurfaceMessage, []byte(c.make(c.limit))); got != nil {
				t.Errorf("at the limit of %d: %v", c.limit, got)
			}
			got := slacksim.ValidateBlocks(slacksim.SurfaceMessage, []byte(c.make(c.limit+1)))
			if !slices.ContainsFunc(got, func(m string) bool { return strings.HasSuffix(m, "[json-pointer:"+c.at+"]") }) {
				t.Errorf("one over %d: got %v, want a complaint at %s", c.limit, got, c.at)
			}
		})
	}
}

// Shapes that Slack refuses whatever their length, and the ones nearest to them that it takes.
func TestShapes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		blocks string
		want   string // part of the complaint; "" passes
	}{
		"empty list":               {`[]`, ""},
		"unknown block":            {`[{"type":"carousel_of_dreams"}]`, "unsupported type: carousel_of_dreams"},
		"no type":                  {`[{"text":"x"}]`, "missing required field: type"},
		"unknown field":            {`[{"type":"divider","colour":"red"}]`, "invalid additional property: colour"},
		"unknown element":          {inActions(`{"type":"hyperbutton"}`), "unsupported type: hyperbutton"},
		"input element in actions": {inActions(`{"type":"plain_text_input"}`), "unsupported type: plain_text_input"},
		"header mrkdwn":            {`[{"type":"header","text":{"type":"mrkdwn","text":"x"}}]`, "json-pointer:/blocks/0/text/type"},
		"emoji in mrkdwn":          {`[{"type":"section","text":{"type":"mrkdwn","text":"x","emoji":true}}]`, "invalid additional property: emoji"},
		"verbatim in plain":        {`[{"type":"section","text":{"type":"plain_text","text":"x","verbatim":true}}]`, "invalid additional property: verbatim"},
		"string boolean":           {`[{"type":"section","text":{"type":"plain_text","text":"x","emoji":"true"}}]`, "must be a boolean"},
		"empty text":               {`[{"type":"section","text":{"type":"mrkdwn","text":""}}]`, "must be more than 0 characters"},
		"section without text":     {`[{"type":"section"}]`, "must provide text or fields"},
		"empty context":            {`[{"type":"context","elements":[]}]`, "no less than 1 items"},
		"empty actions":            {inActions(``), "no less than 1 items"},
		"button mrkdwn":            {inActions(`{"type":"button","text":{"type":"mrkdwn","text":"x"}}`), "/text/type"},
		"button style":             {btn(`,"style":"warning"`), "must be a valid enum value"},
		"button without text":      {inActions(`{"type":"button"}`), "missing required field: text"},
		"button script url":        {btn(`,"url":"javascript:alert(1)"`), "must be a valid URL"},
		"confirm without deny":     {btn(`,"confirm":{"title":` + plainText(1) + `,"text":` + plainText(1) + `,"confirm":` + plainText(1) + `}`), "missing required field: deny"},
		"block ids repeat":         {`[{"type":"divider","block_id":"a"},{"type":"divider","block_id":"a"}]`, "`block_id` \"a\" already exists"},
		"action ids repeat":        {inActions(times(2, func(int) string { return `{"type":"button","action_id":"a","text":` + plainText(1) + `}` })), "`action_id` \"a\" already exists"},
		"action ids in two blocks": {`[` + times(2, func(int) string { return strings.Trim(btn(`,"action_id":"a"`), "[]") }) + `]`, ""},
		"select without options":   {inActions(`{"type":"static_select"}`), "exactly one of options"},
		"initial not offered":      {inActions(`{"type":"static_select","options":[` + values(2) + `],"initial_option":` + opt(1, 1) + `}`), "must match one of the options"},
		"options repeat a value":   {inActions(`{"type":"overflow","options":[` + opt(1, 1) + `,` + opt(2, 1) + `]}`), "unique values"},
		"min over max":             {inInput(`{"type":"plain_text_input","min_length":5,"max_length":4}`), "min_length must not be greater"},
		"bad date":                 {inActions(`{"type":"datepicker","initial_date":"24/07/2026"}`), "YYYY-MM-DD"},
		"alert in a message":       {`[{"type":"alert","text":{"type":"plain_text","text":"x"}}]`, "unsupported type: alert"},
		"rich text": {`[{"type":"rich_text","elements":[
			{"type":"rich_text_section","elements":[{"type":"text","text":"a","style":{"bold":true}},{"type":"user","user_id":"U0ANA"},{"type":"usergroup","usergroup_id":"S0REL"},{"type":"channel","channel_id":"C0APP"},
			 {"type":"emoji","name":"wave"},{"type":"link","url":"https://a.example","text":"a"},{"type":"date","timestamp":1753358400,"format":"{date}","fallback":"then"}]},
			{"type":"rich_text_list","style":"ordered","indent":1,"border":0,"elements":[{"type":"rich_text_section","elements":[{"type":"text","text":"a"}]}]},
			{"type":"rich_text_preformatted","border":0,"elements":[{"type":"text","text":"a"}]},{"type":"rich_text_quote","elements":[{"type":"text","text":"a"}]}]}]`, ""},
		"rich text empty":        {`[{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[{"type":"text","text":""}]}]}]`, "must be more than 0 characters"},
		"rich text user in code": {`[{"type":"rich_text","elements":[{"type":"rich_text_preformatted","elements":[{"type":"user","user_id":"U1"}]}]}]`, "unsupported type: user"},
		"rich text style":        {`[{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[{"type":"text","text":"a","style":{"blink":true}}]}]}]`, "invalid additional property: blink"},
		"rich text user id":      {`[{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[{"type":"user","user_id":"ana"}]}]}]`, "must be a valid ID"},
		"markdown total":         {`[{"type":"markdown","text":"` + x(7000) + `"},{"type":"markdown","text":"` + x(7000) + `"}]`, "in all markdown blocks"},
		"not an array":           {`{"type":"divider"}`, "invalid_blocks_format"},
		"not JSON":               {`[{"type":"divider"`, "invalid_blocks_format"},
		"trailing data":          {`[{"type":"divider"}] []`, "invalid_blocks_format"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := strings.Join(slacksim.ValidateBlocks(slacksim.SurfaceMessage, []byte(c.blocks)), "\n")
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// The limits of a whole message, by the errors that callers branch on.
func TestMessageErrors(t *testing.T) {
	t.Parallel()
	s := newSim(t, slacksim.Options{Unlimited: true})
	sections := func(chars int) string {
		full := times(chars/2000, func(int) string { return `{"type":"section","text":` + mrkdwn(2000) + `}` })
		return `[` + full + `,{"type":"section","text":` + mrkdwn(chars%2000) + `}]`
	}
	ts := post(t, s, approveCard)
	for name, c := range map[string]struct {
		method string
		form   url.Values
		want   string // "" is ok
	}{
		"invalid block":        {"chat.postMessage", url.Values{"channel": {"C0APP"}, "blocks": {`[{"type":"nope"}]`}}, "invalid_blocks"},
		"broken blocks":        {"chat.postMessage", url.Values{"channel": {"C0APP"}, "blocks": {`[`}}, "invalid_blocks_format"},
		"within the budget":    {"chat.postMessage", url.Values{"channel": {"C0APP"}, "blocks": {sections(11_300)}}, ""},
		"over the budget":      {"chat.postMessage", url.Values{"channel": {"C0APP"}, "blocks": {sections(11_301)}}, "msg_blocks_too_long"},
		"text in the budget":   {"chat.postMessage", url.Values{"channel": {"C0APP"}, "text": {"x"}, "blocks": {sections(11_300)}}, "msg_blocks_too_long"},
		"nothing":              {"chat.postMessage", url.Values{"channel": {"C0APP"}}, "no_text"},
		"attachments":          {"chat.postMessage", url.Values{"channel": {"C0APP"}, "text": {"x"}, "attachments": {`[{"text":"x"}]`}}, "invalid_attachments"},
		"no such channel":      {"chat.postMessage", url.Values{"channel": {"C0NOPE"}, "text": {"x"}}, "channel_not_found"},
		"archived":             {"chat.postMessage", url.Values{"channel": {"C0ARCH"}, "text": {"x"}}, "is_archived"},
		"not a member":         {"chat.postMessage", url.Values{"channel": {"C0OUT"}, "text": {"x"}}, "not_in_channel"},
		"no such thread":       {"chat.postMessage", url.Values{"channel": {"C0APP"}, "text": {"x"}, "thread_ts": {"1.000000"}}, "thread_not_found"},
		"metadata shape":       {"chat.postMessage", url.Values{"channel": {"C0APP"}, "text": {"x"}, "metadata": {`{"event_type":"a"}`}}, "invalid_metadata_schema"},
		"metadata format":      {"chat.postMessage", url.Values{"channel": {"C0APP"}, "text": {"x"}, "metadata": {`[]`}}, "invalid_metadata_format"},
		"metadata size":        {"chat.postMessage", url.Values{"channel": {"C0APP"}, "text": {"x"}, "metadata": {`{"event_type":"a","event_payload":{"k":"` + x(8192) + `"}}`}}, "metadata_too_large"},
		"update text at 4,000": {"chat.update", url.Values{"channel": {"C0APP"}, "ts": {ts}, "text": {x(4000)}}, ""},
		"update text over":     {"chat.update", url.Values{"channel": {"C0APP"}, "ts": {ts}, "text": {x(4001)}}, "msg_too_long"},
		"update unknown":       {"chat.update", url.Values{"channel": {"C0APP"}, "ts": {"1.000000"}, "text": {"x"}}, "message_not_found"},
		"update by user id":    {"chat.update", url.Values{"channel": {"U0ANA"}, "ts": {ts}, "text": {"x"}}, "channel_not_found"},
		"ephemeral to nobody":  {"chat.postEphemeral", url.Values{"channel": {"C0APP"}, "user": {"U0GONE"}, "text": {"x"}}, "user_not_in_channel"},
		"ephemeral to another": {"chat.postEphemeral", url.Values{"channel": {"C0APP"}, "user": {"U0EXT"}, "text": {"x"}}, "user_not_in_channel"},
		"unknown method":       {"chat.teleport", url.Values{}, "unknown_method"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := raw(t, s, c.method, c.form)
			got, _ := out["error"].(string)
			if got != c.want {
				t.Fatalf("got %q, want %q: %v", got, c.want, out)
			}
			if c.want == "invalid_blocks" && at(out, "response_metadata", "messages", "0") != "[ERROR] unsupported type: nope [json-pointer:/blocks/0/type]" {
				t.Errorf("messages: %v", out["response_metadata"])
			}
		})
	}
}
