package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"agency"
	"agency/internal/api"
	"agency/internal/harness"
)

// recentRuns is how many of the newest runs the doctor checks for unknown events.
const recentRuns = 200

// checkEvents lists the events of agents in the newest runs that this version does not know. They
// change no status, but an unknown event of a new version can be the cause of a wrong status.
func (d *Doctor) checkEvents(ctx context.Context) (api.Check, error) {
	runs, err := d.Store.Runs(ctx, agency.Filter{Removed: true, Limit: recentRuns})
	if err != nil {
		return api.Check{}, err
	}
	counts, example := map[string]int{}, ""
	for i := range runs {
		d.Runs.Derive(&runs[i]) // adds what is known of a live agent beyond the record
		for name, n := range runs[i].Attempt.AgentState.Unknown {
			counts[runs[i].Runner.Name+" "+name] += n
			example = runs[i].Ref()
		}
	}
	if len(counts) == 0 {
		return api.Check{Name: "agent events", Level: levelOK, Text: "all known"}, nil
	}
	const most = 8
	words := []string{}
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		words = append(words, fmt.Sprintf("%s (%d)", name, counts[name]))
	}
	text := strings.Join(words[:min(len(words), most)], ", ")
	if more := len(words) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return api.Check{Name: "agent events", Level: levelNote, Text: "unknown to this version: " + text, Fix: "agency explain " + example}, nil
}

// versionCheck returns the finding about the version of a runner's program.
func versionCheck(name string, kind agency.RunnerKind, path, version string) api.Check {
	check := api.Check{Name: "runner " + name, Level: levelOK, Text: path}
	if version != "" {
		check.Text += " (" + version + ")"
	}
	if !harness.IsTested(kind, version) {
		check.Level = levelNote
		check.Text += "; tested with " + harness.Tested(kind) + ", so some of its events may be unknown"
	}
	return check
}
