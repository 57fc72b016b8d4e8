package intake

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"unicode/utf8"

	"github.com/holdpoint/holdpoint/approvals"
)

// The states of a claim's answer (contract, "also").
const (
	claimExecuting = "executing"
	claimSucceeded = "succeeded"
	claimResponded = "responded"
)

var errClaimAnswer = errors.New("intake: the claim's answer can't be told exactly")

// claim is POST /v1/operations/{approval_id}/claim. It answers with the approved bytes or not at all: a rewritten argument would be
// an effect that nobody approved (I1).
func (s *server) claim(ctx context.Context, c *call, in *claimBody) (answer, error) {
	got, err := s.core.ClaimForAgent(ctx, c.key, c.id, approvals.AgentClaim{
		AttemptID: in.AttemptID, AgentRevision: in.AgentRevision, AppStateVersion: in.AppStateVersion,
	})
	if err != nil {
		return answer{}, err
	}
	out := claimAnswer{State: got.State}
	if got.State != claimResponded {
		if !utf8.Valid(got.Arguments) || len(got.Arguments) == 0 {
			return answer{}, errClaimAnswer
		}
		arguments := string(got.Arguments)
		out.Arguments = &arguments
	}
	switch got.State {
	case claimExecuting:
		out.LeaseToken, out.Epoch, out.OperationKey, out.LeaseExpiresAt = got.LeaseToken, got.Epoch, got.OperationKey, &got.LeaseExpiresAt
	case claimSucceeded, claimResponded:
		if out.Result = got.Result; out.Result == nil {
			out.Result = json.RawMessage("null")
		}
	default:
		return answer{}, errClaimAnswer
	}
	return answer{status: http.StatusOK, body: out}, nil
}

// renew is POST /v1/operations/{approval_id}/renew.
func (s *server) renew(ctx context.Context, c *call, in *leaseBody) (answer, error) {
	until, err := s.core.Renew(ctx, c.key, c.id, in.LeaseToken, in.Epoch)
	return answer{status: http.StatusOK, body: renewAnswer{Epoch: in.Epoch, LeaseExpiresAt: until}}, err
}

// complete is POST /v1/operations/{approval_id}/complete: it happened.
func (s *server) complete(ctx context.Context, c *call, in *completeBody) (answer, error) {
	result := json.RawMessage(in.Result.text)
	if result == nil {
		result = json.RawMessage("null")
	}
	if len(result) > defaultMaxResult {
		return answer{}, tooLarge("/result", "The result is over %d bytes; keep it yourself and report where it is.", defaultMaxResult)
	}
	v, err := s.core.Complete(ctx, c.key, c.id, in.LeaseToken, in.Epoch, result)
	return answer{status: http.StatusOK, body: shown(v)}, err
}

// fail is POST /v1/operations/{approval_id}/fail: it did not happen, or nobody knows.
func (s *server) fail(ctx context.Context, c *call, in *failBody) (answer, error) {
	v, err := s.core.Fail(ctx, c.key, c.id, in.LeaseToken, in.Epoch, approvals.AgentFailure{
		Retryable: in.Retryable && !in.Uncertain, Uncertain: in.Uncertain, Error: in.Error,
	})
	return answer{status: http.StatusOK, body: shown(v)}, err
}
