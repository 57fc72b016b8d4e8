package templates

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestVisible(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, in, want string }{
		{"plain", "Refund 742.18 USD", "Refund 742.18 USD"},
		{"letters of any script stay", "Größe 価格 цена ราคา", "Größe 価格 цена ราคา"},
		{"right-to-left override", "a\u202eb", `a\u{202E}b`},
		{"isolate", "\u2066x\u2069", `\u{2066}x\u{2069}`},
		{"left-to-right mark", "\u200e", `\u{200E}`},
		{"control", "a\x00\x1b[0m\x7f", `a\u{0}\u{1B}[0m\u{7F}`},
		{"line breaks", "a\nb\r\u0085\u2028\u2029", `a\u{A}b\u{D}\u{85}\u{2028}\u{2029}`},
		{"zero width", "a\u200b\u200d\ufeffb", `a\u{200B}\u{200D}\u{FEFF}b`},
		{"default-ignorable letters and marks", "\u3164\u115f\u034f\ufe0f\U000E0100", `\u{3164}\u{115F}\u{34F}\u{FE0F}\u{E0100}`},
		{"a variation selector after its letter", "a\ufe0fb\U000E0100", `a\u{FE0F}b\u{E0100}`},
		{"tag characters", "\U000E0041", `\u{E0041}`},
		{"private use", "\ue000\U00100000", `\u{E000}\u{100000}`},
		{"unassigned", "\U000E0FFF\uffff", `\u{E0FFF}\u{FFFF}`},
		{"other blanks", "a\u00a0b\u3000c\u2800", `a\u{A0}b\u{3000}c\u{2800}`},
		{"eight spaces stay, nine are counted", "a        b         c", `a        b\u{20}×9c`},
		{"nine spaces in ASCII only", strings.Repeat(" ", 9), `\u{20}×9`},
		{"not UTF-8", "a\xffb\xc3", `a\x{FF}b\x{C3}`},
		{"an accent stays", "e\u0301", "e\u0301"},
		{"a stray mark", "\u0301a", `\u{301}a`},
		{"a stack of marks", "a\u0301\u0302\u0303\u0304\u0305", "a\u0301\u0302\u0303" + `\u{304}\u{305}`},
		{"an enclosing mark", "a\u20e0", `a\u{20E0}`},
		{"a host label of two scripts", "see p\u0430ypal.com now", `see p\u{430}ypal.com now`},
		{"labels of two scripts under a common domain", "\u0430\u0440\u0440.com", `\u{430}\u{440}\u{440}.com`},
		{"labels of two scripts in a URL", "https://пример.zz/путь", `https://\u{43F}\u{440}\u{438}\u{43C}\u{435}\u{440}.zz/путь`},
		{"one script", "https://пример.рф/x.html", "https://пример.рф/x.html"},
		{"Latin with accents", "https://münchen.de", "https://münchen.de"},
		{"a file name is no host", "отчёт.pdf", "отчёт.pdf"},
		{"after an at sign", "bob@\u0430cme", `bob@\u{430}cme`},
		{"ideographic full stop", "p\u0430y\u3002com", `p\u{430}y\u{3002}com`},
		{"mathematical letters", "https://\U0001D5C9aypal.com", `https://\u{1D5C9}aypal.com`},
		{"full-width letters", "https://ｐaypal.com", `https://\u{FF50}aypal.com`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := Visible(tc.in); got != tc.want {
				t.Errorf("Visible(%+q)\n got %+q\nwant %+q", tc.in, got, tc.want)
			}
		})
	}
}

func TestEscape(t *testing.T) {
	t.Parallel()
	if got, want := Escape("<!channel> & <@U0ANA|x>"), "&lt;!channel&gt; &amp; &lt;@U0ANA|x&gt;"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := Escape("&lt;"); got != "&amp;lt;" {
		t.Errorf("an escaped text is escaped once more, got %q", got)
	}
}

func TestHostWarning(t *testing.T) {
	t.Parallel()
	for url, warns := range map[string]bool{
		"https://acme.example/a": false, "https://münchen.de/": false, "https://p\u0430ypal.com/": true, "https://xn--pypal-4ve.com/": true,
		"https://a.xn--pypal-4ve.com/": true, "https://acme.example@evil.example/": true, "not a host": true, "https://a\u200bb.example/": true,
	} {
		if got := HostWarning(url); (got != "") != warns {
			t.Errorf("%+q: %q", url, got)
		}
	}
}

