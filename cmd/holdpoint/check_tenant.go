package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"code.dny.dev/ssrf"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/approvals/rules"
	"github.com/holdpoint/holdpoint/bot"
	"github.com/holdpoint/holdpoint/worker/tools"
)

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
	for _, agentName := range slices.Sorted(maps.Keys(t.Agents)) {
		agent := t.Agents[agentName]
		for _, v := range agent.Versions {
			if v.Resume.Pull {
				continue
			}
			who := "agent " + agent.Name + " " + v.Name
			if secret, err := secrets.Resolve(name, v.Resume.Secret); err != nil {
				d.fail(name, fmt.Sprintf("%s: %v", who, err))
			} else {
				webhookSecret(d, name, who, secret)
			}
			endpoint(ctx, d, t, "resume of "+agent.Name, v.Resume.URL)
		}
	}
	for _, toolName := range slices.Sorted(maps.Keys(t.Tools)) {
		tool := t.Tools[toolName]
		if tool.HTTP == nil {
			continue
		}
		for _, header := range slices.Sorted(maps.Keys(tool.HTTP.Headers)) {
			if _, err := secrets.Resolve(name, tool.HTTP.Headers[header]); err != nil {
				d.fail(name, fmt.Sprintf("tool %s, header %s: %v", tool.Name, header, err))
			}
		}
		endpoint(ctx, d, t, "tool "+tool.Name, tool.HTTP.URL)
		if tool.HTTP.Lookup != "" {
			endpoint(ctx, d, t, "look-up of "+tool.Name, tool.HTTP.Lookup)
		}
	}
}

// A webhook's secret should have 24 to 64 bytes (standard-webhooks.com, "Signature scheme"); half of that can still not be guessed.
const (
	goodSecret = 24
	weakSecret = 12
)

// webhookSecret looks at a secret's form and length, and repeats nothing of it.
func webhookSecret(d *doctor, tenant, who, secret string) {
	size := len(secret)
	if text, ok := strings.CutPrefix(secret, "whsec_"); ok {
		key, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			d.fail(tenant, who+": the webhook secret starts with whsec_ and is not base64 after it, so nothing can be signed; make one with `echo whsec_$(openssl rand -base64 32)`")
			return
		}
		size = len(key)
	}
	switch {
	case size < weakSecret:
		d.fail(tenant, fmt.Sprintf("%s: the webhook secret has %d bytes, which can be guessed; make one with `echo whsec_$(openssl rand -base64 32)`", who, size))
	case size < goodSecret:
		d.warn(tenant, fmt.Sprintf("%s: the webhook secret has %d bytes; 24 to 64 are usual", who, size))
	default:
		d.ok(tenant, who+": the webhook secret can sign")
	}
}

// endpoint says whether something listens, and whether the worker would connect to it; nothing is sent.
func endpoint(ctx context.Context, d *doctor, t *rules.Tenant, what, raw string) {
	u, err := url.Parse(strings.SplitN(strings.SplitN(raw, "{{", 2)[0], "{operation_key}", 2)[0])
	if err != nil || u.Host == "" {
		d.warn(t.Name, what+": the address has placeholders and is not tried")
		return
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443", "http": "80"}[u.Scheme]
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	conn, err := dialer(t.Egress)(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	var dns *net.DNSError
	switch {
	case errors.Is(err, ssrf.ErrProhibitedIP), errors.Is(err, ssrf.ErrProhibitedNetwork):
		d.fail(t.Name, what+": "+u.Host+" is a private address, which the worker won't connect to; put its network into egress.allow")
		return
	case errors.As(err, &dns):
		d.warn(t.Name, what+": the name of "+u.Host+" can't be resolved here")
		return
	case err != nil:
		d.warn(t.Name, what+": nothing listens at "+u.Host)
		return
	}
	_ = conn.Close()
	d.ok(t.Name, what+": "+u.Host+" listens")
}

// dialer connects as the worker does: to public addresses, and what the tenant allows.
func dialer(allow []netip.Prefix) func(ctx context.Context, network, addr string) (net.Conn, error) {
	if transport, ok := (tools.Egress{}).Client(allow, nil).Transport.(*http.Transport); ok && transport.DialContext != nil {
		return transport.DialContext
	}
	return func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no dialer") }
}
