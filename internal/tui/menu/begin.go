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
	at, err := m.choose(ctx, []string{"a run with a task", "a session of agents, from a plan"}, "number of what to start")
	switch {
	case err != nil || at < 0:
		return err
	case at == 1:
		return m.beginSession(ctx)
	default:
		return m.beginRun(ctx)
	}
}

// beginRun asks for a task and what else is to be said of the run, and starts it.
func (m *Menu) beginRun(ctx context.Context) error {
	run := page.NewRun{Repo: m.o.Dir}
	var err error
	if run.Task, err = m.text(ctx, "the task, on as many lines as you like; an empty line ends it"); err != nil || run.Task == "" {
		return err
	}
	levels := []string{}
	for _, level := range agency.SandboxLevels() {
		levels = append(levels, string(level))
	}
	fields := []struct {
		name, empty string
		value       *string
	}{
		{"repository, a folder in it", "the present folder", &run.Repo},
		{"name", "from the task", &run.Name},
		{"preset", "none", &run.Preset},
		{"runner", "as configured", &run.Runner},
		{"base, a branch or commit", "what is checked out", &run.Base},
		{"sandbox (" + strings.Join(levels, ", ") + ")", "as configured", &run.Sandbox},
	}
	for {
		rows := []string{"start it"}
		for _, f := range fields {
			rows = append(rows, f.name+": "+cmp.Or(*f.value, f.empty))
		}
		at, err := m.choose(ctx, rows, "1 starts it, another number changes that")
		if err != nil || at < 0 {
			return err
		}
		if at == 0 {
			started, err := m.startRun(ctx, &run)
			if started || err != nil {
				return err
			}
			continue
		}
		f := fields[at-1]
		if *f.value, err = m.line(ctx, f.name+", an empty line: "+f.empty); err != nil {
			return err
		}
	}
}

// startRun starts a run, and reports whether the daemon took it.
func (m *Menu) startRun(ctx context.Context, run *page.NewRun) (started bool, err error) {
	resp, err := m.o.Daemon.CreateRun(ctx, api.CreateRunRequest{Dir: m.o.Dir, Env: m.o.Env, Config: m.o.Config, Spec: run.Spec(m.o.Runner)})
	if err != nil {
		return false, m.fail(err)
	}
	m.say("%s started", resp.Run.Ref())
	return true, m.list(ctx)
}

// text returns lines that the user types, until an empty one.
func (m *Menu) text(ctx context.Context, what string) (string, error) {
	lines := []string{}
	for {
		line, err := m.line(ctx, what)
		if err != nil || line == "" {
			return strings.Join(lines, "\n"), err
		}
		lines, what = append(lines, line), "go on, or an empty line"
	}
}

// beginSession reads a plan, says what it would do, and starts it when the user is sure.
func (m *Menu) beginSession(ctx context.Context) error {
	path, err := m.ask(ctx, "the plan, a file or folder, an empty line for none")
	if err != nil || path == "" {
		return err
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(m.o.Dir, path)
	}
	source := api.PlanSource{Path: path, Agents: []string{}}
	resp, err := m.o.Daemon.PlanSession(ctx, api.PlanSessionRequest{Plan: source, Dir: m.o.Dir, Env: m.o.Env, Config: m.o.Config})
	if err != nil {
		return m.fail(err)
	}
	m.say("plan %s, %d agents, at most %d at once", resp.Plan.Name, len(resp.Plan.Agents), resp.Plan.MaxParallel)
	for i, wave := range resp.Waves {
		m.say("wave %d: %s", i+1, strings.Join(wave, ", "))
	}
	for _, warning := range resp.Warnings {
		m.say("warning: %s", warning)
	}
	if r := resp.Refused; r != nil {
		return m.fail(agency.Errorf(r.Code, "it cannot start: %s", r.Message).WithHint("%s", r.Hint))
	}
	sure, err := m.ask(ctx, fmt.Sprintf("start its %d agents? y/n", len(resp.Plan.Agents)))
	if err != nil || sure != "y" {
		return err
	}
	started, err := m.o.Daemon.StartSession(ctx, api.StartSessionRequest{Plan: source, Dir: m.o.Dir, Env: m.o.Env, Config: m.o.Config})
	if err != nil {
		return m.fail(err)
	}
	m.say("%s started", session.Name(&started.Session))
	return nil
}
