package approvals

import (
	"slices"
	"testing"

	"github.com/google/uuid"
)

// Each kind of row that must not exist is found: in a look at everything, and in one at what changed lately, however old the approval
// is. A sound database gives none.
func TestViolationsAreFound(t *testing.T) {
	t.Parallel()
	never, always := uuid.UUID{}, uuid.Max
	for kind, spoil := range map[string]string{
		"effect_without_approval": `UPDATE idempotency_ledger SET operation_key = 'op_else' WHERE approval_id = $1`,
		"two_effects": `WITH r AS (SELECT * FROM approval_request WHERE approval_id = $1)
			UPDATE approval_request q SET lineage_id = r.lineage_id, run_id = r.run_id, status = 'completed' FROM r WHERE q.approval_id <> r.approval_id`,
		"status_and_ledger":       `UPDATE idempotency_ledger SET state = 'executing' WHERE approval_id = $1`,
		"vote_for_another_digest": `UPDATE approval_decision SET digest = 'sha256-proposal-v1:00' WHERE approval_id = $1`,
		"no_quorum":               `DELETE FROM approval_decision WHERE approval_id = $1`,
		"late_vote":               `UPDATE approval_decision SET decided_at = decided_at + interval '1 day' WHERE approval_id = $1`,
		"success_without_result":  `UPDATE approval_payload SET result = NULL WHERE approval_id = $1`,
		"told_too_early":          `UPDATE approval_request SET settled = false WHERE approval_id = $1`,
		"pause_miscounted":        `UPDATE run_pause SET open_calls = 3 WHERE pause_id = (SELECT pause_id FROM approval_request WHERE approval_id = $1)`,
		"crosses_tenants":         `UPDATE card SET tenant_id = 'else' WHERE approval_id = $1`,
		"version_without_audit":   `UPDATE approval_request SET version = version + 1 WHERE approval_id = $1`,
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.propose("send_mail", mail)
			v := w.propose("send_mail", mail)
			w.approve(v.ApprovalID)
			w.done(v.ApprovalID)
			if _, ok := w.told(w.pauseOf(v.ApprovalID)); !ok {
				t.Fatal("not told")
			}
			look := func(from uuid.UUID, since *uuid.UUID) []string {
				found, err := w.s.violations(w.ctx, nil, from, always, since)
				w.must(err)
				var kinds []string
				for _, f := range found {
					kinds = append(kinds, f.Kind)
				}
				return kinds
			}
			if got := look(always, &never); len(got) != 0 {
				t.Fatalf("a sound database: %v", got)
			}
			w.exec(spoil, v.ApprovalID)
			if all, err := w.s.Violations(w.ctx, 0); err != nil || !slices.ContainsFunc(all, func(f Violation) bool { return f.Kind == kind }) {
				t.Errorf("a look at everything: %v, %v", all, err)
			}
			// No approval is young enough to be looked at for its age: what changed is.
			if got := look(always, &never); !slices.Contains(got, kind) {
				t.Errorf("of old approvals that changed lately: %v", got)
			}
			if got := look(always, &always); len(got) != 0 && kind != "two_effects" {
				t.Errorf("nothing changed since, and it is over: %v", got)
			}
		})
	}
}

// What is not over is always looked at, also when it is old and nothing of it changed.
func TestViolationsOfWhatIsOpen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.propose("send_mail", mail)
	w.exec(`UPDATE approval_request SET version = 7 WHERE approval_id = $1`, v.ApprovalID)
	late := uuid.Max
	found, err := w.s.violations(w.ctx, nil, late, late, &late)
	w.must(err)
	if want := (Violation{Kind: "version_without_audit", ID: uuid.UUID(v.ApprovalID).String()}); !slices.Contains(found, want) {
		t.Errorf("%v", found)
	}
}

// A look at everything goes part by part, and misses nothing at the seams.
func TestViolationsInParts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var want []Violation
	for range 7 {
		v := w.propose("send_mail", mail)
		want = append(want, Violation{Kind: "version_without_audit", ID: uuid.UUID(v.ApprovalID).String()})
	}
	w.exec(`UPDATE approval_request SET version = 7`)
	for _, at := range []int{1, 3, 7, 8} {
		found, err := w.s.violationsOfAll(w.ctx, at)
		w.must(err)
		if len(found) != len(want) || slices.ContainsFunc(want, func(v Violation) bool { return !slices.Contains(found, v) }) {
			t.Errorf("%d at once: %v", at, found)
		}
	}
}
