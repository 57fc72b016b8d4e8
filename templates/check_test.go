package templates

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"
)

// Each limit: at it passes, one over fails.
func TestCheckLimits(t *testing.T) {
	t.Parallel()
	x := func(n int) string { return strings.Repeat("x", n) }
	repeated := func(n int, b slack.Block) []slack.Block {
		out := make([]slack.Block, n)
		for i := range out {
			out[i] = b
		}
		return out
	}
	btn := func(change func(*slack.ButtonBlockElement)) []slack.Block {
		b := slack.NewButtonBlockElement("a", "v", literal("text"))
		change(b)
		return []slack.Block{slack.NewActionBlock("", b)}
	}
	options := func(n int, value string) []slack.Block {
		var all []*slack.OptionBlockObject
		for range n {
			all = append(all, slack.NewOptionBlockObject(value, literal("option"), nil))
		}
		return []slack.Block{slack.NewActionBlock("", slack.NewOverflowBlockElement("a", all...))}
	}
	buttons := func(n int) []slack.Block {
		var all []slack.BlockElement
		for i := range n {
			all = append(all, slack.NewButtonBlockElement(itoa(i), "v", literal("b")))
		}
		return []slack.Block{slack.NewActionBlock("", all...)}
	}
	confirm := func(title, text, yes, no string) []slack.Block {
		return btn(func(b *slack.ButtonBlockElement) {
			b.Confirm = slack.NewConfirmationBlockObject(literal(title), literal(text), literal(yes), literal(no))
		})
	}
	for _, tc := range []struct {
		name     string
		limit    int
		blocksOf func(n int) []slack.Block
	}{
		{"blocks", 50, func(n int) []slack.Block { return repeated(n, slack.NewDividerBlock()) }},
		{"header", 150, func(n int) []slack.Block { return []slack.Block{header("", x(n))} }},
		{"section text", 3000, func(n int) []slack.Block { return []slack.Block{slack.NewSectionBlock(literal(x(n)), nil, nil)} }},
		{"section fields", 10, func(n int) []slack.Block {
			var f []*slack.TextBlockObject
			for range n {
				f = append(f, literal("f"))
			}
			return []slack.Block{slack.NewSectionBlock(nil, f, nil)}
		}},
		{"section field", 2000, func(n int) []slack.Block {
			return []slack.Block{slack.NewSectionBlock(nil, []*slack.TextBlockObject{literal(x(n))}, nil)}
		}},
		{"context elements", 10, func(n int) []slack.Block {
			return []slack.Block{contextLine("", strings.Split(strings.Repeat("x ", n-1)+"x", " ")...)}
		}},
		{"block id", 255, func(n int) []slack.Block { return []slack.Block{header(x(n), "h")} }},
		{"action id", 255, func(n int) []slack.Block { return btn(func(b *slack.ButtonBlockElement) { b.ActionID = x(n) }) }},
		{"actions", 25, buttons},
		{"button text", 75, func(n int) []slack.Block { return btn(func(b *slack.ButtonBlockElement) { b.Text = literal(x(n)) }) }},
		{"button value", 2000, func(n int) []slack.Block { return btn(func(b *slack.ButtonBlockElement) { b.Value = x(n) }) }},
		{"button url", 3000, func(n int) []slack.Block { return btn(func(b *slack.ButtonBlockElement) { b.URL = x(n) }) }},
		{"accessibility label", 75, func(n int) []slack.Block {
			return btn(func(b *slack.ButtonBlockElement) { b.AccessibilityLabel = x(n) })
		}},
		{"confirm title", 100, func(n int) []slack.Block { return confirm(x(n), "t", "y", "n") }},
		{"confirm text", 300, func(n int) []slack.Block { return confirm("t", x(n), "y", "n") }},
		{"confirm yes", 30, func(n int) []slack.Block { return confirm("t", "t", x(n), "n") }},
		{"confirm no", 30, func(n int) []slack.Block { return confirm("t", "t", "y", x(n)) }},
		{"overflow options", 5, func(n int) []slack.Block { return options(n, "v") }},
		{"option value", 75, func(n int) []slack.Block { return options(1, x(n)) }},
		{"message", MaxCard, func(n int) []slack.Block {
			overhead := size([]slack.Block{richText("", section(plain("")))})
			return []slack.Block{richText("", section(plain(x(n-overhead))))}
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if err := Check(tc.blocksOf(tc.limit)); err != nil {
				t.Errorf("at the limit: %v", err)
			}
			if err := Check(tc.blocksOf(tc.limit + 1)); !errors.Is(err, ErrBlocks) {
				t.Errorf("one over: %v, want ErrBlocks", err)
			}
		})
	}
}

