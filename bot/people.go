package bot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdpoint/holdpoint/approvals"
)

// single is how many people are asked for one by one; for more, the whole list is read.
const single = 40

// wholeList is how long a workspace's whole list may take, page by page: less than a mirror may grow old before it stops counting.
const wholeList = 3 * time.Minute

// EnsureUser has one person in the mirror, at most maxAge old.
func (d *Directory) EnsureUser(ctx context.Context, tenant, user string, maxAge time.Duration) error {
	return d.freshUsers(ctx, tenant, []string{user}, d.now().Add(-maxAge))
}

// freshUsers reads people one by one, a few at a time; a person under way is waited for, not asked for twice.
func (d *Directory) freshUsers(ctx context.Context, tenant string, users []string, since time.Time) error {
	var (
		wg     sync.WaitGroup
		mu     sync.Mutex
		failed error
		slots  = make(chan struct{}, 4)
	)
	for _, u := range slices.Compact(slices.Sorted(slices.Values(users))) {
		if d.have(d.users, tenant, []string{u}, since) {
			continue
		}
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if err := d.freshUser(ctx, key{tenant, u}, since); err != nil {
				mu.Lock()
				failed = errors.Join(failed, err)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return failed
}

func (d *Directory) freshUser(ctx context.Context, k key, since time.Time) error {
	for range 2 {
		done := d.flights.DoChan("user "+k.tenant+" "+k.id, func() (any, error) {
			if d.have(d.users, k.tenant, []string{k.id}, since) { // a look-up ended between our glance and our turn
				return nil, nil
			}
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookup)
			defer cancel()
			return nil, d.readUser(ctx, k)
		})
		select {
		case r := <-done:
			if r.Err != nil {
				return r.Err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
		if d.have(d.users, k.tenant, []string{k.id}, since) {
			return nil
		}
	}
	return errors.New("a person could not be read recently enough")
}

// readUser reads one person. "No such user" is an answer: whoever had that id may do nothing any more.
func (d *Directory) readUser(ctx context.Context, k key) error {
	began := d.now()
	asked, err := d.store.Clock(ctx)
	if err != nil {
		return fmt.Errorf("read the clock: %w", err)
	}
	u, err := d.client.User(ctx, k.id)
	var e *APIError
	if errors.As(err, &e) && e.Class == ClassRefused && (e.Code == "user_not_found" || e.Code == "users_not_found") {
		u, err = approvals.DirectoryUser{UserID: k.id, Deleted: true}, nil
	}
	if err != nil {
		return fmt.Errorf("read a person: %w", err)
	}
	u.AskedAt = asked
	if err := d.store.SaveUsers(ctx, k.tenant, []approvals.DirectoryUser{u}); err != nil {
		return fmt.Errorf("write a person: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.users[k] = began
	return nil
}

// freshPeople refreshes everybody who is named for a tenant or a member of its groups, and whom no process has read since: one by
// one while they are few, else from the whole list, of which only those are kept.
func (d *Directory) freshPeople(ctx context.Context, t approvals.DirectoryTarget, since time.Time) error {
	due, oldest, err := d.stale(ctx, t, since)
	if err != nil {
		return err
	}
	began := d.now()
	if len(due) <= single {
		err = d.fewPeople(ctx, t, due, since)
	} else {
		err = d.allPeople(ctx, t, due, since)
	}
	if err == nil {
		d.mu.Lock()
		d.next[t.Tenant] = began.Add(d.every - oldest)
		d.mu.Unlock()
	}
	return err
}

// stale lists whose rows are too old, in no order, and how old the oldest of the others is. It notes whom an event concerns.
func (d *Directory) stale(ctx context.Context, t approvals.DirectoryTarget, since time.Time) (due []string, oldest time.Duration, err error) {
	ages, err := d.store.PeopleAges(ctx, t.Tenant, t.Users, d.needed(t))
	if err != nil {
		return nil, 0, fmt.Errorf("read how old the mirror is: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	limit := d.now().Sub(since)
	for id, age := range ages {
		k := key{t.Tenant, id}
		d.people[k] = true
		if at, ok := d.users[k]; age < limit || ok && !at.Before(since) {
			if age != approvals.NeverRead {
				oldest = max(oldest, age)
			}
			continue
		}
		due = append(due, id)
	}
	return due, oldest, nil
}

// atOnce is how many people are read before the database is asked again who still has to be: processes that began together share
// the work, as each takes them in an order of its own (a map's).
const atOnce = 8

func (d *Directory) fewPeople(ctx context.Context, t approvals.DirectoryTarget, due []string, since time.Time) error {
	for {
		if err := d.freshUsers(ctx, t.Tenant, due[:min(len(due), atOnce)], since); err != nil || len(due) <= atOnce {
			return err
		}
		var err error
		if due, _, err = d.stale(ctx, t, since); err != nil {
			return err
		}
	}
}

func (d *Directory) allPeople(ctx context.Context, t approvals.DirectoryTarget, due []string, since time.Time) error {
	began := d.now()
	asked, err := d.store.Clock(ctx)
	if err != nil {
		return fmt.Errorf("read the clock: %w", err)
	}
	listing, cancel := context.WithTimeout(ctx, wholeList)
	defer cancel()
	all, err := d.client.Users(listing, t.Team)
	if err != nil {
		return fmt.Errorf("read the people: %w", err)
	}
	slices.Sort(due)
	var found []approvals.DirectoryUser
	for _, u := range all {
		if i, ok := slices.BinarySearch(due, u.UserID); ok {
			u.AskedAt = asked
			found = append(found, u)
			due = slices.Delete(due, i, i+1)
		}
	}
	if err := d.store.SaveUsers(ctx, t.Tenant, found); err != nil {
		return fmt.Errorf("write the people: %w", err)
	}
	d.mu.Lock()
	for _, u := range found {
		d.users[key{t.Tenant, u.UserID}] = began
	}
	d.mu.Unlock()
	if len(due) > single { // people of other workspaces, in a shared group; they may never count, so their age is no matter
		due = due[:single]
	}
	return d.freshUsers(ctx, t.Tenant, due, since)
}
