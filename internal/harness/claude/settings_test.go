package claude_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agency"
	"agency/internal/harness"
	"agency/internal/harness/harnesstest"
	"agency/test/fixture"
)

// settingsOf builds a command of Claude Code with these arguments and returns the settings that it
// is given.
func settingsOf(t *testing.T, r agency.CommandRequest) (hooks map[string][]struct {
	Matcher string `json:"matcher"`
	Hooks   []struct {
		Command string `json:"command"`
	} `json:"hooks"`
}, all map[string]any, argv []string,
) {
	t.Helper()
	r.Runner.Kind, r.Exec, r.PromptFile, r.AttemptDir = "claude_code", harnesstest.Program(t), harnesstest.Task, "/attempt"
	c, err := harness.Build(r)
	if err != nil {
		t.Fatal(err)
	}
	data, ok := c.Files["claude-settings.json"]
	if !ok {
		return nil, nil, c.Argv
	}
	var settings struct {
		Hooks any `json:"hooks"`
	}
	settings.Hooks = &hooks
	if err := json.Unmarshal(data, &settings); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	return hooks, all, c.Argv
}

func TestClaudeSettings(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const users = `{"model":"opus","env":{"SECRET":"s"},"hooks":{"Stop":[{"matcher":"x","hooks":[{"type":"command","command":"bell"}]}],"FileChanged":[]}}`
	if err := os.WriteFile(filepath.Join(dir, "mine.json"), []byte(users), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("mine.json", filepath.Join(dir, "link.json")); err != nil {
		t.Fatal(err)
	}
	call := []string{"/opt/my tools/it's agency", "hook"}
	const quoted = `'/opt/my tools/it'\''s agency' 'hook' 'claude_code'`
	for name, args := range map[string][]string{
		"none": nil, "literal": {"--settings", users}, "joined": {"--settings=" + users}, "file": {"--settings", "mine.json"},
		"link": {"--settings", filepath.Join(dir, "link.json")}, "the last one": {"--settings", "{}", "--settings", "mine.json"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hooks, all, argv := settingsOf(t, agency.CommandRequest{Runner: agency.Runner{Args: args}, Worktree: dir, Hook: call})
			if i := slices.Index(argv, "--settings"); i < 0 || argv[i+1] != "/attempt/claude-settings.json" || strings.Count(strings.Join(argv, " "), "--settings") != 1 {
				t.Errorf("arguments: %q", argv)
			}
			if strings.Contains(strings.Join(argv, " "), "SECRET") && name != "none" {
				t.Errorf("the user's settings are in the arguments: %q", argv)
			}
			for _, event := range []string{"SessionStart", "PreToolUse", "PermissionRequest", "Stop", "SessionEnd"} {
				list := hooks[event]
				if len(list) == 0 || list[len(list)-1].Hooks[0].Command != quoted {
					t.Errorf("%s: got %+v, want %s", event, list, quoted)
				}
			}
			if args == nil {
				return
			}
			if all["model"] != "opus" || hooks["Stop"][0].Matcher != "x" || hooks["Stop"][0].Hooks[0].Command != "bell" {
				t.Errorf("the user's own are lost: %v", all)
			}
		})
	}
}

// Settings that cannot be read, a run without a terminal, and a program with an odd name.
func TestClaudeSettingsApart(t *testing.T) {
	t.Parallel()
	dir, call := t.TempDir(), []string{"/opt/agency", "hook"}
	t.Run("unreadable ones are left to the agent", func(t *testing.T) {
		t.Parallel()
		for _, bad := range []string{"none.json", "{", `{"hooks":[]}`, dir} {
			hooks, _, argv := settingsOf(t, agency.CommandRequest{Runner: agency.Runner{Args: []string{"--settings", bad}}, Worktree: dir, Hook: call})
			if i := slices.Index(argv, "--settings"); hooks != nil || i < 0 || argv[i+1] != bad {
				t.Errorf("%s: got %v, %q", bad, hooks, argv)
			}
		}
	})
	t.Run("without a terminal the stream tells of tools", func(t *testing.T) {
		t.Parallel()
		hooks, _, _ := settingsOf(t, agency.CommandRequest{Headless: true, Worktree: dir, Hook: call})
		if hooks["PreToolUse"] != nil || hooks["PermissionRequest"] != nil || hooks["Stop"] == nil {
			t.Errorf("got %v", hooks)
		}
	})
	t.Run("a shell finds the program", func(t *testing.T) {
		t.Parallel()
		odd := filepath.Join(t.TempDir(), "it's $HOME `x`")
		if err := fixture.WriteProgram(odd, "#!/bin/sh\nprintf '%s' \"$*\"\n"); err != nil {
			t.Fatal(err)
		}
		hooks, _, _ := settingsOf(t, agency.CommandRequest{Worktree: dir, Hook: []string{odd, "hook"}})
		out, err := exec.CommandContext(t.Context(), "sh", "-c", hooks["Stop"][0].Hooks[0].Command).CombinedOutput()
		if string(out) != "hook claude_code" {
			t.Errorf("got %q, %v", out, err)
		}
	})
}
