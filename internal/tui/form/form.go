// Package form is the screen on which a user starts a run.
package form

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	tea "charm.land/bubbletea/v2"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/term"
	"agency/internal/tui/cell"
	"agency/internal/tui/field"
	"agency/internal/tui/page"
	"agency/internal/view"
)

// The rows of the form.
const (
	prompt = iota
	repository
	name
	preset
	runner
	base
	sandbox
	planFile
	rows
)

// Page is the form for a new run, or for the session of a plan.
type Page struct {
	desk     *page.Desk
	fields   [rows]field.Field
	long     string // the prompt, when it has several lines: only the editor changes it
	at       int
	starting bool
	problem  string
	check    *check // of the plan, until the next key
}

// New returns an empty form for the repository of the dashboard's folder.
func New(desk *page.Desk) *Page {
	p := &Page{desk: desk}
	p.fields[repository] = field.New(desk.Dir)
	return p
}

func labels() [rows][2]string {
	return [rows][2]string{
		{"prompt", "what the agent is to do; ctrl-g writes it in $EDITOR"},
		{"repository", "a folder in it"},
		{"name", "empty: from the prompt"},
		{"preset", "of the configuration; empty: none"},
		{"runner", "claude_code, codex …; empty: as configured"},
		{"base", "a branch or commit; empty: what is checked out"},
		{"sandbox", "worktree, landlock, process or container; empty: as configured"},
		{"plan", "a file or folder, for a session of agents in place of a prompt"},
	}
}

type (
	fileMsg struct {
		path string
		err  error
	}
	writtenMsg struct {
		text string
		err  error
	}
	startedMsg struct {
		run api.Run
		err error
	}
)

// Title implements page.Page.
func (p *Page) Title() string { return "new run" }

// Open implements page.Page.
func (p *Page) Open() tea.Cmd { return nil }

// Changed implements page.Page.
func (p *Page) Changed() tea.Cmd { return nil }

// Bindings implements page.Page: its keys are those that are not a text.
func (p *Page) Bindings() []page.Binding {
	const group = "In the form of a new run"
	return []page.Binding{
		{Keys: []string{"tab", "enter"}, Shown: "tab", Does: "the next row", Group: group, Act: page.Do(func() { p.move(1) })},
		{Keys: []string{"shift+tab"}, Shown: "shift-tab", Does: "the row before", Group: group, Act: page.Do(func() { p.move(-1) })},
		{Keys: []string{"ctrl+g"}, Shown: "ctrl-g", Does: "write the prompt in $EDITOR", Group: group, Act: page.Run(p.edit)},
		{Keys: []string{"ctrl+s"}, Shown: "ctrl-s", Does: "start the run, or check the plan and start it after a y", Group: group, Act: page.Run(p.start)},
	}
}

func (p *Page) move(by int) { p.at = (p.at + by + rows) % rows }

// Type implements page.Page.
func (p *Page) Type(key tea.KeyPressMsg) tea.Cmd {
	p.check = nil
	switch key.String() {
	case "esc":
		return p.desk.Leave()
	case "ctrl+s":
		return p.start()
	case "ctrl+g":
		return p.edit()
	case "tab", "down", "enter":
		p.move(1)
	case "shift+tab", "up":
		p.move(-1)
	default:
		if p.at == prompt && p.long != "" {
			return p.problemIs("the prompt has several lines: ctrl-g opens it again")
		}
		p.fields[p.at].Press(key)
	}
	return nil
}

// Paste implements page.Page: a prompt of several lines stays as it is.
func (p *Page) Paste(text string) {
	if p.at == prompt && strings.Contains(strings.TrimSpace(text), "\n") {
		p.long = p.text() + text
		return
	}
	p.fields[p.at].Insert(text)
}

// text returns the prompt.
func (p *Page) text() string {
	if p.long != "" {
		return p.long
	}
	return p.fields[prompt].Text()
}

// edit opens the prompt in the user's editor: first the file is made, then the editor has the
// terminal, and then the file is read.
func (p *Page) edit() tea.Cmd {
	if term.Editor(p.desk.Env) == "" {
		return p.problemIs("no editor is known: set EDITOR, such as EDITOR=vi")
	}
	text := p.text()
	return func() tea.Msg {
		dir, err := os.MkdirTemp("", "agency-")
		if err != nil {
			return fileMsg{err: err}
		}
		path := filepath.Join(dir, "TASK.md")
		return fileMsg{path, os.WriteFile(path, []byte(text), 0o600)}
	}
}

