package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/file"
)

// agentsLimit is the longest list of agents, in bytes.
const agentsLimit = 4 << 20

func (a *App) sessionCreate() *cobra.Command {
	req := api.CreateSessionRequest{Dir: a.Dir}
	var list string
	var agents []string
	cmd := command(cobra.Command{
		Use:   "create {--agents FILE|-|JSON | --agent ID[:NAME[:WAVE]] ...}",
		Short: "Record a session whose agents you run yourself",
		Long: `Records a session of agents that another program runs and reports with agency session update, and prints its id. agency keeps its
status.json and tells how it stands; it starts nothing. The agents are a JSON array of objects as in status.json, of which only id
is needed, or a whole document with agents and waves.`,
		Example: `  agency session create --agent 001:schema --agent 002:writer
  agency session create --source execute-phase --source-file plan.md --agents '[{"id": "001", "wave": 1}]'`,
		Args: takes(),
	}, func(cmd *cobra.Command, _ []string) error {
		if (list == "") == (len(agents) == 0) {
			return agency.Errorf(agency.CodeUsage, "the agents are to be given by --agents or by --agent").WithHint("%s --agent 001:schema --agent 002:writer", cmd.CommandPath())
		}
		var err error
		if list != "" {
			req.Agents, req.Waves, err = a.agentList(list)
		} else {
			req.Agents, err = agentFlags(agents)
		}
		if err != nil {
			return err
		}
		resp, err := call(cmd.Context(), a, api.CreateSession, req)
		if err != nil {
			return err
		}
		return a.print(resp, func(w io.Writer) {
			_, _ = fmt.Fprintln(w, resp.Session.Ref())
			a.chat("%s; status files in %s", count(resp.Session.Summary.Total, "agent"), safeLine(resp.Session.Dir))
		})
	})
	f := cmd.Flags()
	f.StringVar(&req.Source, "source", "orchestrate", "what kind of executor it is: orchestrate, execute-phase or run-prompt")
	f.StringVar(&req.SourceFile, "source-file", "", "the plan or prompt that is carried out, as `PATH` in the repository")
	f.StringVar(&req.Name, "name", "", "a name for the session")
	f.StringVar(&list, "agents", "", "the agents: a file, - for standard input, or the JSON itself")
	f.StringArrayVar(&agents, "agent", nil, "one agent, as `ID[:NAME[:WAVE]]`; can be repeated")
	return cmd
}

// agentList reads agents, and waves where they are given, from a file, standard input or the text itself.
func (a *App) agentList(list string) (agents []json.RawMessage, waves json.RawMessage, err error) {
	data, where := []byte(list), "--agents"
	switch first := strings.TrimSpace(list); {
	case list == "-":
		text, err := a.readInput("the agents", agentsLimit)
		if err != nil {
			return nil, nil, err
		}
		data, where = []byte(text), "standard input"
	case !strings.HasPrefix(first, "[") && !strings.HasPrefix(first, "{"):
		where = list
		if data, err = file.ReadRegular(a.absolute(list), agentsLimit); err != nil {
			return nil, nil, agency.Errorf(agency.CodeInvalidPath, "read the agents from %s: %w", list, rootCause(err)).
				WithHint(`--agents wants a file, -, or JSON such as '[{"id": "001"}]'`)
		}
	}
	fail := func(err error) ([]json.RawMessage, json.RawMessage, error) {
		return nil, nil, agency.Errorf(agency.CodeUsage, "read the agents from %s: %w", where, err).WithHint(`they are JSON such as [{"id": "001"}, {"id": "002"}]`)
	}
	if strings.HasPrefix(strings.TrimSpace(string(data)), "{") {
		members, err := agency.ParseFileObject(data)
		if err != nil {
			return fail(err)
		}
		waves = members.Get("waves")
		data = members.Get("agents")
	}
	if err := json.Unmarshal(data, &agents); err != nil {
		return fail(fmt.Errorf("they are no JSON array"))
	}
	return agents, waves, nil
}

// agentFlags makes agents of ID[:NAME[:WAVE]].
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
				return nil, agency.Errorf(agency.CodeUsage, "the wave of --agent %s is no number from 1", flag).WithHint("such as --agent 001:schema:1")
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
