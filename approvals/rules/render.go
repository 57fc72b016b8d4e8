package rules

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// RedactedMark begins the text that stands for a redacted value in a snapshot, such as
// "[redacted]" or "[redacted: 40 chars]". Links are never built from text that holds it.
const RedactedMark = "[redacted"

// missing stands for a field that the arguments don't have.
const missing = "—"

// Title fills the tool's title from the redacted arguments. A json.Number appears as
// it was sent, a float64 in its shortest form, an object or list as compact JSON, a
// missing field as "—". The text is not escaped: the card does that.
func (t *Tool) Title(redacted map[string]any) string {
	var b strings.Builder
	for _, p := range t.title {
		if p.path == nil {
			b.WriteString(p.text)
			continue
		}
		v, ok := lookup(redacted, p.path)
		if !ok || v == nil {
			b.WriteString(missing)
			continue
		}
		s, ok := scalar(v)
		if !ok {
			s = compact(v)
		}
		if strings.TrimSpace(s) == "" {
			s = missing
		}
		b.WriteString(s)
	}
	return b.String()
}

// Link is a link on a card; URL's host is the configuration's.
type Link struct{ Text, URL string }

type linkTemplate struct {
	text string
	url  *urlTemplate
}

// Links fills the tool's links from the redacted arguments. A link whose field is
// missing, empty, not a scalar or redacted is left out.
func (t *Tool) Links(redacted map[string]any) []Link {
	var out []Link
	for _, l := range t.links {
		u, err := l.url.render(func(p piece) (string, error) {
			v, _ := lookup(redacted, p.path)
			s, ok := scalar(v)
			if !ok || s == "" || strings.Contains(s, RedactedMark) {
				return "", errNoValue
			}
			return s, nil
		})
		if err == nil {
			out = append(out, Link{Text: l.text, URL: u})
		}
	}
	return out
}

func (r *reader) links(o *object, t *Tool) []linkTemplate {
	var out []linkTemplate
	for i, n := range o.list("links") {
		l := r.object(n, fmt.Sprintf("%s[%d]", o.at("links"), i), "text", "url")
		text, s := l.needText("text"), l.needText("url")
		if strings.Contains(text, "{{") {
			l.fault("text", "takes no placeholders")
		}
		if s == "" {
			continue
		}
		u := r.url(l, "url", s, t, urlUse{anywhere: true, fragment: true})
		if u == nil {
			continue
		}
		for _, p := range u.pieces {
			if p.path != nil && covered(p.path, t.redact) {
				l.fault("url", "names %s, which is redacted", p.name())
			}
		}
		out = append(out, linkTemplate{text: text, url: u})
	}
	return out
}

// scalar gives a value's text: strings as they are, numbers as sent.
func scalar(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), true
	case bool:
		return strconv.FormatBool(v), true
	}
	return "", false
}

func compact(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return missing
	}
	return strings.TrimSuffix(b.String(), "\n")
}
