package templates

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slack-go/slack"
)

// Line is a sentence as data: our own words, other people's values, people and moments, each known for what it is, so
// that every surface escapes them in its own way. The zero Line is empty.
type Line struct{ parts []part }

type part struct {
	kind kind
	text string
	name string // of a person or group, where one is known
	at   time.Time
}

type kind int

const (
	words  kind = iota // ours
	strong             // ours, bold
	value              // untrusted, set as code
	quote              // untrusted, in quotation marks
	person             // a Slack user id
	moment
)

// Room for the values of a line, in characters.
const (
	valueRoom = 120
	quoteRoom = 300
)

var (
	userID  = regexp.MustCompile(`^[UW][A-Z0-9]{2,20}$`)
	groupID = regexp.MustCompile(`^S[A-Z0-9]{2,20}$`)
)

func say(s string) part            { return part{kind: words, text: s} }
func shout(s string) part          { return part{kind: strong, text: s} }
func code(s string) part           { return part{kind: value, text: first(fit(s, valueRoom))} }
func quoted(s string) part         { return part{kind: quote, text: first(fit(s, quoteRoom))} }
func when(t time.Time) part        { return part{kind: moment, at: t} }
func first(s string, _ int) string { return s }

// who names an actor as the rows do: a Slack user ("U0ANA" or "slack:U0ANA"), "rule:NAME", "agent:NAME", or nobody,
// which is Holdpoint itself.
func who(id string) []part { return known(Person{ID: id}) }

func known(p Person) []part {
	id := strings.TrimPrefix(p.ID, "slack:")
	kindOf, name, named := strings.Cut(id, ":")
	switch {
	case userID.MatchString(id):
		return []part{{kind: person, text: id, name: first(fit(p.Name, valueRoom))}}
	case id == "" && p.Name != "":
		return []part{code(p.Name)}
	case id == "" || id == "system":
		return []part{say("Holdpoint")}
	case id == "agent":
		return []part{say("the agent")}
	case named && kindOf == "rule":
		return []part{say("the rule "), code(name)}
	case named && kindOf == "agent":
		return []part{say("the agent "), code(name)}
	}
	return []part{code(id)}
}

func compose(parts ...any) Line {
	var l Line
	for _, p := range parts {
		switch p := p.(type) {
		case part:
			l.parts = append(l.parts, p)
		case []part:
			l.parts = append(l.parts, p...)
		case Line:
			l.parts = append(l.parts, p.parts...)
		case string:
			l.parts = append(l.parts, say(p))
		}
	}
	l.parts = slices.DeleteFunc(l.parts, func(p part) bool {
		return p.kind != moment && p.text == "" || p.kind == moment && unset(p.at)
	})
	return l
}

// Words is a line of our own words: constants, never a value from outside.
func Words(s string) Line { return compose(Visible(s)) }

// Value is a line of one untrusted value, set apart as code and cut to fit.
func Value(s string) Line { return compose(code(orDash(s))) }

// Named is a line of one person, or of what else may act: see [Card].
func Named(p Person) Line { return compose(known(p)) }

// Moment is a line of one time, shown in the reader's own zone; the zero time is empty.
func Moment(t time.Time) Line { return compose(when(t)) }

// Join puts lines together into one, with nothing in between.
func Join(parts ...Line) Line {
	var l Line
	for _, p := range parts {
		l = compose(l, p)
	}
	return l
}

// Empty reports whether the line says nothing.
func (l Line) Empty() bool { return len(l.parts) == 0 }

// Plain is the line for places without any markup: a modal's field error, a terminal. People are named where a name
// is known, times are UTC.
func (l Line) Plain() string {
	var b strings.Builder
	for _, p := range l.parts {
		switch p.kind {
		case quote:
			b.WriteString("“" + p.text + "”")
		case person:
			if p.name != "" {
				b.WriteString(p.name)
			} else {
				b.WriteString("@" + p.text)
			}
		case moment:
			b.WriteString(utc(p.at))
		case words, strong, value:
			b.WriteString(p.text)
		}
	}
	return b.String()
}

// Mrkdwn is the line for a message's top-level text and for ephemeral answers. Untrusted values are inline code, in
// which mrkdwn has no meaning, with their backticks written out.
func (l Line) Mrkdwn() string {
	var b strings.Builder
	for _, p := range l.parts {
		switch p.kind {
		case words:
			b.WriteString(Escape(p.text))
		case strong:
			b.WriteString("*" + Escape(p.text) + "*")
		case value, quote:
			b.WriteString("`" + Escape(strings.ReplaceAll(p.text, "`", `\u{60}`)) + "`")
		case person:
			b.WriteString("<@" + p.text + ">")
		case moment:
			b.WriteString("<!date^" + strconv.FormatInt(p.at.Unix(), 10) + "^" + dateFormat + "|" + utc(p.at) + ">")
		}
	}
	return b.String()
}

// Message is the line as an ephemeral answer.
func (l Line) Message() Message {
	return Message{Text: l.Mrkdwn(), Blocks: []slack.Block{richText("", section(l.rich()...))}}
}

func (l Line) rich() []slack.RichTextSectionElement {
	var out []slack.RichTextSectionElement
	for _, p := range l.parts {
		switch p.kind {
		case words:
			out = append(out, plain(p.text))
		case strong:
			out = append(out, bold(p.text))
		case value:
			out = append(out, coded(p.text))
		case quote:
			out = append(out, plain("“"), italic(p.text), plain("”"))
		case person:
			out = append(out, slack.NewRichTextSectionUserElement(p.text, nil))
		case moment:
			out = append(out, date(p.at))
		}
	}
	return out
}

// Dates are shown in the reader's own zone; the fallback is for clients that can't.
const dateFormat = "{date_short_pretty} at {time}"

// unset reports the zero time, and what Slack takes for none.
func unset(t time.Time) bool { return t.Unix() <= 0 }

func utc(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

func date(t time.Time) slack.RichTextSectionElement {
	fallback := utc(t)
	return slack.NewRichTextSectionDateElement(t.Unix(), dateFormat, nil, &fallback)
}
