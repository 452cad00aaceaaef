package harness_test

import (
	"slices"
	"strings"
	"testing"

	"agency"
	"agency/internal/harness"
	"agency/internal/harness/agent"
	"agency/internal/harness/harnesstest"
)

// A role reaches each agent by its own means, together with how to report.
func TestSystemPrompt(t *testing.T) {
	t.Parallel()
	exe := harnesstest.Program(t)
	const text = "You watch the workers.\nSay \"nothing\" else."
	for kind, where := range map[agency.RunnerKind]func(c agency.Command) string{
		"claude_code": func(c agency.Command) string {
			if i := slices.Index(c.Argv, "--append-system-prompt-file"); i < 0 || c.Argv[i+1] != "/run/attempts/1/system-prompt.md" {
				return "not in the arguments"
			}
			return string(c.Files["system-prompt.md"])
		},
		"codex": func(c agency.Command) string {
			i := slices.IndexFunc(c.Argv, func(arg string) bool { return strings.HasPrefix(arg, "developer_instructions=") })
			return strings.NewReplacer(`\n`, "\n", `\"`, `"`).Replace(c.Argv[i])
		},
		"gemini": func(c agency.Command) string { return c.Argv[len(c.Argv)-1] + agent.Protocol }, // the task names the instructions
		"opencode": func(c agency.Command) string {
			if !slices.ContainsFunc(c.Env, func(kv string) bool {
				return strings.Contains(kv, `"instructions":[".agency/INSTRUCTIONS.md","/run/attempts/1/system-prompt.md"]`)
			}) {
				return strings.Join(c.Env, "\n")
			}
			return string(c.Files["system-prompt.md"]) + agent.Protocol
		},
	} {
		c, err := harness.Build(agency.CommandRequest{
			Runner: agency.Runner{Kind: kind}, Exec: exe, AttemptDir: "/run/attempts/1", Hook: []string{"agency", "hook"}, SystemPrompt: text,
		})
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		if got := where(c); !strings.Contains(got, text) || !strings.Contains(got, agent.Protocol) {
			t.Errorf("%s is told %q", kind, got)
		}
	}
	_, err := harness.Build(agency.CommandRequest{
		Runner: agency.Runner{Kind: "claude_code", Name: "claude_code", Args: []string{"--system-prompt=x"}}, Exec: exe, SystemPrompt: text,
	})
	if !agency.IsCode(err, agency.CodeSpecInvalid) {
		t.Errorf("two system prompts: %v", err)
	}
}

// Each agent has its own word for asking nothing.
func TestSkipPermissions(t *testing.T) {
	t.Parallel()
	exe := harnesstest.Program(t)
	for kind, want := range map[agency.RunnerKind]string{
		"claude_code": "--dangerously-skip-permissions",
		"codex":       "--dangerously-bypass-approvals-and-sandbox",
		"gemini":      "--yolo",
		"opencode":    `"permission":"allow"`,
	} {
		for _, headless := range []bool{false, true} {
			for _, own := range [][]string{nil, {want}} {
				if kind == "opencode" {
					own = nil
				}
				c, err := harness.Build(agency.CommandRequest{
					Runner: agency.Runner{Kind: kind, Args: own}, Exec: exe, AttemptDir: "/run/attempts/1", Hook: []string{"agency", "hook"},
					Headless: headless, SkipPermissions: true,
				})
				if err != nil {
					t.Fatalf("%s: %v", kind, err)
				}
				all := strings.Join(slices.Concat(c.Argv, c.Env), "\n")
				if strings.Count(all, want) != 1 || strings.Contains(all, "--permission-mode") || strings.Contains(all, "workspace-write") || strings.Contains(all, "auto_edit") {
					t.Errorf("%s, headless %v: %s", kind, headless, all)
				}
			}
		}
	}
}
