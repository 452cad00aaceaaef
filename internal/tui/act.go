package tui

import (
	"context"
	"fmt"

	tea "charm.land/bubbletea/v2"

	"agency"
	"agency/internal/api"
	"agency/internal/tui/field"
)

// named returns the runs as a sentence names them.
func named(runs []api.Run) string {
	if len(runs) == 1 {
		return runs[0].Ref()
	}
	return fmt.Sprintf("%d runs", len(runs))
}

// each acts on runs one after the other and goes on after a failure, which is what is said then.
func (m *Model) each(runs []api.Run, done string, act func(ctx context.Context, run string) error) tea.Cmd {
	ctx := m.ctx
	m.list.Unmark()
	return tea.Batch(m.say(named(runs)+" …"), func() tea.Msg {
		var failed error
		for i := range runs {
			if err := act(ctx, string(runs[i].ID)); err != nil {
				e := agency.AsError(err)
				failed = agency.Errorf(e.Code, "%s: %s", runs[i].Ref(), e.Message).WithHint("%s", e.Hint)
			}
		}
		return actedMsg{named(runs) + " " + done, failed}
	})
}

// confirmed asks before an action on the marked runs, or on the one under the cursor.
func (m *Model) confirmed(ask string, do func(runs []api.Run) tea.Cmd) tea.Cmd {
	runs := m.list.Targets()
	if len(runs) == 0 {
		return m.say("there is no run")
	}
	m.mode = confirming
	m.question = question{fmt.Sprintf(ask, named(runs)), func() tea.Cmd { return do(runs) }}
	return nil
}

func (m *Model) stop(string) tea.Cmd {
	return m.confirmed("stop %s? the worktree stays", func(runs []api.Run) tea.Cmd {
		return m.each(runs, "stopped", func(ctx context.Context, run string) error {
			_, err := m.o.Daemon.StopRun(ctx, api.RunRequest{Run: run})
			return err
		})
	})
}

func (m *Model) remove(string) tea.Cmd {
	return m.confirmed("remove %s? unsaved work is saved first", func(runs []api.Run) tea.Cmd {
		return m.each(runs, "removed", func(ctx context.Context, run string) error {
			_, err := m.o.Daemon.RemoveRun(ctx, api.RemoveRunRequest{Run: run})
			return err
		})
	})
}

func (m *Model) resume(string) tea.Cmd {
	return m.confirmed("resume %s?", func(runs []api.Run) tea.Cmd {
		return m.each(runs, "resumed", func(ctx context.Context, run string) error {
			_, err := m.o.Daemon.ResumeRun(ctx, api.ResumeRunRequest{Run: run, Env: m.o.Env, Config: m.o.Config})
			return err
		})
	})
}

func (m *Model) snapshot(string) tea.Cmd {
	runs := m.list.Targets()
	if len(runs) == 0 {
		return m.say("there is no run")
	}
	return m.each(runs, "saved", func(ctx context.Context, run string) error {
		_, err := m.o.Daemon.TakeSnapshot(ctx, api.RunRequest{Run: run})
		return err
	})
}

// startSend begins a message to the marked runs, or to the one under the cursor.
func (m *Model) startSend(string) tea.Cmd {
	m.targets = m.list.Targets()
	if len(m.targets) == 0 {
		return m.say("there is no run")
	}
	m.mode, m.field = sending, field.New("")
	return nil
}

func (m *Model) send(text string) tea.Cmd {
	return m.each(m.targets, "got the message", func(ctx context.Context, run string) error {
		resp, err := m.o.Daemon.SendInput(ctx, api.SendInputRequest{Run: run, Text: text})
		if err == nil && !resp.Confirmed {
			return agency.Errorf(agency.CodeInvalidState, "the message was typed, but its agent was not seen to take it")
		}
		return err
	})
}
