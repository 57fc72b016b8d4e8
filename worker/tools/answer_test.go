package tools_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/holdpoint/holdpoint/approvals"
)

// An answer is data: JSON as it came, anything else as a JSON string, always valid JSON.
func TestOutput(t *testing.T) {
	t.Parallel()
	big := `"` + strings.Repeat("a", 1<<20) + `"`
	for name, c := range map[string]struct{ body, output, receipt string }{
		"JSON object":       {"{\"b\": 1.50,\n \"a\":[]}", "{\"b\": 1.50,\n \"a\":[]}", `200 OK: {"b":1.50,"a":[]}`},
		"JSON scalar":       {"5", "5", "200 OK: 5"},
		"text":              {"all\tgood\r\nthere", `"all\tgood\r\nthere"`, "200 OK: all good there"},
		"nothing":           {"", "null", "200 OK"},
		"not UTF-8":         {"a\xffb", `"a` + "\ufffd" + `b"`, "200 OK (3 bytes, not text)"},
		"JSON, not UTF-8":   {"\"a\xff\"", `"\"a` + "\ufffd" + `\""`, "200 OK (4 bytes, not text)"},
		"two JSON values":   {"{}{}", `"{}{}"`, "200 OK: {}{}"},
		"too large":         {big, `"[the answer was larger than 1 MiB and was not kept]"`, "200 OK (more than 1 MiB, not kept)"},
		"too long to show":  {`"` + strings.Repeat("a", 10<<10) + `"`, `"` + strings.Repeat("a", 10<<10) + `"`, "200 OK (11 KiB, not shown)"},
		"a Slack mention":   {"<!channel> <https://x.example|click>", `"\u003c!channel\u003e \u003chttps://x.example|click\u003e"`, "200 OK: ‹!channel› ‹https://x.example|click›"},
		"direction tricks":  {"safe\u202eexe.\u200bx\u0007", `"safe` + "\u202eexe.\u200bx" + `\u0007"`, "200 OK: safeexe.x"},
		"long":              {strings.Repeat("ä", 300), `"` + strings.Repeat("ä", 300) + `"`, "200 OK: " + strings.Repeat("ä", 191) + "…"},
		"hidden argument":   {`{"echo":"hidden-value-1"}`, `{"echo":"hidden-value-1"}`, hiddenReceipt},
		"hidden, escaped":   {`{"echo":"hidden\u002dvalue-1"}`, `{"echo":"hidden\u002dvalue-1"}`, hiddenReceipt},
		"hidden, as a name": {`{"HIDDEN-value-1":1}`, `{"HIDDEN-value-1":1}`, hiddenReceipt},
		"hidden, in text":   {"token hidden-value-1 accepted", `"token hidden-value-1 accepted"`, hiddenReceipt},
		"header repeated":   {"you sent header-secret-1", `"you sent header-secret-1"`, hiddenReceipt},
		"credential name":   {`{"api_key":"abc123def"}`, `{"api_key":"abc123def"}`, hiddenReceipt},
		"nested JSON text":  {`{"log":"{\"password\":\"pw123456\"}"}`, `{"log":"{\"password\":\"pw123456\"}"}`, hiddenReceipt},
		"known credential":  {"key " + githubToken, `"key ` + githubToken + `"`, hiddenReceipt},
		"visible arguments": {`{"release":"2026.07.24"}`, `{"release":"2026.07.24"}`, `200 OK: {"release":"2026.07.24"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			far := receive(t, status(200, c.body), nil)
			out := executor().Execute(t.Context(), call(config(t, `
retry: idempotent
http: {url: "`+far.url()+`/x", headers: {Authorization: env:DEPLOY_AUTH}, key_header: K, key_retention: 1h}`)))
			wantClass(t, out, approvals.OutcomeSucceeded)
			if string(out.Output) != c.output {
				t.Errorf("output %.300s, want %.300s", out.Output, c.output)
			}
			if !json.Valid(out.Output) || !utf8.Valid(out.Output) {
				t.Error("the output is not JSON")
			}
			if out.Receipt != c.receipt {
				t.Errorf("receipt %q, want %q", out.Receipt, c.receipt)
			}
			if n := utf8.RuneCountInString(out.Receipt); n > 200 {
				t.Errorf("%d runes", n)
			}
		})
	}
}

const hiddenReceipt = "200 OK (answer not shown: it holds something hidden)"

// Made of parts, so that no scanner takes this file for a leak.
var githubToken = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"

// A refusal's words reach the agent as data and a person as a receipt; our own error keeps
// to the status.
func TestRefusalKeepsTheAnswer(t *testing.T) {
	t.Parallel()
	far := receive(t, status(422, `{"detail":"release 2026.07.24 is frozen"}`), nil)
	out := executor().Execute(t.Context(), call(class(t, "keyed", "POST", far.url(), "5s")))
	wantClass(t, out, approvals.OutcomeRefused)
	if out.Error != "the tool answered 422 Unprocessable Entity" {
		t.Errorf("error %q", out.Error)
	}
	if string(out.Output) != `{"detail":"release 2026.07.24 is frozen"}` || out.Receipt != `422 Unprocessable Entity: {"detail":"release 2026.07.24 is frozen"}` {
		t.Errorf("output %s, receipt %q", out.Output, out.Receipt)
	}
}

// Every status of the protocol has its class; none that proves nothing is taken for proof.
func TestEveryStatus(t *testing.T) {
	t.Parallel()
	for code := 200; code < 600; code++ {
		want := approvals.OutcomeUnknown
		switch {
		case code < 300:
			want = approvals.OutcomeSucceeded
		case code == 429 || code == 425:
			want = approvals.OutcomeNoEffect
		case code >= 400 && code < 500 && code != 408:
			want = approvals.OutcomeRefused
		}
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			t.Parallel()
			body := "HTTP/1.1 %d X\r\nContent-Length: 0\r\n\r\n"
			far := receive(t, says(fmt.Sprintf(body, code)), nil)
			out := executor().Execute(t.Context(), call(class(t, "unkeyed", "POST", far.url(), "5s")))
			wantClass(t, out, want)
		})
	}
}
