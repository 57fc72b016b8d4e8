package approvals

import (
	"context"
	"strings"
	"testing"
	"time"
)

// Every way in which an approved call ends before it runs: its reason code, no ledger row, and the run is told once (I2, I3).
func TestAuthorityLostBeforeTheClaim(t *testing.T) {
	t.Parallel()
	const deploys = "name: deploys, when: 'tool == \"deploy_release\" && args.environment == \"production\"', reviewers: {users: [U0ALICE], groups: [S0RELEASE]}, requesters: {groups: [S0ENG]}, decide_within: 4h, execute_within: 15m"
	save := func(u DirectoryUser) func(*world, View) {
		return func(w *world, _ View) { w.must(w.s.SaveUsers(w.ctx, "acme", []DirectoryUser{u})) }
	}
	change := func(pairs ...string) func(*world, View) { return func(w *world, _ View) { w.change(pairs...) } }
	tamper := func(sql string) func(*world, View) { return func(w *world, v View) { w.exec(sql, v.ApprovalID) } }
	for what, c := range map[string]struct {
		status Status
		reason Reason
		change func(*world, View)
	}{
		"the requester left":              {Revoked, ReasonRequesterInactive, save(person1(req, func(u *DirectoryUser) { u.Deleted = true }))},
		"the requester moved away":        {Revoked, ReasonRequesterInactive, save(person1(req, func(u *DirectoryUser) { u.TeamID = "T0ELSE" }))},
		"the requester became a guest":    {Revoked, ReasonRequesterInactive, save(person1(req, func(u *DirectoryUser) { u.Restricted = true }))},
		"… a guest of one channel":        {Revoked, ReasonRequesterInactive, save(person1(req, func(u *DirectoryUser) { u.Restricted, u.UltraRestricted = true, true }))},
		"… a stranger":                    {Revoked, ReasonRequesterInactive, save(person1(req, func(u *DirectoryUser) { u.Stranger = true }))},
		"… a bot":                         {Revoked, ReasonRequesterInactive, save(person1(req, func(u *DirectoryUser) { u.Bot = true }))},
		"… invited only":                  {Revoked, ReasonRequesterInactive, save(person1(req, func(u *DirectoryUser) { u.Invited = true }))},
		"the requester lost the role":     {Revoked, ReasonRequesterLostRole, func(w *world, _ View) { w.group("S0ENG", bob) }},
		"the role asks for another group": {Revoked, ReasonRequesterLostRole, change(deploys, "name: deploys, when: 'tool == \"deploy_release\" && args.environment == \"production\"', reviewers: {users: [U0ALICE], groups: [S0RELEASE]}, requesters: {groups: [S0ADMINS]}, decide_within: 4h, execute_within: 15m")},
		"the agent lost the tool":         {Revoked, ReasonAgentNotAllowed, change("tools: [deploy_release, issue_refund, send_mail, ", "tools: [issue_refund, send_mail, ")},
		"the key was revoked":             {Revoked, ReasonAgentNotAllowed, func(w *world, _ View) { w.must(w.s.RevokeKey(w.ctx, w.key.ID, OperatorActor("test"))) }},
		"the reviewer left":               {Revoked, ReasonReviewerLost, save(person1(bob, func(u *DirectoryUser) { u.Deleted = true }))},
		"the reviewer became a guest":     {Revoked, ReasonReviewerLost, save(person1(bob, func(u *DirectoryUser) { u.Restricted = true }))},
		"the reviewer left the group":     {Revoked, ReasonReviewerLost, func(w *world, _ View) { w.group("S0RELEASE", without("S0RELEASE", bob)...) }},
		"the rule names others":           {Revoked, ReasonReviewerLost, change("users: [U0ALICE], groups: [S0RELEASE]", "users: [U0ALICE]")},
		"the rule wants two":              {Revoked, ReasonPolicyChanged, change("execute_within: 15m", "execute_within: 15m, quorum: 2")},
		"the rule denies":                 {Revoked, ReasonPolicyChanged, change("name: deploys, when: 'tool ==", "name: freeze, when: 'tool == \"deploy_release\"', do: deny, message: \"Freeze.\"}\n      - {name: deploys, when: 'tool ==")},
		"no rule matches":                 {Revoked, ReasonPolicyChanged, change("when: 'tool == \"deploy_release\"", "when: 'false && tool == \"deploy_release\"")},
		"the condition errs":              {Revoked, ReasonPolicyChanged, change(`args.environment == "production"'`, `args.region == "eu"'`)},
		"the arguments were tampered":     {Revoked, ReasonDigestMismatch, tamper(`UPDATE approval_payload p SET arguments = (SELECT arguments FROM approval_payload q WHERE q.approval_id <> p.approval_id LIMIT 1) WHERE approval_id = $1`)},
		"the arguments were cut":          {Revoked, ReasonDigestMismatch, tamper(`UPDATE approval_payload SET arguments = substr(arguments, 1, 40) WHERE approval_id = $1`)},
		"the target was tampered":         {Revoked, ReasonDigestMismatch, tamper(`UPDATE approval_request SET target = 'service/else' WHERE approval_id = $1`)},
		"the snapshot was tampered":       {Revoked, ReasonDigestMismatch, tamper(`UPDATE approval_request SET snapshot = '{"title":"Nothing to see"}' WHERE approval_id = $1`)},
		"a vote is for another digest":    {Revoked, ReasonDigestMismatch, tamper(`UPDATE approval_decision SET digest = 'sha256-proposal-v1:00' WHERE approval_id = $1`)},
		"the execution came too late":     {Expired, ReasonExecuteExpired, func(w *world, v View) { w.overdue(v.ApprovalID) }},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.propose("send_mail", mail) // another row to tamper with
			v := w.propose("deploy_release", production)
			w.decide(v.ApprovalID, bob, Approve)
			c.change(w, v)
			w.refused(v.ApprovalID, string(c.status))
			got := w.want(v.ApprovalID, c.status, c.reason)
			if got.Ledger != nil || one[int](w, `SELECT count(*) FROM idempotency_ledger`) != 0 {
				t.Fatal("I2: the ledger has a row")
			}
			w.refused(v.ApprovalID, string(c.status))
			if n := w.outbox(OutboxResume, w.pauseOf(v.ApprovalID)); n != 1 {
				t.Fatalf("%d resume rows", n)
			}
		})
	}
}

