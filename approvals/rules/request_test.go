package rules_test

import (
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdpoint/holdpoint/approvals/rules"
)

func decode(t testing.TB, s string) map[string]any {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(s))
	dec.UseNumber()
	var out map[string]any
	if err := dec.Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestTitle(t *testing.T) {
	t.Parallel()
	acme := parse(t, acmeYAML(t))
	for _, c := range []struct{ tool, args, want string }{
		{"issue_refund", `{"amount":742.18,"currency":"USD","order":"ORD-18472"}`, "Refund 742.18 USD on ORD-18472"},
		{"issue_refund", `{"amount":5.00,"currency":"USD","order":"o"}`, "Refund 5.00 USD on o"},
		{"issue_refund", `{"amount":1e3,"currency":true}`, "Refund 1e3 true on —"},
		{"issue_refund", `{"amount":null,"currency":" ","order":["a",{"b":1.50}]}`, `Refund — — on ["a",{"b":1.50}]`},
		{"issue_refund", `{"amount":"{{.order}}","currency":"[redacted: 3 chars]","order":"<&>"}`, "Refund {{.order}} [redacted: 3 chars] on <&>"},
		{"close_ticket", `{}`, "Close the ticket"},
	} {
		if got := acme.Tools[c.tool].Title(decode(t, c.args)); got != c.want {
			t.Errorf("%s: got %q, want %q", c.args, got, c.want)
		}
	}
	if got := acme.Tools["issue_refund"].Title(map[string]any{"amount": 742.18, "currency": "USD", "order": "o"}); got != "Refund 742.18 USD on o" {
		t.Errorf("float64: %q", got)
	}
	if got := acme.Tools["issue_refund"].Title(nil); got != "Refund — — on —" {
		t.Errorf("no arguments: %q", got)
	}
	nested := parse(t, change(t, acmeYAML(t), `title: "Close the ticket"`, `title: "Close {{ .ticket.id }} of {{.ticket.queue.name}}"`)).Tools["close_ticket"]
	if got := nested.Title(decode(t, `{"ticket":{"id":7,"queue":"q"}}`)); got != "Close 7 of —" {
		t.Errorf("nested: %q", got)
	}
}

func TestLinks(t *testing.T) {
	t.Parallel()
	tool := parse(t, acmeYAML(t)).Tools["deploy_release"]
	for _, c := range []struct{ release, want string }{
		{`"2026.07.24"`, "https://git.acme.example/compare/2026.07.24"},
		{`"a/../../b?x#y"`, "https://git.acme.example/compare/a%2F..%2F..%2Fb%3Fx%23y"},
		{`"@evil.example"`, "https://git.acme.example/compare/@evil.example"},
		{`"<a|b>"`, "https://git.acme.example/compare/%3Ca%7Cb%3E"},
		{`7`, "https://git.acme.example/compare/7"},
		{`".."`, ""},
		{`"."`, ""},
		{`""`, ""},
		{`null`, ""},
		{`["a"]`, ""},
		{`"[redacted: 12 chars]"`, ""},
		{`"x [redacted] y"`, ""},
	} {
		links := tool.Links(decode(t, `{"release":`+c.release+`}`))
		switch {
		case c.want == "" && len(links) != 0:
			t.Errorf("%s: got %v, want no link", c.release, links)
		case c.want != "" && (len(links) != 1 || links[0] != rules.Link{Text: "Diff", URL: c.want}):
			t.Errorf("%s: got %v, want %s", c.release, links, c.want)
		}
	}
}

func TestRequestSendsTheApprovedBytes(t *testing.T) {
	t.Parallel()
	h := parse(t, acmeYAML(t)).Tools["deploy_release"].HTTP
	bytes := []byte("{ \"release\" : \"2026\",\"environment\":\"staging\", \"n\": 5.00 }")
	got, err := h.Request(bytes, "op-1")
	if err != nil || got.Method != "POST" || got.URL != "https://deploy.acme.example/releases" || string(got.Body) != string(bytes) {
		t.Errorf("got %+v, %v", got, err)
	}
	if u, err := h.LookupURL(bytes, "op/1?"); err != nil || u != "https://deploy.acme.example/releases/op%2F1%3F" {
		t.Errorf("lookup: %q, %v", u, err)
	}
}

func TestRequestTemplates(t *testing.T) {
	t.Parallel()
	h := parse(t, acmeYAML(t)).Tools["open_ticket"].HTTP
	got, err := h.Request([]byte(`{"subject":"\"},{\"x\":\"<b>\u2028","queue":"a b/c&d=e","weight":5.00}`), "op 1")
	if err != nil {
		t.Fatal(err)
	}
	if want := "http://10.2.0.7:8080/queues/a%20b%2Fc&d=e/tickets?source=hp"; got.URL != want {
		t.Errorf("got  %s\nwant %s", got.URL, want)
	}
	if want := `{"ticket":{"subject":"[op 1] \"},{\"x\":\"<b>\u2028","weight":5.00},"urgent":false,"version":1.10}`; string(got.Body) != want {
		t.Errorf("got  %s\nwant %s", got.Body, want)
	}
	if u, err := h.LookupURL([]byte(`{"subject":"s","queue":"q","weight":1}`), "a&b=c d"); err != nil || u != "http://10.2.0.7:8080/queues/q/tickets?key=a%26b%3Dc+d" {
		t.Errorf("lookup: %q, %v", u, err)
	}
	for name, args := range map[string]string{
		"not JSON": "{", "no object": "[]", "null": "null", "missing": `{"subject":"s","weight":1}`, "empty": `{"subject":"s","queue":"","weight":1}`,
		"a list": `{"subject":"s","queue":["canary"],"weight":1}`, "climbs": `{"subject":"canary","queue":"..","weight":1}`, "missing in body": `{"subject":"canary","queue":"q"}`,
		"a list in text": `{"subject":["canary"],"queue":"q","weight":1}`,
	} {
		_, err := h.Request([]byte(args), "op")
		var bad *rules.RenderError
		if !errors.As(err, &bad) {
			t.Errorf("%s: got %v, want a RenderError", name, err)
		} else if strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: shows an argument: %v", name, err)
		}
	}
	if _, err := h.LookupURL([]byte(`{"subject":"s","queue":"q","weight":1}`), ""); err == nil {
		t.Error("an empty operation key was looked up")
	}
}

