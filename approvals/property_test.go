package approvals

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// schedules is how many random lives are lived; HOLDPOINT_SCHEDULES=5000 is the full run.
func schedules(t *testing.T) int {
	n := 200
	if testing.Short() {
		n = 40
	}
	if s := os.Getenv("HOLDPOINT_SCHEDULES"); s != "" {
		var err error
		if n, err = strconv.Atoi(s); err != nil || n < 1 {
			t.Fatalf("HOLDPOINT_SCHEDULES is %q", s)
		}
	}
	return n
}

// The whole life against the oracle: whatever happens to a call in whatever order, on real Postgres, its row, its operation and its
// effect at the tool are what the tables say.
func TestLifeAgainstTheOracle(t *testing.T) {
	const worlds = 4
	n := schedules(t)
	for name, value := range map[string]string{"rapid.checks": strconv.Itoa((n + worlds - 1) / worlds), "rapid.nofailfile": "true"} {
		if err := flag.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	var seen coverage
	t.Run("lives", func(t *testing.T) {
		for i := range worlds {
			t.Run(strconv.Itoa(i), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				fresh := time.Now()
				rapid.Check(t, func(rt *rapid.T) {
					if time.Since(fresh) > decideAge/2 { // the mirror ages with the real clock
						w.people()
						fresh = time.Now()
					}
					mine := *w
					mine.t = rt
					l := &life{world: &mine, t: rt, blocked: map[string]bool{}, seen: &seen}
					l.live()
					w.runs = mine.runs
				})
				w.check()
			})
		}
	})
	t.Logf("%d schedules in %s: %s", n, time.Since(began).Round(time.Second), quoted(seen.count))
	if n < 1000 { // few lives may miss the rare ones
		return
	}
	var want []string
	for _, s := range Statuses {
		want = append(want, string(s))
	}
	for _, name := range append(want, "held", "revoked late", "taken over", "looked up", "stale", "voted", "superseded", "retried") {
		if seen.count[name] == 0 {
			t.Errorf("%d lives, and none was ever %q: the schedules have become tame", n, name)
		}
	}
}

// coverage counts what the lives got to.
type coverage struct {
	mu    sync.Mutex
	count map[string]int
}

