package codex_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"

	"agency"
	"agency/internal/harness"
	"agency/internal/harness/agent"
	"agency/internal/harness/harnesstest"
)

func TestCodexCommand(t *testing.T) {
	t.Parallel()
	exe := harnesstest.Program(t)
	const settings = "SETTINGS" // -c NAME=VALUE, any number of times
	tests := []struct {
		name  string
		r     agency.CommandRequest
		own   string
		argv  string
		stdin string
	}{
		{"takes no id", agency.CommandRequest{ConversationID: harnesstest.Minted}, "", "SETTINGS --no-daemon -- OPENING", ""},
		{
			"headless",
			agency.CommandRequest{ConversationID: harnesstest.Minted, Headless: true, Model: "gpt-5.5", DefaultArgs: []string{"--search"}},
			"-s workspace-write", "exec SETTINGS --search --json -m gpt-5.5 -s workspace-write -- OPENING", harnesstest.Task,
		},
		{
			"resumed",
			agency.CommandRequest{ConversationID: harnesstest.Minted, Resume: true, Model: "gpt-5.5"},
			"-s workspace-write", "resume SETTINGS --no-daemon -m gpt-5.5 -s workspace-write -- " + harnesstest.Minted + " OPENING", "",
		},
		{
			"headless resumed",
			agency.CommandRequest{ConversationID: harnesstest.Minted, Resume: true, Headless: true},
			"", "exec SETTINGS --json -s workspace-write resume -- " + harnesstest.Minted + " OPENING", "",
		},
		{
			"headless resumed without an id begins anew",
			agency.CommandRequest{Resume: true, Headless: true},
			"", "exec SETTINGS --json -s workspace-write -- OPENING", harnesstest.Task,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.r.Runner = agency.Runner{Kind: "codex", Name: "codex", Args: strings.Fields(tt.own)}
			tt.r.Exec, tt.r.PromptFile, tt.r.Worktree = exe, harnesstest.Task, "/wt"
			tt.r.Hook = []string{"/opt/it's/agency", "hook"}
			c, err := harness.Build(tt.r)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for i := 1; i < len(c.Argv); i++ {
				if c.Argv[i] == "-c" {
					if i++; len(got) == 0 || got[len(got)-1] != settings {
						got = append(got, settings)
					}
					continue
				}
				got = append(got, strings.ReplaceAll(c.Argv[i], agent.Opening(agency.CommandRequest{}), "OPENING"))
			}
			if text := strings.Join(got, " "); text != tt.argv || c.Stdin != tt.stdin {
				t.Errorf("got %s, stdin %q, want %s, %q", text, c.Stdin, tt.argv, tt.stdin)
			}
		})
	}
}

// codexConfig returns the configuration that Codex derives from the settings of a command line.
func codexConfig(t *testing.T, r agency.CommandRequest) map[string]any {
	t.Helper()
	r.Runner, r.Exec = agency.Runner{Kind: "codex"}, harnesstest.Program(t)
	c, err := harness.Build(r)
	if err != nil {
		t.Fatal(err)
	}
	config := map[string]any{}
	for i, arg := range c.Argv {
		if arg != "-c" {
			continue
		}
		var one map[string]any
		if err := toml.Unmarshal([]byte(c.Argv[i+1]), &one); err != nil {
			t.Fatalf("%s: %v", c.Argv[i+1], err)
		}
		merge(config, one)
	}
	return config
}

func merge(into, from map[string]any) {
	for key, value := range from {
		below, isTable := value.(map[string]any)
		if had, ok := into[key].(map[string]any); ok && isTable {
			merge(had, below)
			continue
		}
		into[key] = value
	}
}

func TestCodexHooksAreReviewed(t *testing.T) {
	t.Parallel()
	for _, headless := range []bool{false, true} {
		config := codexConfig(t, agency.CommandRequest{Headless: headless, Hook: []string{"/opt/it's/agency", "hook"}})
		hooks, _ := config["hooks"].(map[string]any)
		state, _ := hooks["state"].(map[string]any)
		if len(hooks)-1 != len(state) || len(state) < 2 {
			t.Errorf("headless %t: %d hooks and %d reviews", headless, len(hooks)-1, len(state))
		}
		// The hash is the one that Codex 0.169 computes for this hook.
		want := map[string]any{"trusted_hash": "sha256:552d2876cf74e8057b05f368a02b7ccafc4df189f7c6c92a23f4adc13fa6a72d"}
		if diff := cmp.Diff(want, state["/<session-flags>/config.toml:stop:0:0"]); diff != "" {
			t.Errorf("headless %t: review of Stop (-want +got):\n%s", headless, diff)
		}
		// notify belongs to the user, and is also called for the conversation that makes a title.
		if config["notify"] != nil {
			t.Errorf("headless %t: notify is %v", headless, config["notify"])
		}
		stop, _ := json.Marshal(hooks["Stop"])
		if want := `[{"hooks":[{"command":"'/opt/it'\\''s/agency' 'hook' 'codex'","timeout":3,"type":"command"}]}]`; string(stop) != want {
			t.Errorf("headless %t: Stop: got %s, want %s", headless, stop, want)
		}
	}
}

func TestCodexKeepsTheUsersInstructions(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	dotfiles := filepath.Join(home, "dotfiles")
	for _, err := range []error{
		os.Mkdir(filepath.Join(home, ".codex"), 0o700),
		os.WriteFile(dotfiles, []byte("developer_instructions = \"Say \\\"hi\\\" & <bye>\\u007f.\"\nmodel = 1\n"), 0o600),
		os.Symlink(dotfiles, filepath.Join(home, ".codex", "config.toml")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	said := func(env ...string) string {
		text, _ := codexConfig(t, agency.CommandRequest{Env: env})["developer_instructions"].(string)
		return text
	}
	own := "Say \"hi\" & <bye>\x7f."
	if got := said("HOME=" + home); got != own+"\n\n"+agent.Protocol {
		t.Errorf("got %q", got)
	}
	if got := said("HOME=/nonexistent", "CODEX_HOME="+filepath.Join(home, ".codex")); !strings.HasPrefix(got, own) {
		t.Errorf("with CODEX_HOME: got %q", got)
	}
	for _, env := range []string{"HOME=/nonexistent", "HOME=", "X=y"} {
		if got := said(env); got != agent.Protocol {
			t.Errorf("%s: got %q", env, got)
		}
	}
}

// The program of the mode protocol takes settings in place of options, and has no hooks.
func TestProtocolCommand(t *testing.T) {
	t.Parallel()
	config := codexConfig(t, agency.CommandRequest{Mode: agency.ModeProtocol, Model: "gpt-5.5", DefaultArgs: []string{"-s", "read-only", "-a=on-request"}})
	delete(config, "developer_instructions")
	want := map[string]any{"model": "gpt-5.5", "sandbox_mode": "read-only", "approval_policy": "on-request"}
	if diff := cmp.Diff(want, config); diff != "" {
		t.Error(diff)
	}
	config = codexConfig(t, agency.CommandRequest{Mode: agency.ModeProtocol, SkipPermissions: true})
	if config["approval_policy"] != "never" || config["sandbox_mode"] != "danger-full-access" {
		t.Errorf("without permissions: %v", config)
	}
}
