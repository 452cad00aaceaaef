package config

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"agency"
	"agency/internal/document"
	"agency/internal/duration"
	"agency/internal/handle"
	"agency/internal/plain"
)

// key is one key of the file format, bound to the target of its value. The errors of set continue a
// sentence that begins with the key's name.
type key struct {
	name string // in its table
	set  func(*document.Value) error
	show func() string // the value as it would be written in TOML
}

// keyOf binds a key to p. It writes the result of as for the value; on an error p stays unchanged.
func keyOf[T any](name string, p *T, as func(*document.Value) (T, error), show func(T) string) key {
	set := func(v *document.Value) error {
		value, err := as(v)
		if err == nil {
			*p = value
		}
		return err
	}
	return key{name: name, set: set, show: func() string { return show(*p) }}
}

func textKey(name string, p *string, check func(string) error) key {
	return keyOf(name, p, func(v *document.Value) (string, error) {
		text, err := v.AsString()
		if err == nil {
			err = check(text)
		}
		return text, err
	}, quote)
}

func boolKey(name string, p *bool) key {
	return keyOf(name, p, (*document.Value).AsBool, strconv.FormatBool)
}

// numberKey binds a whole number of units; the bounds are inclusive.
func numberKey[T ~int | ~int64](name string, p *T, unit, least, most T) key {
	return keyOf(name, p, func(v *document.Value) (T, error) {
		n, err := v.AsInt()
		if err == nil && (T(n) < least || T(n) > most) {
			err = fmt.Errorf("must be from %d to %d, not %s", least, most, v.Text)
		}
		return T(n) * unit, err
	}, func(n T) string { return strconv.FormatInt(int64(n/unit), 10) })
}

func durationKey(name string, p *time.Duration, least, most time.Duration) key {
	return keyOf(name, p, func(v *document.Value) (time.Duration, error) {
		d, err := v.AsDuration()
		if err == nil && (d < least || d > most) {
			err = fmt.Errorf("must be from %s to %s, not %q", duration.Exact(least), duration.Exact(most), v.Text)
		}
		return d, err
	}, func(d time.Duration) string { return quote(duration.Exact(d)) })
}

// sizeKey binds a number of bytes, written as a text with a unit.
func sizeKey(name string, p *int64) key {
	return keyOf(name, p, asSize, func(size int64) string { return quote(agency.Size(size).String()) })
}

func asSize(v *document.Value) (int64, error) {
	if v.Kind != document.Text {
		return 0, fmt.Errorf(`must be a size in quotes, such as "512m", not %s`, v.Words())
	}
	size, err := agency.ParseSize(v.Text)
	if err != nil || size == agency.Unlimited {
		return 0, fmt.Errorf(`must be a size such as "512m" or "2g", not %q`, clip(v.Text))
	}
	return int64(size), nil
}

func listKey(name string, p *[]string, check func(string) error) key {
	return keyOf(name, p, func(v *document.Value) ([]string, error) { return v.AsStrings(check) }, showList)
}

