package diff

import (
	"os"
	"path/filepath"

	tea "charm.land/bubbletea/v2"

	"agency"
	"agency/internal/cli/term"
)

// editMsg is a file of the worktree for the editor, or the reason why the editor must not open it.
type editMsg struct {
	path string
	line int
	err  error
}

// edit opens the file in the user's editor, at the line of the cursor. First a command checks the file: the
// agent writes the worktree, so a path may be a link to a file elsewhere.
func (p *Page) edit() tea.Cmd {
	f := p.chosen()
	switch {
	case f == nil:
		return nil
	case term.Editor(p.desk.Env) == "":
		return p.desk.Say("no editor is known: set EDITOR, such as EDITOR=vi")
	}
	line := 1
	if at, ok := p.file.place(p.file.cursor.row); ok && !at.old && p.file.path == f.Path {
		line = at.line
	}
	worktree, path := p.list.Worktree, f.Path
	return func() tea.Msg {
		return editMsg{filepath.Join(worktree, path), line, regular(worktree, path)}
	}
}

// regular returns an error unless a path in a worktree is a regular file.
func regular(worktree, path string) error {
	root, err := os.OpenRoot(worktree)
	if err != nil {
		return agency.Errorf(agency.CodeInvalidState, "its worktree is gone")
	}
	defer func() { _ = root.Close() }()
	switch info, err := root.Lstat(path); {
	case os.IsNotExist(err):
		return agency.Errorf(agency.CodeInvalidPath, "%s is not there now", path)
	case err != nil || !info.Mode().IsRegular():
		return agency.Errorf(agency.CodeInvalidPath, "%s is not a file of the worktree itself, so it is not opened", path)
	}
	return nil
}

// open opens the file in the editor.
func (p *Page) open(msg *editMsg) tea.Cmd {
	if msg.err != nil {
		return p.desk.Fail(msg.err)
	}
	cmd := term.EditorCommand(p.desk.Ctx, p.desk.Env, msg.path, msg.line)
	cmd.Dir = p.desk.Dir // an editor may run a file of its own in the folder, and the agent writes the worktree
	return p.desk.Exec(cmd, func(err error) tea.Msg {
		if err != nil {
			err = agency.Errorf(agency.CodeUsage, "the editor failed: %w", err)
		}
		return editedMsg{err}
	})
}

// editedMsg is the end of the editor.
type editedMsg struct{ err error }
