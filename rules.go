package agency

import (
	"strings"
	"time"
)

// Rule is one row of the table by which statuses are decided. Two labels can share a number.
type Rule struct {
	Number int
	Label  Label
	When   string
	holds  func(v *view) (finding, bool)
}

// rules are the rows in their order: the first that holds decides.
var rules = []Rule{
	{1, Broken, "the record cannot be read, or disagrees with its snapshot", (*view).broken},
	{2, LabelRemoving, "a removal is under way, or was cut off and is finished by the next daemon", (*view).removing},
	{3, Merged, "`merged_at` is set", (*view).merged},
	{4, Abandoned, "the `abandoned` flag", (*view).abandoned},
	{5, LabelFailed, "the newest attempt failed or was lost, or its setup failed", (*view).failed},
	{6, NeedsAttention, "flagged, and it has asked for nothing since", (*view).flagged},
	{7, LabelQueued, "the attempt has not started", (*view).queued},
	{8, NeedsInput, "it asks for a permission or an answer, or its word is needs_input; also after a clean exit", (*view).asks},
	{9, ReadyForReview, "its word is ready_for_review, alive, ended cleanly or stopped", (*view).offers},
	{10, Blocked, "its word is blocked, alive or ended cleanly", (*view).blocked},
	{11, LabelCompleted, "ended, and nothing above", (*view).completed},
	{11, LabelKilled, "ended, and nothing above", (*view).killed},
	{12, Stalled, "alive, at work or unknown, and no sign of how it does for 15 minutes (`[watchdog] stall_threshold`), or its wrapper does not answer", (*view).stalled},
	{13, Waiting, "alive with a terminal, its turn ended, and it did not say what it needs", (*view).waiting},
	{14, Working, "alive and at work", (*view).working},
	{15, Active, "alive, and nothing known", (*view).active},
	{16, Idle, "nothing known, and no session", (*view).idle},
}

// piece is a part of what is known of a run.
type piece int

const (
	pieceNone piece = iota
	pieceRecord
	pieceProcess
	pieceRequest
	pieceContract
	pieceReport
	pieceMessage
	pieceTurn
	pieceSilence
)

// finding is what a rule that holds rests on.
type finding struct {
	piece   piece
	by      By
	at      time.Time
	text    string
	request *Request
}

// view is what the rules look at: the facts, and what is worked out of them once.
type view struct {
	Facts
	now       time.Time
	attempt   *Attempt
	situation *Situation
	contract  *Contract
	changed   time.Time // when the attempt reached the state it is in
	heard     time.Time // the newest sign of how the agent does
	saying    Label     // what the agent said last, if that waits for somebody; empty when nothing stands
	said      finding
}

func newView(f Facts, now time.Time) view {
	v := view{Facts: f, now: now}
	if f.Run == nil {
		return v
	}
	v.attempt = &f.Run.Attempt
	v.situation, v.contract = &v.attempt.Situation, v.attempt.OwnWord()
	v.changed = v.attempt.lastChange()
	v.heard = v.attempt.heard(v.changed)
	if label, said := v.standing(); v.counts(label) {
		v.saying, v.said = label, said
	}
	return v
}

// counts says whether what an agent said counts in the state that its attempt is in. Who stopped it has no use for its question,
// but for the work that it offers.
func (v *view) counts(label Label) bool {
	switch v.attempt.State {
	case Running, Completed:
		return true
	case Killed:
		return label == ReadyForReview
	default:
		return false
	}
}

// status is what people see when a rule decides.
func (v *view) status(r *Rule, f finding) Status {
	s := Status{Label: r.Label, Decided: f.by, Since: f.at, Summary: f.text, Request: f.request}
	if v.attempt != nil && v.attempt.Word.Problem != "" {
		s.Problem = problemPrefix + v.attempt.Word.Problem
	}
	if v.attempt != nil && v.frozen() {
		s.Problem = frozenProblem // whatever the agent said before, of now nothing is known
	}
	return s
}

const frozenProblem = "unknown: its wrapper does not answer"

const problemPrefix = "invalid status file: "

func (v *view) alive() bool { return v.attempt.State == Running }

func (v *view) record(at time.Time, text string) finding {
	return finding{piece: pieceRecord, by: ByRecord, at: at, text: text}
}

