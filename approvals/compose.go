package approvals

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdpoint/holdpoint/approvals/rules"
)

// composed is all that one intake writes.
type composed struct {
	d       *draft
	pauseID uuid.UUID
	number  int
	open    int // calls not settled yet
	old     uuid.UUID
	locked  []uuid.UUID // the old pause's calls
	fresh   []*insertion
	carried []carry
	decided []*swap // rules that decide by themselves, and what is superseded
	results []swapped
	resume  uuid.UUID
	last    *time.Time // until when calls of the pause wait for a person; nil when none does
}

// carry is a call that goes on unchanged in the new pause.
type carry struct {
	lineage, current ID
	path             []string
	callID           string
}

// compose judges the intake and lays out its writes.
func (s *Service) compose(f *intakeFacts, d *draft, plan []prepared) (*composed, error) {
	w := &composed{d: d, pauseID: d.pauseID, number: f.last + 1, resume: newV7()}
	// What the run has waiting is carried over or superseded: a key does neither to calls of tools that it does not cover.
	for _, u := range f.untold {
		if u.named && !d.key.covers(u.req.tool) {
			return nil, refuse(CodeToolNotAllowed, "the run has a call waiting that this key does not cover; send the intake with a key that covers all of the run's tools")
		}
	}
	kept, err := w.carryOver(f, d)
	if err != nil {
		return nil, err
	}
	// A carried call gets the new state: that must be registered like any other (I12). A version that is drained goes on.
	if no := admitted(f.tenant, d); no != nil && no.Code != CodeIntakeClosed {
		return nil, no
	}
	fresh := len(d.calls) - len(kept)
	still := 0
	for _, u := range f.untold {
		if u.named && !u.req.status.Terminal() {
			still++
		}
	}
	if f.open-still+w.open+fresh > f.tenant.Limits.OpenPerRun {
		return nil, refuse(CodeTooManyOpen, "the run would have more than %d calls waiting (limits.open_per_run); wait for decisions first", f.tenant.Limits.OpenPerRun)
	}
	type own struct {
		call *insertion
		rule *rules.Rule
	}
	var byRule []own
	replaces := f.replaces(d, plan, kept)
	for i := range d.calls {
		if kept[i] {
			continue
		}
		if plan[i].refusal != nil {
			return nil, plan[i].refusal
		}
		r, err := s.cover(f, d, i, plan[i])
		if err != nil {
			return nil, err
		}
		n, err := s.newApproval(f, d, i, plan[i], r, replaces[i])
		if err != nil {
			return nil, err
		}
		w.fresh = append(w.fresh, n)
		w.open++
		if r.match.Rule.Do != rules.Ask {
			byRule = append(byRule, own{n, r.match.Rule})
			continue
		}
		n.outbox = []string{OutboxCard}
		w.waits(n.row.decideBy)
	}
	for _, c := range byRule {
		w.decided = append(w.decided, f.byRule(c.call, c.rule, w.last))
	}
	return w, nil
}

// replaces finds, for each fresh call, the ended one that it proposes again: the same call of the run, else the same tool on the same
// target. An ended one is replaced once.
func (f *intakeFacts) replaces(d *draft, plan []prepared, kept map[int]bool) map[int]ID {
	out := map[int]ID{}
	left := f.replaced
	take := func(same func(ended, CallInput, prepared) bool) {
		for i := range d.calls {
			if kept[i] || plan[i].refusal != nil || !out[i].IsZero() {
				continue
			}
			if at := slices.IndexFunc(left, func(e ended) bool { return same(e, d.calls[i].in, plan[i]) }); at >= 0 {
				out[i] = left[at].id
				left = slices.Delete(left, at, at+1)
			}
		}
	}
	take(func(e ended, c CallInput, p prepared) bool {
		return e.callID == c.ToolCallID && slices.Equal(e.path, list(c.CallPath)) && e.tool == p.tool.Name
	})
	take(func(e ended, _ CallInput, p prepared) bool { return e.tool == p.tool.Name && e.target == p.target })
	return out
}

// waits notes a call of the pause that waits for a person until a time.
func (w *composed) waits(until time.Time) {
	if w.last == nil || until.After(*w.last) {
		w.last = &until
	}
}

