package agency

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"agency/internal/duration"
)

// User is the recipient and sender that stands for the user, and for every program outside of a
// run.
const User = "user"

// Daemon is the sender of agency's own messages, alerts among them.
const Daemon = "agency"

// StatusUpdate is the type of the message with which an owner gets a report of its worker. A newer
// one replaces one that was not acknowledged.
const StatusUpdate = "status.update"

// IsReport reports whether messages of a type tell an owner the state of its worker.
func IsReport(kind string) bool {
	return kind == StatusUpdate || kind == "task.complete" || kind == "task.failed"
}

// Limits of messages.
const (
	PayloadLimit = 64 << 10 // bytes
	// MessageRate is how many messages one run may send in a minute.
	MessageRate = 60
	// MessageIDEnd is how many bytes of the end of an id are enough to name a message in an inbox.
	MessageIDEnd = 6
	// TreeLimit is how many messages of an agent in a sandbox, and of all that are related to it by
	// who started whom, may wait for one recipient.
	TreeLimit = 100
	// InboxLimit is how many messages may wait for one recipient.
	InboxLimit = 1000
	// MessageAge is how long a message is kept after it was sent, once no recipient waits for it.
	MessageAge = 7 * 24 * time.Hour
)

// Target is the destination of a message; exactly one of its fields is set.
type Target struct {
	Run       string `json:"run,omitempty"`       // a reference to one run
	Tag       string `json:"tag,omitempty"`       // all live runs with the tag, in the sender's repository if it has one
	Owner     bool   `json:"owner,omitempty"`     // the owner of the sender
	Repo      string `json:"repo,omitempty"`      // all live runs of the repository at this path
	Broadcast bool   `json:"broadcast,omitempty"` // all live runs
	User      bool   `json:"user,omitempty"`      // the user
}

// Validate checks that the target sets exactly one field; else it returns E_USAGE.
func (t Target) Validate() error {
	set := 0
	for _, is := range []bool{t.Run != "", t.Tag != "", t.Owner, t.Repo != "", t.Broadcast, t.User} {
		if is {
			set++
		}
	}
	if set != 1 {
		return Errorf(CodeUsage, "a message goes to exactly one of run, tag, owner, repo, broadcast and user, and %d of them are given", set)
	}
	if t.Tag != "" {
		return CheckWord("tag", t.Tag)
	}
	return nil
}

