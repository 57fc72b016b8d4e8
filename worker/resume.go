package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/approvals/crashpoint"
	"github.com/holdpoint/holdpoint/approvals/rules"
	"github.com/holdpoint/holdpoint/worker/tools"
)

// Resumes is the part of the core that a delivery needs.
type Resumes interface {
	// ResumeFor gives the message of a pause that is due, building and sealing it the first
	// time; Send is false when there is nothing to send now.
	ResumeFor(ctx context.Context, pauseID uuid.UUID) (approvals.Delivery, error)
	// RecordDelivery writes what became of a try; the core plans the next one.
	RecordDelivery(ctx context.Context, pauseID uuid.UUID, r approvals.DeliveryResult) error
}

// courier tells an agent that its run goes on, by a Standard Webhook
// (https://www.standardwebhooks.com): at least once, the same id and body on every try, a
// new timestamp and signature each time.
type courier struct {
	core    Resumes
	secrets rules.RefResolver
	egress  tools.Egress
	now     func() time.Time
	log     *slog.Logger
	metrics *Metrics
}

const (
	buildTimeout   = 20 * time.Second // opens the state and every result
	webhookTimeout = 15 * time.Second
	maxAck         = 64 << 10 // of an answer, in bytes
	maxRevision    = 200      // of the agent revision that an answer may name, in bytes
)

// run makes one try.
func (c *courier) run(base context.Context, pause uuid.UUID) error {
	ctx, cancel := context.WithTimeout(base, buildTimeout)
	d, err := c.core.ResumeFor(ctx, pause)
	cancel()
	switch {
	case errors.Is(err, approvals.ErrNotFound):
		return nil
	case err != nil:
		c.log.Warn("the resume could not be built", "pause", pause, "error", sentence(err))
		return errAgain
	case !d.Send || d.Pull:
		return nil
	}
	// A crash here: the message is sealed, its next try is due; the relay or the sweeper rings.
	crashpoint.At("resume.built")
	c.metrics.resumeTried(d.Attempt)
	result := c.deliver(base, d)
	// A crash here: the agent may have it. It is sent again with the same webhook-id, by which
	// the agent knows it; each tool body asks for its claim before it has an effect.
	crashpoint.At("resume.answered")
	err = c.record(base, pause, result)
	crashpoint.At("resume.recorded")
	log := c.log.With(d.LogIDs(), "pause", pause, "agent", d.Agent, "attempt", d.Attempt)
	switch {
	case err != nil && !errors.Is(err, approvals.ErrNotFound):
		log.Warn("the delivery could not be recorded; it is sent again", "error", sentence(err))
		return errAgain
	case result.Error != "":
		log.Warn("the run was not told", "error", result.Error)
	default:
		log.Info("the run was told", "accepted", result.Accepted, "stopped", result.Stopped)
	}
	return nil // when to try again is Postgres' to say, not the queue's
}

// deliver sends the message once and reads the answer: 2xx done, 202 accepted, 410 stop,
// anything else is tried again. Result.Error is in our own words.
func (c *courier) deliver(ctx context.Context, d approvals.Delivery) approvals.DeliveryResult {
	not := func(format string, args ...any) approvals.DeliveryResult {
		return approvals.DeliveryResult{Error: fmt.Sprintf(format, args...)}
	}
	if d.Tenant == nil || c.secrets == nil {
		return not("the agent's secret can't be resolved")
	}
	secret, err := c.secrets.Resolve(d.Tenant.Name, d.Secret)
	if err != nil {
		if errors.Is(err, rules.ErrReference) {
			return not("%s", err)
		}
		return not("the agent's secret can't be resolved")
	}
	now := c.now()
	signature, err := sign(secret, d.WebhookID, now, d.Body)
	if err != nil {
		return not("%s", err)
	}
	ctx, cancel := context.WithTimeout(ctx, webhookTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.URL, bytes.NewReader(d.Body))
	if err != nil {
		return not("the agent's URL can't be used")
	}
	req.GetBody = nil
	req.Header = http.Header{
		"Content-Type": {"application/json"}, "User-Agent": {"holdpoint"},
		http.CanonicalHeaderKey(standardwebhooks.HeaderWebhookID):        {d.WebhookID},
		http.CanonicalHeaderKey(standardwebhooks.HeaderWebhookTimestamp): {strconv.FormatInt(now.Unix(), 10)},
		http.CanonicalHeaderKey(standardwebhooks.HeaderWebhookSignature): {signature},
	}
	resp, err := c.egress.Client(d.Tenant.Egress, nil).Do(req)
	if err != nil {
		return not("the agent did not answer: %s", tools.Why(err))
	}
	defer func() { _ = resp.Body.Close() }()
	switch {
	case resp.StatusCode == http.StatusAccepted:
		return approvals.DeliveryResult{Accepted: true}
	case resp.StatusCode >= 200 && resp.StatusCode < 300:
		return approvals.DeliveryResult{Delivered: true, AgentRevision: revision(resp.Body)}
	case resp.StatusCode == http.StatusGone:
		return approvals.DeliveryResult{Stopped: true}
	}
	return not("the agent answered %s", strings.TrimSpace(fmt.Sprintf("%d %s", resp.StatusCode, http.StatusText(resp.StatusCode))))
}

// record stores the result of a try; if that fails for long, the try is repeated.
func (c *courier) record(base context.Context, pause uuid.UUID, r approvals.DeliveryResult) error {
	ctx := context.WithoutCancel(base)
	rest := backoff{first: 50 * time.Millisecond, longest: time.Second}
	for try := 1; ; try++ {
		once, cancel := context.WithTimeout(ctx, recordTimeout)
		err := c.core.RecordDelivery(once, pause, r)
		cancel()
		if err == nil || errors.Is(err, approvals.ErrNotFound) || try == 5 || base.Err() != nil {
			return err
		}
		wait(ctx, rest.next())
	}
}

// errWebhookSecret is a secret that no key can be made of.
var errWebhookSecret = errors.New("the agent's secret starts with whsec_ and goes on with something that is not base64")

// sign gives the webhook-signature header. A secret is `whsec_` and base64, as the Standard
// Webhooks specification writes it, or plain text. The specification's own libraries read
// text without the prefix as base64 too, so a plain text that happens to be base64 is
// signed under both readings: receivers take the one they understand.
func sign(secret, id string, at time.Time, body []byte) (string, error) {
	const prefix = "whsec_"
	decoded, err := standardwebhooks.NewWebhook(secret)
	if strings.HasPrefix(secret, prefix) {
		if err != nil || secret == prefix {
			return "", errWebhookSecret
		}
		return decoded.Sign(id, at, body)
	}
	plain, plainErr := standardwebhooks.NewWebhookRaw([]byte(secret))
	if plainErr != nil {
		return "", errWebhookSecret
	}
	signature, plainErr := plain.Sign(id, at, body)
	if plainErr != nil || err != nil {
		return signature, plainErr
	}
	second, err := decoded.Sign(id, at, body)
	return signature + " " + second, err
}

// revision reads the agent_revision that a 2xx answer may name. An answer that is no such
// JSON is as good as an empty one.
func revision(body io.Reader) string {
	data, err := io.ReadAll(io.LimitReader(body, maxAck+1))
	if err != nil || len(data) > maxAck {
		return ""
	}
	var ack struct {
		AgentRevision string `json:"agent_revision"`
	}
	if json.Unmarshal(data, &ack) != nil || len(ack.AgentRevision) > maxRevision || !utf8.ValidString(ack.AgentRevision) {
		return ""
	}
	if strings.ContainsFunc(ack.AgentRevision, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return ""
	}
	return ack.AgentRevision
}
