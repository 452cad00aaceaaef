package harness

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"agency"
	"agency/internal/file"
)

// codexCLI is Codex.
var codexCLI = agent{
	command: codex, hook: codexHook, stream: codexStream, title: codexTitle, screen: screenOf("codex"), errorMarks: []string{"■ "}, dialog: dialogBelow("Would you like to ", "Question "), answer: codexAnswer,
	files: codexFiles, readFile: codexReadFile,
}

// codexSkip has Codex ask for nothing, and confines it to nothing.
const codexSkip = "--dangerously-bypass-approvals-and-sandbox"

// codex makes the command line. Codex makes its own conversation ids, and tells them to its hooks.
func codex(r agency.CommandRequest) agency.Command {
	resume := r.Resume && r.ConversationID != ""
	var args []string
	switch {
	case r.Headless:
		args = append(args, "exec")
	case resume:
		args = append(args, "resume")
	}
	// What the user says about the same settings stands behind these, and wins.
	args = append(args, codexSettings(r)...)
	args = append(args, r.DefaultArgs...)
	if r.Headless {
		args = append(args, "--json")
		if !r.SkipPermissions && !names(slices.Concat(r.DefaultArgs, r.Runner.Args), "-s", "--sandbox", "--full-auto", codexSkip) {
			// In a repository that it was not told to trust it could only read, and could not even report that.
			args = append(args, "-s", "workspace-write")
		}
	} else {
		// With its shared server, agents would outlive the terminal that agency watches.
		args = append(args, "--no-daemon")
	}
	if r.SkipPermissions && !names(slices.Concat(r.DefaultArgs, r.Runner.Args), codexSkip) {
		args = append(args, codexSkip)
	}
	if r.Model != "" {
		args = append(args, "-m", r.Model)
	}
	args = append(args, r.Runner.Args...)
	if r.Headless && resume {
		// "exec" knows options that "exec resume" does not, so all of them stand before the subcommand.
		args = append(args, "resume")
	}
	args = append(args, "--")
	c := agency.Command{Stdin: taskOnStdin(r)}
	if resume {
		args, c.ConversationID = append(args, r.ConversationID), r.ConversationID
		c.Stdin = "" // "exec resume" takes its prompt from one place only
	}
	c.Argv = append(args, Opening)
	return c
}

// codexSettings are the settings of one run, which no file of the user's learns of.
func codexSettings(r agency.CommandRequest) []string {
	instructions := role(r)
	if own := codexInstructions(r.Env); own != "" {
		instructions = own + "\n\n" + instructions
	}
	args := []string{"-c", "developer_instructions=" + tomlString(instructions)}
	if !r.Headless {
		args = append(args,
			// An offer to update itself would take the first Enter.
			"-c", "check_for_update_on_startup=false",
			// Its state is told in words, because the wheel beside them does not turn where animations are off.
			"-c", `tui.terminal_title=["activity","run-state","project-name"]`,
		)
	}
	return append(args, codexHooks(r)...)
}

// codexInstructions are the developer instructions in the user's own configuration. A setting for one run takes their
// place, so it has to say them again.
func codexInstructions(env []string) string {
	home := lookup(env, "CODEX_HOME")
	if home == "" {
		home = filepath.Join(lookup(env, "HOME"), ".codex")
	}
	path, err := filepath.EvalSymlinks(filepath.Join(home, "config.toml"))
	if err != nil || !filepath.IsAbs(path) {
		return ""
	}
	data, err := file.ReadRegular(path, 1<<20)
	if err != nil {
		return ""
	}
	var config struct {
		Instructions string `toml:"developer_instructions"`
	}
	if toml.Unmarshal(data, &config) != nil {
		return "" // Codex itself says what is wrong with it
	}
	return strings.TrimSpace(config.Instructions)
}

// tomlString is a text in quotes as TOML wants it.
func tomlString(s string) string {
	var quoted strings.Builder
	enc := json.NewEncoder(&quoted)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string always can be
	return strings.ReplaceAll(strings.TrimSuffix(quoted.String(), "\n"), "\x7f", `\u007F`)
}
