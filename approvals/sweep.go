package approvals

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdpoint/holdpoint/approvals/rules"
)

// cardBehind says of an open approval r that its card c does not show it, and should by now; $2 is how long a ring may take.
const cardBehind = `c.shown_version < r.version AND (r.operator_scope ->> 'auto' IS NULL OR r.held IS NOT NULL OR r.status = 'uncertain' OR c.post_started IS NOT NULL)
			AND r.created_at < clock_timestamp() - $2::interval AND (c.post_started IS NULL OR c.post_started < clock_timestamp() - $2::interval)`

// SweepReport counts what one sweep did.
type SweepReport struct {
	Looked, Expired, Rung, Uncertain, Resumes, Cards int
}

var (
	// What is due, oldest first. Nothing is locked: each approval is decided in a transaction of its own, so any number of workers may sweep.
	sqlDue = statement(`SELECT o.approval_id, o.wait FROM approval_open o WHERE o.due_at <= clock_timestamp() ORDER BY o.due_at LIMIT $1`)
	// Rings again for an approval, unless a ring for it is still in the outbox, and looks again later.
	sqlRing = statement(`WITH o AS (UPDATE approval_open SET due_at = clock_timestamp() + $3::interval WHERE approval_id = $2 AND due_at <= clock_timestamp() RETURNING approval_id)
		INSERT INTO outbox (outbox_id, kind, subject_id) SELECT $1, 'execute', o.approval_id FROM o
		WHERE NOT EXISTS (SELECT 1 FROM outbox b WHERE b.subject_id = o.approval_id AND b.kind = 'execute')`)
	// Rings for deliveries that are due, a little after their own ring should have been heard.
	sqlDueResumes = statement(`INSERT INTO outbox (outbox_id, kind, subject_id)
		SELECT gen_random_uuid(), 'resume', p.pause_id FROM run_pause p WHERE p.next_try_at <= clock_timestamp() - interval '2 seconds'
			AND NOT EXISTS (SELECT 1 FROM outbox b WHERE b.subject_id = p.pause_id AND b.kind = 'resume') ORDER BY p.next_try_at LIMIT $1`)
	// Cards of what is not over that do not show their row: a lost ring, or Slack was down. Not all that is open is looked at, but the
	// next $3 approvals after $1, by id; who sweeps goes round. Returns the last one looked at, how many were, and the rings.
	sqlDueCards = statement(`WITH part AS (SELECT o.approval_id FROM approval_open o WHERE o.approval_id > $1 ORDER BY o.approval_id LIMIT $3
	), rung AS (INSERT INTO outbox (outbox_id, kind, subject_id)
		SELECT gen_random_uuid(), 'card', c.approval_id FROM part o JOIN approval_request r ON r.approval_id = o.approval_id JOIN card c ON c.card_id = r.card_id
		WHERE ` + cardBehind + `
			AND NOT EXISTS (SELECT 1 FROM outbox b WHERE b.subject_id = c.approval_id AND b.kind = 'card') RETURNING 1)
	SELECT (SELECT p.approval_id FROM part p ORDER BY p.approval_id DESC LIMIT 1), (SELECT count(*) FROM part), (SELECT count(*) FROM rung)`)
	sqlBehind = statement(`UPDATE approval_open SET due_at = clock_timestamp() + $2::interval WHERE approval_id = $1 AND due_at <= clock_timestamp()`)
	// The same for what changed or ended lately: its ring was dispatched to a queue that forgot it. Only the newest events are looked
	// at, so that the cost has a bound.
	sqlDueChanges = statement(`INSERT INTO outbox (outbox_id, kind, subject_id)
		SELECT gen_random_uuid(), 'card', c.approval_id FROM (
			SELECT DISTINCT e.approval_id FROM (SELECT approval_id, to_status, at FROM audit_event ORDER BY event_id DESC LIMIT $1) e
			WHERE e.to_status IS NOT NULL AND e.at < clock_timestamp() - $2::interval AND e.at > clock_timestamp() - interval '1 hour') d
		JOIN approval_request r ON r.approval_id = d.approval_id JOIN card c ON c.card_id = r.card_id
		WHERE CASE WHEN r.ended_at IS NULL THEN ` + cardBehind + ` ELSE c.shown_version < r.version
				AND (c.message_ts IS NOT NULL OR c.post_started BETWEEN clock_timestamp() - interval '10 minutes' AND clock_timestamp() - $2::interval) END
			AND NOT EXISTS (SELECT 1 FROM outbox b WHERE b.subject_id = c.approval_id AND b.kind = 'card')`)
	sqlForgetSeen = statement(`DELETE FROM slack_seen WHERE seen_at < clock_timestamp() - interval '15 minutes'`)
)

// What one sweep looks through for cards that are behind: the newest events, and the next part of all that is open.
const (
	recentEvents = 2000
	openPart     = 2000
)

// round is how far a process has come in its rounds of what is open.
type round struct {
	mu    sync.Mutex
	after ID
}

// cards rings for the cards of the next part of what is open, and comes round when it was the last.
func (s *Service) cards(ctx context.Context) (rung int, err error) {
	s.round.mu.Lock()
	defer s.round.mu.Unlock()
	var last ID
	var looked int
	if err := s.work.QueryRow(ctx, sqlDueCards, uuid.UUID(s.round.after), 2*ringAgain, openPart).Scan(&last, &looked, &rung); err != nil {
		return 0, unavailable(err)
	}
	if s.round.after = last; looked < openPart {
		s.round.after = ID{}
	}
	return rung, nil
}

