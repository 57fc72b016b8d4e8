package slacksim

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// Paths of the app, below Options.CallbackURL.
const (
	InteractionsPath = "/slack/interactions"
	CommandsPath     = "/slack/commands"
	EventsPath       = "/slack/events"
)

// Sign is Slack's request signature: "v0=" and the HMAC-SHA256 of "v0:{timestamp}:{raw body}" in hex
// (https://docs.slack.dev/authentication/verifying-requests-from-slack).
func Sign(secret, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("v0:" + timestamp + ":"))
	mac.Write(body)
	return "v0=" + hex.EncodeToString(mac.Sum(nil))
}

// Response is how the app answered a callback.
type Response struct {
	Status   int
	Header   http.Header
	Body     []byte
	Latency  time.Duration // until the answer's body was read
	Acked    bool          // 2xx within Options.AckTimeout
	Delivery Delivery      // what was sent
}

// Delivery is a callback as it went over the wire; Replay sends it again.
type Delivery struct {
	Path   string
	Header http.Header
	Body   []byte
}

// Tamper changes a callback before it is sent, to test what the app refuses.
type Tamper struct {
	Payload   func(payload map[string]any) // changes an interaction's payload or an event
	Skew      time.Duration                // added to the signature's timestamp
	Secret    string                       // signs with this secret instead of the workspace's
	Unsigned  bool                         // sends no signature
	AfterSign func(body []byte) []byte     // changes the body once it is signed
}

func newCallbackClient(timeout time.Duration) *http.Client {
	return &http.Client{
		Timeout:       timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport:     &http.Transport{MaxIdleConnsPerHost: 16, IdleConnTimeout: 30 * time.Second},
	}
}

// deliver signs a callback and posts it. An app that does not answer 2xx in time gives ErrNotAcked with what it said.
func (s *Sim) deliver(ctx context.Context, path, contentType string, body []byte, header http.Header, t Tamper) (Response, error) {
	secret := s.opts.SigningSecret
	if t.Secret != "" {
		secret = t.Secret
	}
	h := http.Header{"Content-Type": {contentType}, "User-Agent": {"Slackbot 1.0 (+https://api.slack.com/robots)"}, "Accept": {"application/json,*/*"}}
	for k, v := range header {
		h[k] = v
	}
	ts := strconv.FormatInt(s.opts.Now().Add(t.Skew).Unix(), 10)
	if !t.Unsigned {
		h.Set("X-Slack-Request-Timestamp", ts)
		h.Set("X-Slack-Signature", Sign(secret, ts, body))
	}
	if t.AfterSign != nil {
		body = t.AfterSign(bytes.Clone(body))
	}
	return s.Replay(ctx, Delivery{Path: path, Header: h, Body: body})
}

// Replay posts a recorded callback again, byte for byte and under its old signature.
func (s *Sim) Replay(ctx context.Context, d Delivery) (Response, error) {
	s.mu.Lock()
	base := s.opts.CallbackURL
	if s.deliveries = append(s.deliveries, d); len(s.deliveries) > 2*keptDeliveries {
		s.deliveries = append([]Delivery(nil), s.deliveries[keptDeliveries:]...)
	}
	s.mu.Unlock()
	if base == "" {
		return Response{}, ErrNoCallback
	}
	resp := Response{Delivery: d}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+d.Path, bytes.NewReader(d.Body))
	if err != nil {
		return resp, fmt.Errorf("slacksim: %w", err)
	}
	req.Header = d.Header.Clone()
	start := time.Now() // real time: it is the app's latency
	r, err := s.client.Do(req)
	if err != nil {
		resp.Latency = time.Since(start)
		return resp, fmt.Errorf("%w: %w", ErrNotAcked, err)
	}
	defer func() { _ = r.Body.Close() }()
	resp.Body, err = io.ReadAll(io.LimitReader(r.Body, 1<<20))
	resp.Latency = time.Since(start)
	resp.Status, resp.Header = r.StatusCode, r.Header
	if err != nil {
		return resp, fmt.Errorf("%w: %w", ErrNotAcked, err)
	}
	resp.Acked = r.StatusCode/100 == 2
	if !resp.Acked {
		return resp, fmt.Errorf("%w: status %d", ErrNotAcked, r.StatusCode)
	}
	return resp, nil
}

