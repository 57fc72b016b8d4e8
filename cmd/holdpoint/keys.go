package main

import (
	"context"
	"fmt"
	"os/user"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/approvals/seal"
)

// keysCmd is `holdpoint keys …`.
type keysCmd struct {
	databaseFlags
	Create keysCreate `cmd:"" help:"Make an agent's key; it is shown once."`
	List   keysList   `cmd:"" help:"List the keys, never themselves."`
	Revoke keysRevoke `cmd:"" help:"End a key at once."`
	Keyset keysKeyset `cmd:"" help:"Make a keyset file for sealing."`
	Rotate keysRotate `cmd:"" help:"Add a new primary key to a keyset file; older ones still open."`
}

// operator is whoever typed the command, as audited.
func operator() approvals.Actor {
	if u, err := user.Current(); err == nil {
		return approvals.OperatorActor(u.Username)
	}
	return approvals.OperatorActor("unknown")
}

type keysCreate struct {
	Tenant string   `required:"" help:"The tenant." env:"HOLDPOINT_TENANT"`
	Agent  string   `required:"" help:"An agent of its configuration."`
	Tools  []string `help:"Only these tools; default: all the agent's."`
}

func (k keysCreate) Run(ctx context.Context, c *cli, io streams) error {
	core, done, err := shell(ctx, c.Keys.databaseFlags, sealFlags{}, io)
	if err != nil {
		return err
	}
	defer done()
	key, id, err := core.CreateKey(ctx, k.Tenant, k.Agent, k.Tools, operator())
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(io.err, "%s for the agent %q of %q. It is shown once; only its hash is kept.\n", id, k.Agent, k.Tenant)
	_, err = fmt.Fprintln(io.out, key)
	return err
}

type keysList struct {
	Tenant string `help:"Only this tenant's." placeholder:"T"`
}

func (k keysList) Run(ctx context.Context, c *cli, io streams) error {
	core, done, err := shell(ctx, c.Keys.databaseFlags, sealFlags{}, io)
	if err != nil {
		return err
	}
	defer done()
	if k.Tenant != "" { // a name that is wrong is no empty list
		if _, _, err := core.ActiveTenant(ctx, k.Tenant); err != nil {
			return fmt.Errorf("the tenant %q: %w", k.Tenant, err)
		}
	}
	keys, err := core.Keys(ctx)
	if err != nil {
		return err
	}
	keys = slices.DeleteFunc(keys, func(row approvals.KeyRow) bool { return k.Tenant != "" && row.Tenant != k.Tenant })
	w := tabwriter.NewWriter(io.out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "ID\tTENANT\tAGENT\tTOOLS\tCREATED\tBY\tREVOKED")
	for _, k := range keys {
		tools, revoked := "all", "-"
		if k.Tools != nil {
			tools = strings.Join(k.Tools, ",")
		}
		if k.RevokedAt != nil {
			revoked = k.RevokedAt.Format("2006-01-02 15:04")
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", k.ID, k.Tenant, k.Agent, tools, k.CreatedAt.Format("2006-01-02 15:04"), k.CreatedBy, revoked)
	}
	return w.Flush()
}

type keysRevoke struct {
	ID string `arg:"" help:"key_…"`
}

func (k keysRevoke) Run(ctx context.Context, c *cli, io streams) error {
	core, done, err := shell(ctx, c.Keys.databaseFlags, sealFlags{}, io)
	if err != nil {
		return err
	}
	defer done()
	if err := core.RevokeKey(ctx, k.ID, operator()); err != nil {
		return err
	}
	_, err = fmt.Fprintln(io.out, k.ID, "is revoked; what it proposed will not execute")
	return err
}

type keysKeyset struct {
	Out string `required:"" help:"The file to write; it must not exist." placeholder:"FILE"`
}

func (k keysKeyset) Run(io streams) error {
	if err := seal.Generate(k.Out); err != nil {
		return err
	}
	_, err := fmt.Fprintf(io.out, "wrote %s (mode 0600). Set HOLDPOINT_KEYSET to it in serve and worker, and back it up: what it sealed cannot be read without it.\n", k.Out)
	return err
}

type keysRotate struct {
	Keyset string `required:"" help:"The keyset file." placeholder:"FILE"`
}

func (k keysRotate) Run(io streams) error {
	if err := seal.Rotate(k.Keyset); err != nil {
		return err
	}
	_, err := fmt.Fprintln(io.out, "a new key seals from the next start of serve and worker on; older ones still open")
	return err
}
