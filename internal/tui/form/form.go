// Package form is the screen on which the user starts a run, or a session from a plan.
package form

import (
	"cmp"
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
	task     field.Area // the prompt
	fields   [rows]field.Field
	refs     []string // branches and tags of the repository, those with the newest commits first
	at       int
	starting bool   // the form was sent, and the daemon has not answered
	opened   int    // how often the user has opened the form, to tell whether it is still the one that was sent
	left     bool   // the user went back to the list
	problem  string // why the start failed
	check    *check // the plan that the form shows until the next key
}

// New returns an empty form for the repository of the dashboard's folder.
func New(desk *page.Desk) *Page {
	p := &Page{desk: desk, task: field.NewArea("")}
	p.fields[repository] = field.New(desk.Dir)
	return p
}

// labels returns the label and the hint of each row.
func labels() [rows][2]string {
	return [rows][2]string{
		{"prompt", "what the agent is to do; ctrl-g writes it in $EDITOR"},
		{"repository", "a folder in it"},
		{"name", "empty: from the prompt"},
		{"preset", "of the configuration; empty: none"},
		{"runner", "empty: as configured"},
		{"base", "a branch or commit; empty: what is checked out"},
		{"sandbox", "empty: as configured"},
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
	refsMsg struct {
		dir   string
		names []string
	}
	startedMsg struct {
		opened int
		task   string
		run    api.Run
		err    error
	}
)

// Title implements page.Page.
func (p *Page) Title() string { return "new run" }

// Open implements page.Page.
func (p *Page) Open() tea.Cmd {
	p.left = false
	p.opened++
	return p.readRefs()
}

// readRefs reads the branches and tags that a run in the repository of the form can start from.
func (p *Page) readRefs() tea.Cmd {
	d, ctx, dir := &p.desk.Daemon, p.desk.Ctx, p.dir()
	return func() tea.Msg {
		resp, err := d.ListRefs(ctx, api.RefsRequest{Dir: dir})
		if err != nil {
			return refsMsg{dir: dir} // without choices; the start reports the error
		}
		return refsMsg{dir, resp.Names}
	}
}

// Changed implements page.Page.
func (p *Page) Changed() tea.Cmd { return nil }

// Bindings implements page.Page: the keys that do not type a text.
func (p *Page) Bindings() []page.Binding {
	const group = "In the form of a new run"
	return []page.Binding{
		{Keys: []string{"tab"}, Shown: "tab", Does: "the next row", Group: group, Act: page.Run(func() tea.Cmd { return p.move(1) })},
		{Keys: []string{"shift+tab"}, Shown: "shift-tab", Does: "the row before", Group: group, Act: page.Run(func() tea.Cmd { return p.move(-1) })},
		{Keys: []string{"enter"}, Shown: "enter", Does: "a new line of the prompt; else the next row", Group: group, Act: page.Run(func() tea.Cmd { return p.move(1) })},
		{Keys: []string{"ctrl+n", "ctrl+p"}, Shown: "ctrl-n, ctrl-p", Does: "the next choice of the row, or the one before", Group: group, Act: func(key string) tea.Cmd { return p.choose(key) }},
		{Keys: []string{"ctrl+g"}, Shown: "ctrl-g", Does: "write the prompt in $EDITOR", Group: group, Act: page.Run(p.edit)},
		{Keys: []string{"ctrl+s"}, Shown: "ctrl-s", Does: "start the run, or check the plan and then start it", Group: group, Act: page.Run(p.start)},
	}
}

// clear empties the form but for the repository.
func (p *Page) clear() {
	repo := p.fields[repository]
	p.task, p.fields, p.at = field.NewArea(""), [rows]field.Field{}, prompt
	p.fields[repository] = repo
}

// dir returns the folder in the repository of the form.
func (p *Page) dir() string { return cmp.Or(p.value(repository), p.desk.Dir) }

// move goes to another row.
func (p *Page) move(by int) tea.Cmd {
	was := p.at
	p.at = (p.at + by + rows) % rows
	if was == repository {
		return p.readRefs()
	}
	return nil
}

// Type implements page.Page.
func (p *Page) Type(key tea.KeyPressMsg) tea.Cmd {
	checked := p.check
	p.check = nil
	name := key.String()
	switch {
	case checked != nil && name == "ctrl+s" && checked.resp.Refused == nil:
		return p.startPlan(checked)
	case checked != nil:
		return nil // the key closes the plan
	case p.starting && name != "esc":
		return nil // the form keeps what was sent until the daemon has answered
	case name == "esc":
		p.left = true
		return p.desk.Leave()
	case name == "ctrl+s":
		return p.start()
	case name == "ctrl+g":
		return p.edit()
	case name == "tab":
		return p.move(1)
	case name == "shift+tab":
		return p.move(-1)
	case name == "ctrl+n" || name == "ctrl+p":
		return p.choose(name)
	case p.at == prompt && p.task.Press(key):
		return nil
	case name == "down" || name == "enter":
		return p.move(1)
	case name == "up":
		return p.move(-1)
	case p.at != prompt:
		p.fields[p.at].Press(key)
	}
	return nil
}

// Paste implements page.Page.
func (p *Page) Paste(text string) {
	switch {
	case p.starting:
		return
	case p.at == prompt:
		p.task.Insert(text)
		return
	}
	p.fields[p.at].Insert(text)
}

// text returns the prompt.
func (p *Page) text() string { return strings.TrimSpace(p.task.Text()) }

// edit opens the prompt in the user's editor. Its command makes a file, which write gives to the editor.
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

// write gives the terminal to the editor with a file, and reads the file when the editor ends.
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
		p.task = field.NewArea("")
		p.task.Insert(strings.TrimSpace(msg.text))
	case refsMsg:
		if msg.dir == p.dir() {
			p.refs = msg.names
		}
	case startedMsg:
		p.starting = false
		if msg.err != nil {
			return p.failed(msg.err)
		}
		if p.text() == msg.task { // else the user is writing the next prompt
			p.clear()
		}
		var visit tea.Cmd
		if !p.left && p.opened == msg.opened {
			visit = p.desk.Go(msg.run.ID)
		}
		return tea.Batch(visit, p.desk.Say(msg.run.Ref()+" started"))
	case checkedMsg:
		return p.checked(&msg)
	case begunMsg:
		return p.begun(&msg)
	}
	return nil
}

