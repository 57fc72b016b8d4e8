package approvals

import (
	"context"
	"log/slog"
	"strings"
	"time"
)

// account counts a committed transition and writes its line. Every swap comes by here once, whoever made it: a reviewer, a rule, an
// admin, an agent, an intake that supersedes, the sweeper or a claim. now is the database's clock at the lock.
func (s *Service) account(ctx context.Context, w *swap, now time.Time) {
	switch {
	case w.vote != nil:
		s.metrics.Decided(string(w.vote.verb))
	case w.audited == Pending && w.to != Pending:
		s.metrics.Decided(string(w.to)) // it ended without a decision
	}
	// What a rule decides by itself has waited for nobody.
	if w.audited == Pending && w.to != Pending && !w.byRule() {
		s.metrics.PendingAge(now.Sub(w.row.createdAt))
	}
	switch {
	case w.to == Expired:
		s.metrics.Expired()
	case w.to == Uncertain && w.audited != Uncertain:
		s.metrics.Uncertain()
	}
	why := w.reason
	if why == "" {
		why = w.held
	}
	if why != "" {
		s.metrics.Blocked(why)
	}
	if why == ReasonDigestMismatch {
		s.metrics.DigestMismatch()
	}
	attrs := []slog.Attr{
		slog.String("event", w.kind), w.row.logIDs(), slog.String("tenant", w.row.tenant), slog.String("by", string(w.actor)),
		slog.String("from", string(w.audited)), slog.String("to", string(w.to)),
	}
	if why != "" {
		attrs = append(attrs, slog.String("reason", string(why)))
	}
	s.log.LogAttrs(context.WithoutCancel(ctx), slog.LevelInfo, "approval changed", attrs...)
}

// byRule says that a rule decided by itself, in the intake's own transaction.
func (w *swap) byRule() bool { return strings.HasPrefix(string(w.actor), "rule:") }

// requested writes the line of an approval that an intake or an edit made.
func (s *Service) requested(ctx context.Context, n *insertion) {
	s.log.LogAttrs(context.WithoutCancel(ctx), slog.LevelInfo, "approval requested",
		n.row.logIDs(), slog.String("tenant", n.row.tenant), slog.String("by", string(n.actor)), slog.String("tool", n.row.tool), slog.String("rule", n.row.rule))
}

// LogIDs names in a log line what it is about, under the same names in every line of every process: approval, run, tool_call,
// operation. What is empty is left out. It stands among the line's own fields.
func LogIDs(approval ID, run, toolCall, operation string) slog.Attr {
	var out []any
	if !approval.IsZero() {
		out = append(out, slog.String("approval", approval.String()))
	}
	for _, id := range []struct{ name, value string }{{"run", run}, {"tool_call", toolCall}, {"operation", operation}} {
		if id.value != "" {
			out = append(out, slog.String(id.name, id.value))
		}
	}
	return slog.Group("", out...)
}

func (r *requestRow) logIDs() slog.Attr { return LogIDs(r.id, r.runID, r.toolCallID, r.operationKey) }

// LogIDs names the approval in a log line.
func (v View) LogIDs() slog.Attr { return LogIDs(v.ApprovalID, v.RunID, v.ToolCallID, v.OperationKey) }

// LogIDs names the claimed operation in a log line.
func (c Claim) LogIDs() slog.Attr { return LogIDs(c.Lease.ID, c.RunID, c.ToolCallID, c.OperationKey) }

// LogIDs names the run in a log line, and all the calls that the message tells of.
func (d Delivery) LogIDs() slog.Attr {
	var approvals, calls, operations []string
	for _, c := range d.Calls {
		approvals, calls, operations = append(approvals, c.Approval.String()), append(calls, c.ToolCallID), append(operations, c.OperationKey)
	}
	return slog.Group("", slog.String("run", d.RunID), slog.Any("approval", approvals), slog.Any("tool_call", calls), slog.Any("operation", operations))
}
