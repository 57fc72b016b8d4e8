package approvals

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// sqlSwap is the one door: the only UPDATE of a status. In one statement, so that it commits whole or not at all (I25):
//
//	led    the ledger row, when the transition moves it: only under the holder's token and epoch (I16)
//	swap   the request, only from the expected status and version, and before its deadline where one is in force (I7)
//	vote   the reviewer's immutable decision
//	open   what the approval waits for now, or its removal when it ended
//	result the sealed result of the effect
//	aud    the audit row, and its mark for the sealer
//	out    the outbox rows
//	pause  the count of the pause's unsettled calls, its close at zero, and the one outbox row that tells the run
//
// Everything hangs on swap: if that matches no row, nothing is written. Callers hold the request's row lock (and the ledger's)
// from the batch before, except an outcome, whose fence is the token. Returns the new version, and the calls left open when
// this one settled.
var sqlSwap = statement(`
WITH led AS (
	UPDATE idempotency_ledger l SET state = $6::text, lease_expires_at = $7, next_try_at = $8, maybe_effect = $9, error = $10,
		first_sent_at = CASE WHEN $6::text <> 'failed_retryable' OR $9 THEN coalesce(l.first_sent_at, CASE WHEN $6::text = 'executing' THEN clock_timestamp() END) END -- none that may have arrived: no retention to count
	WHERE $5::uuid IS NOT NULL AND l.token = $5 AND l.epoch = $11 AND l.state = ANY ($12::text[])
		AND l.lineage_id = (SELECT q.lineage_id FROM approval_request q WHERE q.approval_id = $1 AND q.status = ANY ($2::text[]) AND ($4::bigint IS NULL OR q.version = $4))
	RETURNING l.lineage_id
), swap AS (
	UPDATE approval_request r SET status = $3::text, version = r.version + 1,
		votes = r.votes + $13, reason_code = coalesce($14::text, r.reason_code), message = coalesce($15::text, r.message),
		held = $16::text, held_since = CASE WHEN $16::text IS NULL THEN NULL WHEN r.held = $16::text THEN r.held_since ELSE clock_timestamp() END,
		decided_by = coalesce($17::text, r.decided_by), decided_at = CASE WHEN $17::text IS NULL THEN r.decided_at ELSE clock_timestamp() END,
		revoked_by = coalesce(r.revoked_by, $18::text), revoked_at = CASE WHEN $18::text IS NULL OR r.revoked_at IS NOT NULL THEN r.revoked_at ELSE clock_timestamp() END,
		started_at = CASE WHEN $3::text = 'executing' AND r.started_at IS NULL THEN clock_timestamp() ELSE r.started_at END,
		ended_at = CASE WHEN $19::boolean THEN clock_timestamp() ELSE r.ended_at END,
		expires_at = coalesce($20::timestamptz, r.expires_at), child_id = coalesce($21::uuid, r.child_id), receipt = coalesce($22::text, r.receipt),
		evidence = coalesce($23::json, r.evidence), settled = r.settled OR $24::boolean
	WHERE r.approval_id = $1 AND r.status = ANY ($2::text[]) AND ($4::bigint IS NULL OR r.version = $4)
		AND (NOT $25::boolean OR r.expires_at > clock_timestamp())
		AND ($5::uuid IS NULL OR EXISTS (SELECT 1 FROM led))
	RETURNING r.approval_id, r.tenant_id, r.pause_id, r.version, r.rule, r.digest
), vote AS (
	INSERT INTO approval_decision (approval_id, reviewer, decision_id, decision, digest, edited_digest, authorised, rule, config_revision, surface, reason)
	SELECT s.approval_id, $27::text, $26, $28::text, s.digest, $29::text, $30::json, s.rule, $31::bigint, $32::text, $33::text FROM swap s WHERE $26::uuid IS NOT NULL
), open AS (
	UPDATE approval_open o SET wait = $34::text, due_at = $35 FROM swap s WHERE o.approval_id = s.approval_id AND $34::text IS NOT NULL
), gone AS (
	DELETE FROM approval_open o USING swap s WHERE o.approval_id = s.approval_id AND $34::text IS NULL
), result AS (
	UPDATE approval_payload p SET result = $36 FROM swap s WHERE p.approval_id = s.approval_id AND $36::bytea IS NOT NULL
), aud AS (
	INSERT INTO audit_event (tenant_id, approval_id, pause_id, kind, from_status, to_status, actor, surface, detail)
	SELECT s.tenant_id, s.approval_id, s.pause_id, $37::text, $38::text, $3::text, $39::text, $32::text, $40::json FROM swap s
	RETURNING event_id, tenant_id -- made after the wait for the row: the ids of a request's events are in the order of its transitions
), unsealed AS (
	INSERT INTO audit_unsealed (event_id, tenant_id) SELECT event_id, tenant_id FROM aud
), out AS (
	INSERT INTO outbox (outbox_id, kind, subject_id) SELECT x.id, x.kind, s.approval_id FROM swap s, unnest($41::uuid[], $42::text[]) AS x (id, kind)
), pause AS (
	UPDATE run_pause p SET open_calls = p.open_calls - 1, closed_at = CASE WHEN p.open_calls = 1 THEN clock_timestamp() END,
		next_try_at = CASE WHEN p.open_calls = 1 THEN clock_timestamp() END
	FROM swap s JOIN approval_request old ON old.approval_id = s.approval_id AND NOT old.settled -- the row as it was before swap
	WHERE p.pause_id = s.pause_id AND $24::boolean
	RETURNING p.pause_id, p.open_calls
), tell AS (
	INSERT INTO outbox (outbox_id, kind, subject_id) SELECT $43::uuid, 'resume', p.pause_id FROM pause p WHERE p.open_calls = 0
)
SELECT s.version, s.pause_id, (SELECT p.open_calls FROM pause p) FROM swap s`)