func (p *Page) write(path string) tea.Cmd {
	cmd := term.EditorCommand(p.desk.Ctx, p.desk.Env, path, 0)
	cmd.Dir = p.desk.Dir
	return p.desk.Exec(cmd, func(err error) tea.Msg {
		defer func() { _ = os.RemoveAll(filepath.Dir(path)) }()
		if err != nil {
			return writtenMsg{err: agency.Errorf(agency.CodeUsage, "the editor failed: %w", err)}
		}
		data, err := os.ReadFile(path)
		return writtenMsg{string(data), err}
	})
}

// Update implements page.Page.
func (p *Page) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case fileMsg:
		if msg.err != nil {
			return p.problemIs(agency.AsError(msg.err).Message)
		}
		return p.write(msg.path)
	case writtenMsg:
		if msg.err != nil {
			return p.problemIs(agency.AsError(msg.err).Message)
		}
		text := strings.TrimSpace(msg.text)
		p.long, p.fields[prompt] = "", field.New(text)
		if strings.Contains(text, "\n") {
			p.long = text
		}
	case startedMsg:
		p.starting = false
		if msg.err != nil {
			return p.failed(msg.err)
		}
		return tea.Batch(p.desk.Say(msg.run.Ref()+" started"), p.desk.Go(msg.run.ID))
	case checkedMsg:
		return p.checked(&msg)
	case begunMsg:
		return p.begun(&msg)
	}
	return nil
}

// problemIs shows what is wrong, below the rows.
func (p *Page) problemIs(text string) tea.Cmd {
	p.problem = text
	return nil
}

// value returns what the user typed in a row.
func (p *Page) value(row int) string { return strings.TrimSpace(p.fields[row].Text()) }

// start starts the run that the form describes, or checks the plan that it names.
func (p *Page) start() tea.Cmd {
	switch {
	case p.starting:
		return nil
	case p.value(planFile) != "":
		return p.checkPlan()
	case strings.TrimSpace(p.text()) == "":
		p.at = prompt
		return p.problemIs("the agent needs a prompt")
	}
	p.starting, p.problem = true, ""
	req := api.CreateRunRequest{Dir: p.desk.Dir, Env: p.desk.Env, Config: p.desk.Config, Spec: agency.Spec{
		Prompt: agency.SpecPrompt{Text: p.text()}, Repo: p.value(repository), Name: p.value(name), Preset: p.value(preset),
		BaseRef: p.value(base), Sandbox: agency.SandboxLevel(p.value(sandbox)),
	}}
	if named := p.value(runner); named != "" {
		req.Spec.Runner.Kind, req.Spec.Runner.Name = p.desk.Runner(named)
	}
	d, ctx := &p.desk.Daemon, p.desk.Ctx
	return func() tea.Msg {
		resp, err := d.CreateRun(ctx, req)
		return startedMsg{resp.Run, err}
	}
}

// Typing implements page.Page: the form takes all keys.
func (p *Page) Typing(width int) cell.Line {
	line := cell.Of(cell.Plain, " ")
	for _, k := range [][2]string{{"tab", "next"}, {"ctrl-g", "$EDITOR"}, {"ctrl-s", "start"}, {"esc", "back"}} {
		line = line.Add(cell.Bold, k[0]).Add(cell.Dim, " "+k[1]+"  ")
	}
	if p.starting {
		line = cell.Of(cell.Bold, " starting …")
	}
	return line.Fit(width)
}

// Draw implements page.Page.
func (p *Page) Draw(width, height int) []cell.Line {
	if p.check != nil {
		return page.Fill(p.check.draw(width), width, height)
	}
	lines := []cell.Line{}
	for i, label := range labels() {
		lead := "  "
		if i == p.at {
			lead = "> "
		}
		head := lead + term.Pad(label[0], 11) + " "
		switch {
		case i == prompt && p.long != "":
			first, _, _ := strings.Cut(p.long, "\n")
			lines = append(lines, cell.Of(cell.Bold, head).Add(cell.Plain, first).Add(cell.Dim, fmt.Sprintf("  … %d lines", strings.Count(p.long, "\n")+1)))
		case i == p.at:
			lines = append(lines, p.fields[i].Draw(head, width))
		default:
			lines = append(lines, cell.Of(cell.Bold, head).Add(cell.Plain, p.fields[i].Text()))
		}
		if i == p.at || p.problem == "" && p.fields[i].Text() == "" && (i != prompt || p.long == "") {
			lines = append(lines, cell.Of(cell.Dim, strings.Repeat(" ", 14)+label[1]))
		}
	}
	if p.problem != "" {
		lines = append(lines, cell.Of(cell.Plain, ""))
		lines = append(lines, cell.Wrap(cell.With(cell.Coloured(view.Red), "b"), p.problem, 2, width, 6)...)
	}
	return page.Fill(lines, width, height)
}
