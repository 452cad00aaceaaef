package observe

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agency"
)

func TestStyledRows(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text string
		want       [][]agency.StyledText
	}{
		{"no style", "one\n\ntwo  \n\n\n", [][]agency.StyledText{{{Text: "one"}}, {}, {{Text: "two"}}}},
		{"a style that lasts", "\x1b[31ma\nb\x1b[0m c", [][]agency.StyledText{{{Text: "a", Foreground: "1"}}, {{Text: "b", Foreground: "1"}, {Text: " c"}}}},
		{"many at once", "\x1b[1;4;38;5;208;48;2;1;2;3mx\x1b[22;24;39;49my", [][]agency.StyledText{{
			{Text: "x", Foreground: "208", Background: "#010203", Attributes: "bu"}, {Text: "y"},
		}}},
		{"colons", "\x1b[38:2::255:0:128;4:3mx", [][]agency.StyledText{{{Text: "x", Foreground: "#ff0080", Attributes: "u"}}}},
		{"bright", "\x1b[97;101mx", [][]agency.StyledText{{{Text: "x", Foreground: "15", Background: "9"}}}},
		{"a background is no blank", "\x1b[41m  ", [][]agency.StyledText{{{Text: "  ", Background: "1"}}}},
		{"lines of DEC", "\x0elqk\x0fq", [][]agency.StyledText{{{Text: "┌─┐q"}}}},
		{"a link and a title", "\x1b]8;;http://evil\x1b\\text\x1b]8;;\x1b\\\x1b]0;title\x07.", [][]agency.StyledText{{{Text: "text."}}}},
		{"commands", "a\x1b[2Jb\x1b[10;10Hc\x1b(0d\x1bce\x9bf\rg\x07", [][]agency.StyledText{{{Text: "abcde�fg"}}}},
		{"cut off", "a\x1b[31", [][]agency.StyledText{{{Text: "a"}}}},
		{"bidi", "a\u202eb", [][]agency.StyledText{{{Text: "ab"}}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, styledRows(tt.text)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func FuzzStyledRows(f *testing.F) {
	f.Add("\x1b[1;38;5;1mred\x1b]8;;x\x07\x0eqq\x0f\x1bP1\x1b\\\x9b31m\xff")
	f.Fuzz(func(t *testing.T, text string) {
		for _, row := range styledRows(text) {
			for _, s := range row {
				if strings.ContainsFunc(s.Text, func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 }) {
					t.Errorf("%q holds a control character, from %q", s.Text, text)
				}
			}
		}
	})
}
