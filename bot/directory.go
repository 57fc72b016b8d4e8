package bot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"

	"github.com/holdpoint/holdpoint/approvals"
)

// DirectoryStore is the mirror of people and groups in the core. Every write locks what it replaces.
type DirectoryStore interface {
	DirectoryTargets(ctx context.Context) ([]approvals.DirectoryTarget, error)
	// Clock is the time that the mirror's ages are counted on.
	Clock(ctx context.Context) (time.Time, error)
	// PeopleAges says how long ago any process read the named people and the groups' mirrored members.
	PeopleAges(ctx context.Context, tenant string, users, groups []string) (map[string]time.Duration, error)
	SaveUsers(ctx context.Context, tenant string, users []approvals.DirectoryUser) error
	SaveGroup(ctx context.Context, tenant string, g approvals.DirectoryGroup) error
}

// DirectoryOptions configure a Directory. The zero value works.
type DirectoryOptions struct {
	Log   *slog.Logger
	Now   func() time.Time
	After func(time.Duration) <-chan time.Time
	// GroupCalls limits usergroups.list; the default stays under Slack's 20 a minute.
	GroupCalls *rate.Limiter
	// Every is how old Run lets the mirror grow; default 4 min, well under the 15 that a decision accepts.
	Every time.Duration
}

// Directory mirrors the people and groups that the active configurations name, and the groups' members. What Slack does not
// answer is not written, so the mirror ages and, past a limit, stops counting: it fails closed (I4).
//
// Looking things up is shared: however many claims wait for the same workspace, one usergroups.list is under way.
type Directory struct {
	store   DirectoryStore
	client  *Client
	log     *slog.Logger
	now     func() time.Time
	after   func(time.Duration) <-chan time.Time
	limit   *rate.Limiter
	every   time.Duration
	flights singleflight.Group

	mu     sync.Mutex
	groups map[key]time.Time // when the look-up began whose answer is in the mirror
	users  map[key]time.Time
	extra  map[key]time.Time    // groups that were asked for although no active configuration names them
	people map[key]bool         // who is mirrored: named, or a member of a mirrored group
	next   map[string]time.Time // by tenant: before that nobody's row can be too old, whoever reads them
}

// key names a group or a person of a tenant.
type key struct{ tenant, id string }

// NewDirectory makes a mirror's writer. It calls nobody until Run, Fresh or OnEvent.
func NewDirectory(store DirectoryStore, client *Client, o DirectoryOptions) *Directory {
	d := &Directory{
		store: store, client: client, log: o.Log, now: o.Now, after: o.After, limit: o.GroupCalls, every: o.Every,
		groups: map[key]time.Time{}, users: map[key]time.Time{}, extra: map[key]time.Time{}, people: map[key]bool{}, next: map[string]time.Time{},
	}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	if d.now == nil {
		d.now = time.Now
	}
	if d.after == nil {
		d.after = time.After
	}
	if d.limit == nil {
		d.limit = rate.NewLimiter(rate.Every(4*time.Second), 5) // at most 20 in any minute
	}
	if d.every <= 0 {
		d.every = 4 * time.Minute
	}
	return d
}

// lookup is how long one shared look-up may take; who waits for it has a deadline of their own.
const lookup = 20 * time.Second

// ErrUnknownTenant says that no active configuration is of that tenant.
var ErrUnknownTenant = errors.New("no active configuration names that tenant")

// Fresh makes the mirror's rows of these groups and people at most maxAge old. It returns nil only when every one of them
// was read from Slack that recently and written; an error means that nothing was confirmed.
func (d *Directory) Fresh(ctx context.Context, tenant string, groups, users []string, maxAge time.Duration) error {
	since := d.now().Add(-maxAge)
	target, err := d.target(ctx, tenant)
	if err != nil {
		return err
	}
	if err := d.freshGroups(ctx, target, groups, since); err != nil {
		return err
	}
	return d.freshUsers(ctx, tenant, users, since)
}

// Refresh is Fresh for everything that the tenant's configuration names, and the members of its groups.
func (d *Directory) Refresh(ctx context.Context, tenant string, maxAge time.Duration) error {
	t, err := d.target(ctx, tenant)
	if err != nil {
		return err
	}
	since := d.now().Add(-maxAge)
	if err := d.freshGroups(ctx, t, t.Groups, since); err != nil {
		return err
	}
	return d.freshPeople(ctx, t, since)
}

func (d *Directory) target(ctx context.Context, tenant string) (approvals.DirectoryTarget, error) {
	all, err := d.store.DirectoryTargets(ctx)
	if err != nil {
		return approvals.DirectoryTarget{}, fmt.Errorf("read what the configurations name: %w", err)
	}
	for _, t := range all {
		if t.Tenant == tenant {
			return t, nil
		}
	}
	return approvals.DirectoryTarget{}, ErrUnknownTenant
}

