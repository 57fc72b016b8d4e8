package rules

import (
	"net/netip"
	"net/textproto"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// HTTP is a tool that the worker runs by one HTTP request.
type HTTP struct {
	Method       string
	URL          string         // as written, with placeholders
	Headers      map[string]Ref // by canonical name
	KeyHeader    string         // carries the operation key; empty: none
	KeyRetention time.Duration  // how long the receiver knows a key; zero unless idempotent
	Lookup       string         // as written; 200: happened, 404: did not; empty: none
	Settle       time.Duration  // after the timeout, how long until a 404 is believed
	IfMatch      bool           // send target_version as If-Match
	Timeout      time.Duration  // of one attempt

	url    *urlTemplate
	lookup *urlTemplate
	body   *node // nil: the approved argument bytes
}

const (
	defaultTimeout = 30 * time.Second
	longestTimeout = 10 * time.Minute
)

var (
	headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$")
	// What stands in these is a credential, whoever wrote it.
	credentialHeader = regexp.MustCompile(`(?i)authorization|cookie|token|secret|password|passwd|credential|api-?key|access-?key`)
	managedHeaders   = []string{
		"Host", "Content-Length", "Transfer-Encoding", "Connection", "Keep-Alive", "Te", "Trailer", "Upgrade", "Expect",
		"Proxy-Connection", "Proxy-Authorization", "Accept-Encoding", "If-Match", "If-None-Match",
	}
)

var httpKeys = []string{"method", "url", "headers", "body", "key_header", "key_retention", "lookup", "settle", "if_match", "timeout"}

func (r *reader) http(tool *object, n *node, t *Tool, egress []netip.Prefix, refs *references) *HTTP {
	o := r.object(n, tool.at("http"), httpKeys...)
	h := &HTTP{
		Method:       o.choice("method", "POST", "POST", "PUT", "PATCH", "DELETE", "GET"),
		KeyHeader:    o.header("key_header"),
		KeyRetention: o.duration("key_retention", longest),
		Settle:       o.duration("settle", longest),
		Timeout:      o.duration("timeout", longestTimeout),
		IfMatch:      o.boolean("if_match"),
		Headers:      map[string]Ref{},
	}
	if h.Timeout == 0 {
		h.Timeout = defaultTimeout
	}
	if h.URL = o.needText("url"); h.URL != "" {
		h.url = r.url(o, "url", h.URL, t, urlUse{egress: egress, opKey: true, must: true})
	}
	if h.Lookup = o.text("lookup"); h.Lookup != "" {
		h.lookup = r.url(o, "lookup", h.Lookup, t, urlUse{egress: egress, opKey: true, must: true})
	}
	if b := o.n.get("body"); b != nil {
		if h.Method == "GET" {
			o.fault("body", "doesn't apply to GET")
		}
		r.bodyTemplate(b, o.at("body"), t)
		h.body = b.canonical()
	}
	if hs := o.n.get("headers"); hs != nil && r.mapping(hs, o.at("headers")) {
		for _, f := range hs.fields {
			r.headerField(o, h, f, refs)
		}
	}
	h.check(o, tool, t.Retry)
	return h
}

// check holds the retry class against what it needs.
func (h *HTTP) check(o, tool *object, retry Retry) {
	keyed := h.KeyHeader != "" || h.url.hasKey() || bodyHasKey(h.body)
	switch retry {
	case Idempotent:
		if !o.has("key_retention") {
			o.fault("key_retention", "is required by `retry: idempotent`: for how long does the receiver know a key?")
		}
		if !keyed {
			o.fault("key_header", "is required by `retry: idempotent` (or put {operation_key} into url or body)")
		}
	case Queryable:
		if !o.has("lookup") || !o.has("settle") {
			o.fault("lookup", "lookup and settle are required by `retry: queryable`")
		}
		if !keyed {
			o.fault("key_header", "is required by `retry: queryable` (or put {operation_key} into url or body): the lookup must find what was sent")
		}
		o.unfit("has no meaning for a queryable tool; say `retry: idempotent` if the receiver refuses a key it knows", "key_retention")
	case Opaque:
		o.unfit("has no meaning for an opaque tool; say `retry: idempotent` or `retry: queryable`", "key_retention", "lookup", "settle")
	}
	if h.lookup != nil && !h.lookup.hasKey() {
		o.fault("lookup", "must hold {operation_key}: only that tells this call from another")
	}
	if o.has("lookup") != o.has("settle") && retry == Idempotent {
		o.fault("settle", "lookup and settle belong together: when is a 404 believed?")
	}
}

func (o *object) header(key string) string {
	s := o.text(key)
	if s == "" {
		return ""
	}
	name := textproto.CanonicalMIMEHeaderKey(s)
	if !headerName.MatchString(s) || contains(managedHeaders, name) || name == "Content-Type" {
		o.fault(key, "can't be used as a header for the key")
	}
	return name
}

func (r *reader) headerField(o *object, h *HTTP, f field, refs *references) {
	path := o.at("headers") + "." + f.key
	name := textproto.CanonicalMIMEHeaderKey(f.key)
	fault := func(msg string) {
		r.problems = append(r.problems, &Problem{File: r.file, Line: f.line, Col: f.col, Path: path, Msg: msg})
	}
	_, twice := h.Headers[name]
	switch {
	case !headerName.MatchString(f.key):
		fault("isn't a header's name")
	case contains(managedHeaders, name):
		fault("is set by the worker itself")
	case name == h.KeyHeader:
		fault("is the key_header: the operation key goes there")
	case twice:
		fault("is set twice (names of headers don't tell case apart)")
	}
	ref := r.ref(f.value, path, !credentialHeader.MatchString(name), refs)
	if ref.Scheme == LiteralScheme && strings.ContainsFunc(ref.Name, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }) {
		r.fault(f.value, path, "holds a control character")
	}
	h.Headers[name] = ref
}

