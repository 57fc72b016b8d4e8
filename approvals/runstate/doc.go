// Package runstate reads what a paused run says is waiting for an approval, and
// refuses a state that must not be kept. There is one reader per format.
//
// A paused state is bearer authority: who resumes it acts for the run, and one
// field ("approved": true) turns it into a run that asks nobody. What holds:
//
//   - A call is named by its call path (the outer tool-call ids, outermost
//     first) and its own id. Inner ids collide across sub-agents; two calls
//     with the same path and id make a state that is refused.
//   - Each level of a state repeats what waits below it. A call is counted
//     once, at the deepest state, and levels that disagree are refused.
//   - Nothing is skipped: an unknown schema, step or interruption type refuses
//     the whole state.
//   - A state with a standing approval or rejection, or with a decision on a
//     call that waits, is refused, at any nesting, nested states in strings
//     included.
//   - So is a state with a credential in it, outside the waiting calls' own
//     arguments (every copy of which is left out: they are the reviewer's
//     business). A tracing key is a credential.
//   - An object in a state has no member twice; two readers would see two
//     states. The arguments of a call are a string, and judged elsewhere.
//   - Errors name JSON pointers and rules, never a value. In a pointer, a
//     state in a string is entered as if it were an object.
package runstate
