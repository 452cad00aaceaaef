package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/complete"
	"agency/internal/cli/term"
	"agency/internal/view"
)

// eventsOptions are the flags and dependencies of agency events.
type eventsOptions struct {
	*command.Deps

	follow bool
	since  int64
	last   int
	runRef string
}

// NewEvents returns the command agency events.
func NewEvents(d *command.Deps) *cobra.Command {
	o := &eventsOptions{Deps: d}
	cmd := command.New(cobra.Command{
		Use:     "events",
		Short:   "Print the record of everything that happened",
		GroupID: "inspect",
		Long: `Prints the events of the record, oldest first. Each has a number, one higher than
that of the event before: --since continues after that number without a gap. Long texts are
cut; --json prints them whole, and with --follow each event is an envelope on its own line.`,
		Example: `  agency events
  agency events -f --since 120
  agency events -n 20
  agency events --run fix-login --json`,
		Args: command.Takes(),
	}, o.run)
	cmd.Flags().BoolVarP(&o.follow, "follow", "f", false, "print new events as they come")
	cmd.Flags().Int64Var(&o.since, "since", 0, "print only the events after event `SEQ`")
	cmd.Flags().IntVarP(&o.last, "last", "n", 0, "print only the last `N` events, and with -f new ones")
	cmd.Flags().StringVar(&o.runRef, "run", "", "print only the events of `RUN`")
	_ = cmd.RegisterFlagCompletionFunc("run", complete.Runs(d))
	return cmd
}

func (o *eventsOptions) run(cmd *cobra.Command, _ []string) error {
	if o.since < 0 {
		return agency.Errorf(agency.CodeUsage, "--since is %d; events are counted from 1", o.since)
	}
	if o.last < 0 {
		return agency.Errorf(agency.CodeUsage, "-n is %d; it cannot be negative", o.last).WithHint("for example: agency events -n 20")
	}
	some := cmd.Flags().Changed("last")
	if o.follow && !some {
		return o.followEvents(cmd.Context(), o.since, o.runRef)
	}
	all := api.ListEventsResponse{Events: []agency.Event{}}
	for {
		page, err := command.Call(cmd.Context(), o.Deps, api.ListEvents, api.ListEventsRequest{Since: o.since, Run: o.runRef})
		if err != nil {
			return err
		}
		all.LastSeq = page.LastSeq
		if len(page.Events) == 0 {
			break
		}
		all.Events = append(all.Events, page.Events...)
		o.since = page.Events[len(page.Events)-1].Seq
	}
	if some {
		all.Events = all.Events[max(0, len(all.Events)-o.last):]
	}
	if o.follow {
		for i := range all.Events {
			if err := o.printFollowed(&all.Events[i]); err != nil {
				return err
			}
		}
		return o.followEvents(cmd.Context(), max(o.since, all.LastSeq), o.runRef)
	}
	return o.Print(all, func(w io.Writer) {
		for i := range all.Events {
			printEvent(w, &all.Events[i])
		}
	})
}

func (o *eventsOptions) followEvents(ctx context.Context, since int64, run string) error {
	client, err := o.Client()
	if err != nil {
		return err
	}
	err = client.Follow(ctx, since, run, func() {}, func(e agency.Event) error { return o.printFollowed(&e) })
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// printFollowed prints one of the events that are followed.
func (o *eventsOptions) printFollowed(e *agency.Event) error {
	if o.JSON {
		return o.PrintLine(e)
	}
	printEvent(o.Out, e)
	return o.Out.Failed()
}

func printEvent(w io.Writer, e *agency.Event) {
	subject := "-"
	if e.RunID != "" {
		subject = fmt.Sprintf("%s/%d", term.SafeLine(e.Run), e.Attempt)
	}
	line := fmt.Sprintf("%6d  %s  %-18s  %s  %s", e.Seq, e.At.Local().Format(time.DateTime), e.Type, subject, term.SafeLine(view.Facts(e.Data)))
	_, _ = fmt.Fprintln(w, strings.TrimRight(line, " "))
}