func (c *coverage) add(name string, when bool) {
	if !when {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.count == nil {
		c.count = map[string]int{}
	}
	c.count[name]++
}

// life is one schedule: one run with up to three calls, and what happens to them.
type life struct {
	*world
	t       *rapid.T
	around  around
	blocked map[string]bool
	run     string
	in      Intake
	pause   int
	calls   []*modelled // edited parents, too
	current map[string]*modelled
	tries   []*try
	edits   int
	history []string
	seen    *coverage
}

// try is an attempt or a lookup, with what happened at the tool.
type try struct {
	call   *modelled
	lease  Lease
	report OutcomeClass // what its holder knows
	lookup bool
}

func (l *life) say(format string, args ...any) {
	l.history = append(l.history, fmt.Sprintf(format, args...))
}

func (l *life) fail(format string, args ...any) {
	l.t.Helper()
	for _, h := range l.history {
		l.t.Log(h)
	}
	l.t.Fatalf(format, args...)
}

func (l *life) live() {
	l.around.blocked, l.current = l.blocked, map[string]*modelled{}
	l.begin()
	l.compare()
	events := []struct {
		weight int
		do     func()
	}{
		{8, l.clicks},
		{7, l.claims},
		{6, l.reports},
		{4, l.jumps},
		{3, l.sweeps},
		{2, l.reconciles},
		{1, l.revokes},
		{1, l.withdraws},
		{1, l.blocks},
		{1, l.suspends},
		{1, l.roles},
		{2, l.configures},
		{1, l.repeats},
		{1, l.proposesAgain},
	}
	var wheel []int
	for i, e := range events {
		for range e.weight {
			wheel = append(wheel, i)
		}
	}
	for range rapid.IntRange(6, 24).Draw(l.t, "events") {
		events[wheel[rapid.IntRange(0, len(wheel)-1).Draw(l.t, "event")]].do()
		l.compare()
	}
	l.finish()
}

func (l *life) begin() {
	tools := make([]string, 0, len(kinds))
	for tool := range kinds {
		tools = append(tools, tool)
	}
	slices.Sort(tools)
	// Most lives are about one call that gets far; some have siblings.
	var inputs []CallInput
	for i := range rapid.SampledFrom([]int{1, 1, 1, 2, 3}).Draw(l.t, "calls") {
		tool := rapid.SampledFrom(tools).Draw(l.t, "tool")
		inputs = append(inputs, CallInput{ToolCallID: fmt.Sprintf("call_%d", i), Tool: tool, Arguments: []byte(kinds[tool].arguments)})
	}
	l.in = l.intake(inputs...)
	l.run = l.in.RunID
	l.submitted(l.submit(l.in))
	l.compare()
	// A head start: most of what can go wrong happens after the decision.
	for _, c := range slices.Clone(l.calls) {
		stage := rapid.IntRange(0, 4).Draw(l.t, "head start")
		for _, user := range c.kind().reviewers[:c.kind().quorum] {
			if stage > 0 && !c.kind().question {
				l.clicked(c, user, Approve)
			}
		}
		if stage > 1 {
			l.claimed(c, c.kind().agent)
		}
		if stage > 2 {
			l.passRun(l.run, 75*time.Second)
			l.say("75 s pass")
		}
		if stage > 3 {
			l.claimed(c, c.kind().agent)
		}
	}
}

// submitted adds what an intake made to the model.
func (l *life) submitted(p Pause) {
	l.pause = p.Pause
	for _, v := range p.Approvals {
		if l.find(v.ApprovalID) == nil {
			c := l.around.fresh(v.ApprovalID, v.Tool)
			l.calls = append(l.calls, c)
			l.current[v.ToolCallID] = c
			l.say("%s: %s", c.tool, c.id)
		}
	}
}

func (l *life) find(id ID) *modelled {
	for _, c := range l.calls {
		if c.id == id {
			return c
		}
	}
	return nil
}

// any is a call: mostly one that is not over.
func (l *life) any() *modelled {
	from := l.calls
	if rapid.IntRange(0, 4).Draw(l.t, "an open one") > 0 {
		from = slices.DeleteFunc(slices.Clone(l.calls), func(c *modelled) bool { return c.status.Terminal() })
		if len(from) == 0 {
			from = l.calls
		}
	}
	return from[rapid.IntRange(0, len(from)-1).Draw(l.t, "call")]
}

// times reads what has passed of a call's times. close says that one is about to: then the event would be a race with the clock.
func (l *life) times(c *modelled) (x passed, close bool) {
	l.t.Helper()
	margin, settle := SendWithin+30*time.Second, time.Duration(0)
	if c.kind().agent {
		margin = agentLease
	}
	if c.tool == "book_flight" {
		settle = SendWithin + 70*time.Second
	}
	var over [6]float64 // seconds since; negative: still to come
	err := l.db.QueryRow(l.ctx, `SELECT extract(epoch FROM n.now - r.expires_at), coalesce(extract(epoch FROM n.now - l.lease_expires_at), -1e9), coalesce(extract(epoch FROM n.now - l.next_try_at), 1e9),
			coalesce(extract(epoch FROM n.now + $2::interval - (l.first_sent_at + interval '24 hours')), -1e9), coalesce(extract(epoch FROM n.now - (l.claimed_at + $3::interval)), -1e9), coalesce(extract(epoch FROM n.now - o.due_at), -1e9)
		FROM (SELECT clock_timestamp() AS now) n, approval_request r LEFT JOIN idempotency_ledger l ON l.lineage_id = r.lineage_id LEFT JOIN approval_open o ON o.approval_id = r.approval_id WHERE r.approval_id = $1`,
		c.id, margin, settle).Scan(&over[0], &over[1], &over[2], &over[3], &over[4], &over[5])
	if err != nil {
		l.fail("times of %s: %v", c.id, err)
	}
	for _, s := range over {
		close = close || s > -0.5 && s < 0
	}
	return passed{deadline: over[0] >= 0, lease: over[1] >= 0, backoff: over[2] >= 0, retention: over[3] >= 0, settled: over[4] >= 0, due: over[5] >= 0}, close
}

func (l *life) clicks() {
	c := l.any()
	k := c.kind()
	// Mostly somebody who may, and something that is offered.
	user := rapid.SampledFrom(append(slices.Clone(k.reviewers), append(k.reviewers, alice, dave, req, root)...)).Draw(l.t, "user")
	verbs := []Verb{Approve, Approve, Approve, Approve, Approve, Edit, Reject}
	if k.question {
		verbs = []Verb{Respond, Reject, Approve, Edit}
	}
	l.clicked(c, user, rapid.SampledFrom(verbs).Draw(l.t, "verb"))
}

func (l *life) clicked(c *modelled, user string, verb Verb) {
	x, soon := l.times(c)
	if soon {
		return
	}
	k := c.kind()
	l.edits++
	rq := l.click(c.id, user, verb, func(rq *DecideRequest) {
		rq.Answer, rq.Arguments = "yes", fmt.Appendf(nil, k.edited, l.edits)
	})
	r, err := l.s.Decide(l.ctx, rq)
	if err != nil {
		l.fail("%s by %s: %v", verb, user, err)
	}
	got := DenialKind("")
	if r.Denial != nil {
		got = r.Denial.Kind
	}
	want := l.around.decide(c, user, verb, x)
	l.say("%s of %s by %s: %q", verb, c.id, user, got)
	if got != want || r.Applied != (want == "") {
		l.fail("%s of %s by %s: %q, the oracle says %q", verb, c.id, user, got, want)
	}
	if r.Child != nil {
		child := l.around.child(c, r.Child.ApprovalID, user)
		l.calls = append(l.calls, child)
		for id, cur := range l.current {
			if cur == c {
				l.current[id] = child
			}
		}
		l.say("  its child is %s", child.id)
	}
}

func (l *life) claims() {
	c := l.any()
	l.claimed(c, c.kind().agent != (rapid.IntRange(0, 9).Draw(l.t, "by the other") == 0))
}

func (l *life) claimed(c *modelled, agent bool) {
	x, soon := l.times(c)
	if soon {
		return
	}
	want := l.around.claim(c, agent, x)
	var got granted
	lease := Lease{ID: c.id, Tenant: "acme"}
	if agent {
		a, err := l.s.ClaimForAgent(l.ctx, l.key, c.id, AgentClaim{})
		var r *Refusal
		if err != nil && !errors.As(err, &r) {
			l.fail("agent's claim: %v", err)
		}
		got.run = a.State == string(Running)
		if got.run {
			lease.Epoch = a.Epoch
			l.must(lease.Token.UnmarshalText([]byte(a.LeaseToken)))
		}
	} else {
		cl, err := l.s.Claim(l.ctx, c.id, ClaimOptions{Holder: "w"})
		if err != nil {
			l.fail("claim: %v", err)
		}
		got, lease = granted{cl.Go, cl.LookupFirst}, cl.Lease
	}
	l.say("claim of %s, agent %v: %+v (%+v)", c.id, agent, got, x)
	if got != want {
		l.fail("claim of %s, agent %v: %+v, the oracle says %+v with %+v", c.id, agent, got, want, x)
	}
	if got.run || got.lookup {
		l.seen.add("taken over", c.op.epoch > 1 && c.op.maybe && got.run)
		l.seen.add("retried", c.op.epoch > 1 && !c.op.maybe && got.run)
		l.seen.add("looked up", got.lookup)
		l.tries = append(l.tries, l.attempt(c, lease, got.lookup))
	}
}
