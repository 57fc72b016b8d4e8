package intake

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/holdpoint/holdpoint/approvals"
)

// The API is for the core that there is.
var _ Core = (*approvals.Service)(nil)

const (
	aliceBearer = "hp_releaseagentsowncredential"
	otherBearer = "hp_anotheragentscredential"
	operation   = "op-key-1"
)

// memory is a core without a database: what the edge can see of the real one, and nothing more.
type memory struct {
	mu      sync.Mutex
	keys    map[string]approvals.Key
	views   map[approvals.ID]approvals.View
	args    map[approvals.ID][]byte
	leases  map[approvals.ID]approvals.AgentClaimAnswer
	pauses  map[string]approvals.Pause
	resume  map[string][]byte
	acked   map[string]string
	changed chan struct{}
	watched chan time.Duration // told whenever a wait begins

	fail    error // every method but Authenticate answers with it
	authErr error
	panics  any
	slow    func(context.Context) error // what Submit does first

	intakes  []approvals.Intake
	filter   approvals.ListFilter
	failure  approvals.AgentFailure
	claimed  approvals.AgentClaim
	reason   string
	authed   int
	redialed int
}

func newMemory() *memory {
	return &memory{
		keys: map[string]approvals.Key{
			aliceBearer: {ID: "k1", Tenant: "acme", Agent: "release-agent"},
			otherBearer: {ID: "k2", Tenant: "globex", Agent: "other-agent"},
		},
		views: map[approvals.ID]approvals.View{}, args: map[approvals.ID][]byte{}, leases: map[approvals.ID]approvals.AgentClaimAnswer{},
		pauses: map[string]approvals.Pause{}, resume: map[string][]byte{}, acked: map[string]string{},
		changed: make(chan struct{}), watched: make(chan time.Duration, 1024),
	}
}

func (m *memory) Authenticate(_ context.Context, bearer string) (approvals.Key, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.authed++
	if m.authErr != nil {
		return approvals.Key{}, m.authErr
	}
	key, ok := m.keys[bearer]
	if !ok {
		return key, &approvals.Refusal{Code: approvals.CodeUnauthorized, Detail: "No such key."}
	}
	return key, nil
}

func (m *memory) begin() error {
	if m.panics != nil {
		panic(m.panics)
	}
	return m.fail
}

func (m *memory) find(key approvals.Key, id approvals.ID) (approvals.View, error) {
	if err := m.begin(); err != nil {
		return approvals.View{}, err
	}
	v, ok := m.views[id]
	if !ok || v.Tenant != key.Tenant || v.Agent != key.Agent {
		return approvals.View{}, approvals.ErrNotFound
	}
	return v, nil
}

func (m *memory) Submit(ctx context.Context, key approvals.Key, in approvals.Intake) (approvals.Pause, error) {
	if m.slow != nil {
		if err := m.slow(ctx); err != nil {
			return approvals.Pause{}, err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.begin(); err != nil {
		return approvals.Pause{}, err
	}
	m.intakes = append(m.intakes, in)
	name := fmt.Sprintf("%s %q %q %q", key.ID, in.RunID, in.PauseKey, in.State) // an intake prints nothing of itself
	for _, c := range in.Calls {
		name += fmt.Sprintf(" %q %q %q %q", c.ToolCallID, c.Tool, c.CallPath, c.Arguments)
	}
	if p, ok := m.pauses[name]; ok {
		p.Repeat = true
		return p, nil
	}
	p := approvals.Pause{RunID: in.RunID, Pause: 1}
	for _, c := range in.Calls {
		v := approvals.View{
			ApprovalID: approvals.NewID(), Tenant: key.Tenant, Agent: key.Agent, RunID: in.RunID, Pause: 1, ToolCallID: c.ToolCallID, Tool: c.Tool,
			AgentPath: c.AgentPath, CallPath: c.CallPath, Status: approvals.Pending, Version: 1, Snapshot: json.RawMessage(`{"title":"a <b>"}`),
		}
		m.views[v.ApprovalID], m.args[v.ApprovalID] = v, c.Arguments
		p.Approvals = append(p.Approvals, v)
	}
	m.pauses[name] = p
	return p, nil
}

func (m *memory) Get(_ context.Context, key approvals.Key, id approvals.ID) (approvals.View, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.find(key, id)
}

// set changes an approval and wakes the watchers.
func (m *memory) set(id approvals.ID, change func(*approvals.View)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v := m.views[id]
	change(&v)
	v.Version++
	m.views[id] = v
	close(m.changed)
	m.changed = make(chan struct{})
}

func (m *memory) Watch(ctx context.Context, key approvals.Key, id approvals.ID, since int64, wait time.Duration, follow bool) (approvals.View, error) {
	m.mu.Lock()
	v, err := m.find(key, id)
	if err == nil && follow && v.ChildID != nil {
		v, err = m.find(key, *v.ChildID)
	}
	changed := m.changed
	m.mu.Unlock()
	if err != nil || v.Version > since || wait == 0 {
		return v, err
	}
	m.watched <- wait
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	case <-ctx.Done():
		return v, ctx.Err()
	}
	return m.Get(ctx, key, v.ApprovalID)
}

func (m *memory) List(_ context.Context, key approvals.Key, f approvals.ListFilter) ([]approvals.View, string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.begin(); err != nil {
		return nil, "", err
	}
	m.filter = f
	var out []approvals.View
	for _, v := range m.views {
		if v.Agent == key.Agent && v.Tenant == key.Tenant && (f.RunID == "" || v.RunID == f.RunID) && (f.Status == "" || v.Status == f.Status) {
			out = append(out, v)
		}
	}
	slices.SortFunc(out, func(a, b approvals.View) int { return strings.Compare(b.ApprovalID.String(), a.ApprovalID.String()) })
	if len(out) > f.Limit {
		return out[:f.Limit], "more", nil
	}
	return out, "", nil
}

func (m *memory) Events(_ context.Context, key approvals.Key, id approvals.ID) ([]approvals.Event, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, err := m.find(key, id); err != nil {
		return nil, err
	}
	return []approvals.Event{{Kind: "submitted", To: approvals.Pending, Actor: "agent:" + key.Agent, Surface: "api"}}, nil
}

func (m *memory) Withdraw(_ context.Context, key approvals.Key, id approvals.ID, reason string) (approvals.View, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, err := m.find(key, id)
	if err != nil {
		return v, err
	}
	m.reason = reason
	v.Status, v.ReasonCode = approvals.Revoked, approvals.ReasonWithdrawn
	m.views[id] = v
	return v, nil
}

func (m *memory) Redeliver(_ context.Context, key approvals.Key, id approvals.ID) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.redialed++
	_, err := m.find(key, id)
	return err
}

