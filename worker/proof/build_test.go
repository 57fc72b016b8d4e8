package proof

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// scratch holds the programs; it goes with the test binary.
var scratch string

func TestMain(m *testing.M) {
	var err error
	if scratch, err = os.MkdirTemp("", "holdpoint-proof-"); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	// Most of a test here is waiting, for leases to end: more of them at once than there are processors.
	flag.Parse()
	if err := flag.Set("test.parallel", "12"); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(scratch)
	os.Exit(code)
}

// programs are the two that the tests start.
type programs struct{ holdpoint, sink string }

// built builds them once: the product as it is released, but with its crash points.
var built = sync.OnceValues(func() (p programs, err error) {
	p = programs{filepath.Join(scratch, "holdpoint"), filepath.Join(scratch, "sink")}
	for _, args := range [][]string{
		{"build", "-tags", "crashpoints", "-o", p.holdpoint, "github.com/holdpoint/holdpoint/cmd/holdpoint"},
		{"build", "-o", p.sink, "github.com/holdpoint/holdpoint/worker/proof/sink"},
	} {
		var stderr bytes.Buffer
		cmd := exec.CommandContext(context.Background(), "go", args...)
		cmd.Stderr = &stderr
		if err := cmd.Run(); err != nil {
			return p, fmt.Errorf("go %v: %w\n%s", args, err, stderr.String())
		}
	}
	return p, nil
})
