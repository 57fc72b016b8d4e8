package secret

import (
	"fmt"
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

// Find gives the credentials in s, ordered and not overlapping. Every
// occurrence of a detected text counts. It is safe for concurrent use.
func Find(s string) []Finding {
	if len(s) < shortest {
		return nil
	}
	d := load()
	if d.keywords != nil && d.keywords.MatchFirstString(strings.ToLower(s)) == nil {
		return nil
	}
	var found []Finding
	for _, leak := range d.leaks.DetectString(s) {
		text := leak.Secret
		if text == "" {
			text = leak.Match
		}
		if text == "" || !strings.Contains(s, text) {
			// Something is there, but not where: all of s is taken to be it.
			return []Finding{{Rule: leak.RuleID, Start: 0, End: len(s)}}
		}
		for from := 0; ; {
			i := strings.Index(s[from:], text)
			if i < 0 {
				break
			}
			found = append(found, Finding{Rule: leak.RuleID, Start: from + i, End: from + i + len(text)})
			from += i + len(text)
		}
	}
	return merge(found)
}

// Found says whether s holds a credential.
func Found(s string) bool { return len(Find(s)) > 0 }

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
