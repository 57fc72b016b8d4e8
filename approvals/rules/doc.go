// Package rules is the tenants' configuration, compiled: which rule covers a
// call, who may decide it, what is shown, and how its tool is run.
//
// [Parse] reads the operator's YAML strictly: an unknown or repeated key, a
// condition that doesn't type-check, a schema that doesn't compile or a name
// that leads nowhere refuses the whole configuration, with file, line and key.
// [Tenant.Body] is what is stored as a revision; [Compile] turns it back into an
// equal tenant. A compiled [Tenant] never changes and is safe for concurrent use.
//
// What holds here:
//
//   - The first rule whose condition is true decides. No rule: [ErrNoRule]. A
//     condition that errs or isn't a boolean is a [*RuleError]; it never falls
//     through to the next rule (invariant I4).
//   - No error of this package carries an argument's value or a key that only the
//     arguments contain, nor a resolved secret (I24).
//   - Nothing from an argument reaches a URL's host; elsewhere in a URL it is
//     escaped for the place where it stands.
//   - Secrets are references ([Ref]); they are resolved at use ([Secrets]) and are
//     in no body, revision hash or diff.
//   - Time is passed in. The package reads no clock, network or database.
package rules
