package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/holdpoint/holdpoint/approvals/rules"
)

// databaseFlags say where Postgres is.
type databaseFlags struct {
	DatabaseURL string `env:"HOLDPOINT_DATABASE_URL" help:"Postgres URL." placeholder:"URL"`
}

func (f databaseFlags) dsn() (string, error) {
	if f.DatabaseURL == "" {
		return "", errors.New("no database: set --database-url or HOLDPOINT_DATABASE_URL to a Postgres URL")
	}
	return f.DatabaseURL, nil
}

// sealFlags say which keys seal states, arguments and results, and where the secrets of tools and webhooks are.
type sealFlags struct {
	Keyset  string `env:"HOLDPOINT_KEYSET" help:"Keyset file (holdpoint keys keyset --out FILE) or KMS URI." placeholder:"FILE"`
	Secrets string `env:"HOLDPOINT_SECRETS" help:"Folder of secrets: <tenant>/NAME." placeholder:"DIR"`
}

// slackFlags connect to Slack.
type slackFlags struct {
	SlackBotToken      string `env:"SLACK_BOT_TOKEN" help:"Bot token (xoxb-…)." placeholder:"TOKEN"`
	SlackSigningSecret string `env:"SLACK_SIGNING_SECRET" help:"Signing secret; two, separated by a comma, while it is rotated." placeholder:"SECRET"`
	SlackAppID         string `env:"SLACK_APP_ID" help:"App id (A…): callbacks of other apps are refused." placeholder:"ID"`
	SlackAppToken      string `env:"SLACK_APP_TOKEN" help:"App token (xapp-…): Socket Mode is used too." placeholder:"TOKEN"`
	SlackAPIURL        string `env:"HOLDPOINT_SLACK_API_URL" name:"slack-api-url" help:"Another Slack, such as a simulator; ends in a slash." placeholder:"URL"`
}

func (f slackFlags) signingSecrets() [][]byte {
	var out [][]byte
	for s := range strings.SplitSeq(f.SlackSigningSecret, ",") {
		if s = strings.TrimSpace(s); s != "" {
			out = append(out, []byte(s))
		}
	}
	return out
}

// appID is SLACK_APP_ID, or what an app token names.
func (f slackFlags) appID() string {
	if f.SlackAppID != "" {
		return f.SlackAppID
	}
	if parts := strings.Split(f.SlackAppToken, "-"); len(parts) > 2 && strings.HasPrefix(parts[2], "A") {
		return parts[2]
	}
	return ""
}

func (f slackFlags) missing() error {
	var names []string
	for _, s := range []struct{ name, value string }{
		{"SLACK_BOT_TOKEN", f.SlackBotToken}, {"SLACK_SIGNING_SECRET", string(bytes.Join(f.signingSecrets(), nil))}, {"SLACK_APP_ID", f.appID()},
	} {
		if strings.TrimSpace(s.value) == "" {
			names = append(names, s.name)
		}
	}
	if len(names) > 0 {
		return fmt.Errorf("missing settings: %s (the app's Basic Information page and `holdpoint slack manifest` have them)", strings.Join(names, ", "))
	}
	if f.SlackAPIURL != "" {
		if u, err := url.Parse(f.SlackAPIURL); err != nil || u.Host == "" || !strings.HasSuffix(f.SlackAPIURL, "/") {
			return errors.New("HOLDPOINT_SLACK_API_URL must be an absolute URL that ends in a slash")
		}
	}
	return nil
}

// logFlags shape the log.
type logFlags struct {
	LogFormat string `env:"HOLDPOINT_LOG_FORMAT" enum:"json,text" default:"json" help:"json or text."`
	LogLevel  string `env:"HOLDPOINT_LOG_LEVEL" enum:"debug,info,warn,error" default:"info" help:"debug, info, warn or error."`
}

func (f logFlags) logger(w io.Writer) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(f.LogLevel)) // kong checked the enum
	o := &slog.HandlerOptions{Level: level}
	var h slog.Handler = slog.NewJSONHandler(w, o)
	if f.LogFormat == "text" {
		h = slog.NewTextHandler(w, o)
	}
	return slog.New(quietly(h, time.Now))
}

// readConfig reads one YAML file, or every .yaml and .yml of a folder, in name order.
func readConfig(path string) (*rules.Config, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	names := []string{path}
	if info.IsDir() {
		names = nil
		err := filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(p)) {
				names = append(names, p)
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("configuration: %w", err)
		}
		if len(names) == 0 {
			return nil, fmt.Errorf("configuration: no .yaml file in %s", path)
		}
	}
	files := make([]rules.File, 0, len(names))
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("configuration: %w", err)
		}
		files = append(files, rules.File{Name: name, Data: data})
	}
	return rules.Parse(files)
}
