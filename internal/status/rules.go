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
	{6, agency.NeedsAttention, "flagged, and it has not asked for anything since", (*view).flagged},
	{7, agency.LabelQueued, "the attempt has not started", (*view).queued},
	{8, agency.NeedsInput, "it asks for a permission or an answer, or reported needs_input; also after a clean exit", (*view).needsInput},
	{9, agency.ReadyForReview, "reported ready_for_review, and is alive, ended cleanly or was stopped", (*view).isReady},
	{10, agency.Blocked, "reported blocked, and is alive or ended cleanly", (*view).blocked},
	{11, agency.LabelCompleted, "ended, and nothing above", (*view).completed},
	{11, agency.LabelKilled, "ended, and nothing above", (*view).killed},
	{12, agency.Stalled, "alive, at work or unknown, and no sign of progress for 15 minutes (`[watchdog] stall_threshold`), or its wrapper does not answer", (*view).stalled},
	{13, agency.Waiting, "alive with a terminal, its turn ended, and it did not say what it needs", (*view).waiting},
	{14, agency.Working, "alive and at work", (*view).working},
	{15, agency.Active, "alive, and nothing known", (*view).active},
	{16, agency.Idle, "nothing known, and no session", (*view).idle},
}

// piece is a part of the knowledge about a run.
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

// basis is the ground on which a rule holds.
type basis struct {
	piece   piece
	by      agency.DecidedBy
	at      time.Time
	text    string
	request *agency.Request
}

// view is the input of the rules: the facts, and values computed from them once.
type view struct {
	Facts
	now        time.Time
	attempt    *agency.Attempt
	agentState *agency.AgentState
	contract   *agency.Contract
	changed    time.Time    // when the attempt reached its current state
	heard      time.Time    // the newest sign of the agent's state
	claim      agency.Label // the agent's newest report that still needs action; empty when none
	claimed    basis
}

func newView(f Facts, now time.Time) view {
	v := view{Facts: f, now: now}
	if f.Run == nil {
		return v
	}
	v.attempt = &f.Run.Attempt
	v.agentState, v.contract = &v.attempt.AgentState, v.attempt.OwnReport()
	v.changed = lastChange(v.attempt)
	v.heard = heard(v.attempt, v.changed)
	if label, said := v.pending(); v.counts(label) {
		v.claim, v.claimed = label, said
	}
	return v
}

// counts reports whether a report of the agent counts in the state of its attempt. After a stop by
// request its questions no longer count, but the work that it offers does.
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

