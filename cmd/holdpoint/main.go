// Command holdpoint is a Slack approval bot for AI agents: it takes a paused run, shows a person what would happen, takes the
// decision, checks that it still holds, runs the tool once, and resumes the run.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

// cli is every subcommand; each has a file of its own.
type cli struct {
	Dev         devCmd         `cmd:"" help:"Everything in one process, to try it: Postgres, Redis, a Slack simulator with a page, an agent, a tool."`
	Serve       serveCmd       `cmd:"" help:"Serve the agents' API and Slack's callbacks."`
	Worker      workerCmd      `cmd:"" help:"Run approved tools, tell agents, keep cards true, sweep."`
	Migrate     migrateCmd     `cmd:"" help:"Bring the database's schema up or down."`
	Config      configCmd      `cmd:"" help:"Check, compare, apply and show the tenants' configuration."`
	Keys        keysCmd        `cmd:"" help:"Agents' API keys, and a keyset for sealing."`
	Check       checkCmd       `cmd:"" help:"The doctor: a line for each thing that must work, with the fix."`
	Approvals   approvalsCmd   `cmd:"" help:"List, show and revoke approvals from a shell."`
	Pause       pauseCmd       `cmd:"" help:"Throw or lift the kill switch."`
	Block       blockCmd       `cmd:"" help:"Take a person's authority away at once, or give it back."`
	Reconcile   reconcileCmd   `cmd:"" help:"Say, with evidence, whether an uncertain effect happened."`
	Deadletters deadlettersCmd `cmd:"" help:"Runs that could not be told: list them, deliver them again."`
	Audit       auditCmd       `cmd:"" help:"Walk a tenant's audit chain."`
	Slack       slackCmd       `cmd:"" help:"The Slack app's manifest."`
}

// streams are the process's standard streams, given so that a test can be a terminal.
type streams struct {
	out, err io.Writer
}

func main() {
	os.Exit(run(os.Args[1:], streams{os.Stdout, os.Stderr}))
}

// run is main with its world given. It ends when the command does, or drains on SIGTERM and SIGINT; a second one ends it at once.
func run(args []string, io streams) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	context.AfterFunc(ctx, stop)
	var c cli
	exited := -1
	parser, err := kong.New(&c, kong.Name("holdpoint"), kong.Description("A Slack approval bot for AI agents."), kong.UsageOnError(),
		kong.Writers(io.out, io.err), kong.Exit(func(code int) { exited = code }), kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(io))
	if err != nil {
		_, _ = fmt.Fprintln(io.err, "holdpoint:", err)
		return 2
	}
	k, err := parser.Parse(args)
	if exited >= 0 {
		return exited
	}
	if err != nil {
		parser.FatalIfErrorf(err)
		return max(exited, 2)
	}
	if err := k.Run(); err != nil {
		if !errors.Is(err, errFailed) {
			_, _ = fmt.Fprintln(io.err, "holdpoint:", err)
		}
		return 1
	}
	return 0
}

// errFailed ends a command with exit code 1 after it has said why itself.
var errFailed = errors.New("failed")
