package interactions

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/holdpoint/holdpoint/approvals"
)

const (
	home   = "C0APPROVALS"
	appID  = "A0HOLDPOINT"
	secret = "simulator-signing-secret"
)

// core is a small core: it binds a click to the stored card, counts votes and tells the loser the truth, as Decide does.
type core struct {
	mu       sync.Mutex
	rows     map[approvals.ID]*approvals.CardFacts
	people   map[string]approvals.DenialKind // "" may decide
	admins   []string
	standing map[string]approvals.Standing // of those who are more, or less, than a full member in no group
	seen     map[string]bool
	decided  []approvals.DecideRequest
	acts     []string // revoke, suspend, … as they were asked for
	err      error    // Decide fails with it
	slow     chan struct{}
	under    approvals.Suspension
	pauses   []approvals.Switch
	rejected *approvals.Refusal
	refused  []approvals.RefusedCommand
	second   bool // a second person is asked for
	alone    *approvals.SecondPersonError
}

func (c *core) note(act string) { c.acts = append(c.acts, act) }

func (c *core) Decide(_ context.Context, rq approvals.DecideRequest) (approvals.Ruling, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.decided = append(c.decided, rq)
	if c.err != nil {
		return approvals.Ruling{}, c.err
	}
	f, ok := c.rows[rq.Button.ID]
	if !ok {
		return approvals.Ruling{}, approvals.ErrNotFound
	}
	now := time.Now()
	deny := func(k approvals.DenialKind) (approvals.Ruling, error) {
		d := &approvals.Denial{Kind: k, At: now, Needs: []string{"S0RELEASE"}, NeedHandles: []string{"release-managers"}, Have: []string{"support"}}
		if k == approvals.DenyEditInvalid {
			d.Detail, d.Pointer = "must be a string", "/release"
		}
		return approvals.Ruling{Denial: d, View: f.View}, nil
	}
	good, err := approvals.ParseButton(approvals.EncodeButton(f.Card.MACKey, f.Card.Channel, f.ApprovalID, f.Digest, rq.Button.Version))
	switch {
	case err != nil || !reflect.DeepEqual(good, rq.Button) || rq.Channel != f.Card.Channel:
		return deny(approvals.DenyTampered)
	case f.Card.MessageTS == "":
		return deny(approvals.DenyNotYet)
	case rq.MessageTS != f.Card.MessageTS:
		return deny(approvals.DenyTampered)
	case rq.By.TeamID != "T0ACME":
		return deny(approvals.DenyIneligible)
	}
	if k, known := c.people[rq.By.UserID]; !known {
		return deny(approvals.DenyNotReviewer)
	} else if k != "" {
		return deny(k)
	}
	switch {
	case f.Status != approvals.Pending:
		return deny(approvals.DenyDecided)
	case rq.Verb == approvals.Reject && rq.Reason == "":
		return deny(approvals.DenyReason)
	case rq.Verb == approvals.Edit && !json.Valid(rq.Arguments):
		return deny(approvals.DenyEditInvalid)
	case slices.ContainsFunc(f.Votes, func(v approvals.Vote) bool { return v.By == "slack:"+rq.By.UserID }):
		return deny(approvals.DenyAlreadyVoted)
	}
	f.Version++
	f.Votes = append(slices.Clone(f.Votes), approvals.Vote{By: "slack:" + rq.By.UserID, At: now, Decision: string(rq.Verb)})
	out := approvals.Ruling{Applied: true}
	switch rq.Verb {
	case approvals.Approve:
		if f.Approving() >= f.Quorum {
			f.Status = approvals.Approved
		}
	case approvals.Reject:
		f.Status, f.Message = approvals.Rejected, rq.Reason
	case approvals.Respond:
		f.Status = approvals.Responded
	case approvals.Edit:
		f.Status = approvals.Edited
		child := c.add(func(k *approvals.CardFacts) {
			parent := f.ApprovalID
			k.ParentID, k.Editors = &parent, []string{"slack:" + rq.By.UserID}
			k.Snapshot = json.RawMessage(`{"title":"Edited","arguments":` + string(rq.Arguments) + `}`)
		})
		f.ChildID = &child
		v := c.rows[child].View
		out.Child = &v
	}
	if f.Status != approvals.Pending {
		f.DecidedBy, f.DecidedAt = "slack:"+rq.By.UserID, &now
	}
	out.View = f.View
	return out, nil
}

