package agent

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/pelletier/go-toml/v2"

	"agency"
)

// screenTail is how many lines around the input box are read. The agent's output is above them, or,
// where it quotes a dialog, not at the very bottom.
const screenTail = 24

// pattern describes one thing that a terminal can show.
type pattern struct {
	Name string `toml:"name"`
	// Last are texts of which one must be in the last line that is not empty; without any, every
	// last line matches.
	Last []string `toml:"last"`
	// All are texts that must each be in one of the lines above.
	All        []string           `toml:"all"`
	Signal     agency.Signal      `toml:"signal"`
	Kind       agency.RequestKind `toml:"kind"`
	Text       string             `toml:"text"`
	Confidence float64            `toml:"confidence"`
}

// ScreenOf returns a reader of a terminal by the patterns of a file, which it parses at its first
// use. A test parses every agent's file; an invalid one matches nothing.
func ScreenOf(file []byte) func(lines []string) []agency.Evidence {
	patterns := sync.OnceValue(func() Patterns {
		known, err := ParseScreen(file)
		if err != nil {
			return nil
		}
		return known
	})
	return func(lines []string) []agency.Evidence { return patterns().Read(lines) }
}

// ScreenVersion is the version of the format of pattern files.
const ScreenVersion = 1

// Patterns are what the terminal of an agent can show, in order of precedence.
type Patterns []pattern

// ParseScreen reads a file of patterns, agency's own or a user's, strictly. Its errors are texts
// for users.
func ParseScreen(data []byte) (Patterns, error) {
	var known struct {
		Version  int      `toml:"version"`
		Patterns Patterns `toml:"pattern"`
	}
	decoder := toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields()
	if err := decoder.Decode(&known); err != nil {
		if strict, ok := errors.AsType[*toml.StrictMissingError](err); ok {
			row, column := strict.Errors[0].Position()
			return nil, fmt.Errorf("%d:%d: unknown key %q", row, column, strings.Join(strict.Errors[0].Key(), "."))
		}
		if at, ok := errors.AsType[*toml.DecodeError](err); ok {
			row, column := at.Position()
			return nil, fmt.Errorf("%d:%d: not readable as a list of patterns", row, column)
		}
		return nil, errors.New("not readable as a list of patterns")
	}
	if known.Version != ScreenVersion {
		return nil, fmt.Errorf("version is %d, not %d", known.Version, ScreenVersion)
	}
	for i := range known.Patterns {
		if err := known.Patterns[i].check(); err != nil {
			return nil, fmt.Errorf("pattern %d: %w", i+1, err)
		}
	}
	return known.Patterns, nil
}

func (p *pattern) check() error {
	switch {
	case p.Name == "":
		return errors.New("name is missing")
	case len(p.Last)+len(p.All) == 0:
		return errors.New("it needs texts in last or all, else it would always match")
	case slices.Contains(p.Last, "") || slices.Contains(p.All, ""):
		return errors.New("an empty text would always match")
	case p.Signal != agency.SignalAsked && p.Signal != agency.SignalBusy && p.Signal != agency.SignalResting && p.Signal != agency.SignalSession:
		return fmt.Errorf("signal is %q, not asked, busy, resting or session", p.Signal)
	case p.Signal == agency.SignalAsked && p.Kind != agency.AsksPermission && p.Kind != agency.AsksQuestion && p.Kind != agency.AsksDialog:
		return fmt.Errorf("kind is %q, not permission, question or dialog", p.Kind)
	case p.Confidence <= 0 || p.Confidence >= 1:
		return errors.New("confidence must be above 0 and below 1: a screen proves nothing")
	}
	return nil
}

// ShowReady reports whether one of the patterns shows that a terminal takes a message.
func (known Patterns) ShowReady() bool {
	return slices.ContainsFunc(known, func(p pattern) bool { return p.Signal != agency.SignalAsked })
}

// Read returns the evidence of the first pattern that matches the visible lines, the top line
// first.
func (known Patterns) Read(lines []string) []agency.Evidence {
	lines = Trimmed(lines)
	if len(lines) == 0 {
		return nil
	}
	last := len(lines) - 1
	above := lines[max(0, last-screenTail):last]
	for i := range known {
		if p := &known[i]; p.shows(above, lines[last]) {
			return []agency.Evidence{{
				Source: agency.FromScreen, Signal: p.Signal, Event: p.Name, Kind: p.Kind, Text: p.Text, Confidence: p.Confidence,
			}}
		}
	}
	return nil
}

func (p *pattern) shows(above []string, last string) bool {
	if len(p.Last) > 0 && !slices.ContainsFunc(p.Last, func(text string) bool { return strings.Contains(last, text) }) {
		return false
	}
	for _, text := range p.All {
		if !slices.ContainsFunc(above, func(line string) bool { return strings.Contains(line, text) }) {
			return false
		}
	}
	return true
}
