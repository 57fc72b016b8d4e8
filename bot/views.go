package bot

import (
	"context"

	"github.com/slack-go/slack"

	"github.com/holdpoint/holdpoint/templates"
)

// View names an open modal. Hash lets an update lose against a newer one.
type View struct{ ID, Hash string }

// OpenView shows a modal. A trigger lives for three seconds and works once, so the call is not repeated.
func (c *Client) OpenView(ctx context.Context, trigger string, v slack.ModalViewRequest) (View, error) {
	return c.view(ctx, call{method: "views.open"}, v, func(ctx context.Context) (*slack.ViewResponse, error) {
		return c.api.OpenViewContext(ctx, trigger, v)
	})
}

// PushView shows a modal on top of the one that was clicked in.
func (c *Client) PushView(ctx context.Context, trigger string, v slack.ModalViewRequest) (View, error) {
	return c.view(ctx, call{method: "views.push"}, v, func(ctx context.Context) (*slack.ViewResponse, error) {
		return c.api.PushViewContext(ctx, trigger, v)
	})
}

// UpdateView replaces a modal's content, when it is still what at.Hash says; an empty hash replaces anything.
func (c *Client) UpdateView(ctx context.Context, at View, v slack.ModalViewRequest) error {
	_, err := c.view(ctx, call{method: "views.update"}, v, func(ctx context.Context) (*slack.ViewResponse, error) {
		return c.api.UpdateViewContext(ctx, v, "", at.Hash, at.ID)
	})
	return err
}

// PublishHome sets a person's home tab.
func (c *Client) PublishHome(ctx context.Context, user string, v slack.HomeTabViewRequest) error {
	if err := templates.CheckHome(v); err != nil {
		return &APIError{Method: "views.publish", Code: "invalid_view", Class: ClassContent}
	}
	return c.do(ctx, call{method: "views.publish", repeat: true}, func(ctx context.Context) error {
		_, err := c.api.PublishViewContext(ctx, slack.PublishViewContextRequest{UserID: user, View: v})
		return err
	})
}

func (c *Client) view(ctx context.Context, k call, v slack.ModalViewRequest, f func(context.Context) (*slack.ViewResponse, error)) (at View, err error) {
	if err := templates.CheckView(v); err != nil { // a refused views.open spends the trigger
		return View{}, &APIError{Method: k.method, Code: "invalid_view", Class: ClassContent}
	}
	err = c.do(ctx, k, func(ctx context.Context) error {
		r, err := f(ctx)
		if err == nil {
			at = View{ID: r.ID, Hash: r.Hash}
		}
		return err
	})
	return at, err
}
