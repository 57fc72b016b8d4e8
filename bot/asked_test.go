package bot

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/bot/slacksim"
)

// tap sees each request to Slack before it leaves.
type tap struct {
	http.RoundTripper
	see func(*http.Request)
}

func (t tap) RoundTrip(r *http.Request) (*http.Response, error) {
	t.see(r)
	return t.RoundTripper.RoundTrip(r)
}

// I3, I4: what is mirrored is as old as its question, not as its answer, also when the answer took long or was asked for again; and no
// reading goes on without end.
func TestMirrorIsAsOldAsItsQuestion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var many []string
	for i := range single + 5 {
		id := fmt.Sprintf("U0MANY%03d", i)
		w.AddUser(slacksim.User{ID: id, Name: id})
		many = append(many, id)
	}
	w.store.targets[0].Groups = append(w.store.targets[0].Groups, "S0NEVER")
	var mu sync.Mutex
	first := map[string]int64{} // method → the clock when it was asked
	endless := map[string]bool{}
	client := w.newClient(t, w.URL()+"/api/", "xoxb-simulator")
	t.Cleanup(client.Close)
	client.http.Timeout = 0 // each call's own limit: what is asked for here is the whole reading's
	client.http.Transport = tap{client.http.Transport, func(r *http.Request) {
		now, err := w.store.Clock(context.Background())
		must(t, err)
		mu.Lock()
		defer mu.Unlock()
		if _, known := first[r.URL.Path]; !known {
			first[r.URL.Path] = now.Unix()
		}
		if _, bound := r.Context().Deadline(); !bound {
			endless[r.URL.Path] = true
		}
	}}
	d := NewDirectory(w.store, client, DirectoryOptions{Now: w.clock.Now, After: w.clock.After, GroupCalls: rate.NewLimiter(rate.Inf, 1)})
	must(t, d.Fresh(t.Context(), "acme", []string{"S0RELEASE", "S0NEVER"}, nil, 0))
	must(t, d.Fresh(t.Context(), "acme", nil, []string{"U0ALICE"}, 0))
	older := func(what string, at time.Time, method string) {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		if at.IsZero() || at.Unix() >= first["/api/"+method] {
			t.Errorf("%s: as old as %d, and Slack was asked at %d", what, at.Unix(), first["/api/"+method])
		}
	}
	users, groups, _ := w.store.mirror()
	older("a group", groups[release].AskedAt, "usergroups.list")
	older("a group that is gone", groups[key{"acme", "S0NEVER"}].AskedAt, "usergroups.list")
	older("a person", users[key{"acme", "U0ALICE"}].AskedAt, "users.info")
	w.store.targets[0].Users = append(slices.Clone(w.store.targets[0].Users), many...)
	must(t, d.Refresh(t.Context(), "acme", 0))
	users, _, _ = w.store.mirror()
	older("one of the whole list", users[key{"acme", many[3]}].AskedAt, "users.list")
	mu.Lock()
	defer mu.Unlock()
	if len(endless) > 0 || len(first) < 3 {
		t.Errorf("without a limit of their own: %v, of %v", endless, first)
	}
}

var _ DirectoryStore = (*approvals.Service)(nil)
