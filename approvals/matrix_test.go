package approvals

import (
	"encoding/json"
	"errors"
	"testing"
)

// subject is a call that stands in a status, with the lease of its last claim where there is one.
type subject struct {
	id    ID
	lease Lease
	run   string
}

// reach brings a fresh call to a status, through the public interface.
func (w *world) reach(s Status) subject {
	w.t.Helper()
	tool, arguments := "deploy_release", production
	if s == Responded {
		tool, arguments = "ask_user", question
	}
	v := w.propose(tool, arguments)
	out := subject{id: v.ApprovalID, run: v.RunID, lease: Lease{ID: v.ApprovalID, Tenant: "acme", Token: NewDecisionID(), Epoch: 1}}
	claimed := func() Claim {
		w.decide(out.id, alice, Approve)
		c := w.claim(out.id)
		out.lease = c.Lease
		return c
	}
	switch s {
	case Approved:
		w.decide(out.id, alice, Approve)
	case Rejected:
		w.decide(out.id, alice, Reject)
	case Edited:
		w.decide(out.id, alice, Edit, with(editedProduction))
	case Responded:
		w.decide(out.id, alice, Respond, func(rq *DecideRequest) { rq.Answer = "eu" })
	case Expired:
		w.overdue(out.id)
		w.sweep()
	case Revoked:
		w.revoke(Selector{ID: out.id})
	case MigrationRequired:
		w.change("Deploy {{.release}} to", "Ship {{.release}} to")
		w.change()
	case Executing:
		claimed()
	case Completed:
		w.record(claimed(), OutcomeSucceeded)
	case Failed:
		w.record(claimed(), OutcomeRefused)
	case Uncertain:
		c := claimed()
		w.exec(`UPDATE idempotency_ledger SET first_sent_at = clock_timestamp() - interval '2 days' WHERE approval_id = $1`, out.id)
		w.record(c, OutcomeUnknown)
	}
	if got := w.row(out.id); got.Status != s {
		w.t.Fatalf("reached %s, want %s", got.Status, s)
	}
	return out
}

