package approvals

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdpoint/holdpoint/approvals/canon"
	"github.com/holdpoint/holdpoint/approvals/rules"
	"github.com/holdpoint/holdpoint/approvals/runstate"
	"github.com/holdpoint/holdpoint/approvals/seal"
)

const (
	maxArguments = 1 << 20
	maxCalls     = 64
	maxName      = 256 // of an id or a name, in bytes
	maxPath      = 16
)

// submitted is one waiting call after the argument gate.
type submitted struct {
	in   CallInput
	args canon.Arguments
}

// draft is an intake as far as it can be made ready without a transaction: read, gated, sealed.
type draft struct {
	key      Key
	in       *Intake
	schema   string
	calls    []submitted
	intake   []byte // intakeKey
	pauseID  uuid.UUID
	blobID   uuid.UUID
	blob     []byte
	stateSum []byte
}

// Submit takes a paused run: one transaction with the pause, its sealed state, its approvals, their audit rows and the outbox.
//
// A kill before the commit leaves nothing, and the agent's retry starts afresh; a kill after it leaves everything, and the retry
// finds the same pause by what the agent sent (I21). A lost answer to the commit is therefore simply tried again.
func (s *Service) Submit(ctx context.Context, key Key, in Intake) (Pause, error) {
	p, err := s.submit(ctx, key, in)
	var r *Refusal
	if errors.As(err, &r) {
		s.metrics.Refused(string(r.Code))
	}
	return p, err
}

