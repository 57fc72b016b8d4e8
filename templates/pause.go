package templates

import "time"

// Pause is the kill switch thrown over a tenant, an agent or a tool.
type Pause struct {
	Scope  string // tenant, agent, tool
	Name   string // of the agent or the tool
	By     string // as in [Card]
	At     time.Time
	Reason string
}

// PauseLine says what is paused, by whom, since when and why.
func PauseLine(p Pause) Line {
	l := compose(shout("⏸ Paused"), ": ", PauseSubject(p.Scope, p.Name), by(" · by ", p.By))
	if !unset(p.At) {
		l = compose(l, " since ", when(p.At))
	}
	if p.Reason != "" {
		l = compose(l, " · ", quoted(p.Reason))
	}
	return l
}

// PauseSubject names what a switch stands over.
func PauseSubject(scope, name string) Line {
	switch scope {
	case "agent":
		return compose("the agent ", code(orDash(name)))
	case "tool":
		return compose("the tool ", code(orDash(name)))
	}
	return compose("everything of this tenant")
}

// pausedLine tells whoever is to decide that approving won't start it now.
func pausedLine(c Card) Line {
	if c.Status != StatusPending || c.HeldBy == "" {
		return Line{}
	}
	l := compose(shout("⏸ Paused"), by(" by ", c.HeldBy))
	if c.HeldDetail != "" {
		l = compose(l, " · ", quoted(c.HeldDetail))
	}
	return compose(l, ". It can be decided, and starts only once that is over")
}

// pauseLines are a list's: what is paused now.
func pauseLines(all []Pause) []Line {
	var out []Line
	for i, p := range all {
		if i == maxPauses {
			return append(out, compose("… and "+count(len(all)-i, "more pause")))
		}
		out = append(out, PauseLine(p))
	}
	return out
}

const maxPauses = 5
