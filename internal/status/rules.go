package status

import (
	"strings"
	"time"

	"agency"
	"agency/internal/duration"
)

// Rule is one row of the table by which statuses are decided. Two labels can share a number.
type Rule struct {
	Number int
	Label  agency.Label
	When   string
	holds  func(v *view) (basis, bool)
}

// rules are the rows in their order: the first that holds decides.
var rules = []Rule{
	{1, agency.Broken, "the record cannot be read, or disagrees with its snapshot", (*view).broken},
	{2, agency.LabelRemoving, "a removal is under way, or was cut off and is finished by the next daemon", (*view).removing},
	{3, agency.Merged, "`merged_at` is set", (*view).merged},
	{4, agency.Abandoned, "the `abandoned` flag", (*view).abandoned},
	{5, agency.LabelFailed, "the newest attempt failed or was lost, or its setup failed", (*view).failed},
	{6, agency.NeedsAttention, "flagged, and it has asked for nothing since", (*view).flagged},
	{7, agency.LabelQueued, "the attempt has not started", (*view).queued},
	{8, agency.NeedsInput, "it asks for a permission or an answer, or its word is needs_input; also after a clean exit", (*view).asks},
	{9, agency.ReadyForReview, "its word is ready_for_review, alive, ended cleanly or stopped", (*view).offers},
	{10, agency.Blocked, "its word is blocked, alive or ended cleanly", (*view).blocked},
	{11, agency.LabelCompleted, "ended, and nothing above", (*view).completed},
	{11, agency.LabelKilled, "ended, and nothing above", (*view).killed},
	{12, agency.Stalled, "alive, at work or unknown, and no sign of how it does for 15 minutes (`[watchdog] stall_threshold`), or its wrapper does not answer", (*view).stalled},
	{13, agency.Waiting, "alive with a terminal, its turn ended, and it did not say what it needs", (*view).waiting},
	{14, agency.Working, "alive and at work", (*view).working},
	{15, agency.Active, "alive, and nothing known", (*view).active},
	{16, agency.Idle, "nothing known, and no session", (*view).idle},
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
	pieceInactivity
)

// basis is what a rule that holds rests on.
type basis struct {
	piece   piece
	by      agency.DecidedBy
	at      time.Time
	text    string
	request *agency.Request
}

// view is what the rules look at: the facts, and what is worked out of them once.
type view struct {
	Facts
	now        time.Time
	attempt    *agency.Attempt
	agentState *agency.AgentState
	contract   *agency.Contract
	changed    time.Time    // when the attempt reached the state it is in
	heard      time.Time    // the newest sign of how the agent does
	saying     agency.Label // what the agent said last, if that waits for somebody; empty when nothing stands
	said       basis
}

func newView(f Facts, now time.Time) view {
	v := view{Facts: f, now: now}
	if f.Run == nil {
		return v
	}
	v.attempt = &f.Run.Attempt
	v.agentState, v.contract = &v.attempt.AgentState, v.attempt.OwnWord()
	v.changed = lastChange(v.attempt)
	v.heard = heard(v.attempt, v.changed)
	if label, said := v.pending(); v.counts(label) {
		v.saying, v.said = label, said
	}
	return v
}

// counts says whether what an agent said counts in the state that its attempt is in. Who stopped it has no use for its question,
// but for the work that it offers.
func (v *view) counts(label agency.Label) bool {
	switch v.attempt.State {
	case agency.Running, agency.Completed:
		return true
	case agency.Killed:
		return label == agency.ReadyForReview
	default:
		return false
	}
}

