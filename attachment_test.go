package agency_test

import (
	"path/filepath"
	"strings"
	"testing"
	"testing/quick"
	"unicode/utf8"

	"agency"
)

// Whatever a file is called, its name in the worktree is plain, and none of an option or a folder.
func TestAttachmentPlainName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"screen.png": "screen.png", "Screenshot 2026-11-27 at 10.00.00\u202fAM.png": "Screenshot-2026-11-27-at-10.00.00-AM.png", "Bild über Größe.jpeg": "Bild-über-Größe.jpeg",
		"/etc/passwd": "passwd", "..": "file", "": "file", "-rf": "rf", ".env": "file.env", "a\x1b]0;x\a.png": "a--0-x.png", "$(id).txt": "id.txt",
	} {
		if got := (agency.Attachment{Name: name}).PlainName(); got != want {
			t.Errorf("%q becomes %q, want %q", name, got, want)
		}
	}
	plain := func(name string) bool {
		got := agency.Attachment{Name: name}.PlainName()
		return got != "" && len(got) <= 130 && utf8.ValidString(got) && filepath.IsLocal(got) && !strings.ContainsAny(got, "/ \t\n\"'`$;&|<>*?\\") && got[0] != '-' && got[0] != '.'
	}
	if err := quick.Check(plain, nil); err != nil {
		t.Error(err)
	}
}
