package approvals

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdpoint/holdpoint/approvals/seal"
)

// ReconcileRequest ends an uncertain operation by a person's evidence. An agent's key never reconciles.
type ReconcileRequest struct {
	Tenant   string
	By       Actor
	Surface  Surface
	ID       ID
	Happened bool
	Evidence string
	// Person is the Slack user id of whoever makes the statement, where By is an operator's name: who an operator is, Slack can't tell, and
	// the same human must not count twice. It must be an admin's.
	Person string
	// Press is the press that led to it, where it was a form's: it must be of the stored card.
	Press *Press
}

// Press is a button as pressed on a card, or as a form that it opened remembers it.
type Press struct {
	Button    Button
	Channel   string // of the card
	MessageTS string
}

// testimony is one person's latest statement, kept until a second one agrees. The row has a list of them, one of each person.
type testimony struct {
	By       Actor     `json:"by"`
	Person   string    `json:"person,omitempty"` // slack:U…
	Happened bool      `json:"happened"`
	Evidence string    `json:"evidence"`
	At       time.Time `json:"at"`
}

// ErrSecondPerson says that the rule asks for a second person who says the same; a *SecondPersonError says how it stands.
var ErrSecondPerson = errors.New("noted; the rule asks for a second person, who must say the same")

// SecondPersonError is ErrSecondPerson with what keeps the statement from settling it.
type SecondPersonError struct {
	Opposite string // the Slack id of an admin who said the opposite; empty: nobody
	Repeated bool   // whoever makes the statement has made it already
}

func (e *SecondPersonError) Error() string {
	switch {
	case e.Opposite != "":
		return "noted; @" + e.Opposite + " said the opposite: it is settled when two admins say the same"
	case e.Repeated:
		return "you have said so already; a second admin must say it"
	}
	return ErrSecondPerson.Error()
}

// Unwrap makes it an ErrSecondPerson.
func (e *SecondPersonError) Unwrap() error { return ErrSecondPerson }

// ErrNotUncertain says that there is nothing to reconcile.
var ErrNotUncertain = errors.New("the approval is not uncertain: nothing is to be reconciled")

// ErrTampered says that what was pressed is not the stored card: a forwarded, copied or made-up one.
var ErrTampered = errors.New("what was pressed is not the card that is stored")

