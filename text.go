package agency

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// What joins the parts of one emoji, and what asks for its picture.
const (
	zeroWidthJoiner = '\u200d'
	textStyle       = '\ufe0e'
	emojiStyle      = '\ufe0f'
)

// Visible is untrusted text without what would act on whoever shows it, or hide from its reader: control characters except line
// feed and tab, characters that change the direction of writing, and invisible ones such as tags and zero-width spaces. What is
// not UTF-8 becomes �. An escape sequence loses its escape character only; to take it out whole is for those who know terminals.
func Visible(text string) string {
	last := rune(0)
	return strings.Map(func(r rune) rune {
		if !Shows(last, r) {
			return -1
		}
		last = r
		return r
	}, strings.ToValidUTF8(text, string(unicode.ReplacementChar)))
}

// Shows says whether a character stays in visible text, behind the last one that stayed, or 0.
func Shows(last, r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return true
	case r == zeroWidthJoiner:
		return last == emojiStyle || unicode.Is(unicode.So, last) || last >= '\U0001F3FB' && last <= '\U0001F3FF' // colours of skin
	case r == textStyle || r == emojiStyle:
		return unicode.IsGraphic(last) && !unicode.Is(unicode.Variation_Selector, last)
	case unicode.Is(unicode.Prepended_Concatenation_Mark, r): // a format character that is seen
		return true
	}
	return !unicode.IsControl(r) && !unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// LongestLine is how many characters a text of one line has at most.
const LongestLine = 100

// LineProblem says what keeps a text from being shown on one line.
func LineProblem(s string) string {
	switch {
	case !utf8.ValidString(s):
		return "is not valid UTF-8"
	case utf8.RuneCountInString(s) > LongestLine:
		return "is too long"
	}
	for _, r := range s {
		if !unicode.IsPrint(r) {
			return fmt.Sprintf("holds %U, which is not printed", r)
		}
	}
	return ""
}

// ShellWord writes a text as one word of a shell, for a command that a person may paste.
func ShellWord(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+=:,@%") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// OneLine is a text with each run of white space in it as one space.
func OneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// Clip returns the beginning of a text of another, as much as a message has room for.
func Clip(s string) string {
	const most = 40
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}
