package approvals

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// What happens in the stories: proposals, clicks, claims, outcomes.

// call makes one call; arguments are formatted.
func call(id, tool, arguments string, args ...any) CallInput {
	return CallInput{ToolCallID: id, Tool: tool, Arguments: fmt.Appendf(nil, arguments, args...)}
}

const (
	production = `{"release":"2026.07.24","environment":"production","token":"s3cr3t-value"}`
	staging    = `{"release":"2026.07.24","environment":"staging"}`
	bigRefund  = `{"order":"ORD-18472","amount":742.18,"currency":"USD"}`
	refund5    = `{"order":"ORD-18472","amount":5.00,"currency":"USD"}`
	mail       = `{"to":"a@example.com"}`
	flight     = `{"flight":"LH400"}`
	script     = `{"name":"nightly"}`
	question   = `{"question":"Which region?"}`
)

// intake is one paused run of the release agent, without a state.
func (w *world) intake(calls ...CallInput) Intake {
	w.runs++
	return Intake{
		RunID: fmt.Sprintf("run_%d", w.runs), AgentRevision: "git:1f0c2d9", AppStateVersion: "release-agent/v1",
		Requester: "slack:" + req, Format: "none", Calls: calls, CallsGiven: true,
	}
}

func (w *world) submit(in Intake) Pause {
	w.t.Helper()
	p, err := w.s.Submit(w.ctx, w.key, in)
	w.must(err)
	return p
}

// propose submits one call of a run of its own.
func (w *world) propose(tool, arguments string) View {
	w.t.Helper()
	return w.submit(w.intake(CallInput{ToolCallID: "call_1", Tool: tool, Arguments: []byte(arguments)})).Approvals[0]
}

func (w *world) proposeAs(key Key, version, tool, arguments string) View {
	w.t.Helper()
	in := w.intake(CallInput{ToolCallID: "call_1", Tool: tool, Arguments: []byte(arguments)})
	in.AppStateVersion = version
	p, err := w.s.Submit(w.ctx, key, in)
	w.must(err)
	return p.Approvals[0]
}

// post stands in for the card job: the card is in Slack.
func (w *world) post(id ID) Card {
	w.t.Helper()
	f, err := w.s.CardFacts(w.ctx, id)
	w.must(err)
	if f.Card.MessageTS == "" {
		w.must(w.s.StartPost(w.ctx, id))
		w.must(w.s.SavePost(w.ctx, id, f.Card.Channel, "1753350000.000100", f.Version, false, ""))
		f.Card.MessageTS = "1753350000.000100"
	}
	return f.Card
}

// click is a person's decision on the card as it is now.
// shown paints a card.
func (w *world) shown(id ID) {
	w.t.Helper()
	f, err := w.s.CardFacts(w.ctx, id)
	w.must(err)
	w.must(w.s.SaveShown(w.ctx, id, f.Card.ShownVersion, f.Version))
}

func (w *world) click(id ID, user string, verb Verb, change ...func(*DecideRequest)) DecideRequest {
	w.t.Helper()
	c, v := w.post(id), w.row(id)
	b, err := ParseButton(EncodeButton(c.MACKey, c.Channel, id, v.Digest, v.Version))
	w.must(err)
	rq := DecideRequest{
		DecisionID: NewDecisionID(), Button: b, Channel: c.Channel, MessageTS: c.MessageTS, Verb: verb,
		By: Reviewer{UserID: user, TeamID: team}, Surface: SurfaceCard, Reason: "because",
	}
	for _, f := range change {
		f(&rq)
	}
	return rq
}

func with(arguments string) func(*DecideRequest) {
	return func(rq *DecideRequest) { rq.Arguments = []byte(arguments) }
}

// decide clicks, and the decision must count.
func (w *world) decide(id ID, user string, verb Verb, change ...func(*DecideRequest)) Ruling {
	w.t.Helper()
	r, err := w.s.Decide(w.ctx, w.click(id, user, verb, change...))
	w.must(err)
	if !r.Applied || r.Denial != nil {
		w.t.Fatalf("%s by %s of %s did not count: %+v", verb, user, id, r.Denial)
	}
	return r
}

// denied clicks, and the decision must not count.
func (w *world) denied(id ID, user string, verb Verb, kind DenialKind, change ...func(*DecideRequest)) Ruling {
	w.t.Helper()
	before := w.row(id)
	r, err := w.s.Decide(w.ctx, w.click(id, user, verb, change...))
	w.must(err)
	if r.Applied || r.Denial == nil || r.Denial.Kind != kind {
		w.t.Fatalf("%s by %s of %s: applied %v, %+v; want %q", verb, user, id, r.Applied, r.Denial, kind)
	}
	if after := w.row(id); after.Version != before.Version || after.Status != before.Status || len(after.Votes) != len(before.Votes) {
		w.t.Fatalf("I8: a refused click changed %s from v%d %s to v%d %s", id, before.Version, before.Status, after.Version, after.Status)
	}
	return r
}

// approve brings a call to approved with the people that its rule asks for.
func (w *world) approve(id ID) View {
	w.t.Helper()
	v := w.row(id)
	by := []string{alice}
	if v.Rule == "refunds" {
		by = []string{dave, erin}
	}
	for _, user := range by[:v.Quorum] {
		w.decide(id, user, Approve)
	}
	return w.want(id, Approved, "")
}

func (w *world) claimAny(id ID) Claim {
	w.t.Helper()
	c, err := w.s.Claim(w.ctx, id, ClaimOptions{Holder: "worker-1"})
	w.must(err)
	return c
}

