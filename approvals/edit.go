package approvals

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/aymanbagabas/go-udiff"
	"github.com/google/uuid"

	"github.com/holdpoint/holdpoint/approvals/canon"
	"github.com/holdpoint/holdpoint/approvals/rules"
)

// edit ends the request as `edited` and makes a child: new arguments, new digest, no votes, the rules run again, the tool pinned,
// the same or an earlier deadline (I10). Hidden values that the editor did not touch keep what is sealed.
func (s *Service) edit(f *facts, rq DecideRequest, vote *voteRow, args canon.Arguments) (judgement, error) {
	r := f.req
	if args.Digest == "" {
		var ok bool
		var err error
		if args, ok, err = s.verified(f); err != nil || !ok {
			return judgement{}, errors.Join(err, digestFault(ok, r.id))
		}
	}
	tool, ok := f.tenant.Tools[r.tool]
	if !ok || tool.Revision() != r.toolRevision {
		return deny(DenyPolicy, "the tool was changed in the configuration while this waited"), nil
	}
	edited, d := editedArguments(tool, rq.Arguments, args, r.snapshot)
	if d != nil {
		return judgement{denial: d}, nil
	}
	in := f.input(edited.Value)
	target, err := tool.Target(in)
	if err != nil {
		return deny(DenyEditInvalid, "the edited arguments name no target"), nil //nolint:nilerr // the editor's to mend
	}
	in.Target = target
	m, err := f.tenant.Match(in)
	if errors.Is(err, rules.ErrNoRule) {
		return deny(DenyEditNoRule, "no rule covers these arguments"), nil
	}
	if err != nil || m.Rule.Do != rules.Ask {
		return deny(DenyPolicy, "no rule asks anybody about the edited call"), nil //nolint:nilerr // a refusal, not a failure
	}
	editors := append(slices.Clone(r.editors), string(vote.by))
	if !f.couldDecide(m.Rule, editors) {
		return deny(DenyPolicy, "nobody would be left to approve the edited call"), nil
	}
	child, err := s.child(f, tool, edited, target, m, editors)
	if err != nil {
		return judgement{}, err
	}
	vote.editedDigest = &child.row.digest
	w := r.moves(Edited, "decision.edited", vote.by, rq.Surface)
	w.before, w.vote, w.config, w.decided, w.child = true, vote, f.revision, vote.by, child.row.id
	w.outbox = []string{OutboxCard}
	w.detail = map[string]any{"digest": shortDigest(r.digest), "child": child.row.id.String(), "child_digest": shortDigest(child.row.digest), "via": vote.authorised}
	child.actor, child.surface = vote.by, rq.Surface
	return judgement{swap: w, child: child}, nil
}

// editedArguments passes the editor's text through the gate, puts hidden values back and holds the whole to the tool's schema.
func editedArguments(tool *rules.Tool, form []byte, original canon.Arguments, snapshot []byte) (canon.Arguments, *Denial) {
	if gate := canon.Read(form); !gate.Readable() {
		return canon.Arguments{}, &Denial{Kind: DenyEditInvalid, Detail: gate.Unreadable}
	}
	var shown Snapshot
	if err := json.Unmarshal(snapshot, &shown); err != nil {
		return canon.Arguments{}, &Denial{Kind: DenyEditInvalid, Detail: "the request cannot be edited"}
	}
	raw, err := restore(form, original, shown.Redacted)
	if err != nil {
		return canon.Arguments{}, &Denial{Kind: DenyEditInvalid, Detail: "not an object that can be read"}
	}
	edited := canon.Read(raw)
	switch {
	case !edited.Readable():
		return edited, &Denial{Kind: DenyEditInvalid, Detail: edited.Unreadable}
	case edited.Digest == original.Digest:
		return edited, &Denial{Kind: DenyEditUnchanged}
	}
	if err := tool.Validate(edited.Value); err != nil {
		d := &Denial{Kind: DenyEditInvalid, Detail: "the edited arguments do not fit the tool's schema"}
		var e *rules.SchemaError
		if errors.As(err, &e) {
			d.Detail, d.Pointer = e.Message, e.Pointer
		}
		return edited, d
	}
	return edited, nil
}

// couldDecide says whether enough people beside the editors and the requester could approve.
func (f *facts) couldDecide(rule *rules.Rule, editors []string) bool {
	could := map[string]bool{}
	for _, u := range rule.Reviewers.Users {
		could[u] = true
	}
	for m, p := range f.pool {
		if slices.Contains(rule.Reviewers.Groups, m.group) && f.groups[m.group].enabled && p.team == f.tenant.Slack.Team {
			could[m.user] = true
		}
	}
	for u := range could {
		by := "slack:" + u
		if f.blocked[u] || rule.ExcludeEditor && slices.Contains(editors, by) || rule.ExcludeRequester && f.req.requester == by {
			delete(could, u)
		}
	}
	return len(could) >= rule.Quorum
}

func (s *Service) child(f *facts, tool *rules.Tool, args canon.Arguments, target string, m rules.Match, editors []string) (*insertion, error) {
	parent, id := f.req, NewID()
	var was Snapshot
	if err := json.Unmarshal(parent.snapshot, &was); err != nil {
		return nil, err
	}
	snapshot, err := takeSnapshot(context.Background(), tool, args, was.Reason)
	if err != nil {
		return nil, err
	}
	row := *parent // the identity of the call is the parent's
	row.id, row.parentID, row.childID, row.replacesID, row.cardID = id, parent.id, ID{}, ID{}, uuid.UUID(id)
	row.argumentsDigest, row.snapshot, row.target = args.Digest, snapshot, target
	row.operationKey = operationKey(parent.tenant, parent.lineageID, parent.tool, target)
	row.rule, row.ruleWhy, row.configRevision = m.Rule.Name, m.Why, f.revision
	row.scope = scopeOf(m.Rule, tool.Kind, true)
	row.editors, row.editDiff = editors, diffOf(parent.snapshot, snapshot)
	row.executeWithin = m.Rule.ExecuteWithin
	row.decideBy = earlier(parent.decideBy, f.now.Add(m.Rule.DecideWithin))
	row.expiresAt = row.decideBy
	row.status, row.version, row.votes, row.createdAt = Pending, 1, 0, f.now
	row.decidedBy, row.decidedAt, row.message, row.reason, row.held = "", nil, "", "", ""
	salt := newSalt()
	row.digest = proposalDigest(salt, &row, args.Digest)
	payload, err := s.sealArguments(parent.tenant, id, salt, args.Raw)
	if err != nil {
		return nil, err
	}
	channel := m.Rule.Channel
	if channel == "" {
		channel = f.tenant.Slack.Channel
	}
	return &insertion{
		row: row, payload: payload, channel: channel, macKey: newMACKey(), outbox: []string{OutboxCard},
		detail: map[string]any{"rule": m.Rule.Name, "revision": f.revision, "digest": shortDigest(row.digest), "parent": parent.id.String()},
	}, nil
}

// diffOf is the unified diff of what reviewers see of the two: hidden values stay hidden in it.
func diffOf(before, after []byte) string {
	pretty := func(snapshot []byte) string {
		var s Snapshot
		var b bytes.Buffer
		if json.Unmarshal(snapshot, &s) != nil || json.Indent(&b, s.Arguments, "", "  ") != nil {
			return ""
		}
		return b.String() + "\n"
	}
	return udiff.Unified("proposed", "edited", pretty(before), pretty(after))
}