// A version or a tool that is gone ends what waits, and the fresh proposal is linked to it.
func TestMigrationRequired(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	waits, decided, runs := w.propose("deploy_release", production), w.propose("deploy_release", production), w.propose("deploy_release", production)
	w.decide(decided.ApprovalID, alice, Approve)
	w.decide(runs.ApprovalID, alice, Approve)
	running := w.claim(runs.ApprovalID)
	fresh := w.change(`"Deploy {{.release}} to {{.environment}}"`, `"Ship {{.release}} to {{.environment}}"`)
	if len(fresh[0].Ended) != 2 {
		t.Fatalf("%d ended", len(fresh[0].Ended))
	}
	w.want(waits.ApprovalID, MigrationRequired, ReasonToolChanged)
	w.want(decided.ApprovalID, MigrationRequired, ReasonToolChanged)
	w.record(running, OutcomeSucceeded) // what has begun is recorded
	w.want(runs.ApprovalID, Completed, "")
	m, ok := w.told(w.pauseOf(waits.ApprovalID))
	if !ok || m.Type != RunBlocked || m.Data.State != nil || *m.Data.Decisions[0].ReasonCode != string(ReasonToolChanged) {
		t.Fatalf("told %s", m.raw)
	}
	// Proposed afresh in the same run, while the old pause is not told or after it: a new approval, linked.
	in := w.intake(call("call_1", "deploy_release", production))
	in.RunID, in.PauseKey = decided.RunID, "again"
	again := w.submit(in).Approvals[0]
	if again.ApprovalID == decided.ApprovalID || again.Status != Pending || again.ReplacesID == nil || *again.ReplacesID != decided.ApprovalID {
		t.Fatalf("proposed afresh: %s, replaces %v", again, again.ReplacesID)
	}
	w.decide(again.ApprovalID, alice, Approve)

	// The version is gone: I12.
	w.change(`"Deploy {{.release}} to {{.environment}}"`, `"Ship {{.release}} to {{.environment}}"`, "release-agent/v1:", "release-agent/v2:")
	w.want(again.ApprovalID, MigrationRequired, ReasonVersionUnregistered)
	m, ok = w.told(w.pauseOf(again.ApprovalID))
	if !ok || m.Type != RunBlocked || m.delivery.URL == "" {
		t.Fatalf("a run is not told of its version's removal: %v", ok)
	}
	// A run whose effect happened before its version was removed is told its result, without the state.
	m, ok = w.told(w.pauseOf(runs.ApprovalID))
	if !ok || m.Type != RunBlocked || m.Data.Decisions[0].Outcome != "succeeded" {
		t.Fatalf("told %s", m.raw)
	}
}

