package approvals

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdpoint/holdpoint/approvals/rules"
	"github.com/holdpoint/holdpoint/approvals/runstate"
	"github.com/holdpoint/holdpoint/approvals/seal"
)

// The two resume messages of the contract.
const (
	RunResume  = "run.resume"
	RunBlocked = "run.blocked"
)

type message struct {
	Type      string      `json:"type"`
	Timestamp time.Time   `json:"timestamp"`
	Data      messageData `json:"data"`
}

type messageData struct {
	Run       messageRun      `json:"run"`
	State     *messageState   `json:"state,omitempty"`
	Decisions []messageAnswer `json:"decisions"`
}

type messageRun struct {
	ID              string `json:"id"`
	Pause           int    `json:"pause"`
	Agent           string `json:"agent"`
	AgentRevision   string `json:"agent_revision"`
	AppStateVersion string `json:"app_state_version"`
}

type messageState struct {
	Format        string  `json:"format"`
	SchemaVersion string  `json:"schema_version,omitempty"`
	Value         rawJSON `json:"value"`
}

type messageAnswer struct {
	ApprovalID      string   `json:"approval_id"`
	ToolCallID      string   `json:"tool_call_id"`
	CallPath        []string `json:"call_path"`
	AgentPath       []string `json:"agent_path"`
	Tool            string   `json:"tool"`
	Decision        string   `json:"decision"`
	Edited          bool     `json:"edited"`
	Arguments       string   `json:"arguments"`
	ArgumentsDigest string   `json:"arguments_digest"`
	OperationKey    string   `json:"operation_key"`
	ExecutedBy      *string  `json:"executed_by"`
	Outcome         string   `json:"outcome"`
	Result          rawJSON  `json:"result"`
	Error           *string  `json:"error"`
	ReasonCode      *string  `json:"reason_code"`
	Message         *string  `json:"message"`
	Votes           []Vote   `json:"votes"`
}

var (
	sqlMessagePause = statement(`SELECT p.tenant_id, p.agent, p.run_id, p.pause, p.agent_revision, p.app_state_version, b.format, b.sdk_version, b.schema_version, b.sealed, b.pause_id::text
		FROM run_pause p LEFT JOIN run_state_blob b ON b.blob_id = p.blob_id WHERE p.pause_id = $1`)
	sqlMessageCalls = statement(`SELECT ` + requestColumns + `, y.arguments, y.result, coalesce(l.error, ''),
			(SELECT json_agg(json_build_object('by', d.reviewer, 'at', d.decided_at, 'decision', d.decision, 'reason', d.reason) ORDER BY d.decided_at) FROM approval_decision d WHERE d.approval_id = r.approval_id)
		FROM run_call n JOIN approval_request r ON r.approval_id = n.approval_id JOIN approval_payload y ON y.approval_id = r.approval_id
		LEFT JOIN idempotency_ledger l ON l.lineage_id = r.lineage_id WHERE n.pause_id = $1 ORDER BY r.lineage_id`)
)

// paused is one pause as its message needs it.
type paused struct {
	tenant, agent, runID, revision, version string
	number                                  int
	format, sdk, schema, blobPause          *string
	sealed                                  []byte
	calls                                   []settledCall
	now                                     time.Time
}

type settledCall struct {
	req               *requestRow
	arguments, result []byte
	ledgerError       string
	votes             []Vote
}

func (s *Service) readPaused(ctx context.Context, pause uuid.UUID) (*paused, error) {
	p := &paused{}
	b := &pgx.Batch{}
	b.Queue(sqlMessagePause, pause).QueryRow(func(row pgx.Row) error {
		return row.Scan(&p.tenant, &p.agent, &p.runID, &p.number, &p.revision, &p.version, &p.format, &p.sdk, &p.schema, &p.sealed, &p.blobPause)
	})
	b.Queue(sqlMessageCalls, pause).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var c settledCall
			var err error
			if c.req, err = scanRequest(rows, &c.arguments, &c.result, &c.ledgerError, &c.votes); err != nil {
				return err
			}
			p.calls = append(p.calls, c)
		}
		return rows.Err()
	})
	b.Queue(sqlClock).QueryRow(func(row pgx.Row) error { return row.Scan(&p.now) })
	return p, unavailable(s.work.SendBatch(ctx, b).Close())
}

// build makes the pause's message from its rows. Before it tells the agent to run anything itself, it holds those calls' arguments
// against the state that will resume; one that differs is revoked and the state withheld.
func (s *Service) build(ctx context.Context, cfg *rules.Tenant, pause uuid.UUID) (kind string, body []byte, err error) {
	p, err := s.readPaused(ctx, pause)
	if err != nil {
		return "", nil, err
	}
	var state []byte
	if p.sealed != nil {
		state, err = s.opened(p.sealed, seal.StateAAD(p.tenant, p.runID, *p.blobPause, *p.format))
		if err != nil {
			s.metrics.StateFailure()
			return "", nil, fmt.Errorf("%w: state of pause %s", ErrCorrupt, pause)
		}
		changed, err := s.disown(ctx, p, state)
		if err != nil {
			return "", nil, err
		}
		if changed {
			if p, err = s.readPaused(ctx, pause); err != nil {
				return "", nil, err
			}
		}
	}
	m := message{Type: RunResume, Timestamp: p.now, Data: messageData{
		Run:       messageRun{ID: p.runID, Pause: p.number, Agent: p.agent, AgentRevision: p.revision, AppStateVersion: p.version},
		Decisions: []messageAnswer{},
	}}
	for _, c := range p.calls {
		a, err := s.answerOf(c)
		if err != nil {
			return "", nil, err
		}
		m.Data.Decisions = append(m.Data.Decisions, a)
	}
	if p.withheld(cfg) {
		m.Type = RunBlocked
	} else if state != nil {
		m.Data.State = &messageState{Format: *p.format, SchemaVersion: *p.schema, Value: state}
	}
	body, err = marshal(m)
	return m.Type, body, err
}

