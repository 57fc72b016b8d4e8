package interactions

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"sync"
	"time"

	"github.com/slack-go/slack"
	"github.com/slack-go/slack/socketmode"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/templates"
)

// SocketOptions configure Socket Mode.
type SocketOptions struct {
	AppToken string // xapp-…
	APIURL   string // a simulator's, ending in a slash; Slack's own when empty
}

// connections is two: the library closes a connection before it opens the next one, and Slack asks for that every few hours.
// Any of an app's connections may get any payload.
const connections = 2

// Socket receives what Slack would post, over WebSockets that this process opens, and serves it with the same handlers. Slack
// authenticates the connection instead of each request. It runs until ctx ends, or until Slack refuses the token.
func (h *Handler) Socket(ctx context.Context, o SocketOptions) error {
	if o.AppToken == "" {
		return errors.New("interactions: Socket Mode needs an app token")
	}
	if o.APIURL == "" {
		o.APIURL = slack.APIURL
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, connections)
	for range connections {
		go func() { ended <- h.connect(ctx, o) }()
	}
	err := <-ended
	quit := ctx.Err() != nil
	cancel()
	for range connections - 1 {
		err = errors.Join(err, <-ended)
	}
	if quit {
		return nil
	}
	return err
}

// connect keeps one connection.
func (h *Handler) connect(ctx context.Context, o SocketOptions) error {
	quiet := log.New(io.Discard, "", 0) // the library's log may hold payloads
	c := socketmode.New(slack.New("", slack.OptionAppLevelToken(o.AppToken), slack.OptionAPIURL(o.APIURL), slack.OptionLog(quiet),
		slack.OptionHTTPClient(&http.Client{Timeout: 10 * time.Second})), socketmode.OptionLog(quiet), socketmode.OptionReadLimit(maxBody))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() { h.receive(ctx, c) })
	err := c.RunContext(ctx)
	cancel()
	wg.Wait()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return errors.New("interactions: Slack refused the Socket Mode connection; check the app token and its connections:write scope")
}

// receive serves a connection's envelopes, several at once.
func (h *Handler) receive(ctx context.Context, c *socketmode.Client) {
	var wg sync.WaitGroup
	defer wg.Wait()
	slots := make(chan struct{}, 32)
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-c.Events:
			rq, ok := envelope(e)
			if !ok {
				continue
			}
			slots <- struct{}{}
			wg.Go(func() {
				defer func() { <-slots }()
				h.serve(ctx, c, rq)
			})
		}
	}
}

// envelope is what came, also when the library can't read the payload: one element that it does not know would lose a click.
func envelope(e socketmode.Event) (socketmode.Request, bool) {
	if e.Request != nil {
		return *e.Request, e.Request.EnvelopeID != ""
	}
	bad, ok := e.Data.(*socketmode.ErrorBadMessage)
	if !ok {
		return socketmode.Request{}, false
	}
	var rq socketmode.Request
	return rq, json.Unmarshal(bad.Message, &rq) == nil && rq.EnvelopeID != ""
}

// serve answers one envelope. Every one is acknowledged, or Slack sends it again; also a repeat, which changes nothing.
func (h *Handler) serve(ctx context.Context, c *socketmode.Client, rq socketmode.Request) {
	a, respond := h.received(ctx, rq)
	var err error
	if a.body != nil && rq.AcceptsResponsePayload {
		if err = c.AckCtx(ctx, rq.EnvelopeID, a.body); err != nil { // too large for a WebSocket answer: the response_url takes it
			if m, ok := a.body.(map[string]any); ok && respond != "" {
				a.after = append(a.after, h.respondWith(respond, m))
			}
			err = c.AckCtx(ctx, rq.EnvelopeID, nil)
		}
	} else {
		err = c.AckCtx(ctx, rq.EnvelopeID, nil)
	}
	if err != nil {
		h.log.Warn("an envelope could not be acknowledged; Slack will send it again")
	}
	for _, f := range a.after {
		h.back.start(f)
	}
}

// received dispatches an envelope. What names a request is its trigger, which a repeated envelope repeats.
func (h *Handler) received(ctx context.Context, rq socketmode.Request) (a answer, respond string) {
	var err error
	var p payload
	var cmd command
	var e event
	trigger := ""
	switch rq.Type {
	case socketmode.RequestTypeInteractive:
		p, err = parseInteraction(rq.Payload, h.appID)
		trigger = p.Trigger
	case socketmode.RequestTypeSlashCommands:
		cmd, err = parseCommand(rq.Payload, h.appID)
		trigger, respond = cmd.Trigger, cmd.ResponseURL
	case socketmode.RequestTypeEventsAPI:
		if e, err = parseEvent(rq.Payload, h.appID); err == nil {
			return h.happened(e), ""
		}
	default:
		return answer{}, ""
	}
	if err != nil {
		h.log.Warn("an envelope was not a payload of this app", "type", rq.Type)
		return answer{}, ""
	}
	if trigger == "" {
		trigger = string(rq.Payload)
	}
	id := signature(sha256.Sum256([]byte("socket\x00" + trigger)))
	if !h.seen.fresh(id, h.now()) {
		return answer{}, ""
	}
	if rq.Type == socketmode.RequestTypeSlashCommands {
		return h.run(ctx, id, cmd), respond
	}
	return h.dispatch(ctx, id, p), ""
}

// respondWith sends a command's answer over its response_url.
func (h *Handler) respondWith(responseURL string, body map[string]any) func(context.Context) {
	text, _ := body["text"].(string)
	blocks, _ := body["blocks"].([]slack.Block)
	return h.say(click{respond: responseURL, by: approvals.Reviewer{}}, templates.Message{Text: text, Blocks: blocks})
}
