//go:build crashpoints

package crashpoint

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// The N-th pass of the named point kills the process as kill -9 does, and says so; no other point does.
func TestAt(t *testing.T) {
	if os.Getenv("HOLDPOINT_CRASH_TEST") == "child" {
		for range 3 {
			At("relay.enqueued")
		}
		return
	}
	t.Parallel()
	for value, killed := range map[string]bool{"relay.enqueued": true, "relay.enqueued:3": true, "relay.enqueued:4": false, "execute.sent": false, "": false} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAt$")
		cmd.Env = append(os.Environ(), "HOLDPOINT_CRASH_TEST=child", Variable+"="+value)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		err := cmd.Run()
		var exit *exec.ExitError
		signalled := errors.As(err, &exit) && wasKilled(exit)
		if signalled != killed || !killed && err != nil || killed != strings.Contains(stderr.String(), "crash point relay.enqueued") {
			t.Errorf("%q: %v, %q", value, err, stderr.String())
		}
	}
}

func wasKilled(exit *exec.ExitError) bool {
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signal() == syscall.SIGKILL
}
