// Package bot speaks to Slack: one client with one place that retries, the job that makes a card match its row, and the
// mirror of people and groups.
//
// What always holds:
//
//   - A card is a function of its row (I27): [CardOf] reads no clock and asks nobody.
//   - [Syncer.Sync] is level-triggered. It never acts on what an event said, only on the row it reads, and it reads the
//     row again after each change it made in Slack, so any number of runs, in any order, end at the same card (L6).
//     Runs for one card are serial; an older picture never follows a newer one, so buttons that went never come back.
//   - chat.postMessage is never sent again after an ambiguous answer. The message is looked up by its metadata first.
//   - A failed look-up of people or groups changes nothing in the mirror, which then grows too old to be believed (I4).
//     It never falls back to another list.
//   - No error, log line or metric of this package carries an argument, a token or a response URL (I24). Errors name the
//     method, Slack's code and a class.
package bot
