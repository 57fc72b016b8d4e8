package approvals

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
)

// When the state is withheld (contract, Resume).
func TestResumeOrBlocked(t *testing.T) {
	t.Parallel()
	js := state(t, "multi-paused")
	end := func(w *world, p Pause, ends ...func(View)) sent {
		t.Helper()
		for i, v := range p.Approvals {
			ends[i](v)
		}
		m, ok := w.told(uuid.MustParse(p.Approvals[0].PauseID))
		if !ok {
			t.Fatal("not told")
		}
		return m
	}
	for what, c := range map[string]struct {
		blocked string
		ends    func(*world) []func(View)
		want    string
	}{
		"all decided":                      {"withhold", func(w *world) []func(View) { return []func(View){w.happens, w.rejects} }, RunResume},
		"one expired":                      {"withhold", func(w *world) []func(View) { return []func(View){w.expires, w.rejects} }, RunBlocked},
		"one revoked":                      {"withhold", func(w *world) []func(View) { return []func(View){w.revokes, w.rejects} }, RunBlocked},
		"expired beside an effect":         {"withhold", func(w *world) []func(View) { return []func(View){w.happens, w.expires} }, RunResume},
		"one expired, and the run goes on": {"reject", func(w *world) []func(View) { return []func(View){w.expires, w.rejects} }, RunResume},
		"migration beside an effect":       {"reject", func(w *world) []func(View) { return []func(View){w.happens, w.migrates} }, RunBlocked},
		"a mismatch beside an effect":      {"reject", func(w *world) []func(View) { return []func(View){w.happens, w.mismatches} }, RunBlocked},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.change("secret: env:RELEASE_AGENT_SECRET}", "secret: env:RELEASE_AGENT_SECRET}\n            blocked: "+c.blocked,
				`args.environment == "production"`, `args.environment in ["production", "staging"]`)
			in := w.intake(call("call_a", "send_mail", mail), call("call_b", "send_mail", `{"to":"b@example.com"}`))
			in.Format, in.State = "opaque", js
			m := end(w, w.submit(in), c.ends(w)...)
			if m.Type != c.want || (m.Data.State != nil) != (c.want == RunResume) {
				t.Fatalf("%s, state %v", m.Type, m.Data.State != nil)
			}
			if m.Data.State != nil && string(m.Data.State.Value) != string(js) && !sameJSON(m.Data.State.Value, js) {
				t.Fatal("another state than the agent sent")
			}
			for _, d := range m.Data.Decisions {
				if (d.Outcome == "not_run") != (d.Decision == "reject") || len(d.Arguments) == 0 {
					t.Fatalf("%s %s", d.Decision, d.Outcome)
				}
			}
		})
	}
}

func (w *world) happens(v View) {
	w.approve(v.ApprovalID)
	w.done(v.ApprovalID)
}
func (w *world) rejects(v View) { w.decide(v.ApprovalID, alice, Reject) }
func (w *world) revokes(v View) { w.revoke(Selector{ID: v.ApprovalID}) }
func (w *world) expires(v View) {
	w.overdue(v.ApprovalID)
	w.sweep()
	w.want(v.ApprovalID, Expired, ReasonDecideExpired)
}

func (w *world) migrates(v View) {
	w.change("Mail {{.to}}", "Write to {{.to}}")
	w.want(v.ApprovalID, MigrationRequired, ReasonToolChanged)
}

func (w *world) mismatches(v View) {
	w.approve(v.ApprovalID)
	w.exec(`UPDATE approval_request SET target_version = 'x' WHERE approval_id = $1`, v.ApprovalID)
	w.refused(v.ApprovalID, string(Revoked))
	w.want(v.ApprovalID, Revoked, ReasonDigestMismatch)
}

func sameJSON(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && quoted(x) == quoted(y)
}

// An uncertain call holds the first telling, also one that the agent ran ahead of it.
func TestUncertainHoldsTheResume(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	p := w.submit(w.intake(call("a", "run_script", script), call("b", "ask_user", question)))
	w.decide(p.Approvals[0].ApprovalID, alice, Approve)
	a := w.agentClaim(p.Approvals[0].ApprovalID, "1")
	_, err := w.s.Fail(w.ctx, w.key, p.Approvals[0].ApprovalID, a.LeaseToken, a.Epoch, AgentFailure{Uncertain: true})
	w.must(err)
	w.decide(p.Approvals[1].ApprovalID, alice, Reject)
	pause := uuid.MustParse(p.Approvals[0].PauseID)
	if _, ok := w.told(pause); ok {
		t.Fatal("told of an uncertain call")
	}
	_, err = w.s.Reconcile(w.ctx, ReconcileRequest{Tenant: "acme", By: SlackActor(root), Surface: SurfaceCommand, ID: p.Approvals[0].ApprovalID, Happened: true, Evidence: "log"})
	w.must(err)
	if m, ok := w.told(pause); !ok || m.Data.Decisions[0].Outcome != "succeeded" {
		t.Fatalf("told %v %s", ok, m.raw)
	}
}

// Twenty couriers at once: one has the delivery, and one message is kept.
func TestOneCourier(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	v := w.propose("ask_user", question)
	w.decide(v.ApprovalID, alice, Reject)
	pause := w.pauseOf(v.ApprovalID)
	var mu sync.Mutex
	var bodies []string
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			d, err := w.s.ResumeFor(w.ctx, pause)
			if err != nil {
				t.Error(err)
			}
			if d.Send {
				mu.Lock()
				bodies = append(bodies, string(d.Body))
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(bodies) != 1 || strings.Contains(bodies[0], "state") && !strings.Contains(bodies[0], `"app_state_version"`) {
		t.Fatalf("%d couriers", len(bodies))
	}
}

// I12: the state is held against the registry when the run is told, by its own format, SDK and schema, although every call had ended
// before these left the configuration.
func TestStateUnregisteredBeforeTelling(t *testing.T) {
	t.Parallel()
	for what, states := range map[string][2]string{
		"still there":     {`{format: opaque}`, RunResume},
		"the format left": {`{format: openai-agents-python}`, RunBlocked},
		"the SDK left":    {`{format: opaque, sdk: ">=2.0.0"}`, RunBlocked},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			defer w.check()
			in := w.intake(call("call_a", "send_mail", mail), call("call_b", "send_mail", `{"to":"b@example.com"}`))
			in.Format, in.SDKVersion, in.State = "opaque", "1.4.0", []byte(`{"kept":"by the agent"}`)
			p := w.submit(in)
			w.rejects(p.Approvals[0])
			w.happens(p.Approvals[1])
			if ended := w.change("{format: opaque}", states[0]); len(ended[0].Ended) != 0 {
				t.Fatalf("ended %v: this is about what had ended before", ended)
			}
			m, ok := w.told(uuid.MustParse(p.Approvals[0].PauseID))
			if !ok || m.Type != states[1] || (m.Data.State != nil) != (m.Type == RunResume) || len(m.Data.Decisions) != 2 {
				t.Fatalf("told %v: %s, state %v", ok, m.Type, m.Data.State != nil)
			}
		})
	}
}
