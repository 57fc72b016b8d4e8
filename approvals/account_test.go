package approvals

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
)

// counted is a Metrics that remembers everything.
type counted struct {
	mu      sync.Mutex
	n       map[string]int
	pending []time.Duration
}

func newCounted() *counted { return &counted{n: map[string]int{}} }

func (c *counted) add(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n[what]++
}

func (c *counted) of(what string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[what]
}

func (c *counted) Decided(outcome string) { c.add("decided " + outcome) }
func (c *counted) Refused(code string)    { c.add("refused " + code) }
func (c *counted) Expired()               { c.add("expired") }
func (c *counted) PendingAge(d time.Duration) {
	c.add("pending age")
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending = append(c.pending, d)
}
func (c *counted) Reused()                    { c.add("reused") }
func (c *counted) DigestMismatch()            { c.add("mismatch") }
func (c *counted) StateFailure()              { c.add("state failure") }
func (c *counted) Uncertain()                 { c.add("uncertain") }
func (c *counted) Reconciled()                { c.add("reconciled") }
func (c *counted) StateBytes(int)             { c.add("state bytes") }
func (c *counted) ClickLatency(time.Duration) { c.add("click") }
func (c *counted) Blocked(why Reason)         { c.add("blocked " + string(why)) }

// Each reason code, however a call came to it, is counted and has its audit row.
func TestEachReasonIsCountedAndAudited(t *testing.T) {
	t.Parallel()
	approved := func(w *world, tool, arguments string) View {
		v := w.propose(tool, arguments)
		if v.Status == Pending {
			v = w.approve(v.ApprovalID)
		}
		return v
	}
	atClaim := func(change func(*world, View)) func(*world) ID {
		return func(w *world) ID {
			v := w.propose("deploy_release", production)
			w.decide(v.ApprovalID, bob, Approve)
			change(w, v)
			_, err := w.s.Claim(w.ctx, v.ApprovalID, ClaimOptions{Holder: "worker-1"})
			w.must(err)
			return v.ApprovalID
		}
	}
	reasons := map[Reason]func(*world) ID{
		ReasonRequesterInactive: atClaim(func(w *world, _ View) {
			w.must(w.s.SaveUsers(w.ctx, "acme", []DirectoryUser{person1(req, func(u *DirectoryUser) { u.Deleted = true })}))
		}),
		ReasonRequesterLostRole: atClaim(func(w *world, _ View) { w.group("S0ENG", bob) }),
		ReasonAgentNotAllowed:   atClaim(func(w *world, _ View) { w.must(w.s.RevokeKey(w.ctx, w.key.ID, OperatorActor("test"))) }),
		ReasonReviewerLost:      atClaim(func(w *world, _ View) { w.group("S0RELEASE", without("S0RELEASE", bob)...) }),
		ReasonPolicyChanged:     atClaim(func(w *world, _ View) { w.change("execute_within: 15m", "execute_within: 15m, quorum: 2") }),
		ReasonDigestMismatch: atClaim(func(w *world, v View) {
			w.exec(`UPDATE approval_request SET target = 'service/else' WHERE approval_id = $1`, v.ApprovalID)
		}),
		ReasonVersionUnregistered: func(w *world) ID {
			v := approved(w, "send_mail", mail)
			w.change("release-agent/v1:", "release-agent/v2:")
			return v.ApprovalID
		},
		ReasonToolChanged: func(w *world) ID {
			v := w.propose("send_mail", mail)
			w.change("Mail {{.to}}", "Write to {{.to}}")
			return v.ApprovalID
		},
		ReasonTargetChanged: func(w *world) ID {
			v := approved(w, "deploy_release", production)
			w.record(w.claim(v.ApprovalID), OutcomeTargetChanged)
			return v.ApprovalID
		},
		ReasonWindowClosed: func(w *world) ID {
			v := approved(w, "send_mail", mail)
			day := strings.ToLower(time.Now().UTC().AddDate(0, 0, 3).Weekday().String()[:3])
			w.change("exclude: [], decide_within: 1h, execute_within: 1h}\n      - {name: flights",
				"exclude: [], window: {days: ["+day+"], from: \"09:00\", to: \"09:01\", zone: UTC}, decide_within: 1h, execute_within: 1h}\n      - {name: flights")
			w.refused(v.ApprovalID, "held")
			return v.ApprovalID
		},
		ReasonPaused: func(w *world) ID {
			v := approved(w, "send_mail", mail)
			_, err := w.s.Suspend(w.ctx, SuspendRequest{Tenant: "acme", By: SlackActor(root), Surface: SurfaceCommand, Scope: "tenant", Reason: "stop", Active: true})
			w.must(err)
			w.refused(v.ApprovalID, "held")
			return v.ApprovalID
		},
		ReasonAuthorityUnreadable: func(w *world) ID {
			v := w.propose("deploy_release", production)
			w.decide(v.ApprovalID, bob, Approve)
			w.age(claimAge + time.Second)
			w.dir.fails = true
			w.refused(v.ApprovalID, "held")
			return v.ApprovalID
		},
		ReasonSuperseded: func(w *world) ID {
			in := w.intake(call("a", "send_mail", mail))
			v := w.submit(in).Approvals[0]
			in.Calls = []CallInput{call("b", "send_mail", mail)}
			w.submit(in)
			return v.ApprovalID
		},
		ReasonWithdrawn: func(w *world) ID {
			v := w.propose("send_mail", mail)
			_, err := w.s.Withdraw(w.ctx, w.key, v.ApprovalID, "no need")
			w.must(err)
			return v.ApprovalID
		},
		ReasonRevokedByAdmin: func(w *world) ID {
			v := w.propose("send_mail", mail)
			w.revoke(Selector{ID: v.ApprovalID})
			return v.ApprovalID
		},
		ReasonDecideExpired: func(w *world) ID {
			v := w.propose("send_mail", mail)
			w.overdue(v.ApprovalID)
			w.sweep()
			return v.ApprovalID
		},
		ReasonExecuteExpired: func(w *world) ID {
			v := approved(w, "send_mail", mail)
			w.overdue(v.ApprovalID)
			w.sweep()
			return v.ApprovalID
		},
		ReasonNoEffect: func(w *world) ID {
			v := approved(w, "send_mail", mail)
			w.record(w.claim(v.ApprovalID), OutcomeRefused)
			return v.ApprovalID
		},
		ReasonRetriesSpent: func(w *world) ID {
			v := approved(w, "send_mail", mail)
			for range maxAttempts {
				w.exec(`UPDATE idempotency_ledger SET next_try_at = clock_timestamp() WHERE approval_id = $1`, v.ApprovalID)
				w.record(w.claim(v.ApprovalID), OutcomeUnsent)
			}
			return v.ApprovalID
		},
	}
	for _, why := range Reasons {
		reach := reasons[why]
		if reach == nil {
			t.Errorf("no way to %q", why)
			continue
		}
		t.Run(string(why), func(t *testing.T) {
			t.Parallel()
			c := newCounted()
			w := newWorldWith(t, Options{Metrics: c}, nil)
			v := w.row(reach(w))
			if v.ReasonCode != why && v.Held != why {
				t.Fatalf("%s: reason %q, held %q", v.Status, v.ReasonCode, v.Held)
			}
			if n := c.of("blocked " + string(why)); n != 1 {
				t.Errorf("counted %d times", n)
			}
			if n := one[int](w, `SELECT count(*) FROM audit_event WHERE approval_id = $1 AND to_status = $2`, v.ApprovalID, string(v.Status)); n == 0 {
				t.Error("no audit row")
			}
			// A pending approval that ended without a decision is an outcome of its own; an execution that did is none.
			ended := v.DecidedAt == nil && v.Status != Pending
			if n := c.of("decided " + string(v.Status)); (n == 1) != ended {
				t.Errorf("decided as %s %d times; it was pending: %v", v.Status, n, ended)
			}
			if n := c.of("pending age"); n != 1 {
				t.Errorf("the time as pending was measured %d times", n)
			}
			if n := c.of("expired"); (n == 1) != (v.Status == Expired) {
				t.Errorf("expired %d times", n)
			}
			if n := c.of("mismatch"); (n == 1) != (why == ReasonDigestMismatch) {
				t.Errorf("a digest mismatch %d times", n)
			}
		})
	}
}