// Reconcile records that an uncertain effect happened or did not, with evidence, in one transaction with its audit row; the run is
// told like of any other end. Where the rule asks for a second person, each person's latest statement is kept, and two of them must agree; they
// are different Slack people, whatever ways they come by, and two operators' names apart where both come from a shell.
func (s *Service) Reconcile(ctx context.Context, rq ReconcileRequest) (View, error) {
	evidence := said(rq.Evidence)
	if evidence == "" {
		return View{}, refuse(CodeInvalidRequest, "say what shows it: a link, a receipt, a query; the evidence is audited")
	}
	if strings.HasPrefix(string(rq.By), "agent:") {
		return View{}, ErrNotAdmin
	}
	person := slackUser(string(rq.By))
	if person == "" && rq.Person != "" {
		if err := personID(rq.Person); err != nil {
			return View{}, err
		}
		person = rq.Person
	}
	for try := 0; ; try++ {
		v, err := s.testify(ctx, rq, person, evidence)
		if !errors.Is(err, errUnseen) {
			return v, err
		}
		if try == 3 {
			return v, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
	}
}

// errUnseen says that somebody else made a statement since the people of the transaction were chosen.
var errUnseen = errors.New("another statement was made meanwhile")

var sqlReadEvidence = statement(`SELECT coalesce(evidence, '[]') FROM approval_request WHERE approval_id = $1 AND tenant_id = $2`)

// testify makes one statement, with everybody who made one before held against the mirror under the same locks.
func (s *Service) testify(ctx context.Context, rq ReconcileRequest, person, evidence string) (View, error) {
	var before []byte
	if err := noRows(s.clicks.QueryRow(ctx, sqlReadEvidence, rq.ID, rq.Tenant).Scan(&before)); err != nil {
		return View{}, unavailable(err)
	}
	var people []string
	if person != "" {
		people = append(people, person)
	}
	for _, t := range testimonies(before) {
		people = append(people, slackUser(t.Person))
	}
	var waiting *SecondPersonError
	v, done, err := s.transition(ctx, s.clicks, rq.ID, want{people: people, blocks: true}, func(f *facts) (*swap, error) {
		r := f.req
		if r.tenant != rq.Tenant {
			return nil, ErrNotFound
		}
		if p := rq.Press; p != nil && (p.Button.ID != r.id || f.bound(p.Button, p.Channel, p.MessageTS) != "" || p.Button.DigestPrefix != shortDigest(r.digest)) {
			return nil, ErrTampered
		}
		if r.status != Uncertain {
			return nil, ErrNotUncertain
		}
		rule, ok := f.tenant.Rule(r.rule)
		second := r.scope.SecondPerson || ok && rule.SecondPerson // the stricter of the two
		if person != "" || second {
			if err := f.witness(person); err != nil {
				return nil, err
			}
		}
		said := testimony{By: rq.By, Happened: rq.Happened, Evidence: evidence, At: f.now}
		if person != "" {
			said.Person = string(SlackActor(person))
		}
		all := testimonies(r.evidence)
		if slices.ContainsFunc(all, func(t testimony) bool { return !slices.Contains(people, slackUser(t.Person)) }) {
			return nil, errUnseen
		}
		no := f.alone(said, all)
		all = append(slices.DeleteFunc(all, func(t testimony) bool { return t.Person == said.Person }), said)
		body, err := json.Marshal(all)
		if err != nil {
			return nil, err
		}
		if second && no != nil {
			waiting = no
			w := r.moves(Uncertain, "evidence.first", rq.By, rq.Surface)
			w.evidence, w.wait, w.due, w.detail = body, waitEvidence, f.now.Add(firstLookup), said
			w.outbox = []string{OutboxCard}
			return w, nil //nolint:nilerr // it is noted, and who said it is told that somebody else must say it, too
		}
		return s.reconciled(f, rq, said, body)
	})
	switch {
	case err != nil:
		return v, err
	case !done:
		return v, ErrUnavailable
	case waiting != nil:
		return v, waiting
	}
	s.metrics.Reconciled()
	return v, nil
}

// testimonies are the statements that a row keeps; what can't be read is none.
func testimonies(evidence []byte) []testimony {
	var all []testimony
	if json.Unmarshal(evidence, &all) != nil {
		return nil
	}
	return slices.DeleteFunc(all, func(t testimony) bool { return t.Person == "" })
}

// alone says why a statement is not yet two people's; nil when one of the others' agrees. A statement counts while its person may make it,
// and until a block, also a lifted one; the others' stay in the row and count for nothing.
func (f *facts) alone(said testimony, all []testimony) *SecondPersonError {
	out := &SecondPersonError{}
	for _, t := range all {
		user := slackUser(t.Person)
		switch blocked, ever := f.blockedAt[user]; {
		case f.witness(user) != nil || ever && !blocked.Before(t.At):
		case t.Person == said.Person || t.By == said.By: // one voice, whichever way it comes
			out.Repeated = out.Repeated || t.Happened == said.Happened
		case t.Happened == said.Happened:
			return nil
		default:
			out.Opposite = user
		}
	}
	return out
}

var sqlReadBlocks = statement(`SELECT b.user_id, b.at FROM blocked_user b WHERE b.tenant_id = (SELECT tenant_id FROM approval_request WHERE approval_id = $1) AND b.user_id = ANY ($2)`)

func (f *facts) scanBlocks(rows pgx.Rows) error {
	f.blockedAt = map[string]time.Time{}
	for rows.Next() {
		var user string
		var at time.Time
		if err := rows.Scan(&user, &at); err != nil {
			return err
		}
		f.blockedAt[user] = at
	}
	return rows.Err()
}

// witness holds a person who makes a statement against the mirror: a Slack admin of the tenant, also where an operator names them.
func (f *facts) witness(person string) error {
	if person == "" {
		return refuse(CodeInvalidRequest, "the rule asks for two people: say which Slack person makes this statement (--slack-user U…); nothing was changed")
	}
	g, known := f.granted(person, f.tenant.Admins, decideAge)
	switch no := f.eligible(person, decideAge); {
	case no == DenyUncheckable, no == "" && g == nil && !known:
		return ErrUncheckable
	case no != "" || g == nil:
		return ErrNotAdmin
	}
	return nil
}

func (s *Service) reconciled(f *facts, rq ReconcileRequest, said testimony, body []byte) (*swap, error) {
	r, l := f.req, f.ledger
	to, state, kind := Failed, FailedTerminal, "evidence.did_not_happen"
	if rq.Happened {
		to, state, kind = Completed, Succeeded, "evidence.happened"
	}
	w := r.moves(to, kind, rq.By, rq.Surface)
	w.ledger = &ledgerSet{token: l.token, epoch: l.epoch, from: []LedgerState{Unknown}, to: state}
	w.evidence, w.detail, w.settle, w.outbox = body, said, true, []string{OutboxCard}
	if !rq.Happened {
		w.reason = ReasonNoEffect
		return w, nil
	}
	result, err := marshal(map[string]any{"reconciled": true, "evidence": said.Evidence})
	if err != nil {
		return nil, err
	}
	w.receipt = "reconciled by a person"
	w.result, err = s.sealed(result, seal.ResultAAD(r.tenant, r.id.String()))
	return w, err
}
