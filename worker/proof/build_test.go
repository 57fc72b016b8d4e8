package proof

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"
)

// scratch holds the programs; it goes with the test binary.
var scratch string

func TestMain(m *testing.M) {
	// Dozens of real processes and their leases: beside other packages' tests they measure the machine. They have a run of their own.
	if os.Getenv("HOLDPOINT_PROOF") == "" {
		_, _ = fmt.Println("worker/proof: set HOLDPOINT_PROOF=1, as `make proof` and `make torture` do")
		os.Exit(0)
	}
	var err error
	if scratch, err = os.MkdirTemp("", "holdpoint-proof-"); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	flag.Parse()
	said := false
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == "test.parallel" })
	if !said {
		// Most of a test here is waiting, for leases to end: more of them at once than there are processors. Twelve on two processors
		// made statements time out.
		if err := flag.Set("test.parallel", strconv.Itoa(2*runtime.NumCPU()+1)); err != nil {
			_, _ = fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	code := m.Run()
	_ = os.RemoveAll(scratch)
	os.Exit(code)
}

// The programs that the tests start, built when the first one needs them: the product as it is released, but with its crash points,
// and the sink.
var (
	product = sync.OnceValues(func() (string, error) {
		return build("holdpoint", "-tags", "crashpoints", "github.com/holdpoint/holdpoint/cmd/holdpoint")
	})
	outside = sync.OnceValues(func() (string, error) { return build("sink", "github.com/holdpoint/holdpoint/worker/proof/sink") })
)

func build(name string, args ...string) (string, error) {
	path := filepath.Join(scratch, name)
	var stderr bytes.Buffer
	cmd := exec.CommandContext(context.Background(), "go", append([]string{"build", "-o", path}, args...)...)
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", name, err, stderr.String())
	}
	return path, nil
}