func TestGetSendsNoBody(t *testing.T) {
	t.Parallel()
	text := change(t, acmeYAML(t), `agent: {}}`, `http: {method: GET, url: "https://tickets.acme.example/close"}}`)
	got, err := parse(t, text).Tools["close_ticket"].HTTP.Request([]byte(`{}`), "op")
	if err != nil || got.Method != "GET" || got.Body != nil {
		t.Errorf("got %+v, %v", got, err)
	}
}

// Whatever an argument says, it changes neither the host nor the shape of the path,
// query and body.
func TestArgumentsStayInTheirPlace(t *testing.T) {
	t.Parallel()
	tool := parse(t, acmeYAML(t)).Tools["open_ticket"]
	rapid.Check(t, func(t *rapid.T) {
		queue, subject := rapid.String().Draw(t, "queue"), rapid.String().Draw(t, "subject")
		args, err := json.Marshal(map[string]any{"queue": queue, "subject": subject, "weight": 1})
		if err != nil {
			t.Fatal(err)
		}
		got, err := tool.HTTP.Request(args, "op")
		if err != nil {
			if queue != "" && queue != "." && queue != ".." && subject != "" {
				t.Fatalf("refused: %v", err)
			}
			return
		}
		u, err := url.Parse(got.URL)
		if err != nil || u.Host != "10.2.0.7:8080" || u.RawQuery != "source=hp" || u.Fragment != "" || u.User != nil {
			t.Fatalf("%q became %s", queue, got.URL)
		}
		parts := strings.Split(u.EscapedPath(), "/")
		if len(parts) != 4 || parts[1] != "queues" || parts[3] != "tickets" {
			t.Fatalf("%q became %s", queue, got.URL)
		}
		if back, err := url.PathUnescape(parts[2]); err != nil || back != queue {
			t.Fatalf("%q came back as %q", queue, back)
		}
		var body struct {
			Ticket struct{ Subject string }
		}
		if err := json.Unmarshal(got.Body, &body); err != nil || body.Ticket.Subject != "[op] "+subject {
			t.Fatalf("%q became %s", subject, got.Body)
		}
	})
}

func TestRevision(t *testing.T) {
	t.Parallel()
	text := acmeYAML(t)
	base := parse(t, text)
	revision := base.Tools["deploy_release"].Revision()
	if len(revision) != 64 || strings.Trim(revision, "0123456789abcdef") != "" {
		t.Errorf("not a SHA-256 in hex: %q", revision)
	}
	for name, same := range map[string]string{
		"formatting":    change(t, text, `redact: [/token]`, "redact:\n          - '/token'   # hidden"),
		"another tool":  change(t, text, `title: "Close the ticket"`, `title: "Shut the ticket"`),
		"another rule":  change(t, text, "risk: high", "risk: low"),
		"another order": change(t, text, "          settle: 1m\n          if_match: true\n", "          if_match: true\n          settle: 1m\n"),
	} {
		if parse(t, same).Tools["deploy_release"].Revision() != revision {
			t.Errorf("%s changed the revision", name)
		}
	}
	seen := map[string]string{revision: "base"}
	for name, other := range map[string]string{
		"title":     change(t, text, `title: "Deploy {{.release}} to`, `title: "Ship {{.release}} to`),
		"reference": change(t, text, "env:DEPLOY_AUTH", "env:DEPLOY_AUTH_2"),
		"redact":    change(t, text, "        redact: [/token]\n", ""),
		"url":       change(t, text, "url: https://deploy.acme.example/releases", "url: https://deploy2.acme.example/releases"),
		"schema":    change(t, text, "enum: [staging, production]", "enum: [production, staging]"),
		"if_match":  change(t, text, "if_match: true", "if_match: false"),
	} {
		r := parse(t, other).Tools["deploy_release"].Revision()
		if was, ok := seen[r]; ok {
			t.Errorf("%s has the revision of %s", name, was)
		}
		seen[r] = name
	}
	if base.Tools["open_ticket"].Revision() == base.Tools["close_ticket"].Revision() {
		t.Error("two tools share a revision")
	}
}

// A revision is stored with approvals: it must not change with this program.
func TestRevisionIsStable(t *testing.T) {
	t.Parallel()
	const want = "6c31134820f03d44c0816c631680396e4131f299bc9735c1f3207a0d557fe295"
	if got := parse(t, acmeYAML(t)).Tools["close_ticket"].Revision(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
