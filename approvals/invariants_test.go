package approvals

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdpoint/holdpoint/approvals/invariants"
)

// check holds the whole database to the invariants, and every approval's digests to its sealed bytes.
func (w *world) check() {
	w.t.Helper()
	for _, bad := range w.broken() {
		w.t.Error(bad)
	}
}

func (w *world) broken() []string {
	out, err := invariants.Broken(w.ctx, w.db)
	if err != nil {
		return []string{err.Error()}
	}
	return append(out, w.undigested()...)
}

// undigested recomputes both digests of every approval from its sealed bytes (I1), and holds its transitions to the table (I9).
func (w *world) undigested() (out []string) {
	rows, err := w.db.Query(w.ctx, `SELECT `+requestColumns+`, p.arguments FROM approval_request r JOIN approval_payload p USING (approval_id)`)
	if err != nil {
		return []string{err.Error()}
	}
	defer rows.Close()
	for rows.Next() {
		f := &facts{}
		if f.req, err = scanRequest(rows, &f.payload); err != nil {
			return append(out, err.Error())
		}
		if _, ok, err := w.s.verified(f); err != nil || !ok {
			out = append(out, fmt.Sprintf("violated: I1 the digest of %s: %v", f.req.id, err))
		}
	}
	if err := rows.Err(); err != nil {
		out = append(out, err.Error())
	}
	pairs, err := w.db.Query(w.ctx, `SELECT DISTINCT coalesce(from_status, ''), to_status FROM audit_event WHERE to_status IS NOT NULL`)
	if err != nil {
		return append(out, err.Error())
	}
	defer pairs.Close()
	for pairs.Next() {
		var from, to Status
		if err := pairs.Scan(&from, &to); err != nil {
			return append(out, err.Error())
		}
		if !from.CanBecome(to) {
			out = append(out, fmt.Sprintf("violated: I9 %q → %q happened", from, to))
		}
	}
	if err := pairs.Err(); err != nil {
		out = append(out, err.Error())
	}
	return out
}

