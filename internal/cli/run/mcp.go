package run

import (
	"errors"
	"io"
	"net/http"

	"github.com/spf13/cobra"

	"agency"
	"agency/docs/skills"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/config"
	"agency/internal/mcp"
)

// mcpOptions are the flags and dependencies of agency mcp.
type mcpOptions struct {
	*command.Deps

	allRepos, skill bool
}

// NewMCP returns the command agency mcp.
func NewMCP(d *command.Deps) *cobra.Command {
	o := &mcpOptions{Deps: d}
	cmd := command.New(cobra.Command{
		Use:     "mcp",
		Short:   "Serve agency to an agent, as tools of the Model Context Protocol",
		GroupID: "run",
		Long: `Serves the tools of agency on standard input and output, for an agent that
runs others: it starts workers, waits for their requests, answers them and collects their work. An
agent's program starts this command itself; docs/mcp.md describes how to set it up for each program.

The tools see the runs of the repository of the current directory. Inside a run they act as that
run, with its messages.`,
		Example: `  claude mcp add agency -- agency mcp
  agency mcp --skill > .claude/skills/agency/SKILL.md`,
		Args: command.Takes(),
	}, o.run)
	cmd.Flags().BoolVar(&o.allRepos, "all-repos", false, "let the tools see the runs of every repository")
	cmd.Flags().BoolVar(&o.skill, "skill", false, "print the skill that teaches an agent to use the tools, and exit")
	return cmd
}

func (o *mcpOptions) run(cmd *cobra.Command, _ []string) error {
	if o.skill {
		return o.Print(map[string]string{"skill": skills.Agency}, func(w io.Writer) { _, _ = io.WriteString(w, skills.Agency) })
	}
	if o.JSON {
		return agency.Errorf(agency.CodeUsage, "agency mcp speaks a protocol of its own and prints no envelope")
	}
	client, err := o.Client()
	if err != nil {
		return err
	}
	if client.Header == nil {
		client.Header = http.Header{}
	}
	client.Header.Set(api.ToolsHeader, "mcp")
	server := &mcp.Server{
		Client: client, Version: o.Version, Dir: o.Dir, AllRepos: o.allRepos, Env: o.Env, Config: o.CallerConfig(),
		ParseRunner: config.ParseRunner, Report: o.reportTool,
	}
	err = server.Serve(cmd.Context(), mcp.Stdio(o.In, o.Out))
	if errors.Is(err, io.EOF) {
		return nil // the client left
	}
	return err
}

// reportTool is agency report for an agent that has the tools.
func (o *mcpOptions) reportTool(r mcp.Report) (any, error) {
	word, err := parseReport(r.Status)
	if err != nil {
		return nil, err
	}
	return report(o.Deps, word, &reportOptions{
		summary: r.Summary, questions: r.Questions, blockers: r.Blockers, howToTest: r.HowToTest, risks: r.Risks, quiet: r.Quiet,
	})
}
