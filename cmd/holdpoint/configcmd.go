package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/approvals/rules"
	"github.com/holdpoint/holdpoint/templates"
)

// configCmd is `holdpoint config …`.
type configCmd struct {
	databaseFlags
	sealFlags
	Check configCheck `cmd:"" help:"Read and compile the files; nothing is written."`
	Diff  configDiff  `cmd:"" help:"What the files would change, and which waiting approvals they would block."`
	Apply configApply `cmd:"" help:"Make the files the active configuration of the tenants that they name."`
	Show  configShow  `cmd:"" help:"The active configuration of a tenant."`
}

type configFiles struct {
	Path string `arg:"" help:"A YAML file, or a folder of them." placeholder:"FILE_OR_DIR"`
}

type configCheck struct{ configFiles }

func (c configCheck) Run(io streams) error {
	cfg, err := readConfig(c.Path)
	if err != nil {
		return problems(io, err)
	}
	for _, name := range cfg.Names() {
		t := cfg.Tenants[name]
		_, _ = fmt.Fprintf(io.out, "ok    %s: %d rules, %d tools, %d agents\n", name, len(t.Rules), len(t.Tools), len(t.Agents))
	}
	for _, w := range cfg.Warnings() {
		_, _ = fmt.Fprintln(io.out, "warn  "+w.Error())
	}
	return nil
}

// problems prints each fault on a line of its own.
func problems(io streams, err error) error {
	var many interface{ Unwrap() []error }
	if errors.As(err, &many) {
		for _, e := range many.Unwrap() {
			_, _ = fmt.Fprintln(io.err, e)
		}
		return errFailed
	}
	return err
}

type configDiff struct{ configFiles }

func (c configDiff) Run(ctx context.Context, all *cli, io streams) error {
	cfg, err := readConfig(c.Path)
	if err != nil {
		return problems(io, err)
	}
	core, done, err := shell(ctx, all.Config.databaseFlags, all.Config.sealFlags, io)
	if err != nil {
		return err
	}
	defer done()
	for _, name := range cfg.Names() {
		was, revision, err := core.ActiveTenant(ctx, name)
		if err != nil && !errors.Is(err, approvals.ErrNoConfig) {
			return err
		}
		changes := rules.Diff(was, cfg.Tenants[name])
		_, _ = fmt.Fprintf(io.out, "%s: %d changes against revision %d\n", name, len(changes), revision)
		for _, ch := range changes {
			_, _ = fmt.Fprintln(io.out, "  "+ch.String())
		}
		if was == nil || len(changes) == 0 {
			continue
		}
		if err := impact(ctx, core, all.Config.Keyset, cfg.Tenants[name], "would block", io); err != nil {
			return err
		}
	}
	return nil
}

// impact prints which waiting approvals a configuration blocks, would hold, and of which nobody can tell.
func impact(ctx context.Context, core *approvals.Service, keyset string, t *rules.Tenant, blocks string, io streams) error {
	if keyset == "" {
		_, _ = fmt.Fprintf(io.out, "  set HOLDPOINT_KEYSET to see which waiting approvals this %s: the rules are run again on their sealed arguments\n", blocks)
		return nil
	}
	found, err := core.Impact(ctx, t)
	if err != nil {
		return err
	}
	showImpact(found, blocks, io)
	return nil
}

func showImpact(found approvals.Impact, blocks string, io streams) {
	show := func(what string, views []approvals.View) {
		if len(views) == 0 {
			return
		}
		_, _ = fmt.Fprintf(io.out, "  %s:\n", what)
		for _, v := range views {
			_, _ = fmt.Fprintf(io.out, "    %s  %s  %s  run %s\n", v.ApprovalID, v.Status, templates.Visible(v.Tool), templates.Visible(v.RunID))
		}
	}
	for _, why := range slices.Sorted(maps.Keys(found.Blocked)) {
		show(fmt.Sprintf("%s %d waiting approvals (%s)", blocks, len(found.Blocked[why]), why), found.Blocked[why])
	}
	show(fmt.Sprintf("%d approved ones are outside of the window and wait for it", len(found.Held)), found.Held)
	show(fmt.Sprintf("could not check %d: their people or groups are not mirrored (recently enough), or their arguments cannot be opened", len(found.Unchecked)), found.Unchecked)
}

// listingTime is how long `config apply` looks at what waits before it applies.
const listingTime = 10 * time.Second

func whyUnlisted(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Sprintf("it takes longer than %s", listingTime)
	}
	return err.Error()
}

type configApply struct{ configFiles }

