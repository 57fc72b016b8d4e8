package secret

import (
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// RuleName is the rule of a [Located] that was found by its field's name.
const RuleName = "credential-name"

// Located is a credential inside a decoded JSON document.
type Located struct {
	// Pointer is the RFC 6901 pointer of the string, or of the object one of
	// whose member names is the credential (a name that is a secret must not
	// be repeated). Inside a string that holds JSON, the inner pointer is
	// appended to the string's own.
	Pointer string
	// At is the pointer of the outermost string that holds the finding, which
	// the document itself has: Pointer, when no JSON was unpacked.
	At string
	// Rule is gitleaks' name of the rule, or RuleName.
	Rule string
}

// Options say where [Walk] looks.
type Options struct {
	// Unpack looks into strings that hold a JSON object or array, at any depth.
	Unpack bool
	// Skip, if set, is asked for every value; true leaves out the value and all
	// that is in it.
	Skip func(value any) bool
	// Stop, if set, is asked before every value and every part of a long string; true ends the walk, and
	// what it has not found tells nothing.
	Stop func() bool
}

// Walk finds the credentials in a decoded document (map[string]any, []any and
// scalars): strings under a [CredentialName], in arrays too, and strings that
// gitleaks knows. Empty strings and masks ("***", "[redacted]") are nobody's
// secret. Objects are visited in the order of their sorted member names, so the
// first finding is always the same one.
func Walk(document any, o Options) iter.Seq[Located] {
	return func(yield func(Located) bool) {
		w := walker{Options: o, yield: yield, names: map[string]nameFacts{}, clean: map[string]struct{}{}}
		w.value(document, "", "", false, 0)
	}
}

type walker struct {
	Options
	yield func(Located) bool
	// A state repeats its member names and most of its strings, at each level
	// again: each is looked at once a walk.
	names map[string]nameFacts
	clean map[string]struct{} // strings up to rememberedLen without a finding
}

// nameFacts is what a member name says: that its value is a credential, or,
// with a rule, that it is one itself.
type nameFacts struct {
	credential bool
	rule       string
}

// rememberedLen keeps long texts, which seldom repeat, out of the memory.
const rememberedLen = 1 << 10

func (w *walker) name(key string) nameFacts {
	facts, known := w.names[key]
	if !known {
		facts.credential = CredentialName(key)
		if !plainName(key) {
			facts.rule = w.find(key)
		}
		w.names[key] = facts
	}
	return facts
}

// plainName says that a member name can't itself be a credential: it is a short
// identifier without any digit. Most names are, and a detector run costs more
// than all the rest of the walk.
func plainName(key string) bool {
	return len(key) < 32 && strings.Trim(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-$") == ""
}

func (w *walker) stopped() bool { return w.Stop != nil && w.Stop() }

// find gives the rule of the first finding in s, or "".
func (w *walker) find(s string) string {
	if _, clean := w.clean[s]; clean {
		return ""
	}
	for leak := range leaksUntil(s, w.stopped) {
		return leak.rule
	}
	if len(s) <= rememberedLen {
		w.clean[s] = struct{}{}
	}
	return ""
}

// maxUnpack bounds how often a string within a string is unpacked. What is
// deeper is still looked at as text.
const maxUnpack = 32

// value walks v and says whether to go on. at is "" outside of unpacked
// strings; named says that v stands under a credential-like name.
func (w *walker) value(v any, pointer, at string, named bool, unpacked int) bool {
	if w.stopped() {
		return false
	}
	if w.Skip != nil && w.Skip(v) {
		return true
	}
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			facts := w.name(key)
			if facts.rule != "" {
				if !w.found(pointer, at, facts.rule) {
					return false
				}
				continue
			}
			if !w.value(v[key], pointer+"/"+escape(key), at, facts.credential, unpacked) {
				return false
			}
		}
	case []any:
		for i, element := range v {
			_, text := element.(string)
			if !w.value(element, pointer+"/"+strconv.Itoa(i), at, named && text, unpacked) {
				return false
			}
		}
	case repeated:
		for _, one := range v {
			_, text := one.(string)
			if !w.value(one, pointer, at, named && text, unpacked) {
				return false
			}
		}
	case string:
		return w.text(v, pointer, at, named, unpacked)
	}
	return true
}

func (w *walker) text(s, pointer, at string, named bool, unpacked int) bool {
	if named && !masked(s) {
		return w.found(pointer, at, RuleName)
	}
	if w.Unpack && unpacked < maxUnpack {
		if inner, ok := unpack(s); ok {
			if at == "" {
				at = pointer
			}
			return w.value(inner, pointer, at, false, unpacked+1)
		}
	}
	if rule := w.find(s); rule != "" {
		return w.found(pointer, at, rule)
	}
	return true
}

func (w *walker) found(pointer, at, rule string) bool {
	if at == "" {
		at = pointer
	}
	return w.yield(Located{Pointer: pointer, At: at, Rule: rule})
}

var escaper = strings.NewReplacer("~", "~0", "/", "~1")

func escape(token string) string { return escaper.Replace(token) }
