package bot

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/slack-go/slack"
)

// ClientOptions configure a Client. Only Token is required.
type ClientOptions struct {
	Token  string // xoxb-…
	APIURL string // a simulator's, ending in a slash; Slack's own when empty
	// Observe counts calls by method and class; nil: nobody counts.
	Observe func(method string, class Class)
	// MaxWait bounds the time one call waits for rate limits; default 5 s. What would wait longer fails with
	// ClassRateLimited at once, for the queue to come back to (RetryAfter): posts that wait must not keep updates, which
	// take buttons away, from being made.
	MaxWait time.Duration
	Now     func() time.Time
	After   func(time.Duration) <-chan time.Time
}

// callTimeout is slack-go's missing one: a call that takes longer is ambiguous.
const callTimeout = 10 * time.Second

// tries is how often one call is made at most.
const tries = 3

// Client calls Slack's Web API. Every call goes through [Client.do], the only place that retries. It is safe for
// concurrent use.
type Client struct {
	api     *slack.Client
	http    *http.Client
	token   string
	base    *url.URL
	observe func(string, Class)
	maxWait time.Duration
	now     func() time.Time
	after   func(time.Duration) <-chan time.Time

	mu    sync.Mutex
	gates map[string]time.Time // by gate key: no call before that time
	me    *Identity
}

// NewClient makes a client. It calls nobody.
func NewClient(o ClientOptions) (*Client, error) {
	if o.Token == "" {
		return nil, errors.New("bot: no Slack token")
	}
	if o.APIURL == "" {
		o.APIURL = slack.APIURL
	}
	base, err := url.Parse(o.APIURL)
	if err != nil || base.Host == "" || !strings.HasSuffix(base.Path, "/") {
		return nil, errors.New("bot: the Slack API URL must be absolute and end in a slash")
	}
	c := &Client{
		http: newHTTPClient(), token: o.Token, base: base, observe: o.Observe, maxWait: o.MaxWait, now: o.Now, after: o.After,
		gates: map[string]time.Time{},
	}
	if c.observe == nil {
		c.observe = func(string, Class) {}
	}
	if c.maxWait <= 0 {
		c.maxWait = 5 * time.Second
	}
	if c.now == nil {
		c.now = time.Now
	}
	if c.after == nil {
		c.after = time.After
	}
	// slack-go's own retries stay off, and so does its log: it may print requests.
	c.api = slack.New(o.Token, slack.OptionHTTPClient(c.http), slack.OptionAPIURL(o.APIURL), slack.OptionLog(log.New(io.Discard, "", 0)))
	return c, nil
}