func (v *view) process(text string) finding {
	return finding{piece: pieceProcess, by: ByProcess, at: v.changed, text: text}
}

func (v *view) broken() (finding, bool) {
	return v.record(time.Time{}, v.RecordProblem), v.RecordProblem != "" || v.Run == nil
}

func (v *view) removing() (finding, bool) {
	if v.Run.Removing == nil || v.Run.RemovedAt != nil {
		return finding{}, false
	}
	return v.record(v.Run.Removing.At, "(agency rm)"), true
}

func (v *view) merged() (finding, bool) {
	if v.Run.MergedAt == nil {
		return finding{}, false
	}
	return v.record(*v.Run.MergedAt, lastWord(v.contract)), true
}

func (v *view) abandoned() (finding, bool) {
	return v.record(v.changed, lastWord(v.contract)), v.Run.Abandoned
}

func (v *view) failed() (finding, bool) {
	if v.attempt.State != Failed {
		return finding{}, false
	}
	return v.process(failureSummary(v.attempt)), true
}

// flagged yields to what is asked after the flag: whoever looks at the run has to answer that. What was asked before is behind the
// flag, and can be answered all the same.
func (v *view) flagged() (finding, bool) {
	f := v.Run.Flag
	if f == nil {
		return finding{}, false
	}
	asked, asks := v.asks()
	found := v.record(f.At, f.Reason)
	if asks {
		found.request = asked.request
	}
	return found, !asks || !asked.at.After(f.At)
}

func (v *view) queued() (finding, bool) { return v.process("(starting)"), v.attempt.State == Queued }

// asks holds for what the agent's program asks, and else for what the agent says.
func (v *view) asks() (finding, bool) {
	if v.open() {
		r := &v.situation.Requests[0]
		return finding{piece: pieceRequest, by: By(r.Source), at: r.At, text: r.Summary(), request: r}, true
	}
	return v.said, v.saying == NeedsInput
}

// open says that the agent's program asks something that somebody could answer. One that ended can be answered only when
// it had no terminal, and left because nobody was there.
func (v *view) open() bool {
	left := v.attempt.State == Completed && v.attempt.Headless
	return (v.alive() || left) && len(v.situation.Requests) > 0
}

func (v *view) offers() (finding, bool) { return v.said, v.saying == ReadyForReview }

func (v *view) blocked() (finding, bool) { return v.said, v.saying == Blocked }

func (v *view) completed() (finding, bool) {
	return v.process(lastWord(v.contract)), v.attempt.State == Completed
}

func (v *view) killed() (finding, bool) { return v.process("(stopped)"), v.attempt.State == Killed }

// stalled counts from the newest sign of how the agent does, by the clock of who observed it. Of one whose wrapper does not answer
// nothing is known.
func (v *view) stalled() (finding, bool) {
	if v.frozen() {
		return finding{piece: pieceProcess, by: ByProcess, at: v.SilentSince, text: "(" + frozenProblem + ")"}, true
	}
	quiet, limit := v.now.Sub(v.heard), v.stallThreshold()
	if !v.alive() || limit <= 0 || quiet < limit || v.now.Before(v.situation.QuietUntil) {
		return finding{}, false
	}
	text := "(no activity for " + ShortDuration(quiet) + ")"
	return finding{piece: pieceSilence, by: ByClock, at: v.heard, text: text}, !v.rests() && (v.atWork() || !v.SessionGone)
}

func (v *view) frozen() bool { return v.alive() && !v.SilentSince.IsZero() }

func (v *view) stallThreshold() time.Duration {
	if v.Run.StallAfterMS > 0 {
		return time.Duration(v.Run.StallAfterMS) * time.Millisecond
	}
	return v.StallThreshold
}

// atWork says that the agent has begun something and did not end it, or says so.
func (v *view) atWork() bool { return v.inTurn() || v.contract != nil }

// inTurn says that the agent's turn goes on, or that it is about to leave after its end.
func (v *view) inTurn() bool {
	return v.situation.Turn == TurnWorking || v.situation.Turn == TurnEnded && v.attempt.Headless
}

func (v *view) turn(text string) finding {
	return finding{piece: pieceTurn, by: By(v.situation.TurnBy), at: v.situation.TurnAt, text: text}
}

