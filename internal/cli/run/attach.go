package run

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/complete"
	"agency/internal/file"
	"agency/internal/socket"
)

// Exec replaces this process by another program.
type Exec func(argv, env []string) error

// attachOptions are the flags and dependencies of agency attach.
type attachOptions struct {
	*command.Deps

	exec   Exec
	native bool
}

// NewAttach returns the command agency attach.
func NewAttach(d *command.Deps, exec Exec) *cobra.Command {
	o := &attachOptions{Deps: d, exec: exec}
	cmd := command.New(cobra.Command{
		Use:     "attach RUN",
		Short:   "Show a run's terminal and type into it",
		GroupID: "run",
		Long: `Shows the terminal of a run. The run continues when you leave. The command prints
the key that leaves the terminal, and the status line shows it. The prefix is Ctrl-b unless you
changed it:

  inside tmux        prefix L goes back: the client has switched to the run
  outside            prefix d leaves
  in another tmux    prefix twice and then d: the outer tmux takes the first
  [tmux] socket      F12 leaves, wherever you are: the server is agency's own

While the run has a request, prefix a shows it and takes your answer, unless you have bound that key
yourself. When the run stops, you are back where you came from; agency logs shows what the agent
wrote. With --json, agency instead prints the command that shows the terminal.

With --native, the agent's own terminal joins the conversation of a run in the mode protocol. Only
Codex can do this. The terminal shows what the agent asks. Your answers and messages there count as
those of agency answer and agency send. The run continues when you leave it.`,
		Example: "  agency attach fix-login\n  agency attach fix-login --native",
		Args:    command.Takes("RUN"),
	}, o.run)
	cmd.Flags().BoolVar(&o.native, "native", false, "let the agent's own terminal join, in the mode protocol")
	cmd.ValidArgsFunction = complete.Live(d)
	return cmd
}

func (o *attachOptions) run(cmd *cobra.Command, args []string) error {
	if o.native {
		return join(cmd.Context(), o.Deps, args[0], o.exec)
	}
	return attach(cmd.Context(), o.Deps, args[0], o.exec)
}

// attachment is the command that shows a run's terminal.
type attachment struct {
	RunID agency.RunID `json:"run_id"`
	Argv  []string     `json:"argv"`
}

// attach replaces this process by the terminal of a run, or prints the command for it.
func attach(ctx context.Context, d *command.Deps, ref string, exec Exec) error {
	resp, err := command.CallAnyway(ctx, d, api.AttachRun, api.RunRequest{Run: ref})
	if err != nil {
		return err
	}
	argv, err := attachArgv(d, &resp)
	if err != nil {
		return err
	}
	if d.JSON {
		return d.Print(attachment{resp.RunID, argv}, nil)
	}
	if !d.OnTerminal() {
		return agency.Errorf(agency.CodeUsage, "attach needs a terminal").WithHint("agency logs -f %s", ref)
	}
	cfg, err := d.Places()
	if err != nil {
		return err
	}
	own := cfg.Tmux.Socket != ""
	k := prepare(ctx, argv[0], resp.Socket, d.Env, resp.RunID, answerCommand(d, string(resp.RunID)))
	d.Chat("agency: %s", wayOut(&k, nested(d.Getenv), argv[3] == tmuxSwitch, own))
	env := d.Env
	if argv[3] == tmuxAttach {
		// tmux refuses to attach inside its own client; for another server the user asked for
		// exactly that.
		env = agency.Environ(env).Without("TMUX", "TMUX_PANE")
	}
	return exec(argv, env)
}

// answerCommand returns the command that answers a run, for a tmux server whose environment may
// differ from the caller's.
func answerCommand(d *command.Deps, run string) []string {
	argv := []string{"env"}
	for _, name := range []string{"AGENCY_HOME", "AGENCY_SOCKET", "AGENCY_CONFIG"} {
		if value := d.Getenv(name); value != "" {
			argv = append(argv, name+"="+value)
		}
	}
	program, err := os.Executable()
	if err != nil {
		program = "agency"
	}
	return append(argv, program, "answer", run)
}

// nested reports whether the terminal is inside tmux or screen, which takes the first prefix. Over
// ssh only the name of the terminal shows that.
func nested(getenv func(string) string) bool {
	term := getenv("TERM")
	return getenv("TMUX") != "" || strings.HasPrefix(term, "tmux") || strings.HasPrefix(term, "screen")
}

// wayOut returns the keys with which the user leaves a run's terminal.
func wayOut(k *keys, inside, switched, own bool) string {
	prefix := strings.Replace(k.prefix, "C-", "Ctrl-", 1)
	switch {
	case switched && k.back != "":
		return fmt.Sprintf("back to here: %s %s", prefix, k.back)
	case switched:
		return fmt.Sprintf("back to here: %s :switch-client -l", prefix)
	case own:
		return "to leave: F12"
	case k.leave == "":
		return fmt.Sprintf("to leave: %s :detach-client", prefix)
	case inside:
		return fmt.Sprintf("to leave: %s %s %s", prefix, prefix, k.leave)
	default:
		return fmt.Sprintf("to leave: %s %s", prefix, k.leave)
	}
}

// The two ways to show a session.
const (
	tmuxAttach = "attach-session"
	tmuxSwitch = "switch-client" // in a pane of the same server: a terminal cannot be attached inside itself
)

// attachArgv returns the command that shows a run's terminal. From the daemon's answer it takes the
// id of the run and the socket of the tmux server, and refuses a socket that is not this user's: a
// tmux server can have its clients run a program.
func attachArgv(d *command.Deps, resp *api.AttachRunResponse) ([]string, error) {
	id, err := agency.ParseRunID(string(resp.RunID))
	if err != nil {
		return nil, err
	}
	if err := checkSocket("tmux socket", agency.CodeTmuxSessionNotFound, resp.Socket); err != nil {
		return nil, err
	}
	tmux, ok := file.FindProgram(d.Getenv("PATH"), "tmux")
	if !ok {
		return nil, agency.Errorf(agency.CodeTmuxNotFound, "tmux is not on your PATH").WithHint("agency doctor")
	}
	command := tmuxAttach
	// TMUX is "socket path,server pid,session index".
	if inside, _, _ := strings.Cut(d.Getenv("TMUX"), ","); inside != "" && sameFile(inside, resp.Socket) {
		command = tmuxSwitch
	}
	return []string{tmux, "-S", resp.Socket, command, "-t", "=" + agency.SessionPrefix + string(id)}, nil
}

// checkSocket refuses a path that is not a socket of this user in a folder of this user or root.
// For a missing one the error has the given code.
func checkSocket(what string, missing agency.Code, path string) error {
	refused := agency.Errorf(agency.CodePermissionDenied, "the %s %q is not yours", what, path).WithHint("agency doctor")
	if !filepath.IsAbs(path) || filepath.Clean(path) != path {
		return refused
	}
	info, err := os.Lstat(path)
	if err == nil {
		_, err = socket.StatOwn(filepath.Dir(path))
	}
	switch {
	case agency.IsCode(err, agency.CodePermissionDenied):
		return refused
	case err != nil:
		return agency.Errorf(missing, "look at the %s: %w", what, err).WithHint("agency doctor")
	case info.Mode()&fs.ModeSocket == 0 || socket.Owner(info) != os.Getuid():
		return refused
	}
	return nil
}

// sameFile reports whether two paths are the same socket, also where links make them differ.
func sameFile(a, b string) bool {
	if filepath.Clean(a) == filepath.Clean(b) {
		return true
	}
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return cmp.Or(errA, errB) == nil && os.SameFile(infoA, infoB)
}
