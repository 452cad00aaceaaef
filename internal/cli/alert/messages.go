package alert

import (
	"encoding/json"
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
)

// NewMessages returns the command agency messages.
func NewMessages(d *command.Deps) *cobra.Command {
	return command.Group(cobra.Command{
		Use:     "messages",
		Short:   "Send and read messages between agents and users",
		GroupID: "run",
		Long: `Messages are durable: each stays in an inbox until its recipient acknowledges it.
Inside a run, the commands use the inbox of the run, elsewhere that of the user. Alerts come as
messages too. agency deletes a message that was acknowledged, or that reached no recipient, a week
after it was sent.`,
		Example: "  agency messages poll\n  agency messages send --to fix-login --text 'take the second way'",
	}, newMessagesSend(d), newMessagesPoll(d), newMessagesAck(d), newMessagesList(d))
}

// messagesSendOptions are the flags and dependencies of agency messages send.
type messagesSendOptions struct {
	*command.Deps

	to                           agency.Target
	kind, text, payload, replyTo string
}

// newMessagesSend returns the command agency messages send.
func newMessagesSend(d *command.Deps) *cobra.Command {
	o := &messagesSendOptions{Deps: d}
	cmd := command.New(cobra.Command{
		Use:   "send",
		Short: "Send a message to a run, tag, owner, repository, all runs, or the user",
		Example: `  agency messages send --to fix-login --text 'take the second way'
  agency messages send --owner --type help.request --text 'which database?'
  agency messages send --tag worker --payload '{"text": "stop at five"}'`,
		Args: command.Takes(),
	}, o.run)
	f := cmd.Flags()
	f.StringVar(&o.to.Run, "to", "", "send to one `RUN`")
	f.StringVar(&o.to.Tag, "tag", "", "send to the live runs with `TAG`; inside a run, to those of its repository")
	f.BoolVar(&o.to.Owner, "owner", false, "send to the owner of this run")
	f.StringVar(&o.to.Repo, "repo", "", "send to the live runs of the repository at `PATH`")
	f.BoolVar(&o.to.Broadcast, "broadcast", false, "send to all live runs")
	f.BoolVar(&o.to.User, "user", false, "send to the user")
	f.StringVar(&o.kind, "type", "message", "the `KIND` of the message")
	f.StringVar(&o.text, "text", "", "the `TEXT` of the message")
	f.StringVar(&o.payload, "payload", "", "send this `JSON` object instead of a text")
	f.StringVar(&o.replyTo, "reply-to", "", "the `ID` of the message that this one answers, or the end of the id")
	_ = cmd.RegisterFlagCompletionFunc("to", complete.Runs(d))
	_ = cmd.RegisterFlagCompletionFunc("tag", complete.Tags(d))
	_ = cmd.RegisterFlagCompletionFunc("reply-to", completeMessages(d))
	return cmd
}

func (o *messagesSendOptions) run(cmd *cobra.Command, _ []string) error {
	if o.to == (agency.Target{}) {
		return agency.Errorf(agency.CodeUsage, "a message needs a recipient: --to RUN, --tag TAG, --owner, --repo PATH, --broadcast or --user").
			WithHint("agency messages send --user --text 'hello'")
	}
	if (o.text == "") == (o.payload == "") {
		return agency.Errorf(agency.CodeUsage, "a message needs either --text or --payload").WithHint("agency messages send --help")
	}
	if o.text != "" {
		data, err := json.Marshal(map[string]string{"text": o.text})
		if err != nil {
			return err
		}
		o.payload = string(data)
	}
	if !json.Valid([]byte(o.payload)) {
		return agency.Errorf(agency.CodeUsage, "--payload is not JSON").WithHint(`--payload '{"text": "hello"}', or --text hello`)
	}
	if o.to.Repo != "" {
		o.to.Repo = o.Absolute(o.to.Repo)
	}
	resp, err := command.Call(cmd.Context(), o.Deps, api.SendMessage, api.SendMessageRequest{Type: o.kind, To: o.to, Payload: json.RawMessage(o.payload), ReplyTo: o.replyTo})
	if err != nil {
		return err
	}
	if resp.Dead != "" {
		o.Status = agency.ExitNotFound
	}
	return o.Print(resp, func(w io.Writer) {
		if resp.Dead != "" {
			_, _ = fmt.Fprintf(w, "%s has no recipient: %s\n", resp.ID, term.SafeLine(resp.Dead))
			return
		}
		named := o.Names(cmd.Context())
		names := make([]string, 0, len(resp.Recipients))
		for _, id := range resp.Recipients {
			names = append(names, named(id))
		}
		_, _ = fmt.Fprintf(w, "%s for %s\n", resp.ID, strings.Join(names, ", "))
	})
}

