//go:build crashpoints

package worker

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// The N-th pass of the named point kills the process as kill -9 does; no other point does.
func TestCrashPoint(t *testing.T) {
	if os.Getenv("HOLDPOINT_CRASH_TEST") == "child" {
		for range 3 {
			at("relay.enqueued")
		}
		return
	}
	t.Parallel()
	for value, killed := range map[string]bool{"relay.enqueued": true, "relay.enqueued:3": true, "relay.enqueued:4": false, "execute.sent": false, "": false} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestCrashPoint$")
		cmd.Env = append(os.Environ(), "HOLDPOINT_CRASH_TEST=child", "HOLDPOINT_CRASH_AT="+value)
		err := cmd.Run()
		var exit *exec.ExitError
		signalled := errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
		if signalled != killed || !killed && err != nil {
			t.Errorf("%q: %v", value, err)
		}
	}
}
