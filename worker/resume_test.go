package worker

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/approvals/rules"
)

const whsec = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" // the specification's example

// agent is the far side of a resume: it keeps what came and answers as told.
type agent struct {
	*httptest.Server
	mu   sync.Mutex
	got  []*http.Request
	body []byte
}

func newAgent(t *testing.T, answer http.HandlerFunc) *agent {
	t.Helper()
	a := &agent{}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		a.mu.Lock()
		a.got, a.body = append(a.got, r), body
		a.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(a.Close)
	return a
}

func (a *agent) requests() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.got)
}

func newCourier(c *core, secret string) (*courier, *bytes.Buffer) {
	var log bytes.Buffer
	return &courier{
		core: c, now: time.Now, log: slog.New(slog.NewTextHandler(&log, nil)), metrics: NewMetrics(nil),
		secrets: rules.Secrets{Sole: true, LookupEnv: func(name string) (string, bool) { return secret, name == "AGENT_SECRET" }},
	}, &log
}

// due makes a pause whose message is to be sent to url.
func due(c *core, url string, attempt int) uuid.UUID {
	pause := uuid.New()
	c.delivery[pause] = approvals.Delivery{
		Send: true, Tenant: &rules.Tenant{Name: "acme", Egress: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}, Agent: "agent", URL: url,
		Secret: rules.Ref{Scheme: rules.EnvScheme, Name: "AGENT_SECRET"}, WebhookID: "msg_1", Body: []byte(`{"type":"run.resume"}`), Attempt: attempt,
	}
	return pause
}

// The contract's answers: 2xx done, 202 accepted, 410 stop, anything else another try.
func TestDeliver(t *testing.T) {
	t.Parallel()
	for name, c0 := range map[string]struct {
		answer http.HandlerFunc
		want   approvals.DeliveryResult
	}{
		"200":                  {say(200, ""), approvals.DeliveryResult{Delivered: true}},
		"204":                  {say(204, ""), approvals.DeliveryResult{Delivered: true}},
		"200 with a revision":  {say(200, `{"agent_revision":"git:1f0c2d9"}`), approvals.DeliveryResult{Delivered: true, AgentRevision: "git:1f0c2d9"}},
		"200, not JSON":        {say(200, "thanks"), approvals.DeliveryResult{Delivered: true}},
		"200, another type":    {say(200, `{"agent_revision":5}`), approvals.DeliveryResult{Delivered: true}},
		"200, a long revision": {say(200, `{"agent_revision":"`+strings.Repeat("a", 300)+`"}`), approvals.DeliveryResult{Delivered: true}},
		"200, control in it":   {say(200, `{"agent_revision":"a\nb"}`), approvals.DeliveryResult{Delivered: true}},
		"200, too large":       {say(200, `{"agent_revision":"a"}`+strings.Repeat(" ", 70<<10)), approvals.DeliveryResult{Delivered: true}},
		"202":                  {say(202, ""), approvals.DeliveryResult{Accepted: true}},
		"410":                  {say(410, ""), approvals.DeliveryResult{Stopped: true}},
		"400":                  {say(400, canary), approvals.DeliveryResult{Error: "the agent answered 400 Bad Request"}},
		"500":                  {say(500, canary), approvals.DeliveryResult{Error: "the agent answered 500 Internal Server Error"}},
		"a redirect":           {say(307, ""), approvals.DeliveryResult{Error: "the agent answered 307 Temporary Redirect"}},
		"breaks off":           {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, approvals.DeliveryResult{Error: "the agent did not answer: the connection failed or broke"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			elsewhere := newAgent(t, say(200, ""))
			a := newAgent(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Location", elsewhere.URL)
				c0.answer(w, r)
			})
			c := newCore()
			x, log := newCourier(c, whsec)
			if err := x.run(t.Context(), due(c, a.URL+"/resume", 1)); err != nil {
				t.Fatal(err)
			}
			if len(c.results) != 1 || c.results[0] != c0.want {
				t.Errorf("recorded %+v, want %+v", c.results, c0.want)
			}
			if a.requests() != 1 || elsewhere.requests() != 0 {
				t.Errorf("%d requests, %d elsewhere", a.requests(), elsewhere.requests())
			}
			for _, part := range []string{a.URL, canary, whsec} {
				if strings.Contains(log.String(), part) {
					t.Errorf("the log holds %q", part)
				}
			}
		})
	}
}