// problemIs shows a problem below the rows.
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
	case p.text() == "":
		p.at = prompt
		return p.problemIs("the agent needs a prompt")
	}
	p.starting, p.problem = true, ""
	run := page.NewRun{
		Task: p.text(), Repo: p.value(repository), Name: p.value(name), Preset: p.value(preset), Runner: p.value(runner), Base: p.value(base), Sandbox: p.value(sandbox),
	}
	req := api.CreateRunRequest{Dir: p.desk.Dir, Env: p.desk.Env, Config: p.desk.Config, Spec: run.Spec(p.desk.Runner)}
	d, ctx, opened, task := &p.desk.Daemon, p.desk.Ctx, p.opened, p.text()
	return func() tea.Msg {
		resp, err := d.CreateRun(ctx, req)
		return startedMsg{opened, task, resp.Run, err}
	}
}

// Typing implements page.Page: the form takes all keys.
func (p *Page) Typing(width int) cell.Line {
	line := cell.Of(cell.Plain, " ")
	for _, k := range [][2]string{{"tab", "next"}, {"ctrl-g", "$EDITOR"}, {"ctrl-s", "start"}, {"esc", "back; the form stays as it is"}} {
		line = line.Add(cell.Bold, k[0]).Add(cell.Dim, " "+k[1]+"  ")
	}
	switch {
	case p.starting:
		line = cell.Of(cell.Bold, " starting …")
	case p.check != nil && p.check.resp.Refused == nil:
		line = cell.Of(cell.Bold, " ctrl-s").Add(cell.Dim, " start "+page.Count(len(p.check.resp.Plan.Agents), "agent", "agents")+"  any other key: back")
	case p.check != nil:
		line = cell.Of(cell.Dim, " any key: back")
	}
	return line.Fit(width)
}
