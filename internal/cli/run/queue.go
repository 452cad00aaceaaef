package run

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/complete"
	"agency/internal/cli/term"
	"agency/internal/duration"
	"agency/internal/plain"
)

// NewQueue returns the command agency queue.
func NewQueue(d *command.Deps) *cobra.Command {
	return command.Group(cobra.Command{
		Use:     "queue",
		Short:   "Land runs one after the other, each with the checks of the branch",
		GroupID: "run",
		Long: `Each branch has a queue of runs that are to land in it. agency merges several of
these runs apart from every checkout, runs the checks of the branch on the result, and lands the
runs together when the checks pass. Otherwise agency finds the run whose work is at fault, and lands
the others. When the branch itself does not pass, no run is at fault.

When a run conflicts, agency asks its agent to solve the conflict. The daemon works on the queue:
you can close your terminal. docs/landing.md describes queues.`,
		Example: "  agency queue add fix-login fix-logout\n  agency queue ls",
	},
		newQueueAdd(d), newQueueList(d), newQueueShow(d), newQueueExplain(d),
		newQueueChange(d, "hold", "Keep runs from landing until agency queue resume", "held"),
		newQueueResume(d),
		newQueueChange(d, "retry", "Try runs again that failed, conflict or are held", "tried again"),
		newQueueChange(d, "rm", "Remove runs from a queue; their work stays", "removed"),
		newQueuePause(d),
	)
}

// newQueueAdd returns the command agency queue add.
func newQueueAdd(d *command.Deps) *cobra.Command {
	req := api.AddToQueueRequest{}
	cmd := command.New(cobra.Command{
		Use:   "add [RUN...]",
		Short: "Add runs that land when their turn comes",
		Long: `Adds runs at the end of the queue, in this order. Only committed work lands.
agency waits for an agent that still works; commits that it makes later land too. A run that an
agent added waits until you add it with --approve, as does work that changes what the checks run. An
approval is for the work as it is now.`,
		Example: `  agency queue add fix-login fix-logout
  agency queue add --session active --into develop
  agency queue add fix-login --approve`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case req.Session == "":
				return command.TakesRuns(cmd, args)
			case len(args) > 0:
				return agency.Errorf(agency.CodeUsage, "RUN and --session exclude each other").WithHint("agency queue add --help")
			}
			return nil
		},
		Annotations: map[string]string{command.ManyRuns: "yes"},
	}, func(cmd *cobra.Command, args []string) error {
		req.Runs, req.Dir, req.Env, req.Config = args, d.Dir, d.Env, d.CallerConfig()
		resp, err := command.Call(cmd.Context(), d, api.AddToQueue, req)
		if err != nil {
			return err
		}
		return d.Print(resp, func(w io.Writer) {
			for i := range resp.Entries {
				item := &resp.Entries[i]
				place := "is " + string(item.Entry.State)
				if item.Position > 0 {
					place = "is number " + strconv.Itoa(item.Position)
				}
				_, _ = fmt.Fprintf(w, "%s %s in the queue of %s\n", term.SafeLine(item.Entry.Run), place, term.SafeLine(item.Entry.Target))
			}
			d.Chat("follow it: agency queue ls")
		})
	})
	f := cmd.Flags()
	f.StringVar(&req.Session, "session", "", "add the complete agents of `SESSION` whose work no other has")
	f.StringVar(&req.Into, "into", "", "the target `BRANCH` (default: as for agency merge)")
	f.BoolVar(&req.Approve, "approve", false, "approve the work as it is now")
	_ = cmd.RegisterFlagCompletionFunc("into", complete.Bases(d))
	_ = cmd.RegisterFlagCompletionFunc("session", complete.Sessions(d))
	cmd.ValidArgsFunction = complete.Runs(d)
	return cmd
}

// newQueueList returns the command agency queue ls.
func newQueueList(d *command.Deps) *cobra.Command {
	req := api.ListQueueRequest{}
	everywhere := false
	cmd := command.New(cobra.Command{
		Use: "ls", Short: "List the runs that wait to land", Example: "  agency queue ls\n  agency queue ls --all --into main", Args: command.Takes(),
	}, func(cmd *cobra.Command, _ []string) error {
		if !everywhere {
			req.Dir = d.Dir
		}
		resp, err := command.Call(cmd.Context(), d, api.ListQueue, req)
		if err != nil {
			return err
		}
		return d.Print(resp, func(w io.Writer) {
			rows := [][]string{{"#", "RUN", "INTO", "STATE", "SINCE", "WHY"}}
			cut := false
			for i := range resp.Entries {
				rows = append(rows, queueRow(&resp.Entries[i], d.Now(), &cut))
			}
			if len(rows) == 1 {
				d.Chat("the queue is empty; add a run: agency queue add RUN")
				return
			}
			_, _ = io.WriteString(w, d.TextTable(rows))
			printQueues(w, resp.Queues, d.Columns())
			if cut {
				d.Chat("what is left out, and what helps: agency queue explain RUN")
			}
		})
	})
	f := cmd.Flags()
	f.StringVar(&req.Into, "into", "", "show only the queue of `BRANCH`")
	f.BoolVar(&req.All, "all", false, "show runs that have left the queue too")
	f.BoolVar(&everywhere, "all-repos", false, "show the queues of every repository")
	_ = cmd.RegisterFlagCompletionFunc("into", complete.Bases(d))
	return cmd
}

