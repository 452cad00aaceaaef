package agency

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// The limits of a plan.
const (
	MaxAgents         = 5_000
	MaxDependencies   = 250_000 // of all agents together
	MaxParallelAgents = 1_000
	MaxRetries        = 100
	MaxTimeout        = 30 * 24 * time.Hour
)

// MaxPromptBytes is how large the prompts of a plan may be together, in bytes.
const MaxPromptBytes = 4 * PromptLimit

var agentIDRule = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// CheckAgentID refuses what cannot be the id of an agent: it becomes part of a branch and the name of a log file.
func CheckAgentID(id string) error {
	if !agentIDRule.MatchString(id) || strings.Contains(id, "..") || strings.HasSuffix(id, ".") || strings.HasSuffix(id, ".lock") {
		return Errorf(CodePlanInvalid, "the agent id %q is not allowed", Clip(id)).
			WithHint("an id has 1 to 64 characters: letters, digits, dots, dashes and underscores, first a letter or digit, without .. and without . or .lock at its end")
	}
	return nil
}

// PlanFaults are the first things that are wrong with a plan, one or more. To whoever wants one error they are the first of them.
type PlanFaults []*Error

// MaxFaults is how many things that are wrong with a plan are told at once.
const MaxFaults = 5

// Error is the message of the first fault.
func (f PlanFaults) Error() string { return f[0].Error() }

// Unwrap is the first fault.
func (f PlanFaults) Unwrap() error { return f[0] }

// Add takes an error for one more fault, or for those that it is. It says whether there is room for others.
func (f *PlanFaults) Add(err error) bool {
	if more, ok := errors.AsType[PlanFaults](err); ok {
		*f = append(*f, more...)
	} else if err != nil {
		*f = append(*f, AsError(err))
	}
	*f = (*f)[:min(len(*f), MaxFaults)]
	return len(*f) < MaxFaults
}

// Err is nil when there is no fault.
func (f PlanFaults) Err() error {
	if len(f) == 0 {
		return nil
	}
	return f
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
