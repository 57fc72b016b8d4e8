package intake

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdpoint/holdpoint/approvals"
)

func TestAuthentication(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		values []string
		asked  bool // the core was asked
	}{
		{"none", nil, false},
		{"empty", []string{""}, false},
		{"scheme only", []string{"Bearer"}, false},
		{"no token", []string{"Bearer "}, false},
		{"basic", []string{"Basic " + aliceBearer}, false},
		{"no scheme", []string{aliceBearer}, false},
		{"not a key", []string{"Bearer sk_" + canary}, false},
		{"garbled", []string{"Bearer hp_" + canary + " x"}, false},
		{"not ASCII", []string{"Bearer hp_\u00fc"}, false},
		{"too long", []string{"Bearer hp_" + strings.Repeat("a", 300)}, false},
		{"two", []string{"Bearer " + aliceBearer, "Bearer " + aliceBearer}, false},
		{"unknown", []string{"Bearer hp_" + canary}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m, log := newMemory(), &journal{}
			handler := New(m, Options{})
			r := httptest.NewRequest("POST", "/v1/approvals", unread{t})
			r.Header["Authorization"] = c.values
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			if w.Code != 401 || w.Header().Get("WWW-Authenticate") != `Bearer realm="holdpoint"` || !strings.Contains(w.Body.String(), `"code":"unauthorized"`) {
				t.Errorf("%d %s %v", w.Code, w.Body, w.Header())
			}
			if (m.authed == 1) != c.asked || strings.Contains(w.Body.String()+log.String(), canary) {
				t.Errorf("the core was asked %d times; %s", m.authed, w.Body)
			}
		})
	}
	h := newHouse(t, Options{})
	if r := h.do("GET", "/v1/approvals", "", "Authorization", "bearer   "+aliceBearer); r.status != 200 {
		t.Errorf("the scheme's case and spaces: %d %s", r.status, r.body)
	}
}

// unread is a body that must not be touched: its sender is not known.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body of a stranger was read")
	return 0, http.ErrBodyReadAfterClose
}

// Every route of the API, and nothing but the document and the page, wants a key.
func TestEveryRouteWantsAKey(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{})
	for _, route := range routes() {
		path := strings.NewReplacer("{approval_id}", approvals.NewID().String(), "{run_id}", "r").Replace(route.path)
		if r := h.do(route.method, path, "{}", "Authorization", ""); r.problem(t).Code != approvals.CodeUnauthorized {
			t.Errorf("%s %s: %d %s", route.method, route.path, r.status, r.body)
		}
	}
	for _, open := range []string{"/openapi.json", "/docs"} {
		if r := h.do("GET", open, "", "Authorization", ""); r.status != 200 {
			t.Errorf("%s: %d", open, r.status)
		}
	}
}

// An unreadable directory of keys is not "no such key": nobody is let in, and nobody is told to give up.
func TestAuthenticationUnavailable(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{FailedPerMinute: 1})
	h.authErr = approvals.ErrUnavailable
	for range 5 {
		if r := h.do("GET", "/v1/approvals", ""); r.problem(t).Code != codeUnavailable || r.header.Get("Retry-After") == "" {
			t.Errorf("%d %s", r.status, r.body)
		}
	}
}

type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// A guesser is slowed down by address; a key that worked is not held back by the guesser next to it; time heals.
func TestGuessing(t *testing.T) {
	t.Parallel()
	at := &clock{at: time.Date(2026, 7, 24, 12, 0, 0, 0, time.UTC)}
	m := newMemory()
	from := netip.MustParseAddr("192.0.2.1")
	handler := New(m, Options{FailedPerMinute: 3, Now: at.now, ClientAddr: func(*http.Request) netip.Addr { return from }})
	try := func(bearer string) (int, string) {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/v1/approvals", nil)
		r.Header.Set("Authorization", "Bearer "+bearer)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w.Code, w.Header().Get("Retry-After")
	}
	if status, _ := try(aliceBearer); status != 200 {
		t.Fatal(status)
	}
	for i, want := range []int{401, 401, 401, 429, 429} {
		if status, after := try("hp_guess"); status != want || (want == 429) != (after == "20") {
			t.Errorf("guess %d: %d, Retry-After %q", i, status, after)
		}
	}
	asked := m.authed
	if status, _ := try("hp_guess"); status != 429 || m.authed != asked {
		t.Errorf("%d, and the core was asked %d times", status, m.authed-asked)
	}
	if status, _ := try(aliceBearer); status != 200 {
		t.Errorf("a key that worked: %d", status)
	}
	if status, _ := try(otherBearer); status != 429 {
		t.Errorf("a key that never was here, from a guesser's address: %d", status)
	}
	from = netip.MustParseAddr("192.0.2.2")
	if status, _ := try(otherBearer); status != 200 {
		t.Errorf("another address: %d", status)
	}
	from = netip.MustParseAddr("192.0.2.1")
	delete(m.keys, aliceBearer)
	if status, _ := try(aliceBearer); status != 401 {
		t.Errorf("a revoked key: %d", status)
	}
	if status, _ := try(aliceBearer); status != 429 {
		t.Errorf("a revoked key has no privilege: %d", status)
	}
	at.pass(time.Minute + time.Second)
	if status, _ := try("hp_guess"); status != 401 {
		t.Errorf("after a minute: %d", status)
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ remote, want string }{
		{"192.0.2.1:1234", "192.0.2.1/32"},
		{"[::ffff:192.0.2.1]:1234", "192.0.2.1/32"},
		{"[2001:db8:1:2:3:4:5:6]:1234", "2001:db8:1:2::/64"},
		{"[fe80::1%eth0]:1234", "fe80::/64"},
		{"@", "invalid Prefix"},
		{"", "invalid Prefix"},
	} {
		if got := network(peer(&http.Request{RemoteAddr: c.remote})).String(); got != c.want {
			t.Errorf("%q: %s, want %s", c.remote, got, c.want)
		}
	}
}

