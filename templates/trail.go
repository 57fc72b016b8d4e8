package templates

import (
	"encoding/json"
	"strings"
	"time"
)

// Happening is one row of the audit trail, as it was kept. Kind is the trail's own word ("decision.vote"); Detail is its JSON
// object, of which only what is fit for Slack is read: counts, codes, and the words that people and tools gave, which are
// scanned where they come in. Everything but Kind, From and To is taken for hostile.
type Happening struct {
	At       time.Time
	Kind     string
	From, To string // statuses; "" where nothing moved
	By       string // as in [Card]
	Detail   []byte
}

// Tell says what happened, for somebody who follows a request from its intake to the resume of its run. A kind that it does not
// know is told by its own name: a trail never hides a row.
func Tell(h Happening) Event {
	var d happened
	_ = json.Unmarshal(h.Detail, &d) // what can't be read is not told; the export has it
	l, known := telling(h, d)
	if !known {
		l = compose(raw(h), by(" · ", h.By))
	}
	return Event{At: h.At, Told: l}
}

// happened are the details that are told.
type happened struct {
	Rule     string `json:"rule"`
	Parent   string `json:"parent"`
	Child    string `json:"child"`
	Verb     string `json:"verb"`
	Votes    int    `json:"votes"`
	Quorum   int    `json:"quorum"`
	Why      string `json:"why"`
	Reason   string `json:"reason"` // a reason code; of a rejection and a voided vote, a person's words
	User     string `json:"user"`   // whose vote it was
	Words    string `json:"words"`
	Attempt  int    `json:"attempt"`
	Lookup   bool   `json:"lookup"`
	Error    string `json:"error"`
	Receipt  string `json:"receipt"`
	Happened bool   `json:"happened"`
	Evidence string `json:"evidence"`
	Revision string `json:"agent_revision"`
}

func telling(h Happening, d happened) (Line, bool) {
	group, _, _ := strings.Cut(h.Kind, ".")
	switch group {
	case "approval":
		return tellRequest(h, d)
	case "decision":
		return tellDecision(h, d)
	case "execution":
		return tellExecution(h, d)
	case "evidence":
		return tellEvidence(h, d)
	case "vote":
		return tellVote(h, d)
	case "run":
		return tellRun(h, d)
	}
	return Line{}, false
}

func tellRequest(h Happening, d happened) (Line, bool) {
	switch h.Kind {
	case "approval.requested":
		if d.Parent != "" {
			return compose("Proposed anew with the arguments of ", who(h.By), ", in place of ", code(d.Parent), under(d.Rule)), true
		}
		return compose("Proposed by ", who(h.By), under(d.Rule)), true
	case "approval.expired":
		if h.From == StatusApproved {
			return compose("Expired: " + lowerFirst(Sentence("execute_expired"))), true
		}
		return compose("Expired: " + lowerFirst(Sentence("decide_expired"))), true
	case "approval.revoked":
		l := compose("Revoked by ", who(h.By))
		if d.Reason != "" {
			l = compose(l, ": "+lowerFirst(strings.TrimSuffix(Sentence(d.Reason), ".")))
		}
		return compose(l, saying(d.Words), ". Nothing was executed"), true
	case "approval.revoked_late":
		return compose("Revoked by ", who(h.By), saying(d.Words), ": too late for the attempt that runs; none is made after it"), true
	case "approval.migration_required":
		return compose("Out of date: the agent or the tool changed. It must be proposed again; nothing was executed"), true
	}
	return Line{}, false
}

func under(rule string) Line {
	if rule == "" {
		return Line{}
	}
	return compose(" under the rule ", code(rule))
}

// saying are what somebody said with it.
func saying(s string) Line {
	if s == "" {
		return Line{}
	}
	return compose(", ", quoted(s))
}

func tellDecision(h Happening, d happened) (Line, bool) {
	tally := ""
	if d.Quorum > 1 {
		tally = " (" + itoa(d.Votes) + " of " + itoa(d.Quorum) + ")"
	}
	switch h.Kind {
	case "decision.vote":
		return compose(who(h.By), " approved"+tally+"; more approvals are needed"), true
	case "decision.approved":
		return compose(who(h.By), " approved"+tally+": it may run"), true
	case "decision.rejected":
		return compose(who(h.By), " rejected it", colonQuoted(d.Reason), ". Nothing was executed"), true
	case "decision.edited":
		l := compose(who(h.By), " edited the arguments: replaced by a new request")
		if d.Child != "" {
			l = compose(l, ", ", code(d.Child))
		}
		return l, true
	case "decision.responded":
		return compose(who(h.By), " answered it. Nothing was executed"), true
	case "decision.refused":
		return compose(who(h.By), " tried to "+verb(Facts{Decision: d.Verb})+" it and was refused: ", refusedFor(d.Why)), true
	}
	return Line{}, false
}

func tellVote(h Happening, d happened) (Line, bool) {
	if h.Kind != "vote.voided" {
		return Line{}, false
	}
	l := compose(who(d.User), "'s vote no longer counts: blocked by ", who(h.By))
	if d.Reason != "" {
		l = compose(l, " (", quoted(d.Reason), ")")
	}
	return l, true
}

