package seal

import "encoding/binary"

// bindingDomain starts every binding. A change of the layout needs a new one.
const bindingDomain = "holdpoint/seal/v1"

// binding lays out domain, kind and fields, each behind its length (8 bytes,
// big-endian), so that no two lists of fields give the same bytes.
func binding(kind string, fields ...string) []byte {
	n := 16 + len(bindingDomain) + len(kind)
	for _, f := range fields {
		n += 8 + len(f)
	}
	out := make([]byte, 0, n)
	for _, f := range append([]string{bindingDomain, kind}, fields...) {
		out = binary.BigEndian.AppendUint64(out, uint64(len(f)))
		out = append(out, f...)
	}
	return out
}

// StateAAD binds a run's state to its tenant, run, pause and format. Ids are
// used as they are written in the row.
func StateAAD(tenant, runID, pauseID, format string) []byte {
	return binding("state", tenant, runID, pauseID, format)
}

// ArgumentsAAD binds a call's arguments (with the salt of its digest) to one
// approval.
func ArgumentsAAD(tenant, approvalID string) []byte {
	return binding("arguments", tenant, approvalID)
}

// ResultAAD binds a tool's result to one approval.
func ResultAAD(tenant, approvalID string) []byte {
	return binding("result", tenant, approvalID)
}

// MessageAAD binds a resume message to one pause.
func MessageAAD(tenant, pauseID string) []byte {
	return binding("message", tenant, pauseID)
}
