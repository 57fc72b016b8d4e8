//go:build crashpoints

package crashpoint

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

var (
	passes atomic.Int64
	halted atomic.Bool
)

// At kills this process as kill -9 would when the variable names the point. It says so on standard error first, so that whoever
// waits for the end knows that it was this.
func At(name string) {
	if os.Getenv(StopVariable) == name && halted.CompareAndSwap(false, true) {
		last := time.Now()
		_, _ = os.Stderr.WriteString("\nstop point " + name + "\n")
		_ = syscall.Kill(syscall.Getpid(), syscall.SIGSTOP)
		// The signal may take another thread first, while this one goes on: nothing more here until time has jumped.
		// Each look is held to the one before, so that the stop falls between two of them wherever it takes.
		for {
			now := time.Now()
			if now.Sub(last) > time.Second {
				break
			}
			last = now
			time.Sleep(time.Millisecond)
		}
	}
	want, nth, counted := strings.Cut(os.Getenv(Variable), ":")
	if want != name {
		return
	}
	if n, err := strconv.ParseInt(nth, 10, 64); counted && err == nil && passes.Add(1) < n {
		return
	}
	_, _ = os.Stderr.WriteString("\ncrash point " + name + "\n")
	_ = syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
	select {} // not one more instruction while the signal is on its way
}