// What a rule decides is counted as decisions are; it has waited for nobody.
func TestRulesDecisionsAreCounted(t *testing.T) {
	t.Parallel()
	c := newCounted()
	w := newWorldWith(t, Options{Metrics: c}, nil)
	w.propose("issue_refund", refund5)
	w.propose("drop_table", `{}`)
	if a, r, p := c.of("decided approve"), c.of("decided reject"), c.of("pending age"); a != 1 || r != 1 || p != 0 {
		t.Errorf("%d approved, %d rejected by a rule, %d waits", a, r, p)
	}
	v := w.propose("issue_refund", bigRefund)
	w.decide(v.ApprovalID, dave, Approve)
	w.decide(v.ApprovalID, erin, Reject)
	if a, r, p := c.of("decided approve"), c.of("decided reject"), c.of("pending age"); a != 2 || r != 2 || p != 1 {
		t.Errorf("after two votes: %d approved, %d rejected, %d waits", a, r, p)
	}
}

// Only a state that can't be read is a deserialisation failure; one that was read and is refused for what it holds is none.
func TestStateFailuresAreThoseOfReading(t *testing.T) {
	t.Parallel()
	c := newCounted()
	w := newWorldWith(t, Options{Metrics: c}, nil)
	try := func(state string, calls ...CallInput) {
		in := w.intake(calls...)
		in.Format, in.State, in.SDKVersion, in.CallsGiven = "openai-agents-js", []byte(state), "0.1.0", len(calls) > 0
		if _, err := w.s.Submit(w.ctx, w.key, in); err == nil {
			t.Errorf("taken: %.60s", state)
		}
	}
	good := string(state(t, "multi-paused"))
	try(good, call("another", "send_mail", mail)) // state_mismatch
	if n := c.of("state failure"); n != 0 {
		t.Errorf("a mismatch is counted as unreadable %d times", n)
	}
	try("{")
	try(`{"$schemaVersion":"99.0"}`)
	if n := c.of("state failure"); n != 2 {
		t.Errorf("%d of 2 counted", n)
	}
}

