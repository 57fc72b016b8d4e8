package slacksim

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Options configures a Sim. The zero value of every field but CallbackURL has a usable default.
type Options struct {
	Team          string // workspace id, default T0ACME
	TeamName      string // default Acme
	TeamDomain    string // default acme
	AppID         string // default A0HOLDPOINT
	AppName       string // default Holdpoint
	BotUserID     string // default U0HOLDPOINT
	BotID         string // default B0HOLDPOINT
	BotToken      string // default xoxb-simulator
	SigningSecret string // default a fixed development secret
	Scopes        []string
	// URL is where Handler is served, without a trailing slash; Listen sets it.
	URL string
	// CallbackURL is the app's base: interactions go to CallbackURL + /slack/interactions, and so on.
	CallbackURL string
	// Now is the simulator's clock (time.Now). After is how it waits between retries of an event (time.After).
	Now   func() time.Time
	After func(time.Duration) <-chan time.Time
	// AckTimeout is how long a callback may take in real time: 3 s by default, as at Slack.
	AckTimeout time.Duration
	// Limits replaces the rate limit of the methods it names; Unlimited switches all of them off.
	Limits    map[string]Rate
	Unlimited bool
	// Panel is shown at the right of the page and asked again on every change; OnAction receives its buttons.
	Panel    func() Panel
	OnAction func(id string) error
}

func (o *Options) setDefaults() {
	def := func(p *string, v string) {
		if *p == "" {
			*p = v
		}
	}
	def(&o.Team, "T0ACME")
	def(&o.TeamName, "Acme")
	def(&o.TeamDomain, "acme")
	def(&o.AppID, "A0HOLDPOINT")
	def(&o.AppName, "Holdpoint")
	def(&o.BotUserID, "U0HOLDPOINT")
	def(&o.BotID, "B0HOLDPOINT")
	def(&o.BotToken, "xoxb-simulator")
	def(&o.SigningSecret, "simulator-signing-secret")
	if o.Scopes == nil {
		o.Scopes = []string{"chat:write", "commands", "users:read", "usergroups:read", "channels:history", "groups:history", "im:write", "team:read"}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.After == nil {
		o.After = time.After
	}
	if o.AckTimeout == 0 {
		o.AckTimeout = 3 * time.Second
	}
}

// Sim is one simulated workspace with one installed app. All methods are safe for concurrent use.
type Sim struct {
	opts   Options
	ctx    context.Context // ends at Close; background retries and hung answers hang on it
	stop   context.CancelFunc
	server *http.Server
	client *http.Client
	wg     sync.WaitGroup

	mu         sync.Mutex
	changed    chan struct{} // closed and replaced on every change
	revision   int64
	lastTS     int64 // microseconds
	serial     int64
	users      []*User
	groups     []*Group
	channels   []*Channel
	messages   []*Message
	byTS       map[string]*Message   // by channel and timestamp
	threads    map[string][]*Message // replies, by channel and root timestamp
	views      []*View
	homes      map[string]*View // by user
	triggers   map[string]*trigger
	answers    map[string]*answerURL
	faults     []*armedFault
	buckets    map[string]*bucket
	calls      map[string]int
	deliveries []Delivery
}

// New makes a workspace without people or channels, and starts nothing: serve Handler, or call Listen.
func New(opts Options) *Sim {
	opts.setDefaults()
	ctx, stop := context.WithCancel(context.Background())
	s := &Sim{
		opts: opts, ctx: ctx, stop: stop,
		client:  newCallbackClient(opts.AckTimeout),
		changed: make(chan struct{}), homes: map[string]*View{}, byTS: map[string]*Message{}, threads: map[string][]*Message{}, triggers: map[string]*trigger{},
		answers: map[string]*answerURL{}, buckets: map[string]*bucket{}, calls: map[string]int{},
	}
	s.users = append(s.users, &User{ID: opts.BotUserID, Name: strings.ToLower(opts.AppName), RealName: opts.AppName, TeamID: opts.Team, IsBot: true})
	return s
}

// Listen serves Handler on addr ("127.0.0.1:0" for any free port) until Close, and makes the address Sim.URL.
func (s *Sim) Listen(addr string) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(s.ctx, "tcp", addr)
	if err != nil {
		return "", fmt.Errorf("slacksim: %w", err)
	}
	url := "http://" + l.Addr().String()
	s.mu.Lock()
	s.opts.URL = url
	s.server = &http.Server{Handler: s.Handler(), ReadHeaderTimeout: 10 * time.Second}
	srv := s.server
	s.mu.Unlock()
	s.wg.Go(func() { _ = srv.Serve(l) }) // always ErrServerClosed, after Close
	return url, nil
}

// Close ends the server, hung answers and pending retries.
func (s *Sim) Close() error {
	s.stop()
	s.mu.Lock()
	srv := s.server
	s.mu.Unlock()
	var err error
	if srv != nil {
		err = srv.Close()
	}
	s.wg.Wait()
	s.client.CloseIdleConnections()
	return err
}

// URL is the simulator's base address; the Web API is at URL + "/api/".
func (s *Sim) URL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opts.URL
}

// SetURL tells the simulator where its Handler is served, for callers that serve it themselves.
func (s *Sim) SetURL(url string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opts.URL = strings.TrimSuffix(url, "/")
}

// SetCallbackURL points the workspace's callbacks at another app address.
func (s *Sim) SetCallbackURL(url string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opts.CallbackURL = strings.TrimSuffix(url, "/")
}

// touch announces a change. Held: mu.
func (s *Sim) touch() {
	s.revision++
	close(s.changed)
	s.changed = make(chan struct{})
}

// Refresh makes open pages ask Options.Panel again.
func (s *Sim) Refresh() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.touch()
}

// wait returns once ok, called with mu held, is true; it is asked again after every change.
func (s *Sim) wait(ctx context.Context, ok func() bool) error {
	for {
		s.mu.Lock()
		done, changed := ok(), s.changed
		s.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-s.ctx.Done():
			return ErrClosed
		}
	}
}

// nextTS gives a message timestamp: seconds, a dot, six digits; unique and increasing. Held: mu.
func (s *Sim) nextTS() string {
	s.lastTS = max(s.lastTS+1, s.opts.Now().UnixMicro())
	return fmt.Sprintf("%d.%06d", s.lastTS/1e6, s.lastTS%1e6)
}

// nextID gives a readable id, unique in this workspace. Held: mu.
func (s *Sim) nextID(prefix string) string {
	s.serial++
	return fmt.Sprintf("%s0SIM%05d", prefix, s.serial)
}

// secretID gives an id that nobody can guess.
func secretID() string {
	var b [20]byte
	_, _ = rand.Read(b[:]) // never fails since Go 1.24
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b[:]))
}
