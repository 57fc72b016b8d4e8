package templates

import (
	"strings"

	"github.com/slack-go/slack"
)

// Command is one form of the slash command.
type Command struct {
	Usage string // after /approvals
	Does  string
	Admin bool // only for admins
}

// Commands are all forms of /approvals, in the order of the help.
func Commands() []Command {
	return []Command{
		{"list", "what waits for a decision", false},
		{"show ID", "one approval as it is now", false},
		{"audit ID", "what happened to it, step by step", false},
		{"whoami", "your groups, and what you may decide", false},
		{"help", "this", false},
		{"revoke ID reason", "stop one, waiting or approved", true},
		{"revoke run:R|agent:A|tool:T|by:@user reason", "stop all of a run, an agent, a tool, or all that a person approved", true},
		{"pause tenant|agent A|tool T reason", "nothing of it runs until it is unpaused; approved calls are held", true},
		{"unpause tenant|agent A|tool T reason", "let it run again", true},
		{"block @user reason", "this person decides nothing from now on", true},
		{"unblock @user reason", "let this person decide again", true},
		{"reconcile ID succeeded|failed evidence", "say what became of an uncertain one", true},
	}
}

// UsageHint is the hint that Slack shows beside the command.
const UsageHint = "list | show ID | help"

// HelpText is the help as plain text, in two columns that a narrow screen may wrap.
func HelpText() string {
	var b strings.Builder
	for _, admin := range []bool{false, true} {
		for _, c := range Commands() {
			if c.Admin == admin {
				b.WriteString("/approvals " + c.Usage + "\n    " + c.Does + "\n")
			}
		}
		if !admin {
			b.WriteString("\nFor admins\n")
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// Help answers /approvals help.
func Help() Message {
	return Message{
		Text: "What /approvals can do",
		Blocks: []slack.Block{
			richText("help", section(bold("What /approvals can do")), preformatted(HelpText())),
			contextLine("help_note", "The ID (apr_…) stands at the foot of every card. Reasons are kept in the audit trail."),
		},
	}
}
