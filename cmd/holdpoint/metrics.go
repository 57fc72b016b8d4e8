package main

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/bot"
)

// coreMetrics is approvals.Metrics under the contract's names. Never an id as a label.
type coreMetrics struct {
	decided, refused, blocked, slack, violations                        *prometheus.CounterVec
	expired, reused, mismatch, stateFailure, uncertain, reconciliations prometheus.Counter
	pendingAge, stateBytes, click                                       prometheus.Histogram
}

func newRegistry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

func newCoreMetrics(r prometheus.Registerer) *coreMetrics {
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
		r.MustRegister(c)
		return c
	}
	vector := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		r.MustRegister(c)
		return c
	}
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
		r.MustRegister(h)
		return h
	}
	m := &coreMetrics{
		decided:         vector("holdpoint_decisions_total", "Decisions by outcome.", "outcome"),
		refused:         vector("holdpoint_refusals_total", "Refused intakes, clicks and commands, by reason.", "reason"),
		blocked:         vector("holdpoint_blocked_total", "Approvals that ended or were held without an effect, by reason code.", "reason"),
		slack:           vector("holdpoint_slack_calls_total", "Calls of Slack's Web API, by method and class of answer.", "method", "class"),
		violations:      vector("holdpoint_safety_violation_total", "Rows that must not exist, by kind. Alert on any.", "kind"),
		expired:         counter("holdpoint_approval_expired_total", "Approvals whose decide_by or execute_by passed."),
		reused:          counter("holdpoint_idempotency_reuse_total", "Claims answered with a stored result."),
		mismatch:        counter("holdpoint_argument_digest_mismatch_total", "Approvals revoked because the bytes were not those approved. Alert on any."),
		stateFailure:    counter("holdpoint_state_deserialize_failure_total", "States that could not be read: no JSON, or of a version that is not known."),
		uncertain:       counter("holdpoint_effect_uncertain_total", "Operations whose outcome nobody knows. Page somebody."),
		reconciliations: counter("holdpoint_reconciliations_total", "Uncertain operations ended by a person's evidence."),
		pendingAge:      histogram("holdpoint_approval_pending_age_seconds", "How long approvals were pending, whatever ended it; those that a rule decides by itself never are.", []float64{5, 15, 60, 300, 900, 3600, 14400, 86400, 259200}),
		stateBytes:      histogram("holdpoint_state_blob_bytes", "Size of the states taken.", prometheus.ExponentialBuckets(1024, 4, 8)),
		click:           histogram("holdpoint_click_seconds", "A decision's two round trips.", []float64{.001, .002, .005, .01, .025, .05, .1, .25, .5, 1, 2.5}),
	}
	m.begin()
	return m
}

// begin makes each series of the fixed sets of labels: a rate or an increase over one that comes into being with its first event does
// not see that event.
func (m *coreMetrics) begin() {
	zero := func(v *prometheus.CounterVec, label string) { v.WithLabelValues(label) }
	for _, kind := range approvals.ViolationKinds() {
		zero(m.violations, kind)
	}
	for _, r := range approvals.Reasons {
		zero(m.blocked, string(r))
	}
	for _, c := range approvals.Codes {
		zero(m.refused, string(c))
	}
	for _, k := range approvals.DenialKinds {
		zero(m.refused, string(k))
	}
	for _, why := range []string{approvals.RefusedNotAdmin, approvals.RefusedStranger, refusedCard} {
		zero(m.refused, why)
	}
	for _, v := range []approvals.Verb{approvals.Approve, approvals.Reject, approvals.Edit, approvals.Respond} {
		zero(m.decided, string(v))
	}
	for _, end := range []approvals.Status{approvals.Expired, approvals.Revoked, approvals.MigrationRequired} {
		zero(m.decided, string(end))
	}
	for _, method := range bot.Methods {
		for _, c := range bot.Classes {
			m.slack.WithLabelValues(method, string(c))
		}
	}
}

// refusedCard is the reason under which a card that Slack refused is counted: a plain one stands in.
const refusedCard = "card_plain"

func (m *coreMetrics) Decided(outcome string) { m.decided.WithLabelValues(outcome).Inc() }
func (m *coreMetrics) Refused(code string)    { m.refused.WithLabelValues(code).Inc() }
func (m *coreMetrics) Blocked(reason approvals.Reason) {
	m.blocked.WithLabelValues(string(reason)).Inc()
}
func (m *coreMetrics) Expired()                     { m.expired.Inc() }
func (m *coreMetrics) PendingAge(d time.Duration)   { m.pendingAge.Observe(d.Seconds()) }
func (m *coreMetrics) Reused()                      { m.reused.Inc() }
func (m *coreMetrics) DigestMismatch()              { m.mismatch.Inc() }
func (m *coreMetrics) StateFailure()                { m.stateFailure.Inc() }
func (m *coreMetrics) Uncertain()                   { m.uncertain.Inc() }
func (m *coreMetrics) Reconciled()                  { m.reconciliations.Inc() }
func (m *coreMetrics) StateBytes(n int)             { m.stateBytes.Observe(float64(n)) }
func (m *coreMetrics) ClickLatency(d time.Duration) { m.click.Observe(d.Seconds()) }
func (m *coreMetrics) slackCall(method string, c bot.Class) {
	m.slack.WithLabelValues(method, string(c)).Inc()
}

func metricsHandler(r *prometheus.Registry) http.Handler {
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{})
}