// longestWhy is the longest reason that a list shows completely, in characters.
const longestWhy = 60

// queueRow returns the row of an entry. It shortens a long reason to the text before the first
// semicolon, and sets cut when it does.
func queueRow(item *api.QueueItem, now time.Time, cut *bool) []string {
	e, place, why := &item.Entry, "-", term.SafeLine(item.Why)
	if reason, _, more := strings.Cut(why, "; "); more && utf8.RuneCountInString(why) > longestWhy {
		why, *cut = reason+"…", true
	}
	if item.Position > 0 {
		place = strconv.Itoa(item.Position)
	}
	return []string{place, term.SafeLine(e.Run), term.SafeLine(e.Target), string(e.State), duration.Short(now.Sub(e.ChangedAt)), why}
}

// paused returns the text that a queue is paused and how to continue it, on one line, or on two
// when columns, if not 0, are too few.
func paused(target string, columns int) string {
	what, then := "the queue of "+term.SafeLine(target)+" is paused;", "continue: agency queue resume --into "+plain.ShellWord(target)
	if columns > 0 && term.Width(what)+1+term.Width(then) > columns {
		return what + "\n" + then + "\n"
	}
	return what + " " + then + "\n"
}

// printQueues prints what blocks whole queues, on a terminal with that many columns.
func printQueues(w io.Writer, queues []agency.Queue, columns int) {
	for i := range queues {
		q := &queues[i]
		switch {
		case q.Paused:
			_, _ = io.WriteString(w, paused(q.Target, columns))
		case q.Note != "":
			_, _ = fmt.Fprintf(w, "the queue of %s waits: %s\n", term.SafeLine(q.Target), term.SafeLine(q.Note))
		}
	}
}

// newQueueShow returns the command agency queue show.
func newQueueShow(d *command.Deps) *cobra.Command {
	cmd := command.New(cobra.Command{
		Use: "show RUN", Short: "Show what became of a run in its queues", Example: "  agency queue show fix-login", Args: command.Takes("RUN"),
	}, func(cmd *cobra.Command, args []string) error {
		resp, err := command.Call(cmd.Context(), d, api.ListQueue, api.ListQueueRequest{Run: args[0]})
		if err != nil {
			return err
		}
		return d.Print(resp, func(w io.Writer) {
			if len(resp.Entries) == 0 {
				d.Chat("%s is in no queue; add it: agency queue add %s", args[0], args[0])
			}
			for i := range resp.Entries {
				if i > 0 {
					_, _ = fmt.Fprintln(w)
				}
				printEntry(w, &resp.Entries[i], d.Names(cmd.Context()))
			}
		})
	})
	cmd.ValidArgsFunction = complete.Queued(d, true)
	return cmd
}

func printEntry(w io.Writer, item *api.QueueItem, name func(id string) string) {
	e := &item.Entry
	rows := [][]string{
		{"run", term.SafeLine(e.Run)},
		{"into", term.SafeLine(e.Target)},
		{"state", string(e.State)},
		{"why", command.OrDash(term.SafeLine(item.Why))},
		{"commit", command.OrDash(fmt.Sprintf("%.12s", e.Source))},
		{"added", e.AddedAt.Local().Format(time.DateTime) + " by " + term.SafeLine(name(e.By))},
	}
	if e.Landing != "" {
		rows = append(rows, []string{"landing", string(e.Landing)})
	}
	_, _ = io.WriteString(w, term.Table(rows))
}

// stateWords are the states of entries as parts of a sentence.
var stateWords = map[agency.QueueState]string{
	agency.EntryQueued: "waits", agency.EntryChecking: "is being checked", agency.EntryReady: "is ready to land", agency.EntryLanding: "is landing",
	agency.EntryConflict: "conflicts", agency.EntryFixing: "does not pass", agency.EntryHeld: "is held", agency.EntryLanded: "has landed", agency.EntryFailed: "has failed",
	agency.EntryDropped: "was dropped",
}

