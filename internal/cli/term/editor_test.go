package term_test

import (
	"slices"
	"testing"

	"agency/internal/cli/term"
)

// Editors are told the line in their own way.
func TestEditorCommand(t *testing.T) {
	t.Parallel()
	for editor, want := range map[string][]string{
		"vim":          {"+12", "/w/a.go"},
		"nano -w":      {"+12", "/w/a.go"},
		"code --wait":  {"--goto", "/w/a.go:12"},
		"/usr/bin/zed": {"/w/a.go:12"},
	} {
		cmd := term.EditorCommand(t.Context(), []string{"EDITOR=" + editor}, "/w/a.go", 12)
		if got := cmd.Args[4:]; !slices.Equal(got, want) || cmd.Args[2] != editor+` "$@"` {
			t.Errorf("%s: %q", editor, cmd.Args)
		}
	}
	if cmd := term.EditorCommand(t.Context(), []string{"EDITOR=vi"}, "/w/a.go", 0); !slices.Equal(cmd.Args[4:], []string{"/w/a.go"}) {
		t.Errorf("without a line: %q", cmd.Args)
	}
}
