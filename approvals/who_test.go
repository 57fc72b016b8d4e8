package approvals

import (
	"errors"
	"fmt"
	"testing"
)

// everybody is each kind of person that there is to a tenant.
var everybody = []string{alice, bob, carol, dave, req, root, second, guest, ultra, ext, robot, gone, invited, other, blocked, nobody}

// teamOf is the workspace that Slack names with a person's click.
func teamOf(user string) string {
	if user == ext || user == other {
		return "T0ELSE"
	}
	return team
}

// Every kind of person at every act, through the public interface: the answer of each cell, and that a refused act changes nothing (I4, I5, I8).
func TestEverybodyAtEveryAct(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	w.must(w.block(blocked))

	// Of a deployment: the rule's people, but who asked for it; of a question: alice alone. "" is yes.
	deploy := map[string]DenialKind{
		alice: "", bob: "", carol: "", dave: DenyNotReviewer, req: DenyRequester, root: DenyNotReviewer, second: DenyNotReviewer, guest: DenyIneligible, ultra: DenyIneligible,
		ext: DenyIneligible, robot: DenyIneligible, gone: DenyIneligible, invited: DenyIneligible, other: DenyIneligible, blocked: DenyBlocked, nobody: DenyUncheckable,
	}
	answer := map[string]DenialKind{
		alice: "", bob: DenyNotReviewer, carol: DenyNotReviewer, dave: DenyNotReviewer, req: DenyNotReviewer, root: DenyNotReviewer, second: DenyNotReviewer, guest: DenyNotReviewer,
		ultra: DenyNotReviewer, ext: DenyIneligible, robot: DenyNotReviewer, gone: DenyNotReviewer, invited: DenyNotReviewer, other: DenyIneligible, blocked: DenyBlocked, nobody: DenyNotReviewer,
	}
	// An edited call: the same people, but who edited it (bob) does not approve it; rejecting it they may.
	approvesEdit, rejectsEdit := map[string]DenialKind{}, deploy
	for user, d := range deploy {
		approvesEdit[user] = d
	}
	approvesEdit[bob] = DenyEditor

	fresh := func() ID { return w.propose("deploy_release", production).ApprovalID }
	edited := func() ID { return w.decide(fresh(), bob, Edit, with(editedProduction)).Child.ApprovalID }
	asked := func() ID { return w.propose("ask_user", question).ApprovalID }
	for _, c := range []struct {
		what  string
		verb  Verb
		fresh func() ID
		want  map[string]DenialKind
		ends  Status
	}{
		{"approve", Approve, fresh, deploy, Approved},
		{"reject", Reject, fresh, deploy, Rejected},
		{"edit", Edit, fresh, deploy, Edited},
		{"approve an edited one", Approve, edited, approvesEdit, Approved},
		{"reject an edited one", Reject, edited, rejectsEdit, Rejected},
		{"answer", Respond, asked, answer, Responded},
		{"reject a question", Reject, asked, answer, Rejected},
		{"answer what is no question", Respond, fresh, everyone(deploy, DenyVerb), ""},
		{"approve a question", Approve, asked, everyone(answer, DenyVerb), ""},
	} {
		id := c.fresh()
		for _, user := range everybody {
			want, known := c.want[user]
			if !known {
				t.Fatalf("%s: no cell for %s", c.what, user)
			}
			click := func(rq *DecideRequest) {
				rq.By.TeamID, rq.Answer, rq.Arguments = teamOf(user), "eu", fmt.Appendf(nil, `{"release":"2026.08.%s","environment":"production"}`, user)
			}
			if want != "" {
				w.denied(id, user, c.verb, want, click)
				continue
			}
			if w.decide(id, user, c.verb, click); w.row(id).Status != c.ends {
				t.Errorf("%s by %s: it is %s", c.what, user, w.row(id).Status)
			}
			id = c.fresh()
		}
	}

	// What stops, starts or settles something is for admins, who are nothing more.
	uncertain := func() ID { return w.reach(Uncertain).id }
	as := func(act func(Actor, ID) error) func(string, ID) error {
		return func(user string, id ID) error {
			by, err := w.s.Admin(w.ctx, "acme", Reviewer{user, teamOf(user)})
			if err != nil {
				return err
			}
			return act(by, id)
		}
	}
	suspend := func(on bool) func(Actor, ID) error {
		return func(by Actor, _ ID) error {
			_, err := w.s.Suspend(w.ctx, SuspendRequest{Tenant: "acme", By: by, Surface: SurfaceCommand, Scope: "tool", Name: "drop_table", Reason: "why", Active: on})
			return err
		}
	}
	blocks := func(on bool) func(Actor, ID) error {
		return func(by Actor, _ ID) error {
			_, err := w.s.Block(w.ctx, BlockRequest{Tenant: "acme", By: by, Surface: SurfaceCommand, UserID: "U0VICTIM", Reason: "why", Blocked: on})
			return err
		}
	}
	for _, c := range []struct {
		what  string
		fresh func() ID
		act   func(string, ID) error
		ends  Status
	}{
		{"reconcile", uncertain, as(func(by Actor, id ID) error {
			_, err := w.s.Reconcile(w.ctx, ReconcileRequest{Tenant: "acme", By: by, Surface: SurfaceModal, ID: id, Happened: true, Evidence: "seen"})
			return err
		}), Completed},
		{"revoke", fresh, as(func(by Actor, id ID) error {
			_, err := w.s.Revoke(w.ctx, RevokeRequest{Tenant: "acme", By: by, Surface: SurfaceCommand, Select: Selector{ID: id}, Reason: "why"})
			return err
		}), Revoked},
		{"pause", fresh, as(suspend(true)), Pending},
		{"unpause", fresh, as(suspend(false)), Pending},
		{"block", fresh, as(blocks(true)), Pending},
		{"unblock", func() ID { w.must(blocks(true)(SlackActor(root), ID{})); return fresh() }, as(blocks(false)), Pending},
	} {
		id := c.fresh()
		for _, user := range everybody {
			before := w.dump()
			err := c.act(user, id)
			if user == root || user == second {
				if err != nil || w.row(id).Status != c.ends {
					t.Errorf("%s by %s: %v, it is %s", c.what, user, err, w.row(id).Status)
				}
				id = c.fresh()
				continue
			}
			if !errors.Is(err, ErrNotAdmin) || w.dump() != before {
				t.Errorf("%s by %s: %v; changed something: %v", c.what, user, err, w.dump() != before)
			}
		}
	}
}

