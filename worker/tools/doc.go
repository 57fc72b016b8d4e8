// Package tools runs an approved tool call, and says what is known about its
// effect afterwards.
//
// An [Executor] is handed the approved bytes and the operation key; it returns an
// [approvals.Outcome] and never an error: whatever happened is one of the
// outcome's classes. What always holds:
//
//   - A request leaves at most once for each Execute. HTTP/1 only, a connection of
//     its own, no keep-alive, no proxy, no redirect followed, no GetBody: each of
//     those makes Go's transport send again by itself.
//   - The bytes sent are the bytes approved (I1), unless the tool's own body template
//     says otherwise.
//   - The operation key is the server's (I14), the same on every attempt.
//   - "Unsent" is said only when no byte of the request can have left: the failure came
//     before a connection was handed to it (httptrace's GotConn), or every write after
//     that was refused here.
//   - No byte leaves once the lease may be over ([Call.Live], I16), and none when the
//     first did not leave by [Call.SendBy] (I13, I19), even when the process was stopped
//     in between.
//   - The connected address, not the name, is checked against the private and special
//     networks; only the configuration's egress list opens one. A name that resolves
//     differently a second time therefore gains nothing.
//   - An answer is data. JSON is kept as it is, text becomes a JSON string; what a
//     person sees of it (Receipt) is short, printable, and free of credentials and of
//     the call's hidden arguments. Outcome.Error is our own words only (I24).
//
// # How an answer is read
//
//	before GotConn: no address, refused, forbidden network, TLS   unsent
//	no byte left by SendBy, or under the lease                    unsent
//	2xx, body read to its end                                     succeeded
//	2xx, body larger than 1 MiB                                   succeeded, the answer is not kept
//	2xx, body broken off                                          unknown: the server took it back, or the wire did
//	1xx as the last word, 3xx                                     unknown: "see other" is also how a success is answered
//	408                                                           unknown: intermediaries say it of requests that arrived
//	409 to a key that was sent before                             unknown: the first request may still be running
//	412 with if_match on a first attempt                          target changed, no effect
//	425, 429                                                      no effect, may be tried again (RFC 8470 5.2, RFC 6585 4)
//	other 4xx                                                     refused (RFC 9110 15.5; an unregistered code counts as 400)
//	5xx, 503 with Retry-After too                                 unknown: proxies say it after the request was passed on
//	no answer: timeout, reset, garbage                            unknown
//
// A lookup (queryable tools) is believed as the contract says: 200 happened, 404 did
// not, anything else is unknown; 404 counts only when the call says that timeout and
// settle have passed since the last send.
package tools
