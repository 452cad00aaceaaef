package config

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agency"
	"agency/internal/document"
	"agency/internal/file"
	"agency/internal/plain"
)

// Preset is a named role: the settings of a run for what it does not set itself.
type Preset struct {
	Harness         string // a kind, or the name of a custom runner; empty is the default runner
	Description     string // for the user
	Model           string
	SkipPermissions bool
	Args            []string // for the runner, before those of the run
	Env             []string // NAME=value, before that of the run
	PromptFile      string   // of the system prompt, absolute; empty is none
	Tags            []string
	Headless        bool
	Mode            agency.Mode    // empty leaves the choice open
	Sandbox         agency.Sandbox // empty fields leave the choice open
	Resources       agency.Resources
	StallThreshold  time.Duration // 0 takes the value of [watchdog]
	StuckIntervals  int           // 0 takes the value of [watchdog]
	ErrorPatterns   []string      // none takes the value of [watchdog]
}

// Preset returns a preset by its name. An unknown name is E_SPEC_INVALID, with the nearest known
// one.
func (c *Config) Preset(name string) (Preset, error) {
	if p, ok := c.Presets[name]; ok {
		return p, nil
	}
	known := slices.Sorted(maps.Keys(c.Presets))
	err := agency.Errorf(agency.CodeSpecInvalid, "there is no preset named %q", clip(name))
	switch near := plain.Nearest(name, known); {
	case near != "":
		return Preset{}, err.WithHint("did you mean %s? The presets are %s", near, strings.Join(known, ", "))
	case len(known) > 0:
		return Preset{}, err.WithHint("the presets are %s", strings.Join(known, ", "))
	default:
		return Preset{}, err.WithHint("add [presets.%s] to %s", clip(name), c.Path)
	}
}

// SystemPrompt returns the content of the system prompt; it is empty when there is none. A file
// that is missing, too large or not text is an error.
func (p *Preset) SystemPrompt() (string, error) {
	if p.PromptFile == "" {
		return "", nil
	}
	// Users who keep the configuration elsewhere and link to it do so with this file too.
	path, err := filepath.EvalSymlinks(p.PromptFile)
	var data []byte
	if err == nil {
		data, err = file.ReadRegular(path, agency.SystemPromptLimit)
	}
	if err != nil {
		return "", agency.Errorf(agency.CodeConfigInvalid, "the system prompt %s cannot be read: %w", p.PromptFile, file.Cause(err)).
			WithHint("it must be a regular file of at most %d bytes that you may read", agency.SystemPromptLimit)
	}
	if err := agency.CheckSystemPrompt(string(data)); err != nil {
		return "", agency.Errorf(agency.CodeConfigInvalid, "%s: %w", p.PromptFile, err)
	}
	return string(data), nil
}

const presetTable = "presets"

// addPresets registers a table for each preset of these names. dir is the folder for relative
// paths.
func (f *format) addPresets(names []string, dir string) {
	f.presets = map[string]*Preset{}
	f.table("", presetTable)
	for _, name := range names {
		p := &Preset{Args: []string{}, Env: []string{}, Tags: []string{}, ErrorPatterns: []string{}}
		f.presets[name] = p
		f.table(presetTable, name,
			textKey("harness", &p.Harness, checkText),
			textKey("description", &p.Description, checkText),
		)
		f.table(dotted(presetTable, name), "config",
			textKey("model", &p.Model, checkModel),
			boolKey("dangerously_skip_permissions", &p.SkipPermissions),
			listKey("args", &p.Args, checkText),
			envKey("env", &p.Env),
			pathKey("system_prompt_file", &p.PromptFile, dir),
			listKey("tags", &p.Tags, checkTag),
			boolKey("headless", &p.Headless),
			modeKey(&p.Mode),
			levelKey("sandbox", &p.Sandbox.Level),
			networkKey("network", &p.Sandbox.Network),
			durationKey("stall_threshold", &p.StallThreshold, 0, 7*24*time.Hour),
			numberKey("stuck_threshold_intervals", &p.StuckIntervals, 1, 0, agency.MaxStuckIntervals),
			patternsKey("error_patterns", &p.ErrorPatterns),
		)
		f.table(dotted(presetTable, name), "resources", resourcesKeys(&p.Resources)...)
	}
}

func checkPresetName(name string) error { return agency.CheckWord("preset name", name) }

// checkPresets checks what concerns more than one key of a preset, and replaces the name of an
// agent's program by its kind.
func (f *format) checkPresets() {
	runners := f.runnerNames()
	for _, program := range slices.Sorted(maps.Keys(programs())) {
		if !slices.Contains(runners, program) {
			runners = append(runners, program)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.presets)) {
		table, p := dotted(presetTable, name), f.presets[name]
		about := func(k, text, hint string) {
			if full := table + "." + k; !f.refused[full] {
				f.found.Add(f.seen[full], hint, "%s", text)
			}
		}
		_, isCustom := f.custom[p.Harness]
		switch {
		case programs()[p.Harness] != "" && !isCustom:
			p.Harness = string(programs()[p.Harness])
		case p.Harness != "" && !slices.Contains(runners, p.Harness):
			about("harness", fmt.Sprintf("%s is %s, which is not a runner", named(dotted(table, "harness")), quote(clip(p.Harness))), nearestOrAll(p.Harness, runners, named))
		}
		if isCustom || p.Harness == string(agency.Shell) {
			if p.SkipPermissions {
				about("config.dangerously_skip_permissions", fmt.Sprintf("%s has no effect for %s", named(table+".config.dangerously_skip_permissions"), quote(clip(p.Harness))),
					"what the program needs goes into args")
			}
			if p.PromptFile != "" {
				about("config.system_prompt_file", fmt.Sprintf("%s has no effect for %s", named(table+".config.system_prompt_file"), quote(clip(p.Harness))),
					"say it in the prompt of the run")
			}
		}
	}
}

// pathKey binds a path; a relative one is resolved in dir.
func pathKey(name string, p *string, dir string) key {
	k := textKey(name, p, checkText)
	set := k.set
	k.set = func(v *document.Value) error {
		err := set(v)
		if err == nil && *p != "" && !filepath.IsAbs(*p) {
			*p = filepath.Join(dir, *p)
		}
		return err
	}
	return k
}

// envKey binds NAME=value. Only the names are shown: values can be secrets.
func envKey(name string, p *[]string) key {
	k := listKey(name, p, checkAssignment)
	k.show = func() string {
		shown := make([]string, 0, len(*p))
		for _, kv := range *p {
			name, _, _ := strings.Cut(kv, "=")
			shown = append(shown, name+"=…")
		}
		return showList(shown)
	}
	return k
}

func checkModel(s string) error {
	if strings.HasPrefix(s, "-") {
		return fmt.Errorf("must be a model, not %q", clip(s))
	}
	return checkText(s)
}

// checkAssignment checks NAME=value. Its errors quote no value, which can be a secret.
func checkAssignment(s string) error {
	name, _, ok := strings.Cut(s, "=")
	switch {
	case !ok:
		return errors.New("must be NAME=value")
	case !variableRule().MatchString(name):
		return fmt.Errorf("must begin with the name of a variable, not %q", clip(name))
	case strings.HasPrefix(name, "AGENCY_"):
		return fmt.Errorf("must not set %s, which belongs to agency", clip(name))
	}
	return checkText(s)
}
