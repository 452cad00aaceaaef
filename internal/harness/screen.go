package harness

import (
	"embed"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"agency"
)

// screens hold what the terminals of agents show: one file for each kind, which says for which version it was made.
//
//go:embed screen/*.toml
var screens embed.FS

// screenTail is how many lines around the input box are looked at. What the agent said stands above them, or, where it
// quotes a dialog, not at the very bottom.
const screenTail = 24

// pattern is one thing that a terminal can show.
type pattern struct {
	Name string `toml:"name"`
	// Last are texts of which one is in the last line that is not empty; without any, every last line will do.
	Last []string `toml:"last"`
	// All are texts of which each is in one of the lines above.
	All        []string           `toml:"all"`
	Sign       agency.Sign        `toml:"sign"`
	Kind       agency.RequestKind `toml:"kind"`
	Text       string             `toml:"text"`
	Confidence float64            `toml:"confidence"`
}

// screenOf makes the reader of a terminal from the file of that name.
func screenOf(name string) func(lines []string) []agency.Evidence {
	return func(lines []string) []agency.Evidence {
		var known struct {
			Version  int       `toml:"version"`
			Patterns []pattern `toml:"pattern"`
		}
		data, err := screens.ReadFile("screen/" + name + ".toml")
		if err != nil || toml.Unmarshal(data, &known) != nil {
			return nil // a test reads every file
		}
		for len(lines) > 0 && strings.TrimSpace(lines[len(lines)-1]) == "" {
			lines = lines[:len(lines)-1]
		}
		if len(lines) == 0 {
			return nil
		}
		last := len(lines) - 1
		above := lines[max(0, last-screenTail):last]
		for _, p := range known.Patterns {
			if p.shows(above, lines[last]) {
				return []agency.Evidence{{Sign: p.Sign, Event: p.Name, Kind: p.Kind, Text: p.Text, Confidence: p.Confidence}}
			}
		}
		return nil
	}
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
