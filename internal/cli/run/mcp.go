package run

import (
	"cmp"
	"errors"
	"io"
	"maps"
	"net/http"
	"os/exec"
	"slices"

	"github.com/spf13/cobra"

	"agency"
	"agency/docs/skills"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/complete"
	"agency/internal/config"
	"agency/internal/mcp"
)

// mcpOptions are the flags and dependencies of agency mcp.
type mcpOptions struct {
	*command.Deps

	allRepos, skill bool
	tools           string
}

// NewMCP returns the command agency mcp.
func NewMCP(d *command.Deps) *cobra.Command {
	o := &mcpOptions{Deps: d}
	cmd := command.New(cobra.Command{
		Use:     "mcp",
		Short:   "Serve agency to an agent, as tools of the Model Context Protocol",
		GroupID: "run",
		Long: `Serves the tools of agency on standard input and output, for an agent that leads
others: with the tools it starts workers, waits for their requests, answers them and collects their
work. The agent's program starts this command; docs/mcp.md describes the set-up for each program.

The tools see the runs of the repository of the current directory. Inside a run they act as that
run, with its messages; in a sandbox they see that run and what it starts. --tools all adds those
that most agents do not need: for flags, checks, landing queues, timers, and sessions whose agents
another program runs.`,
		Example: `  claude mcp add agency -- agency mcp
  mkdir -p .claude/skills/agency
  agency mcp --skill > .claude/skills/agency/SKILL.md`,
		Args: command.Takes(),
	}, o.run)
	cmd.Flags().BoolVar(&o.allRepos, "all-repos", false, "let the tools see the runs of every repository")
	cmd.Flags().StringVar(&o.tools, "tools", "usual", "serve this `SET` of tools: usual or all")
	complete.Values(cmd, "tools", "usual", "all")
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
	if o.tools != "usual" && o.tools != "all" {
		return agency.Errorf(agency.CodeUsage, "--tools is %q, not usual or all", o.tools).WithHint("agency mcp --tools all")
	}
	client, err := o.ClientAnyway()
	if err != nil {
		return err
	}
	if client.Header == nil {
		client.Header = http.Header{}
	}
	client.Header.Set(api.ToolsHeader, "mcp")
	server := &mcp.Server{
		Client: client, Version: o.Version, Dir: o.Dir, AllRepos: o.allRepos, AllTools: o.tools == "all", InSandbox: o.InSandbox(), Env: o.Env, Config: o.CallerConfig(),
		Since: o.Now(), ParseRunner: config.ParseRunner, Configured: o.configured, Report: o.reportTool,
	}
	err = server.Serve(cmd.Context(), mcp.Stdio(o.In, o.Terminal))
	if errors.Is(err, io.EOF) {
		return nil // the client disconnected
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

// configured lists for an agent which runners and presets new runs can have.
func (o *mcpOptions) configured() (any, error) {
	cfg, err := o.Config()
	if err != nil {
		return nil, err
	}
	type runner struct {
		Name      string `json:"name"`
		Default   bool   `json:"default,omitempty"`
		Installed bool   `json:"installed"`
		Allowed   bool   `json:"allowed"` // to agents, by the user's configuration
	}
	type preset struct {
		Name        string   `json:"name"`
		Description string   `json:"description,omitempty"`
		Runner      string   `json:"runner"`
		Model       string   `json:"model,omitempty"`
		Tags        []string `json:"tags,omitempty"`
		Headless    bool     `json:"headless,omitempty"`
	}
	runners, presets := []runner{}, []preset{}
	add := func(name string, r config.Runner, allowed bool) {
		_, err := exec.LookPath(r.Exec)
		runners = append(runners, runner{name, name == cfg.Defaults.Runner, r.Exec == "" || err == nil, allowed})
	}
	for _, kind := range config.RunnerKinds() {
		add(string(kind), cfg.Runners[kind], kind != agency.Shell || cfg.MCP.Allows(config.AllowShell))
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Custom)) {
		add(name, cfg.Custom[name], name == cfg.Defaults.Runner || cfg.MCP.Allows(config.AllowCustom))
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Presets)) {
		p := cfg.Presets[name]
		presets = append(presets, preset{name, p.Description, cmp.Or(p.Harness, cfg.Defaults.Runner), p.Model, p.Tags, p.Headless})
	}
	return map[string]any{"runners": runners, "presets": presets}, nil
}
