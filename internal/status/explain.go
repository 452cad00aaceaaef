package status

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"agency"
	"agency/internal/duration"
)

// finding is one known fact about a run, with the part of the record that it comes from.
type finding struct {
	agency.Finding
	piece piece
}

// Explain returns how Derive reaches its answer, by the same rules. It is pure and total.
func Explain(f Facts, now time.Time) agency.Explanation {
	seen := newView(f, now)
	v := explainer{&seen}
	e := agency.Explanation{Status: Derive(f, now), Findings: []agency.Finding{}, Unknown: []agency.UnknownEvent{}}
	deciding, outranked := v.rank(&e)
	for _, c := range v.findings() {
		if !c.At.IsZero() {
			c.AgeMS = max(0, now.Sub(c.At).Milliseconds())
		}
		switch rule := outranked[c.piece]; {
		case c.Ignored != "" || c.piece == pieceNone:
		case c.piece == deciding:
			c.Decided = true
			deciding = pieceNone // the first of its kind
		case rule != nil:
			c.Ignored = fmt.Sprintf("rule %d (%s) comes before rule %d (%s)", e.Rule, e.Status.Label, rule.Number, rule.Label)
		}
		e.Findings = append(e.Findings, c.Finding)
	}
	if v.agentState != nil {
		for _, name := range slices.Sorted(maps.Keys(v.agentState.Unknown)) {
			e.Unknown = append(e.Unknown, agency.UnknownEvent{Name: name, Count: v.agentState.Unknown[name]})
		}
	}
	return e
}

// explainer lists what a view shows and why it counts or does not.
type explainer struct{ *view }

// rank returns the piece on which the deciding rule rests and, for other pieces, the first rule
// that each would have decided.
func (v explainer) rank(e *agency.Explanation) (deciding piece, outranked map[piece]*Rule) {
	outranked = map[piece]*Rule{}
	for i := range rules {
		rule := &rules[i]
		if v.Run == nil && e.Rule > 0 {
			break // the other rules look at the record
		}
		found, holds := rule.holds(v.view)
		switch {
		case !holds:
		case e.Rule == 0:
			e.Rule, e.When, deciding = rule.Number, rule.When, found.piece
		case outranked[found.piece] == nil && rule.Label != agency.Active && rule.Label != agency.Idle: // these rules hold for every live run
			outranked[found.piece] = rule
		}
	}
	return deciding, outranked
}

// findings returns all that is known, the most trusted first.
func (v explainer) findings() []finding {
	if v.Run == nil {
		return []finding{{agency.Finding{Source: agency.ByRecord, Trust: agency.TrustRecord, Confidence: 1, Says: v.RecordProblem}, pieceRecord}}
	}
	all := append(v.recordFindings(), v.processFinding())
	all = append(all, v.networkFindings()...)
	all = append(all, v.limitFindings()...)
	all = append(all, v.requestFindings()...)
	all = append(all, v.contractFinding())
	all = append(all, v.reportFindings()...)
	if at := v.attempt.InputAt; at != nil {
		all = append(all, v.finding(pieceMessage, agency.ByMessage, agency.TrustRecord, *at, "a message was sent to it"))
	}
	all = append(all, v.turnFindings()...)
	all = append(all, v.sourceFindings()...)
	for i := range v.Earlier {
		a := &v.Earlier[i]
		c := v.finding(pieceNone, agency.ByProcess, agency.TrustKernel, lastChange(a), fate(a))
		c.Attempt, c.Ignored = a.Number, fmt.Sprintf("of attempt %d; attempt %d is the newest", a.Number, v.attempt.Number)
		all = append(all, c)
	}
	return all
}

func (v explainer) finding(p piece, by agency.DecidedBy, trust agency.Trust, at time.Time, text string) finding {
	return finding{agency.Finding{Source: by, Trust: trust, Confidence: 1, At: at, Attempt: v.attempt.Number, Says: text}, p}
}

func (v explainer) ago(at time.Time) string { return duration.Short(v.now.Sub(at)) + " ago" }

func (v explainer) recordFindings() []finding {
	all := []finding{}
	add := func(at time.Time, text string) {
		all = append(all, v.finding(pieceRecord, agency.ByRecord, agency.TrustRecord, at, text))
	}
	if v.RecordProblem != "" {
		add(time.Time{}, v.RecordProblem)
	}
	if v.Run.MergedAt != nil {
		add(*v.Run.MergedAt, "merged")
	}
	if v.Run.Abandoned {
		add(v.changed, "abandoned")
	}
	if f := v.Run.Flag; f != nil {
		add(f.At, "flagged: "+f.Reason)
		if asked, asks := v.needsInput(); asks && asked.at.After(f.At) {
			all[len(all)-1].Ignored = "it has asked for something since"
		}
	}
	return all
}

