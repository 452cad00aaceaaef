package session

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/complete"
	"agency/internal/cli/term"
	"agency/internal/file"
	"agency/internal/sessionfile"
)

// agentsLimit is the longest list of agents or status file, in bytes.
const agentsLimit = 4 << 20

// createOptions are the flags and dependencies of agency session create.
type createOptions struct {
	*command.Deps

	req        api.CreateSessionRequest
	list, path string
	agents     []string
}

// sources are the kinds of executors of a session.
var sources = []string{"orchestrate", "execute-phase", "run-prompt"}

// newCreate returns the command agency session create.
func newCreate(d *command.Deps) *cobra.Command {
	o := &createOptions{Deps: d, req: api.CreateSessionRequest{Dir: d.Dir, Env: d.Env}}
	cmd := command.New(cobra.Command{
		Use:   "create {--agents FILE|-|JSON | --agent ID[:NAME[:WAVE]] ... | --file FILE|-}",
		Short: "Record a session whose agents you run yourself",
		Long: `Records a session whose agents another program runs and reports with agency
session update, and prints the id of the session. agency writes its status.json and shows its
status; it starts nothing. The agents are a JSON array of objects as in status.json, which need only
an id. --file takes a whole status.json, which may be partial: agency keeps fields that it does not
know, and ended agents stay ended. agency itself sets the id, the counts and the paths of the logs.`,
		Example: `  agency session create --agent 001:schema --agent 002:writer
  agency session create --name night --agents '[{"id": "001", "wave": 1}]'
  agency session create --source execute-phase --source-file plan.md --agent 001
  agency session create --file status.json`,
		Args: command.Takes(),
	}, o.run)
	f := cmd.Flags()
	f.StringVar(&o.req.Source, "source", "", "the `KIND` of execution in the status file: orchestrate, execute-phase or run-prompt (default: that of the file, or orchestrate)")
	f.StringVar(&o.req.SourceFile, "source-file", "", "the plan or prompt that the agents carry out, a `PATH` in the repository")
	f.StringVar(&o.req.Name, "name", "", "give the session this `NAME`")
	f.StringVar(&o.list, "agents", "", "record the agents of `JSON`: a file, the text itself, or - for standard input")
	f.StringVar(&o.path, "file", "", "record a whole status.json from `FILE`; - is standard input")
	f.StringArrayVar(&o.agents, "agent", nil, "record an agent `ID[:NAME[:WAVE]]` (repeatable)")
	complete.Values(cmd, "source", sources...)
	return cmd
}

func (o *createOptions) run(cmd *cobra.Command, _ []string) error {
	given := 0
	for _, flag := range []string{"agents", "agent", "file"} {
		if cmd.Flags().Changed(flag) {
			given++
		}
	}
	if given != 1 {
		return agency.Errorf(agency.CodeUsage, "give the agents by exactly one of --agents, --agent and --file").
			WithHint("%s --agent 001:schema --agent 002:writer", cmd.CommandPath())
	}
	_, err := o.Config()
	if err != nil {
		return err
	}
	o.req.Config = o.CallerConfig()
	switch {
	case cmd.Flags().Changed("file"):
		o.req.File, err = o.statusFile(cmd.Context(), o.path)
	case cmd.Flags().Changed("agents"):
		o.req.Agents, err = o.agentList(cmd.Context(), o.list)
	default:
		o.req.Agents, err = agentFlags(o.agents)
	}
	if err != nil {
		return err
	}
	resp, err := command.Call(cmd.Context(), o.Deps, api.CreateSession, o.req)
	if err != nil {
		return err
	}
	return o.Print(resp, func(w io.Writer) {
		_, _ = fmt.Fprintln(w, resp.Session.Ref())
		o.Chat("%s; status files in %s", command.Count(resp.Session.Summary.Total, "agent"), term.SafeLine(resp.Session.Dir))
	})
}

// agentList reads agents from a file, standard input or the text itself.
func (o *createOptions) agentList(ctx context.Context, list string) (agents []json.RawMessage, err error) {
	data, where := []byte(list), "--agents"
	if first := strings.TrimSpace(list); !strings.HasPrefix(first, "[") && !strings.HasPrefix(first, "{") {
		if data, where, err = o.readGiven(ctx, "agents", list); err != nil {
			return nil, err
		}
	}
	const hint = `they are JSON such as [{"id": "001"}, {"id": "002"}]; a whole status file goes with --file`
	if json.Unmarshal(data, &agents) != nil || agents == nil {
		return nil, agency.Errorf(agency.CodeUsage, "read the agents from %s: they are not a JSON array", where).WithHint(hint)
	}
	return agents, nil
}

// statusFile reads a complete status file from a file or standard input.
func (o *createOptions) statusFile(ctx context.Context, path string) (json.RawMessage, error) {
	data, where, err := o.readGiven(ctx, "file", path)
	if err != nil {
		return nil, err
	}
	f, err := sessionfile.Parse(data)
	if err != nil {
		e := agency.AsError(err)
		return nil, agency.Errorf(e.Code, "%s: %s", where, e.Message).WithHint("%s", e.Hint)
	}
	return f.Encode(), nil
}

// readGiven reads the input that a flag names: a file, or - for standard input.
func (o *createOptions) readGiven(ctx context.Context, flag, path string) (data []byte, where string, err error) {
	if path == "-" {
		text, err := term.ReadAll(ctx, o.In, "the "+flag, agentsLimit)
		if len(text) > agentsLimit {
			err = agency.Errorf(agency.CodeUsage, "standard input has more than %d MiB", agentsLimit>>20).WithHint("split it into several sessions")
		}
		return []byte(text), "standard input", err
	}
	data, err = file.ReadRegular(o.Absolute(path), agentsLimit)
	if err != nil {
		return nil, path, agency.Errorf(agency.CodeInvalidPath, "read the agents from %s: %w", path, command.RootCause(err)).
			WithHint("--%s FILE, or --%s - for standard input", flag, flag)
	}
	return data, path, nil
}

// agentFlags returns the agents that flags describe as ID[:NAME[:WAVE]].
func agentFlags(flags []string) ([]json.RawMessage, error) {
	agents := make([]json.RawMessage, len(flags))
	for i, flag := range flags {
		parts := strings.SplitN(flag, ":", 3)
		agent := map[string]any{"id": parts[0]}
		if len(parts) > 1 {
			agent["name"] = parts[1]
		}
		if len(parts) > 2 {
			wave, err := strconv.Atoi(parts[2])
			if err != nil || wave < 1 {
				return nil, agency.Errorf(agency.CodeUsage, "the wave of --agent %s is not a number from 1", flag).WithHint("such as --agent 001:schema:1")
			}
			agent["wave"] = wave
		}
		data, err := json.Marshal(agent)
		if err != nil {
			return nil, fmt.Errorf("encode agent %s: %w", flag, err)
		}
		agents[i] = data
	}
	return agents, nil
}
