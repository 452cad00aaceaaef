package term_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agency/internal/cli/term"
)

// Repainting an unchanged list writes nothing, and a changed one writes only the lines that differ;
// nothing clears the screen.
func TestRepaint(t *testing.T) {
	t.Parallel()
	got := repaint(
		[]string{"head", "one", "two"}, []string{"head", "one", "two"}, []string{"head", "ONE", "two"}, []string{"head", "two"},
		[]string{"head", "two", strings.Repeat("界", 50)},
	)
	want := []string{
		"\rhead\x1b[K\n\rone\x1b[K\n\rtwo\x1b[K\n\x1b[J",
		"",
		"\x1b[3A\n\rONE\x1b[K\n\n\x1b[J",
		"\x1b[3A\n\rtwo\x1b[K\n\x1b[J",
		"\x1b[2A\n\n\r" + strings.Repeat("界", 39) + "…\x1b[K\n\x1b[J",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// A text below the list outlives its repaints.
func TestRepaintAboveAText(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	c := term.Canvas{}
	for _, list := range []string{"one", "two"} {
		c.Paint(&out, &out, func(int) []string { return []string{list} }, "the daemon was stopped")
	}
	if want := "\rone\x1b[K\n\x1b[Jthe daemon was stopped\x1b[1A\rtwo\x1b[K\n\x1b[Jthe daemon was stopped"; out.String() != want {
		t.Errorf("%q, not %q", out.String(), want)
	}
}

// repaint shows one list after the other on a terminal of 80 columns and 24 rows, and returns what
// it writes for each.
func repaint(lists ...[]string) []string {
	var out bytes.Buffer
	c := term.Canvas{}
	var written []string
	for _, list := range lists {
		out.Reset()
		c.Paint(&out, &out, func(int) []string { return list }, "")
		written = append(written, out.String())
	}
	return written
}
