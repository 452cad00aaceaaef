package agency

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// PromptID names what a run with this status waits for, so that an answer to something older can be refused; empty while
// it waits for nothing that can be answered.
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

// Is says that a prompt id names this request. It may be older than the request's own id: a source that knew less told first.
func (r *Request) Is(promptID string) bool {
	return promptID == r.PromptID() || promptID == (&Request{At: r.At}).PromptID()
}

// Decision is whether an agent may do what it asks leave for.
type Decision string

// The decisions.
const (
	Allow Decision = "allow" // this once
	Deny  Decision = "deny"  // also: no answer to a question
)

// Reply is the answer to what an agent asks: a decision, or words for a question.
type Reply struct {
	Decision Decision // empty when Text answers
	Text     string   // one of the options that it offers, or an answer of one's own
}

// ReplyLimit is the longest text of a reply, in bytes.
const ReplyLimit = 2000

// Validate checks that a reply can be given at a terminal; else it is E_USAGE.
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
