package interactions

import (
	"fmt"
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
	word     string // the word that was not understood, "" where one is missing
	wanted   string // what is missing, or was expected in its place
	happened bool   // reconcile
	reason   string // or evidence
}

// usageError says how a command goes on. hint names the word that was probably meant, unknown the one that is no command and like
// none, noID the one that stands where an approval's id belongs. word is what was not understood, and wanted what belongs there; without a
// word, wanted is missing.
type usageError struct{ usage, hint, unknown, noID, word, wanted string }

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
	on := templates.Join(templates.Words(". The whole command: "), templates.Value(e.usage), templates.Words("."))
	if e.word != "" {
		return templates.Join(templates.Value(e.word), templates.Words(" is not understood here: expected "+e.wanted), on)
	}
	return templates.Join(templates.Words("Something is missing: "+e.wanted), on)
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
		ok = a.readID(w) && a.readEnd(w)
	case "list", "help", "whoami":
		ok = a.readEnd(w)
	case "revoke":
		ok = a.readSelector(w) && a.readReason(w)
	case "pause", "unpause":
		ok = a.readScope(w) && a.readReason(w)
	case "block", "unblock":
		raw, _ := w.raw()
		if a.user, ok = mentioned(raw); !ok {
			ok = a.expected(unescape.Replace(raw), "a person, picked from the list that Slack offers after @")
		}
		ok = ok && a.readReason(w)
	case "reconcile":
		ok = a.readID(w) && a.readOutcome(w) && a.readReason(w)
	}
	if !ok {
		return a, &usageError{usage: usage[a.verb], noID: a.noID, word: a.word, wanted: a.wanted}
	}
	return a, nil
}

// expected notes the word that stands where something else belongs, or that this is missing. It is always false.
func (a *ask) expected(word, what string) bool {
	a.word, a.wanted = word, what
	return false
}

func (a *ask) readEnd(w *words) bool {
	more := w.rest()
	return more == "" || a.expected(more, "nothing more")
}

func (a *ask) readOutcome(w *words) bool {
	switch word := w.next(); word {
	case "succeeded":
		a.happened = true
	case "failed":
	default:
		return a.expected(word, "succeeded (it happened) or failed (it did not)")
	}
	return true
}

func (a *ask) readID(w *words) bool {
	word := w.next()
	id, err := approvals.ParseID(word)
	a.id = id
	if err != nil || id.IsZero() {
		a.noID = word
		return a.expected("", "an approval's id, apr_…")
	}
	return true
}

// maxReason is what a reason may have; a longer one is refused rather than cut.
const maxReason = 1_000

func (a *ask) readReason(w *words) bool {
	a.reason = w.rest()
	what := "a reason"
	if a.verb == "reconcile" {
		what = "the evidence: what shows it"
	}
	switch {
	case a.reason == "":
		return a.expected("", what+", in a few words")
	case len(a.reason) > maxReason:
		return a.expected(a.reason, fmt.Sprintf("%s of at most %d bytes", what, maxReason))
	}
	return true
}

// selectors are what may be revoked.
const selectors = "apr_…, run:R, agent:A, tool:T or by:@user"

// readSelector takes an id, or what all of is to be revoked.
func (a *ask) readSelector(w *words) bool {
	raw, _ := w.raw()
	kind, of, isSelector := strings.Cut(raw, ":")
	if !isSelector {
		id, err := approvals.ParseID(raw)
		a.id, a.sel.ID = id, id
		if err != nil || id.IsZero() {
			a.noID = unescape.Replace(raw)
			return a.expected("", selectors)
		}
		return true
	}
	value := unescape.Replace(of)
	if value == "" {
		return a.expected(unescape.Replace(raw), "a name right after the colon")
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
		return ok || a.expected(value, "a person, picked from the list that Slack offers after @")
	default:
		return a.expected(unescape.Replace(raw), selectors)
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
		return a.name != "" || a.expected("", "the "+a.scope+"'s name")
	}
	return a.expected(a.scope, "tenant, agent NAME or tool NAME")
}
