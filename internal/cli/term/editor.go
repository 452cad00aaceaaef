package term

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"

	"agency"
)

// Editor returns the command line of the user's editor, by VISUAL or else EDITOR of env; empty when
// neither is set.
func Editor(env []string) string {
	e := agency.Environ(env)
	return cmp.Or(e.Lookup("VISUAL"), e.Lookup("EDITOR"))
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
	// EDITOR can have arguments, so a shell takes it apart, as git does.
	cmd := exec.CommandContext(ctx, "sh", "-c", Editor(env)+` "$1"`, "sh", path)
	cmd.Env = env
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
