package rules_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/holdpoint/holdpoint/approvals/rules"
)

func TestAcceptsState(t *testing.T) {
	t.Parallel()
	agent := parse(t, acmeYAML(t)).Agents["release-agent"]
	v1, _ := agent.Version("release-agent/v1")
	v2, _ := agent.Version("release-agent/v2")
	for _, c := range []struct {
		version             *rules.Version
		format, sdk, schema string
		ok                  bool
	}{
		{v1, rules.FormatOpenAIPython, "0.19.3", "1.13", true},
		{v1, rules.FormatOpenAIPython, "0.20.0", "1.10", true},
		{v1, rules.FormatOpenAIPython, "0.19.2", "1.13", false},
		{v1, rules.FormatOpenAIPython, "", "1.13", false},
		{v1, rules.FormatOpenAIPython, "main", "1.13", false},
		{v1, rules.FormatOpenAIPython, "0.19.3", "1.12", false},
		{v1, rules.FormatOpenAIPython, "0.19.3", "1.1", false},
		{v1, rules.FormatOpenAIPython, "0.19.3", "", false},
		{v1, rules.FormatOpenAIJS, "", "1.22", true},
		{v1, rules.FormatOpaque, "", "", true},
		{v1, rules.FormatNone, "", "", true},
		{v1, "langchain", "1.0", "", false},
		{v2, rules.FormatOpenAIPython, "0.19.3", "1.13", false},
		{v2, rules.FormatNone, "", "", true},
	} {
		err := c.version.AcceptsState(c.format, c.sdk, c.schema)
		if (err == nil) != c.ok || err != nil && !errors.Is(err, rules.ErrVersion) {
			t.Errorf("%s %s %q %q: got %v, want accepted %v", c.version.Name, c.format, c.sdk, c.schema, err, c.ok)
		}
	}
}

func TestSDKConstraints(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		constraint, sdk string
		ok              bool
	}{
		{">=0.19.3", "0.19.3", true},
		{">=0.19.3", "0.19.10", true},
		{">=0.19.3", "0.9.9", false},
		{">=0.19.3", "1.0", true},
		{">= 0.19.3", "v0.19.3", true},
		{">=0.19.3", "0.19.3+build.7", true},
		{">=0.19.3", "0.19.3.post1", true},
		{">=0.19.3", "0.19.3rc1", false},
		{">=0.19.3", "0.20.0rc1", false},
		{">=0.19.3", "0.20.0-beta.2", false},
		{">=0.19.3rc1", "0.19.3rc2", true},
		{">=0.19.3rc2", "0.19.3rc1", false},
		{">=0.19.3rc1", "0.19.3b9", false},
		{">=0.19.3-alpha.1", "0.19.3.dev4", false},
		{">=0.19.3, <0.21", "0.20.9", true},
		{">=0.19.3,<0.21", "0.21.0", false},
		{">=0.19.3,<0.21", "0.21", false},
		{">0.19.3", "0.19.3", false},
		{"<=0.19.3", "0.19.3", true},
		{"!=0.19.3", "0.19.3", false},
		{"!=0.19.3", "0.19.4", true},
		{"=0.19.3", "0.19.3", true},
		{"==0.19.3", "0.19.3.0", true},
		{"==0.19.3", "0.19.4", false},
		{">=0.19.3", "0.20.0-canary.1", false},
		{">=0.19.3", "latest", false},
		{">=0.19.3", "0.19.3.1.1", false},
		{">=0.19.3", " 0.19.3", false},
	} {
		text := change(t, acmeYAML(t), `sdk: ">=0.19.3"`, fmt.Sprintf("sdk: %q", c.constraint))
		v, _ := parse(t, text).Agents["release-agent"].Version("release-agent/v1")
		if err := v.AcceptsState(rules.FormatOpenAIPython, c.sdk, "1.13"); (err == nil) != c.ok {
			t.Errorf("%q takes %q: %v, want %v", c.constraint, c.sdk, err, c.ok)
		}
	}
	for _, bad := range []string{"0.19", "~>0.19", "^0.19", ">=", ">=x", ">=1.0,", ">=1 <2", ">=0.19.3-canary"} {
		text := change(t, acmeYAML(t), `sdk: ">=0.19.3"`, fmt.Sprintf("sdk: %q", bad))
		if _, err := rules.Parse([]rules.File{{Name: "x", Data: []byte(text)}}); err == nil {
			t.Errorf("the constraint %q was taken", bad)
		}
	}
}
