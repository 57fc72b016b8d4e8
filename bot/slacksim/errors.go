package slacksim

import "errors"

// Errors of the test-side API. What Slack would answer over HTTP travels as Slack error codes instead.
var (
	ErrClosed       = errors.New("slacksim: closed")
	ErrNoCallback   = errors.New("slacksim: no callback URL is set")
	ErrNotAcked     = errors.New("slacksim: the app did not answer 200 in time")
	ErrNoUser       = errors.New("slacksim: no such user")
	ErrNoChannel    = errors.New("slacksim: no such channel")
	ErrNoMessage    = errors.New("slacksim: no such message, or it is not shown to this user")
	ErrNoAction     = errors.New("slacksim: the message or view shows no such action")
	ErrNoView       = errors.New("slacksim: the view is not the one that this user sees")
	ErrNoOption     = errors.New("slacksim: the element offers no such option")
	ErrInvalidInput = errors.New("slacksim: Slack's client would not send these inputs")
)
