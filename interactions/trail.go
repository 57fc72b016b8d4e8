package interactions

import (
	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/templates"
)

// Trail puts an approval's audit trail into words, oldest first: the same in Slack and in an operator's shell.
func Trail(events []approvals.Event) []templates.Event {
	out := make([]templates.Event, 0, len(events))
	for _, e := range events {
		out = append(out, templates.Tell(templates.Happening{
			At: e.At, Kind: e.Kind, From: string(e.From), To: string(e.To), By: e.Actor, Detail: e.Detail,
		}))
	}
	return out
}
