package bot

import (
	"context"
	"sync"

	"github.com/holdpoint/holdpoint/approvals"
)

// keyLock is one lock an approval, kept only while somebody holds it or waits.
type keyLock struct {
	mu   sync.Mutex
	held map[approvals.ID]*keyed
}

type keyed struct {
	turn  chan struct{} // holds one token while free
	users int
}

func newKeyLock() *keyLock { return &keyLock{held: map[approvals.ID]*keyed{}} }

func (l *keyLock) lock(ctx context.Context, id approvals.ID) (func(), error) {
	l.mu.Lock()
	k := l.held[id]
	if k == nil {
		k = &keyed{turn: make(chan struct{}, 1)}
		k.turn <- struct{}{}
		l.held[id] = k
	}
	k.users++
	l.mu.Unlock()
	leave := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if k.users--; k.users == 0 {
			delete(l.held, id)
		}
	}
	select {
	case <-k.turn:
		return func() { k.turn <- struct{}{}; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}
