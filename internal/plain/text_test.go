package plain_test

import (
	"testing"
	"unicode"
	"unicode/utf8"

	"agency/internal/plain"
)

func TestVisible(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                               "",
		"two\nlines\tand a tab":          "two\nlines\tand a tab",
		"line\r\nends":                   "line\nends",
		"\x1b[31mred\x07\x00\x7f":        "[31mred",
		"\u009b31m":                      "31m",
		"bad \xff\xfe":                   "bad \ufffd",
		"pay\u202egnp.exe":               "paygnp.exe",
		"a\u2066b\u2069c\u200fd\u061c":   "abcd",
		"zero\u200bwidth\u2060\ufeff":    "zerowidth",
		"pass\u200dword":                 "password",
		"soft\u00adhyphen":               "softhyphen",
		"tags\U000E0041\U000E007F":       "tags",
		"more\ufe00\U000E0100\U000E01EF": "more",
		"\u3164blank\uffa0":              "blank",
		"grün e\u0301 界 🙂":               "grün e\u0301 界 🙂",
		"\U0001F468\u200d\U0001F469\u200d\U0001F467":    "\U0001F468\u200d\U0001F469\u200d\U0001F467",
		"\U0001F9D1\U0001F3FD\u200d\U0001F4BB":          "\U0001F9D1\U0001F3FD\u200d\U0001F4BB",
		"\u2764\ufe0f\u200d\U0001F525\u200d\u200d":      "\u2764\ufe0f\u200d\U0001F525\u200d",
		"1\ufe0f\u20e3 \u2764\ufe0f\ufe0f\ufe0e \ufe0f": "1\ufe0f\u20e3 \u2764\ufe0f \ufe0f",
		"\u0600\u0661\u06dd":                            "\u0600\u0661\u06dd",
	} {
		if got := plain.Visible(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func FuzzVisible(f *testing.F) {
	for _, s := range []string{"plain", "\x1b[2J\x9b\xc2\x9b", "a\u202eb\u200dc", "\U0001F468\x00\u200d\U0001F469", "\ufe0f\ufe0f", "\xe2\x82"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := plain.Visible(s)
		if again := plain.Visible(got); again != got || !utf8.ValidString(got) {
			t.Errorf("%q became %q and then %q", s, got, again)
		}
		last := rune(0)
		for _, r := range got {
			acts := unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r)
			hidden := unicode.Is(unicode.Cf, r) && r != '\u200d' && !unicode.Is(unicode.Prepended_Concatenation_Mark, r)
			if acts || hidden || r == '\u200d' && (last < 0x80 || unicode.IsLetter(last)) {
				t.Errorf("%q: %U behind %U in %q", s, r, last, got)
			}
			last = r
		}
	})
}
