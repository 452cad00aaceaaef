package term_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"agency/internal/cli/clitest"
	"agency/internal/cli/term"
)

func FuzzSafeText(f *testing.F) {
	for _, s := range clitest.Hostile {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		text, line := term.SafeText(s), term.SafeLine(s)
		clitest.CheckSafe(t, text, "\n\t")
		clitest.CheckSafe(t, line, "")
		if again := term.SafeText(text); again != text {
			t.Errorf("%q became %q and then %q", s, text, again)
		}
		if again := term.SafeLine(line); again != line {
			t.Errorf("%q became the line %q and then %q", s, line, again)
		}
	})
}

func TestSafeText(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain text":                            "plain text",
		"two\nlines\tand a tab":                 "two\nlines\tand a tab",
		"\x1b[31mred\x1b[0m":                    "red",
		"\x1b]0;title\x07after":                 "after",
		"\x1b]8;;http://x\x1b\\a\x1b]8;;\x1b\\": "a",
		"bell\x07":                              "bell",
		"abc\u202edef":                          "abcdef",
		"é 界 🙂":                                 "é 界 🙂",
		"bad \xff":                              "bad ",
	} {
		if got := term.SafeText(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	if got := term.SafeLine(" a\n\n b\u2028\tc\x1b[1m "); got != "a b c" {
		t.Errorf("got %q", got)
	}
}

// The text does not depend on how reads cut it.
func FuzzCopySafe(f *testing.F) {
	for i, s := range clitest.Hostile {
		f.Add([]byte(s), i%7+1)
	}
	f.Fuzz(func(t *testing.T, data []byte, size int) {
		var whole, pieces bytes.Buffer
		if err := term.CopySafe(&whole, bytes.NewReader(data)); err != nil {
			t.Fatal(err)
		}
		size = max(1, size%9)
		if err := term.CopySafe(&pieces, &chunked{data, size}); err != nil {
			t.Fatal(err)
		}
		if whole.String() != pieces.String() {
			t.Errorf("%q: whole %q, in pieces of %d %q", data, whole.String(), size, pieces.String())
		}
		clitest.CheckSafe(t, whole.String(), "\n\t")
		if got, want := strings.Count(whole.String(), "\n"), bytes.Count(data, []byte("\n")); got != want {
			t.Errorf("%q: %d lines, want %d", data, got, want)
		}
	})
}

// chunked is a reader of pieces.
type chunked struct {
	data []byte
	size int
}

func (c *chunked) Read(p []byte) (int, error) {
	if len(c.data) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.data[:min(c.size, len(c.data))])
	c.data = c.data[n:]
	return n, nil
}

func TestCopySafe(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"one\r\ntwo\r\n":                         "one\ntwo\n",
		"\x1b[31mred\x1b[0m, gr\xc3\xbcn\n":      "red, grün\n",
		"no end \x1b]0;\nis still seen\n":        "no end \nis still seen\n",
		"half \x1b\nand \xe2\x82\nmore":          "half \nand \nmore",
		"界界":                                     "界界",
		strings.Repeat("x", 200_000) + "\x1b[1m": strings.Repeat("x", 200_000),
	} {
		var out strings.Builder
		if err := term.CopySafe(&out, iotest.OneByteReader(strings.NewReader(in))); err != nil || out.String() != want {
			t.Errorf("%.40q: got %.60q and %v, want %.60q", in, out.String(), err, want)
		}
	}
	// A sequence across the end of a large read.
	in := strings.Repeat("x", 64<<10-2) + "\x1b[31mred"
	var out strings.Builder
	if err := term.CopySafe(&out, strings.NewReader(in)); err != nil || strings.TrimLeft(out.String(), "x") != "red" {
		t.Errorf("got %q and %v", strings.TrimLeft(out.String(), "x"), err)
	}
	if err := term.CopySafe(io.Discard, iotest.ErrReader(io.ErrUnexpectedEOF)); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v", err)
	}
}

func FuzzFit(f *testing.F) {
	for i, s := range clitest.Hostile {
		f.Add(term.SafeLine(s), i)
	}
	f.Add("界界界界界界", 5)
	f.Add("e\u0301e\u0301e\u0301", 2)
	f.Fuzz(func(t *testing.T, s string, columns int) {
		s, columns = term.SafeLine(s), max(columns%120, 1)
		got := term.Fit(s, columns)
		if term.Width(got) > columns {
			t.Errorf("%q has %d columns, more than %d", got, term.Width(got), columns)
		}
		if term.Width(s) <= columns && got != s {
			t.Errorf("%q was cut to %q although it fits into %d", s, got, columns)
		}
		clitest.CheckSafe(t, got, "")
	})
}

func TestFit(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		in      string
		columns int
		want    string
	}{
		{"short", 10, "short"},
		{"exactly ten", 11, "exactly ten"},
		{"too long", 7, "too lo…"},
		{"界界界", 6, "界界界"},
		{"界界界", 5, "界界…"},
		{"界界界", 4, "界…"},
		{"🙂🙂", 3, "🙂…"},
		{"e\u0301e\u0301e\u0301", 3, "e\u0301e\u0301e\u0301"},
		{"e\u0301e\u0301e\u0301", 2, "e\u0301…"},
		{"", 0, ""},
	} {
		if got := term.Fit(test.in, test.columns); got != test.want {
			t.Errorf("%q in %d columns: got %q, want %q", test.in, test.columns, got, test.want)
		}
	}
}

