package rules

import (
	"errors"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Problem is one fault of a configuration. Line and Col count from 1 and are 0
// when the text has no lines of its own (a stored body). Msg never repeats a value
// that could be a secret.
type Problem struct {
	File      string
	Line, Col int
	Path      string // such as tenants.acme.rules[0].when
	Msg       string
}

func (p *Problem) Error() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", p.Line, p.Col)
	}
	if p.Path != "" {
		b.WriteString(": " + p.Path)
	}
	b.WriteString(": " + p.Msg)
	return b.String()
}

// reader turns nodes into settings and collects every problem on the way.
type reader struct {
	places   map[*Rule]*Problem
	file     string
	problems []*Problem
}

func (r *reader) err() error {
	errs := make([]error, len(r.problems))
	for i, p := range r.problems {
		errs[i] = p
	}
	return errors.Join(errs...)
}

// sort puts the problems in the order of the files and their lines.
func (r *reader) sort(files []File) {
	place := map[string]int{}
	for i, f := range files {
		place[f.Name] = i
	}
	sort.SliceStable(r.problems, func(i, j int) bool {
		a, b := r.problems[i], r.problems[j]
		if place[a.File] != place[b.File] {
			return place[a.File] < place[b.File]
		}
		if a.Line != b.Line {
			return a.Line < b.Line
		}
		return a.Col < b.Col
	})
}

func (r *reader) fault(n *node, path, format string, a ...any) {
	p := &Problem{File: r.file, Path: path, Msg: fmt.Sprintf(format, a...)}
	if n != nil {
		p.Line, p.Col = n.line, n.col
	}
	r.problems = append(r.problems, p)
}

// place remembers where a rule stands.
func (r *reader) place(rule *Rule, n *node, path string) {
	if r.places == nil {
		r.places = map[*Rule]*Problem{}
	}
	p := &Problem{File: r.file, Path: path}
	if n != nil {
		p.Line, p.Col = n.line, n.col
	}
	r.places[rule] = p
}

// object is a mapping whose keys are known. A nil object reads as empty, so that a
// fault is told once.
type object struct {
	r    *reader
	n    *node
	path string
}

func (r *reader) object(n *node, path string, keys ...string) *object {
	o := &object{r: r, n: n, path: path}
	if !r.mapping(n, path) {
		o.n = &node{kind: objectNode, line: n.line, col: n.col}
		return o
	}
	for _, f := range n.fields {
		if contains(keys, f.key) {
			continue
		}
		msg := "unknown key"
		if near := nearest(f.key, keys); near != "" {
			msg += fmt.Sprintf("; did you mean %q?", near)
		} else {
			msg += "; known here: " + strings.Join(keys, ", ")
		}
		r.problems = append(r.problems, &Problem{File: r.file, Line: f.line, Col: f.col, Path: join(path, f.key), Msg: msg})
	}
	return o
}

func (r *reader) mapping(n *node, path string) bool {
	if n.kind != objectNode {
		r.fault(n, path, "must be a mapping, is %s", n.kind)
		return false
	}
	return true
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func (o *object) at(key string) string { return join(o.path, key) }

func (o *object) has(key string) bool { return o.n.get(key) != nil }

// need gives the key's value; a missing one is a fault and nil.
func (o *object) need(key string) *node {
	v := o.n.get(key)
	if v == nil {
		o.r.fault(o.n, o.at(key), "is required")
	}
	return v
}

// fault reports at the key's value, or at the mapping when the key is missing.
func (o *object) fault(key, format string, a ...any) {
	n := o.n.get(key)
	if n == nil {
		n = o.n
	}
	o.r.fault(n, o.at(key), format, a...)
}

// unfit refuses the keys that mean nothing in this place.
func (o *object) unfit(why string, keys ...string) {
	for _, key := range keys {
		if o.has(key) {
			o.fault(key, "%s", why)
		}
	}
}

func (r *reader) text(n *node, path string) (string, bool) {
	switch {
	case n == nil:
		return "", false
	case n.kind != textNode:
		r.fault(n, path, "must be text, is %s", n.kind)
		return "", false
	case strings.TrimSpace(n.text) == "":
		r.fault(n, path, "is empty")
		return "", false
	case !utf8.ValidString(n.text) || strings.ContainsRune(n.text, 0):
		r.fault(n, path, "holds bytes that aren't text")
		return "", false
	}
	return n.text, true
}

func (o *object) text(key string) string {
	s, _ := o.r.text(o.n.get(key), o.at(key))
	return s
}

func (o *object) needText(key string) string {
	s, _ := o.r.text(o.need(key), o.at(key))
	return s
}

// choice reads one of the words: fallback when the key is missing, "" after a fault, so
// that nothing is concluded from a wrong word.
func (o *object) choice(key, fallback string, words ...string) string {
	if !o.has(key) {
		return fallback
	}
	s := o.text(key)
	if s == "" || contains(words, s) {
		return s
	}
	o.fault(key, "must be %s%s", strings.Join(words, " or "), meant(s, words))
	return ""
}

func (o *object) boolean(key string) bool {
	n := o.n.get(key)
	if n == nil {
		return false
	}
	if n.kind != booleanNode {
		o.fault(key, "must be true or false, is %s", n.kind)
	}
	return n.text == "true"
}

func (o *object) integer(key string, fallback, low, high int64) int64 {
	n := o.n.get(key)
	if n == nil {
		return fallback
	}
	v, err := strconv.ParseInt(n.text, 10, 64)
	if n.kind != numberNode || err != nil || v < low || v > high {
		o.fault(key, "must be a whole number from %d to %d", low, high)
		return fallback
	}
	return v
}

// duration reads Go's syntax with days in front of it ("1d12h"); zero when missing.
func (o *object) duration(key string, high time.Duration) time.Duration {
	n := o.n.get(key)
	if n == nil {
		return 0
	}
	s, ok := o.r.text(n, o.at(key))
	if !ok {
		return 0
	}
	d, err := parseDuration(s)
	if err != nil {
		o.fault(key, "must be a duration such as 90s, 15m, 4h or 2d")
		return 0
	}
	if d <= 0 || d > high {
		o.fault(key, "must be longer than nothing and at most %s", formatDuration(high))
		return 0
	}
	return d
}

func (o *object) list(key string) []*node {
	n := o.n.get(key)
	if n == nil {
		return nil
	}
	if n.kind != listNode {
		o.fault(key, "must be a list, is %s", n.kind)
		return nil
	}
	return n.items
}

// texts reads a list of distinct words.
func (o *object) texts(key string, check func(s string) string) []string {
	var out []string
	for i, item := range o.list(key) {
		path := fmt.Sprintf("%s[%d]", o.at(key), i)
		s, ok := o.r.text(item, path)
		if !ok {
			continue
		}
		if contains(out, s) {
			o.r.fault(item, path, "%q is listed twice", s)
			continue
		}
		if msg := check(s); msg != "" {
			o.r.fault(item, path, "%s", msg)
			continue
		}
		out = append(out, s)
	}
	return out
}

func contains(list []string, s string) bool {
	for _, have := range list {
		if have == s {
			return true
		}
	}
	return false
}