func (s *Service) submit(ctx context.Context, key Key, in Intake) (Pause, error) {
	tenant, revision, err := s.activeTenant(ctx, s.intake, key.Tenant, false)
	if err != nil {
		return Pause{}, err
	}
	if wait, ok := s.rates.allow(key.ID, tenant.Limits.PerMinute); !ok {
		r := refuse(CodeRateLimited, "this key may open %d intakes a minute; wait and send the same intake again", tenant.Limits.PerMinute)
		r.RetryAfter = wait
		return Pause{}, r
	}
	var d *draft
	weight := in.weight()
	if turn := s.turns.do(ctx, key.ID, weight, func() { d, err = s.read(ctx, tenant, key, &in) }); turn != nil || err != nil {
		return Pause{}, errors.Join(turn, err)
	}
	refreshes := 0 // the requester, the requester's groups and the reviewers' may each be unread
	for try := 0; ; try++ {
		var plan []prepared
		if err := s.turns.do(ctx, key.ID, weight, func() { plan = prepare(ctx, tenant, d) }); err != nil {
			return Pause{}, err
		}
		if ctx.Err() != nil { // the plan may be cut short
			return Pause{}, unavailable(ctx.Err())
		}
		out, err := s.submitOnce(ctx, tenant, revision, d, plan)
		var stale *staleDirectory
		switch {
		case try >= 3 && (errors.Is(err, errMoved) || errors.Is(err, errAmbiguous)):
			return Pause{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
		case errors.Is(err, errMoved) || errors.Is(err, errAmbiguous):
			if tenant, revision, err = s.activeTenant(ctx, s.intake, key.Tenant, true); err != nil {
				return Pause{}, err
			}
		case errors.As(err, &stale) && refreshes < 4 && s.directory != nil:
			refreshes++
			if len(stale.members) > 0 {
				if stale.users, err = s.unmirrored(ctx, key.Tenant, stale.members); err != nil {
					return Pause{}, err
				} else if len(stale.users) == 0 {
					return Pause{}, stale.refusal
				}
			}
			if ferr := s.directory.Fresh(ctx, key.Tenant, stale.groups, stale.users, decideAge); ferr != nil {
				s.log.WarnContext(ctx, "the directory could not be refreshed for an intake", "tenant", key.Tenant, "error", ferr)
				return Pause{}, fmt.Errorf("%w: people and groups cannot be read right now", ErrUnavailable) // the agent tries again
			}
		case errors.As(err, &stale):
			return Pause{}, stale.refusal
		default:
			return out, err
		}
	}
}

// errMoved says that the configuration, or the run's pause, changed between the preparation and the transaction: prepare again.
var errMoved = errors.New("the configuration moved on")

// staleDirectory says that a person or a group must be read from Slack before this intake can be judged.
type staleDirectory struct {
	groups, users []string
	members       []string // groups whose members are to be read, those that the mirror does not have at all
	refusal       *Refusal
}

// Members of groups who are not mirrored, as a group was read before them: up to a number beyond any quorum.
var sqlUnmirrored = statement(`SELECT DISTINCT m.user_id FROM slack_group_member m LEFT JOIN slack_user u ON u.tenant_id = m.tenant_id AND u.user_id = m.user_id
	WHERE m.tenant_id = $1 AND m.group_id = ANY ($2) AND u.user_id IS NULL ORDER BY 1 LIMIT 120`)

func (s *Service) unmirrored(ctx context.Context, tenant string, groups []string) ([]string, error) {
	rows, err := s.intake.Query(ctx, sqlUnmirrored, tenant, groups)
	if err != nil {
		return nil, unavailable(err)
	}
	users, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return users, unavailable(err)
}

func (e *staleDirectory) Error() string { return e.refusal.Error() }

// read does what needs no configuration beyond the limits: it reads the calls from the state, holds them against those given,
// passes the arguments through the gate and seals the state.
func (s *Service) read(ctx context.Context, tenant *rules.Tenant, key Key, in *Intake) (*draft, error) {
	if int64(len(in.State)) > tenant.Limits.StateBytes {
		return nil, refuse(CodeStateTooLarge, "the state has %d bytes; limits.state_bytes is %d", len(in.State), tenant.Limits.StateBytes)
	}
	if in.Format == "" {
		in.Format = runstate.FormatNone
	}
	given := make([]runstate.Call, len(in.Calls))
	for i, c := range in.Calls {
		given[i] = runstate.Call{ToolCallID: c.ToolCallID, Tool: c.Tool, Arguments: string(c.Arguments), AgentPath: c.AgentPath, CallPath: c.CallPath}
	}
	reading, err := runstate.ReadUntil(func() bool { return ctx.Err() != nil }, in.Format, in.State, given...)
	if ctx.Err() != nil { // nobody waits for it any more, and the search may be cut short
		return nil, unavailable(ctx.Err())
	}
	if err != nil {
		if deserializeFailure(err) {
			s.metrics.StateFailure()
		}
		return nil, s.stateRefusal(tenant, key, in, err)
	}
	if runstate.Known(in.Format) {
		if err := agree(in, reading, given); err != nil {
			return nil, err
		}
	}
	d := &draft{key: key, in: in, schema: reading.SchemaVersion, pauseID: newV7(), blobID: newV7()}
	if len(in.Calls) == 0 {
		return nil, refuse(CodeInvalidRequest, "calls is empty, and the format %q cannot be read for waiting calls: send them", in.Format)
	}
	if len(in.Calls) > maxCalls {
		return nil, refuse(CodeInvalidRequest, "one pause has at most %d calls", maxCalls)
	}
	seen := map[string]bool{}
	for i, c := range in.Calls {
		if len(c.Arguments) > maxArguments {
			r := refuse(CodeInvalidRequest, "the arguments have more than %d bytes", maxArguments)
			r.TooLarge = true
			r.Pointer = fmt.Sprintf("/calls/%d/arguments", i)
			return nil, r
		}
		for _, name := range append(append([]string{c.ToolCallID, c.Tool}, c.CallPath...), c.AgentPath...) {
			if len(name) > maxName || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
				r := refuse(CodeInvalidRequest, "ids, names and paths of a call are at most %d bytes of text without control characters", maxName)
				r.Pointer = fmt.Sprintf("/calls/%d", i)
				return nil, r
			}
		}
		if len(c.CallPath) > maxPath || len(c.AgentPath) > maxPath {
			return nil, refuse(CodeInvalidRequest, "call_path and agent_path have at most %d entries", maxPath)
		}
		identity := identity(c.CallPath, c.ToolCallID)
		if seen[identity] {
			r := refuse(CodeInvalidRequest, "two calls have the same call path and tool_call_id")
			r.Pointer = fmt.Sprintf("/calls/%d/tool_call_id", i)
			return nil, r
		}
		seen[identity] = true
		d.calls = append(d.calls, submitted{in: c, args: canon.Read(c.Arguments)})
	}
	d.intake = intakeKey(in, d.calls)
	if in.State != nil {
		d.blob, err = s.sealed(in.State, seal.StateAAD(key.Tenant, in.RunID, d.pauseID.String(), in.Format))
		if err != nil {
			return nil, err
		}
		d.stateSum = newDigest(in.State)
		s.metrics.StateBytes(len(in.State))
	}
	return d, nil
}

