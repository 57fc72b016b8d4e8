package tools

import (
	"context"
	"time"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/approvals/canon"
	"github.com/holdpoint/holdpoint/approvals/rules"
)

// Call is one claimed operation. The claim's commit has made the intent durable before
// a Call exists (I15).
type Call struct {
	Tool          *rules.Tool
	Tenant        *rules.Tenant
	OperationKey  string
	Arguments     canon.Arguments // readable: the approved bytes
	TargetVersion string
	// FirstAttempt says that no earlier attempt can have been sent.
	FirstAttempt bool
	// Settled says that timeout and settle have passed since the last send, so that a
	// lookup's 404 is believed.
	Settled bool
	// Live says that the lease is certainly still held; nil: always. It is asked before
	// every write, must be cheap, and must not go back to true.
	Live func() bool
	// SendBy is when the request's first byte must have left, or none does; the last one
	// must within the tool's timeout after it. The zero time is no bound.
	SendBy time.Time
}

// Tool runs a call, and finds out what became of an earlier one.
type Tool interface {
	// Execute sends the call once. The context ends the wait, not the effect.
	Execute(ctx context.Context, call Call) approvals.Outcome
	// Lookup asks whether an earlier attempt happened; it has no effect of its own.
	Lookup(ctx context.Context, call Call) approvals.Outcome
}

// Executor runs every tool that the worker can run. It is safe for concurrent use.
type Executor struct {
	Secrets rules.RefResolver // headers are resolved at each use
	Egress  Egress
}

var _ Tool = (*Executor)(nil)

// Execute implements [Tool].
func (e *Executor) Execute(ctx context.Context, call Call) approvals.Outcome {
	if out, ok := e.unfit(call); !ok {
		return out
	}
	return e.send(ctx, call)
}

// Lookup implements [Tool].
func (e *Executor) Lookup(ctx context.Context, call Call) approvals.Outcome {
	if out, ok := e.unfit(call); !ok {
		return out
	}
	return e.lookup(ctx, call)
}

// unfit stops a call that must not leave this process. The core has checked all of
// this; a mistake there must not become an effect.
func (e *Executor) unfit(call Call) (approvals.Outcome, bool) {
	switch {
	case call.Tool == nil || call.Tenant == nil || call.Tool.HTTP == nil:
		return unsent("the tool has nothing that the worker runs"), false
	case !call.Arguments.Readable():
		return unsent("the arguments are not readable"), false
	case call.OperationKey == "":
		return unsent("the operation has no key"), false
	}
	return approvals.Outcome{}, true
}

// unsent is an obstacle that may pass: a secret not there yet, an address that does not
// answer.
func unsent(why string) approvals.Outcome {
	return approvals.Outcome{Class: approvals.OutcomeUnsent, Error: "not sent: " + why}
}

// unfitting is a call that can never be sent as it is: trying again would change nothing.
func unfitting(why string) approvals.Outcome {
	return approvals.Outcome{Class: approvals.OutcomeRefused, Error: "not sent: " + why}
}

func unknown(why string) approvals.Outcome {
	return approvals.Outcome{Class: approvals.OutcomeUnknown, Error: why}
}
