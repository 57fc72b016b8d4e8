package intake

import (
	"crypto/sha256"
	"net/http"
	"net/netip"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"

	"github.com/holdpoint/holdpoint/approvals"
)

// door slows down whoever tries keys. Each address has a budget of failures; without budget, the only bearers still looked at are
// those that worked before, so that neighbours behind one address can't lock each other out. Both memories are bounded: an address
// that is forgotten begins with a full budget, a bearer that is forgotten is an unknown one.
type door struct {
	mu     sync.Mutex
	budget *lru.Cache[netip.Prefix, *rate.Limiter]
	good   *lru.Cache[[sha256.Size]byte, struct{}]
	limit  rate.Limit
	burst  int
	now    func() time.Time
}

const (
	rememberedAddresses = 8192
	rememberedBearers   = 4096
)

func newDoor(perMinute int, now func() time.Time) *door {
	// lru.New fails for sizes below one only.
	budget, err := lru.New[netip.Prefix, *rate.Limiter](rememberedAddresses)
	if err != nil {
		panic(err)
	}
	good, err := lru.New[[sha256.Size]byte, struct{}](rememberedBearers)
	if err != nil {
		panic(err)
	}
	return &door{budget: budget, good: good, limit: rate.Every(time.Minute / time.Duration(perMinute)), burst: perMinute, now: now}
}

// mayTry says whether a bearer from an address is looked at; if not, when it would be.
func (d *door) mayTry(from netip.Prefix, bearer string) (bool, time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	limiter, known := d.budget.Get(from)
	if !known {
		return true, 0
	}
	tokens := limiter.TokensAt(d.now())
	if tokens >= 1 || d.good.Contains(sha256.Sum256([]byte(bearer))) {
		return true, 0
	}
	return false, time.Duration((1 - tokens) / float64(d.limit) * float64(time.Second))
}

// worked remembers a bearer that is a key.
func (d *door) worked(bearer string) {
	d.good.Add(sha256.Sum256([]byte(bearer)), struct{}{})
}

// failed takes one failure from an address's budget and forgets the bearer: a revoked key has no privilege.
func (d *door) failed(from netip.Prefix, bearer string) {
	d.good.Remove(sha256.Sum256([]byte(bearer)))
	d.mu.Lock()
	defer d.mu.Unlock()
	limiter, known := d.budget.Get(from)
	if !known {
		limiter = rate.NewLimiter(d.limit, d.burst)
		d.budget.Add(from, limiter)
	}
	limiter.AllowN(d.now(), 1)
}

// peer is the address at the other end of the connection.
func peer(r *http.Request) netip.Addr {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr()
}

// network is what shares a budget: an IPv4 address, or the /64 that one IPv6 subscriber has. No address at all is one budget too.
func network(a netip.Addr) netip.Prefix {
	a = a.Unmap().WithZone("")
	bits := 32
	if a.Is6() {
		bits = 64
	}
	p, err := a.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return p
}

// shares counts what each key has under way, so that one key can't take the whole server. The map holds keys in use only.
type shares struct {
	mu   sync.Mutex
	held map[string]int
	most int
}

func newShares(most int) *shares { return &shares{held: map[string]int{}, most: most} }

// take reserves one; give it back when done. A full share is a problem.
func (s *shares) take(key approvals.Key) (giveBack func(), p *Problem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[key.ID] >= s.most {
		p = problem(approvals.CodeRateLimited, "This key has %d requests of this kind under way; wait for one to end.", s.most)
		p.retryAfter = time.Second
		return nil, p
	}
	s.held[key.ID]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.held[key.ID]--; s.held[key.ID] == 0 {
			delete(s.held, key.ID)
		}
	}, nil
}

// pace bounds how often each key reads: a client that polls in a loop without end would keep the database from those who decide. The
// memory is bounded; a key that is forgotten begins with a full budget.
type pace struct {
	mu     sync.Mutex
	of     *lru.Cache[string, *rate.Limiter]
	minute int
	now    func() time.Time
}

func newPace(perMinute int, now func() time.Time) *pace {
	of, err := lru.New[string, *rate.Limiter](rememberedBearers)
	if err != nil { // for sizes below one only
		panic(err)
	}
	return &pace{of: of, minute: perMinute, now: now}
}

// take spends one read of a key's budget; without any left it is a problem that says when to come back.
func (p *pace) take(key approvals.Key) *Problem {
	p.mu.Lock()
	defer p.mu.Unlock()
	every := time.Minute / time.Duration(p.minute)
	limiter, known := p.of.Get(key.ID)
	if !known {
		limiter = rate.NewLimiter(rate.Every(every), p.minute)
		p.of.Add(key.ID, limiter)
	}
	if limiter.AllowN(p.now(), 1) {
		return nil
	}
	no := problem(approvals.CodeRateLimited, "This key may read %d times a minute; wait with ?wait=30s instead of asking again and again.", p.minute)
	no.retryAfter = every
	return no
}
