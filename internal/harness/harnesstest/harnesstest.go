// Package harnesstest holds what the tests of several agents share: recorded lines and screens, and
// the folding of evidence.
package harnesstest

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agency"
	"agency/internal/status"
	"agency/test/fixture"
)

const (
	// Minted is the id of a conversation that agency made.
	Minted = "0d9c1a52-6f5e-4a53-9b7a-0f2f8f5d6c11"
	// Task is the prompt file of a run.
	Task = "/wt/.agency/prompt.md"
)

// Folded are the labels of a run while evidence is folded, without repeats in a row, and its final
// state.
type Folded struct {
	Labels     []agency.Label
	AgentState agency.AgentState
	Status     agency.Status
}

// Fold adds evidence that was observed at a time.
func (f *Folded) Fold(evidence []agency.Evidence, at time.Time) {
	if f.AgentState.Sources == nil {
		f.derive(at)
	}
	for _, e := range evidence {
		e.At = at
		status.Observe(&f.AgentState, e)
		f.derive(at)
	}
}

func (f *Folded) derive(at time.Time) {
	begun := at.Add(-time.Second)
	first := agency.NewContract(begun)
	run := &agency.Run{Attempt: agency.Attempt{
		State: agency.Running, CreatedAt: begun, StartedAt: &begun, AgentState: f.AgentState,
		Reported: agency.Observed{Contract: &first, At: begun},
	}}
	f.Status = status.Derive(status.Facts{Run: run, StallThreshold: agency.StallThreshold}, at)
	n := len(f.Labels)
	if n == 0 && f.Status.Label == agency.Active {
		return // it reported nothing yet
	}
	if n == 0 || f.Labels[n-1] != f.Status.Label {
		f.Labels = append(f.Labels, f.Status.Label)
	}
}

// Lines reads a recorded file: one payload or one line of a stream each.
func Lines(tb testing.TB, path string) [][]byte {
	tb.Helper()
	return bytes.Split(bytes.TrimSpace(read(tb, path)), []byte("\n"))
}

// Screen reads the lines of a recorded terminal, NAME.screen.txt.
func Screen(tb testing.TB, name string) []string {
	tb.Helper()
	return strings.Split(strings.TrimRight(string(read(tb, name+".screen.txt")), "\n"), "\n")
}

func read(tb testing.TB, path string) []byte {
	tb.Helper()
	data, err := os.ReadFile(filepath.FromSlash(path))
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// Program creates an executable file and returns its path.
func Program(tb testing.TB) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "agent")
	if err := fixture.WriteProgram(path, "#!/bin/sh\n"); err != nil {
		tb.Fatal(err)
	}
	return path
}

// AppendTo appends a text to a file, which it creates if missing.
func AppendTo(tb testing.TB, path, text string) {
	tb.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := f.WriteString(text); err != nil {
		tb.Fatal(err)
	}
	if err := f.Close(); err != nil {
		tb.Fatal(err)
	}
}
