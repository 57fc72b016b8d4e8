package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/approvals/rules"
	"github.com/holdpoint/holdpoint/bot"
	"github.com/holdpoint/holdpoint/worker"
)

// checkCmd is the doctor. Each line is ok, warn or fail, with the fix; a fail makes the exit code 1.
type checkCmd struct {
	databaseFlags
	sealFlags
	slackFlags
	RedisURL string `env:"HOLDPOINT_REDIS_URL" help:"Redis URL." placeholder:"URL"`
}

// doctor writes findings.
type doctor struct {
	io     streams
	failed bool
}

func (d *doctor) ok(what, detail string) {
	_, _ = fmt.Fprintf(d.io.out, "ok    %-14s %s\n", what, detail)
}

func (d *doctor) warn(what, detail string) {
	_, _ = fmt.Fprintf(d.io.out, "warn  %-14s %s\n", what, detail)
}

func (d *doctor) fail(what, detail string) {
	d.failed = true
	_, _ = fmt.Fprintf(d.io.out, "fail  %-14s %s\n", what, detail)
}

// Run looks at everything that serve and worker need, in the order in which they need it.
func (c checkCmd) Run(ctx context.Context, io streams) error {
	d := &doctor{io: io}
	c.keyset(d)
	c.redis(ctx, d)
	client := c.slack(ctx, d)
	c.database(ctx, d, client)
	if d.failed {
		return errFailed
	}
	return nil
}

func (c checkCmd) keyset(d *doctor) {
	sealer, err := c.openSealer()
	if err == nil {
		err = sealer.Check()
	}
	if err != nil {
		d.fail("keyset", err.Error())
		return
	}
	d.ok("keyset", "seals and opens")
}

func (c checkCmd) redis(ctx context.Context, d *doctor) {
	if c.RedisURL == "" {
		d.fail("redis", "set HOLDPOINT_REDIS_URL; the worker needs it")
		return
	}
	r, err := worker.OpenRedis(c.RedisURL)
	if err != nil {
		d.fail("redis", err.Error())
		return
	}
	defer func() { _ = r.Close() }()
	if err := r.Ping(ctx).Err(); err != nil {
		d.fail("redis", "does not answer; check HOLDPOINT_REDIS_URL")
		return
	}
	policy, err := r.ConfigGet(ctx, "maxmemory-policy").Result()
	switch {
	case err != nil:
		d.warn("redis", "answers; its eviction policy cannot be read: make sure that it is noeviction")
	case policy["maxmemory-policy"] != "noeviction":
		d.warn("redis", "evicts keys ("+policy["maxmemory-policy"]+"); nothing is lost, but approved calls start late: set maxmemory-policy noeviction")
	default:
		d.ok("redis", "answers, evicts nothing")
	}
}

func (c checkCmd) slack(ctx context.Context, d *doctor) *bot.Client {
	if err := c.missing(); err != nil {
		d.fail("slack", err.Error())
		return nil
	}
	client, err := bot.NewClient(bot.ClientOptions{Token: c.SlackBotToken, APIURL: c.SlackAPIURL})
	if err != nil {
		d.fail("slack", err.Error())
		return nil
	}
	who, err := client.Identity(ctx)
	if err != nil {
		d.fail("slack", "auth.test: "+err.Error())
		return nil
	}
	d.ok("slack", "the bot is in "+who.TeamName+" ("+who.Team+")")
	for _, scope := range []string{"chat:write", "commands", "usergroups:read", "users:read", "channels:history"} {
		if len(who.Scopes) > 0 && !slices.Contains(who.Scopes, scope) {
			d.fail("slack", "the scope "+scope+" is missing; reinstall the app with `holdpoint slack manifest`")
		}
	}
	return client
}

func (c checkCmd) database(ctx context.Context, d *doctor, client *bot.Client) {
	dsn, err := c.dsn()
	if err != nil {
		d.fail("database", err.Error())
		return
	}
	pool, err := approvals.OpenPool(ctx, dsn, approvals.PoolOptions{Name: "check", Max: shellConns})
	if err != nil {
		d.fail("database", err.Error())
		return
	}
	defer pool.Close()
	if err := ready(ctx, pool); err != nil {
		d.fail("database", err.Error())
		return
	}
	d.ok("database", "answers, schema is current")
	skew(ctx, d, pool)
	core := approvals.New(approvals.Options{Clicks: pool, Intake: pool, Work: pool})
	names, err := core.Tenants(ctx)
	if err != nil || len(names) == 0 {
		d.fail("configuration", "there is none; run `holdpoint config apply`")
		return
	}
	for _, name := range names {
		c.tenant(ctx, d, core, client, name, len(names) == 1)
	}
}

