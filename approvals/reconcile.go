package approvals

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

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

// statement of a first person, kept until the second one agrees.
type testimony struct {
	By       Actor  `json:"by"`
	Person   string `json:"person,omitempty"` // slack:U…
	Happened bool   `json:"happened"`
	Evidence string `json:"evidence"`
}

// ErrSecondPerson says that the rule asks for a second person who says the same.
var ErrSecondPerson = errors.New("noted; the rule asks for a second person, who must say the same")

// ErrNotUncertain says that there is nothing to reconcile.
var ErrNotUncertain = errors.New("the approval is not uncertain: nothing is to be reconciled")

// ErrTampered says that what was pressed is not the stored card: a forwarded, copied or made-up one.
var ErrTampered = errors.New("what was pressed is not the card that is stored")

// Reconcile records that an uncertain effect happened or did not, with evidence, in one transaction with its audit row; the run is
// told like of any other end. Where the rule asks for a second person, the first statement is kept and the second must agree; the two
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
	var people []string
	if person != "" {
		people = append(people, person)
	}
	var waiting bool
	v, done, err := s.transition(ctx, s.clicks, rq.ID, want{people: people}, func(f *facts) (*swap, error) {
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
		said := testimony{By: rq.By, Happened: rq.Happened, Evidence: evidence}
		if person != "" {
			said.Person = string(SlackActor(person))
		}
		body, err := json.Marshal(said)
		if err != nil {
			return nil, err
		}
		rule, ok := f.tenant.Rule(r.rule)
		if r.scope.SecondPerson || ok && rule.SecondPerson { // the stricter of the two
			if err := f.witness(person); err != nil {
				return nil, err
			}
			var first testimony
			known := json.Unmarshal(r.evidence, &first) == nil && first.Person != ""
			if !known || first.Happened != rq.Happened || first.By == rq.By || first.Person == said.Person {
				waiting = true
				w := r.moves(Uncertain, "evidence.first", rq.By, rq.Surface)
				w.evidence, w.wait, w.due, w.detail = body, waitEvidence, f.now.Add(firstLookup), said
				w.outbox = []string{OutboxCard}
				return w, nil
			}
		}
		return s.reconciled(f, rq, said, body)
	})
	switch {
	case err != nil:
		return v, err
	case !done:
		return v, ErrUnavailable
	case waiting:
		return v, ErrSecondPerson
	}
	s.metrics.Reconciled()
	return v, nil
}

// witness holds whoever makes one of two statements against the mirror: a Slack admin of the tenant, also where an operator names them.
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