func (v explainer) processFinding() finding {
	text := fate(v.attempt)
	if v.SessionGone {
		text += "; its terminal and its wrapper cannot be seen"
	}
	if v.frozen() {
		text += "; its wrapper does not answer, and last moved " + v.ago(v.UnresponsiveSince)
	}
	return v.finding(pieceProcess, agency.ByProcess, agency.TrustKernel, v.changed, text)
}

// networkFindings returns what the agent was refused by its network.
func (v explainer) networkFindings() []finding {
	use := v.attempt.Network
	if use == nil {
		return nil
	}
	all := []finding{}
	for _, r := range use.Refused {
		says := fmt.Sprintf("was refused %s: %s", r.Host, r.Reason)
		if r.Count > 1 {
			says += fmt.Sprintf(" (%d times)", r.Count)
		}
		if slices.ContainsFunc(use.Granted, func(g agency.Grant) bool { return g.Entry == r.Entry }) {
			says += "; you have allowed it since"
		}
		all = append(all, v.finding(pieceNone, agency.ByProcess, agency.TrustKernel, r.At, says))
	}
	if use.Problem != "" {
		all = append(all, v.finding(pieceNone, agency.ByProcess, agency.TrustKernel, v.changed, "reaches no host any more: "+use.Problem))
	}
	return all
}

// limitFindings returns which limits the agent reached.
func (v explainer) limitFindings() []finding {
	all := []finding{}
	if use := v.attempt.Limits; use != nil {
		for _, r := range use.Reached {
			says := "ran " + r.String()
			if r.Count > 1 {
				says += fmt.Sprintf(" (%d times)", r.Count)
			}
			all = append(all, v.finding(pieceNone, agency.ByProcess, agency.TrustKernel, r.At, says))
		}
	}
	return all
}

// fate returns the outcome of an attempt, in a few words.
func fate(a *agency.Attempt) string {
	switch {
	case a.State == agency.Failed:
		return "failed " + failureSummary(a)
	case a.State == agency.Killed:
		return "stopped"
	case a.State == agency.Completed:
		return "ended with exit status 0"
	case a.State == agency.Queued:
		return "not started"
	case a.RunnerProcess != nil:
		return fmt.Sprintf("alive, pid %d", a.RunnerProcess.PID)
	default:
		return "alive"
	}
}

func (v explainer) requestFindings() []finding {
	all := make([]finding, 0, len(v.agentState.Requests))
	for i := range v.agentState.Requests {
		r := &v.agentState.Requests[i]
		c := v.finding(pieceRequest, agency.DecidedBy(r.Source), trustOf(r.Source), r.At, "asks for a "+string(r.Kind)+": "+r.Summary())
		if r.Kind == agency.AsksQuestion || r.Kind == agency.AsksDialog {
			c.Says = "asks: " + r.Summary()
		}
		c.Confidence = r.Confidence
		if !v.open() {
			c.Ignored = v.over()
		}
		all = append(all, c)
	}
	return all
}

// over returns why no report of the agent counts.
func (v explainer) over() string { return "the attempt is " + v.attempt.State.String() }

func (v explainer) contractFinding() finding {
	word := &v.attempt.Reported
	c := v.finding(pieceContract, agency.ByContract, agency.TrustSelfReport, word.At, "")
	switch {
	case word.Problem != "":
		c.Says, c.Ignored = "unreadable", "invalid: "+word.Problem
	case word.Contract == nil:
		c.Says, c.Ignored = "nothing", "there is no status file"
	case v.contract == nil:
		c.Says, c.Ignored = "nothing", "the status file is as agency wrote it"
	default:
		label, found := claimOf(word.Contract, word.At)
		c.Says = string(word.Contract.Status) + ": " + word.Contract.Summary
		if found.text != "" {
			c.Says = string(word.Contract.Status) + ": " + found.text
		}
		if label != "" {
			c.Ignored = v.undone(label, word.At)
		}
		if r := v.agentState.Reported; c.Ignored == "" && r != nil && !r.At.Before(word.At) {
			c.Ignored = "it reported something else " + v.ago(r.At)
		}
	}
	return c
}

