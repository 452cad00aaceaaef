package session

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/complete"
	"agency/internal/cli/term"
	"agency/internal/plain"
)

// logsOptions are the flags and dependencies of agency session logs.
type logsOptions struct {
	*command.Deps

	followed bool
}

// newLogs returns the command agency session logs.
func newLogs(d *command.Deps) *cobra.Command {
	o := &logsOptions{Deps: d}
	cmd := command.New(cobra.Command{
		Use:   "logs SESSION [AGENT]",
		Short: "Print what the agents of a session wrote",
		Long: `Prints the log of one agent of a session, as agency logs does for a run; or
the logs of all its agents, each line after the id of its agent, and safe for a terminal.`,
		Example: `  agency session logs latest 001
  agency session logs active -f`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return command.Takes("SESSION", "[AGENT]")(cmd, args)
			}
			return command.TakesUpTo("SESSION", "[AGENT]")(cmd, args)
		},
	}, o.run)
	cmd.Flags().BoolVarP(&o.followed, "follow", "f", false, "print new output until the agent has ended, or the session has settled")
	cmd.ValidArgsFunction = complete.Then(complete.Sessions(d), complete.Agents(d))
	return cmd
}

func (o *logsOptions) run(cmd *cobra.Command, args []string) error {
	if o.followed && o.JSON {
		return agency.Errorf(agency.CodeUsage, "--follow and --json exclude each other")
	}
	client, err := o.Client()
	if err != nil {
		return err
	}
	s, since, err := begin(cmd.Context(), o.Deps, client, args[:1])
	if err != nil {
		return err
	}
	switch {
	case s.Session.External:
		return agency.Errorf(agency.CodeInvalidState, "the agents of %s are run by another program, which writes their logs", s.Session.ID).
			WithHint("ls %s", s.Session.Dir)
	case len(args) == 2:
		err = o.logOfAgent(cmd.Context(), client, &s, since, args[1], o.followed)
	case o.JSON:
		return agency.Errorf(agency.CodeUsage, "with --json the log is that of one agent").WithHint("agency session logs %s AGENT --json", s.Session.ID)
	default:
		err = o.logsOfSession(cmd.Context(), client, &s, since, o.followed)
	}
	if o.followed && cmd.Context().Err() != nil {
		return nil
	}
	return err
}

// logOfAgent prints the log of one agent's run. With --follow it waits for an agent to start. since
// is the number of an event, up to which s includes all changes.
func (o *logsOptions) logOfAgent(ctx context.Context, client *api.Client, s *api.ShowSessionResponse, since int64, id string, follow bool) error {
	agent, err := agentOf(s, id)
	begun := false
	if err == nil && follow {
		if unstarted(agent) {
			o.Chat("%s is %s; its log begins when it starts", id, agent.Status)
		}
		agent, begun, err = o.startOfAgent(ctx, client, s, since, id)
	}
	switch {
	case err != nil:
		return err
	case begun:
	case unstarted(agent):
		return agency.Errorf(agency.CodeInvalidState, "%s is %s and has not written anything", id, agent.Status).
			WithHint("to wait for it: agency session logs %s %s -f", s.Session.ID, id)
	case agent.Run == "":
		return agency.Errorf(agency.CodeInvalidState, "%s never started: %s", id, agent.Error).WithHint("agency session show %s", s.Session.ID)
	}
	return o.PrintLog(ctx, client, api.LogsRequest{Run: string(agent.RunID), Stream: "runner", Follow: follow})
}

// unstarted reports whether an agent has no log yet, but may get one.
func unstarted(agent *api.SessionAgent) bool { return agent.Run == "" && !agent.Status.Final() }

// startOfAgent waits until an agent has a log, or has ended, and reports whether it has one. The log
// may be newer than what the agent's view shows of its run.
func (o *logsOptions) startOfAgent(ctx context.Context, client *api.Client, s *api.ShowSessionResponse, since int64, id string) (agent *api.SessionAgent, begun bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changes := o.changesOf(ctx, client, s, since)
	for {
		agent, err := agentOf(s, id)
		if err != nil || agent.Status.Final() {
			return agent, false, err
		}
		if log, err := openLog(ctx, client, agent, 0, false); err != nil {
			return nil, false, err
		} else if log != nil {
			return agent, true, log.Close()
		}
		if err := changes.next(ctx, s, nil); err != nil {
			return nil, false, err
		}
	}
}