func (c *core) TenantOfTeam(_ context.Context, team string) (string, error) {
	if team != "T0ACME" {
		return "", approvals.ErrNoTenant
	}
	return "acme", nil
}

func (c *core) CardFacts(_ context.Context, id approvals.ID) (approvals.CardFacts, error) {
	c.mu.Lock()
	slow := c.slow
	f, ok := c.rows[id]
	var out approvals.CardFacts
	if ok {
		out = *f
		out.Now = time.Now()
		for _, p := range c.pauses {
			if f.Status == approvals.Pending && p.Covers(f.View) {
				out.HeldBy, out.HeldDetail = p.By, p.String()
			}
		}
	}
	c.mu.Unlock()
	if slow != nil {
		<-slow
	}
	if !ok {
		return out, approvals.ErrNotFound
	}
	return out, nil
}

func (c *core) Explain(ctx context.Context, tenant string, id approvals.ID) (approvals.Explanation, error) {
	f, err := c.CardFacts(ctx, id)
	if err == nil && f.Tenant != tenant {
		err = approvals.ErrNotFound
	}
	return approvals.Explanation{View: f.View, RuleText: "the rule", Present: approvals.Present{Known: true, Groups: []string{"S0RELEASE"}}, Events: []approvals.Event{
		{At: f.CreatedAt, Kind: "approval.requested", Actor: "agent:release-agent"},
	}}, err
}

func (c *core) Admin(_ context.Context, _ string, by approvals.Reviewer) (approvals.Actor, error) {
	if by.TeamID != "T0ACME" || !slices.Contains(c.admins, by.UserID) {
		return "", approvals.ErrNotAdmin
	}
	return approvals.SlackActor(by.UserID), nil
}

func (c *core) Standing(_ context.Context, _ string, by approvals.Reviewer) (approvals.Standing, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.standing[by.UserID]
	p.User = by.UserID
	if by.TeamID != "T0ACME" {
		p.Denial = approvals.DenyIneligible
	}
	p.Admin = p.Denial == "" && slices.Contains(c.admins, by.UserID)
	return p, nil
}

func (c *core) RefusedCommand(_ context.Context, r approvals.RefusedCommand) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused = append(c.refused, r)
	return nil
}

// stand changes what somebody counts for.
func (c *core) stand(user string, p approvals.Standing) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.standing[user] = p
}

func (c *core) Revoke(_ context.Context, rq approvals.RevokeRequest) ([]approvals.View, error) {
	c.mu.Lock()
	slow := c.slow
	c.note("revoke " + strings.TrimSpace(rq.Select.ID.String()+" "+rq.Select.Run+rq.Select.Agent+rq.Select.Tool+rq.Select.DecidedBy) + " " + rq.Reason)
	var out []approvals.View
	for id, f := range c.rows {
		if rq.Select.ID.IsZero() || rq.Select.ID == id {
			f.Status, f.RevokedBy = approvals.Revoked, string(rq.By)
			f.Version++
			out = append(out, f.View)
		}
	}
	c.mu.Unlock()
	if slow != nil {
		<-slow
	}
	return out, nil
}

func (c *core) Reach(context.Context, string, string, string) (approvals.Suspension, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reach(), nil
}

// reach is what a switch stands over, with the name that the core gives to exactly that.
func (c *core) reach() approvals.Suspension {
	out := c.under
	out.Listed = fmt.Sprintf("listed %d", len(out.WouldStart))
	return out
}

func (c *core) Suspend(_ context.Context, rq approvals.SuspendRequest) (approvals.Suspension, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rejected != nil {
		return approvals.Suspension{}, c.rejected
	}
	if !rq.Active && rq.Listed != c.reach().Listed {
		return approvals.Suspension{}, approvals.ErrListChanged
	}
	c.note(map[bool]string{true: "pause ", false: "unpause "}[rq.Active] + rq.Scope + " " + rq.Name + " " + rq.Reason + " " + string(rq.By))
	c.pauses = slices.DeleteFunc(c.pauses, func(p approvals.Switch) bool { return p.Scope == rq.Scope && p.Name == rq.Name })
	if rq.Active {
		c.pauses = append(c.pauses, approvals.Switch{Scope: rq.Scope, Name: rq.Name, By: string(rq.By), At: time.Now(), Reason: rq.Reason})
	}
	out := c.under
	for id, f := range c.rows {
		if f.Tenant == rq.Tenant && f.Status == approvals.Pending && (approvals.Switch{Scope: rq.Scope, Name: rq.Name}).Covers(f.View) {
			f.Card.ShownVersion = 0
			out.Waiting = append(out.Waiting, id)
		}
	}
	return out, nil
}