func TestOnlySafeAddressesAreLinks(t *testing.T) {
	t.Parallel()
	for url, host := range map[string]string{
		"https://git.acme.example/compare/2026.07.24": "git.acme.example", "http://10.0.0.1:8080/x": "10.0.0.1:8080",
		"javascript://acme.example/%0aalert(1)": "", "ftp://acme.example/x": "", "//acme.example/x": "", "https:///x": "", "": "",
		"https://acme.example/a b": "", "https://acme.example/\u202e": "", "https://u@acme.example/": "", "https://p\u0430ypal.com/": "",
	} {
		if got, ok := safeHost(url); got != host || ok != (host != "") {
			t.Errorf("%+q: host %q, %v", url, got, ok)
		}
	}
}

// nasty draws text with everything that has ever fooled a reader.
func nasty(most int) *rapid.Generator[string] {
	pieces := []string{
		"\u202e", "\u2066", "\u200b", "\x00", "\x1b[2J", "\n", "\r\n", "\u2028", "\ufeff", "\U000E0041", "\ue000", "\u3164", "\u0301", "\u0301\u0301\u0301\u0301", "\xff",
		"<!channel>", "<@U0ANA>", "&amp;", "`", "```", "*x*", "_y_", "~z~", ":tada:", "https://p\u0430ypal.com/", "|", "\"", "\\", "\\u{202E}", "           ", "\u05d0",
		"&&&&&&&&&&", "<<<<<<<<<<", "\"\"\"\"\"\"\"\"", "😀😀😀", "plain words ", "742.18", "/approvals", "rule:", "slack:U0X", "agent:",
	}
	return rapid.Custom(func(t *rapid.T) string {
		var b strings.Builder
		for range rapid.IntRange(0, 6).Draw(t, "pieces") {
			switch rapid.IntRange(0, 2).Draw(t, "kind") {
			case 0:
				b.WriteString(rapid.SampledFrom(pieces).Draw(t, "piece"))
			case 1:
				b.WriteString(strings.Repeat(rapid.SampledFrom(pieces).Draw(t, "repeated"), rapid.IntRange(1, most).Draw(t, "times")))
			default:
				b.WriteString(rapid.String().Draw(t, "any"))
			}
		}
		return b.String()
	})
}

// readable reports what a reader may see as it is: everything but what hidden finds, and line breaks of our own.
// The icons of our own that end in a variation selector are known by the words that follow.
func readable(s string) bool {
	s = ownIcons.Replace(s)
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return r != '\n' && hidden(r) })
}

var ownIcons = strings.NewReplacer("✏️ Replaced", "", "✏️ Edited", "", "✂️ The rest", "", "▶️ Running", "", "⚠️ ", "", "✂️ +", "", "↔️ There are", "")

func TestVisibleLeavesNothingHidden(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := nasty(50).Draw(t, "s")
		got := Visible(s)
		if !readable(got) || strings.Contains(got, "\n") {
			t.Fatalf("%+q shows %+q", s, got)
		}
		if again := Visible(got); again != got {
			t.Fatalf("%+q is not settled: %+q", got, again)
		}
	})
}

func TestCutCountsWhatItHides(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := nasty(50).Draw(t, "s")
		limit := rapid.IntRange(0, 300).Draw(t, "limit")
		shown, rest := cut(s, limit, false)
		if length(shown) > limit || !utf8.ValidString(shown) {
			t.Fatalf("cut to %d: %d characters", limit, length(shown))
		}
		if full := Visible(s); !strings.HasPrefix(full, shown) || (rest == 0) != (full == shown) {
			t.Fatalf("%+q cut to %+q with %d hidden", s, shown, rest)
		}
		if fitted, n := fit(s, limit+1); length(fitted) > limit+1 || (n == 0) != (fitted == Visible(s)) {
			t.Fatalf("fit to %d: %d characters, %d hidden", limit+1, length(fitted), n)
		}
	})
}
