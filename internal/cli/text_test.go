package cli_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"
	"unicode"
	"unicode/utf8"

	"agency"
	"agency/internal/cli"
)

var hostile = []string{
	"", "plain", "two\nlines\tand a tab", "\x1b[31mred\x1b[0m", "\x1b]0;title\x07after", "\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\",
	"\x1bP+q\x1b\\dcs", "\x9b31mc1", "\u009b31m", "\xc3\x1b[2J", "\xe2\x82", "é ü 界 🙂", "a\u202eb\u2066c\u200fd\u061ce", "\x00\x08\x7f\r", "\x1b", "\x1b[",
	"\x1b[31", "\x1b\x1b[31m[32mx", "\x1b_apc\x1b\\", "\x1b]52;c;aGk=\x07", "e\u0301 \U0001F468\u200d\U0001F469", "\ufeffbom", "a\u2028b\u2029c\u0085d", "\x90\x9c\x1b",
}

// checkSafe fails when a terminal would obey something in the text.
func checkSafe(t *testing.T, text string, alsoFine string) {
	t.Helper()
	if !utf8.ValidString(text) {
		t.Errorf("%q is not UTF-8", text)
	}
	for _, r := range text {
		if unicode.IsControl(r) && !strings.ContainsRune(alsoFine, r) || unicode.Is(unicode.Bidi_Control, r) {
			t.Errorf("%q holds %U", text, r)
		}
	}
}

func FuzzSafeText(f *testing.F) {
	for _, s := range hostile {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		text, line := cli.SafeText(s), cli.SafeLine(s)
		checkSafe(t, text, "\n\t")
		checkSafe(t, line, "")
		if again := cli.SafeText(text); again != text {
			t.Errorf("%q became %q and then %q", s, text, again)
		}
		if again := cli.SafeLine(line); again != line {
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
		if got := cli.SafeText(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	if got := cli.SafeLine(" a\n\n b\u2028\tc\x1b[1m "); got != "a b c" {
		t.Errorf("got %q", got)
	}
}

// Wherever a read ends, the text is the same.
func FuzzCopySafe(f *testing.F) {
	for i, s := range hostile {
		f.Add([]byte(s), i%7+1)
	}
	f.Fuzz(func(t *testing.T, data []byte, size int) {
		var whole, pieces bytes.Buffer
		if err := cli.CopySafe(&whole, bytes.NewReader(data)); err != nil {
			t.Fatal(err)
		}
		size = max(1, size%9)
		if err := cli.CopySafe(&pieces, &chunked{data, size}); err != nil {
			t.Fatal(err)
		}
		if whole.String() != pieces.String() {
			t.Errorf("%q: whole %q, in pieces of %d %q", data, whole.String(), size, pieces.String())
		}
		checkSafe(t, whole.String(), "\n\t")
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
		if err := cli.CopySafe(&out, iotest.OneByteReader(strings.NewReader(in))); err != nil || out.String() != want {
			t.Errorf("%.40q: got %.60q and %v, want %.60q", in, out.String(), err, want)
		}
	}
	// A sequence across the end of a large read.
	in := strings.Repeat("x", 64<<10-2) + "\x1b[31mred"
	var out strings.Builder
	if err := cli.CopySafe(&out, strings.NewReader(in)); err != nil || strings.TrimLeft(out.String(), "x") != "red" {
		t.Errorf("got %q and %v", strings.TrimLeft(out.String(), "x"), err)
	}
	if err := cli.CopySafe(io.Discard, iotest.ErrReader(io.ErrUnexpectedEOF)); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v", err)
	}
}

func FuzzFit(f *testing.F) {
	for i, s := range hostile {
		f.Add(cli.SafeLine(s), i)
	}
	f.Add("界界界界界界", 5)
	f.Add("e\u0301e\u0301e\u0301", 2)
	f.Fuzz(func(t *testing.T, s string, columns int) {
		s, columns = cli.SafeLine(s), max(columns%120, 1)
		got := cli.Fit(s, columns)
		if cli.Width(got) > columns {
			t.Errorf("%q has %d columns, more than %d", got, cli.Width(got), columns)
		}
		if cli.Width(s) <= columns && got != s {
			t.Errorf("%q was cut to %q although it fits into %d", s, got, columns)
		}
		checkSafe(t, got, "")
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
		if got := cli.Fit(test.in, test.columns); got != test.want {
			t.Errorf("%q in %d columns: got %q, want %q", test.in, test.columns, got, test.want)
		}
	}
}

// Columns stand under each other, whatever the width of the characters.
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
	text := cli.Columns(rows, -1, func(_ int, s string) string { return s })
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
		if got, want := cli.Width(before), len("界界界")-3+2+len("● working")-2+2; got != want {
			t.Errorf("%q: the last column begins at %d, want %d", line, got, want)
		}
	}
	painted := cli.Columns(rows, 1, func(row int, s string) string { return "\x1b[3" + string(rune('0'+row)) + "m" + s + "\x1b[0m" })
	if got := cli.SafeText(painted); strings.Count(got, "\n") != len(rows) || strings.Count(painted, "\x1b[31m") != 1 || strings.Count(painted, "\x1b[30m") != 3 {
		t.Errorf("painted: got %q", painted)
	}
}

func TestParseSince(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for in, want := range map[string]time.Time{
		"10m": now.Add(-10 * time.Minute), "0s": now, "1h30m": now.Add(-90 * time.Minute),
		"2026-01-31T15:04:05Z":      time.Date(2026, 1, 31, 15, 4, 5, 0, time.UTC),
		"2026-01-31T15:04:05+02:00": time.Date(2026, 1, 31, 13, 4, 5, 0, time.UTC),
	} {
		if got, err := cli.ParseSince(in, now); err != nil || !got.Equal(want) {
			t.Errorf("%q: got %v and %v, want %v", in, got, err, want)
		}
	}
	for _, in := range []string{"", "yesterday", "-10m", "10", "2026-01-31", "15:04", "10m ago", "٣m"} {
		_, err := cli.ParseSince(in, now)
		if !agency.IsCode(err, agency.CodeUsage) || agency.AsError(err).Hint == "" {
			t.Errorf("%q: got %v", in, err)
		}
	}
}
