package templates

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"
)

func actionIDs(t *testing.T, v any) []string {
	t.Helper()
	return shown(t, v, func(string, string) {})
}

// blockText is all text of one block of a message, as it reads.
func blockText(t *testing.T, blocks []slack.Block, id string) string {
	t.Helper()
	raw, err := json.Marshal(blocks)
	if err != nil {
		t.Fatal(err)
	}
	var all []object
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				walk(e)
			}
		case object:
			if s, ok := v["text"].(string); ok {
				b.WriteString(s)
			}
			walk(v["text"])
			walk(v["elements"])
		}
	}
	for _, o := range all {
		if o["block_id"] == id {
			walk(o)
		}
	}
	return b.String()
}

// I2: a terminal or running request has no decision button, whatever the caller offers.
func TestButtonsGoWithTheDecision(t *testing.T) {
	t.Parallel()
	for name, c := range gallery() {
		got := actionIDs(t, Render(c).Blocks)
		decides := slices.ContainsFunc(got, func(a string) bool {
			return a == ActionApprove || a == ActionReject || a == ActionRespond || a == ActionOverflow
		})
		if decides != (c.Status == StatusPending) {
			t.Errorf("%s (%s) offers %v", name, c.Status, got)
		}
		if slices.Contains(got, ActionReconcileYes) != (c.Status == StatusUncertain) {
			t.Errorf("%s (%s) offers %v", name, c.Status, got)
		}
	}
}

func TestCutCardIsApprovedFromDetails(t *testing.T) {
	t.Parallel()
	c := gallery()["pending_long"]
	m := Render(c)
	if !m.Truncated {
		t.Fatal("a long card is not cut")
	}
	if got, want := actionIDs(t, m.Blocks), []string{ActionDetails, ActionReject, ActionOverflow}; !slices.Equal(got, want) {
		t.Errorf("cut card offers %v, want %v", got, want)
	}
	if got := blockText(t, m.Blocks, "cut"); !strings.HasPrefix(got, "✂️ +") || !strings.Contains(got, " fields, ") || !strings.HasSuffix(got, "characters: open Details to see all of it and approve") {
		t.Errorf("note %q", got)
	}
	delete(c.Values, ActionDetails)
	if got := actionIDs(t, Render(c).Blocks); slices.Contains(got, ActionApprove) {
		t.Errorf("without Details it offers %v", got)
	}
}

func TestDetailsPagesHoldEverything(t *testing.T) {
	t.Parallel()
	c := gallery()["pending"]
	c.Title = strings.Repeat("long title ", 40)
	c.Arguments = []byte(`{"text":"` + strings.Repeat("0123456789", 20_000) + `","last":"the end"}`)
	pages := DetailsPages(c)
	if pages < 3 {
		t.Fatalf("%d pages for 200,000 characters", pages)
	}
	var all strings.Builder
	for page := range pages {
		v := DetailsModal(Details{Card: c, Page: page, Metadata: "m"})
		if err := CheckView(v); err != nil {
			t.Fatal(err)
		}
		got := actionIDs(t, v)
		last := page == pages-1
		if slices.Contains(got, ActionApprove) != last || slices.Contains(got, ActionReject) != last {
			t.Errorf("page %d of %d offers %v", page, pages, got)
		}
		if slices.Contains(got, ActionPage+"_next") == last || slices.Contains(got, ActionPage+"_prev") != (page > 0) {
			t.Errorf("page %d of %d turns %v", page, pages, got)
		}
		if slices.Contains(got, ActionDetails) {
			t.Error("Details offers itself")
		}
		for i := range pageChunks {
			all.WriteString(blockText(t, v.Blocks.BlockSet, "arguments_"+itoa(i)))
		}
	}
	whole := strings.ReplaceAll(document(c), "\n", "")
	if got := strings.ReplaceAll(all.String(), "\n", ""); got != whole {
		t.Errorf("the pages hold %d characters of %d", len(got), len(whole))
	}
	if !strings.Contains(whole, strings.Repeat("long title ", 40)) || !strings.Contains(whole, "the end") {
		t.Error("the document lacks the title or the end")
	}
}

func TestHighRiskAsksAgain(t *testing.T) {
	t.Parallel()
	b := approveButton(gallery()["pending_high_risk"])
	if b == nil || b.Confirm == nil {
		t.Fatal("no confirmation")
	}
	if got, want := b.Confirm.Text.Text, "Deploy 2026.07.24 to production\nTarget: service/checkout@production\nDigest: 77ab3c9e10f2"; got != want {
		t.Errorf("confirmation %q, want %q", got, want)
	}
	if b := approveButton(gallery()["pending"]); b == nil || b.Confirm != nil {
		t.Error("a medium risk asks again")
	}
}