// voteRow is a reviewer's decision as it is kept.
type voteRow struct {
	id           uuid.UUID
	by           Actor
	verb         Verb
	editedDigest *string
	authorised   any // what authorised it: users, groups, their sync times
	reason       string
}

// ledgerSet moves the operation, under its fence.
type ledgerSet struct {
	token       uuid.UUID
	epoch       int64
	from        []LedgerState
	to          LedgerState
	lease       *time.Time
	nextTry     *time.Time
	maybeEffect bool
	errorText   *string
}

// swap is one transition. Zero fields leave their columns as they are, but held, which a transition sets or clears.
type swap struct {
	id      ID
	from    []Status
	version *int64 // nil: the fence is the ledger's token
	to      Status
	before  bool // only before expires_at

	ledger   *ledgerSet
	vote     *voteRow
	count    int // votes to add
	reason   Reason
	message  string
	held     Reason
	decided  Actor
	revoked  Actor
	expires  *time.Time
	child    ID
	receipt  string
	evidence []byte
	settle   bool // counts the pause down; the caller has seen that the row is not settled
	result   []byte

	wait wait
	due  time.Time

	kind    string // the audit event's
	actor   Actor
	surface Surface
	detail  any
	audited Status // the status the audit row names as the origin
	config  int64

	row *requestRow // as it was locked: for metrics and the log line

	outbox []string
	items  []OutboxItem // filled by queue: the ids of the rows, to wake with
	resume uuid.UUID
}

// swapped is what the door answers.
type swapped struct {
	hit     bool
	version int64
	pause   uuid.UUID
	left    *int // the pause's open calls, when this one settled
}

// moves builds a transition from a locked row, with its predicate.
func (r *requestRow) moves(to Status, kind string, actor Actor, surface Surface) *swap {
	v := r.version
	return &swap{row: r, id: r.id, from: []Status{r.status}, version: &v, to: to, kind: kind, actor: actor, surface: surface, audited: r.status}
}

func text[T ~string](s T) *string {
	if s == "" {
		return nil
	}
	t := string(s)
	return &t
}

func texts[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = string(s)
	}
	return out
}