// newQueueExplain returns the command agency queue explain.
func newQueueExplain(d *command.Deps) *cobra.Command {
	cmd := command.New(cobra.Command{
		Use: "explain RUN", Short: "Explain why a run has not landed", Example: "  agency queue explain fix-login", Args: command.Takes("RUN"),
	}, func(cmd *cobra.Command, args []string) error {
		resp, err := command.Call(cmd.Context(), d, api.ListQueue, api.ListQueueRequest{Run: args[0]})
		if err != nil {
			return err
		}
		return d.Print(resp, func(w io.Writer) {
			if len(resp.Entries) == 0 {
				_, _ = fmt.Fprintf(w, "%s is in no queue; add it: agency queue add %s\n", term.SafeLine(args[0]), plain.ShellWord(args[0]))
				return
			}
			item := &resp.Entries[len(resp.Entries)-1]
			e := &item.Entry
			why, since := "", duration.Short(time.Since(e.ChangedAt))
			if item.Why != "" {
				why = ": " + term.SafeLine(item.Why)
			}
			if e.State.Final() {
				since += " ago"
			} else {
				since = "for " + since
			}
			_, _ = fmt.Fprintf(w, "%s %s in the queue of %s, %s%s\n", term.SafeLine(e.Run), stateWords[e.State], term.SafeLine(e.Target), since, why)
		})
	})
	cmd.ValidArgsFunction = complete.Queued(d, true)
	return cmd
}

// newQueueChange returns a command that changes entries.
func newQueueChange(d *command.Deps, name, short, done string) *cobra.Command {
	req := api.ChangeQueueRequest{Change: name}
	if name == "rm" {
		req.Change = "remove"
	}
	cmd := command.New(cobra.Command{
		Use: name + " RUN...", Short: short, Example: "  agency queue " + name + " fix-login", Args: command.TakesRuns,
		Annotations: map[string]string{command.ManyRuns: "yes"},
	}, func(cmd *cobra.Command, args []string) error { return changeQueue(cmd, d, req, args, done) })
	cmd.Flags().StringVar(&req.Into, "into", "", "act in the queue of `BRANCH` (default: the one that the run joined last)")
	_ = cmd.RegisterFlagCompletionFunc("into", complete.Bases(d))
	cmd.ValidArgsFunction = complete.Queued(d, name == "retry")
	return cmd
}

func changeQueue(cmd *cobra.Command, d *command.Deps, req api.ChangeQueueRequest, runs []string, done string) error {
	req.Runs, req.Env, req.Config = runs, d.Env, d.CallerConfig()
	resp, err := command.Call(cmd.Context(), d, api.ChangeQueue, req)
	if err != nil {
		return err
	}
	return d.Print(resp, func(w io.Writer) {
		for i := range resp.Entries {
			e := &resp.Entries[i].Entry
			_, _ = fmt.Fprintf(w, "%s is %s in the queue of %s\n", term.SafeLine(e.Run), done, term.SafeLine(e.Target))
		}
	})
}

// newQueueResume returns the command agency queue resume.
func newQueueResume(d *command.Deps) *cobra.Command {
	into := ""
	cmd := command.New(cobra.Command{
		Use: "resume [RUN...]", Short: "Continue with held runs, or with a paused queue", Args: cobra.ArbitraryArgs,
		Example:     "  agency queue resume fix-login\n  agency queue resume --into main",
		Annotations: map[string]string{command.ManyRuns: "yes"},
	}, func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return changeQueue(cmd, d, api.ChangeQueueRequest{Change: "resume", Into: into}, args, "resumed")
		}
		return pauseQueue(cmd, d, into, true)
	})
	cmd.Flags().StringVar(&into, "into", "", "act on the queue of `BRANCH` (default: all queues of the repository)")
	_ = cmd.RegisterFlagCompletionFunc("into", complete.Bases(d))
	cmd.ValidArgsFunction = complete.Queued(d, false)
	return cmd
}

// newQueuePause returns the command agency queue pause.
func newQueuePause(d *command.Deps) *cobra.Command {
	into := ""
	cmd := command.New(cobra.Command{
		Use: "pause", Short: "Land nothing until agency queue resume", Args: command.Takes(),
		Long: `Stops the queue of a branch. agency lets a check that runs finish, and lands
nothing.`,
		Example: "  agency queue pause --into main",
	}, func(cmd *cobra.Command, _ []string) error { return pauseQueue(cmd, d, into, false) })
	cmd.Flags().StringVar(&into, "into", "", "act on the queue of `BRANCH` (default: all queues of the repository)")
	_ = cmd.RegisterFlagCompletionFunc("into", complete.Bases(d))
	return cmd
}

func pauseQueue(cmd *cobra.Command, d *command.Deps, into string, resume bool) error {
	resp, err := command.Call(cmd.Context(), d, api.PauseQueue, api.PauseQueueRequest{Dir: d.Dir, Into: into, Resume: resume, Env: d.Env, Config: d.CallerConfig()})
	if err != nil {
		return err
	}
	return d.Print(resp, func(w io.Writer) {
		for i := range resp.Queues {
			q := &resp.Queues[i]
			if q.Paused {
				_, _ = io.WriteString(w, paused(q.Target, d.Columns()))
				continue
			}
			_, _ = fmt.Fprintf(w, "the queue of %s continues\n", term.SafeLine(q.Target))
		}
	})
}
