package templates

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/slack-go/slack"
)

// ErrManifest is wrapped by what [Manifest] finds wrong with its options.
var ErrManifest = errors.New("app manifest")

// ManifestOptions say where Slack finds Holdpoint.
type ManifestOptions struct {
	Name       string // shown in Slack; "Holdpoint" when empty; at most 35 characters
	BaseURL    string // https address that Slack reaches; not needed with Socket Mode
	SocketMode bool
}

// Manifest is the app manifest as JSON, ready to paste (docs.slack.dev/reference/app-manifest). The scopes are the
// least that Holdpoint works with:
//
//   - chat:write: post and update cards, in channels that the bot was invited to
//   - commands: /approvals
//   - usergroups:read, users:read: who may decide
//   - channels:history, groups:history: find a card again by its metadata when the answer to a post was lost
//
// The events keep people and groups current; app_home_opened fills the home tab.
func Manifest(o ManifestOptions) ([]byte, error) {
	name := o.Name
	if name == "" {
		name = "Holdpoint"
	}
	if length(name) > 35 || Visible(name) != name {
		return nil, fmt.Errorf("%w: name must be at most 35 visible characters", ErrManifest)
	}
	base, err := url.Parse(strings.TrimSuffix(o.BaseURL, "/"))
	if !o.SocketMode && (err != nil || base.Scheme != "https" || base.Host == "" || base.User != nil || base.RawQuery != "" || base.Fragment != "") {
		return nil, fmt.Errorf("%w: base URL must be an https address that Slack can reach, or use Socket Mode", ErrManifest)
	}
	at := func(path string) string {
		if o.SocketMode {
			return ""
		}
		return base.String() + path
	}
	m := slack.Manifest{
		Metadata: slack.ManifestMetadata{MajorVersion: 1, MinorVersion: 1},
		Display: slack.Display{
			Name:            name,
			Description:     "Approvals for what AI agents are about to do",
			BackgroundColor: "#1f2937",
		},
		Features: slack.Features{
			AppHome: slack.AppHome{HomeTabEnabled: true},
			BotUser: slack.BotUser{DisplayName: name, AlwaysOnline: true},
			SlashCommands: []slack.ManifestSlashCommand{{
				Command: "/approvals", Description: "See and steer what agents want to do", UsageHint: UsageHint,
				ShouldEscape: true, // mentions arrive as ids, which names can't fake
				Url:          at("/slack/commands"),
			}},
		},
		OAuthConfig: slack.OAuthConfig{Scopes: slack.OAuthScopes{Bot: []string{
			"chat:write", "commands", "usergroups:read", "users:read", "channels:history", "groups:history",
		}}},
		Settings: slack.Settings{
			EventSubscriptions: &slack.EventSubscriptions{
				RequestUrl: at("/slack/events"),
				BotEvents:  []string{"app_home_opened", "subteam_members_changed", "subteam_updated", "team_join", "user_change"},
			},
			Interactivity:     &slack.Interactivity{IsEnabled: true, RequestUrl: at("/slack/interactions")},
			SocketModeEnabled: o.SocketMode,
		},
	}
	out, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrManifest, err)
	}
	return append(out, '\n'), nil
}
