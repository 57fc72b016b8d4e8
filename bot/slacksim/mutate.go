package slacksim

import (
	_ "embed"
	"encoding/json"
	"regexp"
	"strings"
	"sync"
)

//go:embed web/emoji.json
var emojiJSON []byte

// emojiCodes replaces the emoji that the simulator knows by their :codes:. The page turns them back by the same file.
var emojiCodes = sync.OnceValue(func() *strings.Replacer {
	var codes map[string]string // code → emoji
	if err := json.Unmarshal(emojiJSON, &codes); err != nil {
		panic("slacksim: emoji.json: " + err.Error()) // embedded: a broken build, not input
	}
	var pairs, bare []string
	for code, emoji := range codes {
		pairs = append(pairs, emoji, ":"+code+":")
		if short := strings.TrimSuffix(emoji, "\uFE0F"); short != emoji {
			bare = append(bare, short, ":"+code+":") // both spellings occur; the long one is tried first
		}
	}
	return strings.NewReplacer(append(pairs, bare...)...)
})

// control matches what < > may enclose: mentions, links, dates, commands, or an entity.
var control = regexp.MustCompile(`<(?:[@#!][^<>\n]+|(?:https?://|mailto:)[^<>\s][^<>\n]*)>|&(?:amp|lt|gt);`)

// mutateText is what Slack does to a text on the way in: emoji become codes, and & < > that are not already escaped or
// part of a control sequence are escaped.
func mutateText(s string) string {
	var b strings.Builder
	last := 0
	for _, span := range control.FindAllStringIndex(s, -1) {
		b.WriteString(mutatePlain(s[last:span[0]]))
		b.WriteString(s[span[0]:span[1]])
		last = span[1]
	}
	b.WriteString(mutatePlain(s[last:]))
	return b.String()
}

var (
	escaper   = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
	unescaper = strings.NewReplacer("&amp;", "&", "&lt;", "<", "&gt;", ">")
)

func mutatePlain(s string) string { return escaper.Replace(emojiCodes().Replace(s)) }

// unescape resolves the three entities, once.
func unescape(s string) string { return unescaper.Replace(s) }

// storeBlocks changes validated blocks into what Slack stores: texts mutated, missing ids made up. Rich text stays as
// it was sent: its text is data, not markup.
func storeBlocks(blocks []any) []any {
	for _, b := range blocks {
		block, ok := b.(map[string]any)
		if !ok {
			continue // validated: does not happen
		}
		if id, _ := block["block_id"].(string); id == "" {
			block["block_id"] = secretID()[:5]
		}
		storeTexts(block)
	}
	return blocks
}

// interactive elements get an action id when the app gave none.
var interactive = map[string]bool{
	"button": true, "overflow": true, "static_select": true, "radio_buttons": true, "checkboxes": true, "users_select": true,
	"multi_users_select": true, "datepicker": true, "plain_text_input": true,
}

func storeTexts(v any) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			storeTexts(e)
		}
	case map[string]any:
		kind, _ := v["type"].(string)
		if interactive[kind] {
			if id, _ := v["action_id"].(string); id == "" {
				v["action_id"] = secretID()[:5]
			}
		}
		if t, ok := v["text"].(string); ok && (kind == "mrkdwn" || kind == "plain_text") {
			v["text"] = storedText(t, kind, v["emoji"])
			if _, there := v["emoji"]; kind == "plain_text" && !there {
				v["emoji"] = true // Slack fills the default in
			}
			if _, there := v["verbatim"]; kind == "mrkdwn" && !there {
				v["verbatim"] = false
			}
			return
		}
		for _, e := range v {
			storeTexts(e)
		}
	}
}

func storedText(t, kind string, emoji any) string {
	switch {
	case kind == "mrkdwn":
		return mutateText(t)
	case emoji == false:
		return mutateEscapes(t)
	}
	// Control sequences mean nothing in plain text: everything but entities is escaped.
	return mutateEntities(t, mutatePlain)
}

func mutateEscapes(s string) string { return mutateEntities(s, escaper.Replace) }

var entity = regexp.MustCompile(`&(?:amp|lt|gt);`)

func mutateEntities(s string, change func(string) string) string {
	var b strings.Builder
	last := 0
	for _, span := range entity.FindAllStringIndex(s, -1) {
		b.WriteString(change(s[last:span[0]]))
		b.WriteString(s[span[0]:span[1]])
		last = span[1]
	}
	b.WriteString(change(s[last:]))
	return b.String()
}
