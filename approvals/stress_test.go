package approvals

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Everything at once on the same few calls: whatever interleaves, the invariants hold over the database, and no two transactions
// ever wait for each other in a circle (the lock order of the schema page).
func TestEverythingAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	tools := []string{"deploy_release", "send_mail", "book_flight", "issue_refund", "run_script", "ask_user"}
	var mu sync.Mutex
	intakes, calls := []Intake{}, []View{}
	leases := map[ID][]Lease{}
	landed := map[ID]*atomic.Int64{}
	for i := range 4 {
		in := w.intake()
		for _, tool := range tools {
			in.Calls = append(in.Calls, CallInput{ToolCallID: tool, Tool: tool, Arguments: []byte(kinds[tool].arguments)})
		}
		if i == 3 {
			in.Calls = in.Calls[:2]
		}
		calls = append(calls, w.submit(in).Approvals...)
		intakes = append(intakes, in)
	}
	for _, v := range calls {
		w.post(v.ApprovalID)
		landed[v.ApprovalID] = &atomic.Int64{}
	}
	var done, wrong atomic.Int64
	events := 120
	if testing.Short() {
		events = 30
	}
	check := func(what string, err error) {
		var r *Refusal
		switch {
		case err == nil || errors.As(err, &r) || errors.Is(err, ErrStale) || errors.Is(err, ErrNotUncertain) || errors.Is(err, ErrSecondPerson) || errors.Is(err, ErrNotFound):
			done.Add(1)
		case errors.Is(err, ErrUnavailable) && !strings.Contains(err.Error(), "40P01"):
			done.Add(1) // a lock that was held for long: said, and tried again
		default:
			wrong.Add(1)
			t.Errorf("%s: %v", what, err)
		}
	}
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, uint64(worker)))
			one := func() View {
				mu.Lock()
				defer mu.Unlock()
				return calls[rnd.IntN(len(calls))]
			}
			for range events {
				v := one()
				id := v.ApprovalID
				switch n := rnd.IntN(40); {
				case n < 14:
					k := kinds[v.Tool]
					user := k.reviewers[rnd.IntN(len(k.reviewers))]
					verb := []Verb{Approve, Approve, Approve, Reject, Edit, Respond}[rnd.IntN(6)]
					rq := w.click(id, user, verb, func(rq *DecideRequest) {
						rq.Answer, rq.Arguments = "yes", []byte(strings.ReplaceAll(k.edited, "%d", "7"))
					})
					r, err := w.s.Decide(w.ctx, rq)
					check("decide", err)
					if err == nil && r.Child != nil {
						mu.Lock()
						calls = append(calls, *r.Child)
						landed[r.Child.ApprovalID] = &atomic.Int64{}
						mu.Unlock()
						w.post(r.Child.ApprovalID)
					}
				case n < 24:
					c, err := w.s.Claim(w.ctx, id, ClaimOptions{})
					check("claim", err)
					if c.Go || c.LookupFirst {
						mu.Lock()
						leases[id] = append(leases[id], c.Lease)
						if c.Go {
							landed[id].Add(1)
						}
						mu.Unlock()
					}
				case n < 27:
					a, err := w.s.ClaimForAgent(w.ctx, w.key, id, AgentClaim{})
					check("agent's claim", err)
					if err == nil && a.State == string(Running) {
						mu.Lock()
						l := Lease{ID: id, Tenant: "acme", Epoch: a.Epoch}
						check("token", l.Token.UnmarshalText([]byte(a.LeaseToken)))
						leases[id] = append(leases[id], l)
						mu.Unlock()
					}
				case n < 32:
					mu.Lock()
					held := slices.Clone(leases[id])
					mu.Unlock()
					if len(held) > 0 {
						class := []OutcomeClass{OutcomeSucceeded, OutcomeUnsent, OutcomeUnknown, OutcomeRefused}[rnd.IntN(4)]
						_, err := w.s.Record(w.ctx, held[rnd.IntN(len(held))], Outcome{Class: class, Output: json.RawMessage(`1`)})
						check("record", err)
					}
				case n == 32:
					_, err := w.s.Sweep(w.ctx, 100)
					check("sweep", err)
				case n == 33:
					_, err := w.s.Revoke(w.ctx, RevokeRequest{Tenant: "acme", By: SlackActor(root), Surface: SurfaceCommand, Select: Selector{ID: id}, Reason: "x"})
					check("revoke", err)
				case n == 34:
					_, err := w.s.Suspend(w.ctx, SuspendRequest{Tenant: "acme", By: SlackActor(root), Surface: SurfaceCommand, Scope: "tool", Name: v.Tool, Reason: "x", Active: rnd.IntN(2) == 0})
					check("suspend", err)
				case n == 35:
					check("group", w.s.SaveGroup(w.ctx, "acme", DirectoryGroup{GroupID: "S0RELEASE", Handle: "release", Enabled: true, Members: groups["S0RELEASE"][rnd.IntN(3):]}))
				case n == 36:
					check("people", w.s.SaveUsers(w.ctx, "acme", []DirectoryUser{person1(req), person1(bob), person1(alice), person1(dave)}))
				case n == 37:
					user := []string{carol, frank}[rnd.IntN(2)]
					_, err := w.s.Block(w.ctx, BlockRequest{Tenant: "acme", By: SlackActor(root), Surface: SurfaceCommand, UserID: user, Reason: "x", Blocked: rnd.IntN(2) == 0})
					check("block", err)
				case n == 38:
					in := intakes[rnd.IntN(len(intakes))]
					if rnd.IntN(2) == 0 {
						in.PauseKey, in.Calls = string(rune('a'+rnd.IntN(6))), in.Calls[:1+rnd.IntN(len(in.Calls))]
					}
					p, err := w.s.Submit(w.ctx, w.key, in)
					check("intake", err)
					for _, v := range p.Approvals {
						mu.Lock()
						if landed[v.ApprovalID] == nil {
							calls = append(calls, v)
							landed[v.ApprovalID] = &atomic.Int64{}
						}
						mu.Unlock()
					}
				case n == 39:
					cfg := w.parse(configuration, "open_per_run: 64", []string{"open_per_run: 64", "open_per_run: 63"}[rnd.IntN(2)])
					_, err := w.s.Apply(w.ctx, cfg, OperatorActor("x"))
					check("apply", err)
				}
			}
		})
	}
	wg.Wait()
	w.check()
	mu.Lock()
	defer mu.Unlock()
	for _, v := range calls {
		if n := landed[v.ApprovalID].Load(); v.Tool == "send_mail" && n > 1 && one[int](w, `SELECT count(*) FROM audit_event WHERE approval_id = $1 AND kind = 'execution.retry'`, v.ApprovalID) < int(n)-1 {
			t.Errorf("I13: an opaque tool was dispatched %d times", n)
		}
	}
	t.Logf("%d events, %d wrong, %d calls", done.Load(), wrong.Load(), len(calls))
}
