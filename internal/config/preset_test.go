package config_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agency"
	"agency/internal/config"
)

func TestPresets(t *testing.T) {
	t.Parallel()
	c := mustLoad(t, `
[runners.custom.aider]
exec = "aider"
[presets.worker]
harness = "claude"
description = "Works on one task"
[presets.worker.config]
model = "sonnet"
dangerously_skip_permissions = true
args = ["--verbose"]
env = ["A=1", "B="]
tags = ["worker", "builder"]
headless = true
system_prompt_file = "/etc/worker.md"
stall_threshold = "30m"
stuck_threshold_intervals = 6
error_patterns = ["panic: "]
[presets]
plain = { harness = "claude_code" }
own = { harness = "aider", config = { system_prompt_file = "" } }
empty = {}
`)
	want := map[string]config.Preset{
		"worker": {
			Harness: "claude_code", Description: "Works on one task", Model: "sonnet", SkipPermissions: true, Args: []string{"--verbose"},
			Env: []string{"A=1", "B="}, PromptFile: "/etc/worker.md", Tags: []string{"worker", "builder"}, Headless: true,
			StallThreshold: 30 * time.Minute, StuckIntervals: 6, ErrorPatterns: []string{"panic: "},
		},
		"plain": {Harness: "claude_code", Args: []string{}, Env: []string{}, Tags: []string{}, ErrorPatterns: []string{}},
		"own":   {Harness: "aider", Args: []string{}, Env: []string{}, Tags: []string{}, ErrorPatterns: []string{}},
		"empty": {Args: []string{}, Env: []string{}, Tags: []string{}, ErrorPatterns: []string{}},
	}
	if diff := cmp.Diff(want, c.Presets); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, o := range c.Origins() {
		if strings.HasSuffix(o.Key, "worker.config.env") && o.Value != `["A=…", "B=…"]` {
			t.Errorf("%s shows %s", o.Key, o.Value)
		}
	}
	if _, err := c.Preset("wroker"); !agency.IsCode(err, agency.CodeSpecInvalid) || !strings.Contains(agency.AsError(err).Hint, "worker") {
		t.Errorf("an unknown preset: %v", err)
	}
}

func TestPresetProblems(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"[presets.x]\nharnes = \"claude\"":                                             `2:1: unknown key "presets.x.harnes" [did you mean "presets.x.harness"?]`,
		"[presets.x]\nharness = \"codx\"":                                              `2:1: "presets.x.harness" is "codx", which is not a runner [did you mean "codex"?]`,
		"[presets.x]\nmodel = \"opus\"":                                                `2:1: unknown key "presets.x.model" [known here: harness, description, config, resources]`,
		"[presets.x.config]\nmodle = \"opus\"":                                         `2:1: unknown key "presets.x.config.modle" [did you mean "presets.x.config.model"?]`,
		"[presets.x.config]\nmodel = \"--opus\"":                                       `2:1: "presets.x.config.model" must be a model, not "--opus" []`,
		"[presets.x.config]\nenv = [\"SECRET\"]":                                       `2:1: "presets.x.config.env" is wrong at item 1: it must be NAME=value []`,
		"[presets.x.config]\nenv = [\"AGENCY_RUN_ID=SECRET\"]":                         `2:1: "presets.x.config.env" is wrong at item 1: it must not set AGENCY_RUN_ID, which belongs to agency []`,
		"[presets.x.config]\nstuck_threshold_intervals = -1":                           `2:1: "presets.x.config.stuck_threshold_intervals" must be from 0 to 10000, not -1 []`,
		"[presets.\"X Y\"]":                                                            `1:10: the preset name "X Y" `,
		"[presets.x]\nharness = \"shell\"\nconfig.dangerously_skip_permissions = true": `3:8: "presets.x.config.dangerously_skip_permissions" has no effect for "shell" [what the program needs goes into args]`,
		"presets.x.harness = \"shell\"\npresets.x.config.system_prompt_file = \"a\"":   `2:18: "presets.x.config.system_prompt_file" has no effect for "shell" [say it in the prompt of the run]`,
	} {
		path := write(t, filepath.Join(t.TempDir(), "config.toml"), text)
		_, err := config.Load(path, []string{"HOME=/home/u"})
		if err == nil {
			t.Errorf("%q is accepted", text)
			continue
		}
		e := agency.AsError(err)
		if got := strings.TrimPrefix(e.Message, path+":") + " [" + e.Hint + "]"; !strings.HasPrefix(got, want) {
			t.Errorf("%q\n got %s\nwant %s", text, got, want)
		}
	}
}

// The file of a system prompt is read when it is needed, relative to the configuration, through
// links but never from a file that could block.
func TestSystemPrompt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "real.md"), "Be brief.\n")
	write(t, filepath.Join(dir, "large.md"), strings.Repeat("x", agency.SystemPromptLimit+1))
	write(t, filepath.Join(dir, "binary.md"), "\x00")
	if err := os.Symlink("real.md", filepath.Join(dir, "link.md")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe.md"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"real.md": "Be brief.\n", "link.md": "Be brief.\n", "": "",
		"large.md": "error", "binary.md": "error", "pipe.md": "error", "missing.md": "error",
	} {
		path := write(t, filepath.Join(dir, "config.toml"), "[presets.x.config]\nsystem_prompt_file = \""+name+"\"\n")
		c, err := config.Load(path, []string{"HOME=/home/u"})
		if err != nil {
			t.Fatal(err)
		}
		p := c.Presets["x"]
		got, err := p.SystemPrompt()
		if agency.IsCode(err, agency.CodeConfigInvalid) {
			got = "error"
		}
		if got != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// The presets in the example are valid when they are uncommented.
func TestPresetExample(t *testing.T) {
	t.Parallel()
	whole := regexp.MustCompile(`(?m)^# (\[.*\]|[a-z_]+ = .*)$`).ReplaceAllString(config.SampleFile(), "$1")
	presets := mustLoad(t, whole).Presets
	for name, tag := range map[string]string{"orchestrator": "orchestrator", "worker": "worker", "watchdog": "watchdog"} {
		if p := presets[name]; p.Harness != "claude_code" || p.Description == "" || !cmp.Equal(p.Tags, []string{tag}) {
			t.Errorf("%s is %+v", name, p)
		}
	}
}
