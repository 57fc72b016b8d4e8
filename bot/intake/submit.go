package intake

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/approvals/canon"
)

const (
	maxRunID = 256
	noState  = "none"
)

// submit is POST /v1/approvals: a paused run is handed in.
func (s *server) submit(ctx context.Context, c *call, in *intakeBody) (answer, error) {
	intake, p := in.intake(s.opts.MaxArguments)
	if p != nil {
		return answer{}, p
	}
	pause, err := s.core.Submit(ctx, c.key, intake)
	if err != nil {
		return answer{}, err
	}
	pause.Approvals = shownAll(pause.Approvals)
	status := http.StatusCreated
	if pause.Repeat {
		status = http.StatusOK
	}
	return answer{status: status, location: whereIs(pause), body: pause}, nil
}

// whereIs names what was made: the one approval, or the list of the run's.
func whereIs(p approvals.Pause) string {
	if len(p.Approvals) == 1 {
		return "/v1/approvals/" + p.Approvals[0].ApprovalID.String()
	}
	return "/v1/approvals?run_id=" + url.QueryEscape(p.RunID)
}

// intake says the same in the core's words. It checks what one field alone can't tell.
func (in *intakeBody) intake(maxArguments int) (approvals.Intake, *Problem) {
	out := approvals.Intake{
		RunID: in.Run.ID, PauseKey: in.Run.PauseKey, AgentRevision: in.Run.AgentRevision, AppStateVersion: in.Run.AppStateVersion,
		Requester: in.Run.Requester, Format: noState, CallsGiven: in.Calls != nil,
	}
	if out.RunID == "." || out.RunID == ".." {
		return out, invalid("/run/id", "A run can't be named like a step in a path.")
	}
	if st := in.Run.State; st != nil {
		out.Format, out.SDKVersion = st.Format, st.SDKVersion
		switch {
		case st.Format != noState && st.Value.absent():
			return out, invalid("/run/state/value", "This is required for the format; without a state the format is %q.", noState)
		case st.Format == noState && !st.Value.absent():
			return out, invalid("/run/state/value", "The format %q has no value; name the state's format.", noState)
		case st.Format != noState:
			out.State = st.Value.text
		}
	}
	if out.State == nil && len(in.Calls) == 0 {
		return out, invalid("/calls", "Nothing waits: give the calls, or a state that they can be read from.")
	}
	seen := make(map[string]bool, len(in.Calls))
	for i := range in.Calls {
		c, at := &in.Calls[i], []string{"calls", strconv.Itoa(i)}
		wait, p := c.check(at, maxArguments)
		if p != nil {
			return out, p
		}
		identity := strings.Join(append(c.CallPath[:len(c.CallPath):len(c.CallPath)], c.ToolCallID), "\x00") // no id holds a NUL
		if seen[identity] {
			return out, invalid(canon.Pointer(append(at, "tool_call_id")...), "Two calls have the same call path and id; nested calls are told apart by call_path.")
		}
		seen[identity] = true
		out.Calls = append(out.Calls, approvals.CallInput{
			ToolCallID: c.ToolCallID, Tool: c.Tool, Arguments: c.Arguments.text, AgentPath: c.AgentPath, CallPath: c.CallPath,
			Reason: c.Reason, ExpiresIn: wait, TargetVersion: c.TargetVersion,
		})
	}
	return out, nil
}

func (c *callBody) check(at []string, maxArguments int) (expiresIn time.Duration, p *Problem) {
	field := func(name string) string { return canon.Pointer(append(at[:len(at):len(at)], name)...) }
	switch {
	case c.Arguments.text == nil:
		return 0, invalid(field("arguments"), "This is required: the JSON text of the arguments as a string, or a JSON object.")
	case len(c.Arguments.text) > maxArguments:
		return 0, tooLarge(field("arguments"), "The arguments are over %d bytes.", maxArguments)
	case c.ExpiresIn == "":
		return 0, nil
	}
	expiresIn, err := time.ParseDuration(c.ExpiresIn)
	if err != nil || expiresIn <= 0 {
		return 0, invalid(field("expires_in"), "This must be a duration above zero, such as 90s, 30m or 2h.")
	}
	return expiresIn, nil
}

// shown gives lists instead of null, whatever the core left empty.
func shown(v approvals.View) approvals.View {
	v.CallPath, v.AgentPath = orEmpty(v.CallPath), orEmpty(v.AgentPath)
	v.Votes, v.Scope.Decisions = orEmpty(v.Votes), orEmpty(v.Scope.Decisions)
	return v
}

func shownAll(views []approvals.View) []approvals.View {
	out := make([]approvals.View, len(views))
	for i, v := range views {
		out[i] = shown(v)
	}
	return out
}

func orEmpty[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}
