package interactions

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/bot"
	"github.com/holdpoint/holdpoint/templates"
)

// groupNames are a workspace's user groups, for words alone: whether somebody may do something is never read here, but from the
// mirror, which has only the groups that the configuration names. A person who is refused wants to know about their own.
type groupNames struct {
	mu sync.Mutex
	of map[string]readGroups // by team
}

type readGroups struct {
	at     time.Time
	groups map[string]approvals.DirectoryGroup // nil: could not be read
}

const (
	namesFor     = time.Minute            // how long what was read is good for
	noNamesFor   = 10 * time.Second       // and how long a failure keeps us from asking again
	namesTimeout = 700 * time.Millisecond // it stands between a click and its answer
)

// groupsOf reads a workspace's groups, nil when they can't be read now.
func (h *Handler) groupsOf(ctx context.Context, team string) map[string]approvals.DirectoryGroup {
	h.names.mu.Lock()
	defer h.names.mu.Unlock()
	now := h.now()
	if r, ok := h.names.of[team]; ok && (now.Sub(r.at) < namesFor && r.groups != nil || now.Sub(r.at) < noNamesFor) {
		return r.groups
	}
	ctx, cancel := context.WithTimeout(ctx, namesTimeout)
	defer cancel()
	groups, err := h.slack.Groups(ctx, team)
	if err != nil {
		h.log.Info("the groups of a workspace could not be read for an answer", "class", string(bot.ClassOf(err)), "error", err)
		groups = nil
	}
	if h.names.of == nil {
		h.names.of = map[string]readGroups{}
	}
	h.names.of[team] = readGroups{now, groups}
	return groups
}

// called are the handles of the groups that somebody is in; known is false when that can't be read.
func (h *Handler) called(ctx context.Context, by approvals.Reviewer, mirrored []string) (handles []string, known bool) {
	groups := h.groupsOf(ctx, by.TeamID)
	for _, g := range groups {
		if slices.Contains(g.Members, by.UserID) && !slices.Contains(mirrored, g.Handle) {
			handles = append(handles, g.Handle)
		}
	}
	slices.Sort(handles)
	return append(slices.Clone(mirrored), handles...), groups != nil
}

// nameGroups fills in the names that the mirror lacks: of whom it needs, and of what the person is in.
func (h *Handler) nameGroups(ctx context.Context, d *approvals.Denial, by approvals.Reviewer, f *templates.Facts) {
	if d.Kind != approvals.DenyNotReviewer {
		return
	}
	f.Needs, f.NeedsPeople = nil, nil
	groups := h.groupsOf(ctx, by.TeamID)
	f.Needs = slices.Clone(d.NeedHandles)
	for _, id := range d.Needs {
		if id == "" || id[0] != 'S' {
			f.NeedsPeople = append(f.NeedsPeople, templates.Person{ID: id})
		} else if g, ok := groups[id]; ok && !slices.Contains(f.Needs, g.Handle) {
			f.Needs = append(f.Needs, g.Handle)
		}
	}
	var known bool
	f.Has, known = h.called(ctx, by, d.Have)
	f.InNone = known && len(f.Has) == 0
}
