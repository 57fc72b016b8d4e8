package interactions

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdpoint/holdpoint/approvals"
)

const anID = "apr_01k0x7q3v8e9rsy5f2m4n6p8qa"

func TestCommandsAreRead(t *testing.T) {
	t.Parallel()
	id, err := approvals.ParseID(anID)
	must(t, err)
	for text, want := range map[string]ask{
		"":                                     {verb: "help"},
		"HELP":                                 {verb: "help"},
		"list":                                 {verb: "list"},
		"show " + anID:                         {verb: "show", id: id},
		"revoke " + anID + " too risky":        {verb: "revoke", id: id, sel: approvals.Selector{ID: id}, reason: "too risky"},
		"revoke " + anID + " “too risky”":      {verb: "revoke", id: id, sel: approvals.Selector{ID: id}, reason: "too risky"},
		`revoke run:"run 42" why "this" &amp;`: {verb: "revoke", sel: approvals.Selector{Run: "run 42"}, reason: `why "this" &`},
		"revoke run:“run 42” why":              {verb: "revoke", sel: approvals.Selector{Run: "run 42"}, reason: "why"},
		"revoke agent:a:b why":                 {verb: "revoke", sel: approvals.Selector{Agent: "a:b"}, reason: "why"},
		"revoke Tool:issue_refund why":         {verb: "revoke", sel: approvals.Selector{Tool: "issue_refund"}, reason: "why"},
		"revoke by:<@U0BOB|bob the 1st> why":   {verb: "revoke", sel: approvals.Selector{DecidedBy: "U0BOB"}, reason: "why"},
		"pause tenant the sky falls":           {verb: "pause", scope: "tenant", reason: "the sky falls"},
		"pause tool deploy_release why":        {verb: "pause", scope: "tool", name: "deploy_release", reason: "why"},
		`unpause agent "my agent" why`:         {verb: "unpause", scope: "agent", name: "my agent", reason: "why"},
		"block <@W0BOB> left the company":      {verb: "block", user: "W0BOB", reason: "left the company"},
		"unblock <@U0BOB|bob> came back":       {verb: "unblock", user: "U0BOB", reason: "came back"},
		"reconcile " + anID + " failed #7 x":   {verb: "reconcile", id: id, reason: "#7 x"},
		"reconcile " + anID + " succeeded ok":  {verb: "reconcile", id: id, happened: true, reason: "ok"},
		"audit\u00a0" + anID:                   {verb: "audit", id: id},
		"whoami":                               {verb: "whoami"},
	} {
		got, wrong := parseAsk(text)
		if wrong != nil {
			t.Errorf("%q: %+v", text, wrong)
		} else if d := cmp.Diff(want, got, cmp.AllowUnexported(ask{})); d != "" {
			t.Errorf("%q: %s", text, d)
		}
	}
}

// What is not complete is never guessed: no reason, no mention (a typed name is nobody), no scope, words too many.
func TestCommandsAreRefused(t *testing.T) {
	t.Parallel()
	for text, usage := range map[string]string{
		"show":                      "/approvals show ID",
		"show apr_1":                "/approvals show ID",
		"show " + anID + " now":     "/approvals show ID",
		"list everything":           "/approvals list",
		"revoke " + anID:            "/approvals revoke ID reason",
		"revoke everything because": "/approvals revoke ID reason",
		"revoke run: because":       "/approvals revoke ID reason",
		"revoke by:@bob because":    "/approvals revoke ID reason",
		"revoke who:x because":      "/approvals revoke ID reason",
		"pause":                     "/approvals pause tenant|agent A|tool T reason",
		"pause tool":                "/approvals pause tenant|agent A|tool T reason",
		"pause tool x":              "/approvals pause tenant|agent A|tool T reason",
		"pause everything now":      "/approvals pause tenant|agent A|tool T reason",
		"pause tenant " + strings.Repeat("x", maxReason+1): "/approvals pause tenant|agent A|tool T reason",
		"block @bob reason":                "/approvals block @user reason",
		"block U0BOB reason":               "/approvals block @user reason",
		"block &lt;@U0BOB&gt; reason":      "/approvals block @user reason",
		"block <@U0BOB|bob>":               "/approvals block @user reason",
		"reconcile " + anID + " maybe x":   "/approvals reconcile ID succeeded|failed evidence",
		"reconcile " + anID + " succeeded": "/approvals reconcile ID succeeded|failed evidence",
	} {
		if _, wrong := parseAsk(text); wrong == nil || wrong.usage != usage {
			t.Errorf("%.40q: %+v, want %s", text, wrong, usage)
		}
	}
	for text, hint := range map[string]string{"lst": "list", "revok x": "revoke", "puase tenant": "pause", "unpuase": "unpause", "reconsile": "reconcile", "xyzzy": "", "ü": ""} {
		if _, wrong := parseAsk(text); wrong == nil || wrong.hint != hint {
			t.Errorf("%q: %+v, want %q", text, wrong, hint)
		}
	}
}

func TestEveryCommandOfTheHelpIsRead(t *testing.T) {
	t.Parallel()
	names, usage := verbs()
	want := []string{"help", "list", "show", "revoke", "pause", "unpause", "block", "unblock", "reconcile", "audit", "whoami"}
	for _, n := range want {
		if !slices.Contains(names, n) || !strings.HasPrefix(usage[n], "/approvals "+n) {
			t.Errorf("%s: %q", n, usage[n])
		}
	}
	if len(names) != len(want) {
		t.Errorf("%v", names)
	}
}
