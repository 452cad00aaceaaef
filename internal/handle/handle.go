// Package handle makes the readable names that agency gives to runs, such as 1122-fix-login-a1b2.
package handle

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode"
)

// The lengths of the parts of a slug, in characters.
const (
	slugTypeMax = 20
	slugNameMax = 10
)

// Slug returns the readable part of a handle: from the type and the name, or else from the type and
// the prompt's first words. It is lower-case ASCII, never ends in "-", and is never empty.
func Slug(typ, name, prompt string) string {
	rest := name
	if rest == "" && typ == "" {
		return orRun(Dashed(prompt, slugTypeMax))
	}
	if rest == "" {
		rest = prompt
	}
	parts := make([]string, 0, 2)
	if s := Dashed(typ, slugTypeMax); s != "" {
		parts = append(parts, s)
	}
	limit := slugNameMax
	if len(parts) == 0 {
		limit = slugTypeMax
	}
	if s := Dashed(rest, limit); s != "" {
		parts = append(parts, s)
	}
	return orRun(strings.Join(parts, "-"))
}

func orRun(slug string) string {
	if slug == "" {
		return "run"
	}
	return slug
}

// Dashed keeps ASCII letters and digits and, where a text has none of them, Chinese, Japanese and
// Korean letters. It turns each run of other characters into one "-". It reads no further than it
// needs, so a prompt of megabytes costs nothing. limit is in columns of a terminal.
func Dashed(s string, limit int) string {
	slug := dashed(s, limit, func(r rune) (rune, int) {
		if r >= 'A' && r <= 'Z' {
			r += 'a' - 'A'
		}
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r, 1
		}
		return 0, 0
	})
	if slug != "" {
		return slug
	}
	return dashed(s, limit, func(r rune) (rune, int) {
		if unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) {
			return r, 2
		}
		return 0, 0
	})
}

// dashed is Dashed for the characters that keep returns, with their width; it turns those of width
// 0 into "-".
func dashed(s string, limit int, keep func(r rune) (rune, int)) string {
	var b strings.Builder
	width, dash := 0, false
	for _, r := range s {
		kept, columns := keep(r)
		switch {
		case columns == 0:
			dash = width > 0
			continue
		case dash:
			b.WriteByte('-')
			width++
		}
		if width+columns > limit {
			break
		}
		b.WriteRune(kept)
		width, dash = width+columns, false
	}
	return strings.Trim(b.String(), "-")
}

// The named formats of a handle.
const (
	MMDDSlugHash  = "mmdd-slug-hash"
	TimestampSlug = "timestamp-slug"
)

// Format is a checked pattern for handles.
type Format struct{ pattern string }

var placeholder = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\{[^{}]*\}`) })

// ParseFormat reads a named format or a custom pattern of {MMDD} {YYYYMMDD} {HHMMSS} {slug}
// {hash} {type} and letters, digits and "-". A pattern must hold {hash}, which resolves clashes.
func ParseFormat(s string) (Format, error) {
	switch s {
	case "", MMDDSlugHash:
		return Format{"{MMDD}-{slug}-{hash}"}, nil
	case TimestampSlug:
		return Format{"{YYYYMMDD}{HHMMSS}-{slug}"}, nil
	}
	for _, p := range placeholder().FindAllString(s, -1) {
		switch p {
		case "{MMDD}", "{YYYYMMDD}", "{HHMMSS}", "{slug}", "{hash}", "{type}":
		default:
			return Format{}, fmt.Errorf("unknown placeholder %s; known are {MMDD} {YYYYMMDD} {HHMMSS} {slug} {hash} {type}", p)
		}
	}
	if rest := placeholder().ReplaceAllString(s, ""); strings.Trim(rest, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return Format{}, fmt.Errorf("%q: outside its placeholders a pattern holds only a-z, 0-9 and -", s)
	}
	if !strings.Contains(s, "{hash}") {
		return Format{}, fmt.Errorf("%q has no {hash}, so two runs could want the same handle", s)
	}
	if strings.HasPrefix(s, "-") || strings.HasSuffix(s, "-") || len(s) > 80 {
		return Format{}, fmt.Errorf("%q begins or ends with - or is longer than 80 characters", s)
	}
	return Format{s}, nil
}

// Handle returns the name that users see and type. hash is four hex characters. again is set when a
// handle was taken: a format without {hash} then gets one at its end.
func (f Format) Handle(at time.Time, slug, typ, hash string, again bool) string {
	pattern := f.pattern
	if again && !strings.Contains(pattern, "{hash}") {
		pattern += "-{hash}"
	}
	return strings.NewReplacer(
		"{MMDD}", at.Format("0102"),
		"{YYYYMMDD}", at.Format("20060102"),
		"{HHMMSS}", at.Format("150405"),
		"{slug}", slug,
		"{hash}", hash,
		"{type}", orRun(Dashed(typ, slugTypeMax)),
	).Replace(pattern)
}
