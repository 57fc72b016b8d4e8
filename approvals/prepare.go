package approvals

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/holdpoint/holdpoint/approvals/rules"
)

// prepared is one call under a configuration, or why it is refused. Refusals are kept until the transaction has seen that the
// intake is no repeat: a repeat is answered whatever the configuration says now.
type prepared struct {
	tool     *rules.Tool
	target   string
	snapshot []byte
	refusal  *Refusal
}

// prepare judges the calls as far as the configuration alone goes.
func prepare(ctx context.Context, tenant *rules.Tenant, d *draft) []prepared {
	out := make([]prepared, len(d.calls))
	gate := admitted(tenant, d)
	for i := range d.calls {
		if gate != nil {
			out[i].refusal = gate
			continue
		}
		if ctx.Err() != nil { // nobody waits for it any more
			break
		}
		out[i] = prepareCall(ctx, tenant, d, i)
	}
	return out
}

// admitted is the registry's word on the agent and its version (I12).
func admitted(tenant *rules.Tenant, d *draft) *Refusal {
	agent, ok := tenant.Agents[d.key.Agent]
	if !ok {
		r := refuse(CodeToolNotAllowed, "the agent %q is not in the configuration", d.key.Agent)
		var tools []string
		for _, c := range d.in.Calls {
			tools = append(tools, c.Tool)
		}
		r.Suggest = tenant.SuggestAgent(d.key.Agent, d.in.AppStateVersion, d.in.Format, tools)
		return r
	}
	version, ok := agent.Version(d.in.AppStateVersion)
	if !ok {
		r := refuse(CodeVersionUnsupported, "the application version %q is not registered for the agent", d.in.AppStateVersion)
		r.Suggest = tenant.SuggestVersion(d.key.Agent, d.in.AppStateVersion, d.in.Format)
		return r
	}
	if err := version.AcceptsState(d.in.Format, d.in.SDKVersion, d.schema); err != nil {
		r := refuse(CodeVersionUnsupported, "%s", err)
		r.Suggest = tenant.SuggestVersion(d.key.Agent, d.in.AppStateVersion, d.in.Format)
		return r
	}
	if !version.Open {
		return refuse(CodeIntakeClosed, "the application version %q takes no new requests; propose from a current version", d.in.AppStateVersion)
	}
	return nil
}

func prepareCall(ctx context.Context, tenant *rules.Tenant, d *draft, i int) (p prepared) {
	c := &d.calls[i]
	no := func(r *Refusal, pointer string) prepared {
		r.Pointer = fmt.Sprintf("/calls/%d%s", i, pointer)
		return prepared{refusal: r}
	}
	tool, ok := tenant.Tools[c.in.Tool]
	if !ok {
		r := refuse(CodeUnknownTool, "the tool %q is not in the configuration", c.in.Tool)
		r.Suggest = tenant.SuggestTool(c.in.Tool)
		return no(r, "/tool")
	}
	if !tenant.Agents[d.key.Agent].Allows(tool.Name) {
		r := refuse(CodeToolNotAllowed, "the agent %q may not use the tool %q", d.key.Agent, tool.Name)
		r.Suggest = tenant.SuggestAllow(d.key.Agent, tool.Name)
		return no(r, "/tool")
	}
	if !d.key.covers(tool.Name) {
		return no(d.key.narrow(tool.Name), "/tool")
	}
	p.tool, p.target = tool, tool.Name
	if c.args.Readable() {
		if err := tool.Validate(c.args.Value); err != nil {
			var e *rules.SchemaError
			if !errors.As(err, &e) {
				return no(refuse(CodeSchemaMismatch, "the arguments do not fit the tool's schema"), "/arguments")
			}
			return no(refuse(CodeSchemaMismatch, "the arguments do not fit the tool's schema: %s", e.Message), "/arguments"+e.Pointer)
		}
		target, err := tool.Target(rules.Input{Tool: tool.Name, Args: c.args.Value, Agent: rules.AgentInput{Name: d.key.Agent, Path: c.in.AgentPath, Version: d.in.AppStateVersion}, Requester: rules.RequesterInput{ID: d.in.Requester}})
		if err != nil {
			return no(refuse(CodeRuleError, "%s", err), "/arguments")
		}
		p.target = target
	}
	snapshot, err := takeSnapshot(ctx, tool, c.args, c.in.Reason)
	if err != nil {
		return no(refuse(CodeInvalidRequest, "the arguments cannot be shown"), "/arguments")
	}
	p.snapshot = snapshot
	return p
}

// uncovered refuses a repeat of another key's intake: its approvals are not there for a key that does not cover their tools.
func (d *draft) uncovered() *Refusal {
	for i, c := range d.calls {
		if !d.key.covers(c.in.Tool) {
			r := d.key.narrow(c.in.Tool)
			r.Pointer = fmt.Sprintf("/calls/%d/tool", i)
			return r
		}
	}
	return nil
}

// newSalt keeps a low-entropy redacted argument from being guessed from the digest.
func newSalt() []byte {
	b := make([]byte, saltBytes)
	_, _ = rand.Read(b) // never fails (crypto/rand)
	return b
}
