package interactions

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"time"

	"github.com/slack-go/slack"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/bot"
	"github.com/holdpoint/holdpoint/templates"
)

// Core is what Slack's side needs of the core. *approvals.Service is one.
type Core interface {
	Decide(ctx context.Context, rq approvals.DecideRequest) (approvals.Ruling, error)
	TenantOfTeam(ctx context.Context, teamID string) (tenant string, err error)
	CardFacts(ctx context.Context, id approvals.ID) (approvals.CardFacts, error)
	Explain(ctx context.Context, tenant string, id approvals.ID) (approvals.Explanation, error)
	Admin(ctx context.Context, tenant string, by approvals.Reviewer) (approvals.Actor, error)
	Standing(ctx context.Context, tenant string, by approvals.Reviewer) (approvals.Standing, error)
	Revoke(ctx context.Context, rq approvals.RevokeRequest) ([]approvals.View, error)
	Reach(ctx context.Context, tenant, scope, name string) (approvals.Suspension, error)
	Suspend(ctx context.Context, rq approvals.SuspendRequest) (approvals.Suspension, error)
	Switches(ctx context.Context, tenant string) ([]approvals.Switch, error)
	Block(ctx context.Context, rq approvals.BlockRequest) ([]approvals.View, error)
	Reconcile(ctx context.Context, rq approvals.ReconcileRequest) (approvals.View, error)
	Open(ctx context.Context, tenant string, limit int) ([]approvals.View, error)
	// RefusedCommand counts and audits what somebody asked for and may not.
	RefusedCommand(ctx context.Context, r approvals.RefusedCommand) error
	// Seen notes a request's signature and says whether any process saw it within the window.
	Seen(ctx context.Context, signature []byte) (replayed bool, err error)
}

// Slack is what the answers need of Slack's Web API. *bot.Client is one.
type Slack interface {
	OpenView(ctx context.Context, trigger string, v slack.ModalViewRequest) (bot.View, error)
	PushView(ctx context.Context, trigger string, v slack.ModalViewRequest) (bot.View, error)
	UpdateView(ctx context.Context, at bot.View, v slack.ModalViewRequest) error
	PublishHome(ctx context.Context, user string, v slack.HomeTabViewRequest) error
	Respond(ctx context.Context, responseURL string, m templates.Message, replace bool) error
	Ephemeral(ctx context.Context, channel, user string, m templates.Message) error
	// Groups are a workspace's user groups: what they are called, for words.
	Groups(ctx context.Context, team string) (map[string]approvals.DirectoryGroup, error)
}

// Cards makes cards match their rows. *bot.Syncer is one.
type Cards interface {
	Sync(ctx context.Context, id approvals.ID) error
	SyncVia(ctx context.Context, id approvals.ID, responseURL string) error
	Repaint(ctx context.Context, id approvals.ID) error
}

// Directory is told of changes of people and groups. *bot.Directory is one.
type Directory interface {
	Fresh(ctx context.Context, tenant string, groups, users []string, maxAge time.Duration) error
	OnEvent(ctx context.Context, e bot.Event) error
}

// Options configure a Handler.
type Options struct {
	SigningSecrets [][]byte // one, or two during a rotation; none or an empty one is an error
	AppID          string   // A…
	Slack          Slack
	Cards          Cards
	Directory      Directory
	Log            *slog.Logger
	Now            func() time.Time
	After          func(time.Duration) <-chan time.Time
	// Background bounds what is done after answers; default 64. What finds no room is dropped.
	Background int
}

// Handler serves POST /slack/interactions, /slack/commands and /slack/events.
type Handler struct {
	core      Core
	slack     Slack
	cards     Cards
	directory Directory
	secrets   [][]byte
	appID     string
	log       *slog.Logger
	now       func() time.Time
	after     func(time.Duration) <-chan time.Time
	mux       *http.ServeMux
	seen      memory
	events    memory
	names     groupNames
	back      *background
}