// The tool changed between the activation and the migration of what waits: the claim finds it.
func TestToolChangedAtTheClaim(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	v := w.propose("deploy_release", production)
	w.decide(v.ApprovalID, alice, Approve)
	_, err := w.s.applyTenant(w.ctx, w.parse(configuration, `"Deploy {{.release}} to`, `"Ship {{.release}} to`).Tenants["acme"], OperatorActor("test"))
	w.must(err)
	w.refused(v.ApprovalID, string(MigrationRequired))
	w.want(v.ApprovalID, MigrationRequired, ReasonToolChanged)
}

// The seed's other half: what cannot be read holds, and does not end (I4). A refresh comes before a hold is written.
func TestHeldByAnUnreadableDirectory(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	v := w.propose("deploy_release", production)
	w.decide(v.ApprovalID, bob, Approve)
	version := w.row(v.ApprovalID).Version
	w.age(claimAge + time.Second)
	w.dir.fails = true
	w.refused(v.ApprovalID, "held")
	held := w.row(v.ApprovalID)
	if held.Status != Approved || held.Held != ReasonAuthorityUnreadable || held.HeldSince == nil || held.Version != version+1 {
		t.Fatalf("held: %s %s", held, held.Held)
	}
	// Shown once: looking again writes no version and no audit row.
	for range 3 {
		w.refused(v.ApprovalID, "held")
	}
	if again := w.row(v.ApprovalID); again.Version != held.Version {
		t.Fatalf("a shown hold is written again: v%d, v%d", held.Version, again.Version)
	}
	if due := one[time.Time](w, `SELECT due_at FROM approval_open WHERE approval_id = $1`, v.ApprovalID); due.Before(time.Now()) {
		t.Fatal("nobody looks again")
	}
	w.dir.fails = false
	asked := w.dir.asked
	c := w.claim(v.ApprovalID)
	if lifted := w.row(v.ApprovalID); w.dir.asked == asked || lifted.Held != "" || lifted.Version != held.Version+1 {
		t.Fatalf("lifted after %d refreshes: %s, held %q", w.dir.asked-asked, lifted, lifted.Held)
	}
	w.record(c, OutcomeSucceeded)

	// A mirror that is merely old is refreshed before anything is written: no hold flickers over the card.
	v = w.propose("deploy_release", production)
	w.decide(v.ApprovalID, bob, Approve)
	w.age(claimAge + time.Second)
	w.claim(v.ApprovalID)
	if n := one[int](w, `SELECT count(*) FROM audit_event WHERE approval_id = $1 AND kind = 'execution.held'`, v.ApprovalID); n != 0 {
		t.Fatal("a hold was written before the refresh")
	}

	// What Slack says in that refresh counts: bob has left the group.
	v = w.propose("deploy_release", production)
	w.decide(v.ApprovalID, bob, Approve)
	w.age(claimAge + time.Second)
	w.dir.first = func() {
		w.must(w.s.SaveGroup(w.ctx, "acme", DirectoryGroup{GroupID: "S0RELEASE", Handle: "release", Enabled: true, Members: without("S0RELEASE", bob)}))
	}
	w.refused(v.ApprovalID, string(Revoked))
	w.want(v.ApprovalID, Revoked, ReasonReviewerLost)
}

