package approvals

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

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