func agentOf(s *api.ShowSessionResponse, id string) (*api.SessionAgent, error) {
	ids := make([]string, 0, len(s.Agents))
	for i := range s.Agents {
		if s.Agents[i].ID == id {
			return &s.Agents[i], nil
		}
		ids = append(ids, s.Agents[i].ID)
	}
	err := agency.Errorf(agency.CodeAgentNotFound, "%s has no agent %q", s.Session.ID, id)
	if near := plain.Nearest(id, ids); near != "" {
		return nil, err.WithHint("did you mean %s?", near)
	}
	return nil, err.WithHint("agency session show %s", s.Session.ID)
}

// logsOfSession prints the logs of all agents, one after the other; with --follow it prints them as
// they are written, until the session has settled. since is the number of an event, up to which s
// includes all changes.
func (o *logsOptions) logsOfSession(ctx context.Context, client *api.Client, s *api.ShowSessionResponse, since int64, followed bool) error {
	out := &prefixed{w: o.Out, columns: 1}
	for i := range s.Agents {
		out.columns = max(out.columns, term.Width(s.Agents[i].ID))
	}
	if !followed {
		for i := range s.Agents {
			log, err := openLog(ctx, client, &s.Agents[i], 0, false)
			if err == nil && log != nil {
				err = out.copy(s.Agents[i].ID, log)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	return o.followLogs(ctx, client, s, since, out)
}

// followLogs starts a reader for each attempt of each agent as soon as it is known.
func (o *logsOptions) followLogs(ctx context.Context, client *api.Client, s *api.ShowSessionResponse, since int64, out *prefixed) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changes := o.changesOf(ctx, client, s, since)
	var readers sync.WaitGroup
	failed := make(chan error, 1)
	read := map[string]int{} // the newest attempt of each agent that has a reader
	for {
		for i := range s.Agents {
			agent, id := &s.Agents[i], s.Agents[i].ID
			for read[id] < agent.Attempts {
				log, err := openLog(ctx, client, agent, read[id]+1, true)
				if err != nil {
					return err
				}
				if log == nil && read[id]+1 == agent.Attempts {
					break // its log may come later, with a change
				}
				if read[id]++; log == nil {
					continue
				}
				if agent.Status.Final() { // one at a time: there can be many
					if err := out.copy(id, log); err != nil {
						return err
					}
					continue
				}
				readers.Go(func() {
					if err := out.copy(id, log); err != nil {
						select {
						case failed <- err:
						default:
						}
					}
				})
			}
		}
		if s.Session.Status.Final() {
			break
		}
		if err := changes.next(ctx, s, failed); err != nil {
			return err
		}
	}
	readers.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// prefixed writes lines after the ids of their agents. It is safe for concurrent use.
type prefixed struct {
	mu      sync.Mutex
	w       io.Writer
	columns int // of the longest id
}

// openLog opens the log of one attempt of an agent, the newest one when it is 0; nil when there is
// none.
func openLog(ctx context.Context, client *api.Client, agent *api.SessionAgent, attempt int, follow bool) (io.ReadCloser, error) {
	if agent.RunID == "" {
		return nil, nil
	}
	log, err := client.Logs(ctx, api.LogsRequest{Run: string(agent.RunID), Stream: "runner", Attempt: attempt, Follow: follow})
	if agency.IsCode(err, agency.CodeRunNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err // not log, which would be a non-nil interface
	}
	return log, nil
}

// copy writes a log to its end, and closes it.
func (p *prefixed) copy(id string, log io.ReadCloser) error {
	defer func() { _ = log.Close() }()
	safe, write := io.Pipe()
	go func() { _ = write.CloseWithError(term.CopySafe(write, log)) }()
	defer func() { _ = safe.Close() }()
	lines := bufio.NewReader(safe)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			if werr := p.line(id, strings.TrimSuffix(line, "\n")); werr != nil {
				return werr
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return command.LogError(err)
		}
	}
}

func (p *prefixed) line(id, line string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, err := io.WriteString(p.w, term.Pad(id, p.columns)+" | "+line+"\n")
	return err
}
