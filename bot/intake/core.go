package intake

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/holdpoint/holdpoint/approvals"
)

// Core is what the API needs of approvals.Service. Every method but Authenticate takes the key that came out of it and is scoped by
// it; a no is an *approvals.Refusal or one of the package's sentinels.
type Core interface {
	Authenticate(ctx context.Context, bearer string) (approvals.Key, error)
	Submit(ctx context.Context, key approvals.Key, in approvals.Intake) (approvals.Pause, error)

	Get(ctx context.Context, key approvals.Key, id approvals.ID) (approvals.View, error)
	Watch(ctx context.Context, key approvals.Key, id approvals.ID, since int64, wait time.Duration, followChild bool) (approvals.View, error)
	List(ctx context.Context, key approvals.Key, f approvals.ListFilter) (views []approvals.View, next string, err error)
	Events(ctx context.Context, key approvals.Key, id approvals.ID) ([]approvals.Event, error)
	Withdraw(ctx context.Context, key approvals.Key, id approvals.ID, reason string) (approvals.View, error)

	Redeliver(ctx context.Context, key approvals.Key, id approvals.ID) error
	PullResume(ctx context.Context, key approvals.Key, runID string, wait time.Duration) (body []byte, pause int, ok bool, err error)
	AckResume(ctx context.Context, key approvals.Key, runID string, pause int, agentRevision string) error

	ClaimForAgent(ctx context.Context, key approvals.Key, id approvals.ID, in approvals.AgentClaim) (approvals.AgentClaimAnswer, error)
	Renew(ctx context.Context, key approvals.Key, id approvals.ID, token string, epoch int64) (time.Time, error)
	Complete(ctx context.Context, key approvals.Key, id approvals.ID, token string, epoch int64, result json.RawMessage) (approvals.View, error)
	Fail(ctx context.Context, key approvals.Key, id approvals.ID, token string, epoch int64, failure approvals.AgentFailure) (approvals.View, error)
}

// Options tune the door. The zero value of each field is its default.
type Options struct {
	Log *slog.Logger // default: discarded

	MaxBody      int64         // bytes of an intake's body; default 24 MiB
	MaxArguments int           // bytes of one call's arguments; default 1 MiB
	ReadTimeout  time.Duration // a whole body must be here by then; default 30 s
	WriteTimeout time.Duration // an answer must be taken by then; default 30 s

	MaxWaiting int // long polls of one key at a time; default 128
	MaxReading int // bodies of one key being read and handled at a time; default 32

	// ReadsPerMinute is how many GETs one key may make in this process, as a bucket of that size; default 1200. Long polls count once.
	ReadsPerMinute int

	// FailedPerMinute is how many failed authentications one address (an IPv6 /64) may make; default 30. A key that worked from that
	// address is not held back by its neighbours' failures.
	FailedPerMinute int

	// ClientAddr says whom a request came from, for the limit above. The default is the connection's peer: forwarding headers are
	// believed only by whoever knows the proxies in front.
	ClientAddr func(*http.Request) netip.Addr

	// Drain, once closed, ends the long polls with what is known, so that a server that shuts down needn't wait for them.
	Drain <-chan struct{}

	Now func() time.Time // for the limiter and the access log; default time.Now
}

const (
	defaultMaxBody      = 24 << 20
	defaultMaxArguments = 1 << 20
	defaultMaxResult    = 1 << 20

	// smallBody is the cap of bodies that hold a few names and a sentence.
	smallBody = 64 << 10

	// maxWait is the longest a long poll is held.
	maxWait = time.Minute
)

func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.MaxBody <= 0 {
		o.MaxBody = defaultMaxBody
	}
	if o.MaxArguments <= 0 {
		o.MaxArguments = defaultMaxArguments
	}
	if o.ReadTimeout <= 0 {
		o.ReadTimeout = 30 * time.Second
	}
	if o.WriteTimeout <= 0 {
		o.WriteTimeout = 30 * time.Second
	}
	if o.MaxWaiting <= 0 {
		o.MaxWaiting = 128
	}
	if o.MaxReading <= 0 {
		o.MaxReading = 32
	}
	if o.ReadsPerMinute <= 0 {
		o.ReadsPerMinute = 1200
	}
	if o.FailedPerMinute <= 0 {
		o.FailedPerMinute = 30
	}
	if o.ClientAddr == nil {
		o.ClientAddr = peer
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}
