package runstate

import (
	"os"
	"path/filepath"
	"testing"
	"fmt"
)

func TestX(t *testing.T) {
	fs, _ := filepath.Glob("testdata/openai-agents-js/*.json")
	for _, f := range fs {
		b, _ := os.ReadFile(f)
		r, err := Read(FormatJS, b)
		fmt.Println(filepath.Base(f), r.SchemaVersion, err)
		for _, c := range r.Calls { fmt.Println("    ", c, c.AgentPath) }
	}
	fs, _ = filepath.Glob("/work/shared/fixtures/openai-agents-python/*/*.json")
	for _, f := range fs {
		b, _ := os.ReadFile(f)
		r, err := Read(FormatPython, b)
		fmt.Println(filepath.Base(f), r.SchemaVersion, err)
		for _, c := range r.Calls { fmt.Println("    ", c, c.AgentPath) }
	}
	for _, d := range []string{"langchain-js","vercel-ai","other"} {
	fs, _ = filepath.Glob("/work/shared/fixtures/"+d+"/*.json")
	for _, f := range fs {
		b, _ := os.ReadFile(f)
		_, err := Read(FormatOpaque, b)
		fmt.Println(filepath.Base(f), err)
	}
	}
}
