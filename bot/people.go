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
	u, err := d.client.User(ctx, k.id)
	var e *APIError
	if errors.As(err, &e) && e.Class == ClassRefused && (e.Code == "user_not_found" || e.Code == "users_not_found") {
		u, err = approvals.DirectoryUser{UserID: k.id, Deleted: true}, nil
	}
	if err != nil {
		return fmt.Errorf("read a person: %w", err)
	}
	if err := d.store.SaveUsers(ctx, k.tenant, []approvals.DirectoryUser{u}); err != nil {
		return fmt.Errorf("write a person: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.users[k] = began
	return nil
}

// freshPeople refreshes everybody who is mirrored for a tenant: one by one while they are few, else from the whole list, of
// which only those are kept.
func (d *Directory) freshPeople(ctx context.Context, t approvals.DirectoryTarget, since time.Time) error {
	d.mu.Lock()
	for _, u := range t.Users {
		d.people[key{t.Tenant, u}] = true
	}
	var due []string
	for k := range d.people {
		if at, ok := d.users[k]; k.tenant == t.Tenant && (!ok || at.Before(since)) {
			due = append(due, k.id)
		}
	}
	d.mu.Unlock()
	if len(due) <= single {
		return d.freshUsers(ctx, t.Tenant, due, since)
	}
	began := d.now()
	all, err := d.client.Users(ctx, t.Team)
	if err != nil {
		return fmt.Errorf("read the people: %w", err)
	}
	slices.Sort(due)
	var found []approvals.DirectoryUser
	for _, u := range all {
		if i, ok := slices.BinarySearch(due, u.UserID); ok {
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
