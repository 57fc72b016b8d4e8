package approvals

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// The same intake is the same pause, whatever has become of it (I21).
func TestRepeatedIntake(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	in := w.intake(call("call_1", "deploy_release", production), call("call_2", "ask_user", question))
	first := w.submit(in)
	again := w.submit(in)
	if !again.Repeat || again.Pause != 1 || again.RunID != in.RunID || ids(again) != ids(first) {
		t.Fatalf("repeat %v: %s, want %s", again.Repeat, ids(again), ids(first))
	}
	w.decide(first.Approvals[0].ApprovalID, alice, Reject)
	w.decide(first.Approvals[1].ApprovalID, alice, Reject)
	if again = w.submit(in); !again.Repeat || ids(again) != ids(first) || again.Approvals[0].Status != Rejected {
		t.Fatalf("after its end: %v %s", again.Repeat, ids(again))
	}
	// Whatever the configuration says by now.
	w.change("name: deploys, when: 'tool == \"deploy_release\"", "name: deploys, when: 'false && tool == \"deploy_release\"")
	if again = w.submit(in); !again.Repeat || ids(again) != ids(first) {
		t.Fatalf("under another configuration: %s", ids(again))
	}
	if n := one[int](w, `SELECT count(*) FROM approval_request`); n != 2 {
		t.Fatalf("%d rows", n)
	}
	// Told, and repeated: still the same pause; another turn is the next.
	m, ok := w.told(w.pauseOf(first.Approvals[0].ApprovalID))
	if !ok || len(m.Data.Decisions) != 2 {
		t.Fatal("not told")
	}
	w.must(w.s.RecordDelivery(w.ctx, w.pauseOf(first.Approvals[0].ApprovalID), DeliveryResult{Delivered: true}))
	if again = w.submit(in); !again.Repeat || again.Pause != 1 {
		t.Fatalf("told and repeated: pause %d", again.Pause)
	}
	in.PauseKey, in.Calls = "turn 2", in.Calls[1:]
	if next := w.submit(in); next.Repeat || next.Pause != 2 || ids(next) == ids(first) {
		t.Fatalf("I11: the next turn is pause %d", next.Pause)
	}
}

func ids(p Pause) string {
	var out []string
	for _, v := range p.Approvals {
		out = append(out, v.ApprovalID.String())
	}
	return strings.Join(out, " ")
}

// Twenty agents' retries at once make one pause.
func TestConcurrentIntakes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	in := w.intake(call("call_1", "deploy_release", production), call("call_2", "deploy_release", staging))
	got := make([]Pause, 20)
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() {
			p, err := w.s.Submit(w.ctx, w.key, in)
			if err != nil {
				t.Error(err)
			}
			got[i] = p
		})
	}
	wg.Wait()
	fresh := 0
	for _, p := range got {
		if !p.Repeat {
			fresh++
		}
		slices.SortFunc(p.Approvals, func(a, b View) int { return strings.Compare(a.ToolCallID, b.ToolCallID) })
		if ids(p) != ids(got[0]) {
			t.Fatalf("%s and %s", ids(p), ids(got[0]))
		}
	}
	if fresh != 1 {
		t.Fatalf("%d intakes were fresh", fresh)
	}
}

// Another intake for a run that has not been told (contract, Identity).
func TestCarryOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	in := w.intake(call("call_1", "deploy_release", production), call("call_2", "ask_user", question), call("call_3", "send_mail", mail))
	one := w.submit(in)
	kept, dropped, mailed := one.Approvals[0], one.Approvals[1], one.Approvals[2]
	w.decide(kept.ApprovalID, alice, Approve)

	// Other arguments for a call that waits are a conflict, and nothing changes.
	other := in
	other.Calls = []CallInput{call("call_1", "deploy_release", staging), call("call_2", "ask_user", question), call("call_3", "send_mail", mail)}
	_, err := w.s.Submit(w.ctx, w.key, other)
	w.refusal(err, CodeDifferentArguments)
	w.want(mailed.ApprovalID, Pending, "")

	// Unchanged calls go on, the rest is superseded, new ones are new.
	next := in
	next.Calls = []CallInput{call("call_1", "deploy_release", production), call("call_4", "send_mail", `{"to":"b@example.com"}`)}
	two := w.submit(next)
	if two.Pause != 2 || len(two.Approvals) != 2 || two.Approvals[0].ApprovalID != kept.ApprovalID || two.Approvals[0].Status != Approved {
		t.Fatalf("pause %d: %s", two.Pause, ids(two))
	}
	w.want(dropped.ApprovalID, Revoked, ReasonSuperseded)
	w.want(mailed.ApprovalID, Revoked, ReasonSuperseded)
	if got := w.row(kept.ApprovalID); got.Pause != 2 || got.Digest != kept.Digest {
		t.Fatalf("the carried call is in pause %d", got.Pause)
	}
	// A late retry of the first intake finds its own pause.
	if again := w.submit(in); !again.Repeat || again.Pause != 1 || ids(again) != ids(one) {
		t.Fatalf("a retry of the first: pause %d, %s", again.Pause, ids(again))
	}
	// The old pause sends nothing; the new one sends its calls once.
	w.done(kept.ApprovalID)
	w.decide(two.Approvals[1].ApprovalID, alice, Reject)
	if _, ok := w.told(w.pauseID("release-agent", in.RunID, 1)); ok {
		t.Fatal("a superseded pause is told")
	}
	m, ok := w.told(w.pauseID("release-agent", in.RunID, 2))
	if !ok || len(m.Data.Decisions) != 2 || m.Data.Decisions[0].Outcome != "succeeded" {
		t.Fatalf("told %v %s", ok, m.raw)
	}
}

