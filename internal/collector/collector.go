// Package collector keeps what an agent's hooks, output and messages show as evidence of its
// attempt: an agent's program calls Hook, and the wrapper of the attempt uses Output and Speaker. It
// needs no daemon.
package collector

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"agency"
	"agency/internal/harness"
	"agency/internal/runner"
	"agency/internal/spool"
)

// Limits of the evidence of an agent.
const (
	hookLimit = 8 << 20         // bytes of one hook call
	lineLimit = 4 << 20         // bytes of one line of a stream
	hookWait  = 2 * time.Second // for the end of a call's input
)

// Hook reads what an agent passes to its hook on standard input and keeps it as evidence of the
// attempt that the agent runs in. It prints nothing and never fails, so that it cannot disturb the
// agent. It returns after two seconds at the latest, also when the agent keeps the pipe open; the
// caller then ends the process.
func Hook(kind agency.RunnerKind, in io.Reader) {
	path := eventsPath()
	if path == "" {
		return // not below a wrapper
	}
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		if payload, err := io.ReadAll(io.LimitReader(in, hookLimit)); err == nil {
			keep(path, harness.Hook(kind, payload))
		}
	}()
	select {
	case <-kept:
	case <-time.After(hookWait):
	}
}

// eventsPath returns the evidence file of the attempt that this process belongs to; empty outside
// of an attempt.
func eventsPath() string {
	home, id, attempt := os.Getenv("AGENCY_HOME"), os.Getenv("AGENCY_RUN_ID"), os.Getenv("AGENCY_ATTEMPT")
	if _, err := agency.ParseRunID(id); err != nil || !filepath.IsAbs(home) || !filepath.IsLocal(attempt) {
		return ""
	}
	return filepath.Join(home, "runs", id, "attempts", attempt, agency.EventsFile)
}

func keep(path string, evidence []agency.Evidence) {
	if len(evidence) == 0 {
		return
	}
	now := time.Now().UTC()
	for i := range evidence {
		if evidence[i].At.IsZero() {
			evidence[i].At = now
		}
	}
	_ = spool.Append(path, evidence...) // an error could not be reported to anything
}

// Output returns the observer of the output of an attempt.
func Output(launch *agency.Launch) runner.Observer {
	return &output{
		kind: launch.RunnerKind, path: filepath.Join(launch.AttemptDir, agency.EventsFile),
		streams: launch.Headless && harness.Streams(launch.RunnerKind),
	}
}

// output keeps evidence of what a runner writes.
type output struct {
	kind    agency.RunnerKind
	path    string
	streams bool
	line    []byte // the beginning of an incomplete line
	long    bool   // the line is too long; skip to its end
	titled  []agency.Evidence
}

// Output implements runner.Observer.
func (o *output) Output(p []byte) {
	if !o.streams {
		return
	}
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n')
		part := p
		if end >= 0 {
			part, p = p[:end], p[end+1:]
		} else {
			p = nil
		}
		if o.long = o.long || len(o.line)+len(part) > lineLimit; !o.long {
			o.line = append(o.line, part...)
		}
		if end < 0 {
			return
		}
		if !o.long {
			keep(o.path, harness.Stream(o.kind, o.line))
		}
		o.line, o.long = o.line[:0], false
	}
}

// Title implements runner.Observer. It ignores a title that gives the same evidence as the last
// one: some programs animate theirs.
func (o *output) Title(title string) {
	evidence := harness.Title(o.kind, title)
	if len(evidence) == 0 || slices.Equal(evidence, o.titled) {
		return
	}
	o.titled = slices.Clone(evidence)
	keep(o.path, evidence)
}

// Speaker returns how the wrapper of an attempt speaks with its agent.
func Speaker(launch *agency.Launch) *runner.Speaker {
	path := filepath.Join(launch.AttemptDir, agency.EventsFile)
	return &runner.Speaker{
		Dialect: harness.Dialect(launch.RunnerKind, launch.Protocol),
		Keep:    func(evidence []agency.Evidence) { keep(path, evidence) },
		Kept:    func() int64 { return keptOffset(path) },
	}
}

// keptTail is how much of the end of an attempt's evidence is looked at first.
const keptTail = 1 << 20

// keptOffset returns how far the evidence of an attempt covers the agent's messages. The newest
// piece covers most; pieces of other sources may follow it.
func keptOffset(path string) (most int64) {
	info, err := os.Lstat(path)
	if err != nil {
		return 0
	}
	for back := int64(keptTail); most == 0; back *= 8 {
		most = keptAfter(path, max(0, info.Size()-back))
		if back >= info.Size() {
			break
		}
	}
	return most
}

// keptAfter is keptOffset for the evidence after a place in its file, which may be within a line.
func keptAfter(path string, at int64) (most int64) {
	for {
		evidence, next, err := spool.Tail(path, at)
		if err != nil || next <= at {
			return most
		}
		for i := range evidence {
			if evidence[i].Source == agency.FromProtocol {
				most = max(most, evidence[i].Offset)
			}
		}
		at = next
	}
}
