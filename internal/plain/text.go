// Package plain makes texts short and safe to show: without characters that act on a terminal, on
// one line, as a word of a shell; and it finds the word that a mistyped one was meant to be.
package plain

import (
	"fmt"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The character that joins the parts of an emoji, and the one that requests its picture.
const (
	zeroWidthJoiner = '\u200d'
	textStyle       = '\ufe0e'
	emojiStyle      = '\ufe0f'
)

// Visible returns untrusted text without characters that would act on the terminal or hide from the
// reader: control characters except line feed and tab, characters that change the direction of
// writing, and invisible ones such as tags and zero-width spaces. Bytes that are not UTF-8 become
// �. An escape sequence loses its escape character only; removing it whole is the task of packages
// that know terminals.
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

// Shows reports whether a character stays in visible text. last is the last character that stayed,
// or 0.
func Shows(last, r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return true
	case r == zeroWidthJoiner:
		return last == emojiStyle || unicode.Is(unicode.So, last) || last >= '\U0001F3FB' && last <= '\U0001F3FF' // skin tones
	case r == textStyle || r == emojiStyle:
		return unicode.IsGraphic(last) && !unicode.Is(unicode.Variation_Selector, last)
	case unicode.Is(unicode.Prepended_Concatenation_Mark, r): // a visible format character
		return true
	}
	return !unicode.IsControl(r) && !unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// LongestLine is the maximum length of a one-line text, in characters.
const LongestLine = 100

// LineProblem returns why a text cannot be shown on one line, or "".
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

// ShellWord returns a text as one word of a shell, for a command that users may paste.
func ShellWord(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+=:,@%") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// OneLine returns a text with each run of white space replaced by one space.
func OneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// Clip returns the beginning of an untrusted text, short enough for a message.
func Clip(s string) string {
	const most = 40
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

// ByteSize returns a number of bytes as text with a unit.
func ByteSize(n int64) string {
	const kib = 1 << 10
	switch {
	case n < kib:
		return fmt.Sprintf("%d B", n)
	case n < kib*kib:
		return fmt.Sprintf("%.1f KiB", float64(n)/kib)
	case n < kib*kib*kib:
		return fmt.Sprintf("%.1f MiB", float64(n)/(kib*kib))
	default:
		return fmt.Sprintf("%.1f GiB", float64(n)/(kib*kib*kib))
	}
}

// SafeURL returns the URL of a remote as it may be shown and stored: of the web without the name
// and the password of a user, which may be secrets.
func SafeURL(remote string) string {
	u, err := url.Parse(remote)
	if err != nil || u.User == nil || !strings.HasPrefix(u.Scheme, "http") {
		return Visible(remote)
	}
	u.User = nil
	return Visible(u.String())
}
