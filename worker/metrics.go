package worker

import (
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/holdpoint/holdpoint/approvals"
)

// Metrics are what operators watch of a worker. Labels are of fixed sets: never an id.
type Metrics struct {
	resumeAttempts  *prometheus.CounterVec
	toolCalls       *prometheus.CounterVec
	toolSeconds     *prometheus.HistogramVec
	startWait       prometheus.Histogram
	tasks           *prometheus.CounterVec
	outboxLag       prometheus.Histogram
	dispatches      prometheus.Counter
	enqueueFailures prometheus.Counter
	sweepFailures   prometheus.Counter
	sweptRows       *prometheus.CounterVec
	deadLetters     *prometheus.GaugeVec
}

// NewMetrics registers a worker's metrics; nil registers nowhere.
func NewMetrics(r prometheus.Registerer) *Metrics {
	f := promauto.With(r)
	counter := func(name, help string) prometheus.Counter {
		return f.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	m := &Metrics{
		resumeAttempts: f.NewCounterVec(prometheus.CounterOpts{
			Name: "holdpoint_resume_attempts_total", Help: "Tries to tell an agent that its run goes on: the first of a pause, or a repeat.",
		}, []string{"attempt"}),
		toolCalls: f.NewCounterVec(prometheus.CounterOpts{
			Name: "holdpoint_tool_calls_total", Help: "Tool requests by what was done (execute, lookup) and by the class of the outcome.",
		}, []string{"call", "outcome"}),
		toolSeconds: f.NewHistogramVec(prometheus.HistogramOpts{
			Name: "holdpoint_tool_call_seconds", Help: "How long tool requests took.", Buckets: prometheus.ExponentialBuckets(0.005, 3, 10),
		}, []string{"call"}),
		startWait: f.NewHistogram(prometheus.HistogramOpts{
			Name: "holdpoint_execution_start_seconds", Help: "From the decision to the first claim of its operation.", Buckets: prometheus.ExponentialBuckets(0.002, 3, 12),
		}),
		tasks: f.NewCounterVec(prometheus.CounterOpts{
			Name: "holdpoint_tasks_total", Help: "Tasks handled, by kind (execute, resume, card) and result (done, again, later, panic).",
		}, []string{"kind", "result"}),
		outboxLag: f.NewHistogram(prometheus.HistogramOpts{
			Name: "holdpoint_outbox_lag_seconds", Help: "From an outbox row's making to its dispatch by the relay.", Buckets: prometheus.ExponentialBuckets(0.005, 3, 10),
		}),
		dispatches:      counter("holdpoint_outbox_dispatched_total", "Outbox rows that the relay moved to Redis."),
		enqueueFailures: counter("holdpoint_enqueue_failures_total", "Tasks that Redis did not take; their rows stay in the outbox."),
		sweepFailures:   counter("holdpoint_sweep_failures_total", "Sweeps that failed."),
		sweptRows: f.NewCounterVec(prometheus.CounterOpts{
			Name: "holdpoint_swept_total", Help: "What sweeps did: approvals expired or left uncertain, executions, resumes and cards rung again.",
		}, []string{"what"}),
		deadLetters: f.NewGaugeVec(prometheus.GaugeOpts{
			Name: "holdpoint_dead_letters", Help: "Runs that could not be told now, of all tenants: nobody took the message for 24 h (unheard), or the agent said to stop (stopped).",
		}, []string{"why"}),
	}
	m.begin()
	return m
}

// begin makes each series of the fixed sets of labels: a rate or an increase over one that comes into being with its first event does
// not see that event.
func (m *Metrics) begin() {
	for _, attempt := range []string{"first", "repeat"} {
		m.resumeAttempts.WithLabelValues(attempt)
	}
	for _, what := range []string{"execute", "lookup"} {
		m.toolSeconds.WithLabelValues(what)
		for _, class := range approvals.OutcomeClasses {
			m.toolCalls.WithLabelValues(what, string(class))
		}
	}
	for kind := range kinds {
		for _, result := range []string{"done", "again", "later", "panic"} {
			m.tasks.WithLabelValues(kind, result)
		}
	}
	m.swept(approvals.SweepReport{})
	for _, why := range []string{"unheard", "stopped"} {
		m.deadLetters.WithLabelValues(why)
	}
}

func (m *Metrics) resumeTried(attempt int) {
	label := "first"
	if attempt > 1 {
		label = "repeat"
	}
	m.resumeAttempts.WithLabelValues(label).Inc()
}

func (m *Metrics) toolCalled(what string, class approvals.OutcomeClass, took time.Duration) {
	m.toolCalls.WithLabelValues(what, string(class)).Inc()
	m.toolSeconds.WithLabelValues(what).Observe(took.Seconds())
}

func (m *Metrics) started(waited time.Duration) { m.startWait.Observe(waited.Seconds()) }

// dispatched reads a row's age from its id, which is a UUIDv7.
func (m *Metrics) dispatched(ids []uuid.UUID, now time.Time) {
	m.dispatches.Add(float64(len(ids)))
	for _, id := range ids {
		if id.Version() == 7 {
			m.outboxLag.Observe(max(now.Sub(time.Unix(id.Time().UnixTime())), 0).Seconds())
		}
	}
}

func (m *Metrics) undelivered(n approvals.Undelivered) {
	m.deadLetters.WithLabelValues("unheard").Set(float64(n.Unheard))
	m.deadLetters.WithLabelValues("stopped").Set(float64(n.Stopped))
}

func (m *Metrics) swept(r approvals.SweepReport) {
	for what, n := range map[string]int{"expired": r.Expired, "uncertain": r.Uncertain, "execute": r.Rung, "resume": r.Resumes, "card": r.Cards} {
		m.sweptRows.WithLabelValues(what).Add(float64(n))
	}
}
