package tools

import (
	"errors"
	"sync"
	"time"
)

// errFenced is a write that came after the lease, or too late after the claim; it is not sent.
var errFenced = errors.New("the request may not leave any more")

// fence decides about every write of one request, and remembers whether any of it may have
// left. A process that was stopped and continued is too late when its next write comes: the
// write is refused here, by the clock that went on, and not by a timer that may fire too late.
type fence struct {
	live   func() bool   // nil: always
	sendBy time.Time     // of the first byte; zero: no bound
	whole  time.Duration // how long after sendBy the rest may take

	mu      sync.Mutex
	request bool // the connection was handed over: what is written from now on is the request
	left    bool // a byte of it was let through
	refused bool // a write was not
	closed  bool
}

func (c Call) fence() *fence {
	return &fence{live: c.Live, sendBy: c.SendBy, whole: c.Tool.HTTP.Timeout}
}

// pass says whether a write may go out now.
func (f *fence) pass() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || f.live != nil && !f.live() || f.late() {
		f.refused = true
		return false
	}
	f.left = f.left || f.request
	return true
}

func (f *fence) late() bool {
	by := f.sendBy
	if f.left {
		by = by.Add(f.whole)
	}
	return !f.sendBy.IsZero() && !time.Now().Before(by)
}

// handOver says that the connection is the request's now.
func (f *fence) handOver() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.request = true
}

// shut lets nothing more out, and says whether it was this fence that kept all of the request in.
func (f *fence) shut() (kept bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	return f.refused && !f.left
}

// sent says that a byte of the request was let through.
func (f *fence) sent() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.left
}