// urlTemplate is a URL whose scheme and host are fixed.
type urlTemplate struct {
	origin string // scheme://host
	pieces []piece
}

func (u *urlTemplate) hasKey() bool {
	if u == nil {
		return false
	}
	for _, p := range u.pieces {
		if p.opKey {
			return true
		}
	}
	return false
}

// urlUse is what a URL is for: links are opened by people, so egress doesn't bind them.
type urlUse struct {
	egress   []netip.Prefix
	opKey    bool
	must     bool
	anywhere bool
	fixed    bool // no placeholders at all
	fragment bool
}

var origin = regexp.MustCompile(`^https?://[^/?#\s\\@{}]+`)

func (r *reader) url(o *object, key, s string, t *Tool, use urlUse) *urlTemplate {
	start := origin.FindString(s)
	rest := s[len(start):]
	switch {
	case start == "":
		o.fault(key, "must be an http:// or https:// URL with a fixed host and without a user's name")
		return nil
	case rest != "" && rest[0] != '/' && rest[0] != '?' && rest[0] != '#':
		o.fault(key, "the host must be fixed: a placeholder may only stand after the first / or ?")
		return nil
	case strings.ContainsFunc(rest, func(c rune) bool { return c <= ' ' && c != ' ' || c == '\\' || c == 0x7f }):
		o.fault(key, "holds a character that can't stand in a URL")
		return nil
	case !use.fragment && strings.Contains(rest, "#"):
		o.fault(key, "must not have a #fragment")
		return nil
	}
	u := &urlTemplate{origin: start}
	if use.fixed {
		if strings.ContainsAny(rest, "{}") {
			o.fault(key, "takes no placeholders")
			return nil
		}
		u.pieces = []piece{{text: s}}
	} else if u.pieces = r.template(o.n.get(key), o.at(key), s, t, use.opKey, use.must); u.pieces == nil {
		return nil
	}
	probe, err := u.render(func(piece) (string, error) { return "x", nil })
	if err != nil {
		o.fault(key, "is not a usable URL: %s", err)
		return nil
	}
	if parsed, err := url.Parse(probe); err == nil && !use.anywhere {
		r.reachable(o, key, parsed.Hostname(), use.egress)
	}
	return u
}

// reachable refuses a private address that egress doesn't open: the request would be
// refused at every dial anyway. Names are judged when they are dialled.
func (r *reader) reachable(o *object, key, host string, egress []netip.Prefix) {
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return
	}
	addr = addr.Unmap()
	if !addr.IsPrivate() && !addr.IsLoopback() && !addr.IsLinkLocalUnicast() && !addr.IsUnspecified() && !addr.IsMulticast() {
		return
	}
	for _, p := range egress {
		if p.Contains(addr) {
			return
		}
	}
	o.fault(key, "%s is a private address that egress.allow doesn't open", addr)
}