// undone returns why a report of the agent no longer holds; empty when it does.
func (v explainer) undone(label agency.Label, at time.Time) string {
	switch {
	case !v.counts(label):
		return v.over()
	case v.answered(label, at):
		return "answered by a message " + v.ago(*v.attempt.InputAt)
	case v.prompted(at):
		return "a new prompt was submitted " + v.ago(v.agentState.PromptAt)
	default:
		return ""
	}
}

func (v explainer) reportFindings() []finding {
	all := []finding{}
	if r := v.agentState.Reported; r != nil {
		c := v.finding(pieceReport, agency.DecidedBy(agency.FromReport), agency.TrustSelfReport, r.At, string(r.Report)+": "+r.Text)
		if c.Ignored = v.undone(reportLabel(r.Report), r.At); c.Ignored == "" && r.At.Before(v.attempt.Reported.At) {
			c.Ignored = "the status file changed " + v.ago(v.attempt.Reported.At)
		}
		all = append(all, c)
	}
	if until := v.agentState.QuietUntil; !until.IsZero() {
		c := v.finding(pieceNone, agency.DecidedBy(agency.FromReport), agency.TrustSelfReport, v.agentState.Sources[agency.FromReport].At, "")
		if left := until.Sub(v.now); left > 0 {
			c.Says = "will be silent for " + duration.Short(left) + " more"
		} else {
			c.Says, c.Ignored = "declared quiet time", "that was over "+v.ago(until)
		}
		all = append(all, c)
	}
	return all
}

// turnFindings returns whether the agent is in a turn, and how long it has given no sign.
func (v explainer) turnFindings() []finding {
	all := []finding{}
	if s := v.agentState; s.Turn != agency.TurnUnknown {
		c := v.finding(pieceTurn, turnBy(s), trustOf(s.TurnBy), s.TurnAt, turnWords(s))
		if !v.alive() {
			c.Ignored = v.over()
		}
		all = append(all, c)
	}
	if !v.alive() {
		return all
	}
	text := "nothing new for " + duration.Short(v.now.Sub(v.heard))
	if limit := v.stallThreshold(); limit > 0 {
		text += "; it is stalled after " + duration.Short(limit)
	}
	return append(all, v.finding(pieceInactivity, agency.ByClock, agency.TrustRecord, v.heard, text))
}

// turnWords returns the turn in a few words.
func turnWords(s *agency.AgentState) string {
	words := "at work"
	switch {
	case s.Turn == agency.TurnEnded && s.TurnBy == "":
		words = "it was started without a message"
	case s.Turn == agency.TurnEnded:
		words = "its turn ended"
	}
	switch {
	case s.Failure != nil:
		words += " with an error: " + s.Failure.Words()
	case s.Interrupted:
		words += ", interrupted"
	case s.Retry != nil:
		words += ", trying again after an error: " + s.Retry.Words()
	case s.Background > 0:
		words += " in the background"
	case len(s.Tools) > 0:
		words += ", using " + s.Tools[len(s.Tools)-1].Name
	}
	return words
}

// sourceFindings returns the newest finding of each source.
func (v explainer) sourceFindings() []finding {
	all := []finding{}
	for _, source := range agency.Sources() {
		seen, ok := v.agentState.Sources[source]
		if !ok || source == agency.FromOutput {
			continue
		}
		text := fmt.Sprintf("%d signals, the newest: %s", seen.Count, seen.Signal)
		if seen.Event != "" {
			text += " (" + seen.Event + ")"
		}
		c := v.finding(pieceNone, agency.DecidedBy(source), trustOf(source), seen.At, text)
		if (observer{v.agentState}).superseded(source) {
			c.Ignored = "the agent's program speaks for itself"
		}
		all = append(all, c)
	}
	if p := v.agentState.Printed; p != nil {
		c := v.finding(pieceNone, agency.DecidedBy(agency.FromOutput), trustOf(agency.FromOutput), p.At, "printed an error: "+p.Text)
		c.Ignored = "printed text decides no status; the watchdog reports it"
		all = append(all, c)
	}
	return all
}

// trustOf returns the trust in a source of evidence.
func trustOf(s agency.Source) agency.Trust {
	switch s {
	case agency.FromProtocol, agency.FromHook, agency.FromStream, agency.FromSession, agency.FromTranscript:
		return agency.TrustAgent
	case "":
		return agency.TrustRecord
	case agency.FromReport:
		return agency.TrustSelfReport
	default:
		return agency.TrustScreen
	}
}
