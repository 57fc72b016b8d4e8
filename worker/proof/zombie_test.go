package proof

import (
	"strings"
	"syscall"
	"testing"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/approvals/crashpoint"
)

// A worker that is stopped for longer than its lease, and goes on when another has taken over (I16): what the zombie writes changes
// nothing, what it still sends has no second effect.
func TestZombie(t *testing.T) {
	t.Parallel()
	for class, tool := range classes {
		// stuck: the tool has had its effect and does not answer. Its answer comes to a process that stands still.
		for _, plan := range []string{"slow,ok", "stuck,ok"} {
			t.Run(class+"/"+plan, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.front()
				c := &call{op: "zombie-" + strings.ReplaceAll(plan, ",", "-"), tool: tool, plan: plan}
				w.propose(c)
				_, err := w.approve("U0ALICE", w.posted(c.id))
				w.must(err)
				zombie := w.work()
				w.eventually("the tool has had its effect", func() (string, bool) { return "", count(w.sunk(), "effect", c.op) == 1 })
				zombie.signal(syscall.SIGSTOP)
				if n := value[int](w, `SELECT count(*) FROM audit_event WHERE approval_id = $1 AND kind = 'execution.succeeded'`, c.id); n != 0 {
					t.Fatal("it was quicker than the signal: nothing would be proven")
				}
				w.work()
				want := map[string]approvals.Status{"idempotent": approvals.Completed, "queryable": approvals.Completed, "opaque": approvals.Uncertain}[class]
				w.becomes(c.id, want)
				before := value[string](w, zombieRow, c.id)
				zombie.signal(syscall.SIGCONT)
				zombie.says(`"outcome":"`) // it has recorded, or was told that it came too late
				switch after := value[string](w, zombieRow, c.id); {
				case class == "opaque" && plan == "slow,ok":
					// The answer is late evidence of the same attempt, under the same token (I18): uncertain may end by it.
				case after != before:
					t.Errorf("the zombie changed %s\nto %s", before, after)
				}
				if want == approvals.Uncertain && w.status(c.id) == approvals.Uncertain {
					w.attended()
					w.reconcile(c)
				}
				w.settled()
				if n := count(w.sunk(), "request", c.op); class == "opaque" && n != 1 || n > 2 {
					t.Errorf("%d requests", n)
				}
				w.check()
			})
		}
	}
}

// zombieRow is all that an outcome could have changed.
const zombieRow = `SELECT format('%s %s %s %s %s %s', r.status, r.version, l.state, l.epoch, l.token, (SELECT count(*) FROM audit_event e WHERE e.approval_id = r.approval_id))
	FROM approval_request r JOIN idempotency_ledger l USING (lineage_id) WHERE r.approval_id = $1`

// A worker is stopped between its claim and its first byte, for longer than its lease: when it goes on, it sends nothing. It stops
// itself at the very place, by the crash point's twin.
func TestZombieBeforeTheFirstByte(t *testing.T) {
	t.Parallel()
	for class, tool := range classes {
		t.Run(class, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.front()
			c := &call{op: "unsent-zombie", tool: tool, plan: "ok"}
			w.propose(c)
			_, err := w.approve("U0ALICE", w.posted(c.id))
			w.must(err)
			zombie := w.work(crashpoint.StopVariable + "=execute.claimed")
			zombie.says("stop point execute.claimed")
			w.work()
			want := map[string]approvals.Status{"idempotent": approvals.Completed, "queryable": approvals.Completed, "opaque": approvals.Uncertain}[class]
			w.becomes(c.id, want)
			sent := count(w.sunk(), "request", c.op)
			if class == "opaque" && sent != 0 {
				t.Fatal("it was not stopped before its first byte: nothing would be proven")
			}
			zombie.signal(syscall.SIGCONT)
			zombie.says(`"outcome":"`)
			if n := count(w.sunk(), "request", c.op); n != sent {
				t.Errorf("the zombie sent %d requests", n-sent)
			}
			if class == "opaque" {
				w.attended()
				w.reconcile(c)
			}
			w.settled()
			if n := count(w.sunk(), "effect", c.op); n != map[string]int{"idempotent": 1, "queryable": 1, "opaque": 0}[class] {
				t.Errorf("%s: %d effects", class, n)
			}
			w.check()
		})
	}
}
