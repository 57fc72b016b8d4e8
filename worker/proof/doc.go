// Package proof shows that an approved call has exactly one effect, and that the product says "uncertain" where nobody can know.
//
// It holds tests and their commands only; nothing may import it. What they rely on is outside of the product: the sink (command
// worker/proof/sink) is a process of its own that counts every request it receives and never forgets one, Slack is the simulator,
// and processes of the product are killed with the real SIGKILL.
//
//	crash_test.go    every boundary of the crash matrix × retry class × decision
//	lost_test.go     the rows that are no point in a process: lost answers to a COMMIT, a card posted and not remembered
//	torture_test.go  8 workers, conflicting people, revocations, deadlines, duplicated deliveries, resets everywhere
//	doorbell_test.go Redis forgets, restarts, evicts, archives
//	zombie_test.go   a worker that is stopped for longer than its lease, and goes on
//	replay_test.go   an agent that dies after its effect
//	guards_test.go   guards that stand behind other guards, each made to stand alone
//	mutants          a command: each guard taken out makes a named test fail
//
// After every one of them the checker (checker_test.go) joins the database with what the sink, Slack and the agent saw.
//
// `go test` runs a bounded form. HOLDPOINT_TORTURE=10000 (`make torture`) runs all cells of the matrix and that many operations.
package proof
