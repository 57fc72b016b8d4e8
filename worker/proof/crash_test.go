package proof

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/approvals/crashpoint"
	"github.com/holdpoint/holdpoint/bot/slacksim"
)

// The crash matrix: every point × (idempotent, queryable, opaque) × (approve, reject). A real process is killed with SIGKILL at the
// point, a fresh one recovers, and what is then true is what the matrix says.

// classes are the tools by retry class.
var classes = map[string]string{"idempotent": "pay", "queryable": "book", "opaque": "send"}

// point is one row of the matrix.
type point struct {
	name   string
	serves bool          // it is in serve, not in a worker
	effect bool          // only an approved call comes here
	busy   bool          // the worker executes and tells meanwhile, so that the kill may hit that, too
	within time.Duration // the matrix's bound, from the kill on
}

// lost is how long it takes at most until a lease is over and somebody has taken over.
const lost = shortLease + 15*time.Second

var points = []point{
	{name: "intake.begun", serves: true, within: 30 * time.Second},
	{name: "intake.committed", serves: true, within: 30 * time.Second},
	{name: "decide.begun", serves: true, within: 30 * time.Second},
	{name: "decide.committed", serves: true, within: 30 * time.Second},
	{name: "relay.enqueued", busy: true, within: 30 * time.Second},
	{name: "execute.dequeued", effect: true, within: 30 * time.Second},
	{name: "execute.claimed", effect: true, within: lost},
	{name: "execute.sent", effect: true, within: lost},
	{name: "execute.answered", effect: true, within: lost},
	{name: "execute.recorded", effect: true, within: lost},
	{name: "resume.built", within: 30 * time.Second},
	{name: "resume.answered", within: 30 * time.Second},
	{name: "resume.recorded", within: 30 * time.Second},
	{name: "card.begun", busy: true, within: 60 * time.Second},
	{name: "card.synced", busy: true, within: 60 * time.Second},
}

// cell is one case.
type cell struct {
	point
	class    string
	rejected bool
}

func (c cell) verb() string {
	if c.rejected {
		return "reject"
	}
	return "approve"
}

// full says whether everything is to be run, or a part in a bounded time.
func full() bool { return os.Getenv("HOLDPOINT_TORTURE") != "" }

// cells are all combinations; in the bounded form, the classes take turns where they make no difference.
func cells() (out []cell) {
	order := []string{"idempotent", "queryable", "opaque"}
	for i, p := range points {
		for j, class := range order {
			for k, reject := range []bool{false, true} {
				differs := p.effect && !reject
				if full() || differs || (i+k)%len(order) == j {
					out = append(out, cell{p, class, reject})
				}
			}
		}
	}
	return out
}

// expected is what the matrix promises for a cell: the status, and how many requests the tool got (-1: as the checker allows).
func (c cell) expected() (status approvals.Status, requests int) {
	switch {
	case c.rejected:
		return approvals.Rejected, 0
	case c.busy:
		return approvals.Completed, -1
	case c.class == "opaque" && c.name == "execute.claimed":
		return approvals.Uncertain, 0
	case c.class == "opaque" && (c.name == "execute.sent" || c.name == "execute.answered"):
		return approvals.Uncertain, 1
	case c.class == "idempotent" && (c.name == "execute.sent" || c.name == "execute.answered"):
		return approvals.Completed, 2 // resent under the same key
	}
	return approvals.Completed, 1
}

func TestCrashMatrix(t *testing.T) {
	t.Parallel()
	if _, err := product(); err != nil {
		t.Fatal(err)
	}
	for _, c := range cells() {
		t.Run(c.name+"/"+c.class+"/"+c.verb(), func(t *testing.T) {
			t.Parallel()
			newCellWorld(t, c).run()
		})
	}
}

type cellWorld struct {
	*world
	cell
	call *call
	ts   string
}

func newCellWorld(t *testing.T, c cell) *cellWorld {
	t.Helper()
	w := &cellWorld{world: newWorld(t), cell: c}
	w.repeats = c.name == "resume.answered" || c.busy // a kill between the agent's answer and its record
	w.call = &call{op: strings.ReplaceAll(c.name, ".", "-") + "-" + c.verb(), tool: classes[c.class], plan: "ok"}
	return w
}

func (w *cellWorld) crashAt() string { return crashpoint.Variable + "=" + w.name }

func (w *cellWorld) run() {
	switch {
	case strings.HasPrefix(w.name, "intake."):
		w.crashAtIntake()
	case w.serves:
		w.crashAtDecision()
	default:
		if !w.crashInWorker() {
			return
		}
	}
	killed := time.Now()
	fresh := w.work()
	w.ends(killed)
	fresh.stop() // by SIGTERM, and with 0: it has nothing left to do
}

