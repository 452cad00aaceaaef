package agency

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// PromptLimit is the largest prompt, in bytes.
const PromptLimit = 16 << 20

// Spec is what a user asks for: the content of a --spec file and of spec.json. Flags override a
// file, and both override the defaults, before it is sent. Relative paths are relative to the
// repository.
type Spec struct {
	// Preset names a table of the configuration that supplies what the other fields leave open.
	Preset  string `json:"preset,omitempty"`
	Repo    string `json:"repo,omitempty"`       // a path in the repository; default: the caller's working directory
	BaseRef string `json:"base_ref,omitempty"`   // what it starts from, as a git reference; default: as the repository or the user configures it, HEAD at last
	Branch  string `json:"new_branch,omitempty"` // the branch to make; default agency/<handle>
	// Name is the run's name: 2 to 40 lower-case letters, digits and single dashes, beginning with a
	// letter. Left out, the run has only its handle.
	Name   string      `json:"name,omitempty"`
	Type   string      `json:"type,omitempty"`   // one word for the kind of task; it can be a part of the handle
	Tags   []string    `json:"tags,omitempty"`   // words by which runs are chosen; default: those of the preset, or else worker
	Runner SpecRunner  `json:"runner,omitzero"`  // the agent program; default: that of the preset, the repository or the configuration
	Prompt SpecPrompt  `json:"prompt"`           // the task
	Inputs []SpecInput `json:"inputs,omitempty"` // files of the repository that the run depends on; agency records their content
	Limits SpecLimits  `json:"limits,omitzero"`  // when an attempt is ended, or counts as hanging
	// Resources are how much of the machine each attempt may use. The configuration sets the limits
	// that are left out.
	Resources Resources    `json:"resources,omitzero"`
	Env       []string     `json:"env,omitempty"`      // NAME=value; overrides the caller's environment
	Headless  *bool        `json:"headless,omitempty"` // without a terminal: the agent works on the prompt and ends; short for a mode
	Mode      Mode         `json:"mode,omitempty"`     // how agency speaks with the agent; empty is as configured
	Image     string       `json:"image,omitempty"`    // what the container is made of, with the sandbox level container; empty is as configured
	Sandbox   SandboxLevel `json:"sandbox,omitempty"`  // how the agent is kept apart from the machine; empty is as configured
	Network   Network      `json:"network,omitempty"`  // what it reaches from there; empty is as configured
	Hosts     []string     `json:"hosts,omitempty"`    // with the network allow: what it reaches beside the configured hosts
	NoSetup   bool         `json:"no_setup,omitempty"` // skips what the repository's agency.toml wants done in new worktrees
	// SystemPrompt describes the agent's role. It comes in addition to the task and holds for the
	// whole run.
	SystemPrompt string `json:"system_prompt,omitempty"`
}

// SystemPromptLimit is the largest system prompt, in bytes: some agents take it as one argument.
const SystemPromptLimit = 32 << 10

// CheckSystemPrompt refuses a text that no agent can take as its role.
func CheckSystemPrompt(text string) error {
	bad := func(format string, args ...any) *Error { return Errorf(CodeSpecInvalid, format, args...) }
	switch {
	case len(text) > SystemPromptLimit:
		return bad("the system prompt has %d bytes, more than %d", len(text), SystemPromptLimit).
			WithHint("put the material into files of the repository and name them in it")
	case !utf8.ValidString(text):
		return bad("the system prompt is not valid UTF-8")
	}
	for _, r := range text {
		if unicode.IsControl(r) && r != '\n' && r != '\t' && r != '\r' {
			return bad("the system prompt holds the control character %U", r)
		}
	}
	return nil
}

