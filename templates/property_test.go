package templates

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"
	"pgregory.net/rapid"
)

var statuses = []string{
	StatusPending, StatusApproved, StatusRejected, StatusEdited, StatusResponded, StatusExpired, StatusRevoked, StatusMigrationRequired,
	StatusExecuting, StatusCompleted, StatusFailed, StatusUncertain, "", "pending ",
}

func anyJSON() *rapid.Generator[[]byte] {
	return rapid.Custom(func(t *rapid.T) []byte {
		var value func(depth int) any
		value = func(depth int) any {
			switch k := rapid.IntRange(0, 6).Draw(t, "kind"); {
			case k == 0 && depth < 5:
				m := map[string]any{}
				for range rapid.IntRange(0, 8).Draw(t, "members") {
					m[nasty(20).Draw(t, "key")] = value(depth + 1)
				}
				return m
			case k == 1 && depth < 5:
				l := []any{}
				for range rapid.IntRange(0, 8).Draw(t, "items") {
					l = append(l, value(depth+1))
				}
				return l
			case k == 2:
				return json.Number(rapid.StringMatching(`-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,9})?`).Draw(t, "number"))
			case k == 3:
				return rapid.SampledFrom([]any{true, false, nil}).Draw(t, "literal")
			}
			return nasty(100).Draw(t, "string")
		}
		raw, err := json.Marshal(map[string]any{"a": value(0), "b": value(0), "c": value(1)})
		if err != nil {
			t.Fatal(err)
		}
		return raw
	})
}

func anyCard() *rapid.Generator[Card] {
	return rapid.Custom(func(t *rapid.T) Card {
		s := func(name string) string { return nasty(150).Draw(t, name) }
		people := func(name string) []string {
			return rapid.SliceOfN(rapid.OneOf(rapid.StringMatching(`U[A-Z0-9]{4,9}`), nasty(5)), 0, 12).Draw(t, name)
		}
		at := func(name string) time.Time {
			return time.Unix(rapid.Int64Range(-1, 4e9).Draw(t, name), 0)
		}
		code := func(name string) string {
			return rapid.SampledFrom([]string{"", "paused", "window_closed", "policy_changed", "execute_expired", "superseded", "withdrawn", "revoked_by_admin", "new_one"}).Draw(t, name)
		}
		c := Card{
			ApprovalID: s("id"), ShortDigest: s("digest"), ParentID: s("parent"), ChildID: s("child"),
			Tool: s("tool"), ToolKind: rapid.SampledFrom([]string{"effect", "question"}).Draw(t, "tool kind"), Executor: rapid.SampledFrom([]string{"", "http", "agent"}).Draw(t, "executor"),
			Title: s("title"), Target: s("target"), TargetVersion: s("target version"), Requester: s("requester"), AppVersion: s("app version"), Reason: s("reason"),
			AgentPath: rapid.SliceOfN(nasty(10), 0, 12).Draw(t, "path"),
			Rule:      s("rule"), RuleRevision: rapid.Int64().Draw(t, "revision"), Risk: rapid.SampledFrom([]string{"", "low", "medium", "high", "<odd>"}).Draw(t, "risk"),
			Status: rapid.SampledFrom(statuses).Draw(t, "status"), Held: code("held"), HeldSince: at("held since"), HeldBy: s("held by"), HeldDetail: s("held detail"), HeldUntil: at("held until"),
			Quorum: rapid.IntRange(-1, 9).Draw(t, "quorum"), Votes: rapid.IntRange(-1, 9).Draw(t, "votes"), VotesBy: people("votes by"), Editors: people("editors"),
			DecideBy: at("decide by"), ExecuteBy: at("execute by"), DecidedBy: s("decided by"), DecidedAt: at("decided at"), RevokedBy: s("revoked by"), RevokedAt: at("revoked at"),
			ReasonCode: code("code"), Message: s("message"), Ledger: rapid.SampledFrom([]string{"", "failed_retryable", "executing"}).Draw(t, "ledger"),
			Attempt: rapid.IntRange(-1, 9).Draw(t, "attempt"), MaxAttempts: rapid.IntRange(-1, 9).Draw(t, "max"), NextTry: at("next"),
			Duration: time.Duration(rapid.Int64().Draw(t, "duration")), Receipt: s("receipt"), Error: s("error"),
			Decisions: rapid.SliceOf(rapid.SampledFrom([]string{"approve", "reject", "edit", "respond", "delete"})).Draw(t, "decisions"),
			Values:    map[string]string{}, Mention: people("mention"),
		}
		c.EditDiff, c.EditHidden = strings.Repeat("+"+s("diff line")+"\n-"+s("diff line")+"\n", rapid.IntRange(0, 60).Draw(t, "diff")), rapid.Bool().Draw(t, "hidden")
		switch rapid.IntRange(0, 5).Draw(t, "arguments") {
		case 0:
			c.Unreadable, c.Arguments = "x"+s("unreadable"), []byte(s("raw"))
		case 1:
			c.Arguments = []byte(s("broken"))
		case 2:
		default:
			c.Arguments = anyJSON().Draw(t, "json")
			c.Redacted = rapid.SliceOfN(rapid.SampledFrom([]string{"/a", "/b", "/c/0", ""}), 0, 3).Draw(t, "redacted")
		}
		for range rapid.IntRange(0, 8).Draw(t, "links") {
			c.Links = append(c.Links, Link{s("link"), rapid.OneOf(nasty(20), rapid.StringMatching(`https://[a-z]{1,9}\.example/[a-z&<]{0,600}`)).Draw(t, "url")})
		}
		for _, a := range []string{ActionApprove, ActionReject, ActionRespond, ActionDetails, ActionEdit, ActionReconcileYes, ActionReconcileNo} {
			c.Values[a] = rapid.OneOf(rapid.StringMatching(`[a-z0-9.]{0,120}`), rapid.StringMatching(`[<&a]{0,900}`)).Draw(t, a)
		}
		return c
	})
}

