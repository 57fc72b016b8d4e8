package bot

import (
	"context"
	"errors"
	"slices"
	"time"
)

// Run keeps the mirror young until ctx ends: everything is read when it is older than Every. It looks at once, and then
// every quarter of Every, at what another process may have read meanwhile.
func (d *Directory) Run(ctx context.Context) error {
	for {
		d.round(ctx)
		select {
		case <-d.after(d.every / 4):
		case <-ctx.Done():
			return nil
		}
	}
}

// round refreshes what is due. One tenant's failure does not keep the others from being read.
func (d *Directory) round(ctx context.Context) {
	targets, err := d.store.DirectoryTargets(ctx)
	if err != nil {
		if ctx.Err() == nil {
			d.log.Error("the directory can't be read", "error", err)
		}
		return
	}
	for _, t := range targets {
		since := d.now().Add(-d.every)
		var err error
		// Groups that another process, or a claim, has just read are left alone. How old the people are only this process knows.
		if !d.warm(t.Tenant) || !t.OldestSync.After(since) {
			err = d.freshGroups(ctx, t, t.Groups, since)
		}
		if err == nil {
			err = d.freshPeople(ctx, t, since)
		}
		if err == nil {
			d.mu.Lock()
			d.read[t.Tenant] = true
			d.mu.Unlock()
		} else if ctx.Err() == nil {
			d.log.Error("the directory could not be refreshed; its rows stop counting when they get too old", "tenant", t.Tenant, "class", string(ClassOf(err)), "error", err)
		}
	}
}

// warm says that this process has read a tenant's people once, and so knows whom an event concerns.
func (d *Directory) warm(tenant string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.read[tenant]
}

// Event is one of Slack's events about people and groups, reduced to what it is about. What it says of them is not believed:
// events arrive late, twice and out of order, so the truth is read again.
type Event struct {
	Type   string // subteam_members_changed, subteam_updated, subteam_created, user_change, team_join
	Team   string
	Group  string
	User   string
	People []string // added or removed
}

// OnEvent refreshes what an event is about, for every tenant of that workspace that needs it. Events about anybody else
// (user_change comes for every status message) cost nothing.
func (d *Directory) OnEvent(ctx context.Context, e Event) error {
	targets, err := d.store.DirectoryTargets(ctx)
	if err != nil {
		return err
	}
	now := d.now()
	var failed error
	for _, t := range targets {
		if t.Team != e.Team {
			continue
		}
		if e.Group != "" && slices.Contains(d.needed(t), e.Group) {
			failed = errors.Join(failed, d.freshGroups(ctx, t, []string{e.Group}, now))
		}
		for _, u := range append(slices.Clone(e.People), e.User) {
			if u != "" && d.mirrored(key{t.Tenant, u}, t.Users) {
				failed = errors.Join(failed, d.freshUsers(ctx, t.Tenant, []string{u}, now))
			}
		}
	}
	return failed
}

func (d *Directory) mirrored(k key, named []string) bool {
	if slices.Contains(named, k.id) {
		return true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	_, known := d.users[k]
	return known || d.people[k]
}

// EventTypes are those that OnEvent understands, for the app's subscriptions.
var EventTypes = []string{"subteam_members_changed", "subteam_updated", "subteam_created", "user_change", "team_join"}

var _ interface {
	Fresh(ctx context.Context, tenant string, groups, users []string, maxAge time.Duration) error
} = (*Directory)(nil)