func (m *memory) PullResume(ctx context.Context, key approvals.Key, runID string, wait time.Duration) ([]byte, int, bool, error) {
	m.mu.Lock()
	err := m.begin()
	body, ok := m.resume[key.Agent+" "+runID]
	known := ok
	for _, v := range m.views {
		known = known || v.Tenant == key.Tenant && v.Agent == key.Agent && v.RunID == runID
	}
	m.mu.Unlock()
	if err == nil && !known {
		err = approvals.ErrNotFound
	}
	if err != nil || ok || wait == 0 {
		return body, 1, ok, err
	}
	m.watched <- wait
	<-ctx.Done()
	return nil, 0, false, ctx.Err()
}

func (m *memory) AckResume(_ context.Context, key approvals.Key, runID string, pause int, revision string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.begin(); err != nil {
		return err
	}
	m.acked[fmt.Sprintf("%s %s %d", key.Agent, runID, pause)] = revision
	return nil
}

func (m *memory) ClaimForAgent(_ context.Context, key approvals.Key, id approvals.ID, in approvals.AgentClaim) (approvals.AgentClaimAnswer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, err := m.find(key, id)
	if err != nil {
		return approvals.AgentClaimAnswer{}, err
	}
	m.claimed = in
	switch v.Status {
	case approvals.Approved:
		a := approvals.AgentClaimAnswer{
			State: claimExecuting, LeaseToken: uuid.NewString(), Epoch: 1, OperationKey: operation, Arguments: m.args[id],
			LeaseExpiresAt: time.Date(2026, 7, 24, 12, 0, 0, 0, time.UTC),
		}
		v.Status = approvals.Executing
		m.views[id], m.leases[id] = v, a
		return a, nil
	case approvals.Completed:
		return approvals.AgentClaimAnswer{State: claimSucceeded, Arguments: m.args[id], Result: v.Result}, nil
	case approvals.Responded:
		return approvals.AgentClaimAnswer{State: claimResponded, Result: v.Result}, nil
	}
	return approvals.AgentClaimAnswer{}, &approvals.Refusal{Code: approvals.CodeNotExecutable, State: string(v.Status), Detail: "Not now."}
}

func (m *memory) fenced(key approvals.Key, id approvals.ID, token string, epoch int64) (approvals.View, error) {
	v, err := m.find(key, id)
	if l := m.leases[id]; err == nil && (l.LeaseToken != token || l.Epoch != epoch) {
		err = fmt.Errorf("fence: %w", approvals.ErrStale)
	}
	return v, err
}

func (m *memory) Renew(_ context.Context, key approvals.Key, id approvals.ID, token string, epoch int64) (time.Time, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, err := m.fenced(key, id, token, epoch)
	return time.Date(2026, 7, 24, 12, 1, 0, 0, time.UTC), err
}

func (m *memory) Complete(_ context.Context, key approvals.Key, id approvals.ID, token string, epoch int64, result json.RawMessage) (approvals.View, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, err := m.fenced(key, id, token, epoch)
	if err != nil {
		return v, err
	}
	v.Status, v.Result = approvals.Completed, result
	m.views[id] = v
	return v, nil
}

func (m *memory) Fail(_ context.Context, key approvals.Key, id approvals.ID, token string, epoch int64, f approvals.AgentFailure) (approvals.View, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, err := m.fenced(key, id, token, epoch)
	if err != nil {
		return v, err
	}
	m.failure = f
	v.Status = approvals.Failed
	m.views[id] = v
	return v, nil
}
