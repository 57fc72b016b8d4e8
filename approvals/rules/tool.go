package rules

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"cel.dev/cel-go/cel"
)

// Kind is what a tool is.
type Kind string

// The kinds of tools.
const (
	Effect   Kind = "effect"
	Question Kind = "question" // a person's answer is its output; nothing runs
)

// Retry is how a tool's effect may be tried again after an unknown outcome.
type Retry string

// The classes of retry.
const (
	Idempotent Retry = "idempotent" // sent again under the same key, while the key is kept
	Queryable  Retry = "queryable"  // looked up first
	Opaque     Retry = "opaque"     // one automatic dispatch; then a person settles it
)

// Executor says who runs a tool.
type Executor string

// Who runs a tool; a question has [NoExecutor].
const (
	NoExecutor     Executor = ""
	WorkerExecutor Executor = "worker"
	AgentExecutor  Executor = "agent"
)

// Tool is one tool of a tenant. Exactly one of HTTP and Agent is set for an effect,
// neither for a question.
type Tool struct {
	Name   string
	Kind   Kind
	Retry  Retry    // of an effect; empty for a question
	Redact []string // JSON pointers (RFC 6901) of what reviewers don't see
	HTTP   *HTTP
	Agent  *AgentRun

	title    []piece
	links    []linkTemplate
	schema   *schema
	target   *condition
	redact   [][]string
	revision string
}

// AgentRun is a tool that the agent runs itself on resume, under the ledger.
type AgentRun struct {
	KeyRetention time.Duration // how long the receiver knows an operation key; 0: opaque
}

// Executor says who runs the tool.
func (t *Tool) Executor() Executor {
	switch {
	case t.HTTP != nil:
		return WorkerExecutor
	case t.Agent != nil:
		return AgentExecutor
	}
	return NoExecutor
}

// KeyRetention is how long the receiver of the effect keeps an operation key; zero
// when a keyed resend is never safe.
func (t *Tool) KeyRetention() time.Duration {
	switch {
	case t.HTTP != nil:
		return t.HTTP.KeyRetention
	case t.Agent != nil:
		return t.Agent.KeyRetention
	}
	return 0
}

var toolKeys = []string{"kind", "title", "schema", "target", "redact", "links", "retry", "http", "agent"}

func (r *reader) tool(name, path string, n *node, egress []netip.Prefix, refs *references) *Tool {
	o := r.object(n, path, toolKeys...)
	t := &Tool{Name: name}
	if o.need("kind") != nil {
		t.Kind = Kind(o.choice("kind", string(Effect), string(Effect), string(Question)))
	}
	t.schema = r.toolSchema(o)
	t.Redact = o.texts("redact", func(s string) string {
		parts, msg := splitPointer(s)
		if msg == "" && !t.schema.known(parts) {
			msg = "names a field that the schema doesn't have: nothing would be redacted"
		}
		if msg == "" {
			t.redact = append(t.redact, parts)
		}
		return msg
	})
	if s := o.needText("title"); s != "" {
		t.title = r.template(o.n.get("title"), o.at("title"), s, t, false, false)
	}
	if s := o.text("target"); s != "" {
		t.target = r.compile(o.n.get("target"), o.at("target"), s, targetEnv, cel.StringType, names{tools: []string{name}})
		if t.target != nil && len(t.target.groups) > 0 {
			o.fault("target", "can't depend on requester.groups: what is acted on doesn't change with who is in a group")
		}
	}
	t.links = r.links(o, t)
	if t.Kind == Question {
		o.unfit("doesn't apply to a question: nothing runs", "retry", "http", "agent")
	} else {
		r.effect(o, t, egress, refs)
	}
	t.revision = t.hash(n)
	return t
}

// effect reads who runs the tool, and checks that its retry class has what it needs.
func (r *reader) effect(o *object, t *Tool, egress []netip.Prefix, refs *references) {
	t.Retry = Retry(o.choice("retry", string(Opaque), string(Idempotent), string(Queryable), string(Opaque)))
	if o.has("http") == o.has("agent") {
		o.fault("http", "an effect has exactly one of http (the worker runs it) and agent (the agent runs it on resume)")
		return
	}
	if n := o.n.get("http"); n != nil {
		t.HTTP = r.http(o, n, t, egress, refs)
		return
	}
	a := r.object(o.n.get("agent"), o.at("agent"), "key_retention")
	t.Agent = &AgentRun{KeyRetention: a.duration("key_retention", longest)}
	switch t.Retry {
	case Queryable:
		o.fault("retry", "queryable needs http: the worker can't look up what the agent did")
	case Idempotent:
		if !a.has("key_retention") {
			a.fault("key_retention", "is required by `retry: idempotent`: for how long does the receiver know a key?")
		}
	case Opaque:
		a.unfit("has no meaning for an opaque tool; say `retry: idempotent` if the receiver knows keys", "key_retention")
	}
}

func (r *reader) toolSchema(o *object) *schema {
	open := map[string]any{"type": "object"}
	raw := open
	if n := o.n.get("schema"); n != nil && r.mapping(n, o.at("schema")) {
		raw, _ = n.value().(map[string]any)
		if takes, ok := raw["type"]; ok && takes != "object" {
			o.fault("schema", "must take an object: arguments are one")
			raw = open
		}
	}
	s, err := compileSchema(raw)
	if err != nil {
		// The library's text quotes the schema, which is configuration, not arguments.
		o.fault("schema", "is not a valid JSON Schema: %s", strings.Join(strings.Fields(err.Error()), " "))
		s, _ = compileSchema(open)
	}
	return s
}

// template splits a text and checks its fields against the schema. must says that
// every valid call has to have the field.
func (r *reader) template(n *node, path, s string, t *Tool, opKey, must bool) []piece {
	pieces, err := splitTemplate(s, opKey)
	if err != nil {
		r.fault(n, path, "%s", err)
		return nil
	}
	for _, p := range pieces {
		switch {
		case p.path == nil:
		case !t.schema.known(p.path):
			r.fault(n, path, "names %s, a field that the schema doesn't have", p.name())
		case must && !t.schema.required(p.path):
			r.fault(n, path, "names %s, which the schema doesn't require: a call without it could not run", p.name())
		}
	}
	return pieces
}

// splitPointer reads an RFC 6901 pointer to one field; msg tells what is wrong.
func splitPointer(s string) (parts []string, msg string) {
	if !strings.HasPrefix(s, "/") {
		return nil, "must be a JSON pointer such as /token"
	}
	for _, part := range strings.Split(s[1:], "/") {
		if strings.Contains(strings.NewReplacer("~0", "", "~1", "").Replace(part), "~") {
			return nil, "has a ~ that isn't ~0 or ~1"
		}
		if part == "*" || part == "-" {
			return nil, fmt.Sprintf("has %q, which names no field; redact the whole list or object above it", part)
		}
		parts = append(parts, strings.NewReplacer("~1", "/", "~0", "~").Replace(part))
	}
	return parts, ""
}
