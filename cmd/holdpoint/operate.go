package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/bot"
	"github.com/holdpoint/holdpoint/templates"
)

// tenantFlags are those of every command that acts on one tenant.
type tenantFlags struct {
	databaseFlags
	Tenant string `required:"" help:"The tenant." env:"HOLDPOINT_TENANT"`
}

// approvalsCmd is what `/approvals list|show|revoke|audit` does, from a shell.
type approvalsCmd struct {
	List   approvalsList   `cmd:"" help:"Approvals that are not over, newest first."`
	Show   approvalsShow   `cmd:"" help:"One approval: where it stands, why, and its audit trail."`
	Revoke approvalsRevoke `cmd:"" help:"Stop approvals that have not been executed."`
}

type approvalsList struct {
	tenantFlags
	Limit int `default:"50" help:"At most this many."`
}

func (c approvalsList) Run(ctx context.Context, io streams) error {
	core, done, err := shell(ctx, c.databaseFlags, sealFlags{}, io)
	if err != nil {
		return err
	}
	defer done()
	views, err := core.Open(ctx, c.Tenant, c.Limit)
	if err != nil {
		return err
	}
	thrown, err := core.Switches(ctx, c.Tenant)
	if err != nil {
		return err
	}
	for _, w := range thrown {
		_, _ = fmt.Fprintf(io.out, "paused: %s (by %s since %s)\n", templates.Visible(w.String()), w.By, w.At.Format("2006-01-02 15:04:05Z07:00"))
	}
	return printViews(io, views)
}

func printViews(io streams, views []approvals.View) error {
	w := tabwriter.NewWriter(io.out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "APPROVAL\tSTATUS\tTOOL\tTARGET\tAGENT\tRUN\tDEADLINE")
	for _, v := range views {
		status := string(v.Status)
		if v.Held != "" {
			status += " (held: " + string(v.Held) + ")"
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", v.ApprovalID, status, templates.Visible(v.Tool), templates.Visible(v.Target),
			v.Agent, templates.Visible(v.RunID), v.ExpiresAt.Format("2006-01-02 15:04:05Z07:00"))
	}
	return w.Flush()
}

type approvalsShow struct {
	tenantFlags
	sealFlags
	ID string `arg:"" help:"apr_…"`
}

func (c approvalsShow) Run(ctx context.Context, io streams) error {
	id, err := approvals.ParseID(c.ID)
	if err != nil {
		return err
	}
	core, done, err := shell(ctx, c.databaseFlags, c.sealFlags, io)
	if err != nil {
		return err
	}
	defer done()
	e, err := core.Explain(ctx, c.Tenant, id)
	if err != nil {
		return err
	}
	if err := printViews(io, []approvals.View{e.View}); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(io.out, "\nrule      %s (revision %d): %s\n", e.View.Rule, e.View.ConfigRevision, e.View.RuleWhy)
	switch {
	case !e.Known:
		_, _ = fmt.Fprintln(io.out, "now       the rule may have changed; the reviewers are those of the request (with HOLDPOINT_KEYSET it is looked up again)")
	case e.Rule == "":
		_, _ = fmt.Fprintf(io.out, "now       no rule of revision %d takes this call: it can only be rejected\n", e.Revision)
	case e.Rule != e.View.Rule:
		_, _ = fmt.Fprintf(io.out, "now       %s (revision %d)\n", e.Rule, e.Revision)
	}
	_, _ = fmt.Fprintf(io.out, "reviewers %s, quorum %d, votes that count %d\nsnapshot  %s\n\n",
		strings.Join(slices.Concat(e.Groups, e.Users), ", "), e.Quorum, e.View.Approving(), templates.Visible(string(e.View.Snapshot)))
	for _, v := range e.View.Votes {
		_, _ = fmt.Fprintf(io.out, "vote      %s\n", templates.Vote{By: v.By, Decision: v.Decision, At: v.At, Void: v.Void}.Plain())
	}
	if len(e.View.Votes) > 0 {
		_, _ = fmt.Fprintln(io.out)
	}
	for i, told := range bot.Timeline(e.Events) { // the kind stands by it, for whoever greps
		_, _ = fmt.Fprintf(io.out, "%s  %-28s %s\n", told.At.Format("2006-01-02 15:04:05.000"), e.Events[i].Kind, told.Plain())
	}
	return nil
}

type approvalsRevoke struct {
	tenantFlags
	What   string `arg:"" help:"apr_… or run:R, agent:A, tool:T, by:U…"`
	Reason string `arg:"" help:"Why; audited and shown."`
}

func (c approvalsRevoke) Run(ctx context.Context, io streams) error {
	sel, err := selector(c.What)
	if err != nil {
		return err
	}
	core, done, err := shell(ctx, c.databaseFlags, sealFlags{}, io)
	if err != nil {
		return err
	}
	defer done()
	views, err := core.Revoke(ctx, approvals.RevokeRequest{Tenant: c.Tenant, By: operator(), Surface: approvals.SurfaceCLI, Select: sel, Reason: c.Reason})
	if perr := printViews(io, views); perr != nil {
		return perr
	}
	return err
}

