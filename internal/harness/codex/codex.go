// Package codex describes Codex.
package codex

import (
	_ "embed" // the patterns
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"agency"
	"agency/internal/file"
	"agency/internal/harness/agent"
)

//go:embed screen.toml
var patterns []byte // patterns of its terminal

// Agent is Codex.
var Agent = agent.Agent{
	Kind: "codex", Name: "Codex", Program: "codex", Package: "@openai/codex", Version: "0.169.0",
	Login:      agent.Login{Variables: []string{"CODEX_API_KEY"}, Folder: "CODEX_HOME", Home: ".codex", File: "auth.json"},
	Command:    command,
	Skips:      []string{skip, "--yolo", "--sandbox=danger-full-access", "-s=danger-full-access", "--ask-for-approval=never", "-a=never"},
	Hook:       hook,
	Stream:     stream,
	Dialect:    &dialect,
	Join:       join,
	Title:      title,
	Files:      files,
	State:      state,
	ReadFile:   readFile,
	Screen:     agent.ScreenOf(patterns),
	Composer:   composer,
	ErrorMarks: []string{"■ "},
	Dialog:     agent.DialogBelow("Would you like to ", "Question "),
	Answer:     answer,
}

// skip makes Codex ask for no permission, without a sandbox.
const skip = "--dangerously-bypass-approvals-and-sandbox"

// command returns the command line. Codex makes its own conversation ids, and passes them to its
// hooks.
func command(r agency.CommandRequest) agency.Command {
	if r.Mode == agency.ModeProtocol {
		return serve(r)
	}
	resume := r.Resume && r.ConversationID != ""
	var args []string
	switch {
	case r.Headless:
		args = append(args, "exec")
	case resume:
		args = append(args, "resume")
	}
	// The user's own arguments for the same settings come after these, and win.
	args = append(args, settings(r)...)
	args = append(args, r.DefaultArgs...)
	if r.Headless {
		args = append(args, "--json")
		if !r.SkipPermissions && !r.Sandbox.Confines() && !agent.Names(slices.Concat(r.DefaultArgs, r.Runner.Args), "-s", "--sandbox", "--full-auto", skip) {
			// In an untrusted repository it could only read, and could not even report that.
			args = append(args, "-s", "workspace-write")
		}
	} else {
		// With its shared server, agents would outlive the terminal that agency watches.
		args = append(args, "--no-daemon")
	}
	if r.SkipPermissions && !agent.Names(slices.Concat(r.DefaultArgs, r.Runner.Args), skip) {
		args = append(args, skip)
	}
	if r.Model != "" {
		args = append(args, "-m", r.Model)
	}
	args = append(args, r.Runner.Args...)
	if r.Headless && resume {
		// "exec" knows options that "exec resume" does not, so all of them come before the
		// subcommand.
		args = append(args, "resume")
	}
	args = append(args, "--")
	c := agency.Command{Stdin: agent.TaskOnStdin(r)}
	if resume {
		args, c.ConversationID = append(args, r.ConversationID), r.ConversationID
		c.Stdin = "" // "exec resume" takes its prompt from one place only
	}
	if !r.Silent {
		args = append(args, agent.Opening(r))
	}
	c.Argv = args
	return c
}

// serve returns the command line of the mode protocol. The program that speaks it takes settings, and
// not the options that set the same in a terminal.
func serve(r agency.CommandRequest) agency.Command {
	args := append([]string{"app-server"}, settings(r)...)
	args = append(args, settingsOf(r.DefaultArgs)...)
	if r.SkipPermissions {
		args = append(args, settingsOf([]string{skip})...)
	}
	if r.Model != "" {
		args = append(args, settingsOf([]string{"-m", r.Model})...)
	}
	return agency.Command{Argv: append(args, settingsOf(r.Runner.Args)...), Opening: agent.Opening(r), ConversationID: resumed(r)}
}

// resumed returns the conversation that an attempt continues. Codex makes the ids of its
// conversations.
func resumed(r agency.CommandRequest) string {
	if !r.Resume {
		return ""
	}
	return r.ConversationID
}

// options are the options of Codex that are settings with another spelling.
var options = map[string]string{"-m": "model", "--model": "model", "-s": "sandbox_mode", "--sandbox": "sandbox_mode", "-a": "approval_policy", "--ask-for-approval": "approval_policy"}

// settingsOf returns arguments with settings in place of options. The program itself refuses what it
// does not know.
func settingsOf(args []string) []string {
	var out []string
	for i := 0; i < len(args); i++ {
		name, value, joined := strings.Cut(args[i], "=")
		setting := options[name]
		switch {
		case args[i] == skip || args[i] == "--yolo":
			out = append(out, "-c", `approval_policy="never"`, "-c", `sandbox_mode="danger-full-access"`)
		case setting != "" && joined:
			out = append(out, "-c", setting+"="+tomlString(value))
		case setting != "" && i+1 < len(args):
			i++
			out = append(out, "-c", setting+"="+tomlString(args[i]))
		default:
			out = append(out, args[i])
		}
	}
	return out
}

// settings returns the settings of one run; no file of the user changes.
func settings(r agency.CommandRequest) []string {
	role := agent.Role(r)
	if own := instructions(r.Env); own != "" {
		role = own + "\n\n" + role
	}
	args := []string{"-c", "developer_instructions=" + tomlString(role)}
	if !r.Headless && r.Mode != agency.ModeProtocol {
		args = append(args,
			// An update dialog would take the first Enter.
			"-c", "check_for_update_on_startup=false",
			// The title has its state in words, because the spinner does not turn where animations
			// are off.
			"-c", `tui.terminal_title=["activity","run-state","project-name"]`,
		)
	}
	if r.Sandbox.Confines() {
		args = append(args,
			// Codex would ask whether it may trust the folder, and could not write down the answer. The
			// sandbox protects from what the question is about.
			"-c", "projects={"+tomlString(r.Worktree)+`={trust_level="trusted"}}`,
			// Codex's own sandbox needs namespaces, which agency's sandbox refuses. It is also the weaker
			// of the two.
			"-c", `sandbox_mode="danger-full-access"`,
			// The sandbox has the system's profile and not the user's, so a login shell would have a PATH
			// without agency and without the user's programs.
			"-c", "allow_login_shell=false",
		)
	}
	if r.Mode == agency.ModeProtocol {
		return args // the protocol reports more than hooks
	}
	return append(args, hooks(r)...)
}

// instructions returns the developer instructions of the user's own configuration. A setting for
// one run replaces them, so it must repeat them.
func instructions(env []string) string {
	home := agency.Environ(env).Lookup("CODEX_HOME")
	if home == "" {
		home = filepath.Join(agency.Environ(env).Lookup("HOME"), ".codex")
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
		return "" // Codex itself reports what is wrong with it
	}
	return strings.TrimSpace(config.Instructions)
}

// tomlString returns a text as a quoted TOML string.
func tomlString(s string) string {
	var quoted strings.Builder
	enc := json.NewEncoder(&quoted)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // encoding a string never fails
	return strings.ReplaceAll(strings.TrimSuffix(quoted.String(), "\n"), "\x7f", `\u007F`)
}