// keptDeliveries is how many callbacks are kept at least.
const keptDeliveries = 1000

// Deliveries lists the callbacks sent so far, the last thousand at least, oldest first.
func (s *Sim) Deliveries() []Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Delivery(nil), s.deliveries...)
}

// Event sends an Events API callback and, while the app does not acknowledge it, sends it again at once, after one
// minute and after five, with x-slack-retry-num and x-slack-retry-reason. The answer is that of the first try; the
// later ones run in the background, by Options.After.
func (s *Sim) Event(ctx context.Context, event map[string]any) (Response, error) {
	return s.EventTampered(ctx, event, Tamper{})
}

// EventTampered is Event with changes on the way.
func (s *Sim) EventTampered(ctx context.Context, event map[string]any, t Tamper) (Response, error) {
	s.mu.Lock()
	if _, ok := event["event_ts"]; !ok {
		event["event_ts"] = s.nextTS()
	}
	payload := map[string]any{
		"token": "deprecated", "team_id": s.opts.Team, "api_app_id": s.opts.AppID, "type": "event_callback", "event": event,
		"event_id": s.nextID("Ev"), "event_time": s.opts.Now().Unix(), "is_ext_shared_channel": false,
		"authorizations": []any{map[string]any{"enterprise_id": nil, "team_id": s.opts.Team, "user_id": s.opts.BotUserID, "is_bot": true, "is_enterprise_install": false}},
	}
	s.mu.Unlock()
	if t.Payload != nil {
		t.Payload(payload)
	}
	body := encode(payload)
	resp, err := s.deliver(ctx, EventsPath, "application/json", body, nil, t)
	if err != nil && resp.Header.Get("X-Slack-No-Retry") == "" && t.isZero() && s.ctx.Err() == nil {
		s.wg.Go(func() { s.retryEvent(body, resp.Status) })
	}
	return resp, err
}

func (t Tamper) isZero() bool {
	return t.Payload == nil && t.Skew == 0 && t.Secret == "" && !t.Unsigned && t.AfterSign == nil
}

func (s *Sim) retryEvent(body []byte, status int) {
	for i, pause := range []time.Duration{0, time.Minute, 5 * time.Minute} {
		if pause > 0 {
			select {
			case <-s.opts.After(pause):
			case <-s.ctx.Done():
				return
			}
		}
		reason := "http_error"
		if status == 0 {
			reason = "http_timeout"
		}
		h := http.Header{"X-Slack-Retry-Num": {strconv.Itoa(i + 1)}, "X-Slack-Retry-Reason": {reason}}
		resp, err := s.deliver(s.ctx, EventsPath, "application/json", body, h, Tamper{})
		if err == nil || s.ctx.Err() != nil {
			return
		}
		status = resp.Status
	}
}

// Challenge does the handshake by which Slack verifies an events URL: the app must echo the challenge.
func (s *Sim) Challenge(ctx context.Context) error {
	want := secretID()
	body := encode(map[string]any{"token": "deprecated", "challenge": want, "type": "url_verification"})
	resp, err := s.deliver(ctx, EventsPath, "application/json", body, nil, Tamper{})
	if err != nil {
		return err
	}
	var got struct {
		Challenge string `json:"challenge"`
	}
	if json.Unmarshal(resp.Body, &got) != nil {
		got.Challenge = string(bytes.TrimSpace(resp.Body)) // text/plain is fine too
	}
	if got.Challenge != want {
		return fmt.Errorf("slacksim: the events URL did not echo the challenge")
	}
	return nil
}
