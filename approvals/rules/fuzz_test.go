package rules_test

import (
	"errors"
	"testing"

	"github.com/holdpoint/holdpoint/approvals/rules"
)

// Whatever the bytes, Parse answers with problems or with a tenant whose body compiles
// back to the same body and the same revisions.
func FuzzParse(f *testing.F) {
	f.Add([]byte(acmeYAML(f)))
	f.Add([]byte(schemaTool))
	f.Add([]byte("tenants: {acme: {slack: {team: T0ACME, channel: C0A}, admins: {users: [U0ROOT]}}}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		config, err := rules.Parse([]rules.File{{Name: "f.yaml", Data: data}})
		if err != nil {
			var problem *rules.Problem
			if !errors.As(err, &problem) {
				t.Fatalf("not a Problem: %v", err)
			}
			return
		}
		for name, parsed := range config.Tenants {
			compiled, err := rules.Compile(name, parsed.Body())
			if err != nil {
				t.Fatalf("the body of %q doesn't compile: %v\n%s", name, err, parsed.Body())
			}
			if string(compiled.Body()) != string(parsed.Body()) {
				t.Fatalf("the body changed:\n%s\n%s", parsed.Body(), compiled.Body())
			}
			for tool, was := range parsed.Tools {
				if compiled.Tools[tool].Revision() != was.Revision() {
					t.Fatalf("%s: another revision", tool)
				}
			}
		}
	})
}
