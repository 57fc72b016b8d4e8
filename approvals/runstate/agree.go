package runstate

import (
	"fmt"
	"slices"

	"github.com/holdpoint/holdpoint/approvals/canon"
)

// Agree compares the calls that an agent gave with those that its state has,
// and returns them in the order of given, with the paths of the state. Each
// given call must be exactly one of the state's, and none may be left over:
// same id, tool and arguments; agent path and call path too, where given. Equal
// arguments are the same text or, when both are readable, the same JSON value.
// The error is ErrMismatch.
func Agree(read, given []Call) ([]Call, error) {
	if len(read) != len(given) {
		return nil, fmt.Errorf("%w: %d calls wait in it, %d were given", ErrMismatch, len(read), len(given))
	}
	digests := map[string]string{} // by text: reading long arguments again for every pair would be quadratic
	taken := make([]bool, len(read))
	out := make([]Call, 0, len(given))
	for i, g := range given {
		match := -1
		for j, r := range read {
			if taken[j] || !agrees(r, g, digests) {
				continue
			}
			if match >= 0 {
				return nil, fmt.Errorf("%w: given call %d could be two of its calls; give its call_path", ErrMismatch, i)
			}
			match = j
		}
		if match < 0 {
			return nil, fmt.Errorf("%w: given call %d is none of its calls", ErrMismatch, i)
		}
		taken[match] = true
		out = append(out, read[match])
	}
	return out, nil
}

func agrees(read, given Call, digests map[string]string) bool {
	return read.ToolCallID == given.ToolCallID && read.Tool == given.Tool &&
		(len(given.AgentPath) == 0 || slices.Equal(read.AgentPath, given.AgentPath)) &&
		(given.CallPath == nil || slices.Equal(read.CallPath, given.CallPath)) &&
		sameArguments(read.Arguments, given.Arguments, digests)
}

func sameArguments(a, b string, digests map[string]string) bool {
	if a == b {
		return true
	}
	x, y := readable(a, digests), readable(b, digests)
	return x != "" && x == y
}

// readable is the digest of arguments that can be read; "" for the others.
func readable(text string, digests map[string]string) string {
	d, known := digests[text]
	if !known {
		if args := canon.Read([]byte(text)); args.Readable() {
			d = args.Digest
		}
		digests[text] = d
	}
	return d
}