// The kill switch and the window hold until execute_by, and let go.
func TestHeldByASwitchOrAWindow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	suspend := func(scope, name string, on bool) Suspension {
		t.Helper()
		out, err := w.s.Suspend(w.ctx, SuspendRequest{Tenant: "acme", By: SlackActor(root), Surface: SurfaceCommand, Scope: scope, Name: name, Reason: "incident", Active: on})
		w.must(err)
		return out
	}
	for scope, name := range map[string]string{"tenant": "", "agent": "release-agent", "tool": "deploy_release"} {
		running := w.propose("deploy_release", staging)
		w.claim(running.ApprovalID)
		v := w.propose("deploy_release", production)
		w.decide(v.ApprovalID, alice, Approve)
		if met := suspend(scope, name, true); len(met.InFlight) == 0 || len(met.WouldStart) != 1 {
			t.Fatalf("%s: %d in flight, %d would start", scope, len(met.InFlight), len(met.WouldStart))
		}
		w.refused(v.ApprovalID, "held")
		f, err := w.s.CardFacts(w.ctx, v.ApprovalID)
		w.must(err)
		if f.Held != ReasonPaused || f.HeldBy != "slack:"+root || !strings.HasPrefix(f.HeldDetail, scope) || !strings.HasSuffix(f.HeldDetail, name+": incident") {
			t.Fatalf("%s: held %q by %q: %q", scope, f.Held, f.HeldBy, f.HeldDetail)
		}
		other := w.propose("deploy_release", production) // intake and decisions go on
		w.decide(other.ApprovalID, alice, Approve)
		if scope != "tenant" {
			mailed := w.propose("send_mail", mail)
			w.decide(mailed.ApprovalID, alice, Approve)
			if scope == "tool" {
				w.done(mailed.ApprovalID)
			}
			w.s.mustRevoke(w, mailed.ApprovalID)
		}
		w.drain()
		suspend(scope, name, false)
		if rep := w.sweep(); rep.Rung == 0 {
			t.Fatalf("%s: lifting it rings nobody", scope)
		}
		w.done(v.ApprovalID)
		w.done(other.ApprovalID)
	}
	// A hold ends at execute_by.
	v := w.propose("deploy_release", production)
	w.decide(v.ApprovalID, alice, Approve)
	suspend("tool", "deploy_release", true)
	w.refused(v.ApprovalID, "held")
	w.overdue(v.ApprovalID)
	w.sweep()
	w.want(v.ApprovalID, Expired, ReasonExecuteExpired)
	// Lifting works also when the tool has left the configuration.
	suspend("tool", "deploy_release", false)
}

func (s *Service) mustRevoke(w *world, id ID) {
	w.t.Helper()
	_, err := s.Revoke(w.ctx, RevokeRequest{Tenant: "acme", By: SlackActor(root), Surface: SurfaceCommand, Select: Selector{ID: id}, Reason: "over"})
	w.must(err)
}

