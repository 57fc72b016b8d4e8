package interactions

import (
	"bytes"
	"context"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/bot"
	"github.com/holdpoint/holdpoint/bot/slacksim"
)

// directory records what it is asked.
type directory struct {
	fresh  chan []string
	events chan bot.Event
	learns func(user string) error // what a look-up of people finds
}

func (d *directory) Fresh(_ context.Context, _ string, groups, users []string, _ time.Duration) error {
	d.fresh <- append(groups, users...)
	for _, u := range users {
		if d.learns != nil {
			if err := d.learns(u); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *directory) OnEvent(_ context.Context, e bot.Event) error {
	d.events <- e
	return nil
}

// world is a workspace, a core, and everything of Slack's side between them.
type world struct {
	*slacksim.Sim
	core   *core
	dir    *directory
	h      *Handler
	server *httptest.Server
	cards  *bot.Syncer
	log    *bytes.Buffer
	alarm  chan time.Time // fires what waits for patience
	ctx    context.Context
}

type lockedBuffer struct {
	mu *sync.Mutex
	b  *bytes.Buffer
}

func (l lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		core: &core{
			rows: map[approvals.ID]*approvals.CardFacts{}, people: map[string]approvals.DenialKind{"U0ALICE": "", "U0ANA": ""},
			admins: []string{"U0ROOT"}, seen: map[string]bool{}, standing: map[string]approvals.Standing{},
		},
		dir: &directory{fresh: make(chan []string, 8), events: make(chan bot.Event, 8)}, log: &bytes.Buffer{}, alarm: make(chan time.Time),
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // what waits for what never comes fails, and does not hang
	t.Cleanup(cancel)
	w.ctx = ctx
	w.Sim = slacksim.New(slacksim.Options{})
	url, err := w.Listen("127.0.0.1:0")
	must(t, err)
	w.AddChannel(slacksim.Channel{ID: home, Name: "approvals", Shared: true})
	w.AddChannel(slacksim.Channel{ID: "C0OTHER", Name: "other"})
	for _, u := range []slacksim.User{
		{ID: "U0ALICE", Name: "alice"},
		{ID: "U0ANA", Name: "ana"},
		{ID: "U0BOB", Name: "bob"},
		{ID: "U0ROOT", Name: "root"},
		{ID: "U0EXTERN", Name: "extern", TeamID: "T0EVIL"},
	} {
		w.AddUser(u)
	}
	client, err := bot.NewClient(bot.ClientOptions{Token: "xoxb-simulator", APIURL: url + "/api/"})
	must(t, err)
	w.cards = bot.NewSyncer(w.core, client, bot.SyncOptions{})
	var mu sync.Mutex
	w.h, err = New(w.core, Options{
		SigningSecrets: [][]byte{[]byte(secret)}, AppID: appID, Slack: client, Cards: w.cards, Directory: w.dir,
		Log: slog.New(slog.NewTextHandler(lockedBuffer{&mu, w.log}, nil)), After: func(time.Duration) <-chan time.Time { return w.alarm },
	})
	must(t, err)
	w.server = httptest.NewServer(w.h)
	w.SetCallbackURL(w.server.URL)
	t.Cleanup(func() {
		w.server.Close()
		if err := w.h.Done(context.Background()); err != nil {
			t.Error(err)
		}
		client.Close()
		_ = w.Close()
	})
	return w
}

// post makes a row and its card.
func (w *world) post(t *testing.T, change func(*approvals.CardFacts)) (approvals.ID, string) {
	t.Helper()
	w.core.mu.Lock()
	id := w.core.add(change)
	w.core.mu.Unlock()
	must(t, w.cards.Sync(w.ctx, id))
	return id, w.core.row(id).Card.MessageTS
}

// settled waits until everything after the answers is done.
func (w *world) settled(t *testing.T) {
	t.Helper()
	must(t, w.h.Done(w.ctx))
}

// whisper waits for what only one person sees.
func (w *world) whisper(t *testing.T, user, want string) slacksim.Message {
	t.Helper()
	w.settled(t)
	for _, m := range w.Ephemerals(user) {
		if strings.Contains(m.PlainText(), want) {
			return m
		}
	}
	var all []string
	for _, m := range w.Ephemerals(user) {
		all = append(all, m.PlainText())
	}
	t.Fatalf("%s was not told %q but %q", user, want, all)
	return slacksim.Message{}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// as is a part of a decoded payload; the zero value when it is something else.
func as[T any](v any) T {
	x, _ := v.(T)
	return x
}

// pressed and place are the two parts of a click's payload that say what was pressed where.
func pressed(p map[string]any) map[string]any {
	return as[map[string]any](as[[]any](p["actions"])[0])
}

func place(p map[string]any) map[string]any { return as[map[string]any](p["container"]) }