// SpecRunner chooses the agent program.
type SpecRunner struct {
	Kind  RunnerKind `json:"kind,omitempty"`  // the name of a coding agent, shell (the prompt is a script), or custom
	Name  string     `json:"name,omitempty"`  // of a custom runner, as the configuration has it
	Model string     `json:"model,omitempty"` // the model that the agent is to use; default: that of the preset, or the agent's own choice
	Args  []string   `json:"args,omitempty"`  // more arguments for the program
	// SkipPermissions makes the agent act without asking for permission.
	SkipPermissions bool `json:"dangerously_skip_permissions,omitempty"`
}

// SpecPrompt is the source of the task: a text, or a file whose path is absolute or relative to the
// repository.
type SpecPrompt struct {
	// Path is a file with the task, absolute or relative to the repository. A prompt has a path or a
	// text.
	Path string `json:"path,omitempty"`
	Text string `json:"text,omitempty"` // the task itself
}

// SpecInput is a file of the repository that the run depends on.
type SpecInput struct {
	Path string `json:"path"`           // of a regular file, relative to the root of the repository
	Mode string `json:"mode,omitempty"` // "read", the only mode
}

// CheckPrompt refuses a text that no agent can take.
func CheckPrompt(text string) error {
	bad := func(format string, args ...any) *Error { return Errorf(CodeSpecInvalid, format, args...) }
	switch {
	case strings.TrimSpace(text) == "":
		return bad("the prompt is empty").WithHint(`agency run --prompt "fix the login test"`)
	case len(text) > PromptLimit:
		return bad("the prompt has %d bytes, more than %d", len(text), PromptLimit).
			WithHint("put the material into files of the repository and name them in the prompt")
	case !utf8.ValidString(text):
		return bad("the prompt is not valid UTF-8").WithHint("iconv -f LATIN1 -t UTF-8 task.txt | agency run --prompt -")
	case strings.ContainsRune(text, 0):
		return bad("the prompt holds a NUL byte").WithHint("a prompt is text; name binary files instead of quoting them")
	}
	return nil
}

// SpecLimits bounds an attempt.
type SpecLimits struct {
	MaxMinutes int `json:"max_minutes,omitempty"` // the longest time of one attempt, in minutes, at most 43200; 0 sets no limit
	// StallAfterMS is how long the agent may give no sign before it counts as stalled, in
	// milliseconds; 0 takes the configuration's value.
	StallAfterMS int64 `json:"stall_after_ms,omitempty"`
	// StuckIntervals is how many intervals of the watchdog the agent may give no sign of life
	// before it counts as stuck; 0 takes the configuration's value.
	StuckIntervals int `json:"stuck_intervals,omitempty"`
}

// MaxStuckIntervals is the maximum of StuckIntervals.
const MaxStuckIntervals = 10_000

// MaxStallMS is the maximum of StallAfterMS, in milliseconds.
const MaxStallMS = 7 * 24 * 60 * 60 * 1000

// Validate checks everything that needs no file, no repository and no configuration.
func (s *Spec) Validate() error {
	bad := func(format string, args ...any) *Error { return Errorf(CodeSpecInvalid, format, args...) }
	if err := s.checkWords(); err != nil {
		return err
	}
	if err := (Sandbox{Level: s.Sandbox, Network: s.Network}).Check(); err != nil {
		return err
	}
	if err := s.checkRunner(); err != nil {
		return err
	}
	switch {
	case s.Prompt.Text != "" && s.Prompt.Path != "":
		return bad("the prompt is given as text and as a file").WithHint("give one of the two")
	case s.Limits.MaxMinutes < 0 || s.Limits.MaxMinutes > 60*24*30:
		return bad("max_minutes is %d, not between 0 (no limit) and %d", s.Limits.MaxMinutes, 60*24*30)
	case s.Limits.StuckIntervals < 0 || s.Limits.StuckIntervals > MaxStuckIntervals:
		return bad("stuck_intervals is %d, not between 0 (as configured) and %d", s.Limits.StuckIntervals, MaxStuckIntervals)
	case s.Limits.StallAfterMS < 0 || s.Limits.StallAfterMS > MaxStallMS:
		return bad("stall_after_ms is %d, not between 0 (as configured) and %d", s.Limits.StallAfterMS, int64(MaxStallMS))
	}
	if err := s.Resources.Check(); err != nil {
		return err
	}
	if err := CheckEnv(s.Env); err != nil {
		return err
	}
	for _, in := range s.Inputs {
		if in.Path == "" {
			return bad("an input has no path")
		}
		if in.Mode != "" && in.Mode != "read" {
			return bad("input %q: mode %q does not exist", in.Path, in.Mode).WithHint(`the only mode is "read"`)
		}
	}
	return CheckSystemPrompt(s.SystemPrompt)
}