func TestHeldByAWindow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	now := one[time.Time](w, `SELECT clock_timestamp()`).UTC()
	closed := now.Add(6 * time.Hour) // a window of an hour that opens in six
	window := "execute_within: 15m, window: {from: \"" + closed.Format("15:04") + "\", to: \"" + closed.Add(time.Hour).Format("15:04") + "\", zone: UTC}"
	w.change("execute_within: 15m", window)
	v := w.propose("deploy_release", production)
	w.decide(v.ApprovalID, alice, Approve)
	opens := closed.Truncate(time.Minute)
	if got := w.row(v.ApprovalID).ExpiresAt; !got.Equal(opens.Add(15 * time.Minute)) {
		t.Fatalf("execute_by %s, want 15 min after the opening at %s", got, opens)
	}
	w.refused(v.ApprovalID, "held")
	if held := w.row(v.ApprovalID); held.Held != ReasonWindowClosed || held.Status != Approved {
		t.Fatalf("%s held %q", held, held.Held)
	}
	f, err := w.s.CardFacts(w.ctx, v.ApprovalID)
	w.must(err)
	if f.Held != ReasonWindowClosed || f.HeldUntil == nil || !f.HeldUntil.Equal(opens) {
		t.Fatalf("held %q until %v, want %s", f.Held, f.HeldUntil, opens)
	}
	if w.sweep().Rung != 0 {
		t.Fatal("it is looked at before the window opens")
	}
	w.drain()
	w.change() // the window is lifted: the next sweep rings
	if w.sweep().Rung != 1 {
		t.Fatal("a configuration that opens the window rings nobody")
	}
	w.done(v.ApprovalID)
}

// Conditions look at the requester's groups: these must be fresh, too, and are mirrored.
func TestConditionsOverGroups(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	w.group("S0ONCALL", req)
	w.change("name: small-refunds, when: 'tool == \"issue_refund\"'", "name: small-refunds, when: 'tool == \"issue_refund\" && \"S0ONCALL\" in requester.groups'")
	targets, err := w.s.DirectoryTargets(w.ctx)
	w.must(err)
	if len(targets) != 1 || !contains(targets[0].Groups, "S0ONCALL") {
		t.Fatalf("mirrored: %v", targets)
	}
	v := w.propose("issue_refund", refund5)
	w.age(claimAge + time.Second)
	w.dir.fails = true
	if r := w.agentRefused(v.ApprovalID, CodeNotExecutable); r.State != "held" {
		t.Fatalf("state %q", r.State)
	}
	w.dir.fails = false
	w.group("S0ONCALL")
	if r := w.agentRefused(v.ApprovalID, CodeForbidden); r.Reason != ReasonPolicyChanged {
		t.Fatalf("reason %q", r.Reason)
	}
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// I3, I4: a group that a condition asks for is locked under a claim even when the requester is not in it: nobody joins it between the
// reading and the commit.
func TestConditionsLockTheirGroups(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	w.group("S0CONTRACT")
	w.change("name: small-refunds, when: 'tool == \"issue_refund\"'", "name: small-refunds, when: 'tool == \"issue_refund\" && !(\"S0CONTRACT\" in requester.groups)'")
	v := w.propose("issue_refund", refund5)
	c, err := w.s.work.Acquire(w.ctx)
	w.must(err)
	defer c.Release()
	f, err := w.s.begin(w.ctx, c.Conn(), v.ApprovalID, want{payload: true})
	w.must(err)
	joined := make(chan error, 1)
	go func() {
		joined <- w.s.SaveGroup(context.WithoutCancel(w.ctx), "acme", DirectoryGroup{GroupID: "S0CONTRACT", Enabled: true, Members: []string{req}})
	}()
	w.until("the joining waits for the claim", func() bool { return w.waiting() == 1 })
	if got := f.unread(v.Requester, claimAge); len(got) != 0 {
		t.Fatalf("unread: %v", got)
	}
	_, err = c.Exec(w.ctx, "ROLLBACK")
	w.must(err)
	w.must(<-joined)
	if r := w.agentRefused(v.ApprovalID, CodeForbidden); r.Reason != ReasonPolicyChanged {
		t.Fatalf("reason %q", r.Reason)
	}
}
