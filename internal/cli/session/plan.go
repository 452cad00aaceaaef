package session

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/complete"
	"agency/internal/cli/term"
	"agency/internal/duration"
	"agency/internal/plain"
)

// planFlags are the flags of the commands that take a plan.
type planFlags struct {
	agents      []string
	prompt      string
	promptFile  string
	name        string
	base        string
	maxParallel int
	onFailure   string
	land        string
}

func (o *planFlags) add(d *command.Deps, cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringSliceVar(&o.agents, "agents", nil, "instead of a plan, run `RUNNER:N,...`: N agents of each runner, all with one prompt")
	f.StringVar(&o.prompt, "prompt", "", "the task of --agents as `TEXT`; - reads it from standard input")
	f.StringVar(&o.promptFile, "prompt-file", "", "read the task of --agents from `FILE` in the repository")
	f.StringVar(&o.name, "name", "", "give the session this `NAME`, instead of the plan's")
	f.StringVar(&o.base, "base", "", "start from `BASE`, a branch, tag or commit, instead of the plan's; deps: the merged results of an agent's dependencies")
	f.IntVar(&o.maxParallel, "max-parallel", 0, "run at most `N` agents at once, instead of the plan's number (default: 3)")
	f.StringVar(&o.onFailure, "on-failure", "", "when an agent fails, take this `ACTION` instead of the plan's: stop, continue or ask")
	complete.Values(cmd, "on-failure", string(agency.StopOnFailure), string(agency.ContinueOnFailure), string(agency.AskOnFailure))
	f.StringVar(&o.land, "land", "", "land the work of complete agents by this `METHOD`, instead of the plan's: queue, merge or none")
	complete.Values(cmd, "land", string(agency.LandByQueue), string(agency.LandByMerge), string(agency.LandByNone))
	_ = cmd.RegisterFlagCompletionFunc("agents", complete.Runners(d))
	_ = cmd.RegisterFlagCompletionFunc("base", complete.Bases(d))
}

// source returns the plan that the command line names.
func (o *planFlags) source(d *command.Deps, cmd *cobra.Command, args []string) (api.PlanSource, error) {
	given := cmd.Flags().Changed
	src := api.PlanSource{Agents: command.OrEmpty(o.agents), Name: o.name, Base: o.base, MaxParallel: o.maxParallel, OnFailure: o.onFailure, Land: o.land}
	example := cmd.CommandPath() + " plan.yaml"
	switch {
	case len(args) > 0 && given("agents"):
		return src, agency.Errorf(agency.CodeUsage, "a plan and --agents exclude each other").WithHint("%s", example)
	case len(args) == 0 && !given("agents"):
		return src, agency.Errorf(agency.CodeUsage, "there is no plan").WithHint("%s, or a folder of prompts, or: %s --agents claude_code:3 --prompt TEXT", example, cmd.CommandPath())
	case !given("agents") && (given("prompt") || given("prompt-file")):
		return src, agency.Errorf(agency.CodeUsage, "--prompt is for --agents; the prompts of a plan are in it").WithHint("%s", example)
	case given("prompt") && given("prompt-file"):
		return src, agency.Errorf(agency.CodeUsage, "--prompt and --prompt-file exclude each other")
	case given("agents") && !given("prompt") && !given("prompt-file"):
		return src, agency.Errorf(agency.CodeUsage, "--agents have no task").WithHint(`%s --agents claude_code:3 --prompt "fix the login test"`, cmd.CommandPath())
	case given("max-parallel") && o.maxParallel < 1:
		return src, agency.Errorf(agency.CodeUsage, "--max-parallel is %d; it is 1 or more", o.maxParallel).WithHint("for example: --max-parallel 5")
	}
	for flag, value := range map[string]string{"name": o.name, "base": o.base, "on-failure": o.onFailure, "land": o.land, "prompt-file": o.promptFile} {
		if given(flag) && value == "" {
			return src, agency.Errorf(agency.CodeUsage, "--%s is empty", flag).WithHint("drop it, or give it a value")
		}
	}
	var err error
	switch {
	case given("prompt-file"):
		src.PromptPath = d.Absolute(o.promptFile)
	case given("prompt"):
		if src.Prompt = o.prompt; o.prompt == "-" {
			src.Prompt, err = term.ReadAll(cmd.Context(), d.In, "the prompt", agency.PromptLimit)
		}
		if err == nil {
			err = agency.CheckPrompt(src.Prompt)
		}
	case args[0] == "-":
		const most = 4 << 20 // the limit of the daemon; one byte more makes it refuse the plan
		if src.Text, err = term.ReadAll(cmd.Context(), d.In, "the plan", most); err == nil && strings.TrimSpace(src.Text) == "" {
			err = agency.Errorf(agency.CodePlanInvalid, "the plan on standard input is empty").WithHint("%s - < plan.yaml", cmd.CommandPath())
		}
	default:
		src.Path = d.Absolute(args[0])
	}
	return src, err
}

