package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdpoint/holdpoint/bot/slacksim"
)

// Each thing that can be wrong has its own line, with the fix; what is right says ok beside it. The Redis and the Postgres are real.
func TestCheckFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	p := start(t, 0, 0)
	other := slacksim.New(slacksim.Options{BotToken: testToken, SigningSecret: testSigning, Unlimited: true, Scopes: []string{"chat:write", "commands", "channels:history"}})
	_, err := other.Listen("127.0.0.1:0")
	p.must(err)
	t.Cleanup(func() { _ = other.Close() })
	people(other)
	client := redis.NewClient(&redis.Options{Addr: p.redis.Addr()})
	t.Cleanup(func() { _ = client.Close() })
	file := func(name, text string) string {
		t.Helper()
		path := filepath.Join(p.dir, name)
		p.must(os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	webhook := func(secret string) func() func() {
		return func() func() {
			file("webhook-secret", secret)
			return func() { file("webhook-secret", hookSecret) }
		}
	}
	plain := string(p.state(p.config))
	config := func(pairs ...string) func() func() {
		return func() func() {
			p.apply(file("other.yaml", strings.NewReplacer(pairs...).Replace(plain)))
			return func() { p.apply(p.config) }
		}
	}
	good := map[string]string{
		"--database-url": p.dsn, "--redis-url": p.redis.URL(), "--keyset": p.keyset, "--slack-bot-token": testToken,
		"--slack-signing-secret": testSigning, "--slack-app-id": "A0HOLDPOINT", "--slack-api-url": p.sim.URL() + "/api/",
	}
	check := func(change map[string]string) result {
		args := []string{"check"}
		for flag, value := range good {
			if v, ok := change[flag]; ok {
				value = v
			}
			args = append(args, flag+"="+value)
		}
		return typed(args...)
	}
	if r := check(nil); r.code != 0 || strings.Contains(r.out, "fail") || strings.Contains(r.out, "warn") {
		t.Fatalf("a good setup: exit %d\n%s", r.code, r.out)
	}
	for _, tc := range []struct {
		name   string
		broken func() (mend func())
		flags  map[string]string
		want   string
		code   int
	}{
		{name: "no keyset file", flags: map[string]string{"--keyset": filepath.Join(p.dir, "none")}, want: `fail  keyset`, code: 1},
		{name: "a keyset of rubbish", flags: map[string]string{"--keyset": file("rubbish", "{}")}, want: `fail  keyset`, code: 1},
		{name: "an evicting Redis", want: `warn  redis .*allkeys-lru.*set maxmemory-policy noeviction`, broken: func() func() {
			p.must(client.ConfigSet(p.ctx, "maxmemory-policy", "allkeys-lru").Err())
			return func() { p.must(client.ConfigSet(p.ctx, "maxmemory-policy", "noeviction").Err()) }
		}},
		{name: "no Redis there", flags: map[string]string{"--redis-url": "redis://127.0.0.1:1"}, want: `fail  redis .*does not answer`, code: 1},
		{name: "no Redis URL", flags: map[string]string{"--redis-url": "nonsense"}, want: `fail  redis`, code: 1},
		{name: "another token", flags: map[string]string{"--slack-bot-token": "xoxb-wrong"}, want: `fail  slack .*invalid_auth`, code: 1},
		{name: "scopes", flags: map[string]string{"--slack-api-url": other.URL() + "/api/"}, want: `fail  slack .*missing scopes: usergroups:read, users:read`, code: 1},
		{name: "groups:history", flags: map[string]string{"--slack-api-url": other.URL() + "/api/"}, want: `warn  slack .*groups:history is missing.*private channel`, code: 1},
		{name: "a short signing secret", flags: map[string]string{"--slack-signing-secret": testSigning + ",short"}, want: `fail  slack .*signing secret 2 has 5 characters`, code: 1},
		{name: "no such channel", broken: config("channel: C0APPROVALS", "channel: C0NOWHERE"), want: `fail  acme .*C0NOWHERE: .*/invite`, code: 1},
		{name: "history refused", want: `fail  acme .*channels:history for public channels, groups:history for private`, code: 1, broken: func() func() {
			p.sim.Fault("conversations.history", slacksim.Error{Code: "missing_scope", Needed: "groups:history"}, 0)
			return p.sim.ClearFaults
		}},
		{name: "no such group", broken: config("S0FINANCE", "S0NOBODY"), want: `fail  acme .*S0NOBODY does not exist`, code: 1},
		{name: "an empty group", want: `fail  acme .*@finance is empty`, code: 1, broken: func() func() {
			p.must(p.sim.SetGroupMembers(p.ctx, "S0FINANCE", nil, false))
			return func() { p.must(p.sim.SetGroupMembers(p.ctx, "S0FINANCE", []string{"U0CAROL", "U0DAVE"}, false)) }
		}},
		{name: "a webhook secret that is no base64", broken: webhook("whsec_not base64!"), want: `fail  acme .*not base64`, code: 1},
		{name: "a webhook secret that can be guessed", broken: webhook("whsec_c2hvcnQ="), want: `fail  acme .*has 5 bytes`, code: 1},
		{name: "a short webhook secret", broken: webhook("sixteen-bytes-16"), want: `warn  acme .*has 16 bytes`},
		{name: "a private address", broken: config("egress: {allow: [127.0.0.0/8]}", "", "://127.0.0.1:", "://localhost:"), want: `fail  acme .*private address.*egress.allow`, code: 1},
		{name: "nobody there", broken: config(p.tool.url, "http://127.0.0.1:1"), want: `warn  acme .*nothing listens at 127.0.0.1:1`},
		{name: "no database there", flags: map[string]string{"--database-url": "postgres://nobody@127.0.0.1:1/none"}, want: `fail  database`, code: 1},
	} {
		mend := func() {}
		if tc.broken != nil {
			mend = tc.broken()
		}
		r := check(tc.flags)
		mend()
		if !regexp.MustCompile(`(?m)^`+tc.want).MatchString(r.out) || r.code != tc.code || r.err != "" {
			t.Errorf("%s: exit %d, want %d; no %q in\n%s%s", tc.name, r.code, tc.code, tc.want, r.out, r.err)
		}
		p.silent(tc.name, r.out)
		for _, secret := range []string{"xoxb-wrong", "c2hvcnQ", "sixteen-bytes-16", "not base64!"} {
			if strings.Contains(r.out, secret) {
				t.Errorf("%s: a secret is printed:\n%s", tc.name, r.out)
			}
		}
	}
	if r := check(nil); r.code != 0 || strings.Contains(r.out, "fail") || strings.Contains(r.out, "warn") {
		t.Errorf("mended: exit %d\n%s", r.code, r.out)
	}
}

// Clocks that differ are told by how much that matters.
func TestSkew(t *testing.T) {
	t.Parallel()
	for off, want := range map[time.Duration]string{0: "ok    clock", 3 * time.Second: "warn  clock", 2 * time.Minute: "fail  clock"} {
		var out bytes.Buffer
		d := &doctor{io: streams{&out, &out}}
		judgeSkew(d, off)
		if got := out.String(); !strings.HasPrefix(got, want) || d.failed != strings.HasPrefix(want, "fail") {
			t.Errorf("%s: %s", fmt.Sprint(off), got)
		}
	}
}
