package bot

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/bot/slacksim"
)

// store stands for the core's tables: rows of cards, and the mirror.
type store struct {
	mu     sync.Mutex
	rows   map[approvals.ID]*approvals.CardFacts
	fail   string // why a plain card was posted
	after  func() // runs once, after the next CardFacts
	broken bool   // SavePost fails

	targets []approvals.DirectoryTarget
	users   map[key]approvals.DirectoryUser
	groups  map[key]approvals.DirectoryGroup
	writes  int
	looks   int64 // at the clock
}

func newStore() *store {
	return &store{rows: map[approvals.ID]*approvals.CardFacts{}, users: map[key]approvals.DirectoryUser{}, groups: map[key]approvals.DirectoryGroup{}}
}

func (s *store) CardFacts(_ context.Context, id approvals.ID) (approvals.CardFacts, error) {
	s.mu.Lock()
	f, ok := s.rows[id]
	if !ok {
		s.mu.Unlock()
		return approvals.CardFacts{}, approvals.ErrNotFound
	}
	out := *f
	after := s.after
	s.after = nil
	s.mu.Unlock()
	if after != nil {
		after()
	}
	return out, nil
}

func (s *store) StartPost(_ context.Context, id approvals.ID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.rows[id]; f.Card.PostStarted == nil {
		now := time.Now()
		f.Card.PostStarted = &now
	}
	return nil
}

func (s *store) SavePost(_ context.Context, id approvals.ID, channel, ts string, shown int64, plain bool, failure string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken {
		s.broken = false
		return approvals.ErrUnavailable
	}
	f := s.rows[id]
	f.Card.Channel, f.Card.MessageTS, f.Card.ShownVersion, f.Card.Plain = channel, ts, shown, plain
	if failure != "" {
		s.fail = failure
	}
	return nil
}

func (s *store) SaveShown(_ context.Context, id approvals.ID, read, shown int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.rows[id]; f.Card.ShownVersion == read {
		f.Card.ShownVersion = max(read, shown)
	}
	return nil
}

// change is a transition: the row gets a new version.
func (s *store) change(id approvals.ID, f func(*approvals.CardFacts)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.rows[id])
	s.rows[id].Version++
}

func (s *store) card(id approvals.ID) approvals.CardFacts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *s.rows[id]
}

func (s *store) DirectoryTargets(context.Context) ([]approvals.DirectoryTarget, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.targets), nil
}

// Clock goes on by a second at each look.
func (s *store) Clock(context.Context) (time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looks++
	return time.Unix(s.looks, 0), nil
}

// PeopleAges knows only who was never read: this store's clock is not the tests'.
func (s *store) PeopleAges(_ context.Context, tenant string, users, groups []string) (map[string]time.Duration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]time.Duration{}
	add := func(id string) { out[id] = approvals.NeverRead }
	for _, u := range users {
		add(u)
	}
	for _, g := range groups {
		for _, m := range s.groups[key{tenant, g}].Members {
			add(m)
		}
	}
	return out, nil
}

func (s *store) SaveUsers(_ context.Context, tenant string, users []approvals.DirectoryUser) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes++
	for _, u := range users {
		s.users[key{tenant, u.UserID}] = u
	}
	return nil
}

func (s *store) SaveGroup(_ context.Context, tenant string, g approvals.DirectoryGroup) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g.UpdatedAt != 0 && g.UpdatedAt < s.groups[key{tenant, g.GroupID}].UpdatedAt { // as the core does
		return nil
	}
	s.writes++
	s.groups[key{tenant, g.GroupID}] = g
	return nil
}

func (s *store) mirror() (map[key]approvals.DirectoryUser, map[key]approvals.DirectoryGroup, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.users), maps.Clone(s.groups), s.writes
}

// clock is a time that tests move. Waiting on it moves it, so nothing sleeps.
type clock struct {
	mu    sync.Mutex
	now   time.Time
	waits []time.Duration
}

func newClock() *clock { return &clock{now: time.Now()} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) After(d time.Duration) <-chan time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	c.waits = append(c.waits, d)
	ch := make(chan time.Time, 1)
	ch <- c.now
	return ch
}

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// world is a workspace with the bot's client in it.
type world struct {
	*slacksim.Sim
	store  *store
	client *Client
	clock  *clock
	seen   *tally
}