// refusedFor says why a click was refused, to a third person.
func refusedFor(kind string) Line {
	if s, ok := refusedBecause[kind]; ok {
		return compose(s)
	}
	return compose(code(orDash(kind)))
}

// refusedBecause has each kind of denial of the core.
var refusedBecause = map[string]string{
	"not_reviewer":   "not one of its reviewers",
	"ineligible":     "not a full, active member of the workspace",
	"blocked":        "blocked by an admin",
	"is_requester":   "asked for the call, so someone else decides",
	"is_editor":      "edited it, so someone else decides",
	"already_voted":  "had voted already",
	"vote_void":      "had a vote that a block voided, and gets no second",
	"decided":        "it was decided already",
	"expired":        "it had expired",
	"changed":        "the card showed an older version",
	"tampered":       "the button did not belong to this card",
	"not_yet":        "the card was only just being posted",
	"uncheckable":    "people or groups could not be checked",
	"verb":           "this is not offered for the request",
	"edit_invalid":   "the edited arguments don't fit the tool",
	"edit_unchanged": "nothing had been edited",
	"edit_no_rule":   "no rule covers these arguments",
	"policy":         "the configuration doesn't take this decision any more",
	"reason_missing": "no reason was given",
}

func tellExecution(h Happening, d happened) (Line, bool) {
	n := "Attempt " + itoa(max(d.Attempt, 1))
	switch h.Kind {
	case "execution.held":
		return compose("Held: " + lowerFirst(Sentence(d.Reason)) + " It starts once that is over, if there is time"), true
	case "execution.claimed":
		if d.Lookup {
			return compose("Asked the tool whether it had happened"), true
		}
		l := compose("Checked once more, and started: attempt " + itoa(max(d.Attempt, 1)))
		if strings.HasPrefix(h.By, "agent:") {
			l = compose(l, ", run by ", who(h.By))
		}
		return l, true
	case "execution.succeeded":
		l := compose("Done")
		if d.Receipt != "" {
			l = compose(l, ": the receipt is ", code(d.Receipt))
		}
		return l, true
	case "execution.failed":
		return compose("Failed without any effect", colonQuoted(d.Error)), true
	case "execution.retry":
		return compose(n+" failed without any effect", colonQuoted(d.Error), "; it is tried again"), true
	case "execution.absent":
		return compose("The tool says that it has not happened; it is tried again"), true
	case "execution.unknown":
		return compose(n+" ended without a clear answer", colonQuoted(d.Error), "; it is found out before anything else"), true
	case "execution.report_refused":
		return compose("A report of ", who(h.By), " was not believed", colonQuoted(d.Why), ". The operation is settled as if nothing had been said"), true
	case "execution.uncertain":
		why := d.Why
		if why == "" {
			why = d.Error
		}
		return compose("Nobody knows whether it happened", saidWhy(why), ". Automatic retries stopped"), true
	}
	return Line{}, false
}

// saidWhy is a reason code in words, or whatever else was given, quoted.
func saidWhy(why string) Line {
	if _, ok := sentences[why]; ok {
		return compose(": " + lowerFirst(strings.TrimSuffix(Sentence(why), ".")))
	}
	return colonQuoted(why)
}

func tellEvidence(h Happening, d happened) (Line, bool) {
	switch h.Kind {
	case "evidence.first":
		found := "it did not happen"
		if d.Happened {
			found = "it happened"
		}
		return compose(who(h.By), " found that "+found, colonQuoted(d.Evidence), ". A second person must say the same"), true
	case "evidence.happened":
		return compose(who(h.By), " found that it happened", colonQuoted(d.Evidence), ". Recorded as done"), true
	case "evidence.did_not_happen":
		return compose(who(h.By), " found that it did not happen", colonQuoted(d.Evidence), ". Recorded as failed, without effect"), true
	}
	return Line{}, false
}

func tellRun(h Happening, d happened) (Line, bool) {
	switch h.Kind {
	case "run.told":
		l := compose("The agent was told, and its run goes on")
		if d.Revision != "" {
			l = compose(l, " under ", code(d.Revision))
		}
		return l, true
	case "run.accepted":
		return compose("The agent took the message and has yet to confirm it"), true
	case "run.not_told":
		return compose("The agent could not be told (try "+itoa(max(d.Attempt, 1))+")", colonQuoted(d.Error), "; it is told again later"), true
	case "run.stopped":
		return compose("The agent answered that this run is over; it is told no more"), true
	case "run.dead_lettered":
		return compose("The agent could not be told for 24 hours", colonQuoted(d.Error), ". Given up; an operator can deliver it again"), true
	}
	return Line{}, false
}

// raw tells an unknown kind by its own name, and the statuses it moved between.
func raw(h Happening) Line {
	l := compose(code(orDash(h.Kind)))
	if h.To != "" && h.From != h.To {
		if h.From == "" {
			return compose(l, ": ", code(h.To))
		}
		return compose(l, ": ", code(h.From), " → ", code(h.To))
	}
	return l
}
