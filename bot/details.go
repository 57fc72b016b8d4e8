package bot

import (
	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/templates"
)

// DetailsOf is everything known about a request, for the modal. metadata comes back with what is pressed in it.
func DetailsOf(f approvals.CardFacts, e approvals.Explanation, page int, metadata string) templates.Details {
	d := templates.Details{
		Card: CardOf(f), Digest: f.Digest, Why: f.RuleWhy, Page: page, Metadata: metadata, Timeline: Timeline(e.Events),
	}
	if d.Why == "" {
		d.Why = e.RuleText
	}
	if now := ruleNow(e); now != "" {
		d.Why += " " + now
	}
	d.Card.Quorum = e.Quorum
	for _, u := range e.Users {
		d.Reviewers = append(d.Reviewers, templates.Reviewer{ID: u})
	}
	for _, g := range e.Groups {
		d.Reviewers = append(d.Reviewers, templates.Reviewer{ID: g, Name: f.Handles[g]})
	}
	if e.ExcludeRequester && f.Requester != "" {
		d.Excluded = append(d.Excluded, "the requester")
	}
	if e.ExcludeEditor && len(f.Editors) > 0 {
		d.Excluded = append(d.Excluded, "whoever edited it")
	}
	for _, v := range f.Votes {
		d.Votes = append(d.Votes, templates.Vote{By: v.By, Decision: v.Decision, At: v.At, Void: v.Void})
	}
	return d
}

// ruleNow says how the present rule differs from the one that the request was made with, while that still matters.
func ruleNow(e approvals.Explanation) string {
	switch {
	case e.View.Status.Terminal():
		return ""
	case !e.Known:
		return "— the rule may have changed since; what counts is checked at every decision, and again before it runs"
	case e.Rule == "":
		return "— no rule of the present configuration takes this call any more: it can only be rejected"
	case e.Rule != e.View.Rule:
		return "— by now the rule “" + e.Rule + "” covers it"
	}
	return ""
}

// Timeline puts the audit trail into words, oldest first: the same in Slack, in an operator's shell and in the API's `text`.
func Timeline(events []approvals.Event) []templates.Event {
	out := make([]templates.Event, 0, len(events))
	for _, e := range events {
		out = append(out, templates.Tell(templates.Happening{
			At: e.At, Kind: e.Kind, From: string(e.From), To: string(e.To), By: e.Actor, Detail: e.Detail,
		}))
	}
	return out
}