func selector(what string) (approvals.Selector, error) {
	kind, name, ok := strings.Cut(what, ":")
	switch {
	case !ok:
		id, err := approvals.ParseID(what)
		return approvals.Selector{ID: id}, err
	case name == "":
	case kind == "run":
		return approvals.Selector{Run: name}, nil
	case kind == "agent":
		return approvals.Selector{Agent: name}, nil
	case kind == "tool":
		return approvals.Selector{Tool: name}, nil
	case kind == "by":
		return approvals.Selector{DecidedBy: name}, nil
	}
	return approvals.Selector{}, errors.New("revoke apr_…, run:R, agent:A, tool:T or by:U…")
}

// blockCmd takes a person's authority away.
type blockCmd struct {
	tenantFlags
	User   string `arg:"" help:"U…"`
	Reason string `required:"" help:"Why; audited."`
	Lift   bool   `help:"Give it back."`
}

func (c blockCmd) Run(ctx context.Context, io streams) error {
	core, done, err := shell(ctx, c.databaseFlags, sealFlags{}, io)
	if err != nil {
		return err
	}
	defer done()
	views, err := core.Block(ctx, approvals.BlockRequest{Tenant: c.Tenant, By: operator(), Surface: approvals.SurfaceCLI, UserID: c.User, Reason: c.Reason, Blocked: !c.Lift})
	if err != nil {
		return err
	}
	known, err := core.Mirrored(ctx, c.Tenant, c.User)
	switch {
	case err != nil:
		return err
	case !known:
		_, _ = fmt.Fprintf(io.err, "note: %s is not mirrored, so nobody of that id has asked for or decided anything here. It counts all the same; check the id\n", c.User)
	}
	_, _ = fmt.Fprintf(io.out, "revoked with it: %d\n", len(views))
	return printViews(io, views)
}

// reconcileCmd ends an uncertain operation.
type reconcileCmd struct {
	tenantFlags
	sealFlags
	ID        string `arg:"" help:"apr_…"`
	SlackUser string `help:"Who makes the statement, as a Slack id U…: an admin of the tenant. Needed where the rule asks for two people." placeholder:"U…"`
	Outcome   string `arg:"" enum:"succeeded,failed" help:"succeeded (it happened) or failed (it did not)."`
	Evidence  string `arg:"" help:"What shows it; audited."`
}

func (c reconcileCmd) Run(ctx context.Context, io streams) error {
	id, err := approvals.ParseID(c.ID)
	if err != nil {
		return err
	}
	if _, err := c.openSealer(); err != nil {
		return err
	}
	core, done, err := shell(ctx, c.databaseFlags, c.sealFlags, io)
	if err != nil {
		return err
	}
	defer done()
	v, err := core.Reconcile(ctx, approvals.ReconcileRequest{
		Tenant: c.Tenant, By: operator(), Surface: approvals.SurfaceCLI, ID: id, Happened: c.Outcome == "succeeded", Evidence: c.Evidence, Person: c.SlackUser,
	})
	if err != nil {
		return err
	}
	return printViews(io, []approvals.View{v})
}

// deadlettersCmd lists and re-drives runs that could not be told.
type deadlettersCmd struct {
	List    deadlettersList    `cmd:"" help:"Runs that were given up on."`
	Redrive deadlettersRedrive `cmd:"" help:"Deliver one again."`
}

type deadlettersList struct{ tenantFlags }

func (c deadlettersList) Run(ctx context.Context, io streams) error {
	core, done, err := shell(ctx, c.databaseFlags, sealFlags{}, io)
	if err != nil {
		return err
	}
	defer done()
	list, err := core.DeadLetters(ctx, c.Tenant)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(io.out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "PAUSE\tAGENT\tRUN\tNO\tTRIES\tENDED")
	for _, d := range list {
		ended := "stopped by the agent (410)"
		if d.DeadAt != nil {
			ended = d.DeadAt.Format("2006-01-02 15:04")
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%s\n", d.PauseID, d.Agent, templates.Visible(d.RunID), d.Pause, d.Attempts, ended)
	}
	return w.Flush()
}

type deadlettersRedrive struct {
	tenantFlags
	Pause string `arg:"" help:"The pause's id, from list."`
}

func (c deadlettersRedrive) Run(ctx context.Context, io streams) error {
	core, done, err := shell(ctx, c.databaseFlags, sealFlags{}, io)
	if err != nil {
		return err
	}
	defer done()
	if err := core.Redrive(ctx, c.Tenant, c.Pause); err != nil {
		return err
	}
	_, err = fmt.Fprintln(io.out, "it will be delivered again")
	return err
}

// auditCmd walks the chain.
type auditCmd struct {
	Verify auditVerify `cmd:"" help:"Exit 1 and the first bad row when the chain is broken."`
}

type auditVerify struct{ tenantFlags }

func (c auditVerify) Run(ctx context.Context, io streams) error {
	core, done, err := shell(ctx, c.databaseFlags, sealFlags{}, io)
	if err != nil {
		return err
	}
	defer done()
	rep, err := core.VerifyAudit(ctx, c.Tenant)
	if err != nil {
		return err
	}
	if rep.Bad != "" {
		_, _ = fmt.Fprintln(io.out, "broken:", rep.Bad)
		return errFailed
	}
	_, err = fmt.Fprintf(io.out, "whole: %d events sealed, %d not yet; head %s\n", rep.Sealed, rep.Unsealed, hex.EncodeToString(rep.Head))
	return err
}