// newHTTPClient speaks HTTP/1 only: over HTTP/2, net/http sends a request again by itself after a peer's reset, which for
// chat.postMessage is a second card. Redirects are not followed: they would carry the token elsewhere.
func newHTTPClient() *http.Client {
	t := &http.Transport{
		Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 8, IdleConnTimeout: 30 * time.Second,
		TLSHandshakeTimeout: 5 * time.Second, Protocols: new(http.Protocols),
	}
	t.Protocols.SetHTTP1(true)
	return &http.Client{
		Timeout: callTimeout, Transport: t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Close drops idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Methods are what a Client calls, as Observe names them. `response_url` stands for the address of a click's answer.
var Methods = []string{
	"auth.test", "chat.postEphemeral", "chat.postMessage", "chat.update", "conversations.history", "conversations.replies", "response_url",
	"usergroups.list", "users.info", "users.list", "views.open", "views.publish", "views.push", "views.update",
}

// call says how a method may be retried.
type call struct {
	method string
	gate   string // calls with the same gate share a rate limit; the method when empty
	repeat bool   // may be made again after an ambiguous answer: reading, or setting the same thing once more
}

// do makes a call up to three times. A rate limit is waited for, within MaxWait and the caller's deadline, and closes the
// gate for everybody; a call that never left is made again; an ambiguous one only when repeating it is harmless.
func (c *Client) do(ctx context.Context, k call, f func(context.Context) error) error {
	if k.gate == "" {
		k.gate = k.method
	}
	waited := time.Duration(0)
	for try := 1; ; try++ {
		if err := c.pass(ctx, k, &waited); err != nil {
			return err
		}
		err := f(ctx)
		if err == nil {
			c.observe(k.method, ClassOK)
			return nil
		}
		e := classify(k.method, err)
		c.observe(k.method, e.Class)
		again := false
		switch e.Class {
		case ClassRateLimited:
			c.close(k.gate, e.RetryAfter)
			again = true
		case ClassUnsent:
			again = true
		case ClassAmbiguous:
			again = k.repeat
		}
		if !again || try == tries || ctx.Err() != nil {
			return e
		}
		if e.Class != ClassRateLimited {
			if err := c.wait(ctx, k, time.Duration(try)*200*time.Millisecond, &waited); err != nil {
				return e
			}
		}
	}
}

// pass waits until the gate is open.
func (c *Client) pass(ctx context.Context, k call, waited *time.Duration) error {
	for {
		c.mu.Lock()
		until, closed := c.gates[k.gate]
		left := until.Sub(c.now())
		if closed && left <= 0 {
			delete(c.gates, k.gate)
			closed = false
		}
		c.mu.Unlock()
		if !closed {
			return nil
		}
		if err := c.wait(ctx, k, left, waited); err != nil {
			return err
		}
	}
}

// wait sleeps for d, or says at once that there is no time for it.
func (c *Client) wait(ctx context.Context, k call, d time.Duration, waited *time.Duration) error {
	limited := &APIError{Method: k.method, Code: "ratelimited", Class: ClassRateLimited, RetryAfter: d}
	if *waited+d > c.maxWait {
		return limited
	}
	if end, ok := ctx.Deadline(); ok && c.now().Add(d).After(end) {
		return limited
	}
	*waited += d
	select {
	case <-c.after(d):
		return nil
	case <-ctx.Done():
		return classify(k.method, ctx.Err())
	}
}

// close shuts a gate for d; a later end stays.
func (c *Client) close(gate string, d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if until := c.now().Add(d); until.After(c.gates[gate]) {
		c.gates[gate] = until
	}
}

// read makes a reading call that slack-go would decode too eagerly: one block in the history that the library does not
// model must not hide our own message. out is decoded leniently, and ok and error are looked at first.
func (c *Client) read(ctx context.Context, method string, form url.Values, out any) error {
	return c.do(ctx, call{method: method, repeat: true}, func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base.String()+method, strings.NewReader(form.Encode()))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Authorization", "Bearer "+c.token)
		resp, err := c.http.Do(req)
		if err != nil {
			return err
		}
		defer func() { _ = resp.Body.Close() }()
		if resp.StatusCode == http.StatusTooManyRequests {
			if after, err := time.ParseDuration(resp.Header.Get("Retry-After") + "s"); err == nil {
				return &slack.RateLimitedError{RetryAfter: after}
			}
		}
		if resp.StatusCode != http.StatusOK {
			return slack.StatusCodeError{Code: resp.StatusCode, Status: resp.Status}
		}
		body, err := io.ReadAll(io.LimitReader(resp.Body, 16<<20))
		if err != nil {
			return err
		}
		var head struct {
			OK    bool   `json:"ok"`
			Error string `json:"error"`
		}
		if err := json.Unmarshal(body, &head); err != nil {
			return err
		}
		if !head.OK {
			return slack.SlackErrorResponse{Err: head.Error}
		}
		return json.Unmarshal(body, out)
	})
}

// Identity is who the token is.
type Identity struct {
	Team, TeamName, User, BotID string
	Scopes                      []string
}

// Identity asks auth.test and remembers the answer for the life of the client.
func (c *Client) Identity(ctx context.Context) (Identity, error) {
	c.mu.Lock()
	me := c.me
	c.mu.Unlock()
	if me != nil {
		return *me, nil
	}
	var got *slack.AuthTestResponse
	err := c.do(ctx, call{method: "auth.test", repeat: true}, func(ctx context.Context) (err error) {
		got, err = c.api.AuthTestContext(ctx)
		return err
	})
	if err != nil {
		return Identity{}, err
	}
	me = &Identity{Team: got.TeamID, TeamName: got.Team, User: got.UserID, BotID: got.BotID}
	for _, s := range strings.Split(got.Header.Get("X-OAuth-Scopes"), ",") {
		if s = strings.TrimSpace(s); s != "" {
			me.Scopes = append(me.Scopes, s)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.me = me
	return *me, nil
}