func (w *world) pauseID(agent, run string, number int) (id [16]byte) {
	w.t.Helper()
	return one[[16]byte](w, `SELECT pause_id FROM run_pause WHERE agent = $1 AND run_id = $2 AND pause = $3`, agent, run, number)
}

// An effect of the rest that has begun keeps the old pause: 409 conflict.
func TestCarryOverAfterAnEffectBegan(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	in := w.intake(call("call_1", "send_mail", mail), call("call_2", "ask_user", question))
	p := w.submit(in)
	w.decide(p.Approvals[0].ApprovalID, alice, Approve)
	w.claim(p.Approvals[0].ApprovalID)
	next := in
	next.Calls = in.Calls[1:]
	_, err := w.s.Submit(w.ctx, w.key, next)
	w.refusal(err, CodeConflict)
	w.want(p.Approvals[1].ApprovalID, Pending, "")
	// All calls carried, the running one among them, is no conflict.
	next.Calls, next.PauseKey = in.Calls, "again"
	if p2 := w.submit(next); p2.Pause != 2 || ids(p2) != ids(p) {
		t.Fatalf("carried %s", ids(p2))
	}
}

// What failed without effect and waits for its retry is superseded with its operation (giveUp), not left half open.
func TestSupersededRetry(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	in := w.intake(call("call_1", "send_mail", mail), call("call_2", "ask_user", question))
	p := w.submit(in)
	w.decide(p.Approvals[0].ApprovalID, alice, Approve)
	w.record(w.claim(p.Approvals[0].ApprovalID), OutcomeUnsent)
	w.want(p.Approvals[0].ApprovalID, Approved, "")
	next := in
	next.Calls = in.Calls[1:]
	w.submit(next)
	v := w.want(p.Approvals[0].ApprovalID, Revoked, ReasonSuperseded)
	if v.Ledger.State != FailedTerminal {
		t.Fatalf("the operation is %s", v.Ledger.State)
	}
}

// The trap of the locking statement: an edit commits its child while an intake waits for the parent. The child is carried, not lost.
func TestCarryOverRacesAnEdit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	in := w.intake(call("call_1", "deploy_release", production))
	v := w.submit(in).Approvals[0]
	rq := w.click(v.ApprovalID, alice, Edit, with(`{"release":"2026.07.25","environment":"production","token":"[redacted]"}`))
	c, err := w.s.clicks.Acquire(w.ctx)
	w.must(err)
	defer c.Release()
	f, err := w.s.begin(w.ctx, c.Conn(), v.ApprovalID, want{people: []string{alice}, payload: true, pool: true})
	w.must(err)
	next := in
	next.PauseKey = "again"
	got := make(chan Pause, 1)
	go func() {
		p, err := w.s.Submit(context.WithoutCancel(w.ctx), w.key, next)
		if err != nil {
			t.Error(err)
		}
		got <- p
	}()
	w.until("the intake waits for the edited request", func() bool { return w.waiting() == 1 })
	j, err := w.s.judge(f, rq)
	w.must(err)
	b := &pgx.Batch{}
	var done swapped
	w.must(j.swap.queue(b, &done))
	j.child.queueChild(b, v.ApprovalID)
	w.must(finish(w.ctx, c.Conn(), b))
	p := <-got
	if len(p.Approvals) != 1 || p.Pause != 2 || p.Approvals[0].ApprovalID != j.child.row.id || p.Approvals[0].Status != Pending {
		t.Fatalf("pause %d: %s, want the child %s", p.Pause, ids(p), j.child.row.id)
	}
}

