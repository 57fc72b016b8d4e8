//go:build crashpoints

package worker

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

var crashPasses atomic.Int64

// at kills this process as kill -9 would when HOLDPOINT_CRASH_AT names the point. The value
// is NAME or NAME:N, for the N-th time that the point is passed. The points, by the rows of
// the crash matrix:
//
//	relay.enqueued    enqueue → outbox delete
//	execute.dequeued  dequeue → reserve
//	execute.claimed   executing, before the first byte
//	execute.sent      effect → response
//	execute.answered  response → result commit
//	execute.recorded  result commit → task ack
//	resume.built      result → resume webhook
//	resume.answered   webhook 2xx → mark
//	resume.recorded   mark → task ack
//	card.synced       final state → card update
func at(name string) {
	want, nth, counted := strings.Cut(os.Getenv("HOLDPOINT_CRASH_AT"), ":")
	if want != name {
		return
	}
	if n, err := strconv.ParseInt(nth, 10, 64); counted && err == nil && crashPasses.Add(1) < n {
		return
	}
	_ = syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
	select {} // not one more instruction while the signal is on its way
}
