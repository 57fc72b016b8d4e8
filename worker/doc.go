// Package worker carries a commit's promises out: it relays the outbox to Redis, runs
// approved tools, tells agents that their run goes on, and sweeps what is due.
//
// Redis is a doorbell. A task carries an id and nothing else, and what it says is only
// "look at this row": Postgres decides (I28). Every task may therefore come twice, late,
// out of order or never:
//
//   - twice, or from a process that was stopped and continued: the claim and its fenced
//     outcome let one holder through (I13, I16);
//   - never (Redis was flushed, a task was archived): the sweeper rings again from
//     Postgres, under a new task id (L3);
//   - Redis is down: outbox rows stay where they are until it is back; nothing is lost and
//     nothing stops.
//
// The error of a task is stored in Redis by Asynq, so handlers return fixed texts; what
// went wrong is logged here, without arguments (I24).
//
//	Ring ──────────────┐ right after the commit, best effort
//	outbox ── Relay ───┴─▶ Redis ──▶ execute  claim → tool → record
//	   ▲                          ──▶ resume   build → webhook → record
//	   └── Sweep (due rows)       ──▶ card     Cards.Sync
//
// Where a kill at each step leads is said in execute.go and resume.go, at the step.
package worker
