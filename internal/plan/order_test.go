package plan_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"agency"
	"agency/internal/plan"
)

// agents makes a plan of agents that are written as "id" or "id: dependency dependency".
func agents(lines ...string) *agency.Plan {
	p := &agency.Plan{}
	for _, line := range lines {
		id, after, _ := strings.Cut(line, ":")
		p.Agents = append(p.Agents, agency.PlanAgent{ID: id, Prompt: "do it", After: strings.Fields(after)})
	}
	return p
}

// planAgent is the agent with an id, or nil.
func planAgent(p *agency.Plan, id string) *agency.PlanAgent {
	if i := slices.IndexFunc(p.Agents, func(a agency.PlanAgent) bool { return a.ID == id }); i >= 0 {
		return &p.Agents[i]
	}
	return nil
}

// check fills in and validates a plan.
func check(p *agency.Plan) error {
	if err := plan.Fill(p); err != nil {
		return err
	}
	return plan.Check(p)
}

func TestPlanOrder(t *testing.T) {
	t.Parallel()
	p := agents("left: top", "top", "right: top", "bottom: left right", "alone")
	if err := check(p); err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(p.WaveList()), "[[top alone] [left right] [bottom]]"; got != want {
		t.Errorf("the waves are %s, not %s", got, want)
	}
	if got, want := fmt.Sprint(p.Dependents("top")), "[left right bottom]"; got != want {
		t.Errorf("%s come after top, not %s", got, want)
	}
	if got := p.Dependents("alone"); len(got) != 0 || got == nil {
		t.Errorf("%v come after alone", got)
	}
	if planAgent(p, "right").Wave != 2 || planAgent(p, "none") != nil {
		t.Error("agents are not found by their ids")
	}
}

func TestPlanWaves(t *testing.T) {
	t.Parallel()
	p := &agency.Plan{Agents: []agency.PlanAgent{
		{ID: "a", Prompt: "x", Wave: 1},
		{ID: "b", Prompt: "x", Wave: 1},
		{ID: "c", Prompt: "x", Wave: 5},
		{ID: "d", Prompt: "x", Wave: 5, After: []string{}},
		{ID: "e", Prompt: "x", After: []string{"c"}},
		{ID: "f", Prompt: "x", Wave: 7, After: []string{"a"}},
		{ID: "g", Prompt: "x", Wave: 7},
	}}
	if err := check(p); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{"a": "[] 1", "c": "[a b] 5", "d": "[] 5", "e": "[c] 6", "f": "[a] 7", "g": "[e] 7"} {
		if a := planAgent(p, id); fmt.Sprint(a.After, a.Wave) != want {
			t.Errorf("%s comes after %v in wave %d, not %s", id, a.After, a.Wave, want)
		}
	}
}