// Every event at every status, legal and illegal, through the public interface (I9): what happens, and that nothing else does.
func TestEveryEventAtEveryStatus(t *testing.T) {
	t.Parallel()
	decision := func(verb Verb) func(*world, subject) {
		return func(w *world, s subject) {
			r, err := w.s.Decide(w.ctx, w.click(s.id, alice, verb, func(rq *DecideRequest) { rq.Answer, rq.Arguments = "eu", []byte(editedProduction) }))
			w.must(err)
			if got := w.row(s.id); r.Applied == (r.Denial != nil) || r.View.Status != got.Status || r.View.Version != got.Version {
				w.t.Errorf("%s: told %s, is %s", verb, r.View, got)
			}
		}
	}
	allow := func(errs ...error) func(*world, error) {
		return func(w *world, err error) {
			var r *Refusal
			for _, e := range errs {
				if errors.Is(err, e) {
					return
				}
			}
			if err != nil && !errors.As(err, &r) {
				w.t.Error(err)
			}
		}
	}
	events := []struct {
		name  string
		do    func(*world, subject)
		leads map[Status]Status // statuses that are not named stay
		flags []Status          // stay, with a new version
	}{
		{"approve", decision(Approve), map[Status]Status{Pending: Approved}, nil},
		{"reject", decision(Reject), map[Status]Status{Pending: Rejected}, nil},
		{"edit", decision(Edit), map[Status]Status{Pending: Edited}, nil},
		{"respond", decision(Respond), nil, nil},
		{"revoke", func(w *world, s subject) { w.revoke(Selector{ID: s.id}) }, map[Status]Status{Pending: Revoked, Approved: Revoked}, []Status{Executing}},
		{"withdraw", func(w *world, s subject) {
			_, err := w.s.Withdraw(w.ctx, w.key, s.id, "no")
			w.must(err)
		}, map[Status]Status{Pending: Revoked, Approved: Revoked}, []Status{Executing}},
		{"a worker claims", func(w *world, s subject) { w.claimAny(s.id) }, map[Status]Status{Approved: Executing}, nil},
		{"an agent claims", func(w *world, s subject) {
			_, err := w.s.ClaimForAgent(w.ctx, w.key, s.id, AgentClaim{AttemptID: "x"})
			allow()(w, err)
		}, nil, nil},
		{"success is reported", func(w *world, s subject) {
			_, err := w.s.Record(w.ctx, s.lease, Outcome{Class: OutcomeSucceeded, Output: json.RawMessage(`1`)})
			allow(ErrStale)(w, err)
		}, map[Status]Status{Executing: Completed, Uncertain: Completed}, nil},
		{"a refusal is reported", func(w *world, s subject) {
			_, err := w.s.Record(w.ctx, s.lease, Outcome{Class: OutcomeRefused})
			allow(ErrStale)(w, err)
		}, map[Status]Status{Executing: Failed}, []Status{Uncertain}},
		{"an unsent try is reported", func(w *world, s subject) {
			_, err := w.s.Record(w.ctx, s.lease, Outcome{Class: OutcomeUnsent})
			allow(ErrStale)(w, err)
		}, map[Status]Status{Executing: Approved}, []Status{Uncertain}},
		{"an unknown outcome is reported", func(w *world, s subject) {
			_, err := w.s.Record(w.ctx, s.lease, Outcome{Class: OutcomeUnknown})
			allow(ErrStale)(w, err)
		}, nil, []Status{Executing}},
		{"a stale holder reports", func(w *world, s subject) {
			s.lease.Epoch++
			_, err := w.s.Record(w.ctx, s.lease, Outcome{Class: OutcomeSucceeded, Output: json.RawMessage(`1`)})
			if !errors.Is(err, ErrStale) {
				w.t.Errorf("a stale holder: %v", err)
			}
		}, nil, nil},
		{"its deadline passes", func(w *world, s subject) {
			w.overdue(s.id)
			w.sweep()
		}, map[Status]Status{Pending: Expired, Approved: Expired}, nil},
		{"its lease ends and a worker claims", func(w *world, s subject) {
			w.expireLease(s.id)
			w.claimAny(s.id)
		}, map[Status]Status{Approved: Executing}, []Status{Executing}},
		{"it is reconciled", func(w *world, s subject) {
			_, err := w.s.Reconcile(w.ctx, ReconcileRequest{Tenant: "acme", By: SlackActor(root), Surface: SurfaceCLI, ID: s.id, Happened: true, Evidence: "log"})
			allow(ErrNotUncertain)(w, err)
		}, map[Status]Status{Uncertain: Completed}, nil},
		{"another intake leaves it out", func(w *world, s subject) {
			in := w.intake(call("call_9", "send_mail", mail))
			in.RunID = s.run
			_, err := w.s.Submit(w.ctx, w.key, in)
			allow()(w, err)
		}, map[Status]Status{Pending: Revoked, Approved: Revoked}, nil},
		{"its requester is blocked", func(w *world, s subject) {
			w.must(w.block(req))
			w.unblock(req)
		}, map[Status]Status{Pending: Revoked, Approved: Revoked}, nil},
		{"its tool changes", func(w *world, _ subject) {
			w.change("Deploy {{.release}} to", "Ship {{.release}} to")
			w.change()
		}, map[Status]Status{Pending: MigrationRequired, Approved: MigrationRequired}, nil},
	}
	for _, from := range Statuses {
		t.Run(string(from), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			defer w.check()
			for _, e := range events {
				s := w.reach(from)
				before := w.row(s.id)
				e.do(w, s)
				after := w.row(s.id)
				want, moves := e.leads[from]
				if !moves {
					want = from
				}
				for _, f := range e.flags {
					moves = moves || f == from
				}
				if after.Status != want || (after.Version != before.Version) != moves {
					t.Errorf("%s at %s: %s v%d, want %s, a new version: %v (was v%d)", e.name, from, after.Status, after.Version, want, moves, before.Version)
				}
				if want != from && !from.CanBecome(want) {
					t.Errorf("%s leads from %s to %s, which the table does not have", e.name, from, want)
				}
			}
		})
	}
}
