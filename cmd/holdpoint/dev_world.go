package main

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/holdpoint/holdpoint/bot/slacksim"
	"github.com/holdpoint/holdpoint/templates"
)

// What the simulated workspace and the product know of each other, as a real app's settings would say it.
const (
	simToken  = "xoxb-simulator"               //nolint:gosec // the simulator's own, opens nothing
	simSecret = "holdpoint-dev-signing-secret" //nolint:gosec // the simulator's own, opens nothing
	simApp    = "A0HOLDPOINT"
	simTeam   = "T0ACME"
)

// simulator starts the Slack that `dev` talks to, with people of every kind that matters.
func (d *dev) simulator() error {
	sim := slacksim.New(slacksim.Options{
		Team: simTeam, BotToken: simToken, SigningSecret: simSecret, AppID: simApp, CallbackURL: d.base,
		Panel: d.panel, OnAction: d.act,
	})
	sim.AddChannel(slacksim.Channel{ID: "C0APPROVALS", Name: "approvals", Topic: "What agents ask for"})
	sim.AddChannel(slacksim.Channel{ID: "C0RELEASES", Name: "releases", Topic: "Deploys"})
	for _, u := range []slacksim.User{
		{ID: "U0ALICE", Name: "alice", RealName: "Alice (release manager)"},
		{ID: "U0BOB", Name: "bob", RealName: "Bob (release manager)"},
		{ID: "U0CAROL", Name: "carol", RealName: "Carol (finance)"},
		{ID: "U0DAVE", Name: "dave", RealName: "Dave (finance)"},
		{ID: "U0REQ", Name: "rita", RealName: "Rita (asked the agent)"},
		{ID: "U0MALLORY", Name: "mallory", RealName: "Mallory (support)"},
		{ID: "U0GUEST", Name: "gus", RealName: "Gus (guest)", IsRestricted: true},
		{ID: "U0ROOT", Name: "root", RealName: "Root (admin)", Admin: true},
	} {
		u.TeamID = simTeam
		sim.AddUser(u)
	}
	sim.AddGroup(slacksim.Group{ID: "S0RELEASE", Name: "Release managers", Handle: "release-managers", Members: []string{"U0ALICE", "U0BOB", "U0REQ", "U0GUEST"}})
	sim.AddGroup(slacksim.Group{ID: "S0FINANCE", Name: "Finance", Handle: "finance", Members: []string{"U0CAROL", "U0DAVE", "U0ALICE"}})
	sim.AddGroup(slacksim.Group{ID: "S0SUPPORT", Name: "Support", Handle: "support", Members: []string{"U0MALLORY"}})
	d.sim = sim
	d.undo = append(d.undo, func() { _ = sim.Close() })
	url, err := sim.Listen(nextPort(d.base))
	if err != nil {
		if url, err = sim.Listen("127.0.0.1:0"); err != nil {
			return fmt.Errorf("the Slack simulator: %w", err)
		}
	}
	d.simURL = strings.TrimSuffix(url, "/")
	return nil
}

// nextPort is the address one port above the API's, so that it is the same at every start.
func nextPort(base string) string {
	host, port, err := net.SplitHostPort(strings.TrimPrefix(base, "http://"))
	if err != nil {
		return "127.0.0.1:0"
	}
	n, err := strconv.Atoi(port)
	if err != nil || n >= 65535 {
		return "127.0.0.1:0"
	}
	return net.JoinHostPort(host, strconv.Itoa(n+1))
}

// panel is what the page shows beside the channel: the outside world that the approvals are about.
func (d *dev) panel() slacksim.Panel {
	agent := d.agent.Load()
	if agent == nil || d.tool == nil {
		return slacksim.Panel{Title: "Your configuration", Items: append(d.paused(), slacksim.PanelItem{Label: "API", Value: d.base + "/v1/approvals"})}
	}
	effects, requests, last := d.tool.counts()
	tone := ""
	if effects > 0 {
		tone = "good"
	}
	p := slacksim.Panel{Title: "The demo's world", Items: append(d.paused(),
		slacksim.PanelItem{Label: "Effects at the tool", Value: strconv.Itoa(effects), Tone: tone},
		slacksim.PanelItem{Label: "Requests it received", Value: strconv.Itoa(requests)},
	)}
	if last != "" {
		p.Items = append(p.Items, slacksim.PanelItem{Label: "Last effect", Value: last, Tone: "good"})
	}
	p.Items = append(p.Items, agent.items()...)
	for _, s := range scenarios {
		p.Actions = append(p.Actions, slacksim.PanelAction{Label: s.label, ID: s.id})
	}
	return p
}

// paused are the switches that are thrown. A database that does not answer leaves them out: the panel is no place to wait.
func (d *dev) paused() []slacksim.PanelItem {
	core := d.core.Load()
	if core == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	names, err := core.Tenants(ctx)
	if err != nil {
		return nil
	}
	var out []slacksim.PanelItem
	for _, name := range names {
		thrown, err := core.Switches(ctx, name)
		if err != nil {
			return out
		}
		for _, w := range thrown {
			out = append(out, slacksim.PanelItem{Label: "⏸ Paused by " + d.called(w.By), Value: templates.Visible(w.String()), Tone: "bad"})
		}
	}
	return out
}

// called is an actor's name on the page.
func (d *dev) called(actor string) string {
	if name := d.sim.UserName(strings.TrimPrefix(actor, "slack:")); name != "" {
		return "@" + name
	}
	return actor
}

// act is a button of the panel: the demo agent starts another run.
func (d *dev) act(id string) error {
	agent := d.agent.Load()
	if agent == nil {
		return fmt.Errorf("the demo's agent is not running")
	}
	return agent.start(id)
}