// tally counts calls by "method class".
type tally struct {
	mu sync.Mutex
	n  map[string]int
}

func (t *tally) observe(method string, class Class) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n[method+" "+string(class)]++
}

func (t *tally) of(method string, class Class) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.n[method+" "+string(class)]
}

const channel = "C0APPROVALS"

func newWorld(t *testing.T) *world {
	t.Helper()
	c := newClock()
	sim := slacksim.New(slacksim.Options{Now: c.Now})
	url, err := sim.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	sim.AddChannel(slacksim.Channel{ID: channel, Name: "approvals"})
	for _, u := range []slacksim.User{
		{ID: "U0ALICE", Name: "alice", RealName: "Alice"},
		{ID: "U0BOB", Name: "bob"},
		{ID: "U0ROOT", Name: "root"},
		{ID: "U0GUEST", Name: "guest", IsRestricted: true},
	} {
		sim.AddUser(u)
	}
	sim.AddGroup(slacksim.Group{ID: "S0RELEASE", Handle: "release-managers", Members: []string{"U0ALICE", "U0GUEST"}})
	w := &world{Sim: sim, store: newStore(), clock: c, seen: &tally{n: map[string]int{}}}
	w.client = w.newClient(t, url+"/api/", "xoxb-simulator")
	t.Cleanup(func() {
		w.client.Close()
		if err := sim.Close(); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	w.store.targets = []approvals.DirectoryTarget{{Tenant: "acme", Team: "T0ACME", Users: []string{"U0ROOT"}, Groups: []string{"S0RELEASE"}}}
	return w
}

func (w *world) newClient(t *testing.T, url, token string) *Client {
	t.Helper()
	client, err := NewClient(ClientOptions{Token: token, APIURL: url, Observe: w.seen.observe, Now: w.clock.Now, After: w.clock.After})
	if err != nil {
		t.Fatal(err)
	}
	client.http.Timeout = 2 * time.Second
	return client
}

// request puts a pending approval into the store.
func (w *world) request() approvals.ID {
	id := approvals.NewID()
	now := time.Now()
	w.store.rows[id] = &approvals.CardFacts{
		View: approvals.View{
			ApprovalID: id, Tenant: "acme", Agent: "release-agent", Tool: "deploy_release", Kind: "effect", Executor: "http",
			Target: "service/checkout@production", Status: approvals.Pending, Digest: "sha256-proposal-v1:" + strings.Repeat("77ab", 16),
			Rule: "production-deploys", ConfigRevision: 3, Quorum: 1, Version: 1, CreatedAt: now, Now: now,
			Scope:     approvals.Scope{Groups: []string{"S0RELEASE"}, Quorum: 1, Decisions: []string{"approve", "reject", "edit"}},
			Snapshot:  json.RawMessage(`{"title":"Deploy 2026.07.24 to production","arguments":{"release":"2026.07.24","environment":"production"}}`),
			Requester: "slack:U0BOB", AppStateVersion: "release-agent/v1", DecideBy: now.Add(time.Hour), ExpiresAt: now.Add(time.Hour),
		},
		Card:   approvals.Card{ID: uuid.New(), Channel: channel, MACKey: []byte("0123456789abcdef0123456789abcdef")},
		Admins: []string{"U0ROOT", "S0ADMINS"},
	}
	return id
}

func (w *world) syncer(o SyncOptions) *Syncer { return NewSyncer(w.store, w.client, o) }

// cards are the channel's own messages.
func (w *world) cards() []slacksim.Message {
	return slices.DeleteFunc(w.Messages(channel), func(m slacksim.Message) bool { return m.ThreadTS != "" })
}

func (w *world) one(t *testing.T) slacksim.Message {
	t.Helper()
	all := w.cards()
	if len(all) != 1 {
		t.Fatalf("%d cards, want 1", len(all))
	}
	return all[0]
}

func approve(by string) func(*approvals.CardFacts) {
	return func(f *approvals.CardFacts) {
		now := time.Now()
		f.Status, f.DecidedBy, f.DecidedAt = approvals.Approved, "slack:"+by, &now
		f.Votes = append(f.Votes, approvals.Vote{By: "slack:" + by, At: now, Decision: "approve"})
	}
}

func end(s approvals.Status) func(*approvals.CardFacts) {
	return func(f *approvals.CardFacts) { f.Status = s }
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
