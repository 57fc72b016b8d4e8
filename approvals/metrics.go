package approvals

import "time"

// Metrics counts what operators watch; the names outside are those of the contract. No id is ever given to it.
type Metrics interface {
	Decided(outcome string)       // approve, reject, edit, respond, expired, revoked …
	Refused(code string)          // an intake's or a click's refusal
	Expired()                     // holdpoint_approval_expired_total
	PendingAge(d time.Duration)   // how long a decision was waited for
	Reused()                      // holdpoint_idempotency_reuse_total
	DigestMismatch()              // holdpoint_argument_digest_mismatch_total
	StateFailure()                // holdpoint_state_deserialize_failure_total
	Uncertain()                   // holdpoint_effect_uncertain_total
	Reconciled()                  // holdpoint_reconciliations_total
	StateBytes(n int)             // holdpoint_state_blob_bytes
	ClickLatency(d time.Duration) // from Decide's begin to its commit
	Blocked(reason Reason)        // ended or held without effect, by reason code
}

type noMetrics struct{}

func (noMetrics) Decided(string)             {}
func (noMetrics) Refused(string)             {}
func (noMetrics) Expired()                   {}
func (noMetrics) PendingAge(time.Duration)   {}
func (noMetrics) Reused()                    {}
func (noMetrics) DigestMismatch()            {}
func (noMetrics) StateFailure()              {}
func (noMetrics) Uncertain()                 {}
func (noMetrics) Reconciled()                {}
func (noMetrics) StateBytes(int)             {}
func (noMetrics) ClickLatency(time.Duration) {}
func (noMetrics) Blocked(Reason)             {}