// showList returns a list as TOML.
func showList(list []string) string {
	quoted := make([]string, 0, len(list))
	for _, s := range list {
		quoted = append(quoted, quote(s))
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

func formatKey(name string, p *handle.Format) key {
	text := handle.MMDDSlugHash
	return textKey(name, &text, func(s string) error {
		format, err := handle.ParseFormat(s)
		if err != nil {
			return fmt.Errorf("is not a format: %w", err)
		}
		*p = format
		return nil
	})
}

// The checks of single values. Their errors continue a sentence, too.

func checkText(s string) error {
	if strings.ContainsRune(s, 0) {
		return errors.New("must not hold a NUL byte")
	}
	return nil
}

// checkProtocol accepts a protocol that any program can speak.
func checkProtocol(s string) error {
	if s != "" && s != agency.ACP {
		return fmt.Errorf("must be %q, the Agent Client Protocol, not %q", agency.ACP, clip(s))
	}
	return nil
}

func checkExec(s string) error {
	switch {
	case s == "":
		return errors.New("must not be empty")
	case filepath.IsAbs(s):
		return checkText(s)
	case strings.ContainsRune(s, '/'):
		return fmt.Errorf("must be the name of a program or an absolute path, not %q", clip(s))
	case strings.ContainsAny(s, " \t\n"):
		return fmt.Errorf("must be one program, not %q: arguments belong into default_args", clip(s))
	}
	return checkText(s)
}

func checkRef(s string) error {
	if s == "" || strings.HasPrefix(s, "-") || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' }) {
		return fmt.Errorf("must be a branch, a tag or a commit, not %q", clip(s))
	}
	return nil
}

func checkTmuxSocket(s string) error {
	switch {
	case filepath.IsAbs(s) && len(s) > socketLimit:
		return fmt.Errorf("must have at most %d bytes, not %d", socketLimit, len(s))
	case !filepath.IsAbs(s) && (strings.ContainsRune(s, '/') || s == "." || s == ".."):
		return fmt.Errorf("must be the name of a server or an absolute path, not %q", clip(s))
	}
	return checkText(s)
}

func checkStatusDir(s string) error {
	if err := checkText(s); err != nil {
		return err
	}
	clean := filepath.Clean(s)
	inside := filepath.IsLocal(clean) && clean != "." && clean != ".git" && !strings.HasPrefix(clean, ".git/")
	if s == "" || !inside && !filepath.IsAbs(clean) || clean == "/" {
		return fmt.Errorf("must be a folder in the repository or an absolute path, not %q", clip(s))
	}
	return nil
}

func checkPattern(s string) error {
	if s == "" || strings.ContainsAny(s, "=/\x00") {
		return fmt.Errorf("must be a pattern for names of variables, not %q", clip(s))
	}
	if _, err := path.Match(s, ""); err != nil {
		return fmt.Errorf("must be a pattern such as \"AWS_*\", and %q is malformed", clip(s))
	}
	return nil
}

func checkTag(s string) error {
	if err := agency.CheckWord("tag", s); err != nil {
		return fmt.Errorf("must be a tag of lower-case letters, digits, dots, dashes and underscores, not %q", clip(s))
	}
	return nil
}

func checkAllowance(s string) error {
	if slices.Contains(Allowances(), s) {
		return nil
	}
	return document.Hinted(fmt.Errorf("must be one of %s, not %q", strings.Join(Allowances(), ", "), clip(s)), didYouMean(s, Allowances()))
}

// Limits of the output patterns.
const (
	mostPatterns = 32
	patternLimit = 500 // bytes
)

// patternsKey binds regular expressions for output lines.
func patternsKey(name string, p *[]string) key {
	k := listKey(name, p, checkErrorPattern)
	set := k.set
	k.set = func(v *document.Value) error {
		if len(v.Items) > mostPatterns {
			return document.Hinted(fmt.Errorf("must have at most %d patterns, not %d", mostPatterns, len(v.Items)), `one pattern can hold several: "(quota|limit) exceeded"`)
		}
		return set(v)
	}
	return k
}

func checkErrorPattern(s string) error {
	if len(s) > patternLimit {
		return fmt.Errorf("must have at most %d bytes, not %d", patternLimit, len(s))
	}
	_, err := regexp.Compile(s)
	whole, wholeErr := regexp.Compile("^(?:" + s + ")")
	if malformed := (*syntax.Error)(nil); errors.As(cmp.Or(err, wholeErr), &malformed) {
		return document.Hinted(
			fmt.Errorf("must be a regular expression, and %q is malformed: %s at %q", clip(s), malformed.Code, clip(malformed.Expr)),
			`the form is that of RE2; in single quotes TOML leaves backslashes alone: '(?i)error: quota'`,
		)
	}
	if whole.MatchString("") {
		return document.Hinted(fmt.Errorf("must not match everything, as %q does", clip(s)), "a pattern needs a text, and matches from the beginning of a line")
	}
	return nil
}

func checkExpression(s string) error {
	if _, err := regexp.Compile(s); err != nil {
		return fmt.Errorf("must be a regular expression, and %q is malformed", clip(s))
	}
	return nil
}

var placeholderRule = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$?\{([A-Za-z_][A-Za-z0-9_]*)\}`) })

// checkCustomArg refuses unknown placeholders. "${NAME}" is left to the shell.
func checkCustomArg(s string) error {
	for _, m := range placeholderRule().FindAllStringSubmatch(s, -1) {
		if strings.HasPrefix(m[0], "$") || slices.Contains(placeholders, m[1]) {
			continue
		}
		return document.Hinted(fmt.Errorf("holds the unknown placeholder {%s}", clip(m[1])), braced(plain.Nearest(m[1], placeholders)))
	}
	return checkText(s)
}

func braced(near string) string {
	if near == "" {
		return "the placeholders are {" + strings.Join(placeholders, "}, {") + "}"
	}
	return "did you mean {" + near + "}?"
}

// clip shortens a text from the file for a message.
func clip(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

// quote returns a text as a TOML string.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case strconv.IsPrint(r):
			b.WriteRune(r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			fmt.Fprintf(&b, `\U%08X`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
