package approvals

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdpoint/holdpoint/approvals/rules"
	"github.com/holdpoint/holdpoint/approvals/seal"
	"github.com/holdpoint/holdpoint/migrations/pgtest"
)

// The people of the stories. What they may is in the configuration and the mirror below.
const (
	alice   = "U0ALICE" // a reviewer of deployments by name
	bob     = "U0BOB"   // by group
	carol   = "U0CAROL" // by group
	dave    = "U0DAVE"  // finance
	erin    = "U0ERIN"  // finance
	frank   = "U0FRANK" // finance
	req     = "U0REQ"   // behind the calls; a reviewer by group, too
	root    = "U0ROOT"  // admin only
	second  = "U0SECOND"
	guest   = "U0GUEST" // from here on: in the reviewers' group, and counting for nothing
	ultra   = "U0ULTRA"
	ext     = "U0EXT"
	robot   = "U0ROBOT"
	gone    = "U0GONE"
	invited = "U0INVITED"
	other   = "U0OTHER"
	blocked = "U0BLOCKED"
	nobody  = "U0NOBODY" // not mirrored
)

const team = "T0ACME"

// configuration is the contract's example, with every kind of tool.
const configuration = `
egress: {allow: [127.0.0.0/8]}
tenants:
  acme:
    slack: {team: T0ACME, channel: C0APPROVALS}
    admins: {users: [U0ROOT], groups: [S0ADMINS]}
    limits: {open_per_run: 64, per_minute: 1000000}
    rules:
      - {name: deploys, when: 'tool == "deploy_release" && args.environment == "production"', reviewers: {users: [U0ALICE], groups: [S0RELEASE]}, requesters: {groups: [S0ENG]}, decide_within: 4h, execute_within: 15m, risk: high}
      - {name: staging, when: 'tool == "deploy_release"', do: allow, execute_within: 1h}
      - {name: refunds, when: 'tool == "issue_refund" && args.amount > 50', reviewers: {groups: [S0FINANCE]}, quorum: 2, decide_within: 24h, execute_within: 1h}
      - {name: small-refunds, when: 'tool == "issue_refund"', do: allow, execute_within: 1h}
      - {name: mail, when: 'tool == "send_mail"', reviewers: {users: [U0ALICE, U0BOB]}, exclude: [], decide_within: 1h, execute_within: 1h}
      - {name: flights, when: 'tool == "book_flight"', reviewers: {users: [U0ALICE]}, exclude: [], decide_within: 1h, execute_within: 1h, reconcile: {second_person: true}}
      - {name: scripts, when: 'tool == "run_script"', reviewers: {users: [U0ALICE]}, exclude: [], decide_within: 1h, execute_within: 1h}
      - {name: never, when: 'tool == "drop_table"', do: deny, message: "Tables are never dropped by an agent."}
      - {name: questions, when: 'tool == "ask_user"', reviewers: {users: [U0ALICE]}, exclude: [], decide_within: 1h, execute_within: 1h}
    tools:
      deploy_release:
        kind: effect
        title: "Deploy {{.release}} to {{.environment}}"
        schema: {type: object, required: [release, environment], properties: {release: {type: string}, environment: {enum: [staging, production]}, token: {type: string}}, additionalProperties: false}
        target: "'service/checkout@' + args.environment"
        redact: [/token]
        retry: idempotent
        http: {method: POST, url: "http://127.0.0.1:9/releases", key_header: Idempotency-Key, key_retention: 24h, if_match: true, timeout: 30s}
      issue_refund:
        kind: effect
        title: "Refund {{.amount}} {{.currency}} on {{.order}}"
        schema: {type: object, required: [order, amount, currency], properties: {order: {type: string}, amount: {type: number}, currency: {type: string}}, additionalProperties: false}
        target: "'order/' + args.order"
        retry: idempotent
        agent: {key_retention: 24h}
      send_mail: {kind: effect, title: "Mail {{.to}}", schema: {type: object, required: [to], properties: {to: {type: string}}}, http: {method: POST, url: "http://127.0.0.1:9/mail", timeout: 10s}}
      book_flight:
        kind: effect
        title: "Book {{.flight}}"
        schema: {type: object, required: [flight], properties: {flight: {type: string}}}
        retry: queryable
        http: {method: POST, url: "http://127.0.0.1:9/flights", key_header: Idempotency-Key, lookup: "http://127.0.0.1:9/flights/{operation_key}", settle: 1m, timeout: 10s}
      run_script: {kind: effect, title: "Run a script", agent: {}}
      drop_table: {kind: effect, title: "Drop a table", agent: {}}
      ask_user: {kind: question, title: "{{.question}}", schema: {type: object, required: [question], properties: {question: {type: string}}}}
    agents:
      release-agent:
        tools: [deploy_release, issue_refund, send_mail, book_flight, run_script, drop_table, ask_user]
        versions:
          release-agent/v1:
            states: [{format: openai-agents-js}, {format: opaque}, {format: none}]
            resume: {url: "http://127.0.0.1:9/resume", secret: env:RELEASE_AGENT_SECRET}
      pull-agent:
        tools: [deploy_release, issue_refund, run_script]
        versions:
          pull/v1: {states: [{format: none}], resume: pull, blocked: reject}
`