func TestCheckRefuses(t *testing.T) {
	t.Parallel()
	long := time.Unix(-1, 0)
	for name, b := range map[string]slack.Block{
		"an empty header":           header("", ""),
		"a mrkdwn header":           slack.NewHeaderBlock(slack.NewTextBlockObject("mrkdwn", "x", false, false)),
		"an empty rich text":        richText(""),
		"an empty rich section":     richText("", section()),
		"an empty text element":     richText("", section(plain(""))),
		"no user":                   richText("", section(slack.NewRichTextSectionUserElement("ana", nil))),
		"no group":                  richText("", section(slack.NewRichTextSectionUserGroupElement("U0ANA"))),
		"a date before time":        richText("", section(date(long))),
		"a broadcast":               richText("", section(slack.NewRichTextSectionBroadcastElement("channel"))),
		"a script as link":          richText("", section(slack.NewRichTextSectionLinkElement("javascript:alert(1)", "x", nil))),
		"a person in preformatted":  richText("", &slack.RichTextPreformatted{Type: slack.RTEPreformatted, Elements: []slack.RichTextSectionElement{slack.NewRichTextSectionUserElement("U0ANA", nil)}}),
		"an empty context":          contextLine(""),
		"an empty section":          slack.NewSectionBlock(nil, nil, nil),
		"an input in a message":     input("i", "l", "h", 10),
		"an image":                  slack.NewImageBlock("https://acme.example/x.png", "x", "", nil),
		"actions without elements":  slack.NewActionBlock(""),
		"two equal action ids":      slack.NewActionBlock("", slack.NewButtonBlockElement("a", "v", literal("x")), slack.NewButtonBlockElement("a", "v", literal("y"))),
		"an option without a value": slack.NewActionBlock("", slack.NewOverflowBlockElement("a", slack.NewOptionBlockObject("", literal("x"), nil))),
		"an unknown style":          slack.NewActionBlock("", slack.NewButtonBlockElement("a", "v", literal("x")).WithStyle("loud")),
	} {
		if err := Check([]slack.Block{b}); !errors.Is(err, ErrBlocks) {
			t.Errorf("%s: %v, want ErrBlocks", name, err)
		}
	}
	if err := Check([]slack.Block{header("same", "x"), header("same", "y")}); !errors.Is(err, ErrBlocks) {
		t.Errorf("two equal block ids: %v, want ErrBlocks", err)
	}
}

// I24: what Check says names the place and the limit, never what stands there.
func TestCheckKeepsValuesToItself(t *testing.T) {
	t.Parallel()
	err := Check([]slack.Block{header("canary-id", strings.Repeat("canary ", 100)), richText("", section(slack.NewRichTextSectionUserElement("canary", nil)))})
	if err == nil || strings.Contains(err.Error(), "canary") {
		t.Errorf("error %v", err)
	}
	if !strings.Contains(err.Error(), "blocks/0/text has 700 characters of 150") {
		t.Errorf("error %v does not name the place and the limit", err)
	}
}

func TestCheckView(t *testing.T) {
	t.Parallel()
	good := RejectModal(refund(), "m")
	if err := CheckView(good); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(v *slack.ModalViewRequest){
		"title":                 func(v *slack.ModalViewRequest) { v.Title = literal(strings.Repeat("x", 25)) },
		"no title":              func(v *slack.ModalViewRequest) { v.Title = nil },
		"submit":                func(v *slack.ModalViewRequest) { v.Submit = literal(strings.Repeat("x", 25)) },
		"close":                 func(v *slack.ModalViewRequest) { v.Close = literal(strings.Repeat("x", 25)) },
		"inputs without submit": func(v *slack.ModalViewRequest) { v.Submit = nil },
		"metadata":              func(v *slack.ModalViewRequest) { v.PrivateMetadata = strings.Repeat("x", 3001) },
		"callback":              func(v *slack.ModalViewRequest) { v.CallbackID = strings.Repeat("x", 256) },
		"empty":                 func(v *slack.ModalViewRequest) { v.Blocks.BlockSet = nil },
		"blocks": func(v *slack.ModalViewRequest) {
			for range 100 {
				v.Blocks.BlockSet = append(v.Blocks.BlockSet, slack.NewDividerBlock())
			}
		},
		"size": func(v *slack.ModalViewRequest) {
			for range 90 {
				v.Blocks.BlockSet = append(v.Blocks.BlockSet, richText("", section(plain(strings.Repeat("x", 3_000)))))
			}
		},
		"input": func(v *slack.ModalViewRequest) {
			v.Blocks.BlockSet = append(v.Blocks.BlockSet, input("i", "l", "h", 3001))
		},
		"label": func(v *slack.ModalViewRequest) {
			v.Blocks.BlockSet = append(v.Blocks.BlockSet, input("i", strings.Repeat("x", 2001), "h", 10))
		},
	} {
		v := good
		v.Blocks.BlockSet = append([]slack.Block(nil), good.Blocks.BlockSet...)
		change(&v)
		if err := CheckView(v); !errors.Is(err, ErrBlocks) {
			t.Errorf("%s: %v, want ErrBlocks", name, err)
		}
	}
}