// skew compares this machine's clock with the database's: deadlines use the database's, signatures of Slack this one's.
func skew(ctx context.Context, d *doctor, pool *pgxpool.Pool) {
	var now time.Time
	before := time.Now()
	if err := pool.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&now); err != nil {
		d.fail("clock", "the database's clock cannot be read")
		return
	}
	off := now.Sub(before.Add(time.Since(before) / 2)).Abs()
	switch {
	case off > time.Minute:
		d.fail("clock", fmt.Sprintf("differs from the database's by %s; Slack's signatures are valid for 5 min: run NTP", off.Round(time.Second)))
	case off > 2*time.Second:
		d.warn("clock", fmt.Sprintf("differs from the database's by %s", off.Round(time.Millisecond)))
	default:
		d.ok("clock", "agrees with the database's")
	}
}

func (c checkCmd) tenant(ctx context.Context, d *doctor, core *approvals.Service, client *bot.Client, name string, sole bool) {
	t, revision, err := core.ActiveTenant(ctx, name)
	if err != nil {
		d.fail(name, "the active configuration cannot be read: "+err.Error())
		return
	}
	d.ok(name, fmt.Sprintf("revision %d: %d rules, %d tools, %d agents", revision, len(t.Rules), len(t.Tools), len(t.Agents)))
	if client != nil {
		checkGroups(ctx, d, client, t)
		checkChannels(ctx, d, client, t)
	}
	secrets := rules.Secrets{Dir: c.Secrets, Sole: sole}
	for _, agent := range t.Agents {
		for _, v := range agent.Versions {
			if v.Resume.Pull {
				continue
			}
			if _, err := secrets.Resolve(name, v.Resume.Secret); err != nil {
				d.fail(name, fmt.Sprintf("agent %s %s: %v", agent.Name, v.Name, err))
			}
			endpoint(ctx, d, name, "resume of "+agent.Name, v.Resume.URL)
		}
	}
	for _, tool := range t.Tools {
		if tool.HTTP == nil {
			continue
		}
		for header, ref := range tool.HTTP.Headers {
			if _, err := secrets.Resolve(name, ref); err != nil {
				d.fail(name, fmt.Sprintf("tool %s, header %s: %v", tool.Name, header, err))
			}
		}
		endpoint(ctx, d, name, "tool "+tool.Name, tool.HTTP.URL)
	}
}

// endpoint says whether something listens; nothing is sent.
func endpoint(ctx context.Context, d *doctor, tenant, what, raw string) {
	u, err := url.Parse(strings.SplitN(raw, "{{", 2)[0])
	if err != nil || u.Host == "" {
		d.warn(tenant, what+": the address has placeholders and is not tried")
		return
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443", "http": "80"}[u.Scheme]
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		d.warn(tenant, what+": nothing listens at "+u.Host)
		return
	}
	_ = conn.Close()
	d.ok(tenant, what+": "+u.Host+" listens")
}

// checkGroups makes sure that every rule's groups can be read and have somebody in them.
func checkGroups(ctx context.Context, d *doctor, client *bot.Client, t *rules.Tenant) {
	groups, err := client.Groups(ctx, t.Slack.Team)
	if err != nil {
		d.fail(t.Name, "the user groups cannot be read: "+err.Error())
		return
	}
	look := func(who string, ids []string) {
		for _, id := range ids {
			g, ok := groups[id]
			switch {
			case !ok:
				d.fail(t.Name, fmt.Sprintf("%s: the group %s does not exist or is disabled; nobody in it can decide", who, id))
			case len(g.Members) == 0:
				d.fail(t.Name, fmt.Sprintf("%s: the group @%s is empty; nobody in it can decide", who, g.Handle))
			}
		}
	}
	look("admins", t.Admins.Groups)
	for _, r := range t.Rules {
		look("rule "+r.Name, r.Reviewers.Groups)
		if r.Requesters != nil {
			look("rule "+r.Name+" (requesters)", r.Requesters.Groups)
		}
	}
	d.ok(t.Name, "user groups can be read")
}

// checkChannels makes sure that the bot can post where cards go.
func checkChannels(ctx context.Context, d *doctor, client *bot.Client, t *rules.Tenant) {
	channels := []string{t.Slack.Channel}
	for _, r := range t.Rules {
		if r.Channel != "" && !slices.Contains(channels, r.Channel) {
			channels = append(channels, r.Channel)
		}
	}
	for _, ch := range channels {
		_, _, err := client.FindMessage(ctx, bot.Search{Channel: ch, Since: time.Now().Add(-time.Minute)})
		var api *bot.APIError
		switch {
		case errors.As(err, &api):
			d.fail(t.Name, fmt.Sprintf("channel %s: %s; invite the bot (/invite) and check the id", ch, api.Code))
		case err != nil:
			d.fail(t.Name, fmt.Sprintf("channel %s: %v", ch, err))
		default:
			d.ok(t.Name, "channel "+ch+" can be read")
		}
	}
}
