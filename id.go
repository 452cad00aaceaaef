package agency

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/oklog/ulid/v2"
)

// RunID is the primary key of a run: "r_" and a ULID. It is a name, not an order; Run.Seq is the
// order.
type RunID string

const runIDPrefix = "r_"

// NewRunID makes an id from a time and ten random bytes.
func NewRunID(at time.Time, random [10]byte) RunID {
	var id ulid.ULID
	// Both errors are for times past the year 10889 and for entropy of another length.
	_ = id.SetTime(ulid.Timestamp(at))
	_ = id.SetEntropy(random[:])
	return RunID(runIDPrefix + id.String())
}

// NewMessageID makes the id of a message.
func NewMessageID(at time.Time, random [10]byte) string {
	return "m_" + strings.TrimPrefix(string(NewRunID(at, random)), runIDPrefix)
}

// NewAlertID makes the id of an alert.
func NewAlertID(at time.Time, random [10]byte) string {
	return "a_" + strings.TrimPrefix(string(NewRunID(at, random)), runIDPrefix)
}

// NewNoticeID makes the id of a notice whose subject has no id.
func NewNoticeID(at time.Time, random [10]byte) string {
	return "n_" + strings.TrimPrefix(string(NewRunID(at, random)), runIDPrefix)
}

// ParseRunID reads an id strictly: the exact prefix, then 26 characters of the ULID alphabet in any
// case.
func ParseRunID(s string) (RunID, error) {
	rest, ok := strings.CutPrefix(s, runIDPrefix)
	if !ok {
		return "", Errorf(CodeUsage, "%q is not a run id: it does not begin with %q", s, runIDPrefix)
	}
	id, err := ulid.ParseStrict(rest)
	if err != nil {
		return "", Errorf(CodeUsage, "%q is not a run id: %v", s, err)
	}
	return RunID(runIDPrefix + id.String()), nil
}

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
		return orRun(slugify(prompt, slugTypeMax))
	}
	if rest == "" {
		rest = prompt
	}
	parts := make([]string, 0, 2)
	if s := slugify(typ, slugTypeMax); s != "" {
		parts = append(parts, s)
	}
	limit := slugNameMax
	if len(parts) == 0 {
		limit = slugTypeMax
	}
	if s := slugify(rest, limit); s != "" {
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

// slugify keeps ASCII letters and digits and, where a text has none of them, Chinese, Japanese and
// Korean letters. It turns each run of other characters into one "-". It reads no further than it
// needs, so a prompt of megabytes costs nothing. limit is in columns of a terminal.
func slugify(s string, limit int) string {
	slug := slugOf(s, limit, func(r rune) (rune, int) {
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
	return slugOf(s, limit, func(r rune) (rune, int) {
		if unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) {
			return r, 2
		}
		return 0, 0
	})
}

// slugOf is slugify for the characters that keep returns, with their width; it turns those of width
// 0 into "-".
func slugOf(s string, limit int, keep func(r rune) (rune, int)) string {
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
	FormatMMDDSlugHash  = "mmdd-slug-hash"
	FormatTimestampSlug = "timestamp-slug"
)

// HandleFormat is a checked pattern for handles.
type HandleFormat struct{ pattern string }

var placeholder = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\{[^{}]*\}`) })

// ParseHandleFormat reads a named format or a custom pattern of {MMDD} {YYYYMMDD} {HHMMSS} {slug}
// {hash} {type} and letters, digits and "-". A pattern must hold {hash}, which resolves clashes.
func ParseHandleFormat(s string) (HandleFormat, error) {
	switch s {
	case "", FormatMMDDSlugHash:
		return HandleFormat{"{MMDD}-{slug}-{hash}"}, nil
	case FormatTimestampSlug:
		return HandleFormat{"{YYYYMMDD}{HHMMSS}-{slug}"}, nil
	}
	for _, p := range placeholder().FindAllString(s, -1) {
		switch p {
		case "{MMDD}", "{YYYYMMDD}", "{HHMMSS}", "{slug}", "{hash}", "{type}":
		default:
			return HandleFormat{}, fmt.Errorf("unknown placeholder %s; known are {MMDD} {YYYYMMDD} {HHMMSS} {slug} {hash} {type}", p)
		}
	}
	if rest := placeholder().ReplaceAllString(s, ""); strings.Trim(rest, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return HandleFormat{}, fmt.Errorf("%q: outside its placeholders a pattern holds only a-z, 0-9 and -", s)
	}
	if !strings.Contains(s, "{hash}") {
		return HandleFormat{}, fmt.Errorf("%q has no {hash}, so two runs could want the same handle", s)
	}
	if strings.HasPrefix(s, "-") || strings.HasSuffix(s, "-") || len(s) > 80 {
		return HandleFormat{}, fmt.Errorf("%q begins or ends with - or is longer than 80 characters", s)
	}
	return HandleFormat{s}, nil
}

// Handle returns the name that users see and type. hash is four hex characters. again is set when a
// handle was taken: a format without {hash} then gets one at its end.
func (f HandleFormat) Handle(at time.Time, slug, typ, hash string, again bool) string {
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
		"{type}", orRun(slugify(typ, slugTypeMax)),
	).Replace(pattern)
}

var nameRule = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`) })

// CheckName refuses a run name that could be mistaken for something else.
func CheckName(name string) error {
	if validName(name) {
		return nil
	}
	try := ""
	if near := slugify(name, NameLimit); validName(near) {
		try = "--name " + near + "; "
	}
	return Errorf(CodeUsage, "the name %q is not allowed", name).
		WithHint("%sa name has 2 to %d characters: lower-case letters, digits and single dashes, and begins with a letter", try, NameLimit)
}

func validName(name string) bool {
	return len(name) >= 2 && len(name) <= NameLimit && nameRule().MatchString(name)
}

// NameLimit is the maximum length of a run's name, in characters.
const NameLimit = 40

var wordRule = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,39}$`) })

// CheckWord refuses a tag or a type that is not one plain word. what names the value in the
// message.
func CheckWord(what, word string) error {
	if !wordRule().MatchString(word) {
		return Errorf(CodeUsage, "the %s %q is not allowed", what, word).
			WithHint("a %s has 1 to 40 characters: lower-case letters, digits, dots, dashes and underscores", what)
	}
	return nil
}

var agentIDRule = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`) })

// CheckAgentID refuses an invalid agent id. A valid one can be part of a branch and the name of a
// log file.
func CheckAgentID(id string) error {
	if !agentIDRule().MatchString(id) || strings.Contains(id, "..") || strings.HasSuffix(id, ".") || strings.HasSuffix(id, ".lock") {
		return Errorf(CodePlanInvalid, "the agent id %q is not allowed", Clip(id)).
			WithHint("an id has 1 to 64 characters: letters, digits, dots, dashes and underscores, first a letter or digit, without .. and without . or .lock at its end")
	}
	return nil
}

// MinPrefix is the minimum length of an abbreviated name, handle or id, in characters.
const MinPrefix = 4

// TokenHash returns the form in which an attempt's token is stored.
func TokenHash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}
