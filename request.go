package agency

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Request is a question or permission that an agent waits for. Only the user, or a client that acts
// for the user, can answer it.
type Request struct {
	ID         string      `json:"id"` // the agent's own, or one made of its text; empty while neither exists
	Kind       RequestKind `json:"kind"`
	Tool       string      `json:"tool"`
	Text       string      `json:"text"`
	At         time.Time   `json:"at"`
	Source     Source      `json:"source"`
	Subagent   string      `json:"subagent"`   // the subagent that asked; empty is the agent itself
	Confidence float64     `json:"confidence"` // 1 unless it was read from a screen
	// Shown is set when agency saw the agent's program wait for this request. Hooks report a
	// request before its dialog is drawn.
	Shown bool `json:"shown"`
}

// Same reports whether two requests ask for the same, so that an answer to one also answers the
// other.
func (r *Request) Same(o *Request) bool {
	return r.Kind == o.Kind && r.Tool == o.Tool && r.Text == o.Text
}

// Summary returns the request in a few words. They are the agent's, so they are untrusted.
func (r *Request) Summary() string {
	if r.Kind != AsksPermission || r.Tool == "" {
		return r.Text
	}
	if r.Text == "" {
		return "may it use " + r.Tool + "?"
	}
	return "may it use " + r.Tool + "? " + r.Text
}

// PromptID returns an id of the request that a run with this status waits for, so that an answer to
// an older one can be refused; empty when nothing waits for an answer.
func (s Status) PromptID() string {
	switch {
	case s.Request != nil:
		return s.Request.PromptID()
	case s.Label == NeedsInput, s.Label == Blocked, s.Label == Waiting:
		return strings.ReplaceAll(string(s.Label), " ", "_") + "@" + stamp(s.Since)
	default:
		return ""
	}
}

// Is reports whether a prompt id names this request. The prompt id may be older than the request's
// own id, if a source with less detail came first.
func (r *Request) Is(promptID string) bool {
	return promptID == r.PromptID() || promptID == (&Request{At: r.At}).PromptID()
}

// PromptID returns an id of the request at one moment, so that an answer to an older one is
// refused.
func (r *Request) PromptID() string { return r.ID + "@" + stamp(r.At) }

func stamp(t time.Time) string { return fmt.Sprint(t.UnixMilli()) }

// Decision is the answer to an agent's request for permission.
type Decision string

// The decisions.
const (
	Allow Decision = "allow" // this once
	Deny  Decision = "deny"  // also: declines to answer a question
)

// Reply is the answer to an agent's request: a decision, or text for a question.
type Reply struct {
	Decision Decision // empty when Text answers
	Text     string   // one of the options that it offers, or free text
}

// ReplyLimit is the longest text of a reply, in bytes.
const ReplyLimit = 2000

// Validate checks that a reply can be typed at a terminal; else it returns E_USAGE.
func (r Reply) Validate() error {
	switch {
	case (r.Decision == "") == (r.Text == ""):
		return Errorf(CodeUsage, "an answer is either a decision, allow or deny, or a text")
	case r.Decision != "" && r.Decision != Allow && r.Decision != Deny:
		return Errorf(CodeUsage, "%q is no decision", string(r.Decision)).WithHint("allow or deny")
	case len(r.Text) > ReplyLimit:
		return Errorf(CodeUsage, "the answer has %d bytes, more than %d", len(r.Text), ReplyLimit).
			WithHint("write it to a file of the worktree and name that in the answer")
	case r.Text != "" && strings.TrimSpace(r.Text) == "":
		return Errorf(CodeUsage, "the answer is empty")
	case !utf8.ValidString(r.Text) || strings.ContainsFunc(r.Text, unicode.IsControl):
		return Errorf(CodeUsage, "the answer is not one line of plain text")
	}
	return nil
}