// planFaults are plans that are refused, by what is wrong with them.
var planFaults = map[string]struct {
	plan          *agency.Plan
	change        func(p *agency.Plan)
	message, hint string
}{
	"no agents":           {&agency.Plan{}, nil, "has no agents", "agents:"},
	"circle":              {agents("001: 002", "002: 001"), nil, "001 -> 002 -> 001", "remove one from the after"},
	"long circle":         {agents("x", "a: x b", "b: x c", "c: a"), nil, "a -> b -> c -> a", ""},
	"itself":              {agents("a: a"), nil, "comes after itself", ""},
	"unknown":             {agents("first", "second: frist"), nil, `"second" comes after "frist", and the plan has no such agent`, "did you mean first?"},
	"unknown, case":       {agents("First", "b: first"), nil, "no such agent", "did you mean First?"},
	"unknown, far":        {agents("a", "b: zzzzzz"), nil, "no such agent", "the first of its agents are a"},
	"unknown, alone":      {agents("b: zzzzzz"), nil, "no such agent", "there is no other agent"},
	"twice in after":      {agents("a", "b: a a"), nil, `names "a" twice`, ""},
	"same id":             {agents("a", "b", "a"), nil, `two agents have the id "a"`, ""},
	"same id, folded":     {agents("Login", "login"), nil, `"Login" and "login" differ in upper and lower case only`, ""},
	"id with a slash":     {agents("a/b"), nil, `the agent id "a/b" is not allowed`, "letters, digits"},
	"id with dots":        {agents("a..b"), nil, "not allowed", ""},
	"id with a lock":      {agents("a.lock"), nil, "not allowed", ""},
	"id with a dot":       {agents("a."), nil, "not allowed", ""},
	"id with a dash":      {agents("-a"), nil, "not allowed", ""},
	"long id":             {agents(strings.Repeat("a", 65)), nil, "not allowed", ""},
	"no prompt":           {agents("a"), func(p *agency.Plan) { p.Agents[0].Prompt = " \n" }, "the prompt is empty", ""},
	"wave too low":        {agents("a", "b: a"), func(p *agency.Plan) { p.Agents[1].Wave = 1 }, `agent "b" is in wave 1 and comes after "a", which is in wave 1`, "wave: 2"},
	"waves against after": {agents("a", "b: a"), func(p *agency.Plan) { p.Agents[0].After, p.Agents[0].Wave, p.Agents[1].Wave = nil, 2, 1 }, `agent "b" is in wave 1 and comes after "a", which is in wave 2`, "wave: 3"},
	"negative wave":       {agents("a"), func(p *agency.Plan) { p.Agents[0].Wave = -1 }, "in wave -1", ""},
	"too parallel":        {agents("a"), func(p *agency.Plan) { p.MaxParallel = -1 }, "max_parallel is -1", ""},
	"limit":               {agents("a"), func(p *agency.Plan) { p.Limits = map[string]int{"codex": 0} }, `the limit of "codex" is 0`, ""},
	"policy":              {agents("a"), func(p *agency.Plan) { p.OnFailure = "retry" }, `on_failure is "retry"`, "stop, continue, ask"},
	"done when":           {agents("a"), func(p *agency.Plan) { p.Agents[0].DoneWhen = "merged" }, `done_when is "merged"`, "ready, exit"},
	"retries":             {agents("a"), func(p *agency.Plan) { p.Agents[0].Retries = 101 }, "retries is 101", ""},
	"timeout":             {agents("a"), func(p *agency.Plan) { p.Agents[0].Timeout = time.Millisecond }, "timeout is 1ms", "30m"},
	"idle timeout":        {agents("a"), func(p *agency.Plan) { p.Agents[0].IdleTimeout = 1e18 }, "idle_timeout is", ""},
	"tag":                 {agents("a"), func(p *agency.Plan) { p.Agents[0].Tags = []string{"No Good"} }, `the tag "No Good"`, ""},
	"model":               {agents("a"), func(p *agency.Plan) { p.Agents[0].Model = "-x" }, "begins with a dash", "args"},
	"argument":            {agents("a"), func(p *agency.Plan) { p.Agents[0].Args = []string{"\x00"} }, "NUL", ""},
	"base":                {agents("a"), func(p *agency.Plan) { p.Base = "--help" }, "begins with a dash", ""},
	"base of an agent":    {agents("a"), func(p *agency.Plan) { p.Agents[0].Base = "a b" }, "holds a space", ""},
	"name":                {agents("a"), func(p *agency.Plan) { p.Name = "a\x1b[2J" }, "is not printed", ""},
	"name of an agent":    {agents("a"), func(p *agency.Plan) { p.Agents[0].Name = strings.Repeat("a", 101) }, "too long", ""},
	"overlap": {agents("a", "b"), func(p *agency.Plan) {
		p.Agents[0].Touches, p.Agents[1].Touches = []string{"docs", "internal/**"}, []string{"internal/auth/*.go"}
	}, `agents "a" and "b" can run at once and touch the same files: internal/** and internal/auth/*.go`, "in b, after: [a]"},
	"overlap of cousins": {agents("a", "b: a", "c: a"), func(p *agency.Plan) {
		p.Agents[0].Touches, p.Agents[1].Touches, p.Agents[2].Touches = []string{"x"}, []string{"x"}, []string{"x"}
	}, `agents "b" and "c"`, ""},
	"overlap with what must be a folder": {agents("a", "b"), func(p *agency.Plan) {
		p.Agents[0].Touches, p.Agents[1].Touches = []string{"internal/auth"}, []string{"internal/auth/*.go"}
	}, "internal/auth and internal/auth/*.go", ""},
	"pattern": {agents("a"), func(p *agency.Plan) { p.Agents[0].Touches = []string{"../x"} }, `the pattern "../x" is not a plain path`, "root of the repository"},
}

func TestPlanFaults(t *testing.T) {
	t.Parallel()
	for name, test := range planFaults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := *test.plan
			p.Agents = slices.Clone(p.Agents)
			if test.change != nil {
				test.change(&p)
			}
			err := agency.AsError(check(&p))
			if err == nil || err.Code != agency.CodePlanInvalid || !strings.Contains(err.Message, test.message) || !strings.Contains(err.Hint, test.hint) {
				t.Errorf("got %+v", err)
			}
		})
	}
}

func TestPlanTouchesInOrder(t *testing.T) {
	t.Parallel()
	p := agents("a", "b: a", "c: b", "d")
	for i, touches := range []string{"x", "y", "x/y", "z"} {
		p.Agents[i].Touches = []string{touches}
	}
	if err := check(p); err != nil {
		t.Error(err)
	}
}

func TestPlanTouchesBudget(t *testing.T) {
	t.Parallel()
	p := &agency.Plan{}
	for i := range 2_000 {
		a := agency.PlanAgent{ID: fmt.Sprint(i), Prompt: "x"}
		for k := range 10 {
			a.Touches = append(a.Touches, strings.Repeat("**/*a*b*c*d*e*f/", 10)+fmt.Sprintf("x%d-%d.go", i, k))
		}
		p.Agents = append(p.Agents, a)
	}
	if err := agency.AsError(check(p)); err == nil || !strings.Contains(err.Message, "too many to compare") {
		t.Errorf("got %+v", err)
	}
}

