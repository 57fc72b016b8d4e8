// Package interactions is the way in from Slack: verify, parse, one call into the core, answer.
//
// What always holds:
//
//   - No byte of a request is believed before its signature is verified: HMAC-SHA256 over the raw body, five minutes in
//     both directions, constant time (docs.slack.dev/authentication/verifying-requests-from-slack). What is not signed
//     gets 401 on every route, and so does a byte-identical repeat. Nothing is read from a query string.
//   - Who acts is user.id and user.team_id of the signed payload; names and the payload's own team decide nothing. The
//     app, the channel and the message are compared with ours and with the stored card's.
//   - A click is one call of Decide and then 200: two round trips to Postgres, no call to Slack, no other write. All
//     that is for the eye (repainting the card, telling the clicker why not) happens after the answer, in a bounded
//     number of goroutines. What is dropped there is repaired by the outbox.
//   - Looking, like deciding, is for full, active members of the tenant's workspace who are not blocked: lists, Details, forms
//     and the home tab ask the mirror first and show nothing to anybody else, or to whom it can't check (I4, I22).
//   - Whoever is refused learns why; nobody else sees it.
//   - Nothing typed by a person and no argument is in a log line or an error of this package (I24).
//
// # Replays
//
// A signature seen before, in this process, gets 401 before anything is parsed. Several processes share a memory in
// Postgres ([Core.Seen]). A request that stops, starts or reconciles something asks it first. A decision does not, since
// that would cost the click a round trip: a second delivery of the same click finds the vote of the first, changes
// nothing and reads its outcome, so the signature is noted after the answer. Slack's own retries carry a new signature
// and timestamp; they meet the same rule, and events only cause reading.
package interactions
