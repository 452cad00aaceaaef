package maintain

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/term"
	"agency/internal/config"
)

// question is one question of init.
type question struct {
	key   string // in agency.toml
	flag  string
	text  string // as the user is asked
	help  string // of the flag
	yesNo bool
	set   func(a *api.InitAnswers, text string, yes bool)
}

// sandboxKey is the key of agency.toml for the sandbox level.
const sandboxKey = "project.sandbox"

// noneWord is what users type for an absent value.
const noneWord = "none"

// questions returns all questions in the order in which they are asked.
func questions() []question {
	return []question{
		{
			key: "project.type", flag: "type", text: "Project type", help: "a `WORD` for the kind of project: go, node, python ... (default: from its files)",
			set: func(a *api.InitAnswers, text string, _ bool) { a.Type = &text },
		},
		{
			key: sandboxKey, flag: "sandbox", text: "Sandbox level (worktree, process, container)", help: "sandbox every run at least at this `LEVEL`: worktree, landlock, process or container (default: worktree)",
			set: func(a *api.InitAnswers, text string, _ bool) { a.Sandbox = &text },
		},
		{
			key: "ids.format", flag: "id-format", text: "Run ids (mmdd-slug-hash, timestamp-slug, or a pattern)",
			help: "name runs in this `FORMAT`: mmdd-slug-hash, timestamp-slug, or a pattern such as {YYYYMMDD}-{slug}-{hash} (default: each user's own)",
			set:  func(a *api.InitAnswers, text string, _ bool) { a.IDFormat = &text },
		},
		{
			key: "defaults.base", flag: "base", text: "Base branch of new runs", help: "start runs from `BASE`, a branch, tag or commit (default: each user's own, or HEAD)",
			set: func(a *api.InitAnswers, text string, _ bool) { a.Base = &text },
		},
		{
			key: "defaults.runner", flag: "runner", text: "Runner (" + config.RunnerNames() + ", or your own)", help: "start this `RUNNER` in new runs (default: each user's own)",
			set: func(a *api.InitAnswers, text string, _ bool) { a.Runner = &text },
		},
		{
			key: "project.parallel", flag: "parallel", text: "Several runs at the same time?", help: "allow several live runs at the same time (default: yes)", yesNo: true,
			set: func(a *api.InitAnswers, _ string, yes bool) { a.Parallel = &yes },
		},
		{
			key: "project.layout", flag: "layout", text: "Folder layout (minimal, standard)", help: "make the folders of this `LAYOUT`: minimal, or standard with specs/, scout_outputs/archive/ and ai_docs/ (default: minimal)",
			set: func(a *api.InitAnswers, text string, _ bool) { a.Layout = &text },
		},
		{
			key: "project.agent_runs", flag: "agent-runs", text: "Keep agent_runs/ here, with a link for every run?", help: "keep agent_runs/ in the repository, with a link for every run (default: no)", yesNo: true,
			set: func(a *api.InitAnswers, _ string, yes bool) { a.AgentRuns = &yes },
		},
		{
			key: "scripts.setup", flag: "setup", text: "Script to run in each new worktree (a file of the repository, or none)", help: "run this `FILE` of the repository in each new worktree; empty: none (default: none)",
			set: func(a *api.InitAnswers, text string, _ bool) { a.Setup = &text },
		},
	}
}

// fromFlags takes the answers from the flags of the command line.
func fromFlags(cmd *cobra.Command, all []question, answers *api.InitAnswers) error {
	for _, q := range all {
		if !cmd.Flags().Changed(q.flag) {
			continue
		}
		text := cmd.Flags().Lookup(q.flag).Value.String()
		if err := answer(&q, text, answers); err != nil {
			return agency.AsError(fmt.Errorf("--%s: %w", q.flag, err))
		}
	}
	return nil
}

// answer checks one answer and takes it.
func answer(q *question, text string, answers *api.InitAnswers) error {
	if q.yesNo {
		yes, ok := term.YesOrNo(text)
		if !ok {
			return agency.Errorf(agency.CodeUsage, "%q is neither yes nor no", text)
		}
		q.set(answers, "", yes)
		return nil
	}
	if q.key == config.SetupKey && (text == "" || text == noneWord) {
		q.set(answers, "", false) // it is removed
		return nil
	}
	if err := config.CheckSetting(config.Setting{Key: q.key, Value: text}); err != nil {
		return err
	}
	q.set(answers, text, false)
	return nil
}

// ask repeats a question until the answer is valid, also for the repository. An empty line changes
// nothing.
func (o *initOptions) ask(ctx context.Context, in *term.Lines, q *question, now string, req *api.InitRepoRequest) error {
	shown := cmp.Or(now, noneWord)
	if q.yesNo {
		if yes, err := strconv.ParseBool(now); err == nil {
			shown = term.YesNoWord(yes)
		}
	}
	before := req.Answers
	for {
		_, _ = fmt.Fprintf(o.Err, "%s [%s]: ", q.text, term.SafeLine(shown))
		text, err := in.Next(ctx)
		if err != nil || text == "" || text == shown {
			return err
		}
		if err = answer(q, text, &req.Answers); err == nil {
			_, err = command.Call(ctx, o.Deps, api.InitRepo, *req) // it writes nothing yet
		}
		if err == nil {
			return nil
		}
		req.Answers = before
		e := agency.AsError(err)
		o.Chat("  %s", term.SafeLine(strings.TrimSuffix(e.Message+"; "+e.Hint, "; ")))
	}
}
