package worker

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/approvals/rules"
	"github.com/holdpoint/holdpoint/approvals/seal"
	"github.com/holdpoint/holdpoint/migrations"
	"github.com/holdpoint/holdpoint/migrations/pgcluster"
	"github.com/holdpoint/holdpoint/worker/redistest"
)

// paceOf is the time between two clicks: everything before is over, as with people.
const paceOf = 25 * time.Millisecond

// BenchmarkApproveToFirstByte measures from the call of Decide to the arrival of the tool's request, one click at a time (performance
// target 5): the real core, a durable Postgres, Redis, Asynq and HTTP. The floor, in the same run and at the same pace, is a bare
// swap: a row locked, changed and committed in one round trip. Compare the ratio, not the figures.
func BenchmarkApproveToFirstByte(b *testing.B) {
	w := newBench(b)
	var swaps, starts []time.Duration
	tick := time.NewTicker(paceOf)
	defer tick.Stop()
	for b.Loop() {
		click := w.click()
		<-tick.C
		swaps = append(swaps, w.swap())
		<-tick.C
		began := time.Now()
		r, err := w.core.Decide(b.Context(), click)
		if err != nil || !r.Applied {
			b.Fatalf("%v, %+v", err, r.Denial)
		}
		select {
		case at := <-w.arrived:
			starts = append(starts, at.Sub(began))
		case <-time.After(20 * time.Second):
			b.Fatal("the tool was never asked")
		}
	}
	slices.Sort(swaps)
	slices.Sort(starts)
	at := func(of []time.Duration, q float64) float64 {
		return float64(of[min(int(q*float64(len(of))), len(of)-1)]) / float64(time.Millisecond)
	}
	b.ReportMetric(at(starts, .5), "p50-ms")
	b.ReportMetric(at(starts, .99), "p99-ms")
	b.ReportMetric(at(swaps, .5), "swap-p50-ms")
	b.ReportMetric(at(starts, .5)/at(swaps, .5), "p50/swap")
	b.ReportMetric(0, "ns/op") // the pace, and so nothing
}

type benchmark struct {
	b       *testing.B
	core    *approvals.Service
	pool    *pgxpool.Pool
	key     approvals.Key
	arrived chan time.Time
	row     uuid.UUID
}

func newBench(b *testing.B) *benchmark {
	b.Helper()
	ctx := b.Context()
	must := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	cluster, err := pgcluster.Start(ctx, pgcluster.Options{})
	if err != nil {
		b.Skipf("no durable server here: %v", err)
	}
	b.Cleanup(func() { _ = cluster.Stop() })
	must(migrations.Up(ctx, cluster.DSN()))
	w := &benchmark{b: b, arrived: make(chan time.Time, 1), row: uuid.New()}
	tool := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		w.arrived <- time.Now()
		_, _ = rw.Write([]byte(`{"ok":true}`))
	}))
	b.Cleanup(tool.Close)
	pool := func(name string) *pgxpool.Pool {
		p, err := approvals.OpenPool(ctx, cluster.DSN(), approvals.PoolOptions{Name: name, Max: 4})
		must(err)
		b.Cleanup(p.Close)
		return p
	}
	w.pool = pool("floor")
	_, err = w.pool.Exec(ctx, `CREATE TABLE floor_row (id uuid PRIMARY KEY, version int NOT NULL) WITH (fillfactor = 70)`)
	must(err)
	_, err = w.pool.Exec(ctx, `INSERT INTO floor_row VALUES ($1, 0)`, w.row)
	must(err)
	sealer, err := seal.NewEphemeral()
	must(err)
	r := open(b, redistest.Start(b).URL())
	log := slog.New(slog.DiscardHandler)
	bell := NewDoorbell(r, NewMetrics(nil), log)
	b.Cleanup(bell.Close)
	w.core = approvals.New(approvals.Options{Clicks: pool("clicks"), Intake: pool("intake"), Work: pool("work"), Sealer: sealer, Log: log, Woke: bell.Ring})
	cfg, err := rules.Parse([]rules.File{{Name: "bench.yaml", Data: []byte(`
egress: {allow: [127.0.0.0/8]}
tenants:
  acme:
    slack: {team: T0ACME, channel: C0APPROVALS}
    admins: {users: [U0ALICE]}
    limits: {per_minute: 1000000}
    rules: [{name: mail, when: 'tool == "send_mail"', reviewers: {users: [U0ALICE]}, exclude: [], decide_within: 1h, execute_within: 1h}]
    tools: {send_mail: {kind: effect, title: Mail, http: {method: POST, url: "` + tool.URL + `", timeout: 10s}}}
    agents: {mailer: {tools: [send_mail], versions: {v1: {states: [{format: none}], resume: pull}}}}
`)}})
	must(err)
	_, err = w.core.Apply(ctx, cfg, approvals.OperatorActor("bench"))
	must(err)
	bearer, _, err := w.core.CreateKey(ctx, "acme", "mailer", nil, approvals.OperatorActor("bench"))
	must(err)
	w.key, err = w.core.Authenticate(ctx, bearer)
	must(err)
	running, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	worker := New(w.core, cards(nil), r, Options{Log: log})
	go func() { ended <- worker.Run(running) }()
	b.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	})
	return w
}

// click proposes a call, stands in for its card and makes the press on it. The mirror is kept young: Slack is no part of this.
func (w *benchmark) click() approvals.DecideRequest {
	w.b.Helper()
	ctx := w.b.Context()
	must := func(err error) {
		w.b.Helper()
		if err != nil {
			w.b.Fatal(err)
		}
	}
	must(w.core.SaveUsers(ctx, "acme", []approvals.DirectoryUser{{UserID: "U0ALICE", TeamID: "T0ACME", Name: "alice"}}))
	p, err := w.core.Submit(ctx, w.key, approvals.Intake{
		RunID: uuid.NewString(), AgentRevision: "git:1", AppStateVersion: "v1", Format: "none", CallsGiven: true,
		Calls: []approvals.CallInput{{ToolCallID: "call_1", Tool: "send_mail", Arguments: []byte(`{"to":"a@example.com"}`)}},
	})
	must(err)
	v := p.Approvals[0]
	must(w.core.StartPost(ctx, v.ApprovalID))
	must(w.core.SavePost(ctx, v.ApprovalID, "C0APPROVALS", "1753350000.000100", v.Version, false, ""))
	f, err := w.core.CardFacts(ctx, v.ApprovalID)
	must(err)
	button, err := approvals.ParseButton(approvals.EncodeButton(f.Card.MACKey, f.Card.Channel, v.ApprovalID, v.Digest, v.Version))
	must(err)
	return approvals.DecideRequest{
		DecisionID: approvals.NewDecisionID(), Button: button, Channel: f.Card.Channel, MessageTS: f.Card.MessageTS, Verb: approvals.Approve,
		By: approvals.Reviewer{UserID: "U0ALICE", TeamID: "T0ACME"}, Surface: approvals.SurfaceCard,
	}
}

// swap is the floor: one row locked, changed and committed.
func (w *benchmark) swap() time.Duration {
	w.b.Helper()
	began := time.Now()
	batch := &pgx.Batch{}
	batch.Queue(`BEGIN`)
	batch.Queue(`SELECT version FROM floor_row WHERE id = $1 FOR UPDATE`, w.row)
	batch.Queue(`UPDATE floor_row SET version = version + 1 WHERE id = $1`, w.row)
	batch.Queue(`COMMIT`)
	if err := w.pool.SendBatch(w.b.Context(), batch).Close(); err != nil {
		w.b.Fatal(err)
	}
	return time.Since(began)
}