// freshGroups joins or starts look-ups of the tenant's workspace until one began late enough and covered every group asked for.
func (d *Directory) freshGroups(ctx context.Context, t approvals.DirectoryTarget, groups []string, since time.Time) error {
	for _, g := range groups {
		if !slices.Contains(t.Groups, g) {
			d.mu.Lock()
			d.extra[key{t.Tenant, g}] = d.now()
			d.mu.Unlock()
		}
	}
	// A look-up that was under way may have begun too early, or before our groups were known to it; the next is ours.
	for range 3 {
		if d.have(d.groups, t.Tenant, groups, since) {
			return nil
		}
		done := d.flights.DoChan("groups "+t.Team, func() (any, error) {
			if d.have(d.groups, t.Tenant, groups, since) { // a look-up ended between our glance and our turn
				return nil, nil
			}
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookup)
			defer cancel()
			return nil, d.readGroups(ctx, t.Team)
		})
		select {
		case r := <-done:
			if r.Err != nil {
				return r.Err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if d.have(d.groups, t.Tenant, groups, since) {
		return nil
	}
	return errors.New("the groups could not be read recently enough")
}

func (d *Directory) have(m map[key]time.Time, tenant string, ids []string, since time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, id := range ids {
		if at, ok := m[key{tenant, id}]; !ok || at.Before(since) {
			return false
		}
	}
	return true
}

// readGroups reads a workspace's groups once and writes those that its tenants need. A group that is not in Slack's answer
// is disabled or gone, and has no members from now on. A tenant whose write fails keeps its age.
func (d *Directory) readGroups(ctx context.Context, team string) error {
	targets, err := d.store.DirectoryTargets(ctx)
	if err != nil {
		return fmt.Errorf("read what the configurations name: %w", err)
	}
	if err := d.limit.Wait(ctx); err != nil {
		return fmt.Errorf("wait to read the groups: %w", err)
	}
	began := d.now()
	asked, err := d.store.Clock(ctx)
	if err != nil {
		return fmt.Errorf("read the clock: %w", err)
	}
	got, err := d.client.Groups(ctx, team)
	if err != nil {
		return fmt.Errorf("read the groups: %w", err)
	}
	var failed error
	var missing []key
	for _, t := range targets {
		if t.Team != team {
			continue
		}
		for _, id := range d.needed(t) {
			if g, ok := got[id]; ok {
				g.AskedAt = asked
				failed = errors.Join(failed, d.saveGroup(ctx, t.Tenant, g, began))
			} else {
				missing = append(missing, key{t.Tenant, id})
			}
		}
	}
	if len(missing) == 0 {
		return failed
	}
	since := d.disabledSince(ctx, team)
	for _, k := range missing {
		d.log.Warn("a group that the configuration names is disabled or gone", "tenant", k.tenant, "group", k.id)
		failed = errors.Join(failed, d.saveGroup(ctx, k.tenant, approvals.DirectoryGroup{GroupID: k.id, UpdatedAt: since[k.id], AskedAt: asked}, began))
	}
	return failed
}

// saveGroup writes one group. The core leaves a newer one in place: what is mirrored then is as fresh as this look-up at least.
func (d *Directory) saveGroup(ctx context.Context, tenant string, g approvals.DirectoryGroup, began time.Time) error {
	if err := d.store.SaveGroup(ctx, tenant, g); err != nil {
		return fmt.Errorf("write group %s: %w", g.GroupID, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.groups[key{tenant, g.GroupID}] = began
	for _, m := range g.Members {
		if k := (key{tenant, m}); !d.people[k] {
			d.people[k] = true
			delete(d.next, tenant) // somebody new is to be read at once
		}
	}
	return nil
}

// disabledTime bounds the look-up of dates: a removal is written without one, sooner or later.
const disabledTime = 3 * time.Second

// disabledSince dates the groups that are missing from the enabled ones. Without a date, the look-up of another process that is
// late and still has such a group enabled could not be told from a newer one.
func (d *Directory) disabledSince(ctx context.Context, team string) map[string]int64 {
	ctx, cancel := context.WithTimeout(ctx, disabledTime)
	defer cancel()
	err := d.limit.Wait(ctx)
	var out map[string]int64
	if err == nil {
		out, err = d.client.Disabled(ctx, team)
	}
	if err != nil {
		d.log.Info("when groups were disabled could not be read; they are mirrored as disabled now", "team", team, "class", string(ClassOf(err)), "error", err)
	}
	return out
}

// extraLife is how long a group that only an older request names is mirrored after somebody asked for it.
const extraLife = time.Hour

func (d *Directory) needed(t approvals.DirectoryTarget) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := slices.Clone(t.Groups)
	for k, at := range d.extra {
		switch {
		case k.tenant != t.Tenant:
		case d.now().Sub(at) > extraLife:
			delete(d.extra, k)
		default:
			out = append(out, k.id)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
