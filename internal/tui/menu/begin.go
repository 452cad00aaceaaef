package menu

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"agency"
	"agency/internal/api"
	"agency/internal/tui/page"
	"agency/internal/tui/session"
)

// begin starts a run, or the session of a plan.
func (m *Menu) begin(ctx context.Context) error {
	c, err := m.console.choose(ctx, "number of what to start", []string{"a run with a task", "a session of agents, from a plan"})
	switch {
	case err != nil || len(c.rows) == 0:
		return err
	case c.rows[0] == 0:
		return m.beginRun(ctx)
	default:
		return m.beginSession(ctx)
	}
}

// entry is what can be said of a run or a session before it starts.
type entry struct {
	name  string
	empty string // what holds when it is empty
	value *string
}

// text returns the entry as a row.
func (e *entry) text() string {
	return e.name + ": " + cmp.Or(*e.value, e.empty)
}

// fill lets the user change entries, and then calls start, until that reports that it is done. The rows
// are printed again only when the user asks for it: their numbers stay.
func (con *console) fill(ctx context.Context, does string, entries []entry, start func() (bool, error)) error {
	what := "1 to " + does + ", or number of what to change"
	for told := false; ; {
		c, err := choice{}, error(nil)
		if told {
			c, err = con.pick(ctx, &question{what: what, rows: 1 + len(entries), letters: inside})
		} else {
			texts := []string{does}
			for i := range entries {
				texts = append(texts, entries[i].text())
			}
			c, err = con.choose(ctx, what, texts)
		}
		told = c.letter != again
		switch {
		case err != nil || c.letter == back:
			return err
		case !told:
		case c.rows[0] == 0:
			if done, err := start(); done || err != nil {
				return err
			}
		default:
			e := &entries[c.rows[0]-1]
			value, err := con.line(ctx, e.name+", an empty line: "+e.empty)
			if err != nil {
				return err
			}
			*e.value = strings.TrimSpace(value)
			con.say("%s", e.text())
		}
	}
}

// beginRun asks for a task and what else is to be said of the run, and starts it.
func (m *Menu) beginRun(ctx context.Context) error {
	task, err := m.console.lots(ctx, "the task, on as many lines as you like; an empty line ends it")
	if err != nil || task == "" {
		return err
	}
	levels := []string{}
	for _, level := range agency.SandboxLevels() {
		levels = append(levels, string(level))
	}
	run := page.NewRun{Task: task, Repo: m.o.Dir}
	entries := []entry{
		{"repository, a folder in it", "the present folder", &run.Repo},
		{"name", "from the task", &run.Name},
		{"preset", "none", &run.Preset},
		{"runner", "as configured", &run.Runner},
		{"base, a branch or commit", "what is checked out", &run.Base},
		{"sandbox (" + strings.Join(levels, ", ") + ")", "as configured", &run.Sandbox},
	}
	return m.console.fill(ctx, "start it", entries, func() (bool, error) {
		m.console.say("starting")
		resp, err := m.o.Daemon.CreateRun(ctx, api.CreateRunRequest{Dir: m.o.Dir, Env: m.o.Env, Config: m.o.Config, Spec: run.Spec(m.o.Runner)})
		if err != nil {
			return false, m.console.fail(err)
		}
		m.console.say("%s started", resp.Run.Ref())
		m.console.warn(resp.Warnings)
		return true, m.console.fail(m.list(ctx))
	})
}

// warn prints warnings.
func (con *console) warn(warnings []string) {
	for _, warning := range warnings {
		con.say("warning: %s", warning)
	}
}

// beginSession reads a plan, says what it would do, and starts it when the user is sure.
func (m *Menu) beginSession(ctx context.Context) error {
	path, err := m.console.text(ctx, "the plan, a file or folder")
	if err != nil || path == "" {
		return err
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(m.o.Dir, path)
	}
	req := api.StartSessionRequest{Plan: api.PlanSource{Path: path, Agents: []string{}}, Dir: m.o.Dir, Env: m.o.Env, Config: m.o.Config}
	entries := []entry{{"repository, a folder in it", "the present folder", &req.Dir}, {"name", "that of the plan", &req.Plan.Name}, {"base", "that of the plan", &req.Plan.Base}}
	return m.console.fill(ctx, "check it", entries, func() (bool, error) {
		req.Dir = cmp.Or(req.Dir, m.o.Dir)
		plan, err := m.o.Daemon.PlanSession(ctx, api.PlanSessionRequest{Plan: req.Plan, Dir: req.Dir, Env: req.Env, Config: req.Config})
		if err != nil {
			return false, m.console.fail(err)
		}
		m.tellPlan(&plan)
		if r := plan.Refused; r != nil {
			return false, m.console.fail(agency.Errorf(r.Code, "it cannot start: %s", r.Message).WithHint("%s", r.Hint))
		}
		if sure, err := m.console.sure(ctx, "start "+count(len(plan.Plan.Agents), "agent", "agents")+"?"); err != nil || !sure {
			return false, err
		}
		m.console.say("starting")
		started, err := m.o.Daemon.StartSession(ctx, req)
		if err != nil {
			return false, m.console.fail(err)
		}
		m.console.say("%s started", session.Name(&started.Session))
		m.console.warn(started.Warnings)
		return true, m.session(ctx, string(started.Session.ID))
	})
}

// tellPlan prints what a plan would do.
func (m *Menu) tellPlan(resp *api.PlanSessionResponse) {
	plan := &resp.Plan
	m.console.say("plan %s, %s, at most %d at once, on failure %s", plan.Name, count(len(plan.Agents), "agent", "agents"), plan.MaxParallel, plan.OnFailure)
	runners := map[string]string{}
	for i := range resp.Agents {
		runners[resp.Agents[i].ID] = resp.Agents[i].Runner
	}
	after := map[string][]string{}
	for i := range plan.Agents {
		after[plan.Agents[i].ID] = plan.Agents[i].After
	}
	for i, wave := range resp.Waves {
		for _, id := range wave {
			text := fmt.Sprintf("wave %d: %s", i+1, id)
			if runners[id] != "" {
				text += " by " + runners[id]
			}
			if len(after[id]) > 0 {
				text += ", after " + strings.Join(after[id], ", ")
			}
			m.console.say("%s", text)
		}
	}
	m.console.warn(resp.Warnings)
}
