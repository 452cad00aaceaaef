package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/term"
)

func (a *App) messagesCommand() *cobra.Command {
	return group(cobra.Command{
		Use:     "messages",
		Short:   "Send messages between agents and people, and read them",
		GroupID: "run",
		Long: `Messages are durable: each waits in an inbox until its recipient acknowledges it. Inside a run the inbox is that run's own, else the
person's. Alerts come as messages too. A message that was acknowledged or reached nobody is forgotten a week after it was sent.`,
		Example: "  agency messages poll\n  agency messages send --to fix-login --text 'take the second way'",
	}, a.messagesSend(), a.messagesPoll(), a.messagesAck(), a.messagesList())
}

func (a *App) messagesSend() *cobra.Command {
	var to agency.Target
	var kind, text, payload, replyTo string
	cmd := command(cobra.Command{
		Use:   "send",
		Short: "Send a message to one run, a tag, an owner, a repository, everyone, or the person",
		Example: `  agency messages send --to fix-login --text 'take the second way'
  agency messages send --owner --type help.request --text 'which database?'
  agency messages send --tag worker --payload '{"text": "stop at five"}'`,
		Args: takes(),
	}, func(cmd *cobra.Command, _ []string) error {
		if to == (agency.Target{}) {
			return agency.Errorf(agency.CodeUsage, "a message needs somebody to go to: --to RUN, --tag TAG, --owner, --repo PATH, --broadcast or --user").
				WithHint("agency messages send --user --text 'hello'")
		}
		if (text == "") == (payload == "") {
			return agency.Errorf(agency.CodeUsage, "a message needs either --text or --payload").WithHint("agency messages send --help")
		}
		if text != "" {
			data, err := json.Marshal(map[string]string{"text": text})
			if err != nil {
				return err
			}
			payload = string(data)
		}
		if !json.Valid([]byte(payload)) {
			return agency.Errorf(agency.CodeUsage, "--payload is not JSON").WithHint(`--payload '{"text": "hello"}', or --text hello`)
		}
		if to.Repo != "" {
			to.Repo = a.absolute(to.Repo)
		}
		resp, err := call(cmd.Context(), a, api.SendMessage, api.SendMessageRequest{Type: kind, To: to, Payload: json.RawMessage(payload), ReplyTo: replyTo})
		if err != nil {
			return err
		}
		if resp.Dead != "" {
			a.status = agency.ExitNotFound
		}
		return a.print(resp, func(w io.Writer) {
			if resp.Dead != "" {
				_, _ = fmt.Fprintf(w, "%s reaches nobody: %s\n", resp.ID, term.SafeLine(resp.Dead))
				return
			}
			named := a.people(cmd.Context())
			names := make([]string, 0, len(resp.Recipients))
			for _, id := range resp.Recipients {
				names = append(names, named(id))
			}
			_, _ = fmt.Fprintf(w, "%s for %s\n", resp.ID, strings.Join(names, ", "))
		})
	})
	f := cmd.Flags()
	f.StringVar(&to.Run, "to", "", "to one `RUN`")
	f.StringVar(&to.Tag, "tag", "", "to the live runs with a `TAG`; inside a run, of the same repository")
	f.BoolVar(&to.Owner, "owner", false, "to who started this run")
	f.StringVar(&to.Repo, "repo", "", "to the live runs of the repository at `PATH`")
	f.BoolVar(&to.Broadcast, "broadcast", false, "to all live runs")
	f.BoolVar(&to.User, "user", false, "to the person")
	f.StringVar(&kind, "type", "message", "what kind of message it is")
	f.StringVar(&text, "text", "", "what to say")
	f.StringVar(&payload, "payload", "", "a JSON object to send instead")
	f.StringVar(&replyTo, "reply-to", "", "the `ID` of the message that this answers, or the end of it")
	_ = cmd.RegisterFlagCompletionFunc("to", a.completeRuns)
	return cmd
}

func (a *App) messagesPoll() *cobra.Command {
	var wait time.Duration
	var limit int
	cmd := command(cobra.Command{
		Use:   "poll",
		Short: "Print what waits in this inbox; it comes again until it is acknowledged",
		Long: `Prints the messages that wait for this run, or outside of one for the person, oldest first. With --wait it returns at the first one.
What was dealt with is acknowledged by its id: agency messages ack ID.`,
		Example: "  agency messages poll --wait 5m",
		Args:    takes(),
	}, func(cmd *cobra.Command, _ []string) error {
		resp, err := call(cmd.Context(), a, api.PollMessages, api.PollMessagesRequest{Limit: limit, WaitMS: milliseconds(wait)})
		if err != nil {
			return err
		}
		return a.print(resp, func(w io.Writer) { a.printMessages(cmd.Context(), w, resp.Messages) })
	})
	durationVar(cmd.Flags(), &wait, "wait", 0, "how long to wait for the first one")
	cmd.Flags().IntVar(&limit, "limit", 0, "the oldest so many (default 100)")
	return cmd
}

func (a *App) messagesAck() *cobra.Command {
	return command(cobra.Command{
		Use: "ack ID...", Short: "Say that messages were dealt with", Long: "Says that messages were dealt with, so that they do not come again. The end of an id that \"poll\" shows is enough.",
		Example: "  agency messages ack 3N2M1K0HG",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return agency.Errorf(agency.CodeUsage, "%s needs at least one ID", cmd.CommandPath()).WithHint("agency messages poll")
			}
			return nil
		},
	}, func(cmd *cobra.Command, args []string) error {
		resp, err := call(cmd.Context(), a, api.AckMessages, api.AckMessagesRequest{Messages: args})
		if err != nil {
			return err
		}
		return a.print(resp, func(w io.Writer) { _, _ = fmt.Fprintf(w, "acknowledged %s\n", count(resp.Acked, "message")) })
	})
}

func (a *App) messagesList() *cobra.Command {
	var all bool
	var to string
	cmd := command(cobra.Command{
		Use: "ls", Short: "Look at messages without taking them", Example: "  agency messages ls --all\n  agency messages ls --to user", Args: takes(),
	}, func(cmd *cobra.Command, _ []string) error {
		resp, err := call(cmd.Context(), a, api.ListMessages, api.ListMessagesRequest{Recipient: to, All: all})
		if err != nil {
			return err
		}
		return a.print(resp, func(w io.Writer) { a.printMessages(cmd.Context(), w, resp.Messages) })
	})
	cmd.Flags().BoolVar(&all, "all", false, "acknowledged ones and dead letters too")
	cmd.Flags().StringVar(&to, "to", "", "of one recipient: a `RUN`, or user")
	return cmd
}
