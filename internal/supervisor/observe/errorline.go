package observe

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/charmbracelet/x/ansi"

	"agency"
	"agency/internal/status"
)

// Limits of what is matched with the user's patterns.
const (
	mostPrinted  = 1 << 20 // bytes of a stream at one look; parts of a flood are left out
	printedLine  = 4 << 10 // bytes of a line
	printedEvery = time.Minute
)

// ErrorPatterns are the user's patterns of errors in the output of runs. Each matches from the
// beginning of a line.
type ErrorPatterns struct {
	Any     []*regexp.Regexp
	Presets map[string][]*regexp.Regexp // replace the others for runs of these presets
}

func (p *ErrorPatterns) of(preset string) []*regexp.Regexp {
	if own := p.Presets[preset]; len(own) > 0 {
		return own
	}
	return p.Any
}

// errorLines finds errors in what runs print.
type errorLines struct {
	*Deps
	runs     *liveRuns
	keep     func(ctx context.Context, l *liveRun, evidence []agency.Evidence) (kept bool) // adds to the evidence of a run
	patterns atomic.Pointer[ErrorPatterns]                                                 // never nil
}

func (el *errorLines) init(deps *Deps, runs *liveRuns, keep func(context.Context, *liveRun, []agency.Evidence) bool) {
	el.Deps, el.runs, el.keep = deps, runs, keep
	el.patterns.Store(&ErrorPatterns{})
}

// wanted reports whether the output of a run is matched with any pattern.
func (el *errorLines) wanted(l *liveRun) bool { return len(el.patterns.Load().of(l.output.preset)) > 0 }

// SetPatterns changes what counts as an error in output. Earlier output is not matched with
// the new patterns.
func (el *errorLines) SetPatterns(patterns *ErrorPatterns) {
	before := el.patterns.Swap(patterns)
	el.runs.mu.Lock()
	var readers []*outputReader
	for _, l := range el.runs.live {
		if !slices.EqualFunc(before.of(l.output.preset), patterns.of(l.output.preset), func(a, b *regexp.Regexp) bool { return a.String() == b.String() }) {
			readers = append(readers, l.output)
		}
	}
	el.runs.mu.Unlock()
	now := el.Now()
	for _, o := range readers {
		o.mu.Lock()
		o.since, o.places, o.fresh = now, map[string]place{}, false
		o.mu.Unlock()
	}
}

// outputReader is how far the output of an attempt was matched with the patterns. It is not stored:
// after a start of the daemon, reading continues from about the time when the previous daemon last
// lived.
type outputReader struct {
	kind     agency.RunnerKind
	preset   string
	speaks   bool // in its own protocol
	headless bool // without a terminal

	mu     sync.Mutex
	since  time.Time        // where a stream without a place begins; zero is its beginning
	places map[string]place // by stream
	fresh  bool             // everything that the terminal shows was printed since
	shown  []string         // the errors on the terminal at the last look
}

// place is where the next line of a stream begins or, when the beginning of a line was left out,
// where to look for it.
type place struct {
	offset int64
	inside bool
}

func newOutputReader(r *agency.Run) *outputReader {
	a := &r.Attempt
	o := &outputReader{kind: r.Runner.Kind, preset: r.Preset, speaks: a.Mode == agency.ModeProtocol, headless: !a.HasTerminal(), places: map[string]place{}, fresh: a.Number == 1}
	if a.State != agency.Queued {
		o.fresh = false
		o.since = ChangeTime(filepath.Join(r.Dir, "state.json")) // the previous daemon wrote it in each rescan
		if last := a.AgentState.PrintedAt; !last.IsZero() && !last.Add(time.Second).Before(o.since) {
			o.since = last.Add(time.Second) // the index of a log has whole seconds
		}
	}
	return o
}

// own reports whether everything that such a program prints is its own output. An agent's output
// quotes its model and its tools.
func (o *outputReader) own() bool { return o.kind == agency.Shell || o.kind == agency.Custom }

// streams returns the logs that hold lines of the program's own.
func (o *outputReader) streams() []string {
	switch {
	case o.speaks:
		return []string{"stderr"} // the rest is the conversation
	case o.headless:
		return []string{"stdout", "stderr"}
	case o.own():
		return []string{"runner"}
	default:
		return nil // its terminal is repainted, so the screen is read instead
	}
}

// readOutput matches the lines that a run printed since the last look with the patterns.
func (el *errorLines) readOutput(ctx context.Context, id agency.RunID) {
	l, ok := el.runs.copyOf(id)
	if !ok {
		return
	}
	patterns, o := el.patterns.Load().of(l.output.preset), l.output
	if len(patterns) == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	found := ""
	for _, stream := range o.streams() {
		for line := range bytes.SplitSeq(o.newLines(el.Attempts, AttemptDir(l.dir, l.attempt), stream, el.Now()), []byte{'\n'}) {
			if found != "" {
				break
			}
			text := plainLine(line)
			if stream == "stdout" && !o.own() && !besideStream(&l, text) {
				continue
			}
			if matches(patterns, text) {
				found = text
			}
		}
	}
	el.printed(ctx, id, found)
}

