// Package secret finds credentials in text and in decoded JSON, masks them, and
// holds secrets in types that can't be printed.
//
// Two detectors, both offline: the default rules of gitleaks v8 for what a
// credential looks like, and [CredentialName] for what a field that holds one
// is called.
//
// What holds:
//
//   - A finding never carries the text that was found, only where it is.
//   - "gitleaks:allow" in the text has no effect: the text is not ours.
//   - [Mask] leaves no byte of what [Find] found.
//   - The gitleaks detector is built once, on first use (about 30 ms and 15 MB
//     of heap), and is silent: its own logger, which writes findings out at its
//     finest level, is turned off.
package secret
