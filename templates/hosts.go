package templates

import (
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

type span struct{ start, end int }

// suspectHosts finds what reads as a host name and mixes scripts. A label that mixes is suspect anywhere in a dotted
// name; labels of different scripts only where the name is surely a host: after :// or @, or under a common top level
// domain ("отчёт.pdf" is a file).
func suspectHosts(s string) []span {
	if !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return nil
	}
	var found []span
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if !hostRune(r) {
			i += size
			continue
		}
		start := i
		for i < len(s) {
			r, size = utf8.DecodeRuneInString(s[i:])
			if !hostRune(r) {
				break
			}
			i += size
		}
		name := s[start:i]
		surely := strings.HasSuffix(s[:start], "//") || strings.HasSuffix(s[:start], "@") || commonDomain(name)
		if (surely && mixed(name)) || (strings.ContainsFunc(name, dot) && slices.ContainsFunc(strings.FieldsFunc(name, dot), mixed)) {
			found = append(found, span{start, i})
		}
	}
	return found
}

// HostWarning says in a few words why a URL's host should be looked at twice, or "".
func HostWarning(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil || u.Host == "" {
		return "not an address we can read"
	}
	host := u.Hostname()
	switch {
	case u.User != nil:
		return "has a user name before the host"
	case mixed(host):
		return "the host mixes scripts"
	case strings.ContainsFunc(host, hidden):
		return "the host has invisible characters"
	case strings.HasPrefix(host, "xn--") || strings.Contains(host, ".xn--"):
		return "the host is an encoded international name"
	}
	return ""
}

// mixed reports whether the letters of a name are of more than one script. Chinese, Japanese and Korean scripts count
// as one, as they are written together; letters of no script at all (mathematical, full-width, phonetic: look-alikes
// of Latin ones) always mix.
func mixed(name string) bool {
	first := ""
	for _, r := range name {
		if !unicode.IsLetter(r) {
			continue
		}
		sc := script(r)
		if sc == "Common" || (first != "" && sc != first) {
			return true
		}
		first = sc
	}
	return false
}

func script(r rune) string {
	switch {
	case r < utf8.RuneSelf:
		return "Latin"
	case r >= 0xFF00 && r <= 0xFF5A, r >= 0x250 && r <= 0x2AF, r >= 0x1D00 && r <= 0x1DBF:
		return "Common"
	case unicode.In(r, unicode.Latin):
		return "Latin"
	case unicode.In(r, unicode.Cyrillic):
		return "Cyrillic"
	case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Bopomofo):
		return "CJK"
	case unicode.In(r, unicode.Greek):
		return "Greek"
	case unicode.In(r, unicode.Common, unicode.Inherited):
		return "Common"
	}
	for name, table := range unicode.Scripts { // a rune is in one script, so the order does not matter
		if unicode.Is(table, r) {
			return name
		}
	}
	return "Common"
}

// rightToLeft reports letters that could reorder what stands around them, digits above all. They are words in their own
// right, so they are pointed out, not written as code points.
func rightToLeft(r rune) bool {
	return r >= 0x590 && unicode.In(r, unicode.Hebrew, unicode.Arabic, unicode.Syriac, unicode.Thaana, unicode.Nko, unicode.Adlam, unicode.Samaritan, unicode.Mandaic)
}

// dot reports the full stops that IDNA takes for a dot.
func dot(r rune) bool { return r == '.' || r == '\u3002' || r == '\uFF0E' || r == '\uFF61' }

func hostRune(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r) || r == '-' || r == '_' || dot(r))
}

func commonDomain(name string) bool {
	labels := strings.FieldsFunc(name, dot)
	return len(labels) > 1 && slices.Contains(commonDomains, strings.ToLower(labels[len(labels)-1]))
}

var commonDomains = []string{
	"com", "net", "org", "info", "biz", "io", "ai", "dev", "app", "co", "me", "gov", "edu", "mil", "int", "cloud", "online", "site",
	"us", "uk", "eu", "de", "fr", "nl", "ch", "at", "it", "es", "pl", "se", "no", "ca", "au", "in", "br", "example",
}
