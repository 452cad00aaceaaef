package maintain

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/term"
)

// DatabaseParts are what only main can provide to the commands about the database.
type DatabaseParts struct {
	// Restore replaces a data root's database by a backup, and returns where it kept the old one.
	Restore func(ctx context.Context, home, backup string) (kept string, err error)
	// Rebuild adds to a data root's database what only the folders of runs know.
	Rebuild func(ctx context.Context, home string) (*api.Rebuilt, error)
}

// NewDatabase returns the command agency db.
func NewDatabase(d *command.Deps, parts DatabaseParts) *cobra.Command {
	return command.Group(cobra.Command{
		Use:     "db",
		Short:   "Check, back up, restore and rebuild the database",
		GroupID: "maintain",
		Long: `The database is the record of all runs. Use these commands instead of
opening it: only the daemon may open it.`,
		Example: "  agency db check",
	}, newDatabaseCheck(d), newDatabaseBackup(d), newDatabaseRestore(d, parts), newDatabaseRebuild(d, parts))
}

// newDatabaseCheck returns the command agency db check.
func newDatabaseCheck(d *command.Deps) *cobra.Command {
	return command.New(cobra.Command{
		Use: "check", Short: "Read the whole database and report what is wrong", Example: "  agency db check", Args: command.Takes(),
	}, func(cmd *cobra.Command, _ []string) error {
		resp, err := command.Call(cmd.Context(), d, api.CheckDatabase, api.Empty{})
		if err != nil {
			return err
		}
		return d.Print(resp, func(w io.Writer) { _, _ = fmt.Fprintf(w, "%s is whole\n", term.SafeLine(resp.Path)) })
	})
}

// newDatabaseBackup returns the command agency db backup.
func newDatabaseBackup(d *command.Deps) *cobra.Command {
	return command.New(cobra.Command{
		Use: "backup [FILE]", Short: "Write a copy of the database", Example: "  agency db backup $HOME/agency-backup.db", Args: cobra.MaximumNArgs(1),
	}, func(cmd *cobra.Command, args []string) error {
		req := api.BackupDatabaseRequest{}
		if len(args) == 1 {
			req.Path = d.Absolute(args[0])
		}
		resp, err := command.Call(cmd.Context(), d, api.BackupDatabase, req)
		if err != nil {
			return err
		}
		return d.Print(resp, func(w io.Writer) { _, _ = fmt.Fprintln(w, term.SafeLine(resp.Path)) })
	})
}

// databaseRestoreOptions are the flags and dependencies of agency db restore.
type databaseRestoreOptions struct {
	*command.Deps

	parts DatabaseParts
}

// newDatabaseRestore returns the command agency db restore.
func newDatabaseRestore(d *command.Deps, parts DatabaseParts) *cobra.Command {
	o := &databaseRestoreOptions{Deps: d, parts: parts}
	return command.New(cobra.Command{
		Use: "restore FILE", Short: "Replace the database with a backup",
		Long: `Replaces the database with a backup. Stop the daemon first. agency checks the
backup before it changes anything, and keeps the previous database next to the new one.`,
		Example: "  agency daemon stop && agency db restore $HOME/agency-backup.db",
		Args:    command.Takes("FILE"),
	}, o.run)
}

func (o *databaseRestoreOptions) run(cmd *cobra.Command, args []string) error {
	cfg, err := o.Places()
	if err != nil {
		return err
	}
	backup := o.Absolute(args[0])
	kept, err := o.parts.Restore(cmd.Context(), cfg.Home, backup)
	if err != nil {
		return err
	}
	return o.Print(map[string]any{"restored": backup, "kept": kept}, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "restored %s\n", term.SafeLine(backup))
		if kept != "" {
			_, _ = fmt.Fprintf(w, "what stood there before is kept as %s\n", term.SafeLine(kept))
		}
		_, _ = fmt.Fprintln(w, "to add the runs that were made since: agency db rebuild")
	})
}

// databaseRebuildOptions are the flags and dependencies of agency db rebuild.
type databaseRebuildOptions struct {
	*command.Deps

	parts DatabaseParts
}

// newDatabaseRebuild returns the command agency db rebuild.
func newDatabaseRebuild(d *command.Deps, parts DatabaseParts) *cobra.Command {
	o := &databaseRebuildOptions{Deps: d, parts: parts}
	return command.New(cobra.Command{
		Use: "rebuild", Short: "Add runs to the database from their run directories",
		Long: `Adds to the database what only the run directories have; without a database it
creates one. Stop the daemon first. Live agents continue, and the next daemon finds them. Events,
messages, alerts, timers, sessions and trust are in no such directory: they stay as the database has
them. agency keeps the previous database next to the new one.`,
		Example: "  agency daemon stop && agency db rebuild",
		Args:    command.Takes(),
	}, o.run)
}

func (o *databaseRebuildOptions) run(cmd *cobra.Command, _ []string) error {
	cfg, err := o.Places()
	if err != nil {
		return err
	}
	done, err := o.parts.Rebuild(cmd.Context(), cfg.Home)
	if err != nil {
		return err
	}
	return o.Print(done, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "added %s, brought %d up to date\n", command.Count(len(done.Added), "run"), len(done.Updated))
		for _, s := range done.Skipped {
			_, _ = fmt.Fprintf(w, "left out %s: %s\n", term.SafeLine(s.Path), term.SafeLine(s.Reason))
		}
		if done.Kept != "" {
			_, _ = fmt.Fprintf(w, "what stood there before is kept as %s\n", term.SafeLine(done.Kept))
		}
		_, _ = fmt.Fprintln(w, "not in the folders of runs, and as old as the database was: events, messages, alerts, timers, sessions, trust (agency trust)")
	})
}