// claim must be allowed to run.
func (w *world) claim(id ID) Claim {
	w.t.Helper()
	c := w.claimAny(id)
	if !c.Go {
		w.t.Fatalf("claim of %s: %s; want to run", id, c)
	}
	return c
}

// refused must not be allowed to run, for a reason.
func (w *world) refused(id ID, why string) {
	w.t.Helper()
	if c := w.claimAny(id); c.Go || c.LookupFirst || c.Why != why {
		w.t.Fatalf("claim of %s: %s; want %q", id, c, why)
	}
}

func (w *world) record(c Claim, class OutcomeClass) View {
	w.t.Helper()
	v, err := w.s.Record(w.ctx, c.Lease, Outcome{Class: class, Output: json.RawMessage(`{"ok":true}`), Receipt: "ok", Error: "said so"})
	w.must(err)
	return v
}

// done brings a worker's call to its successful end.
func (w *world) done(id ID) {
	w.t.Helper()
	w.record(w.claim(id), OutcomeSucceeded)
	w.want(id, Completed, "")
}

// dies is a worker that claimed and never came back: its lease is over.
func (w *world) dies(id ID) Claim {
	w.t.Helper()
	c := w.claim(id)
	w.expireLease(id)
	return c
}

func (w *world) expireLease(id ID) {
	w.t.Helper()
	w.exec(`UPDATE idempotency_ledger SET lease_expires_at = clock_timestamp() - interval '1 second' WHERE approval_id = $1`, id)
	w.exec(`UPDATE approval_open SET due_at = clock_timestamp() - interval '1 second' WHERE approval_id = $1`, id)
}

// overdue puts the deadline in force into the past.
func (w *world) overdue(id ID) {
	w.t.Helper()
	w.exec(`UPDATE approval_request SET expires_at = clock_timestamp() - interval '1 second' WHERE approval_id = $1`, id)
	w.exec(`UPDATE approval_open SET due_at = clock_timestamp() - interval '1 second' WHERE approval_id = $1`, id)
}

// due makes somebody look now.
func (w *world) due(id ID) {
	w.t.Helper()
	w.exec(`UPDATE approval_open SET due_at = clock_timestamp() - interval '1 second' WHERE approval_id = $1`, id)
}

func (w *world) sweep() SweepReport {
	w.t.Helper()
	r, err := w.s.Sweep(w.ctx, 200)
	w.must(err)
	return r
}

func (w *world) agentClaim(id ID, attempt string) AgentClaimAnswer {
	w.t.Helper()
	a, err := w.s.ClaimForAgent(w.ctx, w.key, id, AgentClaim{AttemptID: attempt, AgentRevision: "git:1f0c2d9"})
	w.must(err)
	return a
}

func (w *world) agentRefused(id ID, code Code) Refusal {
	w.t.Helper()
	_, err := w.s.ClaimForAgent(w.ctx, w.key, id, AgentClaim{AttemptID: "another"})
	return w.refusal(err, code)
}

func (w *world) pauseOf(id ID) uuid.UUID {
	w.t.Helper()
	return uuid.MustParse(w.row(id).PauseID)
}

// told is the message of a pause, decoded; ok is false when nothing is to be sent.
func (w *world) told(pause uuid.UUID) (m sent, ok bool) {
	w.t.Helper()
	d, err := w.s.ResumeFor(w.ctx, pause)
	w.must(err)
	if d.Body == nil {
		return m, false
	}
	w.must(json.Unmarshal(d.Body, &m))
	m.raw, m.delivery = d.Body, d
	return m, true
}

// sent is a resume message as an agent reads it.
type sent struct {
	Type string `json:"type"`
	Data struct {
		Run struct {
			ID    string `json:"id"`
			Pause int    `json:"pause"`
		} `json:"run"`
		State     *struct{ Value json.RawMessage } `json:"state"`
		Decisions []struct {
			ApprovalID string          `json:"approval_id"`
			ToolCallID string          `json:"tool_call_id"`
			Decision   string          `json:"decision"`
			Edited     bool            `json:"edited"`
			Arguments  string          `json:"arguments"`
			ExecutedBy *string         `json:"executed_by"`
			Outcome    string          `json:"outcome"`
			Result     json.RawMessage `json:"result"`
			Error      *string         `json:"error"`
			ReasonCode *string         `json:"reason_code"`
			Message    *string         `json:"message"`
			Votes      []Vote          `json:"votes"`
		} `json:"decisions"`
	} `json:"data"`
	raw      []byte
	delivery Delivery
}

// outbox counts the rows of a kind for a subject.
func (w *world) outbox(kind string, subject uuid.UUID) int {
	w.t.Helper()
	return one[int](w, `SELECT count(*) FROM outbox WHERE kind = $1 AND subject_id = $2`, kind, subject)
}

// drain relays everything that is due and gives it.
func (w *world) drain() []OutboxItem {
	w.t.Helper()
	var all []OutboxItem
	for more := true; more; {
		var err error
		_, more, err = w.s.Relay(w.ctx, 100, func(_ context.Context, items []OutboxItem) (ids []uuid.UUID) {
			for _, i := range items {
				ids = append(ids, i.ID)
			}
			all = append(all, items...)
			return ids
		})
		w.must(err)
	}
	return all
}

// until waits for a condition of another session; the deadline only ends a test that hangs.
func (w *world) until(what string, cond func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !cond(); {
		if time.Now().After(deadline) {
			w.t.Fatalf("never: %s", what)
		}
	}
}

// waiting says how many sessions of this database wait for a lock.
func (w *world) waiting() int {
	return one[int](w, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`)
}
