package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/term"
)

func (a *App) eventsCommand() *cobra.Command {
	var follow bool
	var since int64
	var run string
	cmd := command(cobra.Command{
		Use:     "events",
		Short:   "Print the record of everything that happened",
		GroupID: "inspect",
		Long: `Prints the events of the record, oldest first. Each has a number that only grows: --since continues after it without a gap.
With --follow and --json each event is an envelope on a line of its own.`,
		Example: `  agency events
  agency events -f --since 120
  agency events --run fix-login --json`,
		Args: takes(),
	}, func(cmd *cobra.Command, _ []string) error {
		if since < 0 {
			return agency.Errorf(agency.CodeUsage, "--since is %d; events are counted from 1", since)
		}
		if follow {
			return a.followEvents(cmd.Context(), since, run)
		}
		all := api.ListEventsResponse{Events: []agency.Event{}}
		for {
			page, err := call(cmd.Context(), a, api.ListEvents, api.ListEventsRequest{Since: since, Run: run})
			if err != nil {
				return err
			}
			all.LastSeq = page.LastSeq
			if len(page.Events) == 0 {
				break
			}
			all.Events = append(all.Events, page.Events...)
			since = page.Events[len(page.Events)-1].Seq
		}
		return a.print(all, func(w io.Writer) {
			for i := range all.Events {
				printEvent(w, &all.Events[i])
			}
		})
	})
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what happens")
	cmd.Flags().Int64Var(&since, "since", 0, "only what came after event `SEQ`")
	cmd.Flags().StringVar(&run, "run", "", "only the events of one `RUN`")
	_ = cmd.RegisterFlagCompletionFunc("run", a.completeRuns)
	return cmd
}

func (a *App) followEvents(ctx context.Context, since int64, run string) error {
	client, err := a.client()
	if err != nil {
		return err
	}
	err = client.Follow(ctx, since, run, func() {}, func(e agency.Event) error {
		if a.json {
			return a.printLine(e)
		}
		printEvent(a.out, &e)
		return a.out.err
	})
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func printEvent(w io.Writer, e *agency.Event) {
	subject := "-"
	if e.RunID != "" {
		subject = fmt.Sprintf("%s/%d", term.SafeLine(e.Run), e.Attempt)
	}
	_, _ = fmt.Fprintf(w, "%6d  %s  %-18s  %s  %s\n", e.Seq, e.At.Local().Format(time.DateTime), e.Type, subject, term.SafeLine(string(e.Data)))
}