func say(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

// Standard Webhooks' own library takes the signature, under each way to write a secret; each
// try carries the same id and body, and a new time.
func TestSignature(t *testing.T) {
	t.Parallel()
	raw := func(secret string) func() (*standardwebhooks.Webhook, error) {
		return func() (*standardwebhooks.Webhook, error) { return standardwebhooks.NewWebhookRaw([]byte(secret)) }
	}
	text := func(secret string) func() (*standardwebhooks.Webhook, error) {
		return func() (*standardwebhooks.Webhook, error) { return standardwebhooks.NewWebhook(secret) }
	}
	for name, c0 := range map[string]struct {
		secret   string
		receiver func() (*standardwebhooks.Webhook, error)
	}{
		"whsec_":                       {whsec, text(whsec)},
		"whsec_, receiver without it":  {whsec, text(strings.TrimPrefix(whsec, "whsec_"))},
		"plain text":                   {"a plain secret, with spaces", raw("a plain secret, with spaces")},
		"plain text that is base64":    {"MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", raw("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")},
		"base64 that has lost whsec_":  {"MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", text(whsec)},
		"plain text, receiver's bytes": {"s3cr3t-not-base64!", raw("s3cr3t-not-base64!")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			receiver, err := c0.receiver()
			if err != nil {
				t.Fatal(err)
			}
			a := newAgent(t, say(500, ""))
			c := newCore()
			x, _ := newCourier(c, c0.secret)
			now := time.Now()
			x.now = func() time.Time { now = now.Add(time.Second); return now }
			pause := due(c, a.URL, 1)
			for range 2 {
				if err := x.run(t.Context(), pause); err != nil {
					t.Fatal(err)
				}
			}
			if len(a.got) != 2 {
				t.Fatalf("%d tries", len(a.got))
			}
			for _, r := range a.got {
				if err := receiver.Verify(a.body, r.Header); err != nil {
					t.Error(err)
				}
				if r.Header.Get("Webhook-Id") != "msg_1" || r.Header.Get("Content-Type") != "application/json" || r.Method != "POST" {
					t.Errorf("%s %v", r.Method, r.Header)
				}
			}
			if a.got[0].Header.Get("Webhook-Timestamp") == a.got[1].Header.Get("Webhook-Timestamp") {
				t.Error("the second try carries the first one's time")
			}
			if err := receiver.Verify([]byte(`{"type":"run.forged"}`), a.got[0].Header); err == nil {
				t.Error("another body passes")
			}
		})
	}
}

// What can't be sent is recorded as a failed try, without the secret, and sends nothing.
func TestNotSent(t *testing.T) {
	t.Parallel()
	for name, c0 := range map[string]struct {
		secret string
		change func(*approvals.Delivery)
		want   string
	}{
		"a broken whsec_": {"whsec_" + canary + "!", func(*approvals.Delivery) {}, errWebhookSecret.Error()},
		"an empty whsec_": {"whsec_", func(*approvals.Delivery) {}, errWebhookSecret.Error()},
		"no such secret":  {whsec, func(d *approvals.Delivery) { d.Secret.Name = "OTHER" }, "reference can't be resolved: env:OTHER of tenant acme: the variable isn't set"},
		"a private address": {
			whsec, func(d *approvals.Delivery) { d.Tenant = &rules.Tenant{Name: "acme"} },
			"the agent did not answer: the address is private or special, and egress.allow doesn't open it",
		},
		"a URL that is none": {whsec, func(d *approvals.Delivery) { d.URL = "http://a b/" + canary }, "the agent's URL can't be used"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAgent(t, say(200, ""))
			c := newCore()
			x, log := newCourier(c, c0.secret)
			pause := due(c, a.URL, 2)
			d := c.delivery[pause]
			c0.change(&d)
			c.delivery[pause] = d
			if err := x.run(t.Context(), pause); err != nil {
				t.Fatal(err)
			}
			if len(c.results) != 1 || c.results[0].Error != c0.want || c.results[0].Delivered || a.requests() != 0 {
				t.Errorf("%+v, %d requests", c.results, a.requests())
			}
			noCanary(t, log.String())
		})
	}
}

// Nothing to send, pulled by the agent, or a pause that is nobody's: no request, no record.
func TestNothingToSend(t *testing.T) {
	t.Parallel()
	a := newAgent(t, say(200, ""))
	c := newCore()
	x, _ := newCourier(c, whsec)
	pulled := due(c, a.URL, 1)
	d := c.delivery[pulled]
	d.Pull = true
	c.delivery[pulled] = d
	told := uuid.New()
	c.delivery[told] = approvals.Delivery{}
	for _, pause := range []uuid.UUID{pulled, told, uuid.New()} {
		if err := x.run(t.Context(), pause); err != nil {
			t.Error(err)
		}
	}
	if a.requests() != 0 || c.records != 0 {
		t.Errorf("%d requests, %d records", a.requests(), c.records)
	}
}

// The answer is kept over a short absence of Postgres; over a long one the message is sent
// again, with the same id.
func TestDeliveryRecorded(t *testing.T) {
	t.Parallel()
	for name, c0 := range map[string]struct {
		failures int
		want     error
	}{"short": {3, nil}, "long": {1000, errAgain}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAgent(t, say(200, ""))
			c := newCore()
			c.recordErr = func(n int) error {
				if n <= c0.failures {
					return errDatabase
				}
				return nil
			}
			x, log := newCourier(c, whsec)
			if err := x.run(t.Context(), due(c, a.URL, 1)); err != c0.want { //nolint:errorlint // the very value
				t.Errorf("error %v, want %v", err, c0.want)
			}
			if a.requests() != 1 {
				t.Errorf("%d requests", a.requests())
			}
			noCanary(t, log.String())
		})
	}
}
