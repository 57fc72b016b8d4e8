package templates

import "github.com/slack-go/slack"

// maxRows keeps a list within one screen and a message's room.
const maxRows = 15

// ListMessage answers /approvals list: what is paused, and one short entry a request, in the order given. More says that there
// are others.
func ListMessage(cards []Card, pauses []Pause, more bool) Message {
	paused := pauseBlocks(pauses)
	if len(cards) == 0 {
		m := compose("✅ Nothing waits for a decision.").Message()
		m.Blocks = append(paused, m.Blocks...)
		return m
	}
	rows, left := listBlocks(cards, MaxCard-1_000-size(paused), "row")
	head := compose(shout("Waiting for a decision  "), itoa(len(rows)))
	if left > 0 || more {
		head = compose(shout("Waiting for a decision  "), "the first "+itoa(len(rows)))
	}
	return Message{
		Text:   "Waiting for a decision: " + count(len(cards), "request"),
		Blocks: append(append(paused, richText("head", lines(head))), rows...),
	}
}

func pauseBlocks(pauses []Pause) []slack.Block {
	if len(pauses) == 0 {
		return nil
	}
	return []slack.Block{richText("paused", lines(pauseLines(pauses)...))}
}

// Home is the home tab of one person.
type Home struct {
	Waiting []Card      // that this person may decide
	Recent  []Card      // decided lately
	Pauses  []Pause     // in force
	More    bool        // more wait than are given
	Why     RefusalCode // set: nothing is shown to this person, and this is why
}

// HomeView shows what waits for a person.
func HomeView(h Home) slack.HomeTabViewRequest {
	blocks := []slack.Block{header("waiting", "Waiting for you")}
	if h.Why != "" {
		blocks = append(blocks, richText("refused", lines(Refusal(h.Why, Facts{}))))
		return slack.HomeTabViewRequest{Type: slack.VTHomeTab, Blocks: slack.Blocks{BlockSet: blocks}}
	}
	blocks = append(pauseBlocks(h.Pauses), blocks...)
	if len(h.Waiting) == 0 {
		blocks = append(blocks, richText("none", section(plain("✅ Nothing waits for you."))))
	}
	rows, left := listBlocks(h.Waiting, maxView/4, "waiting")
	blocks = append(blocks, rows...)
	if left > 0 || h.More {
		blocks = append(blocks, contextLine("more", "There is more: /approvals list"))
	}
	if len(h.Recent) > 0 {
		rows, _ = listBlocks(h.Recent, maxView/4, "recent")
		blocks = append(append(blocks, header("recent", "Decided lately")), rows...)
	}
	return slack.HomeTabViewRequest{Type: slack.VTHomeTab, Blocks: slack.Blocks{BlockSet: blocks}}
}

// listBlocks makes an entry a card, as many as fit, and says how many did not.
func listBlocks(cards []Card, room int, id string) (blocks []slack.Block, left int) {
	for i, c := range cards {
		if i == maxRows {
			return blocks, len(cards) - i
		}
		about := compose(shout(first(fit(title(c), 2*valueRoom))))
		foot := compose(code(c.ApprovalID), " · ", code(orDash(c.Tool)))
		if c.Requester != "" {
			foot = compose(foot, " · for ", who(c.Requester))
		}
		b := richText(id+"_"+itoa(i), lines(about, statusLines(c)[0], pausedLine(c), foot))
		if room -= size([]slack.Block{b}); room < 0 {
			return blocks, len(cards) - i
		}
		blocks = append(blocks, b)
	}
	return blocks, 0
}

// AuditMessage answers /approvals audit.
func AuditMessage(c Card, events []Event) Message {
	for most := maxEvents; most > 0; most /= 2 {
		shown := events[max(len(events)-most, 0):]
		out := []Line{compose(shout(first(fit(title(c), 2*valueRoom)))), statusLines(c)[0]}
		if n := len(events) - len(shown); n > 0 {
			out = append(out, compose("… "+count(n, "earlier event")))
		}
		blocks := []slack.Block{richText("audit", lines(append(out, timelineLines(shown)...)...)), footer(c)}
		if size(blocks) <= MaxCard {
			return Message{Text: "The audit trail of " + compose(code(c.ApprovalID)).Mrkdwn(), Blocks: blocks}
		}
	}
	return Fallback(c)
}

// Whoami is what Holdpoint knows of a person.
type Whoami struct {
	Person Person
	Groups []string // names
	InNone bool     // it is known that there are no others
	Admin  bool
	Active bool // may decide at all: a full, active member of the installation's workspace, not blocked
	Why    RefusalCode
}

// WhoamiLine answers /approvals whoami.
func WhoamiLine(w Whoami) Line {
	l := compose("You are ", known(w.Person))
	if w.Admin {
		l = compose(l, ", an admin")
	} else {
		l = compose(l, ", not an admin")
	}
	if len(w.Groups) > 0 {
		l = compose(l, ", in ", listed(w.Groups, " and "))
	} else if w.InNone {
		l = compose(l, ", in no user group")
	} else {
		l = compose(l, ", in groups that we can't read right now")
	}
	if w.Active {
		return compose(l, ". You may decide the requests that name you or one of your groups.")
	}
	return compose(l, ". ", Refusal(w.Why, Facts{}))
}