// checkWords checks the words by which a run is found.
func (s *Spec) checkWords() error {
	if s.Name != "" {
		if err := CheckName(s.Name); err != nil {
			return err
		}
	}
	if s.Type != "" {
		if err := CheckWord("type", s.Type); err != nil {
			return err
		}
	}
	if len(s.Tags) > mostTags {
		return Errorf(CodeSpecInvalid, "a run has at most %d tags, and %d are given", mostTags, len(s.Tags))
	}
	for _, tag := range s.Tags {
		if err := CheckWord("tag", tag); err != nil {
			return err
		}
	}
	return nil
}

// Limits of what a run is listed with.
const (
	mostOfWord = 200 // bytes of the name of a runner or a model
	mostTags   = 64
)

// checkRunner checks the choice of the runner, and whether a runner of its kind can take the settings.
func (s *Spec) checkRunner() error {
	bad := func(format string, args ...any) *Error { return Errorf(CodeSpecInvalid, format, args...) }
	if s.Runner.Kind == "" {
		return bad("the runner has no kind").WithHint("name a coding agent, shell or custom")
	}
	if s.Runner.Kind == Custom && s.Runner.Name == "" {
		return bad("a custom runner needs a name").WithHint("name one of the [runners.custom.NAME] tables of the configuration")
	}
	for _, word := range []string{s.Runner.Name, s.Runner.Model} {
		if len(word) > mostOfWord {
			return bad("the runner or the model has %d bytes, more than %d", len(word), mostOfWord)
		}
		if strings.ContainsFunc(word, unicode.IsControl) || !utf8.ValidString(word) {
			return bad("the runner or the model %q holds a control character", word)
		}
	}
	if strings.HasPrefix(s.Runner.Model, "-") {
		return bad("the model %q begins with a dash", s.Runner.Model)
	}
	if s.Runner.Kind == Shell || s.Runner.Kind == Custom {
		switch {
		case s.SystemPrompt != "":
			return bad("a runner of the kind %s takes no system prompt", s.Runner.Kind).WithHint("say it in the prompt")
		case s.Runner.SkipPermissions:
			return bad("a runner of the kind %s asks for no permissions that agency could skip", s.Runner.Kind).
				WithHint("drop dangerously_skip_permissions; what the program needs goes into its arguments")
		}
	}
	for _, arg := range s.Runner.Args {
		if strings.ContainsRune(arg, 0) {
			return bad("a runner argument holds a NUL byte")
		}
	}
	return nil
}

// CheckEnv refuses, as E_SPEC_INVALID, entries that are not NAME=value or that belong to agency.
// Its errors show no values, which can be secrets.
func CheckEnv(env []string) error {
	for _, kv := range env {
		name, _, ok := strings.Cut(kv, "=")
		switch {
		case !ok:
			return Errorf(CodeSpecInvalid, "env %q is not NAME=value", kv)
		case name == "":
			return Errorf(CodeSpecInvalid, "env %q has no name", kv)
		case strings.ContainsRune(kv, 0):
			return Errorf(CodeSpecInvalid, "env %q holds a NUL byte", name)
		case strings.HasPrefix(name, "AGENCY_"):
			return Errorf(CodeSpecInvalid, "env %s belongs to agency and cannot be set", name)
		}
	}
	return nil
}