// Sweep is the backstop of everything (liveness L2–L6): it expires what is past its deadline, rings again for what should be
// running, and ends what only a person can end. It is level-triggered and safe to run in every worker at once; a kill in it leaves
// what is due to the next one.
func (s *Service) Sweep(ctx context.Context, limit int) (SweepReport, error) {
	var rep SweepReport
	rows, err := s.work.Query(ctx, sqlDue, limit)
	if err != nil {
		return rep, unavailable(err)
	}
	type due struct {
		id   ID
		wait wait
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (d due, err error) { return d, row.Scan(&d.id, &d.wait) })
	if err != nil {
		return rep, unavailable(err)
	}
	var errs []error
	for _, d := range list {
		rep.Looked++
		if err := s.sweepOne(ctx, d.id, d.wait, &rep); err != nil {
			// It must not stand in the way of the others for ever: the list is cut.
			_, off := s.work.Exec(ctx, sqlBehind, d.id, ringAgain)
			errs = append(errs, fmt.Errorf("%s: %w", d.id, err), unavailable(off))
		}
	}
	tag, err := s.work.Exec(ctx, sqlDueResumes, limit)
	rep.Resumes = int(tag.RowsAffected())
	errs = append(errs, unavailable(err))
	rep.Cards, err = s.cards(ctx)
	errs = append(errs, err)
	tag, err = s.work.Exec(ctx, sqlDueChanges, recentEvents, 2*ringAgain)
	rep.Cards += int(tag.RowsAffected())
	errs = append(errs, unavailable(err))
	_, err = s.work.Exec(ctx, sqlForgetSeen)
	errs = append(errs, unavailable(err))
	_, err = s.SealAudit(ctx, limit)
	return rep, errors.Join(append(errs, unavailable(err))...)
}

func (s *Service) sweepOne(ctx context.Context, id ID, w wait, rep *SweepReport) error {
	switch w {
	case waitDecision, waitAgent, waitHeld, waitExecution, waitRetry:
		done, err := s.expire(ctx, id)
		if err != nil || done {
			if done {
				rep.Expired++
			}
			return err
		}
		if w == waitDecision || w == waitAgent {
			return nil
		}
		return s.ring(ctx, id, rep)
	case waitLease:
		done, err := s.agentGone(ctx, id)
		if err != nil {
			return err
		}
		if done {
			rep.Uncertain++
			return nil
		}
		return s.ring(ctx, id, rep) // an agent's own is not due any more, and not rung for
	}
	return s.ring(ctx, id, rep)
}

// ring puts an execute row into the outbox, and looks again in ringAgain.
func (s *Service) ring(ctx context.Context, id ID, rep *SweepReport) error {
	box := newV7()
	tag, err := s.work.Exec(ctx, sqlRing, box, id, ringAgain)
	if err != nil {
		return unavailable(err)
	}
	if tag.RowsAffected() > 0 {
		rep.Rung++
		s.woke([]OutboxItem{{ID: box, Kind: OutboxExecute, Subject: uuid.UUID(id)}})
	}
	return nil
}

// expire ends what is past its deadline on the database's clock (L2). What was held or failed without effect has had none either.
func (s *Service) expire(ctx context.Context, id ID) (bool, error) {
	_, done, err := s.transition(ctx, s.work, id, want{}, func(f *facts) (*swap, error) {
		r := f.req
		if r.status != Pending && r.status != Approved || f.now.Before(r.expiresAt) {
			return nil, nil
		}
		why := ReasonDecideExpired
		if r.status == Approved {
			why = ReasonExecuteExpired
		}
		w := r.moves(Expired, "approval.expired", System, SurfaceSystem)
		w.reason, w.settle, w.outbox, w.ledger = why, true, []string{OutboxCard}, f.giveUp(why)
		return w, nil
	})
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return done, err
}

// Moves the next look of what is still due: whatever changed meanwhile has a time of its own.
var sqlPutOff = statement(`UPDATE approval_open SET due_at = $2 WHERE approval_id = $1 AND due_at <= clock_timestamp()`)

// agentGone ends an agent's attempt whose lease is over and that nobody will take over: at once for a tool that must not be sent
// again, at execute_by otherwise (until then the agent may claim again).
func (s *Service) agentGone(ctx context.Context, id ID) (bool, error) {
	var look *time.Time
	_, done, err := s.transition(ctx, s.work, id, want{}, func(f *facts) (*swap, error) {
		r := f.req
		if r.status != Executing || r.executor != string(rules.AgentExecutor) || !f.ledger.leaseOver(f.now) {
			return nil, nil
		}
		who := claimant{actor: System, surface: SurfaceSystem}
		tool, no := f.registered(executionCheck{})
		if no == nil && tool.Retry == rules.Idempotent && f.spent(tool) == "" {
			look = &r.expiresAt
			return nil, nil
		}
		return f.doubt("the agent's lease ended without a report", who).swap, nil
	})
	switch {
	case errors.Is(err, ErrNotFound):
		return false, nil
	case err == nil && look != nil:
		_, err = s.work.Exec(ctx, sqlPutOff, id, *look)
		return false, unavailable(err)
	}
	return done, err
}
