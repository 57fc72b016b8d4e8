package approvals

import (
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"
)

// reached are the reason codes that a story has seen in a row.
var reached sync.Map

// Every reason code of the contract is reached by a story of this package, when all of them run.
func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if run := flag.Lookup("test.run"); code == 0 && run != nil && run.Value.String() == "" && flag.Lookup("test.list").Value.String() == "" && flag.Lookup("test.fuzz").Value.String() == "" {
		for _, why := range Reasons {
			if _, ok := reached.Load(why); !ok {
				fmt.Printf("no story reaches the reason %q\n", why)
				code = 1
			}
		}
	}
	os.Exit(code)
}