// Columns are aligned, whatever the width of the characters.
func TestColumns(t *testing.T) {
	t.Parallel()
	rows := [][]string{
		{"RUN", "STATUS", "SUMMARY"},
		{"a", "● working", "plain"},
		{"界界界", "◐ 界", "wide"},
		{"e\u0301e\u0301", "✓ done", "combining"},
		{"👩\u200d👧", "x", "joined"},
		{"last", "", ""},
	}
	text := term.PaintedTable(rows, -1, func(_ int, s string) string { return s })
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) != len(rows) {
		t.Fatalf("got %q", text)
	}
	for i, line := range lines {
		if strings.TrimRight(line, " ") != line {
			t.Errorf("%q ends in spaces", line)
		}
		cell := rows[i][2]
		if cell == "" {
			continue
		}
		before, _, _ := strings.Cut(line, cell)
		if got, want := term.Width(before), len("界界界")-3+2+len("● working")-2+2; got != want {
			t.Errorf("%q: the last column begins at %d, want %d", line, got, want)
		}
	}
	painted := term.PaintedTable(rows, 1, func(row int, s string) string { return "\x1b[3" + string(rune('0'+row)) + "m" + s + "\x1b[0m" })
	if got := term.SafeText(painted); strings.Count(got, "\n") != len(rows) || strings.Count(painted, "\x1b[31m") != 1 || strings.Count(painted, "\x1b[30m") != 3 {
		t.Errorf("painted: got %q", painted)
	}
}

// A text follows its head on the same line, broken at spaces, or below it where the terminal is too
// narrow.
func TestHang(t *testing.T) {
	t.Parallel()
	const head, text = "a_01M7ZB39940XRQG4  worker.lost  ", "the runner disappeared from /a/path/that/is/long/enough/not/to/fit/anywhere/at/all now"
	for width, want := range map[int]string{
		0: head + text,
		60: `a_01M7ZB39940XRQG4  worker.lost  the runner disappeared from
                                 /a/path/that/is/long/enough/not/to/fit/anywhere/at/all
                                 now`,
		30: `a_01M7ZB39940XRQG4  worker.lo…
    the runner disappeared
    from
    /a/path/that/is/long/enough/not/to/fit/anywhere/at/all
    now`,
	} {
		if diff := cmp.Diff(want, term.Hang(head, text, width)); diff != "" {
			t.Errorf("%d columns (-want +got)\n%s", width, diff)
		}
	}
	if got, want := term.Hang(head, "", 30), "a_01M7ZB39940XRQG4  worker.lo…"; got != want {
		t.Errorf("without a text: got %q, want %q", got, want)
	}
	if got, want := term.Hang("summary: ", "a 界界界界界界界界界界界界界界, /界界界界界界界界界界界界界界界界 e", 35), `summary: a
         界界界界界界界界界界界界界
         界,
         /界界界界界界界界界界界界界界界界
         e`; got != want {
		t.Errorf("without spaces: got\n%s\nwant\n%s", got, want)
	}
	if got := term.Hang("          ", "one two", 12); got != "    one two" {
		t.Errorf("behind spaces: %q", got)
	}
	if got := term.Hang("git:  ", "", 12); got != "git:" {
		t.Errorf("of nothing: %q", got)
	}
}

// No line is wider than the terminal unless a long word ends it, no text is lost, and output to a
// file is not broken at all.
func TestTextRows(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		cell := rapid.StringOfN(rapid.RuneFrom([]rune("abc 界🙂é́-|")), 0, 60, -1)
		rows := [][]string{{"ALERT", "RUN", "WHAT"}}
		for range rapid.IntRange(0, 5).Draw(t, "rows") {
			rows = append(rows, []string{cell.Draw(t, "alert"), cell.Draw(t, "run"), strings.Join(strings.Fields(cell.Draw(t, "what")), " ")})
		}
		width := rapid.IntRange(1, 100).Draw(t, "room")
		for i, text := range term.TextRows(rows, width) {
			// A text without spaces may be broken anywhere.
			if got := strings.Join(strings.Fields(text), ""); !strings.HasSuffix(got, strings.ReplaceAll(rows[i][2], " ", "")) {
				t.Errorf("%q is not at the end of %q", rows[i][2], got)
			}
			for line := range strings.SplitSeq(text, "\n") {
				if words := strings.Fields(line); term.Width(line) > width && len(words) > 1 && term.Width(words[len(words)-1]) <= term.LeastText {
					t.Errorf("%q has %d columns of %d", line, term.Width(line), width)
				}
			}
		}
		want := term.PaintedTable(rows, -1, func(_ int, s string) string { return s })
		if got := strings.Join(term.TextRows(rows, 0), "\n") + "\n"; got != want {
			t.Errorf("elsewhere: got\n%s, want\n%s", got, want)
		}
	})
}
