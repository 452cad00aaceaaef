package agency

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // for the schema
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"time"
)

// DefaultParallel is how many agents of a session run at once by default.
const DefaultParallel = 3

// BaseDeps as the base of an agent means the merged results of the agents that it comes after.
const BaseDeps = "deps"

// Plan is what a session executes: agents with dependencies. It is complete: defaults are filled in
// and the text of every prompt is included, so later changes of the files do not change what runs.
type Plan struct {
	Name        string         `json:"name"`         // as the plan or the command line has it; may be empty
	Path        string         `json:"path"`         // absolute path of the file or folder that it was read from; empty when none
	Base        string         `json:"base"`         // a git reference, or deps for the merged results of the agents that it comes after; empty is the default of the repository
	MaxParallel int            `json:"max_parallel"` // how many agents may run at once
	Limits      map[string]int `json:"limits"`       // by runner: how many of its agents may run at once; never null
	OnFailure   OnFailure      `json:"on_failure"`   // what happens when an agent fails
	Agents      []PlanAgent    `json:"agents"`       // in the order of the plan
	// Given is what the command line replaced in the plan; null when it replaced nothing.
	Given *PlanSettings `json:"given"`
}

// PlanSettings are the settings of a plan that the command line can replace. Empty ones are the
// plan's own.
type PlanSettings struct {
	Name        string    `json:"name"`           // of the plan
	Base        string    `json:"base"`           // as in the plan
	MaxParallel int       `json:"max_parallel"`   // how many agents may run at once; 0 is the plan's own
	OnFailure   OnFailure `json:"on_failure"`     // what happens when an agent fails; empty is the plan's own
	Land        LandBy    `json:"land,omitempty"` // how the work of every agent lands; left out is the plan's own
}

// PlanChange is the difference of one agent between two plans.
type PlanChange struct {
	Agent  string      `json:"agent"`  // its id
	Change AgentChange `json:"change"` // whether the later plan adds, changes or removes the agent
	Keys   []string    `json:"keys"`   // of a changed agent: the keys that differ; never null
}

// AgentChange is how a later plan differs in an agent.
type AgentChange string

// The changes.
const (
	AgentAdded   AgentChange = "added"   // only the later plan has it
	AgentChanged AgentChange = "changed" // both have it, and it differs
	AgentRemoved AgentChange = "removed" // only the earlier plan has it
)

// The limits of a plan.
const (
	MaxAgents         = 5_000
	MaxDependencies   = 250_000 // of all agents together
	MaxParallelAgents = 1_000
	MaxRetries        = 100
	MaxTimeout        = 30 * 24 * time.Hour
)

// MaxPromptBytes is the maximum total size of a plan's prompts, in bytes.
const MaxPromptBytes = 4 * PromptLimit

// OnFailure is what happens to a session when one of its agents fails.
type OnFailure string

// The policies.
const (
	// StopOnFailure starts nothing new: queued agents are cancelled, running ones may finish.
	StopOnFailure OnFailure = "stop"
	// ContinueOnFailure cancels the agents that depend on the failed one and continues with the
	// rest.
	ContinueOnFailure OnFailure = "continue"
	// AskOnFailure pauses the session and notifies the user or the owner.
	AskOnFailure OnFailure = "ask"
)

// DoneWhen is the rule by which an agent is complete.
type DoneWhen string

// The rules.
const (
	// DoneWhenReady means that an agent is complete when it reports that it is ready for review,
	// whereupon agency ends its program, or when its program exits with status 0 and no request is
	// open.
	DoneWhenReady DoneWhen = "ready"
	// DoneWhenExit means that an agent is complete when its program exits with status 0.
	DoneWhenExit DoneWhen = "exit"
)

// LandBy is how the work of an agent is brought into its target branch once the agent is complete.
type LandBy string

// The ways.
const (
	LandByNone  LandBy = "none"  // the user does it
	LandByQueue LandBy = "queue" // it gets a place in the landing queue of the branch
	LandByMerge LandBy = "merge" // it lands at once, as by agency merge
)

