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

// DefaultParallel is how many agents of a session run at once when nobody says otherwise.
const DefaultParallel = 3

// BaseDeps as the base of an agent stands for the merged results of the agents that it comes after.
const BaseDeps = "deps"

// Plan is what a session executes: agents with dependencies. It is complete: what the plan's own defaults filled in, and the
// text of every prompt, is in it, so that nothing that happens to the files later changes what runs.
type Plan struct {
	Name        string         `json:"name"`
	Path        string         `json:"path"` // absolute path of the file or folder that it was read from; empty when none
	Base        string         `json:"base"` // a git reference, or BaseDeps; empty is as the repository says
	MaxParallel int            `json:"max_parallel"`
	Limits      map[string]int `json:"limits"` // by runner: how many of its agents may run at once; never nil
	OnFailure   OnFailure      `json:"on_failure"`
	Agents      []PlanAgent    `json:"agents"` // in the order of the plan
}

// The limits of a plan.
const (
	MaxAgents         = 5_000
	MaxDependencies   = 250_000 // of all agents together
	MaxParallelAgents = 1_000
	MaxRetries        = 100
	MaxTimeout        = 30 * 24 * time.Hour
)

// MaxPromptBytes is how large the prompts of a plan may be together, in bytes.
const MaxPromptBytes = 4 * PromptLimit

// OnFailure says what becomes of a session when one of its agents fails.
type OnFailure string

// The policies.
const (
	// StopOnFailure starts nothing new: what is queued is cancelled, what runs may finish.
	StopOnFailure OnFailure = "stop"
	// ContinueOnFailure cancels what depends on the agent, and goes on with the rest.
	ContinueOnFailure OnFailure = "continue"
	// AskOnFailure pauses the session and tells somebody.
	AskOnFailure OnFailure = "ask"
)

// DoneWhen says when an agent is complete.
type DoneWhen string

// The rules.
const (
	// DoneWhenReady is when the agent says that it is ready for review, whose program is then ended, or when its program exits
	// with status 0 and asked for nothing.
	DoneWhenReady DoneWhen = "ready"
	// DoneWhenExit is when its program exits with status 0.
	DoneWhenExit DoneWhen = "exit"
)

// PlanAgent is one agent of a plan.
type PlanAgent struct {
	ID         string   `json:"id"`
	Name       string   `json:"name"`
	Prompt     string   `json:"prompt"`      // the text
	PromptPath string   `json:"prompt_path"` // absolute path of the file that it was read from; empty when none
	Runner     string   `json:"runner"`      // as people name it; empty is as preset and repository say
	Preset     string   `json:"preset"`
	Model      string   `json:"model"`
	Args       []string `json:"args"`
	Tags       []string `json:"tags"`
	Headless   *bool    `json:"headless"`
	Base       string   `json:"base"`  // a git reference or BaseDeps; empty is as the repository says
	After      []string `json:"after"` // ids of the agents whose end it waits for
	// Wave is its depth: 1 when it waits for nobody, else one more than the deepest of those it waits for.
	Wave    int      `json:"wave"`
	Touches []string `json:"touches"` // patterns of the files that it changes
	// Timeout is the longest time from its start to its end, all attempts together; 0 is none.
	Timeout time.Duration `json:"timeout_ms"`
	// IdleTimeout is the longest time without any sign of life; 0 is none.
	IdleTimeout time.Duration `json:"idle_timeout_ms"`
	Retries     int           `json:"retries"` // how many more attempts it has after one that failed
	DoneWhen    DoneWhen      `json:"done_when"`
}

// WaveList are the ids of the agents by wave, lowest first; numbers of waves that the plan leaves out are left out here too.
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

// Dependents are the ids of all agents that wait for an agent, directly or through others, in the order of the plan.
func (p *Plan) Dependents(id string) []string {
	before := map[string][]string{} // by id: who waits for it
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

// Hash is the SHA-256, in hex, of everything that the plan says, the texts of the prompts included. Where its files lie is not
// part of what it says: a repository can move.
func (p *Plan) Hash() string {
	said := *p
	said.Path, said.Agents = "", slices.Clone(p.Agents)
	for i := range said.Agents {
		said.Agents[i].PromptPath = ""
	}
	text, _ := json.Marshal(said) // plain values: it cannot fail
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// plainAgent is a PlanAgent without its own way into JSON.
type plainAgent PlanAgent

// MarshalJSON writes times in whole milliseconds, as everything else does.
func (a PlanAgent) MarshalJSON() ([]byte, error) {
	a.Timeout /= time.Millisecond
	a.IdleTimeout /= time.Millisecond
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // prompts are full of what would be escaped
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

// PlanSchema is the JSON Schema (draft 2020-12) of the YAML form of a plan. It allows what the reader takes, but for what no schema
// can say: how the agents hang together, and the files that they name.
//
//go:embed session_plan.schema.json
var PlanSchema string