// A group that a condition asks for and that is not known well enough holds the claim, although everybody's person is: "not in it" would be a
// guess (I4).
func TestConditionsOverAStaleGroup(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	w.group("S0CONTRACT")
	w.change("name: small-refunds, when: 'tool == \"issue_refund\"'", "name: small-refunds, when: 'tool == \"issue_refund\" && !(\"S0CONTRACT\" in requester.groups)'")
	v := w.propose("issue_refund", refund5)
	w.exec(`UPDATE slack_group SET synced_at = synced_at - interval '2 minutes' WHERE group_id = 'S0CONTRACT'`)
	w.dir.fails = true
	if r := w.agentRefused(v.ApprovalID, CodeNotExecutable); r.State != "held" {
		t.Fatalf("state %q", r.State)
	}
	w.group("S0CONTRACT")
	w.agentClaim(v.ApprovalID, "1")
}

// everyone is want, with another answer for those who may.
func everyone(want map[string]DenialKind, instead DenialKind) map[string]DenialKind {
	out := map[string]DenialKind{}
	for user, d := range want {
		if d == "" || d == DenyRequester {
			d = instead
		}
		out[user] = d
	}
	return out
}

// Who may be behind a call, at the intake: full, active members, whatever list or group names somebody else.
func TestWhoMayBeBehindACall(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	w.must(w.block(blocked))
	w.group("S0ENG", everybody...)
	w.group("S0ONCALL", everybody...)
	names := "[U0ALICE, U0GUEST, U0ULTRA, U0EXT, U0ROBOT, U0GONE, U0INVITED, U0OTHER, U0BLOCKED, U0NOBODY]"
	for rule, pairs := range map[string][]string{
		"by group": {}, "by name": {"requesters: {groups: [S0ENG]}", "requesters: {users: " + names + "}"},
		"by a condition": {"args.amount > 50'", `args.amount > 50 && "S0ONCALL" in requester.groups'`},
		"anybody":        {", requesters: {groups: [S0ENG]}", ""},
	} {
		w.change(pairs...)
		for _, user := range everybody {
			in := w.intake(call("a", "deploy_release", production))
			if rule == "by a condition" {
				in = w.intake(call("a", "issue_refund", bigRefund))
			}
			in.Requester = "slack:" + user
			_, err := w.s.Submit(w.ctx, w.key, in)
			full := user == alice || rule != "by name" && contains([]string{bob, carol, dave, req, root, second}, user)
			var no *Refusal
			switch {
			case full && err != nil:
				t.Errorf("%s: %s: %v", rule, user, err)
			case !full && (!errors.As(err, &no) || no.Code != CodeUnknownRequester && (rule != "by name" || no.Code != CodeToolNotAllowed)):
				t.Errorf("%s: %s: %v", rule, user, err)
			}
		}
	}
	// A group of theirs is none to a condition: a guest is not on call, and a contractor without standing is no way around a rule.
	f, err := w.s.people(w.ctx, w.s.clicks, "acme", everybody...)
	w.must(err)
	for _, user := range everybody {
		full := contains([]string{alice, bob, carol, dave, req, root, second}, user)
		if got := f.groupsOf(user); (len(got) > 0) != full {
			t.Errorf("%s is in %v", user, got)
		}
	}
}
