package approvals

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

// canaries are values that may be in sealed bytes and nowhere else.
type canaries map[string]string

// leaks names the canaries that a text holds, as they are or as fmt and Postgres write bytes.
func (c canaries) leaks(text string) (out []string) {
	for name, v := range c {
		for _, form := range []string{v, hex.EncodeToString([]byte(v)), strings.ToUpper(hex.EncodeToString([]byte(v))), strings.Trim(fmt.Sprintf("%d", []byte(v)), "[]"), quotedInner(v)} {
			if strings.Contains(text, form) {
				out = append(out, name)
			}
		}
	}
	return out
}

func quotedInner(s string) string { return strings.Trim(fmt.Sprintf("%#v", []byte(s)), "[]byte{}") }

// I24: what must stay sealed is in no column, no log, no error and no printed value.
func TestCanary(t *testing.T) {
	t.Parallel()
	secret := canaries{
		"a redacted argument": "cnry-redacted-7f3a91", "an edited redacted argument": "cnry-edited-55aa02", "the state": "cnry-state-0c1d2e",
		"an answer": "cnry-answer-90ffee", "a result": "cnry-result-3b3b3b", "an argument of a refused call": "cnry-refused-8d8d8d",
	}
	var logs bytes.Buffer
	var mu sync.Mutex
	w := newWorldWith(t, Options{Log: slog.New(slog.NewTextHandler(&locked{&mu, &logs}, &slog.HandlerOptions{Level: slog.LevelDebug, AddSource: true}))}, nil)
	bearer, _, err := w.s.CreateKey(w.ctx, "acme", "release-agent", nil, OperatorActor("test"))
	w.must(err)
	secret["an API key"] = bearer
	w.key, err = w.s.Authenticate(w.ctx, bearer)
	w.must(err)

	seen := 0
	printed := func(v any) {
		t.Helper()
		seen++
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
			if names := secret.leaks(fmt.Sprintf(verb, v)); names != nil {
				t.Errorf("I24: %s of a %T shows %v", verb, v, names)
			}
		}
		w.s.log.Info("printed", "value", v)
	}
	failed := func(err error) {
		t.Helper()
		if err == nil {
			t.Error("no error to look at")
			return
		}
		printed(err)
	}
	in := w.intake(call("a", "deploy_release", `{"release":"r1","environment":"production","token":%q}`, secret["a redacted argument"]), call("q", "ask_user", question), call("s", "run_script", script))
	in.Format, in.State = "opaque", []byte(`{"context":"`+secret["the state"]+`"}`)
	printed(in)
	printed(&in)
	p := w.submit(in)
	printed(p)
	id := p.Approvals[0].ApprovalID
	rq := w.click(id, bob, Edit, with(fmt.Sprintf(`{"release":"r2","environment":"production","token":%q}`, secret["an edited redacted argument"])))
	printed(rq)
	r, err := w.s.Decide(w.ctx, rq)
	w.must(err)
	printed(r)
	child := r.Child.ApprovalID
	printed(w.denied(child, bob, Edit, DenyEditInvalid, with(fmt.Sprintf(`{"release":"r2","environment":%q,"token":"x"}`, secret["an argument of a refused call"]))))
	w.decide(child, alice, Approve)
	c := w.claim(child)
	if !strings.Contains(string(c.Arguments.Raw), secret["an edited redacted argument"]) {
		t.Fatal("the canary did not get to the claim")
	}
	printed(c)
	printed(c.Lease)
	out := Outcome{Class: OutcomeSucceeded, Output: json.RawMessage(`{"token":"` + secret["a result"] + `"}`), Receipt: "ok"}
	printed(out)
	v, err := w.s.Record(w.ctx, c.Lease, out)
	w.must(err)
	printed(v)
	v, err = w.s.Get(w.ctx, w.key, child)
	w.must(err)
	if !strings.Contains(string(v.Result), secret["a result"]) {
		t.Fatal("the canary did not get into the result")
	}
	printed(v)
	f, err := w.s.CardFacts(w.ctx, child)
	w.must(err)
	printed(f)
	e, err := w.s.Explain(w.ctx, "acme", child)
	w.must(err)
	printed(e)
	answer := func(rq *DecideRequest) { rq.Answer = secret["an answer"] }
	printed(w.click(p.Approvals[1].ApprovalID, alice, Respond, answer))
	printed(w.decide(p.Approvals[1].ApprovalID, alice, Respond, answer))
	w.decide(p.Approvals[2].ApprovalID, alice, Approve)
	a := w.agentClaim(child, "x")
	printed(a)
	a = w.agentClaim(p.Approvals[2].ApprovalID, "x")
	secret["a lease token of an agent"] = a.LeaseToken
	printed(a)
	d, err := w.s.ResumeFor(w.ctx, w.pauseOf(child))
	w.must(err)
	if !strings.Contains(string(d.Body), secret["the state"]) || !strings.Contains(string(d.Body), secret["an answer"]) {
		t.Fatal("the canary did not get into the message")
	}
	printed(d)
	// Refusals and failures.
	bad := secret["an argument of a refused call"]
	for _, arguments := range []string{
		`{"release":"r1","environment":"%s"}`, `{"release":"r1","environment":"production","token":["%s"]}`, `{"release":"r1","environment":"production","%s":1}`,
		`{"release":"r1","release":"%s","environment":"production"}`, `{"token":"%s",`,
	} {
		_, err := w.s.Submit(w.ctx, w.key, w.intake(call("a", "deploy_release", arguments, bad)))
		if err == nil { // unreadable: kept, and shown to nobody because the tool redacts
			continue
		}
		failed(err)
	}
	broken := w.intake(call("a", "deploy_release", production))
	broken.Format, broken.State = "opaque", []byte(`{"context":"`+bad+`"`)
	_, err = w.s.Submit(w.ctx, w.key, broken)
	failed(err)
	w.check()
	w.exec(`UPDATE approval_payload SET result = '\x00', arguments = '\x0011' WHERE approval_id = $1`, child)
	_, err = w.s.Get(w.ctx, w.key, child)
	failed(err)
	_, err = w.s.ClaimForAgent(w.ctx, w.key, child, AgentClaim{})
	failed(err)
	_, err = w.s.Authenticate(w.ctx, bearer[:len(bearer)-1]+map[bool]string{true: "b", false: "a"}[strings.HasSuffix(bearer, "a")])
	failed(err)
	w.dir.fails = true
	w.age(claimAge + 1)
	held := w.propose("run_script", `{"token":"`+bad+`"}`) // a tool without a schema: credential-like names are hidden too
	if names := secret.leaks(string(held.Snapshot)); names != nil {
		t.Errorf("the snapshot shows %v", names)
	}

	rows := 0
	tables, err := w.db.Query(w.ctx, `SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE'`)
	w.must(err)
	names, err := pgx.CollectRows(tables, pgx.RowTo[string])
	w.must(err)
	delete(secret, "a lease token of an agent") // is a fence in the ledger; in the audit it is not
	for _, table := range names {
		for row := range w.texts(table) {
			rows++
			if names := secret.leaks(row); names != nil {
				t.Errorf("I24: a row of %s shows %v", table, names)
			}
		}
	}
	for row := range w.texts("audit_event") {
		if strings.Contains(row, a.LeaseToken) || strings.Contains(row, c.Lease.Token.String()) {
			t.Error("the audit has a lease's token")
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if names := secret.leaks(logs.String()); names != nil || logs.Len() == 0 {
		t.Errorf("I24: the log shows %v", names)
	}
	if rows < 40 || seen < 25 {
		t.Errorf("looked at %d rows and %d values only", rows, seen)
	}
}

// locked lets several sessions log into one buffer.
type locked struct {
	mu *sync.Mutex
	b  *bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// texts gives every row of a table as Postgres prints it.
func (w *world) texts(table string) map[string]bool {
	w.t.Helper()
	rows, err := w.db.Query(w.ctx, `SELECT x::text FROM `+pgx.Identifier{table}.Sanitize()+` x`)
	w.must(err)
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	w.must(err)
	out := map[string]bool{}
	for _, r := range list {
		out[r] = true
	}
	return out
}
