package intake

import (
	"context"
	"net/http"
	"time"
)

// withdraw is POST /v1/approvals/{approval_id}/revoke: the agent takes its own call back.
func (s *server) withdraw(ctx context.Context, c *call, in *revokeBody) (answer, error) {
	v, err := s.core.Withdraw(ctx, c.key, c.id, in.Reason)
	return answer{status: http.StatusOK, body: shown(v)}, err
}

// redeliver is POST /v1/approvals/{approval_id}/resume. Nothing in the body can change what is resumed, so it takes none.
func (s *server) redeliver(ctx context.Context, c *call, _ *nothingBody) (answer, error) {
	err := s.core.Redeliver(ctx, c.key, c.id)
	return answer{status: http.StatusAccepted, body: redeliverAnswer{ApprovalID: c.id, Accepted: true}}, err
}

// pull is GET /v1/runs/{run_id}/resume: the webhook's body, for agents that nobody can call.
func (s *server) pull(ctx context.Context, c *call) (answer, error) {
	wait, p := c.wait()
	if p != nil {
		return answer{}, p
	}
	ans := answer{status: http.StatusNoContent}
	err := s.poll(ctx, c, wait, func(ctx context.Context, wait time.Duration) error {
		body, _, ok, err := s.core.PullResume(ctx, c.key, c.runID, wait)
		if ok {
			ans = answer{status: http.StatusOK, raw: body}
		}
		return err
	})
	return ans, err
}

// ack is POST /v1/runs/{run_id}/resume/ack: the pulled message was taken.
func (s *server) ack(ctx context.Context, c *call, in *ackBody) (answer, error) {
	err := s.core.AckResume(ctx, c.key, c.runID, in.Pause, in.AgentRevision)
	return answer{status: http.StatusNoContent}, err
}