// queue adds the transition to a batch; out is filled when the batch is read to its end.
func (w *swap) queue(b *pgx.Batch, out *swapped) error {
	for _, from := range w.from {
		if !from.CanBecome(w.to) {
			return fmt.Errorf("no transition from %s to %s", from, w.to)
		}
	}
	if w.to.Terminal() != (w.wait == "") {
		return fmt.Errorf("status %s and wait %q do not fit", w.to, w.wait)
	}
	if w.detail == nil {
		w.detail = struct{}{}
	}
	detail, err := json.Marshal(w.detail)
	if err != nil {
		return fmt.Errorf("audit detail: %w", err)
	}
	var l ledgerSet
	var token *uuid.UUID
	if w.ledger != nil {
		l, token = *w.ledger, &w.ledger.token
		for _, from := range l.from {
			if !from.CanBecome(l.to) {
				return fmt.Errorf("no ledger transition from %s to %s", from, l.to)
			}
		}
	}
	var v voteRow
	var voteID *uuid.UUID
	var authorised []byte
	if w.vote != nil {
		v, voteID = *w.vote, &w.vote.id
		if authorised, err = json.Marshal(v.authorised); err != nil {
			return fmt.Errorf("vote: %w", err)
		}
	}
	ids, kinds := make([]uuid.UUID, len(w.outbox)), w.outbox
	w.items = w.items[:0]
	for i, kind := range kinds {
		ids[i] = newV7()
		w.items = append(w.items, OutboxItem{ID: ids[i], Kind: kind, Subject: uuid.UUID(w.id)})
	}
	w.resume = newV7()
	b.Queue(sqlSwap,
		w.id, texts(w.from), string(w.to), w.version, // $1–$4
		token, string(l.to), l.lease, l.nextTry, l.maybeEffect, l.errorText, l.epoch, texts(l.from), // $5–$12
		w.count, text(w.reason), text(w.message), text(w.held), text(w.decided), text(w.revoked), // $13–$18
		w.to.Terminal(), w.expires, w.child, text(w.receipt), w.evidence, w.settle, w.before, // $19–$25
		voteID, string(v.by), string(v.verb), v.editedDigest, authorised, w.config, string(w.surface), v.reason, // $26–$33
		text(w.wait), w.due, w.result, w.kind, text(w.audited), string(w.actor), detail, // $34–$40
		ids, kinds, w.resume, // $41–$43
	).QueryRow(func(row pgx.Row) error {
		err := row.Scan(&out.version, &out.pause, &out.left)
		out.hit = err == nil
		return noRows(err)
	})
	return nil
}

// errRolledBack says that the server answered COMMIT with ROLLBACK: a statement before it had failed.
var errRolledBack = errors.New("the transaction was rolled back")

// errAmbiguous says that a commit may or may not have happened (I17): the caller reads the row by what it wrote, on a new connection.
var errAmbiguous = errors.New("the commit's answer was lost")

// commitGrace is how long a commit may take once it is sent, whatever becomes of the caller.
const commitGrace = 2 * time.Second

// finish sends the last batch of a transaction and its COMMIT, and reads both to their end. It runs on even when the caller has
// gone: 47 of 49 cancelled batches had committed (measured). A kill before the server reads COMMIT leaves nothing; after it, all.
func finish(ctx context.Context, c *pgx.Conn, b *pgx.Batch) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitGrace)
	defer cancel()
	committed := false
	b.Queue(sqlCommit).Exec(func(tag pgconn.CommandTag) error {
		if tag.String() != "COMMIT" {
			return errRolledBack
		}
		committed = true
		return nil
	})
	err := c.SendBatch(ctx, b).Close()
	switch {
	case err == nil && committed:
		return nil
	case err == nil:
		return errRolledBack
	case errors.Is(err, errRolledBack) || definite(err):
		return err
	}
	return fmt.Errorf("%w: %w", errAmbiguous, err)
}

// wake tells the process what the commit promised. The rows are in the outbox either way.
func (s *Service) wake(w *swap, r swapped) {
	items := w.items
	if r.left != nil && *r.left == 0 {
		items = append(items, OutboxItem{ID: w.resume, Kind: OutboxResume, Subject: r.pause})
	}
	if len(items) > 0 {
		s.woke(items)
	}
}

// transition runs one move that needs nothing outside Postgres: lock and read, decide, swap and commit. decide gives nil when there is
// nothing to do. done says that the move was made.
func (s *Service) transition(ctx context.Context, pool *pgxpool.Pool, id ID, w want, decide func(*facts) (*swap, error)) (v View, done bool, err error) {
	c, err := pool.Acquire(ctx)
	if err != nil {
		return View{}, false, unavailable(err)
	}
	defer c.Release()
	f, err := s.begin(ctx, c.Conn(), id, w)
	if err != nil {
		return View{}, false, err
	}
	move, err := decide(f)
	if err != nil || move == nil {
		_, _ = c.Exec(context.WithoutCancel(ctx), "ROLLBACK") // a failure closes the connection, which rolls back too
		return f.view(), false, err
	}
	b := &pgx.Batch{}
	var out swapped
	if err := move.queue(b, &out); err != nil {
		return View{}, false, err
	}
	if err := finish(ctx, c.Conn(), b); err != nil {
		return View{}, false, unsettled(err)
	}
	if !out.hit {
		return f.view(), false, nil
	}
	s.wake(move, out)
	s.account(ctx, move, f.now)
	v = f.view()
	move.show(&v, out.version)
	return v, true, nil
}

// unsettled names a failed commit for callers that only try again: the row tells them what became of it.
func unsettled(err error) error {
	if errors.Is(err, errAmbiguous) {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return unavailableUnlessAmbiguous(err)
}
