package term

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"agency"
)

// Editor returns the command line of the user's editor, from VISUAL or else EDITOR of env; empty
// when neither is set.
func Editor(env []string) string {
	e := agency.Environ(env)
	return cmp.Or(e.Lookup("VISUAL"), e.Lookup("EDITOR"))
}

// EditorCommand returns the command that opens the file at an absolute path in the user's editor,
// at a line; 0 means no line. It runs with env.
func EditorCommand(ctx context.Context, env []string, path string, line int) *exec.Cmd {
	editor := Editor(env)
	args := []string{path}
	if words := strings.Fields(editor); line > 0 && len(words) > 0 {
		place := fmt.Sprintf("%s:%d", path, line)
		switch filepath.Base(words[0]) {
		case "code", "code-insiders", "codium", "cursor", "windsurf":
			args = []string{"--goto", place}
		case "hx", "helix", "subl", "zed":
			args = []string{place}
		default: // vi and similar editors, emacs, nano, kak, micro
			args = []string{fmt.Sprintf("+%d", line), path}
		}
	}
	// EDITOR can have arguments, so a shell splits it, as git does.
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", editor + ` "$@"`, "sh"}, args...)...)
	cmd.Env = env
	return cmd
}

// Edit lets the user write a text in their editor, on this process's terminal, and returns it as
// the editor left it. what names the text in errors. It waits as long as the user writes.
func Edit(ctx context.Context, env []string, what string) (string, error) {
	dir, err := os.MkdirTemp("", "agency-")
	if err != nil {
		return "", agency.Errorf(agency.CodeInvalidPath, "make a file for %s: %w", what, err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "TASK.md")
	cmd := EditorCommand(ctx, env, path, 0)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return "", agency.Errorf(agency.CodeUsage, "the editor %q failed: %w", Editor(env), err).WithHint(`agency run "fix the login test"`)
	}
	data, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return "", agency.Errorf(agency.CodeInvalidPath, "read %s: %w", what, err)
	}
	return string(data), nil
}
