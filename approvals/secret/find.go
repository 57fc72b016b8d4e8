package secret

import (
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	ahocorasick "github.com/BobuSumisu/aho-corasick"
	"github.com/rs/zerolog"
	"github.com/zricethezav/gitleaks/v8/detect"
	"github.com/zricethezav/gitleaks/v8/logging"
)

// Finding is a detected credential: the name of the rule (gitleaks') and the
// byte range s[Start:End].
type Finding struct {
	Rule       string
	Start, End int
}

// detector is gitleaks with its default rules, and its keywords as a filter of
// our own in front: most strings of a state hold none and cost one pass.
type detector struct {
	leaks    *detect.Detector
	keywords *ahocorasick.Trie
}

var load = sync.OnceValue(func() *detector {
	logging.Logger = zerolog.Nop()
	leaks, err := detect.NewDetectorDefaultConfig()
	if err != nil {
		// The rules are compiled into the binary: this is a broken build, and
		// going on would mean to find nothing.
		panic(fmt.Sprintf("secret: the built-in rules don't load: %v", err))
	}
	leaks.IgnoreGitleaksAllow = true
	d := &detector{leaks: leaks}
	for _, rule := range leaks.Config.Rules {
		if rule.Regex != nil && len(rule.Keywords) == 0 {
			return d // a rule that applies everywhere: no filter
		}
	}
	words := make([]string, 0, len(leaks.Config.Keywords))
	for word := range leaks.Config.Keywords {
		words = append(words, strings.ToLower(word))
	}
	d.keywords = ahocorasick.NewTrieBuilder().AddStrings(words).Build()
	return d
})

// shortest is a length below which no rule of gitleaks matches; the least that
// any of its patterns asks for is longer.
const shortest = 8

// Warm builds the detector now, so that no request waits for it.
func Warm() { load() }

// The detector's work grows with the square of a text that is full of credentials: for each match it looks at the whole line again.
// So a long text is looked at through windows, which overlap by more than a credential of several words is long; a single word is not
// cut unless it is longer than maxWord (a token may hold any number of claims), and private keys, which may have any length, are looked
// for in the whole. A text that holds more than maxFindings is taken to be a credential as a whole.
const (
	window      = 8 << 10
	overlap     = 4 << 10
	maxWord     = 16 << 10
	maxFindings = 64
)

// wholeKey is gitleaks' rule for PEM and PGP keys. It takes one linear pass.
var wholeKey = regexp.MustCompile(`(?i)-----BEGIN[ A-Z0-9_-]{0,100}PRIVATE KEY(?: BLOCK)?-----[\s\S]{64,}?KEY(?: BLOCK)?-----`)

// Find gives the credentials in s, ordered and not overlapping. Every
// occurrence of a detected text counts. It is safe for concurrent use.
func Find(s string) []Finding {
	var found []Finding
	seen, hits := map[string]struct{}{}, 0
	for leak := range leaks(s) {
		text := leak.text
		if hits++; text == "" || hits > maxFindings {
			// Something is there, but not where, or there is more of it than is worth telling
			// apart: all of s is taken to be it.
			return []Finding{{Rule: leak.rule, Start: 0, End: len(s)}}
		}
		if _, known := seen[text]; known {
			continue
		}
		seen[text] = struct{}{}
		for from := 0; ; {
			i := strings.Index(s[from:], text)
			if i < 0 {
				break
			}
			found = append(found, Finding{Rule: leak.rule, Start: from + i, End: from + i + len(text)})
			from += i + len(text)
		}
	}
	return merge(found)
}

// leak is what the detector found in a window; text is empty when it is not in s as it stands.
type leak struct{ rule, text string }

// leaks gives what the detector finds, window by window.
func leaks(s string) iter.Seq[leak] { return leaksUntil(s, func() bool { return false }) }

// leaksUntil is leaks for a caller who may leave: stop is asked before every window.
func leaksUntil(s string, stop func() bool) iter.Seq[leak] {
	return func(yield func(leak) bool) {
		d := load()
		if len(s) > window && strings.Contains(s, "-----") {
			for _, key := range wholeKey.FindAllString(s, maxFindings+1) {
				if !yield(leak{"private-key", key}) {
					return
				}
			}
		}
		for from, end := 0, 0; end < len(s) && len(s)-from >= shortest; from = nextWindow(s, from, end) {
			if stop() {
				return
			}
			end = windowEnd(s, from)
			part := s[from:end]
			if d.keywords != nil && d.keywords.MatchFirstString(strings.ToLower(part)) == nil {
				continue
			}
			for _, hit := range d.leaks.DetectString(part) {
				l := leak{hit.RuleID, hit.Secret}
				if l.text == "" {
					l.text = hit.Match
				}
				if !strings.Contains(part, l.text) {
					l.text = ""
				}
				if !yield(l) {
					return
				}
			}
		}
	}
}

const blank = " \t\r\n"

// windowEnd is where the window from a place ends: between two words, because a rule that asks for the end of a word would take a cut
// for one, and one that asks for a whole token would not see half of it.
func windowEnd(s string, from int) int {
	end := from + window
	if end >= len(s) {
		return len(s)
	}
	const near = 1 << 10
	if i := strings.LastIndexAny(s[end-near:end], blank); i >= 0 {
		return end - near + i
	}
	limit := min(len(s), end+maxWord)
	if i := strings.IndexAny(s[end:limit], blank); i >= 0 {
		return end + i
	}
	return limit
}

// nextWindow is where the window after [from, end) begins: at the beginning of the word that is an overlap before its end, where that
// is near enough; always after from.
func nextWindow(s string, from, end int) int {
	if end == len(s) {
		return end
	}
	next := end - overlap
	if i := strings.LastIndexAny(s[max(from, next-maxWord):next], blank); i >= 0 {
		return max(from, next-maxWord) + i + 1
	}
	return next
}

// first gives the rule of the first credential in s, or "".
func first(s string) string {
	for l := range leaks(s) {
		return l.rule
	}
	return ""
}

// Found says whether s holds a credential.
func Found(s string) bool { return first(s) != "" }

// merge orders findings and joins those that overlap, under the first's rule.
func merge(found []Finding) []Finding {
	slices.SortFunc(found, func(a, b Finding) int {
		if a.Start != b.Start {
			return a.Start - b.Start
		}
		if a.End != b.End {
			return b.End - a.End
		}
		return strings.Compare(a.Rule, b.Rule)
	})
	out := found[:0]
	for _, f := range found {
		if n := len(out); n > 0 && f.Start < out[n-1].End {
			out[n-1].End = max(out[n-1].End, f.End)
			continue
		}
		out = append(out, f)
	}
	return out
}

// Mask gives s with every finding replaced by [Redacted]; s itself when there
// is none.
func Mask(s string) string {
	found := Find(s)
	if len(found) == 0 {
		return s
	}
	var b strings.Builder
	at := 0
	for _, f := range found {
		b.WriteString(s[at:f.Start])
		b.WriteString(Redacted(s[f.Start:f.End]))
		at = f.End
	}
	b.WriteString(s[at:])
	return b.String()
}

// Redacted is what stands in for a secret: "[redacted: 40 chars]". Characters
// are Unicode code points.
func Redacted(s string) string {
	return fmt.Sprintf("[redacted: %d chars]", utf8.RuneCountInString(s))
}