// shown walks what will be sent and calls see with every string that a reader gets to see; it also returns the action
// ids of the buttons.
func shown(t interface{ Fatalf(string, ...any) }, v any, see func(key, s string)) (actions []string) {
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatalf("encode: %v", err)
	}
	var decoded any
	if err := json.Unmarshal(raw, &decoded); err != nil {
		t.Fatalf("decode: %v", err)
	}
	var walk func(key string, v any)
	walk = func(key string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, e := range v {
				walk(k, e)
			}
		case []any:
			for _, e := range v {
				walk(key, e)
			}
		case string:
			switch key {
			case "action_id":
				actions = append(actions, v)
			case "value", "private_metadata": // opaque, not shown
			case "type":
				if v == "mrkdwn" {
					t.Fatalf("mrkdwn in the blocks")
				}
			default:
				see(key, v)
			}
		}
	}
	walk("", decoded)
	return actions
}

func mustRead(t *rapid.T, what string) func(string, string) {
	return func(key, s string) {
		if !readable(s) {
			t.Fatalf("%s: %s is not readable: %+q", what, key, s)
		}
	}
}

// I27: whatever a row holds, the card is within Slack's limits and shows no character that hides or reorders.
func TestAnyCard(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := anyCard().Draw(t, "card")
		m := Render(c)
		if err := Check(m.Blocks); err != nil {
			t.Fatal(err)
		}
		if len(m.Blocks) == 0 {
			t.Fatal("the card fell back")
		}
		if n := size(m.Blocks); n > MaxCard || length(m.Text) > 4_000 || m.Text == "" {
			t.Fatalf("%d characters, text of %d", n, length(m.Text))
		}
		mustRead(t, "text")("text", m.Text)
		actions := shown(t, m.Blocks, mustRead(t, "card"))
		checkActions(t, c, actions, m.Truncated)
		if !bytes.Equal(golden(m), golden(Render(c))) {
			t.Fatal("not deterministic")
		}
	})
}

