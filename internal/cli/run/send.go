package run

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/term"
)

// NewSend returns the command agency send.
func NewSend(d *command.Deps) *cobra.Command {
	cmd := command.New(cobra.Command{
		Use:     "send RUN TEXT",
		Short:   "Type a message into a run's agent and press Enter",
		GroupID: "run",
		Long: `Types a message into the agent of a run and presses Enter. It is refused
while the run's terminal shows a dialog or a menu, which the message would answer, while a user
types there, and when the agent has ended or is headless. A program that reads lines, such as a
shell script, accepts at most 4095 bytes a line (1023 on macOS): a longer line is refused. TEXT -
reads the message from standard input.

"delivered" means that the agent was seen to take the message: it reported a prompt, or its input
box is empty and it works.`,
		Example: `  agency send fix-login "yes, use the second one"`,
		Args:    command.Takes("RUN", "TEXT"),
	}, func(cmd *cobra.Command, args []string) error {
		text := args[1]
		if text == "-" {
			given, err := term.ReadAll(cmd.Context(), d.In, "the message", inputLimit)
			if err != nil {
				return err
			}
			text = strings.TrimRight(given, "\n")
		}
		if !utf8.ValidString(text) {
			return agency.Errorf(agency.CodeUsage, "the message is not valid UTF-8").WithHint("iconv -f LATIN1 -t UTF-8 message.txt | agency send %s -", args[0])
		}
		if len(text) > inputLimit {
			return agency.Errorf(agency.CodeUsage, "the message has more than %d bytes", inputLimit).
				WithHint("write it to a file in the worktree and send its name")
		}
		resp, err := command.Call(cmd.Context(), d, api.SendInput, api.SendInputRequest{Run: args[0], Text: text})
		if err != nil {
			return err
		}
		return d.Print(resp, func(w io.Writer) {
			switch {
			case resp.Confirmed:
				_, _ = fmt.Fprintln(w, "delivered")
			case resp.Composer != "":
				_, _ = fmt.Fprintf(w, "delivered, not confirmed: its input box holds: %s\n", term.SafeLine(resp.Composer))
				d.Chat("look: agency attach %s", args[0])
			default:
				_, _ = fmt.Fprintln(w, "delivered, not confirmed: nothing shows that the agent took it")
			}
		})
	})
	cmd.ValidArgsFunction = d.CompleteLive
	return cmd
}

// inputLimit is the longest message, in bytes.
const inputLimit = 256 << 10