// deserializeFailure says that a state could not be read. One that was read and is refused for what it holds, a standing approval or a
// credential, or for what it says is waiting, is no such failure.
func deserializeFailure(err error) bool {
	var standing *runstate.StandingError
	var leaked *runstate.SecretError
	return !errors.As(err, &standing) && !errors.As(err, &leaked) && !errors.Is(err, runstate.ErrMismatch)
}

// agree takes the calls from the state; what the agent said beside them (reason, expiry, target version) is kept.
func agree(in *Intake, reading runstate.Reading, given []runstate.Call) error {
	calls := reading.Calls
	if in.CallsGiven {
		matched, err := runstate.Agree(reading.Calls, given)
		if err != nil {
			return refuse(CodeStateMismatch, "%s; leave calls out, or send exactly those that wait", outward(err))
		}
		calls = matched
	} else {
		in.Calls = make([]CallInput, len(calls))
	}
	for i, c := range calls {
		in.Calls[i].ToolCallID, in.Calls[i].Tool, in.Calls[i].Arguments = c.ToolCallID, c.Tool, []byte(c.Arguments)
		in.Calls[i].AgentPath, in.Calls[i].CallPath = c.AgentPath, c.CallPath
	}
	return nil
}

func (s *Service) stateRefusal(tenant *rules.Tenant, key Key, in *Intake, err error) error {
	var standing *runstate.StandingError
	var leaked *runstate.SecretError
	switch {
	case errors.As(err, &standing):
		r := refuse(CodeStandingApproval, "the state already decides a call; resume it from a paused state without decisions, and without `always approve`")
		r.Pointer = "/run/state/value" + standing.Pointer
		return r
	case errors.As(err, &leaked):
		r := refuse(CodeSecretInState, "the state holds what looks like a credential (%s); keep it out of the run's context and inject it when the run resumes", leaked.Rule)
		r.Pointer = "/run/state/value" + leaked.Pointer
		return r
	case errors.Is(err, runstate.ErrNotJSON):
		r := refuse(CodeInvalidRequest, "the state is not unambiguous JSON; send what the SDK serialised, as it is")
		r.Pointer = "/run/state/value"
		return r
	case errors.Is(err, runstate.ErrMismatch):
		return refuse(CodeStateMismatch, "%s", outward(err))
	case errors.Is(err, runstate.ErrVersion):
		if no := admitted(tenant, &draft{key: key, in: in}); no != nil && no.Suggest != "" {
			return no // the configuration is what is missing first
		}
		r := refuse(CodeVersionUnsupported, "%s", outward(err))
		r.Pointer = "/run/state/value"
		return r
	}
	return err
}

// outward is a reader's error as an agent is told it.
func outward(err error) string { return strings.TrimPrefix(err.Error(), "runstate: ") }

// identity is a call's name within its run: the call path and its own id.
func identity(path []string, id string) string {
	f := newFields("call")
	f.list(path)
	f.text(id)
	return string(f.h.Sum(nil))
}
