// Package approvals is Holdpoint's core: every state that an approval can be in, every transition between them, and the one door
// through which all of them go. It knows Postgres, the tenants' rules, sealed bytes and the shape of paused runs; it knows no Slack,
// no Redis and no HTTP. Whoever brings it facts or carries its consequences out depends on it, never the other way.
//
// # What always holds
//
// Authority. Every effect belongs to one approval whose digest is that of the executed bytes (I1); an approval that is not
// executing, completed, failed or uncertain has had none (I2). A click is not a standing grant: the claim revalidates requester,
// agent, key, rule, votes, versions, tool, digests, deadlines, window and kill switch against the current configuration, in the
// transaction that commits `executing` (I3). What cannot be read is not there (I4). The requester, an editor and an agent never
// approve their own (I5). One vote a person, for one digest; one final decision (I6), never at or after its deadline, however long
// its statement waited for a lock (I7); the loser of a race changes nothing and is told who won (I8). Only the transitions below
// happen (I9). An edit makes a child, and changes no row (I10); an approval authorises no other call (I11) and no unregistered
// version (I12).
//
// Effects. One effect an operation key, one automatic dispatch for a tool that can be neither asked nor sent again (I13); the server
// derives that key (I14). The intent is durable before the first byte leaves (I15); only the holder of the current token and epoch
// records (I16). Unknown is never taken for "did not happen" (I17) and ends by evidence only (I18); a keyed resend stops before the
// key is forgotten (I19). The result is committed before anybody is told (I20), and the same intake is the same pause (I21).
//
// Evidence. Nothing crosses tenants (I22); sealed bytes open for their own row (I23); no secret reaches a text column, an error or a
// log (I24). A transition, its audit row and its outbox rows are one commit (I25).
//
// # The approval
//
// The table is in status.go; a test holds this diagram, the code and the database's trigger to each other. A status that leads to
// itself changes the row: a vote, a hold, a takeover, a late revocation, evidence.
//
//	stateDiagram-v2
//	    [*] --> pending: intake, or the edit of a parent
//	    pending --> pending: a vote, the quorum not yet met
//	    pending --> approved: the last vote, or the rule itself
//	    pending --> rejected: a reviewer, or the rule itself
//	    pending --> edited: a reviewer; the child is pending
//	    pending --> responded: a question was answered
//	    pending --> expired: decide_by
//	    pending --> revoked: an admin, the agent, the system
//	    pending --> migration_required: the agent or the tool changed
//	    approved --> approved: held, and held no more
//	    approved --> executing: the claim
//	    approved --> expired: execute_by
//	    approved --> revoked: an admin, the agent, authority lost
//	    approved --> migration_required: the agent or the tool changed
//	    executing --> executing: a takeover, an unknown outcome, revoked too late
//	    executing --> approved: proven without effect, to be tried again
//	    executing --> completed: it happened
//	    executing --> failed: proven without effect, and over
//	    executing --> uncertain: nobody knows
//	    uncertain --> uncertain: a first person's evidence
//	    uncertain --> completed: evidence that it happened
//	    uncertain --> failed: evidence that it did not
//	    rejected --> [*]
//	    edited --> [*]
//	    responded --> [*]
//	    expired --> [*]
//	    revoked --> [*]
//	    migration_required --> [*]
//	    completed --> [*]
//	    failed --> [*]
//
// # The operation
//
// One row of the ledger a lineage, so that an edited call can never run beside its parent. `reserved` lives inside a claim's
// transaction only.
//
//	stateDiagram-v2
//	    [*] --> reserved: the first claim
//	    reserved --> reserved: a takeover, epoch + 1
//	    reserved --> executing: in the same transaction
//	    reserved --> failed_terminal: nothing was ever sent
//	    reserved --> uncertain: something may have been
//	    executing --> executing: unknown, to be sent under its key or asked about
//	    executing --> reserved: the lease is over
//	    executing --> succeeded: it happened
//	    executing --> failed_retryable: proven without effect
//	    executing --> failed_terminal: refused, spent
//	    executing --> uncertain: nobody knows
//	    failed_retryable --> reserved: the back-off is over
//	    failed_retryable --> failed_terminal: attempts or authority are gone
//	    uncertain --> uncertain: a report without news
//	    uncertain --> succeeded: evidence
//	    uncertain --> failed_terminal: evidence
//	    succeeded --> succeeded: the result was reused
//	    failed_terminal --> [*]
//
// # Words
//
//   - approval: one tool call that waits for a decision, and what becomes of it; named apr_….
//   - pause: what a run sent at once; told once, when all of its calls are settled.
//   - settled: terminal, or approved for a tool that the agent itself runs. An edited call is settled through its child.
//   - lineage: an approval and the edits of it; named by its first approval. One operation a lineage.
//   - claim: the transaction that revalidates an approval and takes its operation.
//   - lease, token, epoch: the right of one holder to run and record; the epoch grows with every holder.
//   - held: approved, and waiting for a switch, a window or the directory; until execute_by.
//   - decide_by, execute_by: the deadlines before and after the decision; expires_at is the one in force.
//   - proposal digest: what a reviewer approves: everything that makes this call this call, salted.
//   - operation key: the name of the effect to its tool; the same on every attempt of a lineage and target.
//   - door: sqlSwap in transition.go, the only statement that changes a status.
//   - carry over: a call of a pause not yet told goes on unchanged in the run's next pause.
package approvals
