package approvals

// Status is where an approval stands. The transition table below is the specification: the code, the database trigger and the
// diagram in doc.go are held to it by one test (I9).
type Status string

// The twelve statuses. "The run has been told" is a time on the pause, never a status.
const (
	Pending           Status = "pending"            // a person must decide
	Approved          Status = "approved"           // decided; its execution is due, or held
	Rejected          Status = "rejected"           // explicitly denied; nothing was executed
	Edited            Status = "edited"             // replaced by a child with a new digest
	Responded         Status = "responded"          // a question was answered; nothing was executed
	Expired           Status = "expired"            // decide_by or execute_by passed; nothing was executed
	Revoked           Status = "revoked"            // withdrawn by a person, the agent or the system; nothing was executed
	MigrationRequired Status = "migration_required" // the agent or the tool changed while it waited
	Executing         Status = "executing"          // claimed: the ledger holds a lease
	Completed         Status = "completed"          // the effect happened and its result is stored
	Failed            Status = "failed"             // no effect, proven
	Uncertain         Status = "uncertain"          // nobody knows; ends only by evidence
)

// Statuses lists all of them in the order of a life.
var Statuses = []Status{Pending, Approved, Rejected, Edited, Responded, Expired, Revoked, MigrationRequired, Executing, Completed, Failed, Uncertain}

// begin is the status before there is a row.
const begin Status = ""

// transitions is the approval table of the invariants. A status that leads to itself changes the row without changing the
// status: a vote, a hold, a takeover, a late revocation, evidence.
var transitions = map[Status][]Status{
	begin:     {Pending},
	Pending:   {Pending, Approved, Rejected, Edited, Responded, Expired, Revoked, MigrationRequired},
	Approved:  {Approved, Executing, Expired, Revoked, MigrationRequired},
	Executing: {Executing, Approved, Completed, Failed, Uncertain},
	Uncertain: {Uncertain, Completed, Failed},
}

// CanBecome says whether the table allows from → to.
func (s Status) CanBecome(to Status) bool {
	for _, t := range transitions[s] {
		if t == to {
			return true
		}
	}
	return false
}

// Terminal says that nothing leads out of the status.
func (s Status) Terminal() bool { return s != begin && len(transitions[s]) == 0 }

// LedgerState is where an operation stands in the idempotency ledger.
type LedgerState string

// The six ledger states (seed, "Idempotency Ledger").
const (
	Reserved        LedgerState = "reserved"         // a holder has the right to go on; nothing is sent under this epoch
	Running         LedgerState = "executing"        // the intent is durable; the request may be on its way
	Succeeded       LedgerState = "succeeded"        // the effect happened; the result is stored and reused
	FailedRetryable LedgerState = "failed_retryable" // proven no effect; may be tried again
	FailedTerminal  LedgerState = "failed_terminal"  // proven no effect; over
	Unknown         LedgerState = "uncertain"        // nobody knows
)

// LedgerStates lists all of them.
var LedgerStates = []LedgerState{Reserved, Running, Succeeded, FailedRetryable, FailedTerminal, Unknown}

// ledgerTransitions is the ledger table of the invariants; a state that leads to itself changes lease, evidence or counters only.
var ledgerTransitions = map[LedgerState][]LedgerState{
	Reserved:        {Reserved, Running, FailedTerminal, Unknown},
	Running:         {Running, Reserved, Succeeded, FailedRetryable, FailedTerminal, Unknown},
	FailedRetryable: {Reserved, FailedTerminal},
	Unknown:         {Unknown, Succeeded, FailedTerminal},
	Succeeded:       {Succeeded},
}

// CanBecome says whether the ledger's table allows from → to.
func (s LedgerState) CanBecome(to LedgerState) bool {
	for _, t := range ledgerTransitions[s] {
		if t == to {
			return true
		}
	}
	return false
}

// wait says what a non-terminal approval waits for in approval_open; due_at is when somebody must look.
type wait string

const (
	waitDecision  wait = "decision"  // a person, until decide_by
	waitExecution wait = "execution" // a worker's claim; due at once
	waitAgent     wait = "agent"     // the agent's claim, until execute_by
	waitLease     wait = "lease"     // the holder's outcome, until the lease ends
	waitRetry     wait = "retry"     // the back-off
	waitEvidence  wait = "evidence"  // a lookup or a person
	waitHeld      wait = "held"      // a suspension, a window or an unreadable authority to pass
)
