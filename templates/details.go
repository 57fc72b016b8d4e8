package templates

import (
	"strconv"
	"time"

	"github.com/slack-go/slack"
)

// Details is everything known about a request, for the one who wants to see all of it before deciding.
type Details struct {
	Card      Card
	Digest    string     // the proposal's, in full
	Why       string     // why the rule matched
	Reviewers []Reviewer // who may decide
	Excluded  []string   // who may not although they could: requester, editor
	Votes     []Vote
	Timeline  []Event // oldest first
	Page      int     // of the arguments, from 0; out of range is the nearest
	Metadata  string  // the view's private_metadata
}

// Reviewer is a user or a user group; Name is shown where ID is not a Slack id.
type Reviewer struct{ ID, Name string }

// Vote is one recorded vote.
type Vote struct {
	By       string
	Decision string
	At       time.Time
	Void     bool // its person was blocked after it: it counts no more
}

// Plain is the vote for a terminal.
func (v Vote) Plain() string { return v.line().Plain() }

func (v Vote) line() Line {
	said := voteWord(v.Decision)
	if v.Void {
		said += ", void since the block"
	}
	return compose(who(v.By), " · "+said, at(v.At))
}

// Event is one line of the audit trail, in words.
type Event struct {
	At     time.Time
	Told   Line // the whole of it, as [Tell] says it; in the place of the rest
	What   string
	By     string
	Detail string // untrusted, redacted
}

// Plain is the event without its time, for a terminal or an API.
func (e Event) Plain() string { return e.line().Plain() }

func (e Event) line() Line {
	if !e.Told.Empty() {
		return e.Told
	}
	l := compose(part{kind: words, text: orDash(first(fit(e.What, valueRoom)))}, by(" · ", e.By))
	if e.Detail != "" {
		l = compose(l, " · ", quoted(e.Detail))
	}
	return l
}

const (
	maxEvents    = 25
	maxVotes     = 20
	maxReviewers = 20
	detailRoom   = 1_000
)

// DetailsModal shows the arguments in full, in pages; rule, reviewers, votes, digest and timeline stand on the first
// page, what can be decided on the last: whoever approves has had all of it on the screen.
func DetailsModal(d Details) slack.ModalViewRequest {
	pages := documentPages(d.Card)
	page := min(max(d.Page, 0), len(pages)-1)
	m := &measure{percent: 100}
	blocks := []slack.Block{header("title", headline(d.Card, m)), richText("status", lines(statusLines(d.Card)...))}
	if page == 0 {
		blocks = append(blocks, richText("fields", lines(fieldLines(d.Card, m)...)))
		blocks = append(blocks, fullEditBlocks(d.Card)...)
		blocks = append(blocks, linkBlocks(d.Card, m)...)
		blocks = append(blocks, authorityBlocks(d)...)
		blocks = append(blocks, redactedNote(d.Card)...)
	}
	blocks = append(blocks, contextLine("page", pageNote(d.Card, page, len(pages))))
	for i, chunk := range pages[page] {
		blocks = append(blocks, richText("arguments_"+itoa(i), preformatted(chunk)))
	}
	if nav := navigation(page, len(pages)); nav != nil {
		blocks = append(blocks, nav)
	}
	if page == len(pages)-1 {
		if actions := detailsActions(d.Card); actions != nil {
			blocks = append(blocks, actions)
		}
	}
	if page == 0 {
		blocks = append(blocks, timelineBlocks(d.Timeline)...)
	}
	blocks = append(blocks, footer(d.Card))
	return slack.ModalViewRequest{
		Type: slack.VTModal, CallbackID: ViewDetails, PrivateMetadata: d.Metadata, Title: literal("Details"), Close: literal("Close"),
		Blocks: slack.Blocks{BlockSet: blocks},
	}
}

// DetailsPages is the number of pages that [DetailsModal] has for a card, at least 1.
func DetailsPages(c Card) int { return len(documentPages(c)) }

func pageNote(c Card, page, pages int) string {
	what := "Everything that was proposed, nothing cut"
	if pages > 1 {
		what += " · page " + itoa(page+1) + " of " + itoa(pages)
		if page < pages-1 && offered(c, DecisionApprove) {
			what += " · approve on the last page"
		}
	}
	return what
}

func navigation(page, pages int) slack.Block {
	var elements []slack.BlockElement
	if page > 0 {
		elements = append(elements, slack.NewButtonBlockElement(ActionPage+"_prev", strconv.Itoa(page-1), literal("‹ Page "+itoa(page))))
	}
	if page < pages-1 {
		elements = append(elements, slack.NewButtonBlockElement(ActionPage+"_next", strconv.Itoa(page+1), literal("Page "+itoa(page+2)+" ›")))
	}
	if len(elements) == 0 {
		return nil
	}
	return slack.NewActionBlock("pages", elements...)
}

// detailsActions is the card's own row of buttons without Details.
func detailsActions(c Card) slack.Block {
	values := map[string]string{}
	for action, v := range c.Values {
		if action != ActionDetails {
			values[action] = v
		}
	}
	c.Values = values
	return actionBlock(c, false)
}

func authorityBlocks(d Details) []slack.Block {
	out := []Line{compose(shout("Who may decide  "), reviewers(d.Reviewers))}
	if d.Card.Quorum > 1 {
		out = append(out, compose(shout("Quorum  "), itoa(d.Card.Quorum)+" approvals of the same digest"))
	}
	if len(d.Excluded) > 0 {
		out = append(out, compose(shout("Excluded  "), listed(d.Excluded, " and ")))
	}
	if d.Why != "" {
		out = append(out, compose(shout("Why this rule  "), part{kind: value, text: first(fit(d.Why, detailRoom))}))
	}
	if d.Digest != "" {
		out = append(out, compose(shout("Digest  "), part{kind: value, text: first(fit(d.Digest, nameRoom))}))
	}
	for i, v := range d.Votes {
		if i == maxVotes {
			out = append(out, compose("… and "+count(len(d.Votes)-i, "more vote")))
			break
		}
		out = append(out, compose("🗳 ", v.line()))
	}
	return []slack.Block{richText("authority", lines(out...))}
}

func reviewers(all []Reviewer) Line {
	if len(all) == 0 {
		return compose("nobody: the rule names no reviewer")
	}
	var l Line
	for i, r := range all {
		if i == maxReviewers {
			return compose(l, " and "+count(len(all)-i, "other"))
		}
		if i > 0 {
			l = compose(l, ", ")
		}
		if isPerson(r.ID) {
			l = compose(l, known(Person(r)))
		} else if r.Name != "" {
			l = compose(l, code(r.Name))
		} else {
			l = compose(l, code(orDash(r.ID)))
		}
	}
	return l
}

func voteWord(decision string) string {
	switch decision {
	case DecisionApprove:
		return "approved"
	case DecisionReject:
		return "rejected"
	case DecisionEdit:
		return "edited"
	case DecisionRespond:
		return "answered"
	}
	return "voted"
}

func timelineBlocks(events []Event) []slack.Block {
	if len(events) == 0 {
		return nil
	}
	return []slack.Block{richText("timeline", lines(timelineLines(events)...))}
}

// timelineLines shows the latest events, oldest first.
func timelineLines(events []Event) []Line {
	out := []Line{compose(shout("Timeline"))}
	if n := len(events) - maxEvents; n > 0 {
		out = append(out, compose("… "+count(n, "earlier event")))
		events = events[n:]
	}
	for _, e := range events {
		out = append(out, compose(when(e.At), "  ", e.line()))
	}
	return out
}