// newApproval lays out one row with its digest.
func (s *Service) newApproval(f *intakeFacts, d *draft, i int, p prepared, r ruled, replaces ID) (*insertion, error) {
	c, rule, id := &d.calls[i], r.match.Rule, NewID()
	row := requestRow{
		id: id, lineageID: id, pauseID: d.pauseID, cardID: uuid.UUID(id), tenant: d.key.Tenant, agent: d.key.Agent, apiKeyID: d.key.ID, runID: d.in.RunID,
		callPath: list(c.in.CallPath), agentPath: list(c.in.AgentPath), toolCallID: c.in.ToolCallID, tool: p.tool.Name, toolKind: string(p.tool.Kind),
		toolRevision: p.tool.Revision(), executor: executorOf(p.tool), argumentsDigest: c.args.Digest, unreadable: c.args.Unreadable,
		operationKey: operationKey(d.key.Tenant, id, p.tool.Name, p.target), target: p.target, targetVersion: c.in.TargetVersion,
		rule: rule.Name, ruleWhy: r.match.Why, configRevision: f.revision, requester: d.in.Requester, appStateVersion: d.in.AppStateVersion,
		sdkFormat: d.in.Format, sdkVersion: d.in.SDKVersion, sdkSchema: d.schema, agentRevision: d.in.AgentRevision, snapshot: p.snapshot,
		createdAt: f.now, decideBy: r.decide, expiresAt: r.decide, executeWithin: rule.ExecuteWithin, replacesID: replaces, status: Pending, version: 1,
		scope: scopeOf(rule, p.tool.Kind, c.args.Readable()),
	}
	salt := newSalt()
	row.digest = proposalDigest(salt, &row, c.args.Digest)
	payload, err := s.sealArguments(d.key.Tenant, id, salt, c.args.Raw)
	if err != nil {
		return nil, err
	}
	channel := rule.Channel
	if channel == "" {
		channel = f.tenant.Slack.Channel
	}
	return &insertion{
		row: row, payload: payload, channel: channel, macKey: newMACKey(), actor: AgentActor(d.key.Agent), surface: SurfaceAPI,
		detail: map[string]any{"rule": rule.Name, "revision": f.revision, "digest": shortDigest(row.digest), "key": d.key.ID, "bytes": len(c.args.Raw)},
	}, nil
}

// executorOf says who runs a tool, as the row keeps it.
func executorOf(t *rules.Tool) string {
	if e := t.Executor(); e != rules.NoExecutor {
		return string(e)
	}
	return "none"
}

// scopeOf keeps what the rule asked for when the request was made.
func scopeOf(rule *rules.Rule, kind rules.Kind, readable bool) Scope {
	sc := Scope{
		Users: rule.Reviewers.Users, Groups: rule.Reviewers.Groups, Quorum: max(rule.Quorum, 1), ExcludeRequester: rule.ExcludeRequester,
		ExcludeEditor: rule.ExcludeEditor, Risk: string(rule.Risk), Auto: rule.Do != rules.Ask, SecondPerson: rule.SecondPerson, Decisions: []string{},
	}
	for _, v := range rule.DecisionsFor(kind) {
		sc.Decisions = append(sc.Decisions, string(v))
	}
	if !readable {
		sc.Decisions = []string{string(Reject)}
	}
	return sc
}

// byRule is the decision of a rule that asks nobody: in the intake's own transaction, with a vote of its own and no card. siblings
// is until when other calls of the pause may wait for a person.
func (f *intakeFacts) byRule(n *insertion, rule *rules.Rule, siblings *time.Time) *swap {
	r := n.row
	by := RuleActor(rule.Name)
	w := r.moves(Rejected, "decision.rejected", by, SurfaceSystem)
	w.decided, w.config = by, f.revision
	w.vote = &voteRow{id: newV7(), by: by, verb: Reject, authorised: map[string]any{"via": "rule", "revision": f.revision}}
	w.detail = map[string]any{"rule": rule.Name, "revision": f.revision}
	if rule.Do == rules.Deny {
		w.message, w.settle = rule.Message, true
		return w
	}
	w.kind, w.vote.verb, w.count = "decision.approved", Approve, 1
	own := facts{req: &r, now: f.now, siblings: siblings}
	own.approved(w, rule)
	return w
}

// carryOver decides what becomes of the calls of a pause that was not told yet (contract, Identity): unchanged ones go on, the rest
// is superseded, unless an effect of the rest has begun. kept says which calls of the intake need no new approval.
func (w *composed) carryOver(f *intakeFacts, d *draft) (kept map[int]bool, err error) {
	kept = map[int]bool{}
	if len(f.untold) == 0 {
		return kept, nil
	}
	w.old = f.untold[0].req.pauseID
	for _, u := range f.untold {
		if u.named {
			w.locked = append(w.locked, uuid.UUID(u.req.id))
		}
	}
	roots := map[ID]*requestRow{}
	for _, u := range f.untold {
		roots[u.req.id] = u.req
	}
	for _, u := range f.untold {
		if !u.named {
			continue
		}
		r, root := u.req, roots[u.req.lineageID]
		i := slices.IndexFunc(d.calls, func(c submitted) bool {
			return c.in.ToolCallID == r.toolCallID && slices.Equal(list(c.in.CallPath), r.callPath)
		})
		if i >= 0 {
			c := &d.calls[i]
			same := root != nil && r.status != MigrationRequired && c.in.Tool == root.tool && c.args.Digest == root.argumentsDigest && c.in.TargetVersion == root.targetVersion &&
				d.in.Requester == root.requester && d.in.AppStateVersion == root.appStateVersion
			if same {
				kept[i] = true
				w.carried = append(w.carried, carry{lineage: r.lineageID, current: r.id, path: r.callPath, callID: r.toolCallID})
				if !r.settled {
					w.open++
				}
				if r.status == Pending {
					w.waits(r.decideBy)
				}
				continue
			}
			if !r.status.Terminal() {
				return nil, refuse(CodeDifferentArguments, "the call %q waits already with other arguments as %s; withdraw that one first, or give the new call an id of its own", r.toolCallID, r.id)
			}
		}
		switch {
		case r.status == Executing || r.status == Uncertain || r.status == Completed:
			return nil, refuse(CodeConflict, "the effect of %s has begun; wait until the run is told of it", r.id)
		case !r.status.Terminal():
			w.decided = append(w.decided, f.superseded(u))
		}
	}
	return kept, nil
}

