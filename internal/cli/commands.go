package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"agency/internal/cli/alert"
	"agency/internal/cli/command"
	"agency/internal/cli/inspect"
	"agency/internal/cli/maintain"
	"agency/internal/cli/run"
	"agency/internal/cli/session"
)

// entry is a command below agency, with the words that call it: its name and its aliases.
type entry struct {
	words string
	make  func(d *command.Deps) *cobra.Command
}

// entries returns the commands below agency.
func (a *App) entries() []entry {
	return []entry{
		{"run new", func(d *command.Deps) *cobra.Command { return run.NewRun(d, a.Exec) }},
		{"attach", func(d *command.Deps) *cobra.Command { return run.NewAttach(d, a.Exec) }},
		{"next", func(d *command.Deps) *cobra.Command { return run.NewNext(d, a.Exec) }},
		{"send", run.NewSend},
		{"answer", run.NewAnswer},
		{"interrupt", run.NewInterrupt},
		{"unsend", run.NewUnsend},
		{"mode", run.NewMode},
		{"model", run.NewModel},
		{"permission-mode", run.NewPermissionMode},
		{"stop kill", run.NewStop},
		{"resume", run.NewResume},
		{"rm remove", run.NewRemove},
		{"merge", run.NewMerge},
		{"queue", run.NewQueue},
		{"push", run.NewPush},
		{"pr", run.NewPR},
		{"abandon", run.NewAbandon},
		{"path", run.NewPath},
		{"flag", run.NewFlag},
		{"unflag", run.NewUnflag},
		{"tags", run.NewTags},
		{"report", run.NewReport},
		{"mcp", run.NewMCP},
		{"line", run.NewLine},
		{"session", session.New},
		{"ls list ps", inspect.NewList},
		{"tui", inspect.NewTUI},
		{"status", inspect.NewStatus},
		{"show inspect", inspect.NewShow},
		{"explain", inspect.NewExplain},
		{"ports", inspect.NewPorts},
		{"diff", inspect.NewDiff},
		{"review", inspect.NewReview},
		{"verify", inspect.NewVerify},
		{"logs log", inspect.NewLogs},
		{"events", inspect.NewEvents},
		{"wait", inspect.NewWait},
		{"alerts", alert.NewAlerts},
		{"messages", alert.NewMessages},
		{"notify", alert.NewNotify},
		{"watchdog", alert.NewWatchdog},
		{"init", maintain.NewInit},
		{"presets", maintain.NewPresets},
		{"doctor", maintain.NewDoctor},
		{"snapshot", maintain.NewSnapshot},
		{"gc", maintain.NewCollect},
		{"db", func(d *command.Deps) *cobra.Command {
			return maintain.NewDatabase(d, maintain.DatabaseParts{Restore: a.RestoreDatabase, Rebuild: a.RebuildDatabase})
		}},
		{"trust", maintain.NewTrust},
		{"config", maintain.NewConfig},
		{"daemon", func(d *command.Deps) *cobra.Command {
			return maintain.NewDaemon(d, maintain.DaemonParts{Run: a.RunDaemon, Log: a.DaemonLog})
		}},
		{"service", maintain.NewService},
		{"uninstall", maintain.NewUninstall},
		{"schema", maintain.NewSchema},
		{"api", maintain.NewAPI},
		{docsWord, maintain.NewDocs},
		{"version", maintain.NewVersion},
	}
}

// docsWord calls the command that documents all others.
const docsWord = "docs"

// choose divides the commands into the one that a command line calls, and the others. When the
// command line does not begin with the name of a command, all are chosen.
func choose(all []entry, args []string) (chosen, others []entry) {
	if len(args) == 0 || args[0] == docsWord {
		return all, nil
	}
	i := slices.IndexFunc(all, func(e entry) bool { return slices.Contains(strings.Fields(e.words), args[0]) })
	if i < 0 {
		return all, nil
	}
	return all[i : i+1], slices.Delete(slices.Clone(all), i, i+1)
}