// I2, I10: what is offered is what the rule offers, and only while it can be decided; a cut card has no Approve.
func checkActions(t *rapid.T, c Card, actions []string, isCut bool) {
	allowed := map[string]bool{
		ActionDetails: true, ActionOriginal: c.ParentID != "" && c.Status != StatusUncertain, ActionReplacement: c.ChildID != "" && c.Status == StatusEdited,
	}
	switch c.Status {
	case StatusPending:
		readable := c.Unreadable == "" && json.Valid(c.Arguments)
		has := func(d string) bool {
			return slices.Contains(c.Decisions, d) && (readable || d == DecisionReject)
		}
		allowed[ActionApprove] = has(DecisionApprove) && !isCut
		allowed[ActionReject], allowed[ActionRespond] = has(DecisionReject), has(DecisionRespond)
		allowed[ActionOverflow] = has(DecisionEdit) || has(DecisionRespond)
	case StatusUncertain:
		allowed[ActionReconcileYes], allowed[ActionReconcileNo] = true, true
	}
	for _, a := range actions {
		if !allowed[a] {
			t.Fatalf("%q offers %s (cut: %v)", c.Status, a, isCut)
		}
		if a == ActionOriginal || a == ActionReplacement {
			a = ActionDetails // they only look, by its value
		}
		if a != ActionOverflow && c.Values[a] == "" {
			t.Fatalf("%s is offered without a value", a)
		}
	}
}

func TestAnyOtherMessage(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		cards := rapid.SliceOfN(anyCard(), 1, 4).Draw(t, "cards")
		c := cards[0]
		events := []Event{}
		for range rapid.IntRange(0, 40).Draw(t, "events") {
			at := time.Unix(rapid.Int64Range(-1, 4e9).Draw(t, "at"), 0)
			events = append(events, Event{At: at, What: nasty(9).Draw(t, "what"), By: nasty(9).Draw(t, "by"), Detail: nasty(99).Draw(t, "detail")})
			detail, err := json.Marshal(map[string]any{
				"rule": nasty(9).Draw(t, "rule"), "why": nasty(9).Draw(t, "why"), "words": nasty(99).Draw(t, "words"), "error": nasty(99).Draw(t, "error"),
				"evidence": nasty(99).Draw(t, "evidence"), "receipt": nasty(99).Draw(t, "receipt"), "child": nasty(9).Draw(t, "child"), "verb": nasty(9).Draw(t, "verb"),
			})
			if err != nil {
				t.Fatal(err)
			}
			kind := rapid.SampledFrom(append(slices.Sorted(maps.Keys(kinds)), "of.the_future", "x\u202ey")).Draw(t, "kind")
			events = append(events, Tell(Happening{At: at, Kind: kind, By: nasty(9).Draw(t, "actor"), Detail: detail}))
		}
		var pauses []Pause
		for range rapid.IntRange(0, 9).Draw(t, "pauses") {
			pauses = append(pauses, Pause{Scope: "tool", Name: nasty(9).Draw(t, "name"), By: nasty(9).Draw(t, "by"), Reason: nasty(99).Draw(t, "reason")})
		}
		for name, m := range map[string]Message{
			"fallback": Fallback(c), "thread": UncertainThread(c), "list": ListMessage(cards, pauses, true), "audit": AuditMessage(c, events),
		} {
			if err := Check(m.Blocks); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if length(m.Text) > 4_000 {
				t.Fatalf("%s: text of %d", name, length(m.Text))
			}
			mustRead(t, name)("text", m.Text)
			if got := shown(t, m.Blocks, mustRead(t, name)); len(got) > 0 {
				t.Fatalf("%s has buttons: %v", name, got)
			}
		}
		home := HomeView(Home{Waiting: cards, Recent: cards, Pauses: pauses})
		if err := CheckHome(home); err != nil {
			t.Fatal(err)
		}
		shown(t, home, mustRead(t, "home"))
	})
}

