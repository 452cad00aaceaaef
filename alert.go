package agency

import (
	"encoding/json"
	"fmt"
	"time"
)

// AlertKind says why somebody must act. The words are those of the messages that go out.
type AlertKind string

// The kinds of alerts about workers, in the order in which they win when several hold.
const (
	AlertLost       AlertKind = "worker.lost"        // the worker disappeared, or never started
	AlertError      AlertKind = "worker.error"       // it failed, or its model refuses it
	AlertNeedsInput AlertKind = "worker.needs_input" // it waits for somebody
	AlertComplete   AlertKind = "worker.complete"    // its work can be looked at
	AlertStuck      AlertKind = "worker.stuck"       // it is said to work, and nothing moves
)

// AlertKinds are all kinds about workers, the first to win first.
func AlertKinds() []AlertKind {
	return []AlertKind{AlertLost, AlertError, AlertNeedsInput, AlertComplete, AlertStuck}
}

// Words are what a kind says of a worker, a session or a disk.
func (k AlertKind) Words() string {
	switch k {
	case AlertLost:
		return "was lost"
	case AlertError:
		return "failed"
	case AlertNeedsInput:
		return "waits for you"
	case AlertComplete:
		return "is done"
	case AlertStuck:
		return "hangs"
	case AlertSessionPaused, AlertSessionWaiting:
		return "waits for you"
	case AlertSessionFailed:
		return "failed"
	case AlertHostDisk:
		return "is nearly full"
	}
	return string(k)
}

// PromptType is what a worker that needs input waits for.
type PromptType string

// The types of prompts.
const (
	PromptConfirmation PromptType = "confirmation" // a dialog of its program
	PromptPermission   PromptType = "permission"
	PromptInput        PromptType = "input"
	PromptBlocked      PromptType = "blocked"
	PromptTurnEnded    PromptType = "turn_ended" // it stopped without a word
	PromptAttention    PromptType = "attention"  // the run was flagged
)

// TurnEndedPatience is how long an agent may rest after a turn, without a word, before somebody is told: a person who
// talks with it answers sooner.
const TurnEndedPatience = time.Minute

// Condition is why somebody must act on a worker now. Two conditions with the same kind and cause are one episode.
type Condition struct {
	Kind       AlertKind
	Cause      string // what tells this episode from a later one of the same kind
	Since      time.Time
	PromptType PromptType
	PromptID   string     // of what can be answered; empty when nothing can
	Class      ErrorClass // of an error of the model, or of a line of output
	Text       string     // the question, the error, the last words; untrusted
	// FirmAt is until when better words for a request may come, or another one before it; zero is now.
	FirmAt time.Time
}

// WordsPatience is how long an alert about a request waits for the words of what is asked.
const WordsPatience = 300 * time.Millisecond

// PrintedPatience is how long after the last line of output that is an error a worker must be seen to do something, so that
// the error is past.
const PrintedPatience = 5 * time.Minute

// Alarm is the condition of a worker, from the same status that people are shown: kind is empty while nobody must act. active
// is its newest sign of life. Stuck is not among the conditions: it needs a memory, which is the watchdog's.
func Alarm(r *Run, s Status, active, now time.Time) Condition {
	a := &r.Attempt
	is := func(kind AlertKind, cause string) Condition {
		return Condition{Kind: kind, Cause: cause, Since: s.Since, Text: s.Summary}
	}
	switch s.Label {
	case LabelFailed:
		if f := r.Flag; f != nil && f.At.After(s.Since) {
			return f.condition("") // who was told of the failure may have flagged it for somebody else
		}
		if a.ErrorCode == CodeRunnerDisappeared || a.EndedBy == EndedByStartFailed || a.StartedAt == nil {
			return is(AlertLost, "lost")
		}
		return is(AlertError, "ended")
	case NeedsAttention:
		return r.Flag.condition(s.PromptID())
	case NeedsInput:
		c := is(AlertNeedsInput, "asks "+stamp(s.Since))
		c.PromptType, c.PromptID = PromptInput, s.PromptID()
		if s.Request != nil {
			// Without its id, which a source that knows more may tell later: that is no new episode.
			c.Cause, c.PromptType = "request "+stamp(s.Request.At), s.Request.promptType()
			if !a.Situation.firm(s.Request) {
				c.FirmAt = s.Request.At.Add(WordsPatience)
			}
		}
		return c
	case Blocked:
		if rep := a.Situation.Reported; s.Decided == By(FromReport) && rep != nil && rep.Report == ReportsError {
			return is(AlertError, "reported "+stamp(s.Since))
		}
		c := is(AlertNeedsInput, "blocked "+stamp(s.Since))
		c.PromptType, c.PromptID = PromptBlocked, s.PromptID()
		return c
	case ReadyForReview:
		if a.State == Killed {
			return Condition{} // who stopped it knows
		}
		return is(AlertComplete, "offered "+stamp(s.Since))
	case LabelCompleted:
		return is(AlertComplete, "ended")
	case Waiting:
		if f := a.Situation.Failure; f != nil {
			c := is(AlertError, "model "+string(f.Class)+" "+stamp(f.At))
			c.Class, c.Text = f.Class, f.Words()
			return c
		}
		if c := a.printedError(active); c.Kind != "" {
			return c
		}
		if now.Sub(s.Since) >= TurnEndedPatience {
			c := is(AlertNeedsInput, "rests "+stamp(s.Since))
			c.PromptType, c.PromptID = PromptTurnEnded, s.PromptID()
			return c
		}
	case Working, Active, Stalled:
		return a.printedError(active)
	default: // nobody has to act
	}
	return Condition{}
}