// messagesPollOptions are the flags and dependencies of agency messages poll.
type messagesPollOptions struct {
	*command.Deps

	wait  time.Duration
	limit int
}

// newMessagesPoll returns the command agency messages poll.
func newMessagesPoll(d *command.Deps) *cobra.Command {
	o := &messagesPollOptions{Deps: d}
	cmd := command.New(cobra.Command{
		Use:   "poll",
		Short: "Print the messages of this inbox that are not acknowledged",
		Long: `Prints the messages to this run, or outside of a run those to the user, oldest
first. With --wait, it waits for the first message. Acknowledge each message that you handled by its
id: agency messages ack ID.`,
		Example: "  agency messages poll --wait 5m",
		Args:    command.Takes(),
	}, o.run)
	command.DurationVar(cmd.Flags(), &o.wait, "wait", 0, "wait up to this `DURATION` for the first message, such as 5m")
	cmd.Flags().IntVar(&o.limit, "limit", 0, "print at most `N` messages, oldest first (default 100)")
	return cmd
}

func (o *messagesPollOptions) run(cmd *cobra.Command, _ []string) error {
	resp, err := command.Call(cmd.Context(), o.Deps, api.PollMessages, api.PollMessagesRequest{Limit: o.limit, WaitMS: command.Milliseconds(o.wait)})
	if err != nil {
		return err
	}
	return o.Print(resp, func(w io.Writer) { printMessages(cmd.Context(), o.Deps, w, resp.Messages) })
}

// newMessagesAck returns the command agency messages ack.
func newMessagesAck(d *command.Deps) *cobra.Command {
	return command.New(cobra.Command{
		Use: "ack ID...", Short: "Acknowledge messages that you handled", Long: `Acknowledges messages, so that agency does not repeat them. The end of an id, as
"poll" shows it, is enough.`,
		Example:           "  agency messages ack 3N2M1K0HG",
		ValidArgsFunction: completeMessages(d),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return agency.Errorf(agency.CodeUsage, "%s needs at least one ID", cmd.CommandPath()).WithHint("agency messages poll")
			}
			return nil
		},
	}, func(cmd *cobra.Command, args []string) error {
		resp, err := command.Call(cmd.Context(), d, api.AckMessages, api.AckMessagesRequest{Messages: args})
		if err != nil {
			return err
		}
		return d.Print(resp, func(w io.Writer) { _, _ = fmt.Fprintf(w, "acknowledged %s\n", command.Count(resp.Acked, "message")) })
	})
}

// messagesListOptions are the flags and dependencies of agency messages ls.
type messagesListOptions struct {
	*command.Deps

	all bool
	to  string
}

// newMessagesList returns the command agency messages ls.
func newMessagesList(d *command.Deps) *cobra.Command {
	o := &messagesListOptions{Deps: d}
	cmd := command.New(cobra.Command{
		Use: "ls", Short: "List messages without taking them", Example: "  agency messages ls --all\n  agency messages ls --to user", Args: command.Takes(),
	}, o.run)
	cmd.Flags().BoolVar(&o.all, "all", false, "show acknowledged messages and dead letters too")
	cmd.Flags().StringVar(&o.to, "to", "", "show only the messages to `RUN`, or to the user: user")
	_ = cmd.RegisterFlagCompletionFunc("to", completeRecipients(d))
	return cmd
}

func (o *messagesListOptions) run(cmd *cobra.Command, _ []string) error {
	resp, err := command.Call(cmd.Context(), o.Deps, api.ListMessages, api.ListMessagesRequest{Recipient: o.to, All: o.all})
	if err != nil {
		return err
	}
	return o.Print(resp, func(w io.Writer) { printMessages(cmd.Context(), o.Deps, w, resp.Messages) })
}