// A world is a core on a database of its own, with its people and its agent.
type world struct {
	t    tb
	ctx  context.Context
	s    *Service
	db   *pgxpool.Pool
	dsn  string
	key  Key
	pull Key
	dir  *mirror
	runs int

	cleanup func(func())
}

// tb is what the stories need of a test; rapid's T has it, too.
type tb interface {
	Helper()
	Error(args ...any)
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// testSealer is one key for the whole binary: making one is dear, and rows never cross databases.
var testSealer = sync.OnceValues(seal.NewEphemeral)

func newWorld(t testing.TB) *world { return newWorldWith(t, Options{}, nil) }

func newWorldWith(t testing.TB, o Options, tracer pgx.QueryTracer) *world {
	t.Helper()
	w := &world{t: t, ctx: t.Context(), dsn: pgtest.New(t), dir: &mirror{}, cleanup: t.Cleanup}
	sealer, err := testSealer()
	w.must(err)
	pool := w.open("test", 12, tracer)
	w.db = w.open("aside", 6, nil)
	o.Clicks, o.Intake, o.Work, o.Sealer = pool, pool, pool, sealer
	if o.Directory == nil {
		o.Directory = w.dir
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	w.s = New(o)
	w.dir.w = w
	w.apply(configuration)
	w.key = w.newKey("acme", "release-agent")
	w.pull = w.newKey("acme", "pull-agent")
	w.people()
	return w
}

func (w *world) open(name string, n int32, tracer pgx.QueryTracer) *pgxpool.Pool {
	w.t.Helper()
	pool, err := OpenPool(w.ctx, w.dsn, PoolOptions{Name: name, Max: n, Tracer: tracer})
	w.must(err)
	w.cleanup(pool.Close)
	return pool
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// parse compiles a configuration; pairs are replaced in its text, each of which must be there.
func (w *world) parse(text string, pairs ...string) *rules.Config {
	w.t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			w.t.Fatalf("the configuration has no %q", pairs[i])
		}
		text = strings.ReplaceAll(text, pairs[i], pairs[i+1])
	}
	cfg, err := rules.Parse([]rules.File{{Name: "test.yaml", Data: []byte(text)}})
	w.must(err)
	return cfg
}

func (w *world) apply(text string, pairs ...string) []Applied {
	w.t.Helper()
	out, err := w.s.Apply(w.ctx, w.parse(text, pairs...), OperatorActor("test"))
	w.must(err)
	return out
}

// change applies the story's configuration with some of its text replaced.
func (w *world) change(pairs ...string) []Applied {
	w.t.Helper()
	return w.apply(configuration, pairs...)
}

func (w *world) newKey(tenant, agent string) Key {
	w.t.Helper()
	bearer, _, err := w.s.CreateKey(w.ctx, tenant, agent, nil, OperatorActor("test"))
	w.must(err)
	k, err := w.s.Authenticate(w.ctx, bearer)
	w.must(err)
	return k
}

// person gives somebody as Slack has them; full members unless changed.
func person1(id string, change ...func(*DirectoryUser)) DirectoryUser {
	u := DirectoryUser{UserID: id, TeamID: team, Name: strings.ToLower(id)}
	for _, c := range change {
		c(&u)
	}
	return u
}

var groups = map[string][]string{
	"S0RELEASE": {bob, carol, req, guest, ultra, ext, robot, gone, invited, other, blocked, nobody},
	"S0ENG":     {req, bob, guest, gone},
	"S0FINANCE": {dave, erin, frank},
	"S0ADMINS":  {second},
}

func (w *world) people() {
	w.t.Helper()
	w.must(w.s.SaveUsers(w.ctx, "acme", []DirectoryUser{
		person1(alice), person1(bob), person1(carol), person1(dave), person1(erin), person1(frank), person1(req), person1(root), person1(second), person1(blocked),
		person1(guest, func(u *DirectoryUser) { u.Restricted = true }),
		person1(ultra, func(u *DirectoryUser) { u.Restricted, u.UltraRestricted = true, true }),
		person1(ext, func(u *DirectoryUser) { u.TeamID, u.Stranger = "T0ELSE", true }),
		person1(robot, func(u *DirectoryUser) { u.Bot = true }),
		person1(gone, func(u *DirectoryUser) { u.Deleted = true }),
		person1(invited, func(u *DirectoryUser) { u.Invited = true }),
		person1(other, func(u *DirectoryUser) { u.TeamID = "T0ELSE" }),
	}))
	for id, members := range groups {
		w.group(id, members...)
	}
}

func (w *world) group(id string, members ...string) {
	w.t.Helper()
	w.must(w.s.SaveGroup(w.ctx, "acme", DirectoryGroup{GroupID: id, Handle: strings.ToLower(id[2:]), Enabled: true, Members: members}))
}

// without is a group's members but one.
func without(id, member string) []string {
	return slices.DeleteFunc(slices.Clone(groups[id]), func(m string) bool { return m == member })
}

// mirror is the directory: refreshing marks what was asked for as just read, or fails.
type mirror struct {
	w     *world
	mu    sync.Mutex
	fails bool
	asked int
	first func() // runs before a refresh: what Slack says has changed
}

func (m *mirror) Fresh(ctx context.Context, tenant string, groups, users []string, _ time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked++
	if m.fails {
		return errors.New("slack is away")
	}
	if m.first != nil {
		m.first()
	}
	_, err := m.w.db.Exec(ctx, `UPDATE slack_group SET synced_at = clock_timestamp() WHERE tenant_id = $1 AND group_id = ANY ($2)`, tenant, list(groups))
	_, err2 := m.w.db.Exec(ctx, `UPDATE slack_user SET synced_at = clock_timestamp() WHERE tenant_id = $1 AND user_id = ANY ($2)`, tenant, list(users))
	return errors.Join(err, err2)
}

// exec changes the database behind the core's back: triggers are off, so that time can pass and rows can rot.
func (w *world) exec(sql string, args ...any) int64 {
	w.t.Helper()
	var n int64
	w.must(pgx.BeginFunc(w.ctx, w.db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(w.ctx, `SET LOCAL session_replication_role = replica`); err != nil {
			return err
		}
		tag, err := tx.Exec(w.ctx, sql, args...)
		n = tag.RowsAffected()
		return err
	}))
	return n
}