// crashAtIntake: the agent's retry finds nothing, or the very same pause (I21).
func (w *cellWorld) crashAtIntake() {
	p := w.serve(w.crashAt())
	if _, _, err := w.ask(http.MethodPost, "/v1/approvals", w.call.intake(), nil); err == nil {
		w.t.Fatal("the intake was answered")
	}
	p.crashes(w.name)
	before := 0
	if w.name == "intake.committed" {
		before = 1
	}
	if n := value[int](w.world, `SELECT count(*) FROM approval_request`); n != before {
		w.t.Fatalf("%d approvals after the kill, want %d", n, before)
	}
	w.serve()
	status, err := w.submit(w.call)
	w.must(err)
	if want := map[int]int{0: http.StatusCreated, 1: http.StatusOK}[before]; status != want {
		w.t.Errorf("the retry was answered with %d, want %d", status, want)
	}
	if n := value[int](w.world, `SELECT count(*) FROM approval_request`); n != 1 {
		w.t.Fatalf("%d approvals after the retry", n)
	}
	w.ts = w.posted(w.call.id)
	w.must(w.decide())
}

// crashAtDecision: a person clicks again, and either decides now or is told what stands.
func (w *cellWorld) crashAtDecision() {
	p := w.serve(w.crashAt())
	w.propose(w.call)
	w.ts = w.posted(w.call.id)
	if err := w.decide(); err == nil {
		w.t.Fatal("the click was answered")
	}
	p.crashes(w.name)
	want := approvals.Pending
	if w.name == "decide.committed" {
		want = approvals.Approved
		if w.rejected {
			want = approvals.Rejected
		}
	}
	if now := w.status(w.call.id); now != want {
		w.t.Fatalf("%s after the kill, want %s", now, want)
	}
	w.serve()
	if w.name == "decide.committed" {
		_, err := w.approve("U0BOB", w.ts) // told the outcome; nothing changes (I8)
		w.must(err)
		_, err = w.sim.WaitEphemeral(w.ctx, "U0BOB", func(m slacksim.Message) bool { return strings.Contains(m.PlainText(), "Already") })
		w.must(err)
	} else {
		w.must(w.decide())
	}
	if n := value[int](w.world, `SELECT count(*) FROM approval_decision WHERE approval_id = $1`, w.call.id); n != 1 {
		w.t.Errorf("%d votes", n)
	}
}

func (w *cellWorld) decide() error {
	if w.rejected {
		_, err := w.reject("U0ALICE", w.ts)
		return err
	}
	_, err := w.approve("U0ALICE", w.ts)
	return err
}

// crashInWorker kills a worker at its point. A rejected call never comes to the points around an effect: the worker must go on, and
// that is all of such a cell (false).
func (w *cellWorld) crashInWorker() bool {
	w.front()
	w.propose(w.call)
	w.ts = w.posted(w.call.id)
	w.must(w.decide())
	p := w.work(w.crashAt())
	if w.effect && w.rejected {
		w.ends(time.Now())
		select {
		case <-p.ended:
			w.t.Errorf("the worker ended with %s", p.cmd.ProcessState)
		default:
		}
		return false
	}
	p.crashes(w.name)
	return true
}

// ends holds the world to what the matrix promises: the outcome, in time, counted at the tool; then whatever is uncertain is
// reconciled by what the sink knows, and the run is told.
func (w *cellWorld) ends(killed time.Time) {
	want, requests := w.expected()
	also := want
	if w.busy && w.class == "opaque" && !w.rejected {
		also = approvals.Uncertain
	}
	got := w.becomes(w.call.id, want, also)
	if got == approvals.Uncertain {
		w.inTime(time.Since(killed))
		w.attended()
		w.reconcile(w.call)
	}
	w.settled()
	if got != approvals.Uncertain {
		// A card has 60 s; all else is over when the run is told.
		done := value[time.Time](w.world, `SELECT told_at FROM run_pause`)
		if strings.HasPrefix(w.name, "card.") {
			done = time.Now()
		}
		w.inTime(done.Sub(killed))
	}
	log := w.sunk()
	if n := count(log, "request", w.call.op); requests >= 0 && n != requests {
		w.t.Errorf("the tool got %d requests, want %d", n, requests)
	}
	w.check()
}

func (w *cellWorld) inTime(took time.Duration) {
	if took > w.within {
		w.t.Errorf("recovered after %s, the matrix allows %s", took.Round(time.Millisecond), w.within)
	}
}

// attended waits until an admin was called to an uncertain operation (L7), and checks what holds meanwhile.
func (w *world) attended() {
	w.t.Helper()
	w.eventually("the admins are called", func() (string, bool) {
		e := w.gather()
		for _, r := range e.rows {
			if r.Status == string(approvals.Uncertain) && (r.CardTS == "" || e.threads[r.CardTS] == 0) {
				return "nobody was called to " + r.op(), false
			}
		}
		return "", true
	})
}

// reconcile says what the sink knows about an uncertain operation, as an admin with evidence does.
func (w *world) reconcile(c *call) {
	w.t.Helper()
	_, err := w.core.Reconcile(w.ctx, approvals.ReconcileRequest{
		Tenant: "acme", By: approvals.SlackActor("U0ROOT"), Surface: approvals.SurfaceCLI, ID: c.id,
		Happened: count(w.sunk(), "effect", c.op) > 0, Evidence: fmt.Sprintf("the tool's own journal about %s", c.op),
	})
	w.must(err)
}