// typeRule is the form of a message's type.
var typeRule = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*$`) })

// Message is a durable message to one recipient. Its payload and type are the sender's: untrusted.
type Message struct {
	ID        string          `json:"id"`         // m_ and a ULID
	Seq       int64           `json:"seq"`        // the order in which messages were sent
	Type      string          `json:"msg_type"`   // what it is about: words of lower-case letters with dots between them, such as help.request
	From      string          `json:"from"`       // the id of a run, "user" or "agency"
	To        Target          `json:"to"`         // where the sender sent it
	Payload   json.RawMessage `json:"payload"`    // an object of the sender's, at most 64 KiB; untrusted
	CreatedAt time.Time       `json:"created_at"` // when it was sent
	ReplyTo   string          `json:"reply_to"`   // the id of the message that this answers; empty when none

	Recipient   string     `json:"recipient"`    // who gets it: the id of a run, or "user"; empty when there was none
	DeliveredAt *time.Time `json:"delivered_at"` // when the recipient first got it; null before
	AckedAt     *time.Time `json:"acked_at"`     // when the recipient acknowledged it; null before
	Dead        string     `json:"dead"`         // why it will never be delivered; empty when it may
}

// Validate checks the fields that a sender chooses; its error is E_USAGE.
func (m *Message) Validate() error {
	switch {
	case len(m.Type) > 100 || !typeRule().MatchString(m.Type):
		return Errorf(CodeUsage, "%q is not a message type", m.Type).WithHint("lower-case words with dots between them, such as help.request")
	case len(m.Payload) > PayloadLimit:
		return Errorf(CodeUsage, "the payload has %d bytes, and at most %d may be sent", len(m.Payload), PayloadLimit).
			WithHint("write it to a file and send its path")
	case !json.Valid(m.Payload) || strings.TrimLeft(string(m.Payload), " \t\r\n")[0] != '{':
		return Errorf(CodeUsage, "the payload must be a JSON object").WithHint(`for example {"text": "hello"}`)
	}
	return m.To.Validate()
}

// MessageFilter chooses messages.
type MessageFilter struct {
	Recipient string    // a run's id or "user"; empty is every recipient
	Waiting   bool      // only messages that are neither acknowledged nor dead
	Since     time.Time // only messages sent at this time or later; zero is all
	Limit     int       // the oldest N; 0 is all
}

// HasTag reports whether a run has a tag.
func (r *Run) HasTag(tag string) bool { return slices.Contains(r.Tags, tag) }

// CommentState is how far a comment of a review is on its way to the agent.
type CommentState string

// The states.
const (
	CommentOpen      CommentState = "open"      // the agent does not have it
	CommentSending   CommentState = "sending"   // the agent may have it: it is being sent, or the sending was cut off
	CommentSent      CommentState = "sent"      // the agent has it
	CommentDiscarded CommentState = "discarded" // the user took it back
)

// The sides of a diff that a comment can be on.
const (
	SideNew = "new" // the work of the run
	SideOld = "old" // what the run began at: for files that it deleted
)

// LineComment is a comment of the user on lines of a run's work. Its texts are untrusted.
type LineComment struct {
	RunID    RunID  `json:"run_id"`   // the run whose work it is about
	Number   int    `json:"number"`   // counts the comments of the run, from 1
	File     string `json:"file"`     // from the root of the repository
	Side     string `json:"side"`     // new, or old for a file that the run deleted
	Line     int    `json:"line"`     // the first one, from 1, at the revision
	Last     int    `json:"last"`     // the last one
	Text     string `json:"text"`     // the comment
	Quote    string `json:"quote"`    // the beginning of the lines, as they were
	Hash     string `json:"hash"`     // SHA-256 of the lines
	Revision string `json:"revision"` // the tree of the run's work that the lines are from

	State     CommentState `json:"state"`      // how far it is on its way to the agent
	CreatedAt time.Time    `json:"created_at"` // when the user wrote it
	SentAt    *time.Time   `json:"sent_at"`    // when the agent got it; null unless its state is sent

	// Now is the first line's number in the work as it is, 0 when unknown; it is not recorded.
	Now      int  `json:"now"`
	Outdated bool `json:"outdated"` // the lines have changed since, or are gone; not recorded
}

// Limits of comments.
const (
	CommentLimit  = 8 << 10 // bytes of the text of one
	CommentsLimit = 500     // comments of one run that the agent does not have
)

// ReviewedFile is a file of a run's work with one content, which the user has reviewed. When the
// agent changes the file, the user has not reviewed it any more.
type ReviewedFile struct {
	Path   string `json:"path"`   // from the root of the repository
	Object string `json:"object"` // git's name of its content; zeros for a file that is gone
}

// ReviewedLimit is how many files of one run are kept as reviewed, each content for itself.
const ReviewedLimit = 10000

// Timer writes a message to a run repeatedly, while the run is idle.
type Timer struct {
	Seq      int64 // identifies it among all timers that ever had its name
	Name     string
	RunID    RunID
	Owner    string // the starter: the id of a run, or User
	Message  string
	Interval time.Duration

	StartedAt time.Time
	NextAt    time.Time  // the next tick
	TickedAt  *time.Time // the last one
	// Ticks is the sum of the other three: messages that were sent, messages that were skipped
	// because the run was not idle, and messages that failed.
	Ticks, Sent, Skipped, Failed int
	Outcome                      string // of the last tick, in words
	// StoppedAt is when it ended by itself; a timer that is stopped on request is deleted.
	StoppedAt  *time.Time
	StopReason string
}

// The bounds of a timer's interval.
const (
	MinTimerInterval = 5 * time.Second
	MaxTimerInterval = 24 * time.Hour
)

// timerMessageLimit is the longest message of a timer, in bytes: it is typed repeatedly.
const timerMessageLimit = 4 << 10

// Validate checks the fields that a user chooses; its error is E_USAGE.
func (t *Timer) Validate() error {
	switch {
	case t.Interval < MinTimerInterval || t.Interval > MaxTimerInterval:
		return Errorf(CodeUsage, "the interval is %s, not between %s and %s",
			duration.Text(t.Interval), duration.Text(MinTimerInterval), duration.Text(MaxTimerInterval)).
			WithHint("for example: --interval 30")
	case strings.TrimSpace(t.Message) == "":
		return Errorf(CodeUsage, "the message is empty").WithHint("for example: --message check")
	case len(t.Message) > timerMessageLimit:
		return Errorf(CodeUsage, "the message has %d bytes, and a timer's has at most %d", len(t.Message), timerMessageLimit)
	case strings.ContainsFunc(t.Message, func(r rune) bool { return r == utf8.RuneError || unicode.IsControl(r) && r != '\n' && r != '\t' }):
		return Errorf(CodeUsage, "the message %q holds what no agent takes; a message is plain text, newlines and tabs", t.Message)
	}
	return CheckWord("timer name", t.Name)
}
