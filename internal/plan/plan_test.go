package plan_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"agency"
	"agency/internal/plan"
)

// repository makes a folder with files; a name that ends in / makes a folder.
func repository(t *testing.T, files map[string]string) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "/") {
			err = os.MkdirAll(path, 0o755)
		} else {
			err = os.WriteFile(path, []byte(text), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// load reads a plan from text, as if the file were in the root of a repository.
func load(root, text string) (*agency.Plan, error) {
	p, _, err := plan.Load(plan.Source{Text: text, Dir: root, Root: root})
	return p, err
}

// fullPlan has every key of a plan, and ids and prompts that YAML would take for numbers and
// truths.
const fullPlan = `
name: login
base: main
max_parallel: 5
limits: {claude_code: 2, codex: 1}
on_failure: continue
defaults:
  runner: claude_code
  model: sonnet
  args: [--verbose]
  tags: [worker, night]
  headless: true
  timeout: 2h
  idle_timeout: 90s
  retries: 2
  done_when: exit
agents:
  - id: 001
    name: 1e3
    prompt_path: prompts/login.md
    touches: [internal/auth/**]
  - id: 0o17
    prompt: |
      Write tests: many.
    after: [001]
    runner: codex
    base: deps
    headless: false
    retries: 0
  - id: true
    prompt: 7
    after: [001, 0o17]
    preset: reviewer
    model: haiku
  - {id: x, prompt: go, wave: 2}
`

func TestReadDocument(t *testing.T) {
	t.Parallel()
	root := repository(t, map[string]string{"prompts/login.md": "Fix the login.\n", "plans/x": ""})
	p, err := load(root, fullPlan)
	if err != nil {
		t.Fatal(err)
	}
	if p.Name != "login" || p.MaxParallel != 5 || fmt.Sprint(p.Limits) != "map[claude_code:2 codex:1]" || p.OnFailure != agency.ContinueOnFailure || p.Path != "" {
		t.Errorf("the plan is %+v", p)
	}
	first := planAgent(p, "001")
	if first == nil || first.Name != "1e3" || first.Prompt != "Fix the login.\n" || first.PromptPath != filepath.Join(root, "prompts/login.md") || first.Base != "main" ||
		first.Runner != "claude_code" || first.Model != "sonnet" || fmt.Sprint(first.Args, first.Tags) != "[--verbose] [worker night]" || !*first.Headless ||
		first.Timeout.String() != "2h0m0s" || first.IdleTimeout.String() != "1m30s" || first.Retries != 2 || first.DoneWhen != agency.DoneWhenExit || first.Wave != 1 {
		t.Errorf("001 is %+v", first)
	}
	second := planAgent(p, "0o17")
	if second == nil || second.Prompt != "Write tests: many.\n" || second.Runner != "codex" || second.Model != "" || len(second.Args) != 0 || second.Base != agency.BaseDeps ||
		*second.Headless || second.Retries != 0 || second.Name != "0o17" || second.Wave != 2 || fmt.Sprint(second.Tags) != "[worker night]" {
		t.Errorf("0o17 is %+v", second)
	}
	third := planAgent(p, "true")
	if third == nil || third.Prompt != "7" || third.Runner != "" || third.Preset != "reviewer" || third.Model != "haiku" || third.Wave != 3 {
		t.Errorf("true is %+v", third)
	}
	if got := fmt.Sprint(planAgent(p, "x").After); got != "[001]" {
		t.Errorf("x comes after %s", got)
	}
}

// oneAgent is a plan with the agent a, whose keys follow.
func oneAgent(keys string) string { return "agents:\n  - id: a\n    " + keys + "\n" }

// documentFaults are documents that are refused; ROOT stands for the folder of the plan.
var documentFaults = map[string]struct{ text, message, hint string }{
	"nothing":                {"# only words\n", "stdin: the plan is empty", "agents"},
	"a list":                 {"- a\n", "stdin:1:1: the plan must be a table of keys, not a list", "docs/plan.md"},
	"no agents":              {"name: x\n", "stdin:1:1: the plan has no agents", "agents:"},
	"agents, but none":       {"agents: []\n", "stdin:1:9: the plan has no agents", "agents:"},
	"agents as a text":       {"agents: a\n", `stdin:1:9: agents must be a list, or a table by their ids, not "a"`, "agents:"},
	"no table of an agent":   {"agents: {a: b}\n", `stdin:1:13: an agent must be a table of keys, not "b"`, ""},
	"an id twice":            {"agents: {a: {id: b, prompt: x}}\n", `stdin:1:18: the agent "a" has another id inside`, "leave out one"},
	"a bad id as a key":      {"agents:\n  a/b: {prompt: x}\n", `stdin:2:3: the agent id "a/b" is not allowed`, "letters"},
	"needs":                  {oneAgent("prompt: x\n    needs: [b]"), `stdin:4:5: an agent has no key "needs"`, `say "after"`},
	"depends_on":             {oneAgent("prompt: x\n    depends_on: b"), `an agent has no key "depends_on"`, `say "after"`},
	"unknown key":            {"agents: [{id: a, promt: x}]\n", `stdin:1:18: an agent has no key "promt"`, "did you mean prompt?"},
	"unknown key on top":     {"agent: []\n", `stdin:1:1: the plan has no key "agent"`, "did you mean agents?"},
	"a setting on top":       {"retries: 2\nagents: []\n", `stdin:1:1: the plan has no key "retries"`, "under defaults:"},
	"an agent's key on top":  {"after: [a]\nagents: []\n", `the plan has no key "after"`, "under agents:"},
	"a plan's key below":     {oneAgent("prompt: x\n    max_parallel: 3"), `stdin:4:5: an agent has no key "max_parallel"`, "at the top"},
	"a base in the defaults": {"defaults: {base: main}\n" + oneAgent("prompt: x"), `stdin:1:12: defaults has no key "base"`, "at the top"},
	"a prompt for all":       {"defaults: {prompt: x}\n" + oneAgent("prompt: x"), `defaults has no key "prompt"`, "with each agent"},
	"twice":                  {oneAgent("prompt: x\n    prompt: y"), "stdin:4:5: the key prompt is there twice, first on line 3", "keep one"},
	"no id":                  {"agents: [{prompt: x}]\n", "stdin:1:10: the agent has no id", "id: 001"},
	"no prompt":              {"agents: [{id: a}]\n", "stdin:1:10: the agent has no prompt", "prompt_path"},
	"two prompts":            {oneAgent("prompt: x\n    prompt_path: a.md"), "has a prompt and a prompt_path", "keep one"},
	"no value":               {oneAgent("prompt:"), "stdin:3:12: prompt has no value", ""},
	"an empty text":          {oneAgent("prompt: ''"), "prompt is empty", ""},
	"a list as text":         {oneAgent("prompt: [a]"), "prompt must be text, not a list", "quotes"},
	"text as a list":         {oneAgent("prompt: x\n    touches: b"), "stdin:4:14: touches must be a list of texts, not \"b\"", "write [b]"},
	"a number with a unit":   {oneAgent("prompt: x\n    retries: 2x"), `stdin:4:14: retries must be a whole number, not "2x"`, ""},
	"a number in quotes":     {oneAgent("prompt: x\n    retries: '2'"), "retries must be a whole number", ""},
	"a duration as a number": {oneAgent("prompt: x\n    timeout: 90"), `stdin:4:14: timeout must be a duration such as "90s" or "15m", not "90"`, ""},
	"a negative duration":    {oneAgent("prompt: x\n    timeout: -2h"), "timeout is -2h", ""},
	"a short duration":       {oneAgent("prompt: x\n    timeout: 2ms"), `stdin:4:14: agent "a": timeout is 2ms, not between 1s and 720h`, ""},
	"a truth":                {oneAgent("prompt: x\n    headless: yes"), `headless must be true or false, not "yes"`, ""},
	"limits as a list":       {"limits: [2]\n" + oneAgent("prompt: x"), "limits must be a table", "limits: {"},
	"a limit in words":       {"limits: {codex: two}\n" + oneAgent("prompt: x"), `stdin:1:17: the limit of "codex" must be a whole number`, ""},
	"a limit of zero":        {"limits: {codex: 0}\n" + oneAgent("prompt: x"), `stdin:1:9: the limit of "codex" is 0`, ""},
	"no parallel":            {"max_parallel: 0\n" + oneAgent("prompt: x"), "stdin:1:15: max_parallel is 0", ""},
	"a policy":               {"on_failure: retry\n" + oneAgent("prompt: x"), `stdin:1:13: on_failure is "retry"`, "stop, continue, ask"},
	"a default's fault":      {"defaults:\n  retries: 1000\n" + oneAgent("prompt: x"), `stdin:2:12: agent "a": retries is 1000`, ""},
	"an anchor":              {"agents: &x [{id: a, prompt: x}]\n", "stdin:1:9: a plan cannot have anchors or aliases", "defaults"},
	"an alias":               {"name: *x\n", "unknown anchor", "defaults"},
	"a merge":                {"<<: {name: x}\nagents: []\n", `the plan has no key "<<"`, ""},
	"a tag":                  {"name: !!binary aGk=\n", `a plan cannot have the tag "!!binary"`, ""},
	"a tab":                  {"name: x\n\tbase: y\n", "stdin:2:1: a tab indents the line", "spaces"},
	"a tab before a list":    {"agents:\n\t- {id: a, prompt: x}\n", "stdin:2:1: a tab indents the line", "spaces"},
	"an at sign":             {"name: @x\n", "stdin:1:7: found character that cannot start any token", "quotes"},
	"a colon":                {oneAgent("prompt: fix: it"), "stdin:3:16: mapping values are not allowed", "quotes"},
	"an open list":           {"agents: [{id: a\n", "did not find expected", ""},
	"two documents":          {oneAgent("prompt: x") + "---\nname: y\n", "stdin:4:1: a second document begins here", "---"},
	"an end and more":        {oneAgent("prompt: x") + "...\nname: y\n", "a second document begins here", ""},
	"too deep":               {"agents: " + strings.Repeat("[", 100), "nested deeper than 20 levels", ""},
	"no UTF-8":               {"name: caf\xe9\n", "stdin:1:10: there is a byte that is not text: 0xE9", "UTF-8"},
	"a control character":    {"name: a\x1b[2J\n", "stdin:1:8: there is a byte that is not text: 0x1B", ""},
	"a hidden one":           {"name: \"a\\x1b[2J\"\n" + oneAgent("prompt: x"), "stdin:1:7: the name of the plan holds U+001B, which is not printed", ""},
	"unknown dependency":     {oneAgent("prompt: x\n    after: [bb]") + "  - {id: b, prompt: x}\n", `stdin:4:12: agent "a" comes after "bb", and the plan has no such agent`, "did you mean b?"},
	"a circle":               {"agents:\n- {id: 001, prompt: x, after: [002]}\n- {id: 002, prompt: x, after: [001]}\n", "stdin:2:31: agents wait for each other in a circle: 001 -> 002 -> 001", "remove one"},
	"the same id":            {"agents:\n- {id: 1, prompt: x}\n- {id: 1, prompt: x}\n", `stdin:3:8: two agents have the id "1"`, ""},
	"a wave":                 {"agents:\n- {id: a, prompt: x, wave: 2}\n- {id: b, prompt: x, wave: 2, after: [a]}\n", `stdin:3:28: agent "b" is in wave 2 and comes after "a", which is in wave 2`, "wave: 3"},
	"wave zero":              {oneAgent("prompt: x\n    wave: 0"), "stdin:4:11: wave is 0", ""},
	"touching the same":      {"agents:\n- {id: a, prompt: x, touches: [folder]}\n- {id: b, prompt: x, touches: ['**/*.go']}\n", `stdin:3:31: agents "a" and "b" can run at once and touch the same files: folder/ and **/*.go`, "in b, after: [a]"},
	"a prompt that is away":  {oneAgent("prompt_path: b.md"), `stdin:3:18: the prompt file "b.md" does not exist`, "ROOT/b.md"},
	"a prompt outside":       {oneAgent("prompt_path: ../b.md"), `the prompt file "../b.md" does not lie in the repository`, "copy it"},
	"an absolute prompt":     {oneAgent("prompt_path: /etc/passwd"), `the prompt file "/etc/passwd" does not lie in the repository`, ""},
	"a prompt that is empty": {oneAgent("prompt_path: empty.md"), `the prompt file "empty.md": the prompt is empty`, ""},
	"a binary prompt":        {oneAgent("prompt_path: binary.md"), `is not valid UTF-8`, ""},
	"a link":                 {oneAgent("prompt_path: link.md"), `the prompt file "link.md" is a link, or not a regular file`, "copy"},
	"a link on the way":      {oneAgent("prompt_path: round/a.md"), `the prompt file "round/a.md" is a link, or not a regular file`, ""},
	"a pipe":                 {oneAgent("prompt_path: pipe.md"), "not a regular file", ""},
	"a folder as a prompt":   {oneAgent("prompt_path: folder"), "not a regular file", ""},
}

func TestDocumentFaults(t *testing.T) {
	t.Parallel()
	root := repository(t, map[string]string{"empty.md": " ", "a.md": "x", "folder/": "", "binary.md": "a\xff"})
	if err := os.Symlink("/etc/passwd", filepath.Join(root, "link.md")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(root, filepath.Join(root, "round")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(root, "pipe.md"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range documentFaults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := load(root, test.text)
			e := agency.AsError(err)
			if e == nil || e.Code != agency.CodePlanInvalid || !strings.Contains(e.Message, test.message) || !strings.Contains(e.Hint, strings.ReplaceAll(test.hint, "ROOT", root)) {
				t.Errorf("got %+v", e)
			}
		})
	}
}

func TestAllFaultsAreReported(t *testing.T) {
	t.Parallel()
	_, err := load(t.TempDir(), "nam: x\nagents:\n- {id: a, prompt: x, runer: codex}\n- {id: b, retries: many, prompt: x}\n")
	e := agency.AsError(err)
	all, _ := e.Details["problems"].([]string)
	if len(all) != 3 || !strings.HasPrefix(all[0], "stdin:1:1: ") || !strings.HasPrefix(all[1], "stdin:3:22: ") || !strings.HasPrefix(all[2], "stdin:4:20: ") {
		t.Errorf("got %q", all)
	}
	for _, problem := range all[1:] {
		if start, _, _ := strings.Cut(problem, " ("); !strings.Contains(e.Message, start) {
			t.Errorf("%q is not in %q", start, e.Message)
		}
	}
}

// Invalid values are reported like invalid keys: the first few at once, each with its place.
func TestAllBadValuesAreReported(t *testing.T) {
	t.Parallel()
	_, err := load(t.TempDir(), `on_failure: never
agents:
- {id: a/b, prompt: x}
- {id: c, prompt: x, retries: 200}
- {id: d, prompt: x, after: [e, f]}
- {id: ..g, prompt: x}
`)
	e := agency.AsError(err)
	want := `stdin:1:13: on_failure is "never"
5 more:
  stdin:3:8: the agent id "a/b" is not allowed (an id has 1 to 64 characters: letters, digits, dots, dashes and underscores, first a letter or digit, without .. and without . or .lock at its end)
  stdin:4:31: agent "c": retries is 200, not between 0 and 100
  stdin:5:29: agent "d" comes after "e", and the plan has no such agent (did you mean c?)
  stdin:5:29: agent "d" comes after "f", and the plan has no such agent (did you mean c?)
  stdin:6:8: the agent id "..g" is not allowed (an id has 1 to 64 characters: letters, digits, dots, dashes and underscores, first a letter or digit, without .. and without . or .lock at its end)`
	if all, _ := e.Details["problems"].([]string); e.Message != want || len(all) != 6 || e.Hint != "one of: stop, continue, ask" {
		t.Errorf("got %s\n%q, %s", e.Message, all, e.Hint)
	}
}

// All faults are counted, a default's once, and the first of the plan comes first.
func TestFaultsAreCounted(t *testing.T) {
	t.Parallel()
	text := "agents:\n- {id: a, prompt: x, after: zz}\n"
	for id := range 8 {
		text += fmt.Sprintf("- {id: b%d, prompt: x, retries: 200}\n", id)
	}
	_, err := load(t.TempDir(), text+"defaults: {timeout: 1ms}\non_failure: never\n")
	message := agency.AsError(err).Message
	if !strings.HasPrefix(message, `stdin:2:29: agent "a" comes after "zz"`) || !strings.Contains(message, "\n10 more, the first 5 are:\n  stdin:3:32: ") || strings.Count(message, "\n") != 6 {
		t.Errorf("got %s", message)
	}
}

func TestReadTableOfAgents(t *testing.T) {
	t.Parallel()
	p, err := load(t.TempDir(), "agents:\n  schema: {prompt: x}\n  001: {prompt: y, after: schema}\n  ui: {prompt: z, after: [schema, 001]}\n")
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(p.WaveList()); got != "[[schema] [001] [ui]]" || p.Agents[1].ID != "001" || fmt.Sprint(p.Agents[1].After, p.Agents[2].After) != "[schema] [schema 001]" {
		t.Errorf("got %s of %+v", got, p.Agents)
	}
}

func TestReadFile(t *testing.T) {
	t.Parallel()
	root := repository(t, map[string]string{
		"plans/one.yaml": "agents: [{id: a, prompt_path: a.md}]\n", "plans/a.md": "x", "plans/bad.yaml": "agent: x\n", "plans/large.yaml": strings.Repeat("#", 4<<20+1),
	})
	file := func(path string) (*agency.Plan, *agency.Error) {
		p, _, err := plan.Load(plan.Source{Path: path, Dir: filepath.Join(root, "plans"), Root: root})
		return p, agency.AsError(err)
	}
	p, err := file(filepath.Join(root, "plans/one.yaml"))
	if err != nil || p.Path != filepath.Join(root, "plans/one.yaml") || p.Agents[0].PromptPath != filepath.Join(root, "plans/a.md") {
		t.Errorf("got %+v, %v", p, err)
	}
	if _, err := file(filepath.Join(root, "plans/bad.yaml")); err == nil || !strings.HasPrefix(err.Message, "bad.yaml:1:1: ") {
		t.Errorf("got %v", err)
	}
	if _, err := file(filepath.Join(root, "plans/large.yaml")); err == nil || err.Code != agency.CodePlanInvalid || !strings.Contains(err.Message, "more than 4194304 bytes") {
		t.Errorf("got %v", err)
	}
	if _, err := file(filepath.Join(root, "none.yaml")); err == nil || err.Code != agency.CodeInvalidPath || !strings.Contains(err.Message, "does not exist") {
		t.Errorf("got %v", err)
	}
	if linkErr := os.Symlink("one.yaml", filepath.Join(root, "plans/link.yaml")); linkErr != nil {
		t.Fatal(linkErr)
	}
	if _, err := file(filepath.Join(root, "plans/link.yaml")); err == nil || err.Code != agency.CodeInvalidPath || !strings.Contains(err.Message, "is a link") {
		t.Errorf("got %v", err)
	}
}

func TestReadFolder(t *testing.T) {
	t.Parallel()
	root := repository(t, map[string]string{
		"prompts/000-orchestrator.md": "All of it.", "prompts/002-tests.md": "Write tests.", "prompts/001-schema.md": "Write the schema.",
		"prompts/003-01-part.md": "A part.", "prompts/003-whole.md": "All.", "prompts/README.md": "x", "prompts/12-short.md": "x", "prompts/.hidden": "x", "prompts/004-folder.md/": "", "none/x.md": "x",
		"double/001-a.md": "x", "double/001-b.md": "x", "broken/001-a.md": "",
	})
	folder := func(name string) (*agency.Plan, []string, *agency.Error) {
		p, warnings, err := plan.Load(plan.Source{Path: filepath.Join(root, name), Dir: root, Root: root})
		return p, warnings, agency.AsError(err)
	}
	p, warnings, err := folder("prompts")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range p.Agents {
		got = append(got, p.Agents[i].ID+" "+p.Agents[i].Name+" "+filepath.Base(p.Agents[i].PromptPath)+" "+p.Agents[i].Prompt)
	}
	want := []string{"001 001-schema 001-schema.md Write the schema.", "002 002-tests 002-tests.md Write tests.", "003 003-whole 003-whole.md All.", "003-01 003-01-part 003-01-part.md A part."}
	if fmt.Sprint(got) != fmt.Sprint(want) || p.Name != "prompts" || fmt.Sprint(p.WaveList()) != "[[001 002 003 003-01]]" {
		t.Errorf("got %q of %+v", got, p)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], ": 004-folder.md, 12-short.md, README.md") {
		t.Errorf("got %q", warnings)
	}
	for name, want := range map[string]string{
		"none": "holds no prompt", "double": `double/001-b.md: two agents have the id "001"`, "broken": `broken: the prompt file "001-a.md": the prompt is empty`,
	} {
		if _, _, err := folder(name); err == nil || err.Code != agency.CodePlanInvalid || !strings.Contains(err.Message, want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, _, err := plan.Load(plan.Source{Path: filepath.Join(root, "prompts"), Dir: root}); err == nil || !strings.Contains(err.Error(), "bare") {
		t.Errorf("got %v", err)
	}
}

func TestFanOut(t *testing.T) {
	t.Parallel()
	root := repository(t, map[string]string{"task.md": "Fix it."})
	fan := func(src plan.Source) (*agency.Plan, *agency.Error) {
		src.Dir, src.Root = root, root
		p, _, err := plan.Load(src)
		return p, agency.AsError(err)
	}
	p, err := fan(plan.Source{Agents: []string{"claude_code:2", "codex", "claude_code:1"}, Prompt: "Fix it.", Name: "race", Base: "main", MaxParallel: 9, OnFailure: agency.AskOnFailure})
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for i := range p.Agents {
		a := &p.Agents[i]
		got += fmt.Sprintf("%s %s %s %s, ", a.ID, a.Name, a.Runner, a.Base)
	}
	if want := "001 claude-code-1 claude_code main, 002 claude-code-2 claude_code main, 003 codex-1 codex main, 004 claude-code-3 claude_code main, "; got != want {
		t.Errorf("got %s", got)
	}
	if p.Name != "race" || p.MaxParallel != 9 || p.OnFailure != agency.AskOnFailure || p.Agents[0].Prompt != "Fix it." {
		t.Errorf("got %+v", p)
	}
	if p, err = fan(plan.Source{Agents: []string{"codex:1001"}, PromptPath: "task.md"}); err != nil || p.Agents[1000].ID != "1001" || p.Agents[0].PromptPath != filepath.Join(root, "task.md") {
		t.Errorf("got %v", err)
	}
	for _, words := range [][]string{{"codex:0"}, {"codex:x"}, {":3"}, {"codex:-1"}, {"codex:5001"}, {"codex:5000", "claude_code"}, {"codex:99999999999999999999"}} {
		if _, err := fan(plan.Source{Agents: words, Prompt: "x"}); err == nil || err.Code != agency.CodePlanInvalid || err.Hint == "" {
			t.Errorf("%q: got %v", words, err)
		}
	}
	for _, src := range []plan.Source{
		{}, {Agents: []string{"codex"}}, {Agents: []string{"codex"}, Prompt: "x", PromptPath: "task.md"}, {Text: "agents: []", Agents: []string{"codex"}}, {Text: "agents: []", Prompt: "x"},
	} {
		if _, err := fan(src); err == nil || err.Code != agency.CodeUsage || err.Hint == "" {
			t.Errorf("%+v: got %v", src, err)
		}
	}
}

func TestPromptsAreBounded(t *testing.T) {
	t.Parallel()
	root := repository(t, map[string]string{"large.md": strings.Repeat("x", agency.PromptLimit), "larger.md": strings.Repeat("x", agency.PromptLimit+1)})
	text := "agents:\n"
	for i := range 5 {
		text += fmt.Sprintf("- {id: %d, prompt_path: large.md}\n", i)
	}
	if _, err := load(root, text); err == nil || !strings.Contains(err.Error(), "stdin:6:24: the prompts of the plan have more than") {
		t.Errorf("got %v", err)
	}
	if _, err := load(root, "agents: [{id: a, prompt_path: larger.md}]"); err == nil || !strings.Contains(err.Error(), "more than 16777216 bytes") {
		t.Errorf("got %v", err)
	}
	if _, _, err := plan.Load(plan.Source{Agents: []string{"codex:5000"}, Prompt: strings.Repeat("x", 1<<20), Dir: root, Root: root}); err == nil || !strings.Contains(err.Error(), "together") {
		t.Errorf("got %v", err)
	}
	many := "agents:\n" + strings.Repeat("- {id: a, prompt: x}\n", agency.MaxAgents+1)
	if _, err := load(root, many); err == nil || !strings.Contains(err.Error(), "5001 agents, more than 5000") {
		t.Errorf("got %v", err)
	}
}

func FuzzLoad(f *testing.F) {
	for _, seed := range []string{
		"agents: [{id: 001, prompt: x}]", "name: a\nagents:\n- id: a\n  prompt: |\n    x\n  after: [b]\n- {id: b, prompt: y, wave: 1}\n", "a: &a [*a]\n", "limits: {a: 1}\n",
		"defaults: {timeout: 2h}\nagents:\n- {id: a, prompt_path: a.md, touches: ['**/*.go', '[a-z]']}\n", "---\n...\n---\n", "? {a: b}\n: c\n", "agents:\n\t- x", "\xef\xbb\xbfagents: []", "%TAG ! x\n",
	} {
		f.Add(seed)
	}
	root := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		p, err := load(root, text)
		if err != nil {
			e := agency.AsError(err)
			if e.Code != agency.CodePlanInvalid && e.Code != agency.CodeUsage {
				t.Fatalf("%q: %+v", text, e)
			}
			if strings.ContainsFunc(e.Message, func(r rune) bool { return r < ' ' && r != '\n' }) {
				t.Fatalf("%q: the message %q holds a control character", text, e.Message)
			}
			return
		}
		if err := plan.Check(p); err != nil {
			t.Fatalf("%q was read, and is not valid: %v", text, err)
		}
		again, err := load(root, text)
		if err != nil || again.Hash() != p.Hash() {
			t.Fatalf("%q is another plan the second time: %v", text, err)
		}
	})
}