func (c configApply) Run(ctx context.Context, all *cli, io streams) error {
	cfg, err := readConfig(c.Path)
	if err != nil {
		return problems(io, err)
	}
	core, done, err := shell(ctx, all.Config.databaseFlags, all.Config.sealFlags, io)
	if err != nil {
		return err
	}
	defer done()
	if err := local(ctx, core, cfg); err != nil {
		return err
	}
	// Looked at before: what the new configuration blocks may have ended a moment after it is active.
	// It is a courtesy: a revision that takes authority away waits for no listing.
	blocks, unlisted := map[string]approvals.Impact{}, map[string]error{}
	for _, name := range cfg.Names() {
		if all.Config.Keyset == "" {
			break
		}
		looking, stop := context.WithTimeout(ctx, listingTime)
		blocks[name], unlisted[name] = core.Impact(looking, cfg.Tenants[name])
		stop()
	}
	if err := ctx.Err(); err != nil {
		return err // whoever typed it ended it
	}
	applied, err := core.Apply(ctx, cfg, operator())
	for _, a := range applied {
		word := "unchanged, revision"
		if a.Changed {
			word = "active, revision"
		}
		_, _ = fmt.Fprintf(io.out, "%s: %s %d\n", a.Tenant, word, a.Revision)
		for _, v := range a.Ended {
			_, _ = fmt.Fprintf(io.out, "  %s %s: %s (run %s)\n", v.ApprovalID, v.Status, v.ReasonCode, v.RunID)
		}
		if a.Changed && a.Revision > 1 {
			if all.Config.Keyset == "" {
				_, _ = fmt.Fprintln(io.out, "  set HOLDPOINT_KEYSET to see which waiting approvals a configuration blocks")
			}
			if err := unlisted[a.Tenant]; err != nil {
				_, _ = fmt.Fprintf(io.out, "  which waiting approvals it blocks could not be listed: %s\n", whyUnlisted(err))
				continue
			}
			found := blocks[a.Tenant]
			delete(found.Blocked, approvals.ReasonToolChanged) // ended, and listed above
			delete(found.Blocked, approvals.ReasonVersionUnregistered)
			showImpact(found, "blocks", io)
		}
	}
	return err
}

// local refuses `env:` and `file:` references once there are several tenants: one tenant's could name another's secret.
func local(ctx context.Context, core *approvals.Service, cfg *rules.Config) error {
	known, err := core.Tenants(ctx)
	if err != nil {
		return err
	}
	all := map[string]bool{}
	for _, name := range append(known, cfg.Names()...) {
		all[name] = true
	}
	if len(all) < 2 {
		return nil
	}
	for name := range all {
		t := cfg.Tenants[name]
		if t == nil {
			if t, _, err = core.ActiveTenant(ctx, name); err != nil {
				return err
			}
		}
		if refs := t.LocalReferences(); len(refs) > 0 {
			return fmt.Errorf("tenant %s uses %s; with several tenants only secret:NAME is allowed (in $HOLDPOINT_SECRETS/%s/NAME)", name, strings.Join(refs, ", "), name)
		}
	}
	return nil
}

type configShow struct {
	Tenant string `help:"One tenant; default: all."`
}

func (c configShow) Run(ctx context.Context, all *cli, io streams) error {
	core, done, err := shell(ctx, all.Config.databaseFlags, all.Config.sealFlags, io)
	if err != nil {
		return err
	}
	defer done()
	names := []string{c.Tenant}
	if c.Tenant == "" {
		if names, err = core.Tenants(ctx); err != nil {
			return err
		}
	}
	for i, name := range names {
		t, revision, err := core.ActiveTenant(ctx, name)
		if err != nil {
			return err
		}
		text, err := yamlOf(name, t.Body())
		if err != nil {
			return err
		}
		if i > 0 { // a file each: their egress may differ
			_, _ = fmt.Fprintln(io.out, "---")
		}
		_, _ = fmt.Fprintf(io.out, "# %s, revision %d\n%s", name, revision, text)
	}
	return nil
}

// yamlOf writes a stored body as the configuration file that it comes from, which `config check` takes.
func yamlOf(name string, body []byte) (string, error) {
	var parts map[string]json.RawMessage
	if err := json.Unmarshal(body, &parts); err != nil {
		return "", err
	}
	tenant, err := json.Marshal(map[string]json.RawMessage{name: parts["tenant"]})
	if err != nil {
		return "", err
	}
	delete(parts, "tenant")
	parts["tenants"] = tenant
	file, err := json.Marshal(parts)
	if err != nil {
		return "", err
	}
	text, err := yaml.JSONToYAML(file)
	return string(text), err
}
