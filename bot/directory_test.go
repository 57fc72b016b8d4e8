package bot

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/bot/slacksim"
)

func (w *world) directory() *Directory {
	return NewDirectory(w.store, w.client, DirectoryOptions{Now: w.clock.Now, After: w.clock.After, GroupCalls: rate.NewLimiter(rate.Inf, 1)})
}

var release = key{"acme", "S0RELEASE"}

func TestMirrorIsFilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	must(t, w.directory().Refresh(t.Context(), "acme", time.Minute))
	users, groups, _ := w.store.mirror()
	if g := groups[release]; !g.Enabled || g.Handle != "release-managers" || !slices.Equal(g.Members, []string{"U0ALICE", "U0GUEST"}) {
		t.Errorf("group %+v", g)
	}
	if len(users) != 3 || users[key{"acme", "U0BOB"}].UserID != "" {
		t.Errorf("mirrored %v: the named and the members, nobody else", users)
	}
	if !users[key{"acme", "U0GUEST"}].Restricted || users[key{"acme", "U0ALICE"}].TeamID != "T0ACME" {
		t.Errorf("people %+v", users)
	}
}

// I4: what can't be read changes nothing, and nobody is told that it is fresh.
func TestFailedLookupChangesNothing(t *testing.T) {
	t.Parallel()
	for _, f := range []slacksim.Fault{slacksim.Error{Code: "missing_scope"}, slacksim.ServerError{Status: 500}, slacksim.RateLimited{RetryAfter: time.Hour}} {
		t.Run(fmt.Sprintf("%T", f), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			d := w.directory()
			must(t, d.Refresh(t.Context(), "acme", 0))
			_, before, writes := w.store.mirror()
			w.clock.move(2 * time.Minute)
			w.Fault("usergroups.list", f, 0)
			w.Fault("users.info", f, 0)
			if err := d.Fresh(t.Context(), "acme", []string{"S0RELEASE"}, nil, time.Minute); err == nil {
				t.Error("groups: fresh without an answer")
			}
			if err := d.Fresh(t.Context(), "acme", nil, []string{"U0ALICE"}, time.Minute); err == nil {
				t.Error("people: fresh without an answer")
			}
			_, after, n := w.store.mirror()
			if n != writes || !slices.Equal(after[release].Members, before[release].Members) {
				t.Error("something was written")
			}
		})
	}
}

func TestDisabledGroupGrantsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.directory()
	must(t, d.Refresh(t.Context(), "acme", 0))
	w.AddGroup(slacksim.Group{ID: "S0RELEASE", Handle: "release-managers", Members: []string{"U0ALICE"}, Disabled: true})
	w.clock.move(2 * time.Minute)
	must(t, d.Fresh(t.Context(), "acme", []string{"S0RELEASE", "S0NEVER"}, nil, time.Minute))
	_, groups, _ := w.store.mirror()
	for _, id := range []string{"S0RELEASE", "S0NEVER"} {
		if g, ok := groups[key{"acme", id}]; !ok || g.Enabled || len(g.Members) != 0 {
			t.Errorf("%s: %+v", id, g)
		}
	}
}

// However many claims ask, one look-up answers; a fresh mirror costs none.
func TestLookupsAreShared(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.directory()
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if err := d.Fresh(t.Context(), "acme", []string{"S0RELEASE"}, []string{"U0ALICE"}, time.Minute); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if g, u := w.Calls("usergroups.list"), w.Calls("users.info"); g != 1 || u != 1 {
		t.Errorf("%d and %d calls", g, u)
	}
	w.clock.move(2 * time.Minute)
	must(t, d.Fresh(t.Context(), "acme", []string{"S0RELEASE"}, nil, time.Minute))
	if g := w.Calls("usergroups.list"); g != 2 {
		t.Errorf("an old mirror was believed: %d calls", g)
	}
}

