package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/bot"
)

// contractsMetrics are the names of the contract's page.
func contractsMetrics(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile("../../docs/contract.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(page), "\n## Metrics\n")
	if !ok {
		t.Fatal("the contract has no metrics")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	names := regexp.MustCompile(`holdpoint_[a-z_]+`).FindAllString(section, -1)
	slices.Sort(names)
	if names = slices.Compact(names); len(names) < 20 {
		t.Fatalf("only %q", names)
	}
	return names
}

// Both processes have every name of the contract from the start, `serve` without Redis too, and every series of a fixed set of labels:
// a rate over one that comes into being with its first event does not see that event.
func TestContractsMetricsAreOnBothProcesses(t *testing.T) {
	t.Parallel()
	built(t, plainBinary)
	w := newWorld(t)
	w.applied(w.program(plainBinary))
	g := w.program(plainBinary)
	_, address := g.with("HOLDPOINT_REDIS_URL=").serve()
	_, probes := g.watched()
	for process, at := range map[string]string{"serve": address, "worker": probes} {
		_, body := w.read(at + "/metrics")
		for _, name := range contractsMetrics(t) {
			if !strings.Contains(body, "\n# TYPE "+name+" ") || !regexp.MustCompile(`(?m)^`+name+`(_bucket)?(\{[^}]*\})? \d`).MatchString(body) {
				t.Errorf("%s has no series of %s", process, name)
			}
		}
		var want []string
		for _, kind := range approvals.ViolationKinds() {
			want = append(want, fmt.Sprintf("holdpoint_safety_violation_total{kind=%q} 0", kind))
		}
		for _, why := range approvals.Reasons {
			want = append(want, fmt.Sprintf("holdpoint_blocked_total{reason=%q} 0", why))
		}
		for _, code := range approvals.Codes {
			want = append(want, fmt.Sprintf("holdpoint_refusals_total{reason=%q} 0", code))
		}
		for _, kind := range approvals.DenialKinds {
			want = append(want, fmt.Sprintf("holdpoint_refusals_total{reason=%q} 0", kind))
		}
		for _, attempt := range []string{"first", "repeat"} {
			want = append(want, fmt.Sprintf("holdpoint_resume_attempts_total{attempt=%q} 0", attempt))
		}
		for _, line := range want {
			if !strings.Contains(body, "\n"+line+"\n") {
				t.Errorf("%s does not say %s", process, line)
			}
		}
	}
}

// The worker's probes: alive while it runs; ready while Postgres has its schema and Redis answers.
func TestWorkersProbes(t *testing.T) {
	t.Parallel()
	built(t, plainBinary)
	w := newWorld(t)
	w.applied(w.program(plainBinary))
	_, at := w.program(plainBinary).watched()
	want := func(when string, status int, says string) {
		t.Helper()
		w.eventually("/readyz "+when, func() (string, bool) {
			got, body := w.read(at + "/readyz")
			return fmt.Sprintf("%d %s", got, body), got == status && strings.Contains(body, says)
		})
		if got, body := w.read(at + "/healthz"); got != http.StatusOK || body != "ok\n" {
			t.Errorf("/healthz %s: %d %s", when, got, body)
		}
	}
	want("at first", http.StatusOK, "ready")
	w.redis.Stop()
	want("without Redis", http.StatusServiceUnavailable, "Redis")
	w.redis.Restart()
	want("with Redis again", http.StatusOK, "ready")
	_, err := w.db.Exec(w.ctx, `ALTER TABLE goose_db_version RENAME TO away`)
	w.must(err)
	want("without the schema", http.StatusServiceUnavailable, "migrate up")
	_, err = w.db.Exec(w.ctx, `ALTER TABLE away RENAME TO goose_db_version`)
	w.must(err)
	want("with the schema again", http.StatusOK, "ready")
	if status, body := w.read(at + "/metrics"); status != http.StatusOK || !strings.Contains(body, "\ngo_goroutines ") {
		t.Errorf("/metrics: %d", status)
	}
	if status, _ := w.read(at + "/else"); status != http.StatusNotFound {
		t.Errorf("/else: %d", status)
	}
}

// applied applies the world's configuration with the program, as an operator does.
func (w *world) applied(g *program) {
	w.t.Helper()
	g.ok("config", "apply", w.config)
}

// watched starts a worker with probes, and says where they are.
func (g *program) watched() (*process, string) {
	g.w.t.Helper()
	p := g.with("HOLDPOINT_METRICS_LISTEN=127.0.0.1:0").worker()
	for line := range strings.Lines(p.log.String()) {
		var l struct{ Msg, Metrics string }
		if json.Unmarshal([]byte(line), &l) == nil && l.Msg == "working" {
			return p, "http://" + l.Metrics
		}
	}
	g.w.t.Fatal("the worker did not say where its metrics are")
	return nil, ""
}

func (w *world) read(url string) (int, string) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.ctx, http.MethodGet, url, nil)
	w.must(err)
	resp, err := http.DefaultClient.Do(req)
	w.must(err)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	w.must(err)
	return resp.StatusCode, string(body)
}

// search is a core whose looks a test scripts.
type search struct {
	looks []time.Duration
	found []approvals.Violation
	err   error
}

func (s *search) Violations(_ context.Context, within time.Duration) ([]approvals.Violation, error) {
	s.looks = append(s.looks, within)
	return s.found, s.err
}

