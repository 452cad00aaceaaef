package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"agency/internal/api"
	"agency/internal/cli/term"
)

func (a *App) databaseCommand() *cobra.Command {
	return group(cobra.Command{
		Use:     "db",
		Short:   "Check, back up, restore and rebuild the database",
		GroupID: "maintain",
		Long:    "The database is the record of all runs. Use these commands instead of opening it: only the daemon may.",
		Example: "  agency db check",
	}, a.databaseCheck(), a.databaseBackup(), a.databaseRestore(), a.databaseRebuild())
}

func (a *App) databaseCheck() *cobra.Command {
	return command(cobra.Command{
		Use: "check", Short: "Read the whole database and say what is wrong with it", Example: "  agency db check", Args: takes(),
	}, func(cmd *cobra.Command, _ []string) error {
		resp, err := call(cmd.Context(), a, api.CheckDatabase, api.Empty{})
		if err != nil {
			return err
		}
		return a.print(resp, func(w io.Writer) { _, _ = fmt.Fprintf(w, "%s is whole\n", term.SafeLine(resp.Path)) })
	})
}

func (a *App) databaseBackup() *cobra.Command {
	return command(cobra.Command{
		Use: "backup [FILE]", Short: "Write a copy of the database", Example: "  agency db backup $HOME/agency-backup.db", Args: cobra.MaximumNArgs(1),
	}, func(cmd *cobra.Command, args []string) error {
		req := api.BackupDatabaseRequest{}
		if len(args) == 1 {
			req.Path = a.absolute(args[0])
		}
		resp, err := call(cmd.Context(), a, api.BackupDatabase, req)
		if err != nil {
			return err
		}
		return a.print(resp, func(w io.Writer) { _, _ = fmt.Fprintln(w, term.SafeLine(resp.Path)) })
	})
}

func (a *App) databaseRestore() *cobra.Command {
	return command(cobra.Command{
		Use: "restore FILE", Short: "Put a backup in the place of the database",
		Long: `Puts a backup in the place of the database. The daemon must be stopped first. The backup is checked before anything changes, and the
database that stood there is kept beside it.`,
		Example: "  agency daemon stop && agency db restore $HOME/agency-backup.db",
		Args:    takes("FILE"),
	}, func(cmd *cobra.Command, args []string) error {
		cfg, err := a.places()
		if err != nil {
			return err
		}
		backup := a.absolute(args[0])
		kept, err := a.RestoreDatabase(cmd.Context(), cfg.Home, backup)
		if err != nil {
			return err
		}
		return a.print(map[string]any{"restored": backup, "kept": kept}, func(w io.Writer) {
			_, _ = fmt.Fprintf(w, "restored %s\n", term.SafeLine(backup))
			if kept != "" {
				_, _ = fmt.Fprintf(w, "what stood there before is kept as %s\n", term.SafeLine(kept))
			}
			_, _ = fmt.Fprintln(w, "to add the runs that were made since: agency db rebuild")
		})
	})
}

func (a *App) databaseRebuild() *cobra.Command {
	return command(cobra.Command{
		Use: "rebuild", Short: "Make the database know the runs whose folders are there",
		Long: `Brings what the folders of runs tell, and the database does not know, into the database; without one it makes one. The daemon must be
stopped first. Agents that are live go on, and are found again. Events, messages, alerts, timers, sessions and trust are in no such folder:
they stay as the database has them. A database that stood there before is kept beside it.`,
		Example: "  agency daemon stop && agency db rebuild",
		Args:    takes(),
	}, func(cmd *cobra.Command, _ []string) error {
		cfg, err := a.places()
		if err != nil {
			return err
		}
		done, err := a.RebuildDatabase(cmd.Context(), cfg.Home)
		if err != nil {
			return err
		}
		return a.print(done, func(w io.Writer) {
			_, _ = fmt.Fprintf(w, "added %s, brought %d up to date\n", count(len(done.Added), "run"), len(done.Updated))
			for _, s := range done.Skipped {
				_, _ = fmt.Fprintf(w, "left out %s: %s\n", term.SafeLine(s.Path), term.SafeLine(s.Reason))
			}
			if done.Kept != "" {
				_, _ = fmt.Fprintf(w, "what stood there before is kept as %s\n", term.SafeLine(done.Kept))
			}
			_, _ = fmt.Fprintln(w, "not in the folders of runs, and as old as the database was: events, messages, alerts, timers, sessions, trust (agency trust)")
		})
	})
}
