package approvals

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Records a refused click, and ends the transaction that found it. Nothing else was written in it.
var sqlAuditDenial = statement(`WITH e AS (
	INSERT INTO audit_event (tenant_id, approval_id, pause_id, kind, actor, surface, detail)
	SELECT r.tenant_id, r.approval_id, r.pause_id, 'decision.refused', $2::text, $3::text, $4::json FROM approval_request r WHERE r.approval_id = $1
	RETURNING event_id, tenant_id)
INSERT INTO audit_unsealed (event_id, tenant_id) SELECT event_id, tenant_id FROM e`)

func (s *Service) auditDenial(ctx context.Context, c *pgxpool.Conn, f *facts, rq DecideRequest, d *Denial) error {
	detail, err := marshal(map[string]any{"verb": rq.Verb, "why": d.Kind})
	if err != nil {
		return err
	}
	b := &pgx.Batch{}
	b.Queue(sqlAuditDenial, f.req.id, string(SlackActor(rq.By.UserID)), string(rq.Surface), detail)
	if err := finish(ctx, c.Conn(), b); err != nil && !errors.Is(err, errAmbiguous) {
		return unavailable(err)
	}
	return nil
}

// One row without locks: the child of an edit.
var sqlReadRow = statement(`SELECT ` + requestColumns + ` FROM approval_request r WHERE r.approval_id = $1`)

var sqlDecisionByID = statement(`SELECT d.reviewer FROM approval_decision d WHERE d.decision_id = $1 AND d.approval_id = $2`)

// decidedBy answers after an ambiguous commit: on a new connection, under the request's lock (a commit still under way holds it),
// by the decision's id. It tells what Decide would have told: the row with its votes, and an edit's child.
func (s *Service) decidedBy(ctx context.Context, rq DecideRequest) (Ruling, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitGrace)
	defer cancel()
	var out Ruling
	err := pgx.BeginFunc(ctx, s.clicks, func(tx pgx.Tx) error {
		f := &facts{}
		var err error
		if f.req, err = scanRequest(tx.QueryRow(ctx, sqlLockRequest, rq.Button.ID)); err != nil {
			return err
		}
		b := &pgx.Batch{}
		b.Queue(sqlDecisionByID, rq.DecisionID, rq.Button.ID).QueryRow(func(row pgx.Row) error {
			var by string
			err := row.Scan(&by)
			out.Applied = err == nil
			return noRows(err)
		})
		b.Queue(sqlReadVotes, rq.Button.ID).Query(f.scanVotes)
		b.Queue(sqlReadLedger, rq.Button.ID).QueryRow(func(row pgx.Row) (err error) { f.ledger, err = scanLedger(row); return noRows(err) })
		b.Queue(sqlClock).QueryRow(func(row pgx.Row) error { return row.Scan(&f.now) })
		if err := tx.SendBatch(ctx, b).Close(); err != nil {
			return err
		}
		out.View = f.view()
		if rq.Verb != Edit || f.req.childID.IsZero() {
			return nil
		}
		row, err := scanRequest(tx.QueryRow(ctx, sqlReadRow, f.req.childID))
		if err != nil {
			return err
		}
		child := row.view()
		child.Now = f.now
		out.Child = &child
		return nil
	})
	if err != nil {
		return Ruling{}, unavailable(err)
	}
	if !out.Applied {
		return Ruling{}, ErrUnavailable // it certainly did not commit: the person clicks again
	}
	return out, nil
}

// NewDecisionID makes the id by which a decision is found again.
func NewDecisionID() uuid.UUID { return newV7() }