// The watch counts a violation once, reaches back to the last look that succeeded, and looks at everything once a day.
func TestSafetyWatch(t *testing.T) {
	t.Parallel()
	core, m := &search{}, newCoreMetrics(prometheus.NewRegistry())
	w := newSafetyWatch(core, m, slog.New(slog.DiscardHandler))
	now := w.seen
	w.now = func() time.Time { return now }
	look := func(after time.Duration) time.Duration {
		now = now.Add(after)
		w.look(t.Context())
		return core.looks[len(core.looks)-1]
	}
	w.whole = now.Add(time.Hour)
	if within := look(time.Minute); within != time.Minute+safetyMargin {
		t.Errorf("the first look reaches back %s", within)
	}
	core.err = errors.New("away")
	look(time.Minute)
	look(3 * time.Minute)
	core.err = nil
	if within := look(time.Minute); within != 5*time.Minute+safetyMargin {
		t.Errorf("after two failures it reaches back %s", within)
	}
	core.err = errors.New("away")
	if within := look(time.Hour); within != 0 {
		t.Errorf("it is time for everything: %s", within)
	}
	core.err = nil
	if within := look(time.Minute); within != 0 {
		t.Errorf("everything is still to be looked at: %s", within)
	}
	if within := look(time.Minute); within != time.Minute+safetyMargin {
		t.Errorf("after that: %s", within)
	}
	if within := look(safetyWhole); within != 0 {
		t.Errorf("a day later: %s", within)
	}
	core.found = []approvals.Violation{{Kind: "two_effects", ID: "1"}, {Kind: "two_effects", ID: "2"}}
	look(time.Minute)
	look(time.Minute)
	core.found = nil
	look(time.Minute)
	core.found = []approvals.Violation{{Kind: "two_effects", ID: "1"}, {Kind: "late_vote", ID: "1"}}
	look(time.Minute)
	if two, late := testutil.ToFloat64(m.violations.WithLabelValues("two_effects")), testutil.ToFloat64(m.violations.WithLabelValues("late_vote")); two != 2 || late != 1 {
		t.Errorf("counted %v and %v", two, late)
	}
}

// Eight processes keep one mirror young with the calls of one, or little more: whoever finds somebody too old reads them, and the
// others see that in the database.
func TestManyProcessesShareTheMirror(t *testing.T) {
	t.Parallel()
	p := start(t, 1, 0)
	client, err := bot.NewClient(bot.ClientOptions{Token: testToken, APIURL: p.sim.URL() + "/api/"})
	p.must(err)
	t.Cleanup(client.Close)
	core := approvals.New(approvals.Options{Clicks: p.db, Intake: p.db, Work: p.db})
	// round lets eight processes begin, one after the other, and look once each.
	round := func() (people, groups int) {
		people, groups = p.sim.Calls("users.info"), p.sim.Calls("usergroups.list")
		for range 8 {
			ctx, once := context.WithCancel(p.ctx)
			d := bot.NewDirectory(core, client, bot.DirectoryOptions{Every: directoryEvery, After: func(time.Duration) <-chan time.Time {
				once()
				return nil
			}})
			p.must(d.Run(ctx))
		}
		return p.sim.Calls("users.info") - people, p.sim.Calls("usergroups.list") - groups
	}
	if people, groups := round(); people != 0 || groups != 0 {
		t.Errorf("a fresh mirror was read again by processes that have just begun: %d and %d calls", people, groups)
	}
	known := p.number(`SELECT count(*) FROM slack_user`)
	for range 2 {
		_, err := p.db.Exec(p.ctx, `UPDATE slack_user SET synced_at = synced_at - interval '1 hour'`)
		p.must(err)
		_, err = p.db.Exec(p.ctx, `UPDATE slack_group SET synced_at = synced_at - interval '1 hour'`)
		p.must(err)
		if people, groups := round(); people == 0 || people > known || groups != 1 {
			t.Errorf("%d people took %d calls, the groups %d", known, people, groups)
		}
	}
}

// What somebody asks for and may not is in the audit and in the metric: on the real core, through Slack's callback, however often.
func TestRefusedCommandIsInTheAudit(t *testing.T) {
	t.Parallel()
	p := start(t, 2, 0)
	for range 5 {
		_, err := p.sim.Command(p.ctx, "U0MALLORY", room, "/approvals", "pause tenant because")
		p.must(err)
	}
	if n := p.number(`SELECT count(*) FROM audit_event WHERE kind = 'command.refused' AND tenant_id = 'acme' AND actor = 'slack:U0MALLORY'
		AND surface = 'command' AND detail ->> 'verb' = 'pause' AND detail ->> 'why' = 'not_admin'`); n != 1 {
		t.Errorf("%d rows", n)
	}
	if n := p.number(`SELECT count(*) FROM suspension WHERE active`); n != 0 {
		t.Errorf("%d pauses", n)
	}
	counted := 0
	for _, front := range p.fronts {
		_, body := p.read(front + "/metrics")
		var n int
		if _, after, ok := strings.Cut(body, `holdpoint_refusals_total{reason="not_admin"} `); ok {
			_, err := fmt.Sscan(after, &n)
			p.must(err)
		}
		counted += n
	}
	if counted != 5 {
		t.Errorf("%d refusals counted", counted)
	}
}
