package approvals

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdpoint/holdpoint/approvals/canon"
)

// Present is whom an approval asks under the configuration that is active now. It is for eyes: what counts is judged again, under locks,
// by Decide and by the claim.
type Present struct {
	Known            bool     `json:"known"`           // false: the rule may have changed, and the rest is what the request was made with
	Revision         int64    `json:"config_revision"` // the active one
	Rule             string   `json:"rule"`            // empty: no rule takes the call any more, or its rule denies it; it can only be rejected
	Users            []string `json:"users"`           // whose vote counts
	Groups           []string `json:"groups"`
	Quorum           int      `json:"quorum"` // the stricter of the request's and the rule's
	ExcludeRequester bool     `json:"exclude_requester"`
	ExcludeEditor    bool     `json:"exclude_editor"`
}

var sqlReadSealed = statement(`SELECT approval_id, arguments FROM approval_payload WHERE approval_id = ANY ($1)`)

// present tells of a tenant's approvals how they stand under the active configuration. Only those of another revision are looked into,
// one at a time, and for presentFor in all; an approval whose arguments or people cannot be read is not Known.
func (s *Service) present(ctx context.Context, pool *pgxpool.Pool, tenant string, rows []*requestRow) (map[ID]*Present, error) {
	out := map[ID]*Present{}
	if len(rows) == 0 {
		return out, nil
	}
	f, err := s.people(ctx, pool, tenant, requesters(rows)...)
	if err != nil {
		return nil, err
	}
	moved := map[ID]*requestRow{}
	var ids []ID
	for _, r := range rows {
		out[r.id], _ = s.standing(f, r, nil) // opens nothing
		if f.revision != r.configRevision && r.unreadable == "" && s.sealer != nil {
			moved[r.id], ids = r, append(ids, r.id)
		}
	}
	if len(ids) == 0 {
		return out, nil
	}
	sealed, err := pool.Query(ctx, sqlReadSealed, ids)
	if err != nil {
		return nil, unavailable(err)
	}
	type column struct {
		ID        ID
		Arguments []byte
	}
	columns, err := pgx.CollectRows(sealed, pgx.RowToStructByPos[column]) // unsealing may wait for a KMS: not with a connection in hand
	if err != nil {
		return nil, unavailable(err)
	}
	ctx, cancel := context.WithTimeout(ctx, presentFor)
	defer cancel()
	type found struct {
		id  ID
		now *Present
	}
	each := make(chan found, len(columns))
	go func() { // one that waits for a KMS keeps nobody waiting for it
		defer close(each)
		for _, c := range columns {
			now, err := s.standing(f, moved[c.ID], c.Arguments)
			if ctx.Err() != nil || errors.Is(err, ErrUnavailable) { // the next ones would wait for the same outage
				return
			}
			each <- found{c.ID, now}
		}
	}()
	for {
		select {
		case one, more := <-each:
			if !more {
				return out, nil
			}
			out[one.id] = one.now
		case <-ctx.Done():
			return out, nil
		}
	}
}

// presentFor bounds how long whoever looks waits for what is present; the rest of a list is not Known.
const presentFor = time.Second

func requesters(rows []*requestRow) []string {
	out := []string{}
	for _, r := range rows {
		if user := slackUser(r.requester); user != "" {
			out = append(out, user)
		}
	}
	return out
}

// standing is present for one approval, by ruleOver as Decide does it. The sealed bytes are held against the row's digest of the
// arguments alone: lists have no whole snapshot. With an error it is not Known.
func (s *Service) standing(f *facts, r *requestRow, sealed []byte) (*Present, error) {
	own := *f
	own.req = r
	f = &own
	out := &Present{
		Revision: f.revision, Rule: r.rule, Users: r.scope.Users, Groups: r.scope.Groups, Quorum: r.scope.Quorum,
		ExcludeRequester: r.scope.ExcludeRequester, ExcludeEditor: r.scope.ExcludeEditor,
	}
	if f.revision != r.configRevision && r.unreadable == "" && (sealed == nil || len(f.unread(r.requester, decideAge)) > 0) {
		return out, nil
	}
	rule, _, err := s.ruleOver(f, func() (canon.Arguments, bool, error) {
		_, args, err := s.openArguments(r.tenant, r.id, sealed)
		return args, args.Digest == r.argumentsDigest, err
	})
	if err != nil {
		return out, err
	}
	out.Known, out.Rule, out.Quorum = true, "", f.quorum(rule)
	who := f.reviewers(rule)
	out.Users, out.Groups = who.Users, who.Groups
	if rule != nil {
		out.Rule = rule.Name
		out.ExcludeRequester, out.ExcludeEditor = out.ExcludeRequester || rule.ExcludeRequester, out.ExcludeEditor || rule.ExcludeEditor
	}
	return out, nil
}

// stands puts what is present into the views of rows. What cannot be found out leaves them as they were made: nobody is kept from looking.
func (s *Service) stands(ctx context.Context, pool *pgxpool.Pool, tenant string, rows []*requestRow, views []View) {
	now, err := s.present(ctx, pool, tenant, rows)
	if err != nil {
		s.log.WarnContext(ctx, "whom approvals ask now cannot be read; they are shown as they were made", "tenant", tenant, "error", err)
		return
	}
	for i := range views {
		views[i].Present = now[views[i].ApprovalID]
	}
}

// asks are the people of a view: those of the present, else those that the request was made with.
func (v View) asks() Present {
	if v.Present != nil {
		return *v.Present
	}
	return Present{
		Rule: v.Rule, Users: v.Scope.Users, Groups: v.Scope.Groups, Quorum: v.Quorum,
		ExcludeRequester: v.Scope.ExcludeRequester, ExcludeEditor: v.Scope.ExcludeEditor,
	}
}

// Needs is how many votes the approval needs, as far as the view knows: the stricter of the request's and the present rule's.
func (v View) Needs() int {
	if v.Present != nil {
		return v.Present.Quorum
	}
	return v.Quorum
}

func scanRequests(rows pgx.Rows) ([]*requestRow, error) {
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (*requestRow, error) { return scanRequest(row) })
}
