package approvals

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdpoint/holdpoint/migrations"
	"github.com/holdpoint/holdpoint/migrations/pgcluster"
)

// The benchmarks run on a durable server of their own (fsync on), the product beside its floor in one run: compare the ratios, not
// the figures (performance targets 1–4). The floor is the same four commits with nothing around them: no rules, no crypto, no digests.

// durable is one server for all benchmarks of a binary.
var durable = sync.OnceValues(func() (string, error) {
	c, err := pgcluster.Start(context.Background(), pgcluster.Options{MaxConnections: 100})
	if err != nil {
		return "", err
	}
	return c.DSN(), migrations.Up(context.Background(), c.DSN())
})

var benchWorld = sync.OnceValues(func() (*world, error) {
	dsn, err := durable()
	if err != nil {
		return nil, err
	}
	sealer, err := testSealer()
	if err != nil {
		return nil, err
	}
	w := &world{t: panics{}, ctx: context.Background(), dsn: dsn, dir: &mirror{}, cleanup: func(func()) {}}
	w.db = w.open("aside", 2, nil)
	// Small pools of their own, as `serve` and `worker` have them.
	w.s = New(Options{Clicks: w.open("clicks", 4, nil), Intake: w.open("intake", 4, nil), Work: w.open("work", 4, nil), Sealer: sealer, Directory: w.dir, Log: slog.New(slog.DiscardHandler)})
	w.dir.w = w
	w.apply(configuration)
	w.key = w.newKey("acme", "release-agent")
	w.people()
	_, err = w.db.Exec(w.ctx, benchSchema+floorSchema)
	return w, err
})

// panics ends a benchmark's set-up that fails.
type panics struct{}

func (panics) Helper()                      {}
func (panics) Error(args ...any)            { panic(fmt.Sprint(args...)) }
func (panics) Errorf(f string, args ...any) { panic(fmt.Sprintf(f, args...)) }
func (panics) Fatal(args ...any)            { panic(fmt.Sprint(args...)) }
func (panics) Fatalf(f string, args ...any) { panic(fmt.Sprintf(f, args...)) }

func bench(b *testing.B) *world {
	b.Helper()
	w, err := benchWorld()
	if err != nil {
		b.Skipf("no durable server here: %v", err)
	}
	return w
}

var sixKiB = []byte(`{"history":"` + strings.Repeat("x", 6<<10-14) + `"}`)

// life is one call from its intake to its result: four commits.
func (w *world) benchLife(n int64) error {
	p, err := w.s.Submit(w.ctx, w.key, Intake{
		RunID: fmt.Sprintf("bench_%d", n), AgentRevision: "git:1", AppStateVersion: "release-agent/v1", Requester: "slack:" + req, Format: "opaque", State: sixKiB,
		Calls: []CallInput{{ToolCallID: "call_1", Tool: "send_mail", Arguments: []byte(mail)}}, CallsGiven: true,
	})
	if err != nil {
		return err
	}
	v := p.Approvals[0]
	rq, err := w.benchClick(v)
	if err != nil {
		return err
	}
	if r, err := w.s.Decide(w.ctx, rq); err != nil || !r.Applied {
		return fmt.Errorf("decide: %w, %v", err, r.Denial)
	}
	c, err := w.s.Claim(w.ctx, v.ApprovalID, ClaimOptions{Holder: "bench"})
	if err != nil || !c.Go {
		return fmt.Errorf("claim: %w, %s", err, c)
	}
	_, err = w.s.Record(w.ctx, c.Lease, Outcome{Class: OutcomeSucceeded, Output: json.RawMessage(`{"ok":true}`), Receipt: "ok"})
	return err
}

