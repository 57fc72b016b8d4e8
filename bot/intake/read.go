package intake

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/templates"
)

const (
	maxParameter = 512
	defaultLimit = 50
	maxLimit     = 200
)

// get is GET /v1/approvals/{approval_id}, at once or as a long poll.
func (s *server) get(ctx context.Context, c *call) (answer, error) {
	wait, p := c.wait()
	if p != nil {
		return answer{}, p
	}
	since, p := c.number("since", 0, 0)
	if p != nil {
		return answer{}, p
	}
	follow := false
	switch c.query["follow"] {
	case "":
	case "child":
		follow = true
	default:
		return answer{}, wrongParameter("follow", "The only value is child.")
	}
	if wait == 0 && !follow {
		v, err := s.core.Get(ctx, c.key, c.id)
		return answer{status: http.StatusOK, body: shown(v)}, err
	}
	var v approvals.View
	err := s.poll(ctx, c, wait, func(ctx context.Context, wait time.Duration) (err error) {
		v, err = s.core.Watch(ctx, c.key, c.id, since, wait, follow)
		return err
	})
	return answer{status: http.StatusOK, body: shown(v)}, err
}

var errDraining = errors.New("intake: the server drains")

// poll runs a long poll: one of the key's share, never longer than asked, and ended early by a drain with what is known then.
func (s *server) poll(ctx context.Context, c *call, wait time.Duration, ask func(context.Context, time.Duration) error) error {
	if wait > 0 && !s.draining() {
		giveBack, p := s.waits.take(c.key)
		if p != nil {
			return p
		}
		defer giveBack()
		// The core ends a wait itself; the second bound is for a database that doesn't answer.
		held, cancel := context.WithTimeoutCause(ctx, wait+10*time.Second, context.DeadlineExceeded)
		defer cancel()
		held, stop := context.WithCancelCause(held)
		defer stop(nil)
		go func() {
			select {
			case <-s.opts.Drain:
				stop(errDraining)
			case <-held.Done():
			}
		}()
		err := ask(held, wait)
		if err == nil || ctx.Err() != nil || !errors.Is(context.Cause(held), errDraining) {
			return err
		}
	}
	return ask(ctx, 0)
}

func (s *server) draining() bool {
	select {
	case <-s.opts.Drain:
		return true
	default:
		return false
	}
}

// list is GET /v1/approvals.
func (s *server) list(ctx context.Context, c *call) (answer, error) {
	limit, p := c.number("limit", 1, defaultLimit)
	if p != nil {
		return answer{}, p
	}
	f := approvals.ListFilter{
		RunID: c.query["run_id"], Status: approvals.Status(c.query["status"]), Limit: int(min(limit, maxLimit)), Cursor: c.query["cursor"],
	}
	if f.Status != "" && !slices.Contains(approvals.Statuses, f.Status) {
		return answer{}, wrongParameter("status", "There is no such status.%s", didYouMean(string(f.Status), approvals.Statuses))
	}
	if f.RunID != "" && text(f.RunID, 1, maxRunID, false) != "" {
		return answer{}, wrongParameter("run_id", "This must be 1 to %d bytes long.", maxRunID)
	}
	views, next, err := s.core.List(ctx, c.key, f)
	page := pageAnswer{Approvals: shownAll(views)}
	if next != "" {
		page.NextCursor = &next
	}
	return answer{status: http.StatusOK, body: page}, err
}

func didYouMean[T ~string](word string, known []T) string {
	names := make([]string, len(known))
	for i, k := range known {
		names[i] = string(k)
	}
	if meant := nearest(word, names); meant != "" {
		return " Did you mean " + meant + "?"
	}
	return ""
}

// events is GET /v1/approvals/{approval_id}/events.
func (s *server) events(ctx context.Context, c *call) (answer, error) {
	events, err := s.core.Events(ctx, c.key, c.id)
	told := make([]event, len(events))
	for i, e := range events {
		told[i] = event{Event: e, Text: templates.Tell(templates.Happening{
			At: e.At, Kind: e.Kind, From: string(e.From), To: string(e.To), By: e.Actor, Detail: e.Detail,
		}).Plain()}
	}
	return answer{status: http.StatusOK, body: eventsAnswer{ApprovalID: c.id, Events: told}}, err
}

// wait reads ?wait=30s. More than a minute is a minute: who polls asks again anyway.
func (c *call) wait() (time.Duration, *Problem) {
	given, ok := c.query["wait"]
	if !ok {
		return 0, nil
	}
	wait, err := time.ParseDuration(given)
	if err != nil || wait < 0 {
		return 0, wrongParameter("wait", "This must be a duration from 0s to %s, such as 30s.", maxWait)
	}
	return min(wait, maxWait), nil
}

func (c *call) number(name string, least, otherwise int64) (int64, *Problem) {
	given, ok := c.query[name]
	if !ok {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(given, 10, 64)
	if err != nil || n < least {
		return 0, wrongParameter(name, "This must be a whole number from %d on.", least)
	}
	return n, nil
}
