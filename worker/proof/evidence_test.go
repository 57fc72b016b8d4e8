package proof

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/approvals/invariants"
	"github.com/holdpoint/holdpoint/bot"
	"github.com/holdpoint/holdpoint/bot/slacksim"
	"github.com/holdpoint/holdpoint/templates"
)

// line is one of the sink's log (its own type there: the two share no code).
type line struct {
	At      time.Time
	Kind    string
	Class   string
	Key     string
	Op      string
	Step    string
	Body    string
	Found   bool
	Headers map[string]string
}

// row is an approval as the checker reads it: with its operation, its card, its pause, and the marks of its audit trail.
type row struct {
	ID, PauseID                            approvals.ID
	Run, Tool, Status, Key, Digest         string
	Executor, Reason, CardTS, Ledger, Card string
	Auto, Settled, Late, Slow, Doubted     bool
	Overdue                                bool
	Version, Shown, Claims, Lookups        int64
	Epoch                                  int64
	ApprovedAt, FirstClaim, LastClaim      *time.Time
	EndedAt, ClosedAt, ToldAt, Superseded  *time.Time
}

// op is the call's name, which its run carries.
func (r row) op() string {
	name, _, _ := strings.Cut(strings.TrimPrefix(r.Run, "run-"), "~")
	return name
}

// $1: how long a lease is. late: L2 was missed. slow: L3 or L4 was.
const sqlEvidence = `
SELECT r.approval_id, r.pause_id, r.run_id, r.tool_name, r.status, r.operation_key, r.arguments_digest,
	r.executor, coalesce(r.reason_code, ''), coalesce(c.message_ts, ''), coalesce(l.state, ''), r.card_id::text,
	coalesce((r.operator_scope ->> 'auto')::boolean, false), r.settled,
	coalesce(r.reason_code = 'decide_expired' AND r.ended_at > r.decide_by + interval '30 seconds', false),
	coalesce(r.executor = 'worker' AND a.first_claim > a.approved_at + interval '60 seconds' AND NOT a.held, false) OR coalesce(a.longest > $1::interval + interval '60 seconds', false),
	coalesce(a.doubted, false), coalesce(a.last_sent >= r.expires_at, false),
	r.version, c.shown_version, coalesce(a.claims, 0), coalesce(a.lookups, 0), coalesce(l.epoch, 0),
	a.approved_at, a.first_claim, a.last_claim, r.ended_at, p.closed_at, p.told_at, p.superseded_at
FROM approval_request r JOIN run_pause p ON p.pause_id = r.pause_id LEFT JOIN card c ON c.card_id = r.card_id
LEFT JOIN idempotency_ledger l ON l.approval_id = r.approval_id
LEFT JOIN LATERAL (
	SELECT count(*) FILTER (WHERE claim AND NOT look) AS claims, count(*) FILTER (WHERE claim AND look) AS lookups,
		min(at) FILTER (WHERE to_status = 'approved' AND from_status = 'pending') AS approved_at,
		min(at) FILTER (WHERE claim) AS first_claim, max(at) FILTER (WHERE claim) AS last_claim, max(at) FILTER (WHERE claim AND NOT look) AS last_sent,
		max(next - at) FILTER (WHERE claim) AS longest, bool_or(kind = 'execution.held') AS held, bool_or(to_status = 'uncertain') AS doubted
	FROM (SELECT e.*, e.kind = 'execution.claimed' AS claim, coalesce((e.detail ->> 'lookup')::boolean, false) AS look,
			lead(e.at) OVER (ORDER BY e.event_id) AS next
		FROM audit_event e WHERE e.approval_id = r.approval_id) e) a ON true
ORDER BY r.approval_id`

// evidence is what the checker judges: the database as it is now, and what those outside of the product saw.
type evidence struct {
	rows       []row
	log        []line
	messages   map[string]slacksim.Message // by timestamp
	threads    map[string]int              // replies by root, those that mention an admin
	copies     map[string]int              // messages by card
	painted    map[string]string           // what a message ought to be: its row's card, rendered anew
	violations []approvals.Violation
	queries    []string // what the invariants' queries found
	broken     string   // of the audit chain
	said       map[string]string
	repeats    bool
}

// gather reads everything.
func (w *world) gather() evidence {
	w.t.Helper()
	e := evidence{log: w.sunk(), messages: map[string]slacksim.Message{}, threads: map[string]int{}, copies: map[string]int{}, painted: map[string]string{}, said: map[string]string{}, repeats: w.repeats}
	var err error
	e.queries, err = invariants.Broken(w.ctx, w.db)
	w.must(err)
	rows, err := w.db.Query(w.ctx, sqlEvidence, w.lease)
	w.must(err)
	e.rows, err = pgx.CollectRows(rows, pgx.RowToStructByPos[row])
	w.must(err)
	for _, r := range e.rows {
		if r.CardTS == "" || r.Status == string(approvals.Edited) {
			continue // an edited one's card is its child's now
		}
		facts, err := w.core.CardFacts(w.ctx, r.ID)
		w.must(err)
		if !facts.Card.Plain {
			e.painted[r.CardTS] = blocks(w.t, templates.Render(bot.CardOf(facts)).Blocks)
		}
	}
	e.violations, err = w.core.Violations(w.ctx, 0)
	w.must(err)
	for {
		n, err := w.core.SealAudit(w.ctx, 1000)
		w.must(err)
		if n == 0 {
			break
		}
	}
	report, err := w.core.VerifyAudit(w.ctx, "acme")
	w.must(err)
	e.broken = report.Bad
	for _, m := range w.sim.Messages(room) {
		if m.ThreadTS != "" && m.ThreadTS != m.TS {
			if strings.Contains(m.Text+string(m.Blocks), "U0ROOT") {
				e.threads[m.ThreadTS]++
			}
			continue
		}
		m.Blocks = json.RawMessage(blocks(w.t, m.Blocks))
		e.messages[m.TS] = m
		if m.Metadata != nil && m.Metadata.EventType == "holdpoint_card" {
			id, _ := m.Metadata.EventPayload["card"].(string)
			e.copies[id]++
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.processes {
		e.said[p.name] += p.log.String()
	}
	e.said["this process"] = w.log.String()
	return e
}

// blocks are a message's blocks in one form, whoever wrote them.
func blocks(t testing.TB, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	var any any
	if err == nil {
		err = json.Unmarshal(text, &any)
	}
	if err == nil {
		text, err = json.Marshal(any)
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// sunk is the sink's log so far.
func (w *world) sunk() (out []line) {
	w.t.Helper()
	f, err := os.Open(w.sinkLog)
	w.must(err)
	defer func() { _ = f.Close() }()
	in := bufio.NewReader(f)
	for {
		text, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return out // a line that is not whole yet is not counted yet
		}
		w.must(err)
		var l line
		w.must(json.Unmarshal(text, &l))
		out = append(out, l)
	}
}

// count counts the lines of a kind about an op.
func count(log []line, kind, op string) (n int) {
	for _, l := range log {
		if l.Kind == kind && l.Op == op {
			n++
		}
	}
	return n
}
