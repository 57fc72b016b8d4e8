package approvals

import (
	"slices"
	"strings"
	"time"

	"github.com/holdpoint/holdpoint/approvals/rules"
)

// How old the mirror of Slack's people and groups may be. Fail closed: what is older counts as unreadable.
const (
	decideAge = 15 * time.Minute
	claimAge  = 60 * time.Second
)

// grant is what authorised a reviewer, as kept with the vote.
type grant struct {
	Via       string     `json:"via"` // "user" or the group's id
	Team      string     `json:"team"`
	UserSync  time.Time  `json:"user_synced_at"`
	GroupSync *time.Time `json:"group_synced_at,omitempty"`
}

// eligible says whether a person may count at all: known, fresh, a full member of the tenant's own workspace, not blocked.
// A list that names a guest, an outsider or a bot does not make them count. Empty means yes.
func (f *facts) eligible(user string, age time.Duration) DenialKind {
	if f.blocked[user] {
		return DenyBlocked
	}
	p, ok := f.users[user]
	switch {
	case !ok || f.now.Sub(p.syncedAt) > age:
		return DenyUncheckable
	case !f.full(user):
		return DenyIneligible
	}
	return ""
}

// full says whether a person is mirrored as a full, active member of the tenant's own workspace. Reviewers, requesters, admins and
// requester.groups all ask this one question.
func (f *facts) full(user string) bool {
	p, ok := f.users[user]
	return ok && p.team == f.tenant.Slack.Team && !p.deleted && !p.restricted && !p.ultra && !p.bot && !p.invited && !p.isStranger && user != "USLACKBOT"
}

// granted says what gives a person the authority of a list, if anything. known is false when a group of the list could not be
// read, so that "not in it" would be a guess.
func (f *facts) granted(user string, who rules.Reviewers, age time.Duration) (g *grant, known bool) {
	p := f.users[user]
	if slices.Contains(who.Users, user) {
		return &grant{Via: "user", Team: p.team, UserSync: p.syncedAt}, true
	}
	known = true
	for _, id := range who.Groups {
		row, ok := f.groups[id]
		member := f.members[membership{id, user}]
		switch {
		case !ok || f.now.Sub(row.syncedAt) > age || (member && row.enabled && !row.locked):
			known = false
		case row.enabled && member:
			return &grant{Via: id, Team: p.team, UserSync: p.syncedAt, GroupSync: &row.syncedAt}, true
		}
	}
	return nil, known
}

// groupsOf lists the groups of a person that this transaction holds, for conditions over requester.groups. Whoever does not count is in
// none, whatever list names them.
func (f *facts) groupsOf(user string) []string {
	out := []string{}
	if !f.full(user) || f.blocked[user] {
		return out
	}
	for m := range f.members {
		if m.user == user && f.groups[m.group].enabled && f.groups[m.group].locked {
			out = append(out, m.group)
		}
	}
	slices.Sort(out)
	return out
}

// conditionGroups are the groups whose members a rule's condition looks at: they are mirrored and must be fresh like reviewers.
func conditionGroups(t *rules.Tenant) []string {
	var out []string
	for _, r := range t.Rules {
		out = append(out, r.ConditionGroups()...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// unread lists the groups that conditions look at and that are not known well enough to run one about this requester (I4): missing, too
// old, or not locked, so that somebody may be joining or leaving right now; and all of them while the requester is not known well enough
// to be in one.
func (f *facts) unread(requester string, age time.Duration) []string {
	user := slackUser(requester)
	if user == "" {
		return nil
	}
	var out []string
	unknown := f.eligible(user, age) == DenyUncheckable
	for _, id := range conditionGroups(f.tenant) {
		if g, ok := f.groups[id]; unknown || !ok || !g.locked || f.now.Sub(g.syncedAt) > age {
			out = append(out, id)
		}
	}
	return out
}

// handles names groups as people know them, where the mirror knows them.
func (f *facts) handles(ids []string) []string {
	var out []string
	for _, id := range ids {
		if g, ok := f.groups[id]; ok && g.handle != "" {
			out = append(out, g.handle)
		}
	}
	return out
}

// slackUser is the Slack id behind `slack:U…`; other schemes have none.
func slackUser(actor string) string {
	id, ok := strings.CutPrefix(actor, "slack:")
	if !ok {
		return ""
	}
	return id
}

// input is what a condition sees of an approval.
func (f *facts) input(args map[string]any) rules.Input {
	r := f.req
	in := rules.Input{
		Tool: r.tool, Args: args, Target: r.target,
		Agent: rules.AgentInput{Name: r.agent, Path: r.agentPath, Version: r.appStateVersion},
	}
	if r.requester != "" {
		in.Requester = rules.RequesterInput{ID: r.requester, Groups: f.groupsOf(slackUser(r.requester))}
	}
	return in
}

// counted are the approving votes for the row's digest that no block voided.
func (f *facts) counted() []Vote {
	var out []Vote
	for _, v := range f.votes {
		if v.Approves() && v.Digest == f.req.digest {
			out = append(out, v)
		}
	}
	return out
}

// excluded says whether the rules of I5 keep a person from approving: the requester, and whoever edited the lineage.
func (f *facts) excluded(user string, rule *rules.Rule) DenialKind {
	requester, editor := f.req.scope.ExcludeRequester, f.req.scope.ExcludeEditor
	if rule != nil {
		requester, editor = requester || rule.ExcludeRequester, editor || rule.ExcludeEditor
	}
	if requester && f.req.requester == "slack:"+user {
		return DenyRequester
	}
	if editor && slices.Contains(f.req.editors, "slack:"+user) {
		return DenyEditor
	}
	return ""
}
