package templates

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// statusLines says where the request stands, icon and word first. There is always at least one line.
func statusLines(c Card) []Line {
	switch c.Status {
	case StatusPending:
		return []Line{pendingLine(c), pausedLine(c)}
	case StatusApproved:
		return approvedLines(c)
	case StatusEdited:
		l := compose(shout("✏️ Replaced"), " by a new request (new digest)", by(" · edited by ", c.DecidedBy))
		if c.ChildID != "" {
			l = compose(l, " · ", code(c.ChildID))
		}
		return []Line{l}
	case StatusRejected:
		return []Line{compose(shout("⛔ Rejected"), by(" by ", c.DecidedBy), colonQuoted(c.Message), at(c.DecidedAt))}
	case StatusResponded:
		return []Line{compose(shout("💬 Answered"), by(" by ", c.DecidedBy), "; nothing was executed", at(c.DecidedAt))}
	case StatusExpired:
		if c.ReasonCode == "execute_expired" {
			return []Line{compose(shout("⌛ Expired"), "; approved, but not run in time. Nothing was executed"), approvers(c)}
		}
		return []Line{compose(shout("⌛ Expired"), ": nobody decided in time; nothing was executed")}
	case StatusRevoked:
		return revokedLines(c)
	case StatusMigrationRequired:
		return []Line{compose(shout("🧭 Out of date"), ": the agent or the tool changed while this waited; it must be proposed again"), because(c.ReasonCode)}
	case StatusExecuting:
		l := compose(shout("▶️ Running"), ", attempt "+strconv.Itoa(max(c.Attempt, 1)))
		if !unset(c.RevokedAt) {
			return []Line{l, compose("🚫 Revoked", by(" by ", c.RevokedBy), at(c.RevokedAt), ": too late to stop this attempt; it won't be retried"), approvers(c)}
		}
		return []Line{l, approvers(c)}
	case StatusCompleted:
		return completedLines(c)
	case StatusFailed:
		l := compose(shout("❌ Failed"))
		if c.Error != "" {
			l = compose(l, ": ", quoted(c.Error))
		}
		return []Line{l, because(c.ReasonCode), approvers(c)}
	case StatusUncertain:
		return []Line{
			compose(shout("❓ We don't know whether this happened"), "; automatic retries stopped"),
			compose("Look at the target, then say what you found. Both answers ask for evidence"),
			approvers(c),
		}
	}
	return []Line{compose(shout("❔ Unknown state"), "; nothing can be decided here")}
}

func pendingLine(c Card) Line {
	l := compose(shout("⏳ Waiting for approval"))
	switch {
	case c.Unreadable != "":
		l = compose(shout("⏳ Waiting for an admin"), "; it can only be rejected")
	case c.ToolKind == kindQuestion:
		l = compose(shout("⏳ Waiting for an answer"))
	}
	if c.Quorum > 1 {
		l = compose(l, fmt.Sprintf(" · %d of %d", c.Votes, c.Quorum))
		if len(c.VotesBy) > 0 {
			l = compose(l, " (", people(c.VotesBy), ")")
		}
	}
	if !unset(c.DecideBy) {
		l = compose(l, " · expires ", when(c.DecideBy))
	}
	return l
}

func approvedLines(c Card) []Line {
	switch {
	case c.Ledger == ledgerRetryable:
		l := compose(shout("🔁 Failed"), ", retry "+strconv.Itoa(c.Attempt+1))
		if c.MaxAttempts > 0 {
			l = compose(l, " of "+strconv.Itoa(c.MaxAttempts))
		}
		if !unset(c.NextTry) {
			l = compose(l, " at ", when(c.NextTry))
		}
		if c.Error != "" {
			l = compose(l, ": ", quoted(c.Error))
		}
		return []Line{l, approvers(c)}
	case c.Held != "":
		return []Line{heldLine(c), approvers(c), until("Held until it can run, at the latest ", c.ExecuteBy)}
	}
	l := compose(shout("✅ Approved"), approvedBy(c))
	if c.Executor == executorAgent {
		l = compose(l, " · the agent runs it when it resumes")
	} else {
		l = compose(l, " · queued")
	}
	return []Line{l}
}

func heldLine(c Card) Line {
	l := compose(shout("⏸ Approved; held"))
	if !unset(c.HeldSince) {
		l = compose(l, " since ", when(c.HeldSince))
	}
	switch c.Held {
	case "paused":
		l = compose(l, ": paused", by(" by ", c.HeldBy))
	case "window_closed":
		l = compose(l, ": outside the window")
		if !unset(c.HeldUntil) {
			l = compose(l, " (runs ", when(c.HeldUntil), ")")
		}
	default:
		l = compose(l, ": "+lowerFirst(strings.TrimSuffix(Sentence(c.Held), ".")))
	}
	if c.HeldDetail != "" {
		l = compose(l, " · ", quoted(c.HeldDetail))
	}
	return l
}

