package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdpoint/holdpoint/approvals/rules"
	"github.com/holdpoint/holdpoint/bot"
)

// shortSigning is less than any signing secret of Slack's has: 32 hexadecimal digits.
const shortSigning = 16

func (c checkCmd) slack(ctx context.Context, d *doctor) *bot.Client {
	if err := c.missing(); err != nil {
		d.fail("slack", err.Error())
		return nil
	}
	for i, s := range c.signingSecrets() {
		if len(s) < shortSigning {
			d.fail("slack", fmt.Sprintf("signing secret %d has %d characters, which anybody can guess; copy it from the app's Basic Information page", i+1, len(s)))
		}
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
	scopes(d, who.Scopes)
	return client
}

// scopes holds what Slack granted to what the manifest asks for.
func scopes(d *doctor, granted []string) {
	if len(granted) == 0 {
		d.warn("slack", "did not say which scopes the token has")
		return
	}
	const again = "; reinstall the app with `holdpoint slack manifest`"
	lacks := func(scope string) bool { return !slices.Contains(granted, scope) }
	missing := slices.DeleteFunc([]string{"chat:write", "commands", "usergroups:read", "users:read"}, func(s string) bool { return !lacks(s) })
	public, private := lacks("channels:history"), lacks("groups:history")
	switch {
	case public && private:
		missing = append(missing, "channels:history", "groups:history")
	case public:
		d.warn("slack", "the scope channels:history is missing: a card in a public channel can't be found again after a lost answer"+again)
	case private:
		d.warn("slack", "the scope groups:history is missing: a card in a private channel can't be found again after a lost answer"+again)
	}
	if len(missing) > 0 {
		d.fail("slack", "missing scopes: "+strings.Join(missing, ", ")+again)
		return
	}
	d.ok("slack", "has its scopes")
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

// noChannel says what to do about Slack's word for a channel that can't be read.
var noChannel = map[string]string{
	"channel_not_found": "the id is wrong, or the channel is private and the bot is not in it: check the id and /invite the bot",
	"not_in_channel":    "the bot is not in it: /invite it",
	"is_archived":       "it is archived: name another in the configuration",
	"missing_scope":     "the token may not read it: channels:history for public channels, groups:history for private ones; reinstall the app with `holdpoint slack manifest`",
}

// checkChannels makes sure that the bot can find cards again where they go.
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
		case errors.As(err, &api) && noChannel[api.Code] != "":
			d.fail(t.Name, fmt.Sprintf("channel %s: %s (%s)", ch, noChannel[api.Code], api.Code))
		case errors.As(err, &api):
			d.fail(t.Name, fmt.Sprintf("channel %s: %s; invite the bot (/invite) and check the id", ch, api.Code))
		case err != nil:
			d.fail(t.Name, fmt.Sprintf("channel %s: %v", ch, err))
		default:
			d.ok(t.Name, "channel "+ch+" can be read")
		}
	}
}
