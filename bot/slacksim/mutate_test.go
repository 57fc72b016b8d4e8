package slacksim

import (
	"encoding/json"
	"testing"
)

func TestMutateText(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"a & b < c > d":                    "a &amp; b &lt; c &gt; d",
		"&amp; &lt; &gt; &quot;":           "&amp; &lt; &gt; &amp;quot;",
		"<@U0ANA> <#C0APP|x> <!here>":      "<@U0ANA> <#C0APP|x> <!here>",
		"<!date^1^{date}|a> 1 < 2":         "<!date^1^{date}|a> 1 &lt; 2",
		"<https://a.example/?a=1&b=2|it>":  "<https://a.example/?a=1&b=2|it>",
		"<script>alert(1)</script>":        "&lt;script&gt;alert(1)&lt;/script&gt;",
		"<javascript:alert(1)|x>":          "&lt;javascript:alert(1)|x&gt;",
		"⏳ waiting ⏸ held ⏸️ ✅ done ❓ 👩‍🚀": ":hourglass_flowing_sand: waiting :double_vertical_bar: held :double_vertical_bar: :white_check_mark: done :question: 👩‍:rocket:",
	} {
		if got := mutateText(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

func TestStoredBlocks(t *testing.T) {
	t.Parallel()
	blocks, bad := checkMessage([]byte(`[
		{"type":"header","text":{"type":"plain_text","text":"✅ <@U0ANA> & co"}},
		{"type":"section","text":{"type":"plain_text","text":"✅ a<b","emoji":false}},
		{"type":"actions","elements":[{"type":"button","text":{"type":"plain_text","text":"Go"},"value":"✅&"}]},
		{"type":"rich_text","elements":[{"type":"rich_text_preformatted","elements":[{"type":"text","text":"✅ a<b&c"}]}]}]`), 0)
	if bad != nil {
		t.Fatal(bad)
	}
	m := Message{Blocks: encode(blocks)}
	var stored []struct {
		BlockID string `json:"block_id"`
		Text    struct {
			Text  string
			Emoji bool
		}
		Elements []struct {
			ActionID string `json:"action_id"`
			Value    string
		}
	}
	if err := json.Unmarshal(m.Blocks, &stored); err != nil {
		t.Fatal(err)
	}
	if got := stored[0].Text; got.Text != ":white_check_mark: &lt;@U0ANA&gt; &amp; co" || !got.Emoji {
		t.Errorf("plain text: %v", got)
	}
	if got := stored[1].Text.Text; got != "✅ a&lt;b" {
		t.Errorf("emoji off: %v", got)
	}
	if button := stored[2].Elements[0]; button.ActionID == "" || button.Value != "✅&" {
		t.Errorf("a button gets an id and keeps its value: %v", button)
	}
	if stored[3].BlockID == "" {
		t.Error("a block without an id got none")
	}
	if want := ":white_check_mark: <@U0ANA> & co\n✅ a<b\nGo\n✅ a<b&c"; m.PlainText() != want {
		t.Errorf("read as %q", m.PlainText())
	}
}

func TestUTF16Lengths(t *testing.T) {
	t.Parallel()
	if n := utf16Len("a€🚀"); n != 4 {
		t.Errorf("%d units", n)
	}
	if got := cut("a🚀b", 2); got != "a" {
		t.Errorf("cut inside a pair: %q", got)
	}
	if got := cut("ab", 2); got != "ab" {
		t.Errorf("nothing to cut: %q", got)
	}
}
