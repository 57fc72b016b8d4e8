package templates

import (
	"strconv"
	"time"
)

// Person is somebody a sentence speaks of. ID is as in [Card]; Name is for places that can't resolve a mention.
type Person struct{ ID, Name string }

// Facts fill the sentence of a refusal. Each code says which it uses; all may be empty.
type Facts struct {
	Decision   string        // what was tried: approve, reject, edit, respond; "" for anything else
	Needs      []string      // names of the groups who may
	Has        []string      // names of the person's own groups
	InNone     bool          // it is known that the person is in no group
	By         Person        // who was first
	Ago        time.Duration // how long ago that was
	Status     string        // what the request is now
	ApprovalID string
	// People who may, beside the groups.
	NeedsPeople []Person
	Again       bool   // the person has said it already
	Detail      string // pointer and problem, or a reference for the log; never a value
}

// RefusalCode names a reason why a click, a form or a command changed nothing.
type RefusalCode string

// The refusals. Unless said otherwise the sentence uses Decision only.
const (
	RefuseNotReviewer     RefusalCode = "not_reviewer" // Needs, NeedsPeople, Has, InNone
	RefuseRequester       RefusalCode = "requester"    // the person asked for the call
	RefuseEditor          RefusalCode = "editor"       // the person edited it
	RefuseVoted           RefusalCode = "voted"        // Ago
	RefuseVoteVoid        RefusalCode = "vote_void"
	RefuseDecided         RefusalCode = "decided"        // Status, By, Ago: the recorded outcome
	RefuseExpired         RefusalCode = "expired"        // Ago
	RefuseOneMoment       RefusalCode = "one_moment"     // the card's own timestamp is not saved yet
	RefuseCantCheck       RefusalCode = "cant_check"     // people or groups can't be read
	RefuseTampered        RefusalCode = "tampered"       // the signed value, the app, channel or message do not match
	RefuseStale           RefusalCode = "stale"          // ApprovalID: the digest is not the one shown
	RefuseOutsider        RefusalCode = "outsider"       // guests, bots, other workspaces, deactivated people
	RefuseBlocked         RefusalCode = "blocked"        // an admin blocked the person
	RefuseNotOffered      RefusalCode = "not_offered"    // the rule or the state does not offer this
	RefuseNotAdmin        RefusalCode = "not_admin"      //
	RefuseSecondPerson    RefusalCode = "second_person"  // reconciliation needs somebody else; By who said the opposite, Again
	RefuseReasonMissing   RefusalCode = "reason_missing" //
	RefuseEditInvalid     RefusalCode = "edit_invalid"   // Detail
	RefuseEditUnchanged   RefusalCode = "edit_unchanged" //
	RefuseEditNoRule      RefusalCode = "edit_no_rule"   //
	RefuseEditNobody      RefusalCode = "edit_nobody"    // nobody asked, or nobody left to approve
	RefuseEditTooLong     RefusalCode = "edit_too_long"  //
	RefuseNotFound        RefusalCode = "not_found"      // ApprovalID
	RefuseNotUncertain    RefusalCode = "not_uncertain"  // Status
	RefuseTooLateToRevoke RefusalCode = "too_late"       // Status, ApprovalID: its own, or the one that replaced it
	RefuseUnclear         RefusalCode = "unclear"        // the commit's answer was lost
	RefuseBusy            RefusalCode = "busy"           // a lock or a rate limit
	RefuseUsage           RefusalCode = "usage"          // Detail: the usage line
	RefuseUnknownCommand  RefusalCode = "no_command"     // Detail: the word
	RefuseNoID            RefusalCode = "no_id"          // Detail: the word
	RefuseInternal        RefusalCode = "internal"       // Detail: a reference for the log
)