// New makes the handler. It refuses to start without a signing secret or an app id: it could then not tell Slack from others.
func New(core Core, o Options) (*Handler, error) {
	if len(o.SigningSecrets) == 0 || len(o.SigningSecrets) > 2 {
		return nil, errors.New("interactions: one Slack signing secret is needed, or two during a rotation")
	}
	for _, s := range o.SigningSecrets {
		if len(s) == 0 {
			return nil, errors.New("interactions: a Slack signing secret is empty")
		}
	}
	if o.AppID == "" {
		return nil, errors.New("interactions: the Slack app's id is needed")
	}
	if o.Slack == nil || o.Cards == nil || o.Directory == nil {
		return nil, errors.New("interactions: a Slack client, the card job and the directory are needed")
	}
	h := &Handler{
		core: core, slack: o.Slack, cards: o.Cards, directory: o.Directory, secrets: o.SigningSecrets, appID: o.AppID,
		log: o.Log, now: o.Now, after: o.After, mux: http.NewServeMux(),
	}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	if h.now == nil {
		h.now = time.Now
	}
	if h.after == nil {
		h.after = time.After
	}
	if o.Background <= 0 {
		o.Background = 64
	}
	h.back = newBackground(o.Background, h.log)
	for path, route := range h.routes() {
		h.mux.HandleFunc("POST "+path, h.signed(route))
	}
	return h, nil
}

// Paths of the three routes.
const (
	PathInteractions = "/slack/interactions"
	PathCommands     = "/slack/commands"
	PathEvents       = "/slack/events"
)

// route takes a verified body. id names the request for the shared memory of replays.
type route struct {
	contentType string
	serve       func(ctx context.Context, id signature, body []byte) answer
}

func (h *Handler) routes() map[string]route {
	const form = "application/x-www-form-urlencoded"
	return map[string]route{
		PathInteractions: {form, h.interaction},
		PathCommands:     {form, h.command},
		PathEvents:       {"application/json", h.event},
	}
}

// answer is what goes back at once, and what is done afterwards.
type answer struct {
	status int // 200 when 0
	body   any // JSON; nothing when nil
	after  []func(context.Context)
}

// Done waits for what is done after answers, until ctx ends. Call it when the HTTP server has stopped.
func (h *Handler) Done(ctx context.Context) error { return h.back.done(ctx) }

// ServeHTTP serves the three routes and nothing else.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.mux.ServeHTTP(w, r) }

// maxBody is well above Slack's largest callback: a view of 250 KB.
const maxBody = 1 << 20

// bodyTimeout is far above what Slack takes to send a callback.
const bodyTimeout = 5 * time.Second

// signed wraps a route: read the raw body, verify, refuse repeats, then parse. Everything before that is 401 or 413.
func (h *Handler) signed(rt route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		// Nothing is known of the sender yet: a body that does not come ends the request. A recorder without deadlines is a test's.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout))
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			http.Error(w, http.StatusText(http.StatusRequestEntityTooLarge), http.StatusRequestEntityTooLarge)
			return
		}
		now := h.now()
		id, err := verify(h.secrets, r.Header, body, now)
		if err != nil || !h.seen.fresh(id, now) {
			http.Error(w, http.StatusText(http.StatusUnauthorized), http.StatusUnauthorized)
			return
		}
		if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != rt.contentType {
			http.Error(w, http.StatusText(http.StatusUnsupportedMediaType), http.StatusUnsupportedMediaType)
			return
		}
		h.write(w, rt.serve(r.Context(), id, body))
	}
}

// write answers first, all of it, and then starts what comes after.
func (h *Handler) write(w http.ResponseWriter, a answer) {
	defer func() {
		for _, f := range a.after {
			h.back.start(f)
		}
	}()
	if a.status == 0 {
		a.status = http.StatusOK
	}
	var body []byte
	if a.body != nil {
		var err error
		if body, err = json.Marshal(a.body); err != nil {
			h.log.Error("an answer to Slack could not be written", "error", "not JSON")
			a.status, body = http.StatusInternalServerError, nil
		} else {
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
		}
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(body) // the peer may be gone; the decision stands
	_ = http.NewResponseController(w).Flush()
}

// replayed asks the memory that all processes share. It is for what stops, starts or reconciles something.
func (h *Handler) replayed(ctx context.Context, id signature) (bool, error) {
	return h.core.Seen(ctx, id[:])
}

// note puts a decision's signature into the shared memory, after the answer.
func (h *Handler) note(id signature) func(context.Context) {
	return func(ctx context.Context) {
		switch again, err := h.core.Seen(ctx, id[:]); {
		case err != nil:
			h.log.Warn("a request could not be noted against replays", "error", err)
		case again:
			h.log.Warn("a click was delivered twice, to two processes; the second changed nothing")
		}
	}
}
