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
	if err != nil || len(c.rows) == 0 {
		return err
	}
	s := &starter{o: &m.o, console: m.console}
	if c.rows[0] == 0 {
		started, err := s.run(ctx)
		if err != nil || !started {
			return err
		}
		return m.console.fail(m.list(ctx))
	}
	id, err := s.session(ctx)
	if err != nil || id == "" {
		return err
	}
	return m.session(ctx, string(id))
}

// starter starts a run or a session from what the user types.
type starter struct {
	o       *Options
	console *console
}

// run asks for a task and the settings of the run, starts it, and reports whether it has started.
func (s *starter) run(ctx context.Context) (started bool, err error) {
	task, err := s.console.longText(ctx, "the task, on as many lines as you like; an empty line ends it")
	if err != nil || task == "" {
		return false, err
	}
	run := page.NewRun{Task: task, Repo: s.o.Dir}
	entries := []entry{
		{"repository, a folder in it", "the present folder", &run.Repo},
		{"name", "from the task", &run.Name},
		{"preset", "none", &run.Preset},
		{"runner", "as configured", &run.Runner},
		{"base, a branch or commit", "what is checked out", &run.Base},
		{"sandbox (" + strings.Join(page.SandboxLevels(), ", ") + ")", "as configured", &run.Sandbox},
	}
	err = s.console.fill(ctx, "start it", entries, func() (bool, error) {
		s.console.say("starting")
		resp, err := s.o.Daemon.CreateRun(ctx, api.CreateRunRequest{Dir: s.o.Dir, Env: s.o.Env, Config: s.o.Config, Spec: run.Spec(s.o.Runner)})
		if err != nil {
			return false, s.console.fail(err)
		}
		s.console.say("%s started", resp.Run.Ref())
		s.console.warn(resp.Warnings)
		started = true
		return true, nil
	})
	return started, err
}

// session reads a plan, prints what it would do, and starts it when the user confirms. It returns the id of
// the session, or none if it has not started.
func (s *starter) session(ctx context.Context) (id agency.SessionID, err error) {
	path, err := s.console.text(ctx, "the plan, a file or folder")
	if err != nil || path == "" {
		return "", err
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(s.o.Dir, path)
	}
	req := api.StartSessionRequest{Plan: api.PlanSource{Path: path, Agents: []string{}}, Dir: s.o.Dir, Env: s.o.Env, Config: s.o.Config}
	entries := []entry{{"repository, a folder in it", "the present folder", &req.Dir}, {"name", "that of the plan", &req.Plan.Name}, {"base", "that of the plan", &req.Plan.Base}}
	err = s.console.fill(ctx, "check it", entries, func() (bool, error) {
		req.Dir = cmp.Or(req.Dir, s.o.Dir)
		plan, err := s.o.Daemon.PlanSession(ctx, api.PlanSessionRequest{Plan: req.Plan, Dir: req.Dir, Env: req.Env, Config: req.Config})
		if err != nil {
			return false, s.console.fail(err)
		}
		s.tellPlan(&plan)
		if r := plan.Refused; r != nil {
			return false, s.console.fail(agency.Errorf(r.Code, "it cannot start: %s", r.Message).WithHint("%s", r.Hint))
		}
		if sure, err := s.console.sure(ctx, "start "+page.Count(len(plan.Plan.Agents), "agent", "agents")+"?"); err != nil || !sure {
			return false, err
		}
		s.console.say("starting")
		started, err := s.o.Daemon.StartSession(ctx, req)
		if err != nil {
			return false, s.console.fail(err)
		}
		s.console.say("%s started", session.Name(&started.Session))
		s.console.warn(started.Warnings)
		id = started.Session.ID
		return true, nil
	})
	return id, err
}

// tellPlan prints what the session of a plan would do.
func (s *starter) tellPlan(resp *api.PlanSessionResponse) {
	plan := &resp.Plan
	s.console.say("plan %s, %s, at most %d at once, on failure %s", plan.Name, page.Count(len(plan.Agents), "agent", "agents"), plan.MaxParallel, plan.OnFailure)
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
			s.console.say("%s", text)
		}
	}
	s.console.warn(resp.Warnings)
}