// Refusal says why nothing changed, in one or two sentences to the person who tried. An unknown code reads as
// RefuseInternal.
func Refusal(code RefusalCode, f Facts) Line {
	switch code {
	case RefuseNotReviewer:
		return notReviewer(f)
	case RefuseDecided:
		return decided(f)
	case RefuseRequester:
		return compose("You can't " + verb(f) + " this: you asked for it, so someone else decides.")
	case RefuseEditor:
		return compose("You can't " + verb(f) + " this: you edited it, so someone else decides.")
	case RefuseVoted:
		return compose("You already voted" + since(f.Ago) + ". It counts once.")
	case RefuseVoteVoid:
		return compose("Your vote on this was voided when you were blocked, and there is one vote a person. Others can still decide; a new request takes your vote again.")
	case RefuseExpired:
		return compose("Too late: it expired" + since(f.Ago) + ". Nothing was executed.")
	case RefuseStale:
		return compose("This card shows an older version, so nothing was decided. See the current one with ", show(f), ".")
	case RefuseEditInvalid:
		return compose("These arguments don't fit the tool: ", part{kind: quote, text: first(fit(orDash(f.Detail), quoteRoom))}, ". Nothing changed.")
	case RefuseNotFound:
		return compose("There is no approval ", part{kind: value, text: first(fit(orDash(f.ApprovalID), valueRoom))}, " here.")
	case RefuseNotUncertain:
		return compose("Nothing to reconcile: this is " + statusWord(f.Status) + ".")
	case RefuseTooLateToRevoke:
		switch f.Status {
		case StatusEdited:
			return compose("Nothing was changed: this was replaced by ", part{kind: value, text: first(fit(orDash(f.ApprovalID), valueRoom))}, "; revoke that one.")
		case StatusUncertain:
			return compose("Nothing was changed: nobody knows whether this happened, so there is nothing left to revoke. Say what you find with ",
				part{kind: value, text: "/approvals reconcile " + first(fit(orDash(f.ApprovalID), nameRoom)) + " succeeded|failed evidence"}, ".")
		}
		return compose("Already over: this is " + statusWord(f.Status) + ". Nothing was changed.")
	case RefuseUsage:
		return compose("That command isn't complete. Try ", part{kind: value, text: first(fit(orDash(f.Detail), valueRoom))}, " or /approvals help.")
	case RefuseUnknownCommand:
		return compose("There is no such command as ", part{kind: value, text: first(fit(orDash(f.Detail), nameRoom))}, ". Try list, show ID, whoami or ", part{kind: value, text: "/approvals help"}, ".")
	case RefuseNoID:
		return compose(part{kind: value, text: first(fit(orDash(f.Detail), nameRoom))}, " is no approval's id. It begins with apr_ and stands at the foot of every card.")
	case RefuseSecondPerson:
		switch {
		case f.By != (Person{}):
			return compose("Noted. ", known(f.By), " said the opposite: it is settled when two admins say the same.")
		case f.Again:
			return compose("You have said so already; a second admin must say it.")
		}
	case RefuseNotOffered:
		return compose("You can't " + verb(f) + " this: it isn't offered for this request.")
	}
	if s, ok := refusals[code]; ok {
		return compose(s)
	}
	l := compose("Something went wrong on our side, and nothing was decided. Please try again.")
	if f.Detail != "" {
		l = compose(l, " Reference: ", part{kind: value, text: first(fit(f.Detail, valueRoom))})
	}
	return l
}

// refusals whose sentence is always the same.
var refusals = map[RefusalCode]string{
	RefuseOneMoment:     "One moment: this card is just being posted. Please click again in a few seconds.",
	RefuseCantCheck:     "We can't check you yet: your groups haven't been read. Nothing was decided; please try again in a minute.",
	RefuseTampered:      "This button doesn't belong to this card, so nothing was decided. Please use the original card.",
	RefuseOutsider:      "Only full, active members of this workspace can decide.",
	RefuseBlocked:       "An admin has blocked you from deciding.",
	RefuseNotAdmin:      "Only Holdpoint's admins can do this.",
	RefuseSecondPerson:  "This rule asks for a second person here: someone else has to confirm what you found.",
	RefuseReasonMissing: "Please say why, in a few words.",
	RefuseEditUnchanged: "Nothing was changed, so there is nothing to propose.",
	RefuseEditNoRule:    "No rule covers these arguments, so the edit wasn't made.",
	RefuseEditNobody:    "With these arguments nobody could approve it, so the edit wasn't made.",
	RefuseEditTooLong:   "These arguments are too long to edit in Slack. Reject it and say what should change.",
	RefuseUnclear:       "We couldn't confirm whether that was recorded. The card will show it in a moment; please don't click again before.",
	RefuseBusy:          "It's busy here: nothing was decided. Please try again in a few seconds.",
}