func TestAnyView(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := anyCard().Draw(t, "card")
		pages := DetailsPages(c)
		details := func(page int) slack.ModalViewRequest {
			return DetailsModal(Details{
				Card: c, Digest: nasty(99).Draw(t, "digest"), Why: nasty(300).Draw(t, "why"), Excluded: rapid.SliceOfN(nasty(9), 0, 9).Draw(t, "excluded"),
				Reviewers: []Reviewer{{nasty(5).Draw(t, "reviewer"), nasty(9).Draw(t, "name")}}, Votes: []Vote{{nasty(9).Draw(t, "by"), nasty(9).Draw(t, "decision"), noon, true}}, Page: page,
			})
		}
		edit, _ := EditModal(c, c.Arguments, "m")
		views := map[string]slack.ModalViewRequest{
			"first": details(-1), "last": details(pages), "edit": edit, "reject": RejectModal(c, "m"), "respond": RespondModal(c, "m"),
			"yes": ReconcileModal(c, true, "m"), "no": ReconcileModal(c, false, "m"),
			"reason": ReasonModal(ReasonForm{Title: c.Title, Submit: c.Tool, About: compose(code(c.Target))}),
			"notice": NoticeModal(c.Title, Refusal(RefuseNotReviewer, Facts{Needs: c.AgentPath, Has: c.VotesBy})),
		}
		for name, v := range views {
			if err := CheckView(v); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			actions := shown(t, v, mustRead(t, name))
			if name == "first" && pages > 1 && slices.Contains(actions, ActionApprove) {
				t.Fatal("approve before the last page")
			}
		}
	})
}

// With nothing to hide and nothing to cut, the arguments are the JSON that was sent: order, numbers and all.
func TestArgumentsAreTheJSON(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.StringMatching(`-?(0|[1-9][0-9]{0,25})(\.[0-9]{1,9})?([eE][+-]?[0-9]{1,2})?`)
		var b strings.Builder
		b.WriteString(`{"list":[true,null,{},[],{"x":[1]}]`)
		for i := range rapid.IntRange(0, 9).Draw(t, "members") {
			fmt.Fprintf(&b, `,"%s%d":%s`, rapid.StringMatching(`[a-z.]{1,9}`).Draw(t, "key"), i,
				rapid.OneOf(number, rapid.StringMatching(`"[A-Za-z:/{}<>&*]{0,20}"`)).Draw(t, "value"))
		}
		b.WriteByte('}')
		var want bytes.Buffer
		if err := json.Indent(&want, []byte(b.String()), "", "  "); err != nil {
			t.Fatal(err)
		}
		p := printer{room: 1 << 20, lines: 1 << 20, valueRoom: 1 << 20}
		p.print([]byte(b.String()))
		if p.String() != want.String() || p.fields+p.chars > 0 {
			t.Fatalf("got\n%s\nwant\n%s", p.String(), want.String())
		}
	})
}

// A value never leaves its line or its quotes: a line of the print opens a member, an item, or closes what is open.
func TestArgumentsKeepTheirLines(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := nasty(30).Draw(t, "s")
		raw, err := json.Marshal(map[string]string{"k": s})
		if err != nil {
			t.Fatal(err)
		}
		p := printer{room: 1 << 20, lines: 1 << 20, valueRoom: 1 << 20}
		p.print(raw)
		all := strings.Split(p.String(), "\n")
		if len(all) != 3 || !strings.HasPrefix(all[1], `  "k": "`) || !strings.HasSuffix(all[1], `"`) {
			t.Fatalf("printed as %+q", p.String())
		}
		inside := strings.TrimSuffix(strings.TrimPrefix(all[1], `  "k": "`), `"`)
		for i := 0; i < len(inside); i++ {
			switch inside[i] {
			case '\\':
				i++
			case '"':
				t.Fatalf("a quote gets out: %+q", all[1])
			}
		}
	})
}

// The form gives back the values it was given, in ASCII only.
func TestEditableTextIsTheSameJSON(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		raw := anyJSON().Draw(t, "json")
		got, err := EditableText(raw)
		if err != nil {
			t.Fatal(err)
		}
		if i := strings.IndexFunc(got, func(r rune) bool { return r != '\n' && (r < ' ' || r >= 0x7f) || strings.ContainsRune("&<>", r) }); i >= 0 {
			t.Fatalf("not plain: %+q", got[i:])
		}
		decode := func(b []byte) any {
			var v any
			dec := json.NewDecoder(bytes.NewReader(b))
			dec.UseNumber()
			if err := dec.Decode(&v); err != nil {
				t.Fatal(err)
			}
			return v
		}
		if a, b := fmt.Sprintf("%#v", decode(raw)), fmt.Sprintf("%#v", decode([]byte(got))); a != b {
			t.Fatalf("%s became %s", a, b)
		}
	})
}
