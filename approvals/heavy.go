package approvals

import (
	"context"
	"fmt"
	"runtime"
	"sync"
)

// light is how many bytes of an intake are read without waiting for a turn.
const light = 64 << 10

// turns bounds how many large intakes are read and scanned for credentials at a time, in the whole process. Scanning a megabyte can
// take seconds of a processor; without a bound one key could take them all, and clicks and claims would wait for it.
// A key has one turn at a time, and its others wait behind that one: a key with many does not keep another's out.
type turns struct {
	shared chan struct{}

	mu   sync.Mutex
	keys map[string]*queue // of the keys that have or want a turn
}

type queue struct {
	turn chan struct{} // of one
	in   int
}

// newTurns leaves half of the processors to everything else.
func newTurns() *turns {
	return &turns{shared: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)), keys: map[string]*queue{}}
}

// do runs a key's work of a size in its turn. It returns ErrUnavailable, and has not begun, when the caller has gone before that.
func (t *turns) do(ctx context.Context, key string, bytes int, work func()) error {
	if bytes > light {
		q := t.join(key)
		defer t.leave(key, q)
		for _, line := range []chan struct{}{q.turn, t.shared} {
			select {
			case line <- struct{}{}:
				defer func() { <-line }()
			case <-ctx.Done():
				return fmt.Errorf("%w: other large intakes are being read: %w", ErrUnavailable, ctx.Err())
			}
		}
	}
	work()
	return nil
}

func (t *turns) join(key string) *queue {
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.keys[key]
	if q == nil {
		q = &queue{turn: make(chan struct{}, 1)}
		t.keys[key] = q
	}
	q.in++
	return q
}

func (t *turns) leave(key string, q *queue) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if q.in--; q.in == 0 {
		delete(t.keys, key)
	}
}

// weight is how much of an intake there is to read.
func (in *Intake) weight() int {
	n := len(in.State)
	for _, c := range in.Calls {
		n += len(c.Arguments) + len(c.Reason)
	}
	return n
}
