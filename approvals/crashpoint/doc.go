// Package crashpoint marks the boundaries of the crash matrix, so that a test can kill a process exactly there, as kill -9 does.
//
// It is absent from releases: without the build tag `crashpoints`, [At] does nothing and is inlined away. With it, the environment
// variable HOLDPOINT_CRASH_AT names the point, as NAME or as NAME:N for the N-th time that it is passed. The points, by the rows of
// the matrix:
//
//	intake.begun      before the intake commit
//	intake.committed  intake commit → HTTP reply
//	decide.begun      click: before commit
//	decide.committed  click: commit → Slack ack, and decision commit → enqueue
//	relay.enqueued    enqueue → outbox delete
//	execute.dequeued  dequeue → reserve
//	execute.claimed   executing, before the first byte
//	execute.sent      effect → response
//	execute.answered  response → result commit
//	execute.recorded  result commit → task ack
//	resume.built      result → resume webhook
//	resume.answered   webhook 2xx → mark
//	resume.recorded   mark → task ack
//	card.begun        final state → card update
//	card.synced       card update → task ack
//
// The other rows are cuts that a test makes from outside: Slack's answer to a post held back, a connection cut at COMMIT, a Redis
// that forgets. A test of worker/proof compares this list with the calls in the code and with the cases that it runs.
package crashpoint

// The environment variables that name a point: where to end as by kill -9, and where to stop as by SIGSTOP, once.
const (
	Variable     = "HOLDPOINT_CRASH_AT"
	StopVariable = "HOLDPOINT_STOP_AT"
)