// state reads one of the paused runs of the state reader's own tests.
func state(t tb, name string) []byte {
	t.Helper()
	b, err := os.ReadFile("runstate/testdata/openai-agents-js/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Every refusal of the door has its code, and leaves nothing behind.
func TestIntakeRefusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	w.group("S0SMALL", alice, guest)
	w.change("limits: {open_per_run: 64, per_minute: 1000000}", "limits: {open_per_run: 3, per_minute: 1000000, state_bytes: 1048576}",
		"tool == \"run_script\"", "tool == \"run_script\" && false", "tool == \"send_mail\"", "tool == \"send_mail\" && args.missing == 1",
		"when: 'tool == \"book_flight\"', reviewers: {users: [U0ALICE]}", "when: 'tool == \"book_flight\"', reviewers: {users: [U0GONE], groups: [S0SMALL]}, quorum: 2",
		"resume: {url: \"http://127.0.0.1:9/resume\", secret: env:RELEASE_AGENT_SECRET}", "resume: {url: \"http://127.0.0.1:9/resume\", secret: env:RELEASE_AGENT_SECRET}\n          release-agent/v2: {intake: closed, states: [{format: none}], resume: pull}")
	js := func(name string) func(*Intake) {
		return func(in *Intake) {
			in.Format, in.State, in.Calls, in.CallsGiven = "openai-agents-js", state(t, name), nil, false
		}
	}
	calls := func(c ...CallInput) func(*Intake) { return func(in *Intake) { in.Calls = c } }
	for what, c := range map[string]struct {
		code    Code
		pointer string
		change  func(*Intake)
	}{
		"no calls":                    {CodeInvalidRequest, "", calls()},
		"twice the same call":         {CodeInvalidRequest, "/calls/1/tool_call_id", calls(call("a", "send_mail", mail), call("a", "send_mail", mail))},
		"huge arguments":              {CodeInvalidRequest, "/calls/0/arguments", calls(call("a", "run_script", `{"x":"%s"}`, strings.Repeat("x", maxArguments)))},
		"an unknown tool":             {CodeUnknownTool, "/calls/0/tool", calls(call("a", "launch_rocket", `{}`))},
		"no rule":                     {CodeNoRule, "/calls/0", calls(call("a", "run_script", `{}`))},
		"arguments of another form":   {CodeSchemaMismatch, "/calls/0/arguments/amount", calls(call("a", "issue_refund", `{"order":"1","amount":"lots","currency":"USD"}`))},
		"no requester":                {CodeRequesterRequired, "/calls/0", func(in *Intake) { in.Requester = "" }},
		"another scheme":              {CodeUnknownRequester, "/run/requester", func(in *Intake) { in.Requester = "mailto:a@example.com" }},
		"nobody":                      {CodeUnknownRequester, "/run/requester", func(in *Intake) { in.Requester = "slack:" + nobody }},
		"a deactivated requester":     {CodeUnknownRequester, "/run/requester", func(in *Intake) { in.Requester = "slack:" + gone }},
		"a bot":                       {CodeUnknownRequester, "/run/requester", func(in *Intake) { in.Requester = "slack:" + robot }},
		"another workspace":           {CodeUnknownRequester, "/run/requester", func(in *Intake) { in.Requester = "slack:" + other }},
		"without the role":            {CodeToolNotAllowed, "/run/requester", func(in *Intake) { in.Requester = "slack:" + carol }},
		"an unregistered version":     {CodeVersionUnsupported, "", func(in *Intake) { in.AppStateVersion = "release-agent/v0" }},
		"a closed version":            {CodeIntakeClosed, "", func(in *Intake) { in.AppStateVersion = "release-agent/v2" }},
		"a format not taken":          {CodeVersionUnsupported, "", func(in *Intake) { in.AppStateVersion, in.Format, in.State = "release-agent/v2", "opaque", []byte(`{}`) }},
		"a state too large":           {CodeStateTooLarge, "", func(in *Intake) { in.Format, in.State = "opaque", make([]byte, 1<<20+1) }},
		"a state that is no JSON":     {CodeInvalidRequest, "/run/state/value", func(in *Intake) { in.Format, in.State, in.CallsGiven = "openai-agents-js", []byte(`{"a":1`), false }},
		"a state in which none waits": {CodeStateMismatch, "", js("single-completed")},
		"a sticky approval":           {CodeStandingApproval, "/run/state/value", js("single-approved-always")},
		"a secret in the state":       {CodeSecretInState, "/run/state/value", js("single-paused-with-context-secret")},
		"calls beside the state's": {CodeStateMismatch, "", func(in *Intake) {
			js("single-paused")(in)
			in.Calls, in.CallsGiven = []CallInput{call("x", "send_mail", mail)}, true
		}},
		"a quorum out of reach": {CodeNoQuorumPossible, "/calls/0", calls(call("a", "book_flight", flight))},
		"a rule that errs":      {CodeRuleError, "/calls/0", calls(call("a", "send_mail", mail))},
		"too many":              {CodeTooManyOpen, "", calls(call("a", "ask_user", question), call("b", "ask_user", question), call("c", "ask_user", question), call("d", "ask_user", question))},
	} {
		t.Run(what, func(t *testing.T) {
			in := w.intake(call("a", "deploy_release", production))
			c.change(&in)
			_, err := w.s.Submit(w.ctx, w.key, in)
			r := w.refusal(err, c.code)
			if !strings.HasPrefix(r.Pointer, c.pointer) || r.Detail == "" {
				t.Errorf("pointer %q, want %q; %q", r.Pointer, c.pointer, r.Detail)
			}
		})
	}
	if n := one[int](w, `SELECT (SELECT count(*) FROM approval_request) + (SELECT count(*) FROM run_pause) + (SELECT count(*) FROM run_state_blob) + (SELECT count(*) FROM outbox)`); n != 0 {
		t.Fatalf("refused intakes left %d rows", n)
	}
}

// The key's limits: a tool it does not cover, a rate, a revoked key although it was authenticated a moment ago.
func TestKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	bearer, id, err := w.s.CreateKey(w.ctx, "acme", "release-agent", []string{"ask_user"}, OperatorActor("test"))
	w.must(err)
	narrow, err := w.s.Authenticate(w.ctx, bearer)
	w.must(err)
	_, err = w.s.Submit(w.ctx, narrow, w.intake(call("a", "deploy_release", production)))
	if r := w.refusal(err, CodeToolNotAllowed); r.Pointer != "/calls/0/tool" {
		t.Fatalf("pointer %q", r.Pointer)
	}
	p, err := w.s.Submit(w.ctx, narrow, w.intake(call("a", "ask_user", question)))
	w.must(err)
	mine := w.proposeAs(w.key, "release-agent/v1", "issue_refund", refund5)
	if _, err := w.s.ClaimForAgent(w.ctx, narrow, mine.ApprovalID, AgentClaim{}); !isErr(err, ErrNotFound) {
		t.Fatalf("a key claims what it does not cover: %v", err)
	}
	w.must(w.s.RevokeKey(w.ctx, id, OperatorActor("test")))
	if again, err := w.s.Authenticate(w.ctx, bearer); err != nil || again.ID != id {
		t.Fatal("the cache is not what this test is about")
	}
	_, err = w.s.Submit(w.ctx, narrow, w.intake(call("a", "ask_user", question)))
	w.refusal(err, CodeUnauthorized)
	_, err = w.s.ClaimForAgent(w.ctx, narrow, p.Approvals[0].ApprovalID, AgentClaim{})
	w.refusal(err, CodeUnauthorized)
	for _, bad := range []string{"", "hp_", "hp_x", strings.ToUpper(bearer), bearer[:len(bearer)-1] + "!", "sk-" + bearer} {
		if _, err := w.s.Authenticate(w.ctx, bad); w.refusal(err, CodeUnauthorized).Detail == "" {
			t.Fatal("no detail")
		}
	}
	w.s.keys = keyCache{}
	_, err = w.s.Authenticate(w.ctx, bearer)
	w.refusal(err, CodeUnauthorized)
	w.refusal(w.s.RevokeKey(w.ctx, id, OperatorActor("test")), CodeConflict)

	w.change("per_minute: 1000000", "per_minute: 1")
	w.propose("ask_user", question)
	_, err = w.s.Submit(w.ctx, w.key, w.intake(call("a", "ask_user", question)))
	if r := w.refusal(err, CodeRateLimited); r.RetryAfter <= 0 || r.RetryAfter > time.Minute {
		t.Fatalf("retry after %s", r.RetryAfter)
	}
}