// printedError is the condition of an agent that printed an error. All that it says by other means comes first.
func (a *Attempt) printedError(active time.Time) Condition {
	if !a.ErrorStands(active) {
		return Condition{}
	}
	p := a.Situation.Printed
	return Condition{Kind: AlertError, Cause: "output " + stamp(p.At), Since: p.At, Class: p.Class, Text: p.Text}
}

// ErrorStands says that the agent printed an error that is not past: no prompt and no message came since, and it was not seen
// to go on; active is its newest sign of life.
func (a *Attempt) ErrorStands(active time.Time) bool {
	s := &a.Situation
	answered := a.InputAt != nil && a.InputAt.After(s.PrintedAt)
	return s.Printed != nil && !answered && active.Sub(s.PrintedAt) < PrintedPatience
}

// NextLook is when a condition may come up by time alone; zero when it cannot.
func NextLook(s Status) time.Time {
	if s.Label == Waiting {
		return s.Since.Add(TurnEndedPatience)
	}
	return time.Time{}
}

// PromptID names one request of one moment, so that an answer to an older one is refused.
func (r *Request) PromptID() string { return r.ID + "@" + stamp(r.At) }

func (r *Request) promptType() PromptType {
	switch r.Kind {
	case AsksPermission:
		return PromptPermission
	case AsksDialog:
		return PromptConfirmation
	case AsksQuestion:
	}
	return PromptInput
}

func stamp(t time.Time) string { return fmt.Sprint(t.UnixMilli()) }

// Watchable says that a run with this status could be stuck: it is said to work.
func Watchable(l Label) bool { return l == Working || l == Active || l == Stalled }

// Alert is one episode in which somebody must act on a worker, a session or the machine: it opens once, may be acknowledged or snoozed, and
// is resolved when its condition goes. Where that only hid behind another one, the same alert is open again afterwards.
type Alert struct {
	ID      string    `json:"id"`
	Seq     int64     `json:"seq"`
	Kind    AlertKind `json:"msg_type"`
	RunID   RunID     `json:"run_id"`     // empty unless of a worker
	Session SessionID `json:"session_id"` // empty unless of a session
	Attempt int       `json:"attempt"`    // 0 unless of a worker
	Cause   string    `json:"cause"`
	// Payload is a JSON object. Of a worker it has worker_id, worker_name, attempt, repo and what the kind adds.
	Payload json.RawMessage `json:"payload"`

	OpenedAt     time.Time  `json:"opened_at"`
	ResolvedAt   *time.Time `json:"resolved_at"`
	AckedAt      *time.Time `json:"acked_at"`
	AckedBy      string     `json:"acked_by"`
	SnoozedUntil *time.Time `json:"snoozed_until"`
	// Told counts how often somebody was told, and Level how far up it went: 0 the owner, 1 the orchestrator, 2 people.
	Told   int        `json:"told"`
	Level  int        `json:"level"`
	ToldAt *time.Time `json:"told_at"`
	// Recipients are who was told last; empty means nobody could be.
	Recipients []string `json:"recipients"`
}

// LongestSnooze is how long an alert can be put off at most.
const LongestSnooze = 30 * 24 * time.Hour

// Open says that somebody must still act.
func (a *Alert) Open() bool { return a.ResolvedAt == nil }

// AlertText is what an alert is about, from its payload: the question, the error, the last words. It is untrusted.
func AlertText(payload json.RawMessage) string {
	var p struct {
		Prompt string `json:"prompt_preview"`
		Error  string `json:"error_context"`
		Done   string `json:"completion_message"`
		Text   string `json:"text"` // of a session or the machine
		Silent int    `json:"duration_secs"`
	}
	if json.Unmarshal(payload, &p) != nil {
		return ""
	}
	for _, text := range []string{p.Prompt, p.Error, p.Done, p.Text} {
		if text != "" {
			return text
		}
	}
	if p.Silent > 0 {
		return "nothing moves for " + ShortDuration(time.Duration(p.Silent)*time.Second)
	}
	return ""
}

// AlertFilter chooses alerts.
type AlertFilter struct {
	IDs      []string  // none are all
	Run      RunID     // empty is every run
	Session  SessionID // empty is every session
	Host     bool      // only those of the machine
	Repo     string    // fingerprint, with those of the machine; empty is every repository
	Resolved bool      // resolved ones too
	After    int64     // only those with a later Seq
}
