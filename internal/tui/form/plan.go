package form

import (
	"fmt"
	"path/filepath"
	"strings"

	tea "charm.land/bubbletea/v2"

	"agency"
	"agency/internal/api"
	"agency/internal/tui/cell"
	"agency/internal/tui/page"
	"agency/internal/tui/session"
	"agency/internal/view"
)

// check is a plan as the daemon read it. The form shows it before the session starts.
type check struct {
	req  api.StartSessionRequest
	resp api.PlanSessionResponse
}

type (
	checkedMsg struct {
		opened int
		check  check
		err    error
	}
	begunMsg struct {
		opened  int
		session api.Session
		err     error
	}
)

// checkPlan has the daemon read the plan that the form names, without a start.
func (p *Page) checkPlan() tea.Cmd {
	for _, row := range []int{prompt, preset, runner, sandbox} {
		if row == prompt && p.text() != "" || row != prompt && p.value(row) != "" {
			return p.problemIs(fmt.Sprintf("a plan says the %s of each agent itself: empty one of the two", labels()[row][0]))
		}
	}
	path := p.value(planFile)
	if !filepath.IsAbs(path) {
		path = filepath.Join(p.desk.Dir, path)
	}
	req := api.StartSessionRequest{Plan: api.PlanSource{Path: path, Agents: []string{}, Name: p.value(name), Base: p.value(base)}, Dir: p.value(repository), Env: p.desk.Env, Config: p.desk.Config}
	p.starting, p.problem = true, ""
	d, ctx, opened := &p.desk.Daemon, p.desk.Ctx, p.opened
	return func() tea.Msg {
		resp, err := d.PlanSession(ctx, api.PlanSessionRequest{Plan: req.Plan, Dir: req.Dir, Env: req.Env, Config: req.Config})
		return checkedMsg{opened, check{req, resp}, err}
	}
}

// checked shows the plan that the daemon has read. The next key starts the session or goes back.
func (p *Page) checked(msg *checkedMsg) tea.Cmd {
	p.starting = false
	if msg.err != nil {
		return p.failed(msg.err)
	}
	if p.left || p.opened != msg.opened {
		return nil
	}
	p.check = &msg.check
	return nil
}

// startPlan starts the session of a plan that the user has seen.
func (p *Page) startPlan(c *check) tea.Cmd {
	p.starting = true
	d, ctx, req, opened := &p.desk.Daemon, p.desk.Ctx, c.req, p.opened
	return func() tea.Msg {
		resp, err := d.StartSession(ctx, req)
		return begunMsg{opened, resp.Session, err}
	}
}

// begun shows the sessions when the session has started.
func (p *Page) begun(msg *begunMsg) tea.Cmd {
	p.starting, p.check = false, nil
	if msg.err != nil {
		return p.failed(msg.err)
	}
	p.clear()
	var visit tea.Cmd
	if !p.left && p.opened == msg.opened {
		visit = p.desk.Open(session.New(p.desk))
	}
	return tea.Batch(visit, p.desk.Say(session.Name(&msg.session)+" started"))
}

// draw returns the plan: why it cannot start, the warnings about it, and its agents by wave.
func (c *check) draw(width int) []cell.Line {
	plan := &c.resp.Plan
	lines := []cell.Line{cell.Of(cell.Bold, "  plan "+plan.Name).Add(cell.Plain, fmt.Sprintf("  %s, at most %d at once, on failure %s", page.Count(len(plan.Agents), "agent", "agents"), plan.MaxParallel, plan.OnFailure))}
	if r := c.resp.Refused; r != nil {
		lines = append(lines, cell.Wrap(cell.With(cell.Coloured(view.Red), "b"), strings.TrimSpace("it cannot start: "+r.Message+"\n"+r.Hint), 2, width, 6)...)
	}
	for _, warning := range c.resp.Warnings {
		lines = append(lines, cell.Wrap(cell.Coloured(view.Yellow), "! "+warning, 2, width, 3)...)
	}
	at := map[string]int{}
	for i := range plan.Agents {
		at[plan.Agents[i].ID] = i
	}
	for i, wave := range c.resp.Waves {
		lines = append(lines, cell.Of(cell.Dim, fmt.Sprintf("  wave %d", i+1)))
		for _, id := range wave {
			lines = append(lines, c.agent(at[id]))
		}
	}
	return lines
}

// agent returns the row of the agent at a position in the plan.
func (c *check) agent(i int) cell.Line {
	a := &c.resp.Plan.Agents[i]
	line := cell.Of(cell.Bold, "    "+a.ID)
	if i < len(c.resp.Agents) {
		line = line.Add(cell.Dim, "  "+c.resp.Agents[i].Runner)
	}
	if len(a.After) > 0 {
		line = line.Add(cell.Dim, "  after "+strings.Join(a.After, ", "))
	}
	return line
}

// failed shows an error and its hint in the form and, if the user has left the form, in the last row.
func (p *Page) failed(err error) tea.Cmd {
	if p.left {
		_ = p.problemIs(agency.AsError(err).Message)
		return p.desk.Fail(err)
	}
	e := agency.AsError(err)
	return p.problemIs(strings.TrimSpace(e.Message + "\n" + e.Hint))
}