// rests says that the agent's turn ended and that it takes another. One without a terminal leaves instead, and is at work
// until it has left.
func (v *view) rests() bool { return v.situation.Turn == TurnEnded && !v.attempt.Headless }

func (v *view) waiting() (finding, bool) {
	if !v.alive() || !v.rests() {
		return finding{}, false
	}
	return v.turn(waitingSummary(v.attempt)), true
}

func (v *view) working() (finding, bool) {
	switch retry := v.situation.Retry; {
	case !v.alive() || !v.atWork():
		return finding{}, false
	case v.situation.Turn == TurnWorking && retry != nil:
		return v.turn("(" + retry.words() + "; trying again)"), true
	case v.inTurn():
		return v.turn(progress(v.contract)), true
	case v.contract.Status != SaysWorking && v.attempt.InputAt != nil:
		return finding{piece: pieceMessage, by: ByMessage, at: *v.attempt.InputAt, text: progress(v.contract)}, true
	default:
		return finding{piece: pieceContract, by: ByContract, at: v.heard, text: progress(v.contract)}, true
	}
}

func (v *view) active() (finding, bool) {
	text := ""
	if v.attempt.Word.Problem != "" {
		text = problemPrefix + v.attempt.Word.Problem
	}
	return v.process(text), v.alive() && !v.SessionGone
}

func (v *view) idle() (finding, bool) { return v.process(""), true }

// standing is the newest of what the agent says in its contract and by a report, if it waits for somebody by that and
// nobody has answered.
func (v *view) standing() (Label, finding) {
	label, found := Label(""), finding{}
	if c := v.contract; c != nil {
		label, found = c.standing(v.attempt.Word.At)
	}
	if r := v.situation.Reported; r != nil && !r.At.Before(found.at) {
		label, found = r.Report.label(), finding{piece: pieceReport, by: By(FromReport), at: r.At, text: r.words()}
	}
	if v.answered(label, found.at) || v.prompted(found.at) {
		return "", finding{}
	}
	return label, found
}

// answered says that a message came after what the agent said. It answers a question; only a prompt that the agent took
// up undoes an offer.
func (v *view) answered(label Label, at time.Time) bool {
	return label != ReadyForReview && v.attempt.InputAt != nil && at.Before(*v.attempt.InputAt)
}

// prompted says that the agent was given something to do after what it said.
func (v *view) prompted(at time.Time) bool { return at.Before(v.situation.PromptAt) }

// standing is what a contract that was seen at a time asks for.
func (c *Contract) standing(at time.Time) (Label, finding) {
	found := finding{piece: pieceContract, by: ByContract, at: at}
	switch c.Status {
	case SaysNeedsInput:
		found.text = first(c.Questions)
		return NeedsInput, found
	case SaysReadyForReview:
		found.text = c.Summary
		return ReadyForReview, found
	case SaysBlocked:
		found.text = first(c.Blockers)
		return Blocked, found
	default:
		return "", found
	}
}

// label is the status that a report asks for.
func (r Report) label() Label {
	switch r {
	case ReportsHelp:
		return NeedsInput
	case ReportsComplete:
		return ReadyForReview
	case ReportsError:
		return Blocked
	default:
		return ""
	}
}

// words are what an agent reported, also when it did not say why.
func (r *Reported) words() string {
	if strings.TrimSpace(r.Text) == "" {
		return "(reported " + string(r.Report) + ")"
	}
	return r.Text
}

// lastChange is when the attempt reached the state that it is in.
func (a *Attempt) lastChange() time.Time {
	switch {
	case a.EndedAt != nil:
		return *a.EndedAt
	case a.StartedAt != nil:
		return *a.StartedAt
	default:
		return a.CreatedAt
	}
}

// heard is when there was last a sign of how the agent does. Who sends it a message gives it the time to answer.
func (a *Attempt) heard(changed time.Time) time.Time {
	heard := changed
	for _, t := range []time.Time{a.Word.At, a.Situation.HeardAt} {
		if t.After(heard) {
			heard = t
		}
	}
	if a.InputAt != nil && a.InputAt.After(heard) {
		heard = *a.InputAt
	}
	return heard
}
