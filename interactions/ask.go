package interactions

import (
	"strings"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/templates"
)

// ask is a parsed command.
type ask struct {
	verb     string
	id       approvals.ID
	sel      approvals.Selector // revoke
	scope    string             // pause, unpause: tenant, agent or tool
	name     string
	user     string // block, unblock
	noID     string // what was given for an id
	happened bool   // reconcile
	reason   string // or evidence
}

// usageError says how a command goes on. hint names the word that was probably meant, unknown the one that is no command and like
// none, noID the one that stands where an approval's id belongs.
type usageError struct{ usage, hint, unknown, noID string }

// line is what the person is told.
func (e *usageError) line() templates.Line {
	switch {
	case e.hint != "":
		return templates.Join(templates.Words("There is no such command. Did you mean "), templates.Value("/approvals "+e.hint), templates.Words("?"))
	case e.unknown != "":
		return templates.Refusal(templates.RefuseUnknownCommand, templates.Facts{Detail: e.unknown})
	case e.noID != "":
		return templates.Refusal(templates.RefuseNoID, templates.Facts{Detail: e.noID})
	}
	return templates.Refusal(templates.RefuseUsage, templates.Facts{Detail: e.usage})
}

// verbs are the commands with their usage, those of the help.
func verbs() (names []string, usage map[string]string) {
	usage = map[string]string{}
	for _, c := range templates.Commands() {
		v, _, _ := strings.Cut(c.Usage, " ")
		v, second, two := strings.Cut(v, "|")
		for _, name := range []string{v, second} {
			if _, known := usage[name]; name == "" || known {
				continue
			}
			names = append(names, name)
			usage[name] = "/approvals " + c.Usage
			if two {
				usage[name] = "/approvals " + name + strings.TrimPrefix(c.Usage, v+"|"+second)
			}
		}
	}
	return names, usage
}

// parseAsk reads the text of /approvals. Nothing is guessed: what is not complete is a usage error, and what stops things
// wants a reason.
func parseAsk(text string) (ask, *usageError) {
	w := newWords(text)
	a := ask{verb: strings.ToLower(w.next())}
	names, usage := verbs()
	if a.verb == "" {
		a.verb = "help"
	}
	if _, known := usage[a.verb]; !known {
		return a, &usageError{usage: "/approvals help", hint: closest(a.verb, names), unknown: a.verb}
	}
	ok := true
	switch a.verb {
	case "show", "audit":
		ok = a.readID(w) && w.rest() == ""
	case "list", "help", "whoami":
		ok = w.rest() == ""
	case "revoke":
		ok = a.readSelector(w) && a.readReason(w)
	case "pause", "unpause":
		ok = a.readScope(w) && a.readReason(w)
	case "block", "unblock":
		raw, _ := w.raw()
		a.user, ok = mentioned(raw)
		ok = ok && a.readReason(w)
	case "reconcile":
		ok = a.readID(w)
		switch w.next() {
		case "succeeded":
			a.happened = true
		case "failed":
		default:
			ok = false
		}
		ok = a.readReason(w) && ok
	}
	if !ok {
		return a, &usageError{usage: usage[a.verb], noID: a.noID}
	}
	return a, nil
}

func (a *ask) readID(w *words) bool {
	word := w.next()
	id, err := approvals.ParseID(word)
	a.id = id
	if err != nil || id.IsZero() {
		a.noID = word
		return false
	}
	return true
}

// maxReason is what a reason may have; a longer one is refused rather than cut.
const maxReason = 1_000

func (a *ask) readReason(w *words) bool {
	a.reason = w.rest()
	return a.reason != "" && len(a.reason) <= maxReason
}

// readSelector takes an id, or what all of is to be revoked.
func (a *ask) readSelector(w *words) bool {
	raw, _ := w.raw()
	kind, of, isSelector := strings.Cut(raw, ":")
	if !isSelector {
		id, err := approvals.ParseID(raw)
		a.id, a.sel.ID = id, id
		if err != nil || id.IsZero() {
			a.noID = unescape.Replace(raw)
			return false
		}
		return true
	}
	value := unescape.Replace(of)
	if value == "" {
		return false
	}
	switch strings.ToLower(kind) {
	case "run":
		a.sel.Run = value
	case "agent":
		a.sel.Agent = value
	case "tool":
		a.sel.Tool = value
	case "by":
		user, ok := mentioned(of)
		a.sel.DecidedBy = user
		return ok
	default:
		return false
	}
	return true
}

func (a *ask) readScope(w *words) bool {
	a.scope = strings.ToLower(w.next())
	switch a.scope {
	case "tenant":
		return true
	case "agent", "tool":
		a.name = w.next()
		return a.name != ""
	}
	return false
}
