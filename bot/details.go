package bot

import (
	"strings"

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
	for _, u := range e.Users {
		d.Reviewers = append(d.Reviewers, templates.Reviewer{ID: u})
	}
	for _, g := range e.Groups {
		d.Reviewers = append(d.Reviewers, templates.Reviewer{ID: g, Name: f.Handles[g]})
	}
	if f.Scope.ExcludeRequester && f.Requester != "" {
		d.Excluded = append(d.Excluded, "the requester")
	}
	if f.Scope.ExcludeEditor && len(f.Editors) > 0 {
		d.Excluded = append(d.Excluded, "whoever edited it")
	}
	for _, v := range f.Votes {
		d.Votes = append(d.Votes, templates.Vote{By: v.By, Decision: v.Decision, At: v.At})
	}
	return d
}

// Timeline puts the audit trail into words. The details of an event stay out: ids, codes and versions are for the
// export, and what a person wrote stands on the card.
func Timeline(events []approvals.Event) []templates.Event {
	out := make([]templates.Event, 0, len(events))
	for _, e := range events {
		out = append(out, templates.Event{At: e.At, What: what(e), By: e.Actor})
	}
	return out
}

func what(e approvals.Event) string {
	words := strings.ReplaceAll(e.Kind, "_", " ")
	if e.To != "" && e.From != e.To {
		to := strings.ReplaceAll(string(e.To), "_", " ")
		if e.From == "" || words == to {
			return words
		}
		return words + ": " + strings.ReplaceAll(string(e.From), "_", " ") + " → " + to
	}
	return words
}
