package cli

import (
	"errors"
	"io"
	"net/http"

	"github.com/spf13/cobra"

	"agency"
	"agency/docs/skills"
	"agency/internal/api"
	"agency/internal/config"
	"agency/internal/mcp"
)

func (a *App) mcpCommand() *cobra.Command {
	var allRepos, skill bool
	cmd := command(cobra.Command{
		Use:     "mcp",
		Short:   "Serve agency to an agent, as tools of the Model Context Protocol",
		GroupID: "run",
		Long: `Serves the tools of agency on standard input and output, for an agent that runs others: it starts workers, waits for what they ask,
answers them and collects their work. An agent's program starts this command itself; docs/mcp.md says how each is told to.

The tools see the runs of the repository of the current directory. Inside a run they act as that run: its messages are its own.`,
		Example: `  claude mcp add agency -- agency mcp
  agency mcp --skill > .claude/skills/agency/SKILL.md`,
		Args: takes(),
	}, func(cmd *cobra.Command, _ []string) error {
		if skill {
			return a.print(map[string]string{"skill": skills.Agency}, func(w io.Writer) { _, _ = io.WriteString(w, skills.Agency) })
		}
		if a.json {
			return agency.Errorf(agency.CodeUsage, "agency mcp speaks a protocol of its own and prints no envelope")
		}
		client, err := a.client()
		if err != nil {
			return err
		}
		if client.Header == nil {
			client.Header = http.Header{}
		}
		client.Header.Set(api.ToolsHeader, "mcp")
		server := &mcp.Server{
			Client: client, Version: a.Version, Dir: a.Dir, AllRepos: allRepos, Env: a.Env, Config: a.callerConfig(),
			ParseRunner: config.ParseRunner, Report: a.reportTool,
		}
		err = server.Serve(cmd.Context(), mcp.Stdio(a.In, a.out))
		if errors.Is(err, io.EOF) {
			return nil // the client left
		}
		return err
	})
	cmd.Flags().BoolVar(&allRepos, "all-repos", false, "let the tools see the runs of every repository")
	cmd.Flags().BoolVar(&skill, "skill", false, "print the skill that teaches an agent to use the tools, and end")
	return cmd
}

// reportTool is agency report for an agent that has the tools.
func (a *App) reportTool(r mcp.Report) (any, error) {
	word, err := parseReport(r.Status)
	if err != nil {
		return nil, err
	}
	return a.report(word, &reportOptions{
		summary: r.Summary, questions: r.Questions, blockers: r.Blockers, howToTest: r.HowToTest, risks: r.Risks, quiet: r.Quiet,
	})
}
