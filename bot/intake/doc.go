// Package intake is the agents' door: the HTTP API by which a paused run is handed in, watched, resumed and executed.
//
// It is an edge. It reads bytes strictly, names the caller, makes one call into the core and writes the answer; what may happen is
// decided by package approvals. The routes are a table (routes.go) from which the server, the OpenAPI document and the page at /docs
// are all made, so that none of them can say something else than the others.
//
// What holds:
//
//   - Nothing is read from a body before its sender is known. A body has a size, a depth and a time; whichever is passed first ends
//     the request with a problem.
//   - A body is read once and means one thing: UTF-8, no duplicate names, no unknown names, no name matched by letter case. The state
//     and the arguments are taken out byte for byte and are not looked into here.
//   - Every answer that is not a success is an RFC 9457 problem with a stable code, from one table (problem.go). An error that isn't in
//     the table is "internal" outside and is logged once, by its types only: an error's text may repeat what a client sent.
//   - No argument, state, result, reason or bearer token is in a problem, in a log line or in a header. A problem names places (JSON
//     pointers made of names this API defines), never values.
//   - Another agent's or tenant's id, an id that doesn't exist and an id that isn't one are the same 404 (I22).
//   - A wait never outlives its client, its bound or the server's drain.
package intake
