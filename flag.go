package agency

import (
	"strings"
	"time"
	"unicode/utf8"
)

// FlagReasonLimit is how long the reason of a flag may be, in characters.
const FlagReasonLimit = 1000

// Flag says that somebody must look at a run, whatever its agent does, until it is taken away.
type Flag struct {
	Reason string    `json:"reason"` // untrusted
	By     string    `json:"by"`     // the id of a run, or "user"
	At     time.Time `json:"at"`
}

// CheckFlagReason refuses a reason that nobody could see, or that is too long, with E_USAGE.
func CheckFlagReason(reason string) error {
	if strings.TrimSpace(Visible(reason)) == "" {
		return Errorf(CodeUsage, "a flag needs a reason").WithHint(`for example: agency flag RUN "the migration needs a second look"`)
	}
	if n := utf8.RuneCountInString(reason); n > FlagReasonLimit {
		return Errorf(CodeUsage, "the reason has %d characters, and at most %d are allowed", n, FlagReasonLimit).
			WithHint("write it to a file in the worktree and give its name")
	}
	return nil
}

// Cause names the episode of the alert about a flag: another flag is another episode, also with the same reason.
func (f *Flag) Cause() string { return "flag " + stamp(f.At) }