// benchClick makes the click. The benchmarks' database posts every card by itself (benchSchema), so that nothing else is measured.
func (w *world) benchClick(v View) (DecideRequest, error) {
	button, err := ParseButton(EncodeButton(benchKey, "C0APPROVALS", v.ApprovalID, v.Digest, v.Version))
	return DecideRequest{DecisionID: NewDecisionID(), Button: button, Channel: "C0APPROVALS", MessageTS: "1.1", Verb: Approve, By: Reviewer{alice, team}, Surface: SurfaceCard}, err
}

var benchKey = bytes.Repeat([]byte{7}, 32)

const benchSchema = `
CREATE FUNCTION bench_posted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.message_ts := '1.1'; NEW.mac_key := decode(repeat('07', 32), 'hex'); RETURN NEW; END $$;
CREATE TRIGGER bench_posted BEFORE INSERT ON card FOR EACH ROW EXECUTE FUNCTION bench_posted();`

const floorSchema = `
CREATE TABLE IF NOT EXISTS floor_request (id uuid PRIMARY KEY, status text NOT NULL, version int NOT NULL, body text NOT NULL) WITH (fillfactor = 70);
CREATE TABLE IF NOT EXISTS floor_blob (id uuid PRIMARY KEY, sealed bytea NOT NULL);
ALTER TABLE floor_blob ALTER COLUMN sealed SET STORAGE EXTERNAL;
CREATE TABLE IF NOT EXISTS floor_vote (id uuid PRIMARY KEY, reviewer text NOT NULL);
CREATE TABLE IF NOT EXISTS floor_ledger (id uuid PRIMARY KEY, state text NOT NULL, token uuid NOT NULL) WITH (fillfactor = 70);
CREATE TABLE IF NOT EXISTS floor_audit (id uuid PRIMARY KEY, subject uuid NOT NULL, kind text NOT NULL);
CREATE TABLE IF NOT EXISTS floor_outbox (id uuid PRIMARY KEY, subject uuid NOT NULL);`

// floorStep is one transaction in one round trip.
func floorStep(ctx context.Context, pool *pgxpool.Pool, id uuid.UUID, kind string, queue func(*pgx.Batch)) error {
	b := &pgx.Batch{}
	b.Queue(`BEGIN`)
	queue(b)
	b.Queue(`INSERT INTO floor_audit VALUES ($1, $2, $3)`, newV7(), id, kind)
	b.Queue(`INSERT INTO floor_outbox VALUES ($1, $2)`, newV7(), id)
	b.Queue(`COMMIT`)
	return pool.SendBatch(ctx, b).Close()
}

func floorSwap(b *pgx.Batch, id uuid.UUID, from, to string) {
	b.Queue(`SELECT status FROM floor_request WHERE id = $1 FOR UPDATE`, id)
	b.Queue(`UPDATE floor_request SET status = $3, version = version + 1 WHERE id = $1 AND status = $2`, id, from, to)
}