// planOptions are the flags and dependencies of agency session plan.
type planOptions struct {
	*command.Deps

	plan *planFlags
}

// newPlan returns the command agency session plan.
func newPlan(d *command.Deps) *cobra.Command {
	o := &planOptions{Deps: d, plan: &planFlags{}}
	cmd := command.New(cobra.Command{
		Use:   "plan [FILE | FOLDER | -]",
		Short: "Check a plan and show what it would do",
		Long: `Reads a plan, checks what it can without starting anything, and shows the agents
by wave, with their dependencies, branches, commands and limits. A plan is a YAML file (- reads it
from standard input), a folder of NNN-name.md prompts, or --agents that all get one task.
docs/plan.md describes plans, agency schema plan prints their schema.

Exit status: 0 the plan can start, 2 the plan has an error, 8 a user must first trust the setup of
the repository. In branches and commands, SESSION, RUN, WORKTREE, ATTEMPT and CONVERSATION are
placeholders for values that agency knows only at the start.`,
		Example: `  agency session plan plan.yaml
  agency session plan prompts/
  agency session plan --agents claude_code:3,codex:2 --prompt "fix the test"`,
		Args: command.TakesUpTo("FILE"),
	}, o.run)
	o.plan.add(d, cmd)
	return cmd
}

func (o *planOptions) run(cmd *cobra.Command, args []string) error {
	src, err := o.plan.source(o.Deps, cmd, args)
	if err != nil {
		return err
	}
	if _, err := o.Config(); err != nil {
		return err
	}
	resp, err := command.Call(cmd.Context(), o.Deps, api.PlanSession, api.PlanSessionRequest{Plan: src, Dir: o.Dir, Env: o.Env, Config: o.CallerConfig()})
	if err != nil {
		return err
	}
	if resp.Refused != nil {
		o.Status = resp.Refused.Code.Exit()
	}
	return o.Print(resp, func(w io.Writer) {
		o.Warn(resp.Warnings)
		o.showPlan(w, &resp)
		if resp.Refused != nil {
			o.Chat("agency session start refuses this plan: %s", term.SafeLine(resp.Refused.Message))
			o.Chat("%s", term.SafeText(resp.Refused.Hint))
		}
	})
}

// showPlan writes a plan as text: its settings, the agents by wave, and their commands.
func (o *planOptions) showPlan(w io.Writer, resp *api.PlanSessionResponse) {
	p := &resp.Plan
	facts := []string{fmt.Sprintf("%s in %s", command.Count(len(p.Agents), "agent"), command.Count(len(resp.Waves), "wave")), fmt.Sprintf("at most %d at once", p.MaxParallel)}
	runners := make([]string, 0, len(p.Limits))
	for runner, n := range p.Limits {
		runners = append(runners, fmt.Sprintf("at most %d of %s", n, runner))
	}
	slices.Sort(runners)
	facts = append(append(facts, runners...), "on failure "+string(p.OnFailure))
	head := "plan: "
	if p.Name != "" {
		head = "plan " + term.SafeLine(p.Name) + ": "
	}
	_, _ = fmt.Fprintln(w, term.Hang(head, term.SafeLine(strings.Join(facts, ", ")), o.Columns()))
	graph := newPlanGraph(resp)
	for _, wave := range resp.Waves {
		_, _ = fmt.Fprintf(w, "\nwave %d\n", graph.agent(wave[0]).Wave)
		rows := make([][]string, 0, len(wave))
		for _, id := range wave {
			rows = append(rows, graph.row(id))
		}
		_, _ = io.WriteString(w, o.TextTable(graph.align(rows)))
	}
	_, _ = fmt.Fprintln(w, "\ncommands")
	rows := [][]string{}
	for _, same := range graph.commands() {
		rows = append(rows, []string{"  " + same.agents, same.command})
	}
	_, _ = io.WriteString(w, o.TextTable(rows))
}

// planGraph shows the agents of a plan in their order.
type planGraph struct {
	resp    *api.PlanSessionResponse
	at      map[string]int // by id: the position in the plan
	sizes   map[int]int    // of waves
	columns []int          // the widest cells of all waves
}