// Each query sees its fault: a database after a story in which all is well, spoilt in one place. A query that none of these can
// break would prove nothing.
func TestInvariantsSeeFaults(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	done := w.propose("deploy_release", production)
	w.decide(done.ApprovalID, bob, Approve)
	w.record(w.claim(done.ApprovalID), OutcomeSucceeded)
	w.told(w.pauseOf(done.ApprovalID))
	w.must(w.s.RecordDelivery(w.ctx, w.pauseOf(done.ApprovalID), DeliveryResult{Delivered: true}))
	edited := w.propose("deploy_release", production)
	child := w.decide(edited.ApprovalID, carol, Edit, with(`{"release":"2026.07.25","environment":"production","token":"[redacted]"}`)).Child
	w.decide(child.ApprovalID, bob, Approve)
	doubt := w.propose("send_mail", `{"to":"a@example.com"}`)
	w.decide(doubt.ApprovalID, alice, Approve)
	w.record(w.claim(doubt.ApprovalID), OutcomeUnknown)
	rejected := w.propose("issue_refund", bigRefund)
	w.decide(rejected.ApprovalID, dave, Approve)
	w.decide(rejected.ApprovalID, erin, Reject)
	waits := w.propose("deploy_release", production)
	w.check()

	audit := func(id ID, kind, from, to string) string {
		return `INSERT INTO audit_event (event_id, tenant_id, approval_id, kind, from_status, to_status, actor, surface, detail) SELECT 'ffffffff-ffff-7fff-bfff-ffffffffffff', tenant_id, approval_id, '` + kind +
			`', ` + from + `, ` + to + `, actor, surface, '{}' FROM audit_event WHERE approval_id = '` + uuid.UUID(id).String() + `' LIMIT 1`
	}
	vote := func(id ID, reviewer, decision string) string {
		return `INSERT INTO approval_decision (approval_id, reviewer, decision_id, decision, digest, authorised, rule, config_revision, surface)
			SELECT approval_id, '` + reviewer + `', gen_random_uuid(), '` + decision + `', digest, '{}', rule, 1, 'card' FROM approval_request WHERE approval_id = '` + uuid.UUID(id).String() + `'`
	}
	set := func(id ID, what string) string {
		return `UPDATE approval_request SET ` + what + ` WHERE approval_id = '` + uuid.UUID(id).String() + `'`
	}
	faults := map[string]string{
		"I1 one approval an effect":                        `UPDATE idempotency_ledger SET approval_id = gen_random_uuid()`,
		"I1 one effect a lineage":                          set(edited.ApprovalID, `status = 'completed'`) + `; ` + set(child.ApprovalID, `status = 'completed'`),
		"I1 the operation key is the row's":                `UPDATE idempotency_ledger SET operation_key = operation_key || 'x'`,
		"I2 status and ledger agree":                       set(done.ApprovalID, `status = 'failed'`),
		"I2 no effect is proven":                           `UPDATE idempotency_ledger SET maybe_effect = true`,
		"I5 nobody decides their own call":                 set(done.ApprovalID, `requester = 'slack:`+bob+`'`),
		"I5 people decide, or the rule":                    vote(done.ApprovalID, "agent:release-agent", "approve"),
		"I6 votes are for the digest":                      `UPDATE approval_decision SET digest = digest || 'x'`,
		"I6 one final decision":                            vote(rejected.ApprovalID, "slack:"+frank, "reject"),
		"I6 the final decision is the status":              set(rejected.ApprovalID, `status = 'revoked'`),
		"I6 a quorum stands behind what was approved":      `DELETE FROM approval_decision`,
		"I6 votes are counted":                             set(done.ApprovalID, `votes = 7`),
		"I7 no vote at or after decide_by":                 set(done.ApprovalID, `decide_by = created_at`),
		"I9 the audit is a chain":                          audit(done.ApprovalID, "x", "'pending'", "'approved'"),
		"I9 the audit ends at the row":                     audit(done.ApprovalID, "x", "'pending'", "'approved'"),
		"I9 what is over stays as it is":                   audit(done.ApprovalID, "x", "'completed'", "'approved'"),
		"I10 an edit has its child":                        set(child.ApprovalID, `tool_name = 'another'`),
		"I10 a child has its parent":                       set(edited.ApprovalID, `child_id = NULL`),
		"I10 an editor does not approve":                   vote(child.ApprovalID, "slack:"+carol, "approve"),
		"I11 each call has its own authority":              `DELETE FROM approval_decision`,
		"I13 an opaque tool is dispatched once":            audit(doubt.ApprovalID, "execution.claimed", "NULL", "NULL"),
		"I16 the epoch counts the claims":                  `UPDATE idempotency_ledger SET epoch = epoch + 1`,
		"I18 what is uncertain is not sent again":          audit(doubt.ApprovalID, "execution.claimed", "NULL", "NULL"),
		"I20 a result is stored with its success":          `UPDATE approval_payload SET result = NULL`,
		"I20 nothing is told before its calls are settled": set(done.ApprovalID, `settled = false`),
		"I20 told with a message":                          `DELETE FROM resume_message`,
		"I21 a call is proposed once in its pause":         `UPDATE approval_request SET pause_id = (SELECT pause_id FROM run_pause LIMIT 1), tool_call_id = 'c', call_path = '{}'`,
		"I22 nothing crosses tenants":                      `UPDATE run_pause SET tenant_id = 'globex'`,
		"I22 the audit is the tenant's":                    `UPDATE audit_event SET tenant_id = 'globex'`,
		"I25 a version is an audit row":                    set(done.ApprovalID, `version = version + 1`),
		"I26 every event is sealed or waits for it":        `DELETE FROM audit_unsealed`,
		"open is what is not over":                         `DELETE FROM approval_open`,
		"held is shown while it is waited for":             `UPDATE approval_open SET wait = 'held' WHERE approval_id = '` + uuid.UUID(child.ApprovalID).String() + `'`,
		"settled is terminal, or the agent's":              set(waits.ApprovalID, `settled = true`),
		"a pause counts its calls":                         `UPDATE run_pause SET open_calls = 3`,
		"a pause closes at zero":                           `UPDATE run_pause SET closed_at = NULL`,
		"a call is named once":                             set(edited.ApprovalID, `status = 'completed'`) + `; UPDATE run_call SET approval_id = '` + uuid.UUID(edited.ApprovalID).String() + `'; ` + set(edited.ApprovalID, `status = 'edited'`),
		"what was superseded is not told":                  `UPDATE run_pause SET superseded_at = clock_timestamp(), next_try_at = clock_timestamp()`,
		"an outbox row has a subject":                      `INSERT INTO outbox (outbox_id, kind, subject_id) VALUES (gen_random_uuid(), 'card', gen_random_uuid())`,
	}
	undo := errors.New("undo")
	for _, q := range invariants.Queries {
		fault, ok := faults[q.Name]
		if !ok {
			t.Errorf("%s: no fault is tried", q.Name)
			continue
		}
		err := pgx.BeginFunc(w.ctx, w.db, func(tx pgx.Tx) error {
			for _, sql := range append([]string{`SET LOCAL session_replication_role = replica`}, strings.Split(fault, "; ")...) {
				if _, err := tx.Exec(w.ctx, sql); err != nil {
					return err
				}
			}
			if found, err := q.Find(w.ctx, tx); err != nil {
				return err
			} else if len(found) == 0 {
				t.Errorf("%s: not seen", q.Name)
			}
			return undo
		})
		if !errors.Is(err, undo) {
			t.Errorf("%s: %v", q.Name, err)
		}
	}
}
