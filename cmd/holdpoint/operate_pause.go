package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/holdpoint/holdpoint/approvals"
)

// pauseCmd is the kill switch.
type pauseCmd struct {
	tenantFlags
	Scope  string `arg:"" enum:"tenant,agent,tool" help:"tenant, agent or tool."`
	Name   string `arg:"" optional:"" help:"The agent's or the tool's name."`
	Reason string `required:"" help:"Why; audited and shown on the cards."`
	Lift   bool   `help:"Unpause: what was held may start."`
	Yes    bool   `help:"Unpause without asking."`
}

func (c pauseCmd) Run(ctx context.Context, io streams) error {
	core, done, err := shell(ctx, c.databaseFlags, sealFlags{}, io)
	if err != nil {
		return err
	}
	defer done()
	if c.Scope == "tenant" {
		c.Name = ""
	}
	listed := ""
	if c.Lift {
		if listed, err = c.sure(ctx, core, io); err != nil {
			return err
		}
	}
	met, err := core.Suspend(ctx, approvals.SuspendRequest{
		Tenant: c.Tenant, By: operator(), Surface: approvals.SurfaceCLI, Scope: c.Scope, Name: c.Name, Reason: c.Reason, Active: !c.Lift, Listed: listed,
	})
	if err != nil {
		return err
	}
	what := strings.TrimSpace(c.Scope + " " + c.Name)
	if c.Lift {
		_, _ = fmt.Fprintf(io.out, "%s unpaused. Starting after being checked again: %d\n", what, len(met.WouldStart))
		return printViews(io, met.WouldStart)
	}
	_, _ = fmt.Fprintf(io.out, "%s paused; nothing new executes. Running right now, not stopped: %d. Held: %d. Waiting for a decision: %d\n",
		what, len(met.InFlight), len(met.WouldStart), len(met.Waiting))
	return printViews(io, append(met.InFlight, met.WouldStart...))
}

// sure makes sure that there is a switch to lift, and shows what lifting it would start before it asks. listed names what was shown:
// exactly that may start; empty when nobody was asked.
func (c pauseCmd) sure(ctx context.Context, core *approvals.Service, io streams) (listed string, err error) {
	thrown, err := core.Switches(ctx, c.Tenant)
	if err != nil {
		return "", err
	}
	if !slices.ContainsFunc(thrown, func(w approvals.Switch) bool { return w.Scope == c.Scope && w.Name == c.Name }) {
		names := make([]string, 0, len(thrown))
		for _, w := range thrown {
			names = append(names, strings.TrimSpace(w.Scope+" "+w.Name))
		}
		return "", fmt.Errorf("%s is not paused; nothing was changed (paused: %s)", strings.TrimSpace(c.Scope+" "+c.Name), orNone(names))
	}
	if c.Yes {
		return "", nil
	}
	reach, err := core.Reach(ctx, c.Tenant, c.Scope, c.Name)
	if err != nil {
		return "", err
	}
	_, _ = fmt.Fprintf(io.out, "unpausing would start %d approved calls:\n", len(reach.WouldStart))
	if err := printViews(io, reach.WouldStart); err != nil {
		return "", err
	}
	_, _ = fmt.Fprint(io.out, "start them? [y/N] ")
	line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
	if strings.ToLower(strings.TrimSpace(line)) != "y" {
		return "", errors.New("nothing was changed")
	}
	return reach.Listed, nil
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "nothing"
	}
	return strings.Join(names, ", ")
}