func TestValuesDecideWhatIsOffered(t *testing.T) {
	t.Parallel()
	c := gallery()["pending"]
	c.Values = map[string]string{
		ActionApprove: strings.Repeat("a", MaxButtonValue), ActionReject: strings.Repeat("a", MaxButtonValue+1), ActionEdit: strings.Repeat("a", MaxOptionValue+1),
	}
	if got, want := actionIDs(t, Render(c).Blocks), []string{ActionApprove}; !slices.Equal(got, want) {
		t.Errorf("offers %v, want %v", got, want)
	}
	c.Values[ActionEdit] = strings.Repeat("a", MaxOptionValue)
	if got, want := actionIDs(t, Render(c).Blocks), []string{ActionApprove, ActionOverflow}; !slices.Equal(got, want) {
		t.Errorf("offers %v, want %v", got, want)
	}
	c.Arguments = []byte(`{"broken`)
	if got := actionIDs(t, Render(c).Blocks); len(got) > 0 {
		t.Errorf("unreadable arguments offer %v", got)
	}
}

func TestRedactedValuesStandWithoutQuotes(t *testing.T) {
	t.Parallel()
	got := blockText(t, Render(gallery()["pending_redacted"]).Blocks, "arguments")
	for _, want := range []string{`"token": [redacted: 40 chars],`, `"note": "[redacted: 40 chars]"`} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
}

func TestCutArguments(t *testing.T) {
	t.Parallel()
	p := printer{room: 60, lines: 10, valueRoom: 8}
	p.print([]byte(`{"a":1.50,"b":"0123456789","c":{"d":[]},"e":"left out","f":[1,2]}`))
	if got, want := p.String(), "{\n  \"a\": 1.50,\n  \"b\": \"01234567\"…,\n  \"c\": {\n    \"d\": []\n  }\n…"; got != want {
		t.Errorf("printed %q\nwant    %q", got, want)
	}
	if p.fields != 3 || p.chars != len("89")+len("left out")+len("12") {
		t.Errorf("hidden: %d fields, %d characters", p.fields, p.chars)
	}
}

func TestTimesInWords(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0 s", 12 * time.Second: "12 s", 90 * time.Second: "1 min 30 s", time.Hour: "1 h", 26*time.Hour + time.Minute: "1 d 2 h", -time.Second: "0 s",
		48*time.Hour + time.Minute: "2 d",
	} {
		if got := ago(d); got != want {
			t.Errorf("ago(%s) = %q, want %q", d, got, want)
		}
	}
	for d, want := range map[time.Duration]string{
		time.Millisecond: "0.1 s", 1234 * time.Millisecond: "1.2 s", 48 * time.Second: "48 s", 200 * time.Second: "3 min 20 s",
	} {
		if got := seconds(d); got != want {
			t.Errorf("seconds(%s) = %q, want %q", d, got, want)
		}
	}
}

func TestEditThatDoesNotFit(t *testing.T) {
	t.Parallel()
	long := []byte(`{"a":"` + strings.Repeat("é", 501) + `"}`) // six characters each in the form
	for name, raw := range map[string][]byte{"long": long, "broken": []byte(`{`), "none": nil} {
		v, ok := EditModal(refund(), raw, "m")
		if ok || v.Submit != nil {
			t.Errorf("%s can be submitted", name)
		}
		if err := CheckView(v); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Duplicate keys are JSON and unreadable all the same: which of the two would run?
func TestUnreadableCanOnlyBeRejected(t *testing.T) {
	t.Parallel()
	c := refund(func(c *Card) {
		c.Unreadable, c.Arguments = "duplicate key", []byte(`{"amount":5,"amount":5000}`)
		c.Decisions = []string{DecisionApprove, DecisionReject, DecisionEdit, DecisionRespond}
	})
	m := Render(c)
	if got, want := actionIDs(t, m.Blocks), []string{ActionReject, ActionDetails}; !slices.Equal(got, want) {
		t.Errorf("the card offers %v, want %v", got, want)
	}
	if got, want := actionIDs(t, DetailsModal(Details{Card: c})), []string{ActionReject}; !slices.Equal(got, want) {
		t.Errorf("Details offers %v, want %v", got, want)
	}
	if got := blockText(t, m.Blocks, "arguments"); !strings.Contains(got, `{"amount":5,"amount":5000}`) {
		t.Errorf("not shown as sent: %s", got)
	}
}