// journal is a log as tests read it.
type journal struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.Write(p)
}

func (j *journal) lines(t *testing.T) (out []map[string]any) {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	for line := range strings.Lines(j.b.String()) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		out = append(out, m)
	}
	return out
}

// The log tells a call's life under the same four names in every line: intake, votes, refusals, claims, outcomes, revocations.
func TestLogLinesNameTheCall(t *testing.T) {
	t.Parallel()
	var j journal
	w := newWorldWith(t, Options{Log: slog.New(slog.NewJSONHandler(&j, nil))}, nil)
	worker := w.propose("deploy_release", production)
	w.denied(worker.ApprovalID, req, Approve, DenyRequester)
	w.decide(worker.ApprovalID, alice, Approve)
	w.done(worker.ApprovalID)
	mine := w.propose("run_script", script)
	w.decide(mine.ApprovalID, alice, Approve)
	a := w.agentClaim(mine.ApprovalID, "1")
	_, err := w.s.Complete(w.ctx, w.key, mine.ApprovalID, a.LeaseToken, a.Epoch, json.RawMessage(`{"ok":true}`))
	w.must(err)
	stopped := w.propose("send_mail", mail)
	w.revoke(Selector{ID: stopped.ApprovalID})
	edited := w.propose("send_mail", mail)
	child := w.decide(edited.ApprovalID, alice, Edit, with(`{"to":"b@example.com"}`)).Child
	ruled := w.propose("drop_table", `{}`)

	type key struct{ msg, event string }
	seen := map[string][]key{}
	for _, l := range j.lines(t) {
		id, _ := l["approval"].(string)
		if id == "" {
			continue
		}
		v := w.row(mustID(t, id))
		if l["run"] != v.RunID || l["tool_call"] != v.ToolCallID || l["operation"] != v.OperationKey {
			t.Errorf("line %v is about %s %s %s", l, v.RunID, v.ToolCallID, v.OperationKey)
		}
		event, _ := l["event"].(string)
		msg, _ := l["msg"].(string)
		seen[id] = append(seen[id], key{msg, event})
	}
	changed := func(event string) key { return key{"approval changed", event} }
	requested := key{msg: "approval requested"}
	for id, want := range map[ID][]key{
		worker.ApprovalID: {
			requested, {msg: "decision refused"}, changed("decision.approved"), changed("execution.claimed"), changed("execution.succeeded"),
		},
		mine.ApprovalID:    {requested, changed("decision.approved"), changed("execution.claimed"), changed("execution.succeeded")},
		stopped.ApprovalID: {requested, changed("approval.revoked")},
		edited.ApprovalID:  {requested, changed("decision.edited")},
		child.ApprovalID:   {requested},
		ruled.ApprovalID:   {requested, changed("decision.rejected")},
	} {
		if got := seen[id.String()]; !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", id, got, want)
		}
	}
	for _, secret := range []string{"s3cr3t-value", "2026.07.24", "a@example.com", "b@example.com", a.LeaseToken} {
		if strings.Contains(j.b.String(), secret) {
			t.Errorf("the log has %q in it", secret)
		}
	}
	d, err := w.s.ResumeFor(w.ctx, uuid.MustParse(w.row(mine.ApprovalID).PauseID))
	w.must(err)
	if len(d.Calls) != 1 || d.Calls[0].Approval != mine.ApprovalID || d.Calls[0].ToolCallID != mine.ToolCallID || d.Calls[0].OperationKey != mine.OperationKey {
		t.Errorf("a delivery names %+v", d.Calls)
	}
}

func mustID(t *testing.T, s string) ID {
	t.Helper()
	id, err := ParseID(s)
	if err != nil {
		t.Fatal(err)
	}
	return id
}
