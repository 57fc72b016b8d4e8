// Package canon is the strict gate that a tool call's arguments pass before
// anything else looks at them, and the digest that a person's approval is bound
// to.
//
// JSON lets two readers see two different calls in the same bytes: duplicate
// keys (the last wins in most readers, the first in some), keys that differ
// only in case (Go's struct decoding takes either), numbers beyond 2^53 (an
// RFC 8785 library gives 9007199254740993 and 9007199254740992 one digest),
// invalid UTF-8 and lone surrogates (mangled differently by each reader), and
// data after the value. The gate refuses all of these, so that what was
// reviewed, what was hashed and what is executed can't drift apart.
//
// What holds:
//
//   - Read never fails. Arguments that can't be read unambiguously are kept
//     byte for byte with the reason and a digest over the raw bytes; they have
//     no Value and no Canonical form, so no rule can be evaluated on them.
//   - Two readable arguments have the same digest exactly when they are the
//     same JSON value: member order, white space, escapes and the spelling of a
//     number (5, 5.00, 5e0) don't matter.
//   - No number is rounded: one whose decimal value differs from that of its
//     shortest float64 form makes the arguments unreadable. Negative zero is
//     accepted and digests as 0, which is the same number (RFC 8785, 3.2.2.3).
//   - Arguments print as their digest only: %v, %+v, %#v, %s, %q, JSON and slog.
//     Hold them in an exported field: fmt can't call the methods of a value that
//     it reaches through an unexported one, and a pointer doesn't help (%s of a
//     struct prints what the pointer points to).
package canon