func (f *intakeFacts) superseded(u untold) *swap {
	w := u.req.moves(Revoked, "approval.revoked", System, SurfaceSystem)
	w.reason, w.revoked, w.outbox = ReasonSuperseded, System, []string{OutboxCard}
	own := facts{req: u.req, ledger: u.ledger}
	w.ledger = own.giveUp(ReasonSuperseded)
	return w
}

var (
	sqlInsertPause = statement(`INSERT INTO run_pause (pause_id, tenant_id, agent, run_id, pause, intake_key, blob_id, app_state_version, agent_revision, open_calls, closed_at, next_try_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9,
			CASE WHEN $11::uuid IS NULL OR EXISTS (SELECT 1 FROM run_pause o WHERE o.pause_id = $11 AND o.superseded_at IS NOT NULL) THEN $10::integer END,
			CASE WHEN $10::integer = 0 THEN clock_timestamp() END, CASE WHEN $10::integer = 0 THEN clock_timestamp() END)`)
	sqlInsertBlob = statement(`INSERT INTO run_state_blob (blob_id, tenant_id, pause_id, format, schema_version, sdk_version, sealed, digest, bytes)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`)
	// Only while it has not been told, and while its calls are those that were locked: a delivery, or an edit whose child the locking
	// statement could not see, makes the intake start over.
	sqlSupersedePause = statement(`UPDATE run_pause SET superseded_at = clock_timestamp(), next_try_at = NULL WHERE pause_id = $1 AND told_at IS NULL
		AND (sending_until IS NULL OR sending_until < clock_timestamp()) -- it may be on its way right now: the intake starts over
		AND NOT EXISTS (SELECT 1 FROM run_call n WHERE n.pause_id = $1 AND n.approval_id <> ALL ($2::uuid[]))`)
	sqlCarry = statement(`WITH moved AS (UPDATE approval_request r SET pause_id = $1 WHERE r.lineage_id = $2 AND r.pause_id = $3 RETURNING r.approval_id)
		INSERT INTO run_call (tenant_id, pause_id, call_path, tool_call_id, approval_id) SELECT $4::text, $1, $5::text[], $6::text, $7::uuid`)
	sqlOutbox = statement(`INSERT INTO outbox (outbox_id, kind, subject_id) VALUES ($1, $2, $3)`)
)

// queue lays the writes out in one transaction. When the old pause was told meanwhile, the new pause's open_calls is NULL, which the
// table refuses: the whole is rolled back and the intake starts over.
func (w *composed) queue(b *pgx.Batch) error {
	d, in := w.d, w.d.in
	var blob, old *uuid.UUID
	if d.blob != nil {
		blob = &d.blobID
	}
	if w.old != (uuid.UUID{}) {
		old = &w.old
		b.Queue(sqlSupersedePause, w.old, w.locked)
	}
	b.Queue(sqlInsertPause, w.pauseID, d.key.Tenant, d.key.Agent, in.RunID, w.number, d.intake, blob, in.AppStateVersion, in.AgentRevision, w.open, old)
	if blob != nil {
		b.Queue(sqlInsertBlob, d.blobID, d.key.Tenant, w.pauseID, in.Format, d.schema, in.SDKVersion, d.blob, d.stateSum, len(in.State))
	}
	for _, c := range w.carried {
		b.Queue(sqlCarry, w.pauseID, c.lineage, w.old, d.key.Tenant, c.path, c.callID, c.current)
	}
	for _, n := range w.fresh {
		n.queue(b)
	}
	w.results = make([]swapped, len(w.decided))
	for i, t := range w.decided {
		if err := t.queue(b, &w.results[i]); err != nil {
			return err
		}
	}
	if w.open == 0 {
		b.Queue(sqlOutbox, w.resume, OutboxResume, w.pauseID)
	}
	return nil
}

func (w *composed) wake(ctx context.Context, s *Service, now time.Time) {
	for _, n := range w.fresh {
		s.requested(ctx, n)
		if len(n.items) > 0 {
			s.woke(n.items)
		}
	}
	for i, t := range w.decided {
		s.wake(t, w.results[i])
		if w.results[i].hit {
			s.account(ctx, t, now)
		}
	}
	if w.open == 0 {
		s.woke([]OutboxItem{{ID: w.resume, Kind: OutboxResume, Subject: w.pauseID}})
	}
}

// ringAgain is how long an outbox row may take before the sweeper rings in its stead.
const ringAgain = 20 * time.Second