// revokedLines tells a person's revocation from the system's. After an approval, the latter is a lock: authority was
// there and is gone.
func revokedLines(c Card) []Line {
	switch {
	case c.ReasonCode == "superseded":
		return []Line{compose(shout("🚫 Superseded"), " by a newer request of the same run; nothing was executed")}
	case c.ReasonCode == "withdrawn":
		return []Line{compose(shout("🚫 Withdrawn"), " by the agent", colonQuoted(c.Message), "; nothing was executed")}
	case c.ReasonCode == "revoked_by_admin" || isPerson(c.RevokedBy):
		l := compose(shout("🚫 Revoked"), by(" by ", c.RevokedBy), colonQuoted(c.Message), "; nothing was executed", at(c.RevokedAt))
		if c.ReasonCode == "revoked_by_admin" {
			return []Line{l}
		}
		return []Line{l, because(c.ReasonCode)} // somebody of it was blocked
	case !unset(c.DecidedAt) || c.Votes > 0 && c.Votes >= c.Quorum:
		return []Line{
			compose(shout("🔒 Approved, then blocked"), ": "+blockedBy(c.ReasonCode)+" changed; nothing was executed. A new request is needed"),
			because(c.ReasonCode), approvers(c),
		}
	}
	return []Line{compose(shout("🚫 Revoked"), " by Holdpoint; nothing was executed"), because(c.ReasonCode)}
}

// blockedBy says which of the four kinds of authority went away.
func blockedBy(code string) string {
	switch code {
	case "requester_inactive", "requester_lost_role", "agent_not_allowed", "reviewer_lost_authority":
		return "a permission"
	case "policy_changed":
		return "the rule"
	case "digest_mismatch":
		return "the arguments"
	case "target_changed", "tool_changed", "version_unregistered":
		return "the target or the tool"
	}
	return "permission, rule, arguments or target"
}

func completedLines(c Card) []Line {
	l := compose(shout("✅ Done"))
	if c.Duration > 0 {
		l = compose(l, " in "+seconds(c.Duration))
	}
	if c.Receipt != "" {
		l = compose(l, " · ", code(c.Receipt))
	}
	return []Line{l, approvers(c)}
}

// approvers is the second line of whatever follows an approval.
func approvers(c Card) Line {
	names := approvedBy(c)
	if names.Empty() {
		return Line{}
	}
	return compose("Approved", names, at(c.DecidedAt))
}

func approvedBy(c Card) Line {
	all := c.VotesBy
	if len(all) == 0 && c.DecidedBy != "" {
		all = []string{c.DecidedBy}
	}
	if len(all) == 0 {
		return Line{}
	}
	return compose(" by ", people(all))
}

const maxPeople = 8

func people(ids []string) Line {
	var l Line
	for i, id := range ids {
		switch {
		case i == maxPeople:
			return compose(l, " and "+count(len(ids)-i, "other"))
		case i > 0:
			l = compose(l, ", ")
		}
		l = compose(l, who(id))
	}
	return l
}

func by(prefix, id string) Line {
	if id == "" {
		return Line{}
	}
	return compose(prefix, who(id))
}

func at(t time.Time) Line { return until(" · ", t) }

func until(prefix string, t time.Time) Line {
	if unset(t) {
		return Line{}
	}
	return compose(prefix, when(t))
}

func colonQuoted(s string) Line {
	if s == "" {
		return Line{}
	}
	return compose(": ", quoted(s))
}

func because(code string) Line {
	if code == "" {
		return Line{}
	}
	return compose(Sentence(code))
}

func isPerson(id string) bool { return userID.MatchString(strings.TrimPrefix(id, "slack:")) }

// seconds writes a duration the way one says it: 0.4 s, 1.2 s, 48 s, 3 min 20 s.
func seconds(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return strconv.FormatFloat(max(d, 100*time.Millisecond).Seconds(), 'f', 1, 64) + " s"
	case d < time.Minute:
		return strconv.Itoa(int(d.Round(time.Second).Seconds())) + " s"
	}
	return ago(d)
}

// ago writes whole units, the two largest.
func ago(d time.Duration) string {
	d = max(d.Round(time.Second), 0)
	units := []struct {
		n    int
		name string
	}{{int(d.Hours()) / 24, "d"}, {int(d.Hours()) % 24, "h"}, {int(d.Minutes()) % 60, "min"}, {int(d.Seconds()) % 60, "s"}}
	var out []string
	for _, u := range units {
		if u.n > 0 {
			out = append(out, strconv.Itoa(u.n)+" "+u.name)
		} else if len(out) > 0 {
			break
		}
		if len(out) == 2 {
			break
		}
	}
	if len(out) == 0 {
		return "0 s"
	}
	return strings.Join(out, " ")
}

func lowerFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToLower(s[:1]) + s[1:]
}

func offered(c Card, decision string) bool {
	return c.Status == StatusPending && slices.Contains(decisions(c), decision)
}