// A look-up that began before somebody asked for a group does not cover it.
func TestGroupNobodyNamesIsRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.AddGroup(slacksim.Group{ID: "S0OLD", Handle: "old", Members: []string{"U0BOB"}})
	d := w.directory()
	must(t, d.Fresh(t.Context(), "acme", []string{"S0RELEASE"}, nil, time.Minute))
	must(t, d.Fresh(t.Context(), "acme", []string{"S0OLD"}, nil, time.Minute))
	_, groups, _ := w.store.mirror()
	if !slices.Equal(groups[key{"acme", "S0OLD"}].Members, []string{"U0BOB"}) {
		t.Errorf("%+v", groups)
	}
}

// oncall#4398: a removal that Slack tells of is in the mirror at once, whatever the event itself says.
func TestRemovalIsFollowed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.directory()
	must(t, d.Refresh(t.Context(), "acme", 0))
	w.clock.move(time.Second)
	must(t, w.SetGroupMembers(t.Context(), "S0RELEASE", []string{"U0BOB"}, false))
	must(t, d.OnEvent(t.Context(), Event{Type: "subteam_members_changed", Team: "T0ACME", Group: "S0RELEASE", People: []string{"U0ALICE", "U0BOB"}}))
	users, groups, _ := w.store.mirror()
	if !slices.Equal(groups[release].Members, []string{"U0BOB"}) || users[key{"acme", "U0BOB"}].UserID == "" {
		t.Errorf("%+v %+v", groups, users)
	}
	w.clock.move(time.Second)
	w.AddUser(slacksim.User{ID: "U0ALICE", Name: "alice", Deleted: true})
	must(t, d.OnEvent(t.Context(), Event{Type: "user_change", Team: "T0ACME", User: "U0ALICE"}))
	if users, _, _ := w.store.mirror(); !users[key{"acme", "U0ALICE"}].Deleted {
		t.Error("a deactivated person still counts")
	}
}

func TestEventsAboutOthersCostNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.directory()
	must(t, d.Refresh(t.Context(), "acme", 0))
	before := w.Calls("users.info") + w.Calls("usergroups.list")
	w.clock.move(time.Minute)
	for _, e := range []Event{
		{Type: "user_change", Team: "T0ACME", User: "U0BOB"},
		{Type: "subteam_updated", Team: "T0ACME", Group: "S0OTHER"},
		{Type: "user_change", Team: "T0OTHER", User: "U0ALICE"},
	} {
		must(t, d.OnEvent(t.Context(), e))
	}
	if n := w.Calls("users.info") + w.Calls("usergroups.list") - before; n != 0 {
		t.Errorf("%d calls", n)
	}
}

func TestManyPeopleAreReadFromTheList(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var members []string
	for i := range 1200 {
		id := fmt.Sprintf("U0MEMBER%d", i)
		w.AddUser(slacksim.User{ID: id})
		if i%2 == 0 {
			members = append(members, id)
		}
	}
	w.AddUser(slacksim.User{ID: "U0FOREIGN", TeamID: "T0OTHER", IsStranger: true})
	w.AddGroup(slacksim.Group{ID: "S0RELEASE", Handle: "r", Members: members})
	must(t, w.directory().Refresh(t.Context(), "acme", time.Minute))
	users, _, _ := w.store.mirror()
	if len(users) != len(members)+1 || w.Calls("users.info") != 0 || w.Calls("users.list") != 3 {
		t.Errorf("%d people, %d and %d calls", len(users), w.Calls("users.info"), w.Calls("users.list"))
	}
	w.clock.move(time.Hour)
	w.Fault("users.list", slacksim.RateLimited{RetryAfter: time.Hour}, 0)
	if err := w.directory().Refresh(t.Context(), "acme", time.Minute); err == nil {
		t.Error("half a list is a list")
	}
}

func TestPersonSlackDoesNotKnow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.directory()
	must(t, d.EnsureUser(t.Context(), "acme", "U0NOBODY", time.Minute))
	users, _, _ := w.store.mirror()
	if u := users[key{"acme", "U0NOBODY"}]; !u.Deleted || u.TeamID != "" {
		t.Errorf("%+v", u)
	}
}