// status returns the status that users see when a rule decides.
func (v *view) status(r *Rule, f basis) agency.Status {
	s := agency.Status{Label: r.Label, Decided: f.by, Since: f.at, Summary: f.text, Request: f.request}
	if v.attempt != nil && v.attempt.Reported.Problem != "" {
		s.Problem = problemPrefix + v.attempt.Reported.Problem
	}
	if v.attempt != nil && v.frozen() {
		s.Problem = frozenProblem // whatever the agent reported before, its state now is unknown
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
	return v.record(*v.Run.MergedAt, lastReported(v.contract)), true
}

func (v *view) abandoned() (basis, bool) {
	return v.record(v.changed, lastReported(v.contract)), v.Run.Abandoned
}

func (v *view) failed() (basis, bool) {
	if v.attempt.State != agency.Failed {
		return basis{}, false
	}
	return v.process(failureSummary(v.attempt)), true
}

// flagged holds for a flag, but yields to a request made after it, which the user must
// answer. A request from before is behind the flag and can still be answered.
func (v *view) flagged() (basis, bool) {
	f := v.Run.Flag
	if f == nil {
		return basis{}, false
	}
	asked, asks := v.needsInput()
	found := v.record(f.At, f.Reason)
	if asks {
		found.request = asked.request
	}
	return found, !asks || !asked.at.After(f.At)
}

func (v *view) queued() (basis, bool) {
	return v.process("(starting)"), v.attempt.State == agency.Queued
}

// needsInput holds for a request of the agent's program, or else for a report of the agent.
func (v *view) needsInput() (basis, bool) {
	if v.open() {
		r := &v.agentState.Requests[0]
		return basis{piece: pieceRequest, by: agency.DecidedBy(r.Source), at: r.At, text: r.Summary(), request: r}, true
	}
	return v.claimed, v.claim == agency.NeedsInput
}

// open reports whether the agent's program has a request that can still be answered. If the program
// ended, this is only so when it had no terminal and exited because no answer came.
func (v *view) open() bool {
	left := v.attempt.State == agency.Completed && v.attempt.Headless
	return (v.alive() || left) && len(v.agentState.Requests) > 0
}

func (v *view) isReady() (basis, bool) { return v.claimed, v.claim == agency.ReadyForReview }

func (v *view) blocked() (basis, bool) { return v.claimed, v.claim == agency.Blocked }

func (v *view) completed() (basis, bool) {
	text := lastReported(v.contract)
	if c := v.contract; c != nil && c.Asks() && v.attempt.InputAt != nil && v.attempt.Reported.At.Before(*v.attempt.InputAt) {
		text = "" // it has its answer
	}
	return v.process(text), v.attempt.State == agency.Completed
}

func (v *view) killed() (basis, bool) {
	return v.process("(stopped)"), v.attempt.State == agency.Killed
}

// stalled counts from the newest sign of the agent's state, by the clock of the observer. Nothing
// is known of a run whose wrapper does not answer.
func (v *view) stalled() (basis, bool) {
	if v.frozen() {
		return basis{piece: pieceProcess, by: agency.ByProcess, at: v.UnresponsiveSince, text: "(" + frozenProblem + ")"}, true
	}
	quiet, limit := v.now.Sub(v.heard), v.stallThreshold()
	if !v.alive() || limit <= 0 || quiet < limit || v.now.Before(v.agentState.QuietUntil) {
		return basis{}, false
	}
	text := "(no activity for " + duration.Short(quiet) + ")"
	return basis{piece: pieceInactivity, by: agency.ByClock, at: v.heard, text: text}, !v.rests() && (v.atWork() || !v.SessionGone)
}

func (v *view) frozen() bool { return v.alive() && !v.UnresponsiveSince.IsZero() }

func (v *view) stallThreshold() time.Duration {
	if v.Run.StallAfterMS > 0 {
		return time.Duration(v.Run.StallAfterMS) * time.Millisecond
	}
	return v.StallThreshold
}

// atWork reports whether the agent began something and did not end it, or reports so.
func (v *view) atWork() bool { return v.inTurn() || v.contract != nil }

// inTurn reports whether the agent's turn continues, or the agent is about to exit after its end.
func (v *view) inTurn() bool {
	return v.agentState.Turn == agency.TurnWorking || v.agentState.Turn == agency.TurnEnded && v.attempt.Headless
}

// turnBy returns what reported the turn. agency itself knows that an agent rests when it started the agent
// without a message.
func turnBy(s *agency.AgentState) agency.DecidedBy {
	if s.TurnBy == "" {
		return agency.ByRecord
	}
	return agency.DecidedBy(s.TurnBy)
}

func (v *view) turn(text string) basis {
	return basis{piece: pieceTurn, by: turnBy(v.agentState), at: v.agentState.TurnAt, text: text}
}

// rests reports whether the agent's turn ended and it accepts another. An agent without a terminal
// exits instead, and is at work until then.
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
	if v.attempt.Reported.Problem != "" {
		text = problemPrefix + v.attempt.Reported.Problem
	}
	return v.process(text), v.alive() && !v.SessionGone
}

func (v *view) idle() (basis, bool) { return v.process(""), true }

// pending returns the newest of the agent's contract and report, if it needs action and has no
// answer yet.
func (v *view) pending() (agency.Label, basis) {
	label, found := agency.Label(""), basis{}
	if c := v.contract; c != nil {
		label, found = claimOf(c, v.attempt.Reported.At)
	}
	if r := v.agentState.Reported; r != nil && !r.At.Before(found.at) {
		label, found = reportLabel(r.Report), basis{piece: pieceReport, by: agency.DecidedBy(agency.FromReport), at: r.At, text: reportText(r)}
	}
	if v.answered(label, found.at) || v.prompted(found.at) {
		return "", basis{}
	}
	return label, found
}

// answered reports whether a message came after a report. It answers a question; an offer of work
// is only undone by a prompt that the agent took up.
func (v *view) answered(label agency.Label, at time.Time) bool {
	return label != agency.ReadyForReview && v.attempt.InputAt != nil && at.Before(*v.attempt.InputAt)
}

// prompted reports whether the agent was given a prompt after its report.
func (v *view) prompted(at time.Time) bool { return at.Before(v.agentState.PromptAt) }

// claimOf returns the label that a contract seen at a time claims; empty when it claims none.
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

// reportLabel returns the label that a report claims; empty when it claims none.
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

// reportText returns the text of a report, or a default when it has none.
func reportText(r *agency.Reported) string {
	if strings.TrimSpace(r.Text) == "" {
		return "(reported " + string(r.Report) + ")"
	}
	return r.Text
}

// lastChange returns when the attempt reached its current state.
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

// heard returns the time of the last sign of the agent's state. A message also counts: it gives the
// agent time to answer.
func heard(a *agency.Attempt, changed time.Time) time.Time {
	newest := changed
	for _, t := range []time.Time{a.Reported.At, a.AgentState.HeardAt} {
		if t.After(newest) {
			newest = t
		}
	}
	if a.InputAt != nil && a.InputAt.After(newest) {
		newest = *a.InputAt
	}
	return newest
}
