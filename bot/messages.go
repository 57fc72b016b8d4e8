package bot

import (
	"context"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/holdpoint/holdpoint/templates"
)

// Metadata is the machine-readable side of a message. Its values are strings: Slack loses big numbers.
type Metadata struct {
	EventType string
	Payload   map[string]string
}

func (m Metadata) option() slack.MsgOption {
	payload := make(map[string]any, len(m.Payload))
	for k, v := range m.Payload {
		payload[k] = v
	}
	return slack.MsgOptionMetadata(slack.SlackMetadata{EventType: m.EventType, EventPayload: payload})
}

// options are those of every message: nothing is unfurled, parsed or linked, and blocks are always sent, so that an update
// without blocks removes the old ones.
func options(m templates.Message) []slack.MsgOption {
	out := []slack.MsgOption{
		slack.MsgOptionText(m.Text, false), slack.MsgOptionBlocks(m.Blocks...),
		slack.MsgOptionDisableLinkUnfurl(), slack.MsgOptionDisableMediaUnfurl(),
	}
	if m.Plain {
		out = append(out, slack.MsgOptionDisableMarkdown())
	}
	return out
}

// Post sends a new message, into the thread of another when thread is not empty. It is retried after a rate limit and when
// it never left, and not otherwise: after ClassAmbiguous the caller must look the message up. The channel that comes back
// is the one to use from then on.
func (c *Client) Post(ctx context.Context, channel, thread string, m templates.Message, meta Metadata) (inChannel, ts string, err error) {
	opts := options(m)
	if meta.EventType != "" {
		opts = append(opts, meta.option())
	}
	if thread != "" {
		opts = append(opts, slack.MsgOptionTS(thread))
	}
	k := call{method: "chat.postMessage", gate: "chat.postMessage " + channel}
	err = c.do(ctx, k, func(ctx context.Context) (err error) {
		inChannel, ts, err = c.api.PostMessageContext(ctx, channel, opts...)
		return err
	})
	return inChannel, ts, err
}

// Update replaces a message.
func (c *Client) Update(ctx context.Context, channel, ts string, m templates.Message) error {
	return c.do(ctx, call{method: "chat.update", repeat: true}, func(ctx context.Context) error {
		_, _, _, err := c.api.UpdateMessageContext(ctx, channel, ts, options(m)...)
		return err
	})
}

// Ephemeral shows a message to one person alone.
func (c *Client) Ephemeral(ctx context.Context, channel, user string, m templates.Message) error {
	return c.do(ctx, call{method: "chat.postEphemeral"}, func(ctx context.Context) error {
		_, err := c.api.PostEphemeralContext(ctx, channel, user, options(m)...)
		return err
	})
}

// Respond answers through a response_url: to the clicker alone, or in place of the message that was clicked. The address
// must be Slack's, or the configured simulator's; it is never repeated in an error.
func (c *Client) Respond(ctx context.Context, responseURL string, m templates.Message, replace bool) error {
	if !c.ours(responseURL) {
		return &APIError{Method: "response_url", Code: "not_slack", Class: ClassRefused}
	}
	body := &slack.WebhookMessage{Text: m.Text, Blocks: &slack.Blocks{BlockSet: m.Blocks}, ReplaceOriginal: replace, UnfurlLinks: new(bool), UnfurlMedia: new(bool)}
	if body.Blocks.BlockSet == nil {
		body.Blocks.BlockSet = []slack.Block{}
	}
	if !replace {
		body.ResponseType = slack.ResponseTypeEphemeral
	}
	return c.do(ctx, call{method: "response_url"}, func(ctx context.Context) error {
		return slack.PostWebhookCustomHTTPContext(ctx, responseURL, c.http, body)
	})
}

// ours says whether an address may be posted to: an answer must not become a request to somewhere else.
func (c *Client) ours(raw string) bool {
	u, err := url.Parse(raw)
	if err != nil || u.User != nil {
		return false
	}
	host := strings.ToLower(u.Hostname())
	if u.Scheme == "https" && u.Port() == "" && (host == "hooks.slack.com" || host == "hooks.slack-gov.com") {
		return true
	}
	return u.Scheme == c.base.Scheme && u.Host == c.base.Host && c.base.Hostname() != "slack.com"
}

// found is what the history shows of a message, decoded no further than needed.
type found struct {
	TS       string `json:"ts"`
	BotID    string `json:"bot_id"`
	Metadata struct {
		EventType    string         `json:"event_type"`
		EventPayload map[string]any `json:"event_payload"`
	} `json:"metadata"`
}

type historyPage struct {
	Messages []found `json:"messages"`
	HasMore  bool    `json:"has_more"`
	Next     struct {
		Cursor string `json:"next_cursor"`
	} `json:"response_metadata"`
}

// most pages of 200 that a look-up reads; a channel that gets more in between is beyond repair by reading.
const maxPages = 25

// Search says which messages of this app FindMessage looks at.
type Search struct {
	Channel string
	Thread  string    // the replies to this message; the channel itself when empty
	Since   time.Time // posted at or after
	After   string    // posted after the message with this timestamp
	Mark    Metadata  // with this metadata
}

// FindMessage looks for a message of this app. The first one posted wins.
func (c *Client) FindMessage(ctx context.Context, q Search) (ts string, ok bool, err error) {
	me, err := c.Identity(ctx)
	if err != nil {
		return "", false, err
	}
	method := "conversations.history"
	form := url.Values{
		"channel": {q.Channel}, "include_all_metadata": {"true"}, "limit": {"200"}, "inclusive": {"true"},
		"oldest": {strconv.FormatInt(max(q.Since.Unix(), 0), 10)},
	}
	if q.After != "" {
		form.Set("oldest", q.After)
	}
	if q.Thread != "" {
		method = "conversations.replies"
		form.Set("ts", q.Thread)
	}
	for range maxPages {
		var page historyPage
		if err := c.read(ctx, method, form, &page); err != nil {
			return "", false, err
		}
		for _, m := range page.Messages {
			if m.TS > q.After && m.BotID == me.BotID && q.Mark.matches(m) && (!ok || m.TS < ts) {
				ts, ok = m.TS, true
			}
		}
		if page.Next.Cursor == "" {
			return ts, ok, nil
		}
		form.Set("cursor", page.Next.Cursor)
	}
	return ts, ok, nil
}

func (m Metadata) matches(f found) bool {
	if f.Metadata.EventType != m.EventType || m.EventType == "" {
		return false
	}
	for k, v := range m.Payload {
		if got, _ := f.Metadata.EventPayload[k].(string); got != v {
			return false
		}
	}
	return true
}