func (c *core) Switches(context.Context, string) ([]approvals.Switch, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.pauses), nil
}

func (c *core) Block(_ context.Context, rq approvals.BlockRequest) ([]approvals.View, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.note(map[bool]string{true: "block ", false: "unblock "}[rq.Blocked] + rq.UserID + " " + rq.Reason)
	return nil, nil
}

func (c *core) Reconcile(_ context.Context, rq approvals.ReconcileRequest) (approvals.View, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f, ok := c.rows[rq.ID]
	switch {
	case !ok:
		return approvals.View{}, approvals.ErrNotFound
	case rq.Press != nil && f.Bound(*rq.Press) != "":
		return f.View, approvals.ErrTampered
	case f.Status != approvals.Uncertain:
		return f.View, approvals.ErrNotUncertain
	case c.alone != nil:
		return f.View, c.alone
	case c.second:
		return f.View, approvals.ErrSecondPerson
	}
	f.Status = approvals.Failed
	if rq.Happened {
		f.Status = approvals.Completed
	}
	f.Version++
	c.note("reconcile " + string(f.Status) + " " + rq.Evidence)
	return f.View, nil
}

func (c *core) Open(_ context.Context, tenant string, limit int) ([]approvals.View, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []approvals.View
	for _, f := range c.rows {
		if f.Tenant == tenant && len(out) < limit {
			out = append(out, f.View)
		}
	}
	return out, c.err
}

func (c *core) Seen(_ context.Context, sig []byte) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	again := c.seen[string(sig)]
	c.seen[string(sig)] = true
	return again, nil
}

func (c *core) StartPost(context.Context, approvals.ID) error { return nil }

func (c *core) SavePost(_ context.Context, id approvals.ID, channel, ts string, shown int64, plain bool, _ string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.rows[id]
	f.Card.Channel, f.Card.MessageTS, f.Card.ShownVersion, f.Card.Plain = channel, ts, shown, plain
	return nil
}

func (c *core) SaveShown(_ context.Context, id approvals.ID, read, shown int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if card := &c.rows[id].Card; card.ShownVersion == read {
		card.ShownVersion = max(read, shown)
	}
	return nil
}

// add makes a pending row. Held: mu, or nobody else knows c yet.
func (c *core) add(change func(*approvals.CardFacts)) approvals.ID {
	id := approvals.NewID()
	now := time.Now()
	f := &approvals.CardFacts{
		View: approvals.View{
			ApprovalID: id, Tenant: "acme", Agent: "release-agent", Tool: "deploy_release", Kind: "effect", Executor: "http",
			Target: "service/checkout@production", Status: approvals.Pending, Digest: "sha256-proposal-v1:" + strings.Repeat("77ab", 16),
			Rule: "production-deploys", ConfigRevision: 3, Quorum: 1, Version: 1, CreatedAt: now, Now: now,
			Scope:    approvals.Scope{Groups: []string{"S0RELEASE"}, Quorum: 1, Decisions: []string{"approve", "reject", "edit"}},
			Snapshot: json.RawMessage(`{"title":"Deploy 2026.07.24 to production","arguments":{"release":"2026.07.24","note":"caf\u00e9 & cr\u00eape"}}`),
			DecideBy: now.Add(time.Hour), ExpiresAt: now.Add(time.Hour),
		},
		Card: approvals.Card{ID: uuid.New(), Channel: home, MACKey: []byte("0123456789abcdef0123456789abcdef")},
	}
	if change != nil {
		change(f)
	}
	c.rows[id] = f
	return id
}

func (c *core) row(id approvals.ID) approvals.CardFacts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return *c.rows[id]
}

func (c *core) change(id approvals.ID, f func(*approvals.CardFacts)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(c.rows[id])
	c.rows[id].Version++
}

func (c *core) requests() []approvals.DecideRequest {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.decided)
}

func (c *core) done() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.acts)
}