// RefusalCodes lists every code, for tables that must be complete.
func RefusalCodes() []RefusalCode {
	return []RefusalCode{
		RefuseNotReviewer, RefuseRequester, RefuseEditor, RefuseVoted, RefuseVoteVoid, RefuseDecided, RefuseExpired, RefuseOneMoment, RefuseCantCheck,
		RefuseTampered, RefuseStale, RefuseOutsider, RefuseBlocked, RefuseNotOffered, RefuseNotAdmin, RefuseSecondPerson,
		RefuseReasonMissing, RefuseEditInvalid, RefuseEditUnchanged, RefuseEditNoRule, RefuseEditNobody, RefuseEditTooLong, RefuseNotFound,
		RefuseNotUncertain, RefuseTooLateToRevoke, RefuseUnclear, RefuseBusy, RefuseUsage, RefuseUnknownCommand, RefuseNoID, RefuseInternal,
	}
}

// notReviewer: "You can't approve this: it needs release-managers or @ana; you are in support."
func notReviewer(f Facts) Line {
	l := compose("You can't " + verb(f) + " this")
	var who []Line
	for _, name := range f.Needs {
		who = append(who, compose(part{kind: value, text: orDash(first(fit(name, valueRoom)))}))
	}
	for _, p := range f.NeedsPeople {
		who = append(who, compose(known(p)))
	}
	if len(who) > 0 {
		l = compose(l, ": it needs ", listing(who, " or "))
	} else {
		l = compose(l, ": you aren't one of its reviewers")
	}
	switch {
	case len(f.Has) > 0:
		l = compose(l, "; you are in ", listed(f.Has, " and "))
	case f.InNone && len(f.Needs) > 0:
		l = compose(l, "; you are in no user group")
	}
	return compose(l, ".")
}

// decided: "Already approved by Ana 12 s ago."
func decided(f Facts) Line {
	l := compose("Already " + statusWord(f.Status))
	if f.By != (Person{}) {
		l = compose(l, " by ", known(f.By))
	}
	return compose(l, since(f.Ago)+".")
}

// Recorded answers a vote that counted. Votes and quorum are those after it.
func Recorded(decision string, votes, quorum int) Line {
	switch {
	case decision == DecisionApprove && votes < quorum:
		return compose("Your approval counts: " + strconv.Itoa(votes) + " of " + strconv.Itoa(quorum) + ".")
	case decision == DecisionApprove:
		return compose("Approved. It is checked once more before it runs.")
	case decision == DecisionReject:
		return compose("Rejected. The agent is told why.")
	case decision == DecisionEdit:
		return compose("Proposed anew with your arguments. It needs approval again.")
	case decision == DecisionRespond:
		return compose("Answered. The agent gets your words; nothing is executed.")
	}
	return compose("Recorded.")
}

func verb(f Facts) string {
	switch f.Decision {
	case DecisionApprove, DecisionReject, DecisionEdit:
		return f.Decision
	case DecisionRespond:
		return "answer"
	}
	return "do"
}

func statusWord(status string) string {
	if w, ok := statusWords[status]; ok {
		return w
	}
	return "decided"
}

var statusWords = map[string]string{
	StatusPending: "still waiting for a decision", StatusApproved: "approved", StatusRejected: "rejected", StatusEdited: "replaced by an edit",
	StatusResponded: "answered", StatusExpired: "expired", StatusRevoked: "revoked", StatusMigrationRequired: "out of date",
	StatusExecuting: "approved and running", StatusCompleted: "approved and done", StatusFailed: "approved and failed",
	StatusUncertain: "approved, with an unknown outcome",
}

func since(d time.Duration) string {
	if d <= 0 {
		return ""
	}
	return " " + ago(d) + " ago"
}

func show(f Facts) part {
	return part{kind: value, text: "/approvals show " + first(fit(f.ApprovalID, valueRoom))}
}

const maxNames = 6

// listed writes "a, b or c".
func listed(names []string, last string) Line {
	all := make([]Line, len(names))
	for i, name := range names {
		all[i] = compose(part{kind: value, text: orDash(first(fit(name, valueRoom)))})
	}
	return listing(all, last)
}

func listing(all []Line, last string) Line {
	var l Line
	n := min(len(all), maxNames)
	for i, one := range all[:n] {
		switch {
		case i == 0:
		case i == n-1 && n == len(all):
			l = compose(l, last)
		default:
			l = compose(l, ", ")
		}
		l = compose(l, one)
	}
	if n < len(all) {
		l = compose(l, last+count(len(all)-n, "other"))
	}
	return l
}
