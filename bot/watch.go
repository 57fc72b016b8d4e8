package bot

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/holdpoint/holdpoint/approvals"
)

// Run keeps the mirror young until ctx ends: everything is read when it is older than Every. It looks at once, and then about every
// quarter of Every, at what another process may have read meanwhile; at times of its own, so that of many processes one reads.
func (d *Directory) Run(ctx context.Context) error {
	for {
		d.round(ctx)
		select {
		case <-d.after(d.every/8 + rand.N(d.every/4)): //nolint:gosec // only so that processes don't ask at once
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
		// What another process, or a claim, has just read is left alone.
		if !t.OldestSync.After(since) {
			err = d.freshGroups(ctx, t, t.Groups, since)
		}
		if err == nil && d.due(t) {
			err = d.freshPeople(ctx, t, since)
		}
		if err != nil && ctx.Err() == nil {
			d.log.Error("the directory could not be refreshed; its rows stop counting when they get too old", "tenant", t.Tenant, "class", string(ClassOf(err)), "error", err)
		}
	}
}

// due says whether somebody's row may be too old by now, or somebody was named since.
func (d *Directory) due(t approvals.DirectoryTarget) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.now().Before(d.next[t.Tenant]) || slices.ContainsFunc(t.Users, func(u string) bool { return !d.people[key{t.Tenant, u}] })
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