// disown revokes the agent-run calls whose approved arguments the state does not propose (an edited child's root is compared).
func (s *Service) disown(ctx context.Context, p *paused, state []byte) (changed bool, err error) {
	for _, c := range p.calls {
		if !runstate.Known(*p.format) && !runstate.Known(c.req.sdkFormat) {
			continue // neither state can be read
		}
		if c.req.executor != string(rules.AgentExecutor) || c.req.status != Approved {
			continue
		}
		_, done, err := s.transition(ctx, s.work, c.req.id, want{blob: true}, func(f *facts) (*swap, error) {
			if f.req.status != Approved || s.stateAgrees(f) {
				return nil, nil
			}
			w := f.req.moves(Revoked, "approval.revoked", System, SurfaceSystem)
			w.reason, w.revoked, w.settle, w.outbox = ReasonDigestMismatch, System, true, []string{OutboxCard}
			return w, nil
		})
		if err != nil {
			return changed, err
		}
		changed = changed || done
	}
	return changed, nil
}

// withheld says whether the state stays here (contract, Resume). Every outcome is told either way.
func (p *paused) withheld(cfg *rules.Tenant) bool {
	var version *rules.Version
	if a := cfg.Agents[p.agent]; a != nil {
		version, _ = a.Version(p.version)
	}
	if version == nil {
		return true // I12: nothing is known to be able to go on with it
	}
	// The state itself is held against the registry as it is now, whichever of its calls it came with: a carried-over call's row tells of
	// the state that it was first proposed with.
	if p.format != nil && version.AcceptsState(*p.format, *p.sdk, *p.schema) != nil {
		return true
	}
	ended, effect := false, false
	for _, c := range p.calls {
		switch {
		case c.req.status == MigrationRequired || Reason(c.req.reason) == ReasonDigestMismatch:
			return true
		case c.req.status == Expired || c.req.status == Revoked:
			ended = true
		case c.req.status == Completed:
			effect = true
		}
	}
	return ended && !effect && version.Blocked == rules.Withhold
}

// answerOf is one call of a message.
func (s *Service) answerOf(c settledCall) (messageAnswer, error) {
	r := c.req
	_, args, err := s.openArguments(r.tenant, r.id, c.arguments)
	if err != nil {
		return messageAnswer{}, err
	}
	a := messageAnswer{
		ApprovalID: r.id.String(), ToolCallID: r.toolCallID, CallPath: r.callPath, AgentPath: r.agentPath, Tool: r.tool, Decision: string(Approve),
		Edited: len(r.editors) > 0, Arguments: strings.ToValidUTF8(string(args.Raw), "\uFFFD"), ArgumentsDigest: r.argumentsDigest, OperationKey: r.operationKey,
		Outcome: "not_run", Result: rawJSON("null"), ReasonCode: text(r.reason), Message: text(r.message), Votes: c.votes,
	}
	if a.Votes == nil {
		a.Votes = []Vote{}
	}
	if r.executor != "none" {
		a.ExecutedBy = text(r.executor)
	}
	if c.result != nil {
		if a.Result, err = s.opened(c.result, seal.ResultAAD(r.tenant, r.id.String())); err != nil {
			return messageAnswer{}, fmt.Errorf("%w: result of %s", ErrCorrupt, r.id)
		}
	}
	switch r.status {
	case Completed:
		a.Outcome = "succeeded"
	case Responded:
		a.Decision, a.Outcome, a.ExecutedBy = string(Respond), "succeeded", nil
	case Failed:
		a.Outcome, a.Error = "failed", text(c.ledgerError)
	case Approved, Executing, Uncertain: // only the agent's own tools are settled before their end
		a.Outcome = "pending_agent"
	default:
		a.Decision, a.ExecutedBy = string(Reject), nil
		if a.Message == nil {
			a.Message = text(endWords[r.status])
		}
	}
	if a.Edited && a.Decision == string(Approve) {
		a.Message = text("A reviewer changed the arguments before approving:\n" + r.editDiff)
	}
	return a, nil
}

// endWords are what the model is told where no person said it.
var endWords = map[Status]string{
	Rejected:          "The call was rejected. It was not executed.",
	Expired:           "Nobody decided in time, or it could not run in time. The call was not executed.",
	Revoked:           "The approval was withdrawn. The call was not executed.",
	MigrationRequired: "The agent or the tool changed while the call waited. It was not executed; propose it again.",
}
