package agency

import (
	"fmt"
	"strings"
)

// NoticeKind says why somebody is told of a session. The words are those of the messages and notices that go out.
type NoticeKind string

// The kinds of notices about sessions that need nobody. What needs somebody is an alert.
const (
	NoticeComplete  NoticeKind = "session.complete"
	NoticeCancelled NoticeKind = "session.cancelled"
)

// NoticeKinds are all kinds.
func NoticeKinds() []NoticeKind {
	return []NoticeKind{NoticeComplete, NoticeCancelled}
}

// Words are what a kind says of a session.
func (k NoticeKind) Words() string {
	switch k {
	case NoticeComplete:
		return "is complete"
	case NoticeCancelled:
		return "was cancelled"
	}
	return string(k)
}

// NoticeOf is the kind of notice that a settled session makes; empty when it failed, which is an alert.
func NoticeOf(s SessionStatus) NoticeKind {
	switch s {
	case SessionComplete:
		return NoticeComplete
	case SessionCancelled:
		return NoticeCancelled
	default:
		return ""
	}
}

// PausedByHand is why a session is paused that somebody paused, who need not be told.
const PausedByHand = "paused by hand"

// AgentBranch is the branch of an agent's run.
func AgentBranch(session SessionID, agent string) string {
	return fmt.Sprintf("agency/%s/%s", session, agent)
}

// String counts the agents in words.
func (t Tally) String() string {
	words := []string{}
	for _, part := range []struct {
		n    int
		word AgentStatus
	}{
		{t.Complete, AgentComplete}, {t.Failed, AgentFailed}, {t.Cancelled, AgentCancelled}, {t.Running, AgentRunning}, {t.Queued, AgentQueued},
	} {
		if part.n > 0 {
			words = append(words, fmt.Sprintf("%d %s", part.n, part.word))
		}
	}
	return strings.Join(words, ", ")
}
