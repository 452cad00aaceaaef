package agency

import (
	"strings"
	"unicode"
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