// one reads one value.
func one[T any](w *world, sql string, args ...any) T {
	w.t.Helper()
	var v T
	if err := w.db.QueryRow(w.ctx, sql, args...).Scan(&v); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// pass lets time pass: every time of every row moves into the past.
func (w *world) pass(d time.Duration) {
	w.t.Helper()
	for table, columns := range map[string]string{
		"approval_request":   "created_at decide_by expires_at decided_at revoked_at started_at ended_at held_since",
		"approval_open":      "due_at",
		"approval_decision":  "decided_at",
		"idempotency_ledger": "lease_expires_at claimed_at first_sent_at next_try_at",
		"run_pause":          "created_at closed_at next_try_at told_at dead_at stopped_at superseded_at",
		"outbox":             "not_before",
		"card":               "post_started",
		"audit_event":        "at",
	} {
		var set []string
		for _, c := range strings.Fields(columns) {
			set = append(set, fmt.Sprintf("%s = %s - $1::interval", c, c))
		}
		w.exec("UPDATE "+table+" SET "+strings.Join(set, ", "), d)
	}
}

// age makes the mirror old.
func (w *world) age(d time.Duration) {
	w.t.Helper()
	w.exec(`UPDATE slack_user SET synced_at = synced_at - $1::interval`, d)
	w.exec(`UPDATE slack_group SET synced_at = synced_at - $1::interval`, d)
}

// row reads a view as its tenant sees it.
func (w *world) row(id ID) View {
	w.t.Helper()
	v, _, err := w.s.look(w.ctx, id)
	w.must(err)
	reached.Store(v.ReasonCode, true)
	reached.Store(v.Held, true)
	return v
}

// want holds a row to a status and a reason.
func (w *world) want(id ID, status Status, why Reason) View {
	w.t.Helper()
	v := w.row(id)
	if v.Status != status || v.ReasonCode != why {
		w.t.Fatalf("%s: status %q, reason %q; want %q, %q", id, v.Status, v.ReasonCode, status, why)
	}
	return v
}

// refusal is the refusal in an error; anything else ends the test.
func (w *world) refusal(err error, code Code) Refusal {
	w.t.Helper()
	var r *Refusal
	if !errors.As(err, &r) || r.Code != code {
		w.t.Fatalf("got %v; want a refusal with %q", err, code)
		return Refusal{}
	}
	return *r
}

func quoted(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func isErr(err, target error) bool { return errors.Is(err, target) }

// sealedFor is the binding of a pause's state.
func sealedFor(w *world, p Pause) []byte {
	w.t.Helper()
	return seal.StateAAD("acme", p.RunID, w.row(p.Approvals[0].ApprovalID).PauseID, "openai-agents-js")
}
