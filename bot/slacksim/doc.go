// Package slacksim is a strict Slack for development and tests. Production code talks to it exactly as it talks to
// Slack: the only difference is the API URL (slack-go's OptionAPIURL set to Sim.URL() + "/api/") and the address
// that Slack calls back.
//
// It is built to fail where Slack fails, and on the safe side where Slack's behaviour is undocumented:
//
//   - Block Kit is validated on the raw JSON, never by decoding into a client library: unknown blocks, elements and
//     fields are refused with Slack's error names (invalid_blocks, invalid_arguments, msg_too_long, …) and one
//     response_metadata message a fault, with a JSON pointer.
//   - Callbacks are signed as Slack signs them (v0, HMAC-SHA256), must be acknowledged within three seconds, and can
//     be replayed, doubled, forged and skewed on demand.
//   - trigger_id works once and for three seconds; a response_url works five times and for thirty minutes; at most
//     three views are stacked; view hashes are compared.
//   - Stored text is changed as Slack changes it (emoji become colon codes, & < > are escaped) and numbers in message
//     metadata lose precision.
//   - Methods are rate limited as Slack limits them, and any method can be made to fail: 429, 5xx, an error code, a
//     hang, a lost answer.
//
// Limits are those of https://docs.slack.dev/reference/block-kit and of the Web API's reference pages; lengths are
// counted in UTF-16 units, the longest of the ways in which Slack may count. Two deliberate gaps: Socket Mode is not
// simulated, and legacy attachments are refused (invalid_attachments) instead of being half-understood.
//
// The handler also serves a web page at "/" in which a developer sees what each person would see, and clicks.
// Everything that page shows from a message is set as text, never as HTML.
//
// Time comes from Options.Now, so that tests expire triggers without waiting. Nothing here polls: waiters sleep on a
// condition that every change signals.
package slacksim
