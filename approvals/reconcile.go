package approvals

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/holdpoint/holdpoint/approvals/seal"
	"github.com/holdpoint/holdpoint/approvals/secret"
)

// ReconcileRequest ends an uncertain operation by a person's evidence. An agent's key never reconciles.
type ReconcileRequest struct {
	Tenant   string
	By       Actor
	Surface  Surface
	ID       ID
	Happened bool
	Evidence string
}

// statement of a first person, kept until the second one agrees.
type testimony struct {
	By       Actor  `json:"by"`
	Happened bool   `json:"happened"`
	Evidence string `json:"evidence"`
}

// ErrSecondPerson says that the rule asks for a second person who says the same.
var ErrSecondPerson = errors.New("noted; the rule asks for a second person, who must say the same")

// ErrNotUncertain says that there is nothing to reconcile.
var ErrNotUncertain = errors.New("the approval is not uncertain: nothing is to be reconciled")

// Reconcile records that an uncertain effect happened or did not, with evidence, in one transaction with its audit row; the run is
// told like of any other end. Where the rule asks for a second person, the first statement is kept and the second must agree.
func (s *Service) Reconcile(ctx context.Context, rq ReconcileRequest) (View, error) {
	evidence := secret.Mask(strings.TrimSpace(rq.Evidence))
	if evidence == "" {
		return View{}, refuse(CodeInvalidRequest, "say what shows it: a link, a receipt, a query; the evidence is audited")
	}
	if strings.HasPrefix(string(rq.By), "agent:") {
		return View{}, ErrNotAdmin
	}
	var waiting bool
	v, done, err := s.transition(ctx, s.clicks, rq.ID, want{}, func(f *facts) (*swap, error) {
		r := f.req
		if r.tenant != rq.Tenant {
			return nil, ErrNotFound
		}
		if r.status != Uncertain {
			return nil, ErrNotUncertain
		}
		said := testimony{rq.By, rq.Happened, evidence}
		body, err := json.Marshal(said)
		if err != nil {
			return nil, err
		}
		rule, ok := f.tenant.Rule(r.rule)
		if r.scope.SecondPerson || ok && rule.SecondPerson { // the stricter of the two
			var first testimony
			known := json.Unmarshal(r.evidence, &first) == nil && first.By != ""
			if !known || first.Happened != rq.Happened || first.By == rq.By {
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
