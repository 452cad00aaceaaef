package plan

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"agency"
	"agency/internal/document"
	"agency/internal/file"
)

// fan returns a plan of independent agents with the same prompt.
func (l *loader) fan() (*agency.Plan, error) {
	bad := func(format string, args ...any) *agency.Error {
		return agency.Errorf(agency.CodePlanInvalid, format, args...).WithHint("for example: --agents claude_code:3,codex:2")
	}
	src := &l.src
	prompt, path := src.Prompt, ""
	switch {
	case prompt == "" && src.PromptPath == "":
		return nil, agency.Errorf(agency.CodeUsage, "the agents have no task").WithHint(`--agents claude_code:3 --prompt "fix the login test"`)
	case prompt != "" && src.PromptPath != "":
		return nil, agency.Errorf(agency.CodeUsage, "the prompt is given as text and as a file").WithHint("give one of the two")
	case src.PromptPath != "":
		dir, err := filepath.EvalSymlinks(src.Dir)
		if err != nil {
			return nil, agency.Errorf(agency.CodeInvalidPath, "the folder %s cannot be read: %w", document.Printable(src.Dir), file.Cause(err))
		}
		if path, prompt, err = l.prompts.text(dir, src.PromptPath); err != nil {
			return nil, err
		}
	}
	if err := agency.CheckPrompt(prompt); err != nil {
		return nil, err
	}
	p := &agency.Plan{}
	of := map[string]int{} // the number of agents of each runner
	for _, word := range src.Agents {
		runner, many, counted := strings.Cut(word, ":")
		n := 1
		if counted {
			var err error
			if n, err = strconv.Atoi(many); err != nil || n < 1 {
				return nil, bad("%s does not name how many agents: %s is not a number from 1", document.Quoted(word), document.Quoted(many))
			}
		}
		if runner == "" {
			return nil, bad("%s names no runner", document.Quoted(word))
		}
		if n > agency.MaxAgents-len(p.Agents) {
			return nil, bad("these are more than %d agents", agency.MaxAgents)
		}
		for range n {
			of[runner]++
			p.Agents = append(p.Agents, agency.PlanAgent{
				ID: fmt.Sprintf("%03d", len(p.Agents)+1), Name: fmt.Sprintf("%s-%d", strings.ReplaceAll(runner, "_", "-"), of[runner]),
				Runner: runner, Prompt: prompt, PromptPath: path,
			})
			if err := l.prompts.add(prompt); err != nil {
				return nil, err
			}
		}
	}
	return p, nil
}
