package main

import (
	"fmt"

	"github.com/holdpoint/holdpoint/templates"
)

// slackCmd is `holdpoint slack manifest`.
type slackCmd struct {
	Manifest slackManifest `cmd:"" help:"The app manifest, ready to paste."`
}

type slackManifest struct {
	Name       string `default:"Holdpoint" help:"The app's name in Slack."`
	URL        string `help:"https address under which Slack reaches serve; not needed with --socket-mode." placeholder:"URL"`
	SocketMode bool   `help:"Slack's events come over a web socket instead."`
}

func (c slackManifest) Run(io streams) error {
	text, err := templates.Manifest(templates.ManifestOptions{Name: c.Name, BaseURL: c.URL, SocketMode: c.SocketMode})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(io.out, string(text))
	return err
}
