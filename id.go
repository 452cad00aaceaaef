package agency

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"agency/internal/handle"
	"agency/internal/plain"
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

// NewLandingID makes the id of a landing.
func NewLandingID(at time.Time, random [10]byte) LandingID {
	return LandingID(LandingPrefix + strings.TrimPrefix(string(NewRunID(at, random)), runIDPrefix))
}

// CheckPrefix begins every id of the result of a check.
const CheckPrefix = "c_"

// NewCheckID makes the id of the result of a check.
func NewCheckID(at time.Time, random [10]byte) string {
	return CheckPrefix + strings.TrimPrefix(string(NewRunID(at, random)), runIDPrefix)
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

var nameRule = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`) })

// CheckName refuses a run name that could be mistaken for something else.
func CheckName(name string) error {
	if validName(name) {
		return nil
	}
	try := ""
	if near := handle.Dashed(name, NameLimit); validName(near) {
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
		return Errorf(CodePlanInvalid, "the agent id %q is not allowed", plain.Clip(id)).
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