// status is what people see when a rule decides.
func (v *view) status(r *Rule, f basis) agency.Status {
	s := agency.Status{Label: r.Label, Decided: f.by, Since: f.at, Summary: f.text, Request: f.request}
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

func (v *view) alive() bool { return v.attempt.State == agency.Running }

func (v *view) record(at time.Time, text string) basis {
	return basis{piece: pieceRecord, by: agency.ByRecord, at: at, text: text}
}

func (v *view) process(text string) basis {
	return basis{piece: pieceProcess, by: agency.ByProcess, at: v.changed, text: text}
}

func (v *view) broken() (basis, bool) {
	return v.record(time.Time{}, v.RecordProblem), v.RecordProblem != "" || v.Run == nil
}

func (v *view) removing() (basis, bool) {
	if v.Run.Removing == nil || v.Run.RemovedAt != nil {
		return basis{}, false
	}
	return v.record(v.Run.Removing.At, "(agency rm)"), true
}

func (v *view) merged() (basis, bool) {
	if v.Run.MergedAt == nil {
		return basis{}, false
	}
	return v.record(*v.Run.MergedAt, lastWord(v.contract)), true
}

func (v *view) abandoned() (basis, bool) {
	return v.record(v.changed, lastWord(v.contract)), v.Run.Abandoned
}

func (v *view) failed() (basis, bool) {
	if v.attempt.State != agency.Failed {
		return basis{}, false
	}
	return v.process(failureSummary(v.attempt)), true
}

// flagged yields to what is asked after the flag: whoever looks at the run has to answer that. What was asked before is behind the
// flag, and can be answered all the same.
func (v *view) flagged() (basis, bool) {
	f := v.Run.Flag
	if f == nil {
		return basis{}, false
	}
	asked, asks := v.asks()
	found := v.record(f.At, f.Reason)
	if asks {
		found.request = asked.request
	}
	return found, !asks || !asked.at.After(f.At)
}

func (v *view) queued() (basis, bool) {
	return v.process("(starting)"), v.attempt.State == agency.Queued
}

// asks holds for what the agent's program asks, and else for what the agent says.
func (v *view) asks() (basis, bool) {
	if v.open() {
		r := &v.agentState.Requests[0]
		return basis{piece: pieceRequest, by: agency.DecidedBy(r.Source), at: r.At, text: r.Summary(), request: r}, true
	}
	return v.said, v.saying == agency.NeedsInput
}

// open says that the agent's program asks something that somebody could answer. One that ended can be answered only when
// it had no terminal, and left because nobody was there.
func (v *view) open() bool {
	left := v.attempt.State == agency.Completed && v.attempt.Headless
	return (v.alive() || left) && len(v.agentState.Requests) > 0
}

func (v *view) offers() (basis, bool) { return v.said, v.saying == agency.ReadyForReview }

func (v *view) blocked() (basis, bool) { return v.said, v.saying == agency.Blocked }

func (v *view) completed() (basis, bool) {
	return v.process(lastWord(v.contract)), v.attempt.State == agency.Completed
}

func (v *view) killed() (basis, bool) {
	return v.process("(stopped)"), v.attempt.State == agency.Killed
}

// stalled counts from the newest sign of how the agent does, by the clock of who observed it. Of one whose wrapper does not answer
// nothing is known.
func (v *view) stalled() (basis, bool) {
	if v.frozen() {
		return basis{piece: pieceProcess, by: agency.ByProcess, at: v.SilentSince, text: "(" + frozenProblem + ")"}, true
	}
	quiet, limit := v.now.Sub(v.heard), v.stallThreshold()
	if !v.alive() || limit <= 0 || quiet < limit || v.now.Before(v.agentState.QuietUntil) {
		return basis{}, false
	}
	text := "(no activity for " + duration.Short(quiet) + ")"
	return basis{piece: pieceInactivity, by: agency.ByClock, at: v.heard, text: text}, !v.rests() && (v.atWork() || !v.SessionGone)
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
	return v.agentState.Turn == agency.TurnWorking || v.agentState.Turn == agency.TurnEnded && v.attempt.Headless
}

func (v *view) turn(text string) basis {
	return basis{piece: pieceTurn, by: agency.DecidedBy(v.agentState.TurnBy), at: v.agentState.TurnAt, text: text}
}

// rests says that the agent's turn ended and that it takes another. One without a terminal leaves instead, and is at work
// until it has left.
func (v *view) rests() bool { return v.agentState.Turn == agency.TurnEnded && !v.attempt.Headless }

func (v *view) waiting() (basis, bool) {
	if !v.alive() || !v.rests() {
		return basis{}, false
	}
	return v.turn(waitingSummary(v.attempt)), true
}

func (v *view) working() (basis, bool) {
	switch retry := v.agentState.Retry; {
	case !v.alive() || !v.atWork():
		return basis{}, false
	case v.agentState.Turn == agency.TurnWorking && retry != nil:
		return v.turn("(" + retry.Words() + "; trying again)"), true
	case v.inTurn():
		return v.turn(progress(v.contract)), true
	case v.contract.Status != agency.ReportedWorking && v.attempt.InputAt != nil:
		return basis{piece: pieceMessage, by: agency.ByMessage, at: *v.attempt.InputAt, text: progress(v.contract)}, true
	default:
		return basis{piece: pieceContract, by: agency.ByContract, at: v.heard, text: progress(v.contract)}, true
	}
}

func (v *view) active() (basis, bool) {
	text := ""
	if v.attempt.Word.Problem != "" {
		text = problemPrefix + v.attempt.Word.Problem
	}
	return v.process(text), v.alive() && !v.SessionGone
}

func (v *view) idle() (basis, bool) { return v.process(""), true }

// pending is the newest of what the agent says in its contract and by a report, if it waits for somebody by that and
// nobody has answered.
func (v *view) pending() (agency.Label, basis) {
	label, found := agency.Label(""), basis{}
	if c := v.contract; c != nil {
		label, found = claimOf(c, v.attempt.Word.At)
	}
	if r := v.agentState.Reported; r != nil && !r.At.Before(found.at) {
		label, found = reportLabel(r.Report), basis{piece: pieceReport, by: agency.DecidedBy(agency.FromReport), at: r.At, text: reportText(r)}
	}
	if v.answered(label, found.at) || v.prompted(found.at) {
		return "", basis{}
	}
	return label, found
}

// answered says that a message came after what the agent said. It answers a question; only a prompt that the agent took
// up undoes an offer.
func (v *view) answered(label agency.Label, at time.Time) bool {
	return label != agency.ReadyForReview && v.attempt.InputAt != nil && at.Before(*v.attempt.InputAt)
}

// prompted says that the agent was given something to do after what it said.
func (v *view) prompted(at time.Time) bool { return at.Before(v.agentState.PromptAt) }

// claimOf returns what a contract that was seen at a time asks for; the label is empty when it asks for nothing.
func claimOf(c *agency.Contract, at time.Time) (agency.Label, basis) {
	found := basis{piece: pieceContract, by: agency.ByContract, at: at}
	switch c.Status {
	case agency.ReportedNeedsInput:
		found.text = first(c.Questions)
		return agency.NeedsInput, found
	case agency.ReportedReadyForReview:
		found.text = c.Summary
		return agency.ReadyForReview, found
	case agency.ReportedBlocked:
		found.text = first(c.Blockers)
		return agency.Blocked, found
	default:
		return "", found
	}
}

// reportLabel returns the status that a report asks for; empty when it asks for none.
func reportLabel(r agency.Report) agency.Label {
	switch r {
	case agency.ReportsHelp:
		return agency.NeedsInput
	case agency.ReportsComplete:
		return agency.ReadyForReview
	case agency.ReportsError:
		return agency.Blocked
	default:
		return ""
	}
}

// reportText returns what an agent reported, also when it did not say why.
func reportText(r *agency.Reported) string {
	if strings.TrimSpace(r.Text) == "" {
		return "(reported " + string(r.Report) + ")"
	}
	return r.Text
}

// lastChange returns when the attempt reached the state that it is in.
func lastChange(a *agency.Attempt) time.Time {
	switch {
	case a.EndedAt != nil:
		return *a.EndedAt
	case a.StartedAt != nil:
		return *a.StartedAt
	default:
		return a.CreatedAt
	}
}

// heard returns when there was last a sign of how the agent does. A message gives the agent the time to answer.
func heard(a *agency.Attempt, changed time.Time) time.Time {
	newest := changed
	for _, t := range []time.Time{a.Word.At, a.AgentState.HeardAt} {
		if t.After(newest) {
			newest = t
		}
	}
	if a.InputAt != nil && a.InputAt.After(newest) {
		newest = *a.InputAt
	}
	return newest
}
