package menu

import (
	"context"
	"fmt"
	"os"
	"strings"

	"agency"
	"agency/internal/api"
	"agency/internal/tui/page"
	"agency/internal/tui/preview"
	"agency/internal/view"
)

// run shows one run and does what the user chooses.
func (m *Menu) run(ctx context.Context, r *api.Run) error {
	m.say("%s, %s", r.Ref(), r.Status)
	if q := r.Request; q != nil {
		m.say("it asks: %s", strings.TrimSpace(q.Tool+" "+q.Text))
	}
	actions := append(m.answers(ctx, r), m.readings(r)...)
	if r.State.Final() {
		actions = append(actions, m.endedActions(r)...)
	} else {
		actions = append(actions, m.liveActions(r)...)
	}
	if r.Status.Settled() && r.Request == nil && r.RemovedAt == nil {
		actions = append(actions, m.landActions(r)...)
	}
	return m.act(ctx, append(actions, m.otherActions(r)...))
}

// answers returns the answers to what a run asks. An answer goes to the very request that was shown.
func (m *Menu) answers(ctx context.Context, r *api.Run) []action {
	q := r.Request
	if view.PromptID(r) == "" || q != nil && q.Kind == agency.AsksDialog {
		return nil
	}
	answer := func(does string, decision agency.Decision, text string) action {
		return action{does: does, do: func(ctx context.Context, _ string) (string, error) { return m.answer(ctx, r, decision, text) }}
	}
	actions := []action{}
	switch {
	case q != nil && q.Kind == agency.AsksPermission && q.Cut():
		m.say("agency keeps only the beginning of what it asks for; its terminal has the rest")
	case q != nil && q.Kind == agency.AsksPermission:
		actions = append(actions, answer("allow it once", agency.Allow, ""))
	default:
		for _, option := range m.options(ctx, r) {
			actions = append(actions, answer("answer: "+option, "", option))
		}
		actions = append(actions, action{does: "reply in your own words", text: "your reply", do: func(ctx context.Context, text string) (string, error) {
			return m.answer(ctx, r, "", text)
		}})
	}
	if q != nil {
		actions = append(actions, answer("reject it", agency.Deny, ""))
	}
	return actions
}

// options returns the options of a question: those that the agent names, or else those on its screen.
func (m *Menu) options(ctx context.Context, r *api.Run) []string {
	if r.Request == nil {
		return nil
	}
	if len(r.Request.Options) > 0 {
		return r.Request.Options
	}
	resp, err := m.o.Daemon.ShowScreen(ctx, api.ShowScreenRequest{Run: string(r.ID)})
	if err != nil {
		return nil // a reply works without them
	}
	return preview.Options(&resp.Screen)
}

func (m *Menu) answer(ctx context.Context, r *api.Run, decision agency.Decision, text string) (string, error) {
	resp, err := m.o.Daemon.AnswerRun(ctx, api.AnswerRunRequest{Run: string(r.ID), PromptID: view.PromptID(r), Decision: decision, Text: text})
	if err == nil && !resp.Confirmed {
		return "answered, but agency did not see the agent accept it", nil
	}
	return "answered", err
}

// liveActions returns what can be done with a run whose agent may be at work.
func (m *Menu) liveActions(r *api.Run) []action {
	d, run := &m.o.Daemon, string(r.ID)
	actions := []action{
		{does: "attach to its terminal", do: func(context.Context, string) (string, error) { return m.attach(r) }},
		{does: "send a message", text: "the message", do: func(ctx context.Context, text string) (string, error) {
			resp, err := d.SendInput(ctx, api.SendInputRequest{Run: run, Text: text})
			if err == nil && !resp.Confirmed {
				return "typed, but agency did not see the agent accept it", nil
			}
			return r.Ref() + " got the message", err
		}},
		{does: "stop it", sure: true, do: func(ctx context.Context, _ string) (string, error) {
			_, err := d.StopRun(ctx, api.RunRequest{Run: run})
			return r.Ref() + " is stopped", err
		}},
	}
	if r.Mode != agency.ModeProtocol {
		return actions
	}
	return append(actions, action{does: "interrupt what it does", do: func(ctx context.Context, _ string) (string, error) {
		_, err := d.InterruptRun(ctx, api.RunRequest{Run: run})
		return r.Ref() + " is interrupted", err
	}})
}

