package agency

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Trust is how sure a clue is.
type Trust string

// The degrees of trust, the surest first.
const (
	TrustRecord     Trust = "record" // agency's own record and clock
	TrustKernel     Trust = "kernel" // what the operating system says of processes, locks and terminals
	TrustAgent      Trust = "agent"  // what the agent's program tells by itself: hooks, streams, its own files
	TrustSelfReport Trust = "word"   // what the model wrote
	TrustScreen     Trust = "looks"  // what the agent's terminal shows
)

// Clue is one thing that is known of a run. Says and Ignored can quote the agent, so they are untrusted.
type Clue struct {
	Source     By        `json:"source"`
	Trust      Trust     `json:"trust"`
	Confidence float64   `json:"confidence"` // below 1 only of what was read from a screen
	At         time.Time `json:"at"`         // when it was observed
	AgeMS      int64     `json:"age_ms"`
	Attempt    int       `json:"attempt"`
	Says       string    `json:"says"`
	Decided    bool      `json:"decided"` // the status rests on it
	Ignored    string    `json:"ignored"` // why it changes nothing; empty when it was weighed

	piece piece `json:"-"`
}

// UnknownEvent is something that an agent told and this version does not know.
type UnknownEvent struct {
	Name  string `json:"name"` // the agent's own, untrusted
	Count int    `json:"count"`
}

// Explanation is why a run has the status that it has.
type Explanation struct {
	Status  Status         `json:"status"`
	Rule    int            `json:"rule"`           // its number in the table of docs/state-machine.md
	When    string         `json:"when"`           // the words of the rule
	Clues   []Clue         `json:"evidence"`       // the surest first; never nil
	Unknown []UnknownEvent `json:"unknown_events"` // never nil
}

// Explain tells how Derive comes to its answer. It is pure and total, and asks the same rules.
func Explain(f Facts, now time.Time) Explanation {
	v := newView(f, now)
	e := Explanation{Status: Derive(f, now), Unknown: []UnknownEvent{}}
	deciding, outranked := v.weigh(&e)
	e.Clues = v.clues()
	for i := range e.Clues {
		c := &e.Clues[i]
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
	}
	if v.situation != nil {
		for _, name := range slices.Sorted(maps.Keys(v.situation.Unknown)) {
			e.Unknown = append(e.Unknown, UnknownEvent{name, v.situation.Unknown[name]})
		}
	}
	return e
}

// weigh names the rule that decides, the piece that it rests on, and for other pieces the first rule that they would have
// decided.
func (v *view) weigh(e *Explanation) (deciding piece, outranked map[piece]*Rule) {
	outranked = map[piece]*Rule{}
	for i := range rules {
		rule := &rules[i]
		if v.Run == nil && e.Rule > 0 {
			break // the other rules look at the record
		}
		found, holds := rule.holds(v)
		switch {
		case !holds:
		case e.Rule == 0:
			e.Rule, e.When, deciding = rule.Number, rule.When, found.piece
		case outranked[found.piece] == nil && rule.Label != Active && rule.Label != Idle: // which need no more than life
			outranked[found.piece] = rule
		}
	}
	return deciding, outranked
}

// clues are all that is known, the surest first.
func (v *view) clues() []Clue {
	if v.Run == nil {
		return []Clue{{Source: ByRecord, Trust: TrustRecord, Confidence: 1, Says: v.RecordProblem, piece: pieceRecord}}
	}
	all := append(v.recordClues(), v.processClue())
	all = append(all, v.requestClues()...)
	all = append(all, v.contractClue())
	all = append(all, v.reportClues()...)
	if at := v.attempt.InputAt; at != nil {
		all = append(all, v.clue(pieceMessage, ByMessage, TrustRecord, *at, "a message was sent to it"))
	}
	all = append(all, v.turnClues()...)
	all = append(all, v.sourceClues()...)
	for i := range v.Earlier {
		a := &v.Earlier[i]
		c := v.clue(pieceNone, ByProcess, TrustKernel, a.lastChange(), a.fate())
		c.Attempt, c.Ignored = a.Number, fmt.Sprintf("of attempt %d; attempt %d is the newest", a.Number, v.attempt.Number)
		all = append(all, c)
	}
	return all
}

func (v *view) clue(p piece, by By, trust Trust, at time.Time, says string) Clue {
	return Clue{Source: by, Trust: trust, Confidence: 1, At: at, Attempt: v.attempt.Number, Says: says, piece: p}
}

func (v *view) ago(at time.Time) string { return ShortDuration(v.now.Sub(at)) + " ago" }

func (v *view) recordClues() []Clue {
	all := []Clue{}
	add := func(at time.Time, says string) {
		all = append(all, v.clue(pieceRecord, ByRecord, TrustRecord, at, says))
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
		if asked, asks := v.asks(); asks && asked.at.After(f.At) {
			all[len(all)-1].Ignored = "it has asked for something since"
		}
	}
	return all
}

func (v *view) processClue() Clue {
	says := v.attempt.fate()
	if v.SessionGone {
		says += "; its terminal and its wrapper cannot be seen"
	}
	if v.frozen() {
		says += "; its wrapper does not answer, and last moved " + v.ago(v.SilentSince)
	}
	return v.clue(pieceProcess, ByProcess, TrustKernel, v.changed, says)
}

// fate is what became of an attempt, in a few words.
func (a *Attempt) fate() string {
	switch {
	case a.State == Failed:
		return "failed " + failureSummary(a)
	case a.State == Killed:
		return "stopped"
	case a.State == Completed:
		return "ended with exit status 0"
	case a.State == Queued:
		return "not started"
	case a.RunnerProcess != nil:
		return fmt.Sprintf("alive, pid %d", a.RunnerProcess.PID)
	default:
		return "alive"
	}
}