// besideStream reports whether a line of an agent's standard output is outside its structured
// stream. Without such a stream, which the user's arguments may turn off, the lines are the
// model's.
func besideStream(l *liveRun, line string) bool {
	_, streams := l.agentState.Sources[agency.FromStream]
	line = strings.TrimLeft(line, " \t")
	return streams && !strings.HasPrefix(line, "{") && !strings.HasPrefix(line, "[")
}

func matches(patterns []*regexp.Regexp, line string) bool {
	return line != "" && slices.ContainsFunc(patterns, func(p *regexp.Regexp) bool { return p.MatchString(line) })
}

// plainLine returns a line as a user would see it: without colours, and without what was painted
// over.
func plainLine(line []byte) string {
	text := strings.ToValidUTF8(string(line[:min(len(line), printedLine)]), "�")
	text = strings.TrimRight(ansi.Strip(text), " \t\r")
	return text[strings.LastIndexByte(text, '\r')+1:]
}

// newLines returns the complete lines of a stream since the last look. The caller holds the lock.
func (o *outputReader) newLines(attempts Attempts, dir, stream string, now time.Time) []byte {
	at, known := o.places[stream]
	from := LogStart{Since: o.since}
	if known || o.since.IsZero() {
		from.Offset = &at.offset
	}
	log, begins, err := attempts.OpenLog(dir, stream, from)
	if err != nil {
		return nil // there is none yet
	}
	defer func() { _ = log.Close() }()
	inside := at.inside || from.Offset == nil || begins != at.offset // what was dropped, or is older, may have ended inside a line
	data, err := io.ReadAll(io.LimitReader(log, mostPrinted))
	if err != nil {
		return nil
	}
	last := bytes.LastIndexByte(data, '\n') + 1
	switch full := len(data) == mostPrinted; {
	case full && last == 0:
		o.places[stream] = place{begins + int64(len(data)), true}
		return nil
	case full:
		delete(o.places, stream) // it prints faster than agency reads
		o.since = now
	default:
		o.places[stream] = place{begins + int64(last), inside && last == 0}
	}
	data = data[:last]
	if inside {
		data = data[min(len(data), bytes.IndexByte(data, '\n')+1):]
	}
	return data
}

// readShown matches what an agent's terminal shows with the patterns, where the agent's own marks
// show that its program printed an error.
func (el *errorLines) readShown(ctx context.Context, id agency.RunID) {
	l, ok := el.runs.copyOf(id)
	if !ok {
		return
	}
	patterns, marks, o := el.patterns.Load().of(l.output.preset), el.Harness.ErrorMarks(l.output.kind), l.output
	if len(patterns) == 0 || len(marks) == 0 || o.headless {
		return
	}
	r, err := el.Store.Run(ctx, id)
	if err != nil || r.Attempt.State != agency.Running || r.Attempt.Number != l.attempt {
		return
	}
	text, err := el.Tmux.Capture(ctx, r.Session(), r.Attempt.Pane)
	if err != nil {
		return // the terminal is going away
	}
	var shown []string
	for line := range strings.SplitSeq(text, "\n") {
		for _, mark := range marks {
			if own, marked := strings.CutPrefix(line, mark); marked && matches(patterns, own) {
				shown = append(shown, own)
			}
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	found := ""
	if o.fresh {
		found = added(o.shown, shown)
	}
	o.fresh, o.shown = true, shown
	el.printed(ctx, id, found)
}

// added returns the first line that is in now more often than in before.
func added(before, now []string) string {
	before = slices.Clone(before)
	for _, line := range now {
		i := slices.Index(before, line)
		if i < 0 {
			return line
		}
		before = slices.Delete(before, i, i+1)
	}
	return ""
}

// printed turns a matching line into evidence. While the previous error is still open, it only
// continues that one.
func (el *errorLines) printed(ctx context.Context, id agency.RunID, line string) {
	l, ok := el.runs.copyOf(id)
	if line == "" || !ok {
		return
	}
	r, err := el.Store.Run(ctx, id)
	if err != nil || r.Attempt.Number != l.attempt {
		return
	}
	a := r.Attempt
	a.AgentState = *l.agentState
	active := slices.MaxFunc([]time.Time{l.lastChange.at, a.AgentState.HeardAt, a.Reported.At}, time.Time.Compare)
	e := agency.Evidence{Source: agency.FromOutput, Signal: agency.SignalPrinted, Text: safeLine(line)}
	if status.ErrorStands(&a, active) {
		if el.Elapsed(a.AgentState.PrintedAt) < printedEvery {
			return
		}
		e.Event = agency.EventContinued
	}
	el.keep(ctx, &l, []agency.Evidence{e})
}