func TestPlanTooManyDependencies(t *testing.T) {
	t.Parallel()
	p := &agency.Plan{}
	for i := range agency.MaxAgents {
		p.Agents = append(p.Agents, agency.PlanAgent{ID: fmt.Sprint(i), Prompt: "x", Wave: 1 + i%2})
	}
	if err := agency.AsError(check(p)); err == nil || !strings.Contains(err.Message, "more than 250000 dependencies") {
		t.Errorf("got %+v", err)
	}
}

func TestPlanHash(t *testing.T) {
	t.Parallel()
	plan := func() *agency.Plan {
		p := agents("a", "b: a")
		p.Limits = map[string]int{"codex": 1, "claude_code": 2, "custom": 3, "shell": 4}
		if err := check(p); err != nil {
			t.Fatal(err)
		}
		return p
	}
	first := plan().Hash()
	moved := plan()
	moved.Path, moved.Agents[0].PromptPath = "/somewhere/else.yaml", "/somewhere/a.md"
	if plan().Hash() != first || moved.Hash() != first || moved.Path == "" || moved.Agents[0].PromptPath == "" {
		t.Error("the same plan has another hash, or was changed")
	}
	text, err := json.Marshal(plan())
	if err != nil {
		t.Fatal(err)
	}
	var back agency.Plan
	if err := json.Unmarshal(text, &back); err != nil || back.Hash() != first {
		t.Errorf("a plan that was stored has another hash: %v", err)
	}
	seen := map[string]bool{first: true}
	for name, change := range map[string]func(p *agency.Plan){
		"prompt": func(p *agency.Plan) { p.Agents[1].Prompt += "." }, "limit": func(p *agency.Plan) { p.Limits["codex"] = 2 },
		"after": func(p *agency.Plan) { p.Agents[1].After = []string{} }, "order": func(p *agency.Plan) { slices.Reverse(p.Agents) },
		"headless": func(p *agency.Plan) { p.Agents[0].Headless = new(bool) },
	} {
		p := plan()
		change(p)
		if hash := p.Hash(); seen[hash] {
			t.Errorf("another %s has the same hash", name)
		} else {
			seen[hash] = true
		}
	}
}

// randomPlan draws a plan without circles: each agent depends on some of those before it in a
// random order.
func randomPlan(t *rapid.T) *agency.Plan {
	n := rapid.IntRange(1, 40).Draw(t, "agents")
	p := &agency.Plan{}
	for i := range n {
		a := agency.PlanAgent{ID: fmt.Sprintf("%03d", i), Prompt: "x", After: []string{}}
		for j := range i {
			if rapid.IntRange(0, 5).Draw(t, "depends") == 0 {
				a.After = append(a.After, fmt.Sprintf("%03d", j))
			}
		}
		p.Agents = append(p.Agents, a)
	}
	order := rapid.Permutation(p.Agents).Draw(t, "order")
	return &agency.Plan{Agents: order}
}

func TestPlanWavesAreTheDepth(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := randomPlan(t)
		if err := check(p); err != nil {
			t.Fatal(err)
		}
		var depth func(id string) int
		depth = func(id string) int {
			deepest := 0
			for _, dependency := range planAgent(p, id).After {
				deepest = max(deepest, depth(dependency))
			}
			return deepest + 1
		}
		shown := 0
		for number, wave := range p.WaveList() {
			shown += len(wave)
			for _, id := range wave {
				if a := planAgent(p, id); a.Wave != number+1 || a.Wave != depth(id) {
					t.Fatalf("%s is in wave %d, listed in %d, with depth %d", id, a.Wave, number+1, depth(id))
				}
			}
		}
		if shown != len(p.Agents) {
			t.Fatalf("%d of %d agents are in waves", shown, len(p.Agents))
		}
	})
}

func TestPlanEveryCircleIsFound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := randomPlan(t)
		if err := check(p); err != nil {
			t.Fatal(err)
		}
		// A dependency of an agent on one of its dependents makes a circle.
		var pairs [][2]string
		for i := range p.Agents {
			for _, late := range p.Dependents(p.Agents[i].ID) {
				pairs = append(pairs, [2]string{p.Agents[i].ID, late})
			}
		}
		if len(pairs) == 0 {
			return
		}
		pair := rapid.SampledFrom(pairs).Draw(t, "pair")
		early := planAgent(p, pair[0])
		early.After = append(early.After, pair[1])
		for i := range p.Agents {
			p.Agents[i].Wave = 0
		}
		err := agency.AsError(check(p))
		if err == nil || err.Code != agency.CodePlanInvalid {
			t.Fatalf("got %+v", err)
		}
		circle, ok := err.Details["cycle"].([]string)
		if !ok || len(circle) < 3 || circle[0] != circle[len(circle)-1] {
			t.Fatalf("the circle is %v", circle)
		}
		for i := range len(circle) - 1 {
			if !slices.Contains(planAgent(p, circle[i]).After, circle[i+1]) {
				t.Fatalf("in the circle %v, %s does not come after %s", circle, circle[i], circle[i+1])
			}
		}
		if len(circle) <= 20 && !strings.Contains(err.Message, strings.Join(circle, " -> ")) {
			t.Fatalf("the circle %v is not shown in %q", circle, err.Message)
		}
	})
}
