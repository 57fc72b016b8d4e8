package bot

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/bot/slacksim"
)

// slow is a process whose list of groups is already read at Slack, and on its way until let.
func (w *world) slow(t *testing.T) (d *Directory, read <-chan struct{}, let chan<- struct{}) {
	t.Helper()
	onWay, release := make(chan struct{}), make(chan struct{})
	at, err := url.Parse(w.URL())
	must(t, err)
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(at) },
		ModifyResponse: func(r *http.Response) error {
			if strings.HasSuffix(r.Request.URL.Path, "/usergroups.list") {
				select {
				case onWay <- struct{}{}:
				case <-t.Context().Done():
				}
				select {
				case <-release:
				case <-t.Context().Done():
				}
			}
			return nil
		},
	}
	srv := httptest.NewServer(proxy)
	t.Cleanup(srv.Close)
	client := w.newClient(t, srv.URL+"/api/", "xoxb-simulator")
	client.http.Timeout = 20 * time.Second
	t.Cleanup(client.Close)
	return NewDirectory(w.store, client, DirectoryOptions{Now: w.clock.Now, After: w.clock.After, GroupCalls: rate.NewLimiter(rate.Inf, 1)}), onWay, release
}

// I4: one process reads the old list, another mirrors a removal, and then the first one's answer arrives. It must not bring back
// whom Slack removed, nor a group that Slack disabled.
func TestLateLookupUndoesNoRemoval(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(t *testing.T, w *world)
		want   approvals.DirectoryGroup // but for the date
	}{
		"a member": {
			func(t *testing.T, w *world) {
				must(t, w.SetGroupMembers(t.Context(), "S0RELEASE", []string{"U0BOB"}, false))
			},
			approvals.DirectoryGroup{Enabled: true, Members: []string{"U0BOB"}},
		},
		"the group": {
			func(_ *testing.T, w *world) {
				w.AddGroup(slacksim.Group{ID: "S0RELEASE", Handle: "release-managers", Members: []string{"U0ALICE"}, Disabled: true})
			},
			approvals.DirectoryGroup{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			late, read, let := w.slow(t)
			done := make(chan error, 1)
			go func() { done <- late.Fresh(t.Context(), "acme", []string{"S0RELEASE"}, nil, time.Minute) }()
			<-read
			w.clock.move(2 * time.Second)
			c.change(t, w)
			must(t, w.directory().Fresh(t.Context(), "acme", []string{"S0RELEASE"}, nil, 0))
			let <- struct{}{}
			must(t, <-done)
			_, groups, _ := w.store.mirror()
			got := groups[release]
			if got.Enabled != c.want.Enabled || !slices.Equal(got.Members, c.want.Members) || got.UpdatedAt != w.clock.Now().Unix() {
				t.Errorf("%+v", got)
			}
		})
	}
}

// A group that is enabled again counts again: its new date is later than that of its end.
func TestGroupComesBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.directory()
	g := slacksim.Group{ID: "S0RELEASE", Handle: "release-managers", Members: []string{"U0ALICE"}}
	for _, g.Disabled = range []bool{false, true, false} {
		w.clock.move(2 * time.Second)
		w.AddGroup(g)
		must(t, d.Fresh(t.Context(), "acme", []string{"S0RELEASE"}, nil, 0))
		_, groups, _ := w.store.mirror()
		if got := groups[release]; got.Enabled == g.Disabled || got.UpdatedAt != w.clock.Now().Unix() {
			t.Errorf("disabled %v: %+v", g.Disabled, got)
		}
	}
}

// Only the dates of disabled groups are missing when they can't be read: the removal is mirrored all the same.
func TestDisabledWithoutDate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.store.targets[0].Groups = []string{"S0GONE", "S0RELEASE"}
	d := NewDirectory(w.store, w.client, DirectoryOptions{Now: w.clock.Now, After: w.clock.After, GroupCalls: rate.NewLimiter(rate.Every(time.Hour), 1)})
	must(t, d.Fresh(t.Context(), "acme", []string{"S0GONE"}, nil, time.Minute))
	_, groups, _ := w.store.mirror()
	gone, known := groups[key{"acme", "S0GONE"}]
	if !known || gone.Enabled || gone.UpdatedAt != 0 || !groups[release].Enabled {
		t.Errorf("%+v", groups)
	}
	if n := w.Calls("usergroups.list"); n != 1 {
		t.Errorf("%d calls", n)
	}
}
