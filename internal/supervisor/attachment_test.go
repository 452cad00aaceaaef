package supervisor_test

import (
	"slices"
	"testing"

	"agency"
	"agency/internal/supervisor"
)

// Files of the same name get different ones, also on a file system that ignores the case.
func TestUniqueNames(t *testing.T) {
	t.Parallel()
	files := []agency.Attachment{{Name: "Shot.png"}, {Name: "shot.png"}, {Name: "Shot.png"}, {Name: "shot-2.png"}}
	want := []string{".agency/files/Shot.png", ".agency/files/shot-2.png", ".agency/files/Shot-3.png", ".agency/files/shot-2-2.png"}
	if got := supervisor.UniqueNames(files); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The text of a message stays as it is, but for line ends before the names.
func TestAttached(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "Attached: a, b", "\n\n": "Attached: a, b", "look": "look\n\nAttached: a, b", "\n\n  look\n": "\n\n  look\n\nAttached: a, b",
	} {
		if got := supervisor.Attached(text, []string{"a", "b"}); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}