func TestAccountsThatAreNoPeople(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, u := range []slacksim.User{{ID: "USLACKBOT", Name: "slackbot"}, {ID: "U0FLOW", IsWorkflowBot: true}, {ID: "U0APP", IsBot: true}} {
		w.AddUser(u)
		if got, err := w.client.User(t.Context(), u.ID); err != nil || !got.Bot {
			t.Errorf("%s: %+v %v", u.ID, got, err)
		}
	}
}

func TestUnknownTenant(t *testing.T) {
	t.Parallel()
	if err := newWorld(t).directory().Fresh(t.Context(), "other", nil, nil, time.Minute); err == nil {
		t.Error("a tenant that nobody configured is fresh")
	}
}

// Run reads by age: at the start, and again when what is there gets old.
func TestRunReadsByAge(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ticks := make(chan time.Time)
	d := NewDirectory(w.store, w.client, DirectoryOptions{
		Now: w.clock.Now, After: func(time.Duration) <-chan time.Time { return ticks }, GroupCalls: rate.NewLimiter(rate.Inf, 1),
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	ticks <- time.Time{} // the first round is over
	if n := w.Calls("usergroups.list"); n != 1 {
		t.Errorf("%d calls at the start", n)
	}
	ticks <- time.Time{}
	if n := w.Calls("usergroups.list"); n != 1 {
		t.Errorf("a young mirror was read: %d calls", n)
	}
	w.clock.move(5 * time.Minute)
	ticks <- time.Time{}
	ticks <- time.Time{}
	if n := w.Calls("usergroups.list"); n != 2 {
		t.Errorf("an old mirror was not read: %d calls", n)
	}
	// Claims keep the groups young; the people must not grow old behind that.
	people := w.Calls("users.info")
	w.clock.move(5 * time.Minute)
	w.store.mu.Lock()
	w.store.targets[0].OldestSync = w.clock.Now()
	w.store.mu.Unlock()
	ticks <- time.Time{}
	ticks <- time.Time{}
	if g, u := w.Calls("usergroups.list"), w.Calls("users.info"); g != 2 || u != people+3 {
		t.Errorf("%d calls for groups, %d for people", g, u-people)
	}
	cancel()
	must(t, <-ended)
}

func TestGroupCallsAreLimited(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := NewDirectory(w.store, w.client, DirectoryOptions{Now: w.clock.Now, After: w.clock.After, GroupCalls: rate.NewLimiter(rate.Every(time.Hour), 1)})
	must(t, d.Fresh(t.Context(), "acme", []string{"S0RELEASE"}, nil, 0))
	w.clock.move(time.Minute)
	if err := d.Fresh(t.Context(), "acme", []string{"S0RELEASE"}, nil, time.Second); err == nil {
		t.Error("no limit, or fresh without an answer")
	}
	if n := w.Calls("usergroups.list"); n != 1 {
		t.Errorf("%d calls", n)
	}
	if l := NewDirectory(w.store, w.client, DirectoryOptions{}).limit; 60*float64(l.Limit())+float64(l.Burst()) > 20 {
		t.Errorf("the default allows %v a minute", 60*float64(l.Limit())+float64(l.Burst()))
	}
}

func TestTwoTenantsOfOneWorkspace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.store.targets = append(w.store.targets, approvals.DirectoryTarget{Tenant: "beta", Team: "T0ACME", Groups: []string{"S0RELEASE"}})
	d := w.directory()
	must(t, d.Fresh(t.Context(), "acme", []string{"S0RELEASE"}, nil, time.Minute))
	must(t, d.Fresh(t.Context(), "beta", []string{"S0RELEASE"}, nil, time.Minute))
	_, groups, _ := w.store.mirror()
	if w.Calls("usergroups.list") != 1 || !groups[key{"beta", "S0RELEASE"}].Enabled {
		t.Errorf("%d calls, %+v", w.Calls("usergroups.list"), groups)
	}
}
