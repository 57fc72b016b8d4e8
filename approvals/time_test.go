package approvals

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdpoint/holdpoint/approvals/seal"
)

// mirror is the directory: refreshing marks what was asked for as just read, or fails.
type mirror struct {
	w     *world
	mu    sync.Mutex
	fails bool
	asked int
	first func() // runs before a refresh: what Slack says has changed
}

func (m *mirror) Fresh(ctx context.Context, tenant string, groups, users []string, _ time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked++
	if m.fails {
		return errors.New("slack is away")
	}
	if m.first != nil {
		m.first()
	}
	_, err := m.w.db.Exec(ctx, `UPDATE slack_group SET synced_at = clock_timestamp() WHERE tenant_id = $1 AND group_id = ANY ($2)`, tenant, list(groups))
	_, err2 := m.w.db.Exec(ctx, `UPDATE slack_user SET synced_at = clock_timestamp() WHERE tenant_id = $1 AND user_id = ANY ($2)`, tenant, list(users))
	return errors.Join(err, err2)
}

// exec changes the database behind the core's back: triggers are off, so that time can pass and rows can rot.
func (w *world) exec(sql string, args ...any) int64 {
	w.t.Helper()
	var n int64
	w.must(pgx.BeginFunc(w.ctx, w.db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(w.ctx, `SET LOCAL session_replication_role = replica`); err != nil {
			return err
		}
		tag, err := tx.Exec(w.ctx, sql, args...)
		n = tag.RowsAffected()
		return err
	}))
	return n
}

// one reads one value.
func one[T any](w *world, sql string, args ...any) T {
	w.t.Helper()
	var v T
	if err := w.db.QueryRow(w.ctx, sql, args...).Scan(&v); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// pass lets time pass: every time of every row moves into the past.
func (w *world) pass(d time.Duration) {
	w.t.Helper()
	for table, columns := range map[string]string{
		"approval_request":   "created_at decide_by expires_at decided_at revoked_at started_at ended_at held_since",
		"approval_open":      "due_at",
		"approval_decision":  "decided_at",
		"idempotency_ledger": "lease_expires_at claimed_at first_sent_at next_try_at",
		"run_pause":          "created_at closed_at next_try_at trying_since again_at told_at sending_until dead_at stopped_at superseded_at",
		"outbox":             "not_before",
		"card":               "post_started",
		"audit_event":        "at",
		"blocked_user":       "at",
	} {
		var set []string
		for _, c := range strings.Fields(columns) {
			set = append(set, fmt.Sprintf("%s = %s - $1::interval", c, c))
		}
		w.exec("UPDATE "+table+" SET "+strings.Join(set, ", "), d)
	}
}

// age makes the mirror old.
func (w *world) age(d time.Duration) {
	w.t.Helper()
	w.exec(`UPDATE slack_user SET synced_at = synced_at - $1::interval`, d)
	w.exec(`UPDATE slack_group SET synced_at = synced_at - $1::interval`, d)
}

// row reads a view as its tenant sees it.
func (w *world) row(id ID) View {
	w.t.Helper()
	v, _, err := w.s.look(w.ctx, w.s.clicks, id)
	w.must(err)
	reached.Store(v.ReasonCode, true)
	reached.Store(v.Held, true)
	return v
}

// want holds a row to a status and a reason.
func (w *world) want(id ID, status Status, why Reason) View {
	w.t.Helper()
	v := w.row(id)
	if v.Status != status || v.ReasonCode != why {
		w.t.Fatalf("%s: status %q, reason %q; want %q, %q", id, v.Status, v.ReasonCode, status, why)
	}
	return v
}

// refusal is the refusal in an error; anything else ends the test.
func (w *world) refusal(err error, code Code) Refusal {
	w.t.Helper()
	var r *Refusal
	if !errors.As(err, &r) || r.Code != code {
		w.t.Fatalf("got %v; want a refusal with %q", err, code)
		return Refusal{}
	}
	return *r
}

func quoted(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func isErr(err, target error) bool { return errors.Is(err, target) }

// sealedFor is the binding of a pause's state.
func sealedFor(w *world, p Pause) []byte {
	w.t.Helper()
	return seal.StateAAD("acme", p.RunID, w.row(p.Approvals[0].ApprovalID).PauseID, "openai-agents-js")
}