func newPlanGraph(resp *api.PlanSessionResponse) *planGraph {
	g := &planGraph{resp: resp, at: map[string]int{}, sizes: map[int]int{}, columns: make([]int, 4)}
	for i := range resp.Plan.Agents {
		g.at[resp.Plan.Agents[i].ID] = i
		g.sizes[resp.Plan.Agents[i].Wave]++
	}
	for id := range g.at {
		for i, cell := range g.row(id)[:len(g.columns)] {
			g.columns[i] = max(g.columns[i], term.Width(cell))
		}
	}
	return g
}

func (g *planGraph) agent(id string) *agency.PlanAgent { return &g.resp.Plan.Agents[g.at[id]] }

// row returns one agent: id, name, runner, branch, and other details.
func (g *planGraph) row(id string) []string {
	p, planned := g.agent(id), &g.resp.Agents[g.at[id]]
	var notes []string
	if after := g.after(p); after != "" {
		notes = append(notes, "<- "+after)
	}
	for _, note := range []struct{ name, value string }{{"base", p.Base}, {"preset", p.Preset}, {"model", p.Model}} {
		if note.value != "" {
			notes = append(notes, note.name+" "+note.value)
		}
	}
	if p.Timeout > 0 {
		notes = append(notes, "timeout "+duration.Short(p.Timeout))
	}
	if p.IdleTimeout > 0 {
		notes = append(notes, "idle timeout "+duration.Short(p.IdleTimeout))
	}
	if p.Retries > 0 {
		notes = append(notes, fmt.Sprintf("retries %d", p.Retries))
	}
	if p.DoneWhen != agency.DoneWhenReady {
		notes = append(notes, "done when "+string(p.DoneWhen))
	}
	if p.Land != "" {
		notes = append(notes, "lands by "+string(p.Land))
	}
	name := p.Name
	if name == p.ID {
		name = ""
	}
	return []string{"  " + p.ID, term.Fit(term.SafeLine(name), 24), term.SafeLine(planned.Runner), term.SafeLine(planned.Branch), term.SafeLine(strings.Join(notes, "; "))}
}

// align pads the cells of a wave so that all waves are aligned.
func (g *planGraph) align(rows [][]string) [][]string {
	for _, row := range rows {
		for i, most := range g.columns {
			row[i] = term.Pad(row[i], most)
		}
	}
	return rows
}

// after names the agents that an agent comes after. A complete wave is named by its number.
func (g *planGraph) after(p *agency.PlanAgent) string {
	ofWave := map[int]int{}
	for _, id := range p.After {
		ofWave[g.agent(id).Wave]++
	}
	const leastWhole, most = 4, 12
	var names []string
	seen := map[int]bool{}
	for _, id := range p.After {
		wave := g.agent(id).Wave
		switch whole := ofWave[wave] == g.sizes[wave] && ofWave[wave] >= leastWhole; {
		case !whole:
			names = append(names, id)
		case !seen[wave]:
			names = append(names, fmt.Sprintf("all of wave %d", wave))
		}
		seen[wave] = true
	}
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// sameCommand is a command and the agents that have it.
type sameCommand struct{ agents, command string }

// commands returns the commands of the plan, each once. Long arguments, such as a system prompt,
// are cut after their beginning.
func (g *planGraph) commands() []sameCommand {
	const longest = 60
	var order []string
	positions := map[string][]int{}
	for i := range g.resp.Agents {
		command := strings.Join(g.resp.Agents[i].Command, "\x00")
		if positions[command] == nil {
			order = append(order, command)
		}
		positions[command] = append(positions[command], i)
	}
	all := make([]sameCommand, 0, len(order))
	for _, command := range order {
		words := strings.Split(command, "\x00")
		for i, word := range words {
			if word = term.SafeLine(word); i > 0 {
				word = term.Fit(word, longest)
			}
			words[i] = plain.ShellWord(word)
		}
		all = append(all, sameCommand{g.ranges(positions[command]), term.Fit(strings.Join(words, " "), 800)})
	}
	return all
}

// ranges names agents by their positions; three or more in a row are named by the first and the
// last, and a long list is cut.
func (g *planGraph) ranges(positions []int) string {
	const most = 4 // names
	var names []string
	for from := 0; from < len(positions); {
		if len(names) >= most && len(positions)-from > 1 {
			names = append(names, fmt.Sprintf("%d more", len(positions)-from))
			break
		}
		to := from
		for to+1 < len(positions) && positions[to+1] == positions[to]+1 {
			to++
		}
		first, last := g.resp.Agents[positions[from]].ID, g.resp.Agents[positions[to]].ID
		switch to - from {
		case 0:
			names = append(names, first)
		case 1:
			names = append(names, first, last)
		default:
			names = append(names, first+" to "+last)
		}
		from = to + 1
	}
	return strings.Join(names, ", ")
}
