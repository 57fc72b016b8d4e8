// Package templates holds the words and the blocks: pure functions from plain data to what Slack shows.
//
// What always holds:
//
//   - A card is a function of its [Card] and of nothing else: no clock, no lookup, no randomness. The same row
//     gives the same bytes (I27).
//   - Nothing in a card can be spoofed by the text of a value. Blocks contain no mrkdwn at all: our own words and
//     other people's values are separate rich text elements, which carry no markup, and values are told apart by
//     their style (code, quote, preformatted, header). Arguments are printed as JSON, so a value can't leave its
//     quotes or its line.
//   - Every value passes [Visible]: control, format, bidi, private-use and default-ignorable characters are shown
//     as \u{202E}, and so are the look-alike letters of a host that mixes scripts.
//   - Values are cut one by one at rune boundaries, and what is hidden is counted. A card on which anything of the
//     proposal is cut has no one-click Approve: the Approve is on the last page of Details.
//   - Buttons exist only while a person can act: decisions while pending, reconciliation while uncertain, and only
//     those for which the caller supplied a signed value. An unknown status shows no button.
//   - Every message and view passes [Check] or [CheckView], which know Slack's limits: 50 blocks, 100 in a view,
//     and at most [MaxCard] characters of JSON a message, since one bad block refuses the whole message.
//
// The package imports the standard library and slack-go's block types, and knows nothing of the rest of Holdpoint.
// Statuses, decisions and reason codes arrive as the strings of the contract.
package templates