func (w *world) floorLife() error {
	id, token, body := newV7(), uuid.New(), strings.Repeat("b", 900)
	return firstOf(
		floorStep(w.ctx, w.s.intake, id, "requested", func(b *pgx.Batch) {
			b.Queue(`INSERT INTO floor_request VALUES ($1, 'pending', 1, $2)`, id, body)
			b.Queue(`INSERT INTO floor_blob VALUES ($1, $2)`, id, sixKiB)
		}),
		floorStep(w.ctx, w.s.clicks, id, "approved", func(b *pgx.Batch) {
			floorSwap(b, id, "pending", "approved")
			b.Queue(`INSERT INTO floor_vote VALUES ($1, 'slack:U0ALICE')`, id)
		}),
		floorStep(w.ctx, w.s.work, id, "claimed", func(b *pgx.Batch) {
			floorSwap(b, id, "approved", "executing")
			b.Queue(`INSERT INTO floor_ledger VALUES ($1, 'executing', $2)`, id, token)
		}),
		floorStep(w.ctx, w.s.work, id, "succeeded", func(b *pgx.Batch) {
			floorSwap(b, id, "executing", "completed")
			b.Queue(`UPDATE floor_ledger SET state = 'succeeded' WHERE id = $1 AND token = $2`, id, token)
		}),
	)
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// measured runs b.N lives by a number of clients and reports what each cost.
func measured(b *testing.B, w *world, clients int, life func(n int64) error) {
	b.Helper()
	var n atomic.Int64
	if err := life(runs.Add(1)); err != nil { // connections and caches are warm
		b.Fatal(err)
	}
	wal, cpu := w.wal(b), selfCPU()
	b.ResetTimer()
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for n.Add(1) <= int64(b.N) {
				if err := life(runs.Add(1)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "lives/s")
	b.ReportMetric(float64(w.wal(b)-wal)/float64(b.N), "WAL-B/life")
	b.ReportMetric(float64((selfCPU()-cpu).Microseconds())/float64(b.N), "client-CPU-µs/life")
}

// runs numbers the runs of all benchmarks.
var runs atomic.Int64

func (w *world) wal(b *testing.B) (n int64) {
	b.Helper()
	if err := w.db.QueryRow(w.ctx, `SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint`).Scan(&n); err != nil {
		b.Fatal(err)
	}
	return n
}

func selfCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func BenchmarkLifecycle(b *testing.B) {
	w := bench(b)
	for _, clients := range []int{1, 8, 32} {
		b.Run(fmt.Sprintf("floor/clients=%d", clients), func(b *testing.B) {
			measured(b, w, clients, func(int64) error { return w.floorLife() })
		})
		b.Run(fmt.Sprintf("product/clients=%d", clients), func(b *testing.B) { measured(b, w, clients, w.benchLife) })
	}
}

// BenchmarkClick is a decision beside the bare swap, turn by turn: the percentiles and their ratios (target 4: p99 ≤ 3).
func BenchmarkClick(b *testing.B) {
	w := bench(b)
	clicks, ids := make([]DecideRequest, b.N), make([]uuid.UUID, b.N)
	for i := range clicks {
		p, err := w.s.Submit(w.ctx, w.key, Intake{
			RunID: fmt.Sprintf("bench_%d", runs.Add(1)), AppStateVersion: "release-agent/v1", Requester: "slack:" + req, Format: "none",
			Calls: []CallInput{{ToolCallID: "call_1", Tool: "send_mail", Arguments: []byte(mail)}}, CallsGiven: true,
		})
		if err != nil {
			b.Fatal(err)
		}
		if clicks[i], err = w.benchClick(p.Approvals[0]); err != nil {
			b.Fatal(err)
		}
		ids[i] = newV7()
		if err := floorStep(w.ctx, w.s.intake, ids[i], "requested", func(q *pgx.Batch) {
			q.Queue(`INSERT INTO floor_request VALUES ($1, 'pending', 1, '')`, ids[i])
		}); err != nil {
			b.Fatal(err)
		}
	}
	took, bare := make([]time.Duration, b.N), make([]time.Duration, b.N)
	b.ResetTimer()
	for i := range clicks {
		began := time.Now()
		if r, err := w.s.Decide(w.ctx, clicks[i]); err != nil || !r.Applied {
			b.Fatal(err, r.Denial)
		}
		took[i] = time.Since(began)
		began = time.Now()
		if err := floorStep(w.ctx, w.s.clicks, ids[i], "approved", func(q *pgx.Batch) {
			floorSwap(q, ids[i], "pending", "approved")
			q.Queue(`INSERT INTO floor_vote VALUES ($1, 'slack:U0ALICE')`, ids[i])
		}); err != nil {
			b.Fatal(err)
		}
		bare[i] = time.Since(began)
	}
	b.StopTimer()
	slices.Sort(took)
	slices.Sort(bare)
	for name, at := range map[string]int{"p50": b.N / 2, "p99": b.N * 99 / 100} {
		b.ReportMetric(float64(took[at].Microseconds()), name+"-µs")
		b.ReportMetric(float64(took[at])/float64(bare[at]), name+"-ratio")
	}
}
