package rules

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// RenderError is a request that can't be built from the approved arguments. Its text
// holds no value.
type RenderError struct{ Field, Reason string }

func (e *RenderError) Error() string {
	if e.Field == "" {
		return "the request can't be built: " + e.Reason
	}
	return fmt.Sprintf("the request can't be built: %s %s", e.Field, e.Reason)
}

var errNoValue = errors.New("a placeholder has no usable value")

// Request is what the worker sends, apart from headers.
type Request struct {
	Method string
	URL    string
	Body   []byte // JSON; nil for GET
}

// Request builds the request from the approved argument bytes: by default they are the
// body, byte for byte. The error is a [*RenderError].
func (h *HTTP) Request(arguments []byte, operationKey string) (Request, error) {
	args, err := decodeArguments(arguments)
	if err != nil {
		return Request{}, err
	}
	out := Request{Method: h.Method}
	if out.URL, err = h.url.fill(args, operationKey); err != nil {
		return Request{}, err
	}
	switch {
	case h.Method == "GET":
	case h.body == nil:
		out.Body = arguments
	default:
		if out.Body, err = appendBody(nil, h.body, args, operationKey); err != nil {
			return Request{}, err
		}
	}
	return out, nil
}

// LookupURL is where to ask whether the operation happened; empty when there is no
// lookup. The error is a [*RenderError].
func (h *HTTP) LookupURL(arguments []byte, operationKey string) (string, error) {
	if h.lookup == nil {
		return "", nil
	}
	args, err := decodeArguments(arguments)
	if err != nil {
		return "", err
	}
	return h.lookup.fill(args, operationKey)
}

func decodeArguments(arguments []byte) (map[string]any, error) {
	dec := json.NewDecoder(bytes.NewReader(arguments))
	dec.UseNumber()
	var args map[string]any
	if err := dec.Decode(&args); err != nil || args == nil {
		return nil, &RenderError{Reason: "the arguments aren't a JSON object"}
	}
	return args, nil
}

func (u *urlTemplate) fill(args map[string]any, operationKey string) (string, error) {
	return u.render(func(p piece) (string, error) { return fillPiece(p, args, operationKey) })
}

// fillPiece gives a placeholder's text; the value must be a scalar with some text.
func fillPiece(p piece, args map[string]any, operationKey string) (string, error) {
	if p.opKey {
		if operationKey == "" {
			return "", &RenderError{Field: operationKeyMark, Reason: "is empty"}
		}
		return operationKey, nil
	}
	v, ok := lookup(args, p.path)
	if !ok {
		return "", &RenderError{Field: p.name(), Reason: "is missing"}
	}
	s, ok := scalar(v)
	if !ok {
		return "", &RenderError{Field: p.name(), Reason: "is not text, a number, true or false"}
	}
	if s == "" {
		return "", &RenderError{Field: p.name(), Reason: "is empty"}
	}
	return s, nil
}

// render escapes each value for where it stands and proves that the result still has
// the fixed origin and no dot segments, through which a path would climb.
func (u *urlTemplate) render(value func(piece) (string, error)) (string, error) {
	var b strings.Builder
	query := false
	for _, p := range u.pieces {
		if p.path == nil && !p.opKey {
			b.WriteString(strings.ReplaceAll(p.text, " ", "%20"))
			// In a fragment, a path's escaping is right again.
			if q, f := strings.LastIndex(p.text, "?"), strings.LastIndex(p.text, "#"); f >= 0 {
				query = false
			} else if q >= 0 {
				query = true
			}
			continue
		}
		s, err := value(p)
		if err != nil {
			return "", err
		}
		if query {
			b.WriteString(url.QueryEscape(s))
		} else {
			b.WriteString(url.PathEscape(s))
		}
	}
	out := b.String()
	parsed, err := url.Parse(out)
	if err != nil || parsed.User != nil || parsed.Host == "" || parsed.Scheme+"://"+parsed.Host != u.origin {
		return "", &RenderError{Reason: "the URL's host would change or can't be read"}
	}
	for _, segment := range strings.Split(parsed.EscapedPath(), "/") {
		if plain, err := url.PathUnescape(segment); err != nil || plain == "." || plain == ".." {
			return "", &RenderError{Reason: "the URL's path would climb"}
		}
	}
	return out, nil
}

// bodyTemplate checks a body: any JSON shape whose texts may hold placeholders. A text
// that is one placeholder alone becomes the field's JSON value, so no argument can
// change the shape of the body.
func (r *reader) bodyTemplate(n *node, path string, t *Tool) {
	switch n.kind {
	case objectNode:
		for _, f := range n.fields {
			if strings.Contains(f.key, "{{") || strings.Contains(f.key, operationKeyMark) {
				r.fault(f.value, join(path, f.key), "a key takes no placeholders")
			}
			r.bodyTemplate(f.value, join(path, f.key), t)
		}
	case listNode:
		for i, item := range n.items {
			r.bodyTemplate(item, fmt.Sprintf("%s[%d]", path, i), t)
		}
	case textNode:
		r.template(n, path, n.text, t, true, true)
	default:
	}
}

func bodyHasKey(n *node) bool {
	if n == nil {
		return false
	}
	for _, f := range n.fields {
		if bodyHasKey(f.value) {
			return true
		}
	}
	for _, item := range n.items {
		if bodyHasKey(item) {
			return true
		}
	}
	return n.kind == textNode && strings.Contains(n.text, operationKeyMark)
}

func appendBody(out []byte, n *node, args map[string]any, operationKey string) ([]byte, error) {
	var err error
	switch n.kind {
	case objectNode:
		out = append(out, '{')
		for i, f := range n.fields {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(appendString(out, f.key), ':')
			if out, err = appendBody(out, f.value, args, operationKey); err != nil {
				return nil, err
			}
		}
		return append(out, '}'), nil
	case listNode:
		out = append(out, '[')
		for i, item := range n.items {
			if i > 0 {
				out = append(out, ',')
			}
			if out, err = appendBody(out, item, args, operationKey); err != nil {
				return nil, err
			}
		}
		return append(out, ']'), nil
	case textNode:
		pieces, err := splitTemplate(n.text, true)
		if err != nil {
			return nil, &RenderError{Reason: "the body's template can't be read"}
		}
		if len(pieces) == 1 && pieces[0].path != nil {
			v, ok := lookup(args, pieces[0].path)
			if !ok {
				return nil, &RenderError{Field: pieces[0].name(), Reason: "is missing"}
			}
			return append(out, compact(v)...), nil
		}
		var b strings.Builder
		for _, p := range pieces {
			s := p.text
			if p.path != nil || p.opKey {
				if s, err = fillPiece(p, args, operationKey); err != nil {
					return nil, err
				}
			}
			b.WriteString(s)
		}
		return appendString(out, b.String()), nil
	default:
		return n.appendJSON(out), nil
	}
}