// PlanAgent is one agent of a plan.
type PlanAgent struct {
	ID         string   `json:"id"`             // unique in the plan; a part of the agent's branch
	Name       string   `json:"name"`           // for readers
	Prompt     string   `json:"prompt"`         // the text
	PromptPath string   `json:"prompt_path"`    // absolute path of the file that it was read from; empty when none
	Runner     string   `json:"runner"`         // as users name it; empty is the choice of preset and repository
	Preset     string   `json:"preset"`         // the table of the configuration that supplies what the agent leaves open; empty for none
	Model      string   `json:"model"`          // the model that it is to use; empty leaves the choice to preset and runner
	Args       []string `json:"args"`           // more arguments for its runner
	Tags       []string `json:"tags"`           // of its run
	Headless   *bool    `json:"headless"`       // the short form of two modes: true is headless, false is terminal; null leaves the choice open
	Mode       Mode     `json:"mode,omitempty"` // how agency speaks with it; left out as in headless, or else as configured
	// Sandbox is the level of its sandbox; empty is the choice of preset, repository and
	// configuration.
	Sandbox SandboxLevel `json:"sandbox"`
	Network Network      `json:"network"` // what it reaches from there; empty likewise
	// Resources are how much of the machine each attempt may use.
	Resources Resources `json:"resources"`
	Base      string    `json:"base"`  // a git reference, or deps for the merged results of the agents that it comes after; empty is the default of the repository
	After     []string  `json:"after"` // ids of the agents that must end before it starts
	// Wave is its depth: 1 without dependencies, else one more than the deepest of them.
	Wave    int      `json:"wave"`
	Touches []string `json:"touches"` // patterns of the files that it changes
	// Timeout is the longest time from its start to its end, all attempts together; 0 is none.
	Timeout time.Duration `json:"timeout_ms"`
	// IdleTimeout is the longest time without any sign of life; 0 is none.
	IdleTimeout time.Duration `json:"idle_timeout_ms"`
	Retries     int           `json:"retries"`   // how many more attempts it gets after failed ones
	DoneWhen    DoneWhen      `json:"done_when"` // when it is complete
	// Land is how its work lands. It is left out when the user lands it, and hashes of older plans
	// depend on that.
	Land LandBy `json:"land,omitempty"`
}

// WaveList returns the ids of the agents by wave, lowest first; empty waves are left out.
func (p *Plan) WaveList() [][]string {
	byWave := map[int][]string{}
	for i := range p.Agents {
		a := &p.Agents[i]
		byWave[a.Wave] = append(byWave[a.Wave], a.ID)
	}
	list := make([][]string, 0, len(byWave))
	for _, wave := range slices.Sorted(maps.Keys(byWave)) {
		list = append(list, byWave[wave])
	}
	return list
}

// Dependents returns the ids of all agents that wait for an agent, directly or through others, in
// the order of the plan.
func (p *Plan) Dependents(id string) []string {
	before := map[string][]string{} // by id: the agents that wait for it
	for i := range p.Agents {
		for _, dependency := range p.Agents[i].After {
			before[dependency] = append(before[dependency], p.Agents[i].ID)
		}
	}
	found := map[string]bool{}
	for next := []string{id}; len(next) > 0; {
		last := len(next) - 1
		waiting := before[next[last]]
		next = next[:last]
		for _, w := range waiting {
			if !found[w] {
				found[w] = true
				next = append(next, w)
			}
		}
	}
	list := []string{}
	for i := range p.Agents {
		if found[p.Agents[i].ID] {
			list = append(list, p.Agents[i].ID)
		}
	}
	return list
}

// Hash returns the SHA-256, in hex, of the plan's content, the texts of the prompts included. The
// locations of its files are not part of it, because a repository can move, and neither is what the
// command line replaced.
func (p *Plan) Hash() string {
	agents := slices.Clone(p.Agents)
	for i := range agents {
		agents[i].PromptPath = ""
	}
	text, _ := json.Marshal(struct { // plain values: it cannot fail
		Name        string         `json:"name"`
		Path        string         `json:"path"` // empty, for the hashes of older versions
		Base        string         `json:"base"`
		MaxParallel int            `json:"max_parallel"`
		Limits      map[string]int `json:"limits"`
		OnFailure   OnFailure      `json:"on_failure"`
		Agents      []PlanAgent    `json:"agents"`
	}{p.Name, "", p.Base, p.MaxParallel, p.Limits, p.OnFailure, agents})
	// Plans from before limits existed keep their hashes. In a text the quotes would be escaped.
	text = bytes.ReplaceAll(text, []byte(`"resources":{},`), nil)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// plainAgent is a PlanAgent without its JSON methods.
type plainAgent PlanAgent

// MarshalJSON writes times in whole milliseconds, as everywhere in agency's JSON.
func (a PlanAgent) MarshalJSON() ([]byte, error) {
	a.Timeout /= time.Millisecond
	a.IdleTimeout /= time.Millisecond
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // prompts are full of characters that would be escaped
	err := enc.Encode(plainAgent(a))
	return b.Bytes(), err
}

// UnmarshalJSON reads what MarshalJSON writes.
func (a *PlanAgent) UnmarshalJSON(data []byte) error {
	var p plainAgent
	if err := json.Unmarshal(data, &p); err != nil {
		return err
	}
	p.Timeout *= time.Millisecond
	p.IdleTimeout *= time.Millisecond
	*a = PlanAgent(p)
	return nil
}

// PlanSchema is the JSON Schema (draft 2020-12) of the YAML form of a plan. It accepts what the
// reader accepts, except for what a schema cannot express: how the agents depend on each other, and
// the files that they name.
//
//go:embed session_plan.schema.json
var PlanSchema string