// The memories of the door are bounded, whoever fills them.
func TestDoorIsBounded(t *testing.T) {
	t.Parallel()
	d := newDoor(1, time.Now)
	for i := range 2 * rememberedAddresses {
		d.failed(netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), 32), "x")
		d.worked(strings.Repeat("k", 1+i%1000) + string(rune(i)))
	}
	if d.budget.Len() != rememberedAddresses || d.good.Len() != rememberedBearers {
		t.Errorf("%d addresses, %d bearers", d.budget.Len(), d.good.Len())
	}
}

// One key's requests can't take the whole server; what it has back, it may use again.
func TestShares(t *testing.T) {
	t.Parallel()
	s, one, two := newShares(2), approvals.Key{ID: "1"}, approvals.Key{ID: "2"}
	back, p := s.take(one)
	if _, q := s.take(one); p != nil || q != nil {
		t.Fatal(p, q)
	}
	if _, p = s.take(one); p == nil || p.Status != http.StatusTooManyRequests || p.retryAfter == 0 {
		t.Errorf("a third: %v", p)
	}
	if other, p := s.take(two); p != nil {
		t.Errorf("another key: %v", p)
	} else {
		other()
	}
	back()
	if _, p = s.take(one); p != nil || len(s.held) != 1 {
		t.Errorf("after one came back: %v, %v", p, s.held)
	}
}

// A wait ends with the client: nothing is held for somebody who left, and that is not an error of the server's.
func TestClientLeaves(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{})
	id := h.submitted()
	ctx, leave := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		r, err := http.NewRequestWithContext(ctx, "GET", h.url+"/v1/approvals/"+id.String()+"?wait=60s&since=1", nil)
		if err == nil {
			r.Header.Set("Authorization", "Bearer "+aliceBearer)
			var answer *http.Response
			if answer, err = http.DefaultTransport.RoundTrip(r); err == nil {
				_ = answer.Body.Close()
			}
		}
		gone <- err
	}()
	<-h.watched
	leave()
	if err := <-gone; err == nil {
		t.Error("the request was answered")
	}
	eventually(t, func() bool { return strings.Contains(h.log.String(), `"client_left":true`) })
	if log := h.log.String(); strings.Contains(log, `"level":"ERROR"`) {
		t.Errorf("log: %s", log)
	}
}

// eventually waits for a condition that another goroutine brings about.
func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(10 * time.Second); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatal("it never came about")
		}
	}
}

// A key that reads in a loop is slowed down; other keys are not, nor what writes.
func TestReadsAreCounted(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	now := time.Now()
	h := newHouse(t, Options{ReadsPerMinute: 6, Now: func() time.Time { mu.Lock(); defer mu.Unlock(); return now }})
	id := h.submitted().String()
	for _, path := range []string{"/v1/approvals", "/v1/approvals/" + id, "/v1/approvals/" + id + "/events", "/v1/runs/run_42/resume", "/v1/approvals/nothing", "/v1/approvals?nothing=1"} {
		if r := h.do("GET", path, ""); r.status == 429 {
			t.Fatalf("%s: %s", path, r.body)
		}
	}
	if p := h.do("GET", "/v1/approvals/"+id, "").problem(t); p.Status != 429 || p.Code != approvals.CodeRateLimited {
		t.Fatalf("the seventh of six: %+v", p)
	}
	if r := h.do("GET", "/v1/approvals", ""); r.header.Get("Retry-After") != "10" {
		t.Errorf("Retry-After %q", r.header.Get("Retry-After"))
	}
	if r := h.do("GET", "/v1/approvals", "", "Authorization", "Bearer "+otherBearer); r.status != 200 {
		t.Errorf("another key: %d %s", r.status, r.body)
	}
	if r := h.do("POST", "/v1/approvals/"+id+"/revoke", `{}`); r.status == 429 {
		t.Errorf("a write: %s", r.body)
	}
	mu.Lock()
	now = now.Add(10 * time.Second)
	mu.Unlock()
	if r := h.do("GET", "/v1/approvals", ""); r.status != 200 {
		t.Errorf("later: %d %s", r.status, r.body)
	}
}
