package approvals

import (
	"context"
	"fmt"
	"runtime"
)

// light is how many bytes of an intake are read without waiting for a turn.
const light = 64 << 10

// turns bounds how many large intakes are read and scanned for credentials at a time, in the whole process. Scanning a megabyte can
// take seconds of a processor; without a bound one key could take them all, and clicks and claims would wait for it.
type turns chan struct{}

// newTurns leaves half of the processors to everything else.
func newTurns() turns { return make(turns, max(1, runtime.GOMAXPROCS(0)/2)) }

// do runs work of a size in its turn. It returns ErrUnavailable, and has not begun, when the caller has gone before that.
func (t turns) do(ctx context.Context, bytes int, work func()) error {
	if bytes > light {
		select {
		case t <- struct{}{}:
			defer func() { <-t }()
		case <-ctx.Done():
			return fmt.Errorf("%w: other large intakes are being read: %w", ErrUnavailable, ctx.Err())
		}
	}
	work()
	return nil
}

// weight is how much of an intake there is to read.
func (in *Intake) weight() int {
	n := len(in.State)
	for _, c := range in.Calls {
		n += len(c.Arguments) + len(c.Reason)
	}
	return n
}
