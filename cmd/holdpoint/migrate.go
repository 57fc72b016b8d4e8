package main

import (
	"context"
	"fmt"

	"github.com/holdpoint/holdpoint/migrations"
)

// migrateCmd is `holdpoint migrate up|down|status`.
type migrateCmd struct {
	databaseFlags
	Up     migrateUp     `cmd:"" help:"Apply every migration that is missing."`
	Down   migrateDown   `cmd:"" help:"Take back the newest migration, with all that its tables hold."`
	Status migrateStatus `cmd:"" help:"List the migrations."`
}

type migrateUp struct{}

func (migrateUp) Run(ctx context.Context, c *cli, io streams) error {
	dsn, err := c.Migrate.dsn()
	if err != nil {
		return err
	}
	if err := migrations.Up(ctx, dsn); err != nil {
		return err
	}
	_, err = fmt.Fprintln(io.out, "the schema is at version", migrations.Version)
	return err
}

type migrateDown struct {
	Yes bool `help:"Really: the data of the tables that go is lost." required:""`
}

func (migrateDown) Run(ctx context.Context, c *cli) error {
	dsn, err := c.Migrate.dsn()
	if err != nil {
		return err
	}
	return migrations.Down(ctx, dsn)
}

type migrateStatus struct{}

func (migrateStatus) Run(ctx context.Context, c *cli, io streams) error {
	dsn, err := c.Migrate.dsn()
	if err != nil {
		return err
	}
	states, err := migrations.Status(ctx, dsn)
	if err != nil {
		return err
	}
	for _, s := range states {
		word := "missing"
		if s.Applied {
			word = "applied"
		}
		_, _ = fmt.Fprintf(io.out, "%-8s %5d  %s\n", word, s.Version, s.Name)
	}
	return nil
}
