package run

import (
	"context"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/complete"
	"agency/internal/cli/term"
)

// NewSend returns the command agency send.
func NewSend(d *command.Deps) *cobra.Command {
	var path string
	var with []string
	cmd := command.New(cobra.Command{
		Use:     "send RUN [TEXT]",
		Short:   "Type a message into a run's agent and press Enter",
		GroupID: "run",
		Long: `Types a message into the terminal of a run's agent and presses Enter. agency
refuses the message while the terminal shows a dialog or a menu, which the message would answer,
while a user types there, and when the agent has ended or is headless. A program that reads lines,
such as a shell script, accepts at most 4095 bytes a line (1023 on macOS): agency refuses a longer
line. The text can have several lines; --file or standard input (also TEXT -) gives a long one.

--with copies a file, such as a picture, into .agency/files of the worktree, and the message
names it. In the mode protocol agents look at pictures with the message. A message with files needs
no text: TEXT "" is none, and on a terminal it can be left out.

"delivered" means that agency saw the agent accept the message: the agent reported a prompt, or its
input box is empty and it works. In the mode protocol agency types nothing: the agent acknowledges
the message.`,
		Example: `  agency send fix-login "yes, use the second one"
  agency send fix-login -f review.md
  agency send fix-login "the button is too low" --with screen.png`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return nil
			}
			return command.Takes("RUN", "TEXT")(cmd, args)
		},
	}, func(cmd *cobra.Command, args []string) error {
		return send(cmd.Context(), d, args, path, with)
	})
	cmd.Flags().StringVarP(&path, "file", "f", "", "send the content of a `FILE`; - is standard input")
	cmd.Flags().StringArrayVar(&with, "with", nil, withUsage)
	cmd.ValidArgsFunction = complete.Live(d)
	return cmd
}

// send sends a message to the run that the arguments name, with copies of files.
func send(ctx context.Context, d *command.Deps, args []string, path string, with []string) error {
	files, err := attachments(d, with)
	if err != nil {
		return err
	}
	text, err := messageText(ctx, d, args[1:], path, len(files) > 0)
	if err != nil {
		return err
	}
	if !utf8.ValidString(text) {
		return agency.Errorf(agency.CodeUsage, "the message is not valid UTF-8").WithHint("iconv -f LATIN1 -t UTF-8 message.txt | agency send %s -", args[0])
	}
	if len(text) > inputLimit {
		return agency.Errorf(agency.CodeUsage, "the message has more than %d bytes", inputLimit).
			WithHint("write it to a file in the worktree and send its name")
	}
	resp, err := command.Call(ctx, d, api.SendInput, api.SendInputRequest{Run: args[0], Text: text, Files: files})
	if err != nil {
		return err
	}
	return d.Print(resp, func(w io.Writer) {
		switch {
		case resp.Effect == string(agency.EffectWritten):
			_, _ = fmt.Fprintln(w, "written, and not acknowledged yet")
		case resp.Confirmed:
			_, _ = fmt.Fprintln(w, "delivered")
		case resp.Composer != "":
			_, _ = fmt.Fprintf(w, "delivered, not confirmed: its input box holds: %s\n", term.SafeLine(resp.Composer))
			d.Chat("look: agency attach %s", args[0])
		default:
			_, _ = fmt.Fprintln(w, "delivered, not confirmed: nothing shows that the agent took it")
		}
	})
}

// messageText returns the message from its argument, a file, or standard input. A message that
// brings files may be empty.
func messageText(ctx context.Context, d *command.Deps, args []string, path string, brings bool) (string, error) {
	switch _, typed := term.Columns(d.In); {
	case path != "" && len(args) > 0:
		return "", agency.Errorf(agency.CodeUsage, "the message is given as TEXT and as --file").WithHint("agency send --help")
	case path == "" && len(args) > 0 && args[0] != "-":
		return args[0], nil
	case path == "" && len(args) == 0 && typed && brings:
		return "", nil
	case path == "" && len(args) == 0 && typed:
		return "", agency.Errorf(agency.CodeUsage, "there is no message").WithHint("agency send RUN TEXT, or --file FILE")
	case path == "" || path == "-":
		given, err := term.ReadAll(ctx, d.In, "the message", inputLimit)
		return strings.TrimRight(given, "\n"), err
	}
	f, err := command.OpenRegular(d.Absolute(path))
	if err != nil {
		return "", agency.Errorf(agency.CodeInvalidPath, "read the message from %s: %w", path, err).WithHint("%s", lookBeside(d, path))
	}
	defer func() { _ = f.Close() }()
	given, err := io.ReadAll(io.LimitReader(f, inputLimit+1))
	if err != nil {
		return "", agency.Errorf(agency.CodeInvalidPath, "read the message from %s: %w", path, command.RootCause(err))
	}
	return strings.TrimRight(string(given), "\n"), nil
}

// inputLimit is the longest message, in bytes.
const inputLimit = 256 << 10