// endedActions returns what can be done with a run that has ended.
func (m *Menu) endedActions(r *api.Run) []action {
	d, run := &m.o.Daemon, string(r.ID)
	return []action{
		{does: "resume it", sure: true, do: func(ctx context.Context, _ string) (string, error) {
			_, err := d.ResumeRun(ctx, api.ResumeRunRequest{Run: run, Env: m.o.Env, Config: m.o.Config})
			return r.Ref() + " continues", err
		}},
		{does: "remove it", sure: true, do: func(ctx context.Context, _ string) (string, error) {
			_, err := d.RemoveRun(ctx, api.RemoveRunRequest{Run: run})
			return r.Ref() + " is removed", err
		}},
	}
}

// landActions returns what brings the work of a run into its branch, while its agent does not work.
func (m *Menu) landActions(r *api.Run) []action {
	d, run, env, config := &m.o.Daemon, string(r.ID), m.o.Env, m.o.Config
	return []action{
		{does: "run the checks of its branch", do: func(ctx context.Context, _ string) (string, error) {
			m.say("the checks run")
			ctx, cancel := context.WithTimeout(ctx, page.LandTime)
			defer cancel()
			resp, err := d.VerifyRun(ctx, api.VerifyRunRequest{Run: run, Env: env, Config: config})
			if err == nil && !resp.Passed {
				return "the checks did not pass: agency verify " + r.Ref(), nil
			}
			return r.Ref() + " passed the checks", err
		}},
		{does: "merge it into its branch", sure: true, do: func(ctx context.Context, _ string) (string, error) {
			m.say("it is merged after its checks")
			ctx, cancel := context.WithTimeout(ctx, page.LandTime)
			defer cancel()
			_, err := d.MergeRun(ctx, api.MergeRunRequest{Run: run, Env: env, Config: config})
			return r.Ref() + " is merged", err
		}},
		{does: "queue it to land", sure: true, do: func(ctx context.Context, _ string) (string, error) {
			_, err := d.AddToQueue(ctx, api.AddToQueueRequest{Runs: []string{run}, Env: env, Config: config})
			return r.Ref() + " is queued to land", err
		}},
	}
}

// otherActions returns what can be done with any run, and with its alerts.
func (m *Menu) otherActions(r *api.Run) []action {
	d, run, env, config := &m.o.Daemon, string(r.ID), m.o.Env, m.o.Config
	actions := []action{
		{does: "save its work in a snapshot", do: func(ctx context.Context, _ string) (string, error) {
			_, err := d.TakeSnapshot(ctx, api.RunRequest{Run: run})
			return r.Ref() + " is saved", err
		}},
		{does: "continue it in another mode", text: "terminal, headless or protocol, and behind it a task if it gets one", do: func(ctx context.Context, text string) (string, error) {
			_, err := d.ResumeRun(ctx, page.ReadMode(run, text, env, config))
			return r.Ref() + " moved to another mode", err
		}},
	}
	if r.SnoozedUntil != nil {
		return append(actions, action{does: "take the snooze of its alerts back", do: func(ctx context.Context, _ string) (string, error) {
			return r.Ref() + " is no longer snoozed", page.PutOff(ctx, d, run, page.SnoozeOver)
		}})
	}
	return append(actions, action{does: "snooze its alerts for an hour", do: func(ctx context.Context, _ string) (string, error) {
		return r.Ref() + " is snoozed for an hour", page.PutOff(ctx, d, run, page.Snooze)
	}})
}

// attach gives the terminal to agency attach until the user detaches.
func (m *Menu) attach(r *api.Run) (string, error) {
	cmd := m.o.Command("attach", "--", string(r.ID))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return "", agency.Errorf(agency.CodeInvalidState, "the terminal of %s is not there: %w", r.Ref(), err).WithHint("agency logs %s", r.Ref())
	}
	return fmt.Sprintf("back from %s", r.Ref()), nil
}
