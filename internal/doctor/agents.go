package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"agency"
	"agency/internal/api"
	"agency/internal/config"
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

// checkRunners returns a finding for each installed runner, one for all others together, and an
// error when the default runner is not installed.
func checkRunners(ctx context.Context, cfg *config.Config, req api.DoctorRequest) []api.Check {
	checks, installed, missing := []api.Check{}, []string{}, []string{}
	var broken *api.Check
	check := func(name string, kind agency.RunnerKind, exec string) {
		path, err := harness.FindExec(agency.Runner{Kind: kind, Name: name}, exec, req.Dir, req.Env)
		if err == nil {
			checks = append(checks, installedCheck(name, kind, path, harness.Version(ctx, kind, path), req.Env))
			if kind != agency.Shell {
				installed = append(installed, name)
			}
			return
		}
		if name == cfg.Defaults.Runner {
			e := agency.AsError(err)
			broken = &api.Check{Name: "runner " + name, Level: levelError, Text: "the default, and " + e.Message, Fix: e.Hint}
			return
		}
		missing = append(missing, name)
	}
	for _, kind := range harness.Kinds() {
		check(string(kind), kind, cfg.Runners[kind].Exec)
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Custom)) {
		check(name, agency.Custom, cfg.Custom[name].Exec)
	}
	if broken != nil {
		if len(installed) > 0 {
			broken.Fix = "agency config set defaults.runner " + installed[0]
		}
		checks = slices.Insert(checks, 0, *broken)
	}
	if len(missing) > 0 {
		checks = append(checks, api.Check{Name: "other runners", Level: levelNote, Text: "not installed: " + strings.Join(missing, ", ")})
	}
	return checks
}

// installedCheck returns the finding about a runner's program: its version, and whether the user is
// logged in where that shows.
func installedCheck(name string, kind agency.RunnerKind, path, version string, env agency.Environ) api.Check {
	check := api.Check{Name: "runner " + name, Level: levelOK, Text: path}
	if version != "" {
		check.Text += " (" + version + ")"
	}
	if found, known := harness.Login(kind, env); known {
		if found == "" {
			found = "no sign of one"
			check.Level, check.Fix = levelNote, "start "+harness.Program(kind)+" once and log in"
		}
		check.Text += ", login: " + found
	}
	if !harness.IsTested(kind, version) {
		check.Level = levelNote
		check.Text += "; tested with " + harness.Tested(kind) + ", so some of its events may be unknown"
	}
	return check
}