func (v *view) requestClues() []Clue {
	all := make([]Clue, 0, len(v.situation.Requests))
	for i := range v.situation.Requests {
		r := &v.situation.Requests[i]
		c := v.clue(pieceRequest, By(r.Source), r.Source.trust(), r.At, "asks for a "+string(r.Kind)+": "+r.Summary())
		if r.Kind == AsksQuestion || r.Kind == AsksDialog {
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

// over says why nothing that the agent said counts.
func (v *view) over() string { return "the attempt is " + string(v.attempt.State) }

func (v *view) contractClue() Clue {
	word := &v.attempt.Word
	c := v.clue(pieceContract, ByContract, TrustSelfReport, word.At, "")
	switch {
	case word.Problem != "":
		c.Says, c.Ignored = "unreadable", "invalid: "+word.Problem
	case word.Contract == nil:
		c.Says, c.Ignored = "nothing", "there is no status file"
	case v.contract == nil:
		c.Says, c.Ignored = "nothing", "the status file is as agency wrote it"
	default:
		label, found := word.Contract.standing(word.At)
		c.Says = string(word.Contract.Status) + ": " + word.Contract.Summary
		if found.text != "" {
			c.Says = string(word.Contract.Status) + ": " + found.text
		}
		if label != "" {
			c.Ignored = v.undone(label, word.At)
		}
		if r := v.situation.Reported; c.Ignored == "" && r != nil && !r.At.Before(word.At) {
			c.Ignored = "it reported something else " + v.ago(r.At)
		}
	}
	return c
}

// undone says why something that the agent said does not stand any more; empty when it does.
func (v *view) undone(label Label, at time.Time) string {
	switch {
	case !v.counts(label):
		return v.over()
	case v.answered(label, at):
		return "answered by a message " + v.ago(*v.attempt.InputAt)
	case v.prompted(at):
		return "a new prompt was submitted " + v.ago(v.situation.PromptAt)
	default:
		return ""
	}
}

func (v *view) reportClues() []Clue {
	all := []Clue{}
	if r := v.situation.Reported; r != nil {
		c := v.clue(pieceReport, By(FromReport), TrustSelfReport, r.At, string(r.Report)+": "+r.Text)
		if c.Ignored = v.undone(r.Report.label(), r.At); c.Ignored == "" && r.At.Before(v.attempt.Word.At) {
			c.Ignored = "the status file changed " + v.ago(v.attempt.Word.At)
		}
		all = append(all, c)
	}
	if until := v.situation.QuietUntil; !until.IsZero() {
		c := v.clue(pieceNone, By(FromReport), TrustSelfReport, v.situation.Sources[FromReport].At, "")
		if left := until.Sub(v.now); left > 0 {
			c.Says = "will be silent for " + ShortDuration(left) + " more"
		} else {
			c.Says, c.Ignored = "said that it would be silent", "that was over "+v.ago(until)
		}
		all = append(all, c)
	}
	return all
}

// turnClues are whether the agent works on something, and how long it has given no sign.
func (v *view) turnClues() []Clue {
	all := []Clue{}
	if s := v.situation; s.Turn != TurnUnknown {
		c := v.clue(pieceTurn, By(s.TurnBy), s.TurnBy.trust(), s.TurnAt, s.turnWords())
		if !v.alive() {
			c.Ignored = v.over()
		}
		all = append(all, c)
	}
	if !v.alive() {
		return all
	}
	says := "nothing new for " + ShortDuration(v.now.Sub(v.heard))
	if limit := v.stallThreshold(); limit > 0 {
		says += "; it is stalled after " + ShortDuration(limit)
	}
	return append(all, v.clue(pieceSilence, ByClock, TrustRecord, v.heard, says))
}

// turnWords are the turn in a few words.
func (s *Situation) turnWords() string {
	words := "at work"
	if s.Turn == TurnEnded {
		words = "its turn ended"
	}
	switch {
	case s.Failure != nil:
		words += " with an error: " + s.Failure.words()
	case s.Interrupted:
		words += ", interrupted"
	case s.Retry != nil:
		words += ", trying again after an error: " + s.Retry.words()
	case s.Background > 0:
		words += " in the background"
	case len(s.Tools) > 0:
		words += ", using " + s.Tools[len(s.Tools)-1].Name
	}
	return words
}

// sourceClues are the newest of each source.
func (v *view) sourceClues() []Clue {
	all := []Clue{}
	for _, source := range Sources() {
		seen, ok := v.situation.Sources[source]
		if !ok || source == FromOutput {
			continue
		}
		says := fmt.Sprintf("%d signs, the newest: %s", seen.Count, seen.Sign)
		if seen.Event != "" {
			says += " (" + seen.Event + ")"
		}
		c := v.clue(pieceNone, By(source), source.trust(), seen.At, says)
		if v.situation.outdone(source) {
			c.Ignored = "the agent's program speaks for itself"
		}
		all = append(all, c)
	}
	if p := v.situation.Printed; p != nil {
		c := v.clue(pieceNone, By(FromOutput), FromOutput.trust(), p.At, "printed an error: "+p.Text)
		c.Ignored = "what is printed decides no status; the watchdog tells of it"
		all = append(all, c)
	}
	return all
}

// trust is how far a source of evidence can be relied on.
func (s Source) trust() Trust {
	switch s {
	case FromHook, FromStream, FromSession, FromTranscript:
		return TrustAgent
	case FromReport:
		return TrustSelfReport
	default:
		return TrustScreen
	}
}
